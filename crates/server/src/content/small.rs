//! Content that is a few bytes made here, asked for by a directive of its own: `empty_gif` and
//! `stub_status`.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use crate::exchange::handled::Handled;
use crate::exchange::reply::Reply;
use crate::exchange::request::{Method, Request};

/// A picture of one transparent pixel, as small as GIF allows it.
const EMPTY_GIF: &[u8; 43] = b"GIF89a\x01\x00\x01\x00\x80\x01\x00\x00\x00\x00\xff\xff\xff\
    !\xf9\x04\x01\x00\x00\x01\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02L\x01\x00;";
/// Its age, as nginx tells it: 28 September 1970.
const EMPTY_GIF_MODIFIED: i64 = 23_349_600;

/// The function of each directive that [`site::directives::content_handlers`] names.
const HANDLERS: &[(&str, fn(&mut Request) -> Handled)] =
    &[("empty_gif", empty_gif), ("stub_status", stub_status)];

/// The response of a location that the directive `name` makes responses for.
pub fn handle(name: &str, request: &mut Request) -> Handled {
    match HANDLERS.iter().find(|(known, _)| *known == name) {
        Some((_, handler)) => handler(request),
        None => Handled::Status(500),
    }
}

/// <https://nginx.org/en/docs/http/ngx_http_empty_gif_module.html>
fn empty_gif(request: &mut Request) -> Handled {
    if !is_read(request) {
        return Handled::Status(405);
    }
    let mut reply = Reply::new(200, b"image/gif", Bytes::from_static(EMPTY_GIF));
    reply.head.last_modified = Some(EMPTY_GIF_MODIFIED);
    let date = http1::date::format(EMPTY_GIF_MODIFIED);
    reply
        .head
        .fields
        .append("Last-Modified", Bytes::copy_from_slice(&date));
    Handled::Reply(Box::new(reply))
}

/// <https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>
fn stub_status(request: &mut Request) -> Handled {
    if !is_read(request) {
        return Handled::Status(405);
    }
    let stats = &request.configuration.stats;
    let census = stats.connections.census();
    let page = format!(
        "Active connections: {} \nserver accepts handled requests\n {} {} {} \n\
         Reading: {} Writing: {} Waiting: {} \n",
        census.active,
        stats.accepted.load(Relaxed),
        stats.handled.load(Relaxed),
        stats.requests.sum(),
        census.reading,
        census.writing,
        census.waiting,
    );
    Handled::Reply(Box::new(Reply::new(200, b"text/plain", page)))
}

fn is_read(request: &Request) -> bool {
    matches!(request.method, Method::Get | Method::Head)
}

#[cfg(test)]
mod tests {
    use super::HANDLERS;

    #[test]
    fn every_content_handler_of_the_directive_table_has_a_function() {
        let mut names: Vec<&str> = HANDLERS.iter().map(|(name, _)| *name).collect();
        let mut declared: Vec<&str> = site::directives::content_handlers().collect();
        names.sort_unstable();
        declared.sort_unstable();
        assert_eq!(names, declared);
    }
}
