//! `bench-load-http3 ADDRESS PATH SECONDS [CONNECTIONS] [STREAMS]` asks over HTTP/3 as fast as
//! answers come, with STREAMS requests at a time on each of CONNECTIONS connections, and prints the
//! number of answers and the bytes of the smallest one.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_tools::quic::{self, Failure};
use quinn::TransportConfig;

const USAGE: &str = "usage: bench-load-http3 ADDRESS PATH SECONDS [CONNECTIONS] [STREAMS]";
const NAME: &str = "bench.example";
const DEFAULT_CONNECTIONS: &str = "10";
const DEFAULT_STREAMS: &str = "10";

struct Options {
    at: SocketAddr,
    request: Arc<[u8]>,
    ends_at: Instant,
    connections: usize,
    streams: usize,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match (options(&words), runtime) {
        (Some(options), Ok(runtime)) => runtime.block_on(run(&options)),
        (None, _) => Err(USAGE.into()),
        (_, Err(error)) => Err(error.into()),
    };
    match result {
        Ok((answers, least_bytes)) => {
            println!("{{\"answers\": {answers}, \"least_bytes\": {least_bytes}}}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-load-http3: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options(words: &[String]) -> Option<Options> {
    let word = |at: usize| words.get(at).map(String::as_str);
    let path = word(1)?;
    let seconds = Duration::try_from_secs_f64(word(2)?.parse().ok()?).ok()?;
    Some(Options {
        at: word(0)?.parse().ok()?,
        request: quic::request(NAME, path).into(),
        ends_at: Instant::now() + seconds,
        connections: word(3).unwrap_or(DEFAULT_CONNECTIONS).parse().ok()?,
        streams: word(4).unwrap_or(DEFAULT_STREAMS).parse().ok()?,
    })
}

/// How many answers there were, and the bytes of the shortest.
async fn run(options: &Options) -> Result<(u64, usize), Failure> {
    let endpoint = quic::endpoint(TransportConfig::default())?;
    let mut askers = Vec::new();
    for _ in 0..options.connections {
        let connection = quic::connect(&endpoint, options.at, NAME).await?;
        for _ in 0..options.streams {
            let (connection, request) = (connection.clone(), options.request.clone());
            let ends_at = options.ends_at;
            askers.push(tokio::spawn(async move {
                let (mut answers, mut least_bytes) = (0, usize::MAX);
                while Instant::now() < ends_at {
                    least_bytes = least_bytes.min(quic::get(&connection, &request).await?);
                    answers += 1;
                }
                Ok::<_, Failure>((answers, least_bytes))
            }));
        }
    }
    let (mut answers, mut least_bytes) = (0, usize::MAX);
    for asker in askers {
        let (count, least) = asker.await??;
        answers += count;
        least_bytes = least_bytes.min(least);
    }
    endpoint.close(0u32.into(), b"");
    Ok((answers, least_bytes))
}
