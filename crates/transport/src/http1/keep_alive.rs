//! May a connection serve another request (RFC 9112 §9.3)?

use http_semantics::RequestHead;
use transport_settings::ConnectionSettings;

/// Requests so far and the age of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub requests: u64,
    pub age_ms: u64,
}

/// May it, as far as the client and the directives say?
pub fn may_keep(settings: &ConnectionSettings, head: &RequestHead, usage: Usage) -> bool {
    if settings.keepalive_timeout.is_zero()
        || usage.requests >= settings.keepalive_requests
        || u128::from(usage.age_ms) > settings.keepalive_time.as_millis()
    {
        return false;
    }
    let is_msie6_shy = settings.disable_msie6 && head.method() == b"POST";
    if is_msie6_shy || settings.disable_safari {
        let agent = head.field("user-agent").unwrap_or_default();
        if (is_msie6_shy && is_old_msie(agent)) || (settings.disable_safari && is_safari(agent)) {
            return false;
        }
    }
    http1::wants_keep_alive(head)
}

/// Internet Explorer up to version 6.
fn is_old_msie(agent: &[u8]) -> bool {
    memchr::memmem::find(agent, b"MSIE ").is_some_and(|at| {
        let version = (agent.get(at + 5), agent.get(at + 6));
        matches!(version, (Some(b'4'..=b'6'), Some(b'.')))
    })
}

/// Is it Safari on macOS, or a client with its name?
fn is_safari(agent: &[u8]) -> bool {
    memchr::memmem::find(agent, b"Safari/").is_some()
        && memchr::memmem::find(agent, b"Mac OS X").is_some()
        && memchr::memmem::find(agent, b"Chrome").is_none()
}
