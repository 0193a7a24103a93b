//! `bench-flood KIND ADDRESS PATH SECONDS [--tls]` sends what costs a server more than a client,
//! as fast as one core can, and reports how much it was. A connection that the server ends is
//! replaced at once.
//!
//! Only for servers of one's own: an address that is not a loopback address is refused.

mod http2;
mod quic;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bench_tools::quic::Failure;

const USAGE: &str = "usage: bench-flood KIND ADDRESS PATH SECONDS [--tls]\n\
    HTTP/2: rapid_reset continuation ping settings window_update empty_data hpack_bomb\n\
    HTTP/3: forged_addresses handshakes tiny_packets stalls";
/// The name that certificates and requests have.
const NAME: &str = "bench.example";

/// The server that is flooded, how and for how long.
struct Target {
    at: SocketAddr,
    path: String,
    ends_at: Instant,
    has_tls: bool,
}

/// Counts of the connections and pieces that were sent.
#[derive(Default)]
struct SentCounts {
    connections: u64,
    /// Frames of HTTP/2, packets or requests of HTTP/3, whichever the flood is made of.
    pieces: u64,
    bytes: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match flood(&words) {
        Ok(sent) => {
            println!(
                "{{\"connections\": {}, \"pieces\": {}, \"bytes\": {}}}",
                sent.connections, sent.pieces, sent.bytes
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-flood: {error}");
            ExitCode::FAILURE
        }
    }
}

fn flood(words: &[String]) -> Result<SentCounts, Failure> {
    let [kind, at, path, seconds, rest @ ..] = words else {
        return Err(USAGE.into());
    };
    let target = Target {
        at: at.parse()?,
        path: path.clone(),
        ends_at: Instant::now() + Duration::try_from_secs_f64(seconds.parse()?)?,
        has_tls: rest.iter().any(|word| word == "--tls"),
    };
    if !target.at.ip().is_loopback() {
        return Err("only an address of this machine is flooded (127.0.0.0/8 or ::1)".into());
    }
    match http2::FloodKind::of(kind) {
        Some(kind) => http2::flood(kind, &target),
        None => quic::flood(kind, &target).unwrap_or_else(|| Err(USAGE.into())),
    }
}
