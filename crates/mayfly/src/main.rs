//! The program.

#[allow(dead_code, unused_imports, reason = "wired in by the command line")]
mod serve;

fn main() {}
