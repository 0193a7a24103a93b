//! Facts that a fetch needs before its response names tags (`cache_tags`).

use crate::exchange::received_request::ReceivedRequest;
use server_base::random;

/// The scheme, host and port of a request.
pub fn origin(received: &ReceivedRequest) -> Vec<u8> {
    let mut origin = Vec::with_capacity(received.host().len() + 16);
    origin.extend_from_slice(received.scheme().as_bytes());
    origin.extend_from_slice(b"://");
    origin.extend_from_slice(received.host());
    if let Some(port) = received.host_port() {
        origin.extend_from_slice(format!(":{port}").as_bytes());
    }
    origin
}

/// A mark that only the application knows of which this request is asked, for the lines of its error
/// stream.
pub fn new_mark() -> String {
    format!("mayfly-{:032x}", u128::from_be_bytes(random::bytes16()))
}
