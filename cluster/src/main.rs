//! `thalweg`: the one program.

#![allow(unreachable_pub, reason = "modules of a program, not of a library")]

mod program;

fn main() -> std::process::ExitCode {
    program::main()
}

// Records are made on the runtime's threads and in librdkafka and freed on its event thread; glibc's
// allocator pays a tenth of the processor time of a snapshot for that.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The allocator's settings, read by it before `main`: memory of a burst goes back to the system soon
/// after. Two arenas are enough, because only the hand-over to librdkafka allocates much. A reference to
/// an array is what C expects, one pointer. `MALLOC_CONF` in the environment wins.
#[unsafe(export_name = "malloc_conf")]
pub static MALLOC_CONF: &[u8; 46] = b"narenas:2,dirty_decay_ms:500,muzzy_decay_ms:0\0";
