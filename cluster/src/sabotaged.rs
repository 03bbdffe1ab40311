//! `thalweg-sabotaged`: the program with deliberate defects, for tests of the fault harness.

#![allow(unreachable_pub, reason = "modules of a program, not of a library")]

mod program;

fn main() -> std::process::ExitCode {
    program::main()
}
