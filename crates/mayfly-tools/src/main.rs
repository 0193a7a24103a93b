//! The tools beside the server: `bench` puts load on a server or loads a page as a browser does, and `advise` reads
//! access logs. `mayfly bench` and `mayfly advise` start this program with their arguments; the server links none
//! of it.

mod advise;
mod bench;
mod bench_page;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use command_line::{AdviseArgs, BenchArgs};

/// The tools of Mayfly, which mayfly bench and mayfly advise start.
#[derive(Parser)]
#[command(name = "mayfly-tools", version)]
struct Line {
    #[command(subcommand)]
    word: Word,
}

#[derive(Subcommand)]
enum Word {
    /// Read access logs, and report how much work each lifetime of stored pages would save
    Advise(AdviseArgs),
    /// Put load on a server of this machine and measure what visitors feel, or load a page as a browser does
    Bench(Box<BenchArgs>),
}

fn main() -> ExitCode {
    let exit = match Line::parse().word {
        Word::Advise(args) => advise::run(&args),
        Word::Bench(args) => bench::run(&args),
    };
    exit.into()
}

fn event_loop() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
