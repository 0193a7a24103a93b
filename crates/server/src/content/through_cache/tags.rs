//! What a fetch is to know before its response names tags (`cache_tags`).

use crate::base::random;
use crate::exchange::request::Request;

/// The scheme, host and port of a request.
pub fn origin(request: &Request) -> Vec<u8> {
    let mut origin = Vec::with_capacity(request.received.host().len() + 16);
    origin.extend_from_slice(request.received.scheme().as_bytes());
    origin.extend_from_slice(b"://");
    origin.extend_from_slice(request.received.host());
    if let Some(port) = request.received.host_port() {
        origin.extend_from_slice(format!(":{port}").as_bytes());
    }
    origin
}

/// A mark that only the application knows of which this request is asked, for the lines of its error
/// stream.
pub fn new_mark() -> String {
    format!("mayfly-{:032x}", u128::from_be_bytes(random::bytes16()))
}
