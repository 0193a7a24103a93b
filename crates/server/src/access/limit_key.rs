//! The key of a `limit_conn` or `limit_req` zone, for one request.

use site::{LogLevel, Template};

use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::log::error_log;

/// Returns the key under which a request is counted in a zone. A request with an empty key is not
/// counted; one with a key longer than `max_bytes` is not counted either, and logged.
pub fn key_in_zone(
    request: &Request,
    key: &Template,
    zone: &str,
    max_bytes: usize,
) -> Option<Vec<u8>> {
    let key = variable::evaluate(request, key);
    if key.len() > max_bytes {
        let message =
            format_args!("the value of the key of zone \"{zone}\" is more than {max_bytes} bytes");
        error_log::request(request, LogLevel::Error, message);
        return None;
    }
    Some(key).filter(|key| !key.is_empty())
}
