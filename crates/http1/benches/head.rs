//! Time per request head, ours beside httparse doing less (it checks neither
//! nginx's limits nor its name rules). A plain program: run it with
//! `cargo bench -p http1`.

use std::hint::black_box;
use std::time::Instant;

use http_semantics::{RequestView, Target, request_host};
use http1::{HeadLimits, HeadWriter, ParsedHead, body_framing, parse_request, wants_keep_alive};

const LOAD_TOOL: &[u8] = b"GET /news/1.html HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
const BROWSER: &[u8] = b"GET /news/2026/11/a-longer-title.html?page=2 HTTP/1.1\r\n\
Host: www.example.com\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
Accept-Language: en-US,en;q=0.5\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Connection: keep-alive\r\n\
Cookie: _ga=GA1.1.1234567890.1234567890; session=0123456789abcdef0123456789abcdef\r\n\
Upgrade-Insecure-Requests: 1\r\n\
Sec-Fetch-Dest: document\r\n\
Sec-Fetch-Mode: navigate\r\n\
Sec-Fetch-Site: none\r\n\
If-None-Match: \"5f2b-62a1\"\r\n\r\n";

fn main() {
    let limits = HeadLimits::default();
    let mut fields = Vec::new();
    for (name, head) in [("load tool", LOAD_TOOL), ("browser", BROWSER)] {
        measure(name, "httparse", || {
            let mut headers = [httparse::EMPTY_HEADER; 32];
            let mut request = httparse::Request::new(&mut headers);
            black_box(request.parse(black_box(head)).is_ok());
        });
        measure(name, "parse_request", || {
            black_box(parse_request(black_box(head), &limits, &mut fields).is_ok());
        });
        measure(
            name,
            "parse_request, framing, target, host, keep-alive",
            || {
                let parsed = parse_request(black_box(head), &limits, &mut fields);
                let Ok(ParsedHead::Complete(line)) = parsed else {
                    return;
                };
                let view = RequestView {
                    bytes: head,
                    line: &line,
                    fields: &fields,
                };
                let target = Target::parse(view.target(), true).expect("a good target");
                black_box(body_framing(view).is_ok());
                black_box(request_host(view, &target).is_ok());
                black_box(wants_keep_alive(view));
            },
        );
    }
    let mut out = Vec::new();
    measure("response", "head of eight fields", || {
        out.clear();
        let mut head = HeadWriter::new(&mut out, black_box(200));
        for (name, value) in [
            ("Server", "mayfly"),
            ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Content-Type", "text/html; charset=utf-8"),
            ("Connection", "keep-alive"),
            ("Cache-Control", "max-age=1"),
            ("Age", "0"),
            ("X-Cache", "HIT"),
        ] {
            let _ = head.put_field(name, black_box(value));
        }
        let _ = head.put_field("Content-Length", black_box("21000"));
        head.finish();
        black_box(out.len());
    });
}

/// The best of five rounds, in nanoseconds per call.
fn measure(group: &str, name: &str, mut call: impl FnMut()) {
    const CALLS: u32 = 200_000;
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            start.elapsed() / CALLS
        })
        .min()
        .unwrap_or_default();
    println!("{group:>10}  {name:<50} {:>6} ns", best.as_nanos());
}
