//! `metrics`: the server's numbers as Prometheus reads them
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use bytes::Bytes;

use crate::content::own_machine;
use crate::exchange::handled::StageEnd;
use crate::exchange::numbers::snapshot;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;

const OPEN_METRICS: &[u8] = b"application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &[u8] = b"text/plain; version=0.0.4; charset=utf-8";

/// All numbers.
pub fn handle(request: &Request) -> StageEnd {
    if !request.route.method.is_read() {
        return StageEnd::Status(405);
    }
    if let Some(refused) = own_machine::refuses_look(request) {
        return refused;
    }
    let snapshot = snapshot(&request.configuration);
    let accept = request.received.head().field("accept").unwrap_or_default();
    let (media_type, written) = match prefers_open_metrics(accept) {
        true => (OPEN_METRICS, numbers::open_metrics(snapshot)),
        false => (TEXT, numbers::prometheus_text(snapshot)),
    };
    let Ok(text) = written else {
        return StageEnd::Status(500);
    };
    let mut reply = Reply::new(200, media_type, text);
    for (name, value) in FIELDS {
        reply.head.fields.append(*name, Bytes::from_static(value));
    }
    StageEnd::Reply(Box::new(reply))
}

/// Response fields of pages for the operator: they are not stored, and pages of other sites
/// cannot read them.
pub const FIELDS: &[(&str, &[u8])] = &[
    ("Cache-Control", b"no-store"),
    ("X-Content-Type-Options", b"nosniff"),
    ("Cross-Origin-Resource-Policy", b"same-origin"),
];

/// Does an Accept field (RFC 9110 §12.5.1) weigh OpenMetrics heavier than plain text?
fn prefers_open_metrics(accept: &[u8]) -> bool {
    let newer = weight(accept, b"application/openmetrics-text");
    newer > 0 && newer >= weight(accept, b"text/plain")
}

/// The weight that `accept` gives this media type, in thousandths; 0 if it does not name it.
fn weight(accept: &[u8], media_type: &[u8]) -> u16 {
    let ranges = accept.split(|&byte| byte == b',').filter_map(|range| {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let is_it = parts.next()?.eq_ignore_ascii_case(media_type);
        let weight = parts.find_map(|part| part.strip_prefix(b"q=").or(part.strip_prefix(b"Q=")));
        is_it.then(|| weight.map_or(1000, thousandths))
    });
    ranges.max().unwrap_or(0)
}

/// Parses a weight in thousandths: `0.5` is 500; 0 for any other text.
fn thousandths(text: &[u8]) -> u16 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    match text.parse::<f64>() {
        Ok(weight @ 0.0..=1.0) => (weight * 1000.0) as u16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_for_those_who_ask_for_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;\
                          version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, expected) in [
            ("", false),
            ("*/*", false),
            ("text/html,*/*;q=0.8", false),
            ("text/plain", false),
            ("application/openmetrics-text", true),
            ("Application/OpenMetrics-Text; version=1.0.0", true),
            (prometheus, true),
            (
                "text/plain;q=0.9, application/openmetrics-text;q=0.1",
                false,
            ),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=7", false),
            ("application/openmetrics-text;q=NaN", false),
            ("application/openmetrics-text;q=0.5,text/plain;q=0.5", true),
            (",;q=1,;;,", false),
        ] {
            assert_eq!(
                prefers_open_metrics(accept.as_bytes()),
                expected,
                "{accept}"
            );
        }
    }
}
