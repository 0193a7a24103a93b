//! Asks a server on 127.0.0.1 and reports how long it took.
//!
//! `bench-load PORT TARGET OPTION...` opens its connections, prints `ready`, waits for a line on
//! standard input, asks, and prints one line of JSON. The caller reads the
//! CPU time and memory of the server between those lines, so that neither start nor connecting is counted.
//!
//! Without `--rate` every connection asks again as soon as it has its answer: how much can the
//! server do? With it, requests are due at fixed times whether or not the server keeps up, and
//! latency counts from the moment a request was due: what do visitors wait?

mod client;
mod options;

use options::Options;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = Options::parse(std::env::args().skip(1)).and_then(|options| run(&options));
    match result {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<String, String> {
    let mut crowd =
        client::Crowd::connect(options).map_err(|error| format!("connecting: {error}"))?;
    println!("ready");
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| error.to_string())?;
    let report = crowd.ask(options).map_err(|error| error.to_string())?;
    let microseconds = |share| report.latency.percentile(share).as_nanos() as f64 / 1000.0;
    Ok(format!(
        "{{\"requests\":{},\"seconds\":{:.6},\"wrong_status\":{},\"wrong_length\":{},\"broken\":{},\
         \"p50_us\":{:.1},\"p99_us\":{:.1},\"p99_9_us\":{:.1},\"max_us\":{:.1}}}",
        report.latency.total(),
        report.took.as_secs_f64(),
        report.wrong_status,
        report.wrong_length,
        report.broken,
        microseconds(0.5),
        microseconds(0.99),
        microseconds(0.999),
        microseconds(1.0),
    ))
}
