//! The program.

#[allow(dead_code, reason = "wired in by the command line")]
mod serve;

fn main() {}
