//! `thalweg`: the one program.

#![allow(unreachable_pub, reason = "modules of a program, not of a library")]

mod program;

fn main() -> std::process::ExitCode {
    program::main()
}
