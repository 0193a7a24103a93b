//! The key of a `limit_conn` or `limit_req` zone, for one request.

use site::{LogLevel, Template};

use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::log::error_log;

/// What a request is counted under in a zone: nothing where the key is empty, and nothing but a
/// message where it is longer than `max_bytes`.
pub fn key_in_zone(
    request: &mut Request,
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
