//! A hint for who runs a site behind a proxy that ends TLS and is not named (`trusted_proxy`, `serve --behind`): the
//! application sees http, redirects to its https address, and the visitor's browser comes back the same way, in circles.

use std::sync::atomic::{AtomicU64, Ordering};

use site::LogLevel;

use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::log::error_log;

/// The configuration for which it was logged, by its serial plus one: once is enough.
static SAID_FOR: AtomicU64 = AtomicU64::new(0);

/// Logs a redirect to the very address that the client asked the proxy for.
pub fn note_circle(request: &Request, reply: &Reply) {
    if !matches!(reply.head.status, 301 | 302 | 307 | 308) || !leads_in_a_circle(request, reply) {
        return;
    }
    let serial = request.configuration.serial.saturating_add(1);
    if SAID_FOR.swap(serial, Ordering::Relaxed) == serial {
        return;
    }
    error_log::request(
        request,
        LogLevel::Warn,
        format_args!(
            "a redirect to https leads to the same page: a proxy in front says that the visitor came by https, and it is not \
             believed. If the address of the proxy is yours, name it with trusted_proxy (serve --behind ADDRESS)"
        ),
    );
}

fn leads_in_a_circle(request: &Request, reply: &Reply) -> bool {
    if request.settings().real_ip.believes_forwarded || request.is_own_visit() {
        return false;
    }
    let said = request.received.head().field("x-forwarded-proto");
    let location = reply.head.field("location").unwrap_or_default();
    let Some(rest) = location.strip_prefix(b"https://") else {
        return false;
    };
    let end = rest.iter().position(|byte| *byte == b'/');
    let (host, path) = rest.split_at(end.unwrap_or(rest.len()));
    let path = if path.is_empty() { b"/" } else { path };
    said.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"))
        && host.eq_ignore_ascii_case(request.received.host())
        && path == request.received.target()
}
