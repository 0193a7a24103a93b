//! The request for a fragment: a URL in a page becomes a request of the server's own.
//!
//! It is a request for the fragment's own target, so that keys, logs and applications that choose
//! by the target (`$request_uri`) see the fragment and not the page. Everything else is the
//! visitor's, except for fields that say how to send the page itself.

use http_semantics::escape;
use http1::{HeadLimits, parse_head};

use crate::exchange::request::{Method, Request};
use crate::exchange::request_route::TargetOrigin;
use crate::respond::parts::MAX_DEPTH;

/// Fields of a visitor that are about the page: conditions, ranges, its body and the connection.
const ABOUT_THE_PAGE: [&str; 14] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "range",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Creates the request for the fragment at `url`, in the name of `page`.
///
/// # Errors
/// The reason why the URL gives no request, for the log.
pub fn request(page: &Request, url: &[u8]) -> Result<Box<Request>, &'static str> {
    if page.route.depth >= page.settings().esi.max_depth.min(MAX_DEPTH) {
        return Err("fragments are nested too deep, or include each other");
    }
    let target = local_target(page, url)?;
    let (path, args) = http_semantics::split_query(&target);
    let decoded = escape::unescape(path);
    if decoded
        .split(|&byte| byte == b'/')
        .any(|part| part == b"..")
    {
        return Err("its path leaves its folder");
    }
    let parsed = http_semantics::Target::parse(path, true).map_err(|_| "its path is not valid")?;
    let head = parse_head(head(page, &target), &HeadLimits::OF_OWN_HEADS)
        .map_err(|_| "it is no valid target")?;
    let connection = page.received.connection().clone();
    let mut fragment = page.internal_with(connection, head);
    fragment.route.depth = page.route.depth + 1;
    fragment.route.method = Method::Get;
    fragment.route.method_override = None;
    fragment.route.path = parsed.path.into_owned();
    fragment.route.args = args.unwrap_or_default().to_vec();
    fragment.route.origin = TargetOrigin::Received;
    fragment.values.forget_path_info();
    Ok(fragment)
}

/// Path and query of `url` on this host, as bytes of a request line.
fn local_target(page: &Request, url: &[u8]) -> Result<Vec<u8>, &'static str> {
    let url = url.trim_ascii();
    let url = url.split(|&byte| byte == b'#').next().unwrap_or_default();
    let behind_scheme = ["http://", "https://", "//"].iter().find_map(|start| {
        let (head, rest) = url.split_at_checked(start.len())?;
        head.eq_ignore_ascii_case(start.as_bytes()).then_some(rest)
    });
    let local = match behind_scheme {
        Some(rest) => {
            let end = rest.iter().position(|byte| b"/?".contains(byte));
            let (host, target) = rest.split_at(end.unwrap_or(rest.len()));
            if !is_own_host(page, host) {
                return Err("it is on another host");
            }
            target
        }
        None => url,
    };
    let mut target = Vec::with_capacity(local.len() + 16);
    match local.first() {
        Some(b'/') => {}
        // Relative to the page. A URL without a path is that of the host.
        None | Some(b'?') if behind_scheme.is_some() => target.push(b'/'),
        Some(b'?') => target.extend_from_slice(&escape::escape_uri(&page.route.path)),
        _ => {
            let folder = memchr::memrchr(b'/', &page.route.path).map_or(0, |at| at + 1);
            target.extend_from_slice(&escape::escape_uri(&page.route.path[..folder]));
        }
    }
    for &byte in local {
        match byte {
            b'!'..=b'~' => target.push(byte),
            byte => target.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    Ok(target)
}

fn is_own_host(page: &Request, host: &[u8]) -> bool {
    let port =
        memchr::memrchr(b':', host).filter(|&at| host[at + 1..].iter().all(u8::is_ascii_digit));
    let name = &host[..port.unwrap_or(host.len())];
    !page.received.host().is_empty() && name.eq_ignore_ascii_case(page.received.host())
}

fn head(page: &Request, target: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(page.received.head().bytes.len() + target.len());
    head.extend_from_slice(b"GET ");
    head.extend_from_slice(target);
    head.extend_from_slice(b" HTTP/1.1\r\n");
    for (name, value) in page.received.head().fields() {
        let is_left_out = ABOUT_THE_PAGE
            .iter()
            .any(|left_out| name.eq_ignore_ascii_case(left_out.as_bytes()));
        if !is_left_out {
            head.extend_from_slice(name);
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}
