//! The part of error log lines about their request.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::Range;

use bytes::Bytes;
use http_semantics::RequestHead;

use super::push_text;
use server_base::address::put_ip;

/// The facts about a request for error log lines, kept for when there is a line
/// to write.
#[derive(Debug)]
pub struct Origin {
    client: Option<IpAddr>,
    server_name: Box<str>,
    /// The head that was received, and where in it the others are.
    head: Bytes,
    request_line: Range<usize>,
    host: Option<Range<usize>>,
    referrer: Option<Range<usize>>,
    subrequest: Option<Vec<u8>>,
}

impl Origin {
    /// `subrequest`: the path of a request that the server makes itself.
    pub fn new(
        head: &RequestHead,
        client: Option<IpAddr>,
        server_name: &str,
        subrequest: Option<&[u8]>,
    ) -> Origin {
        let range = |part: &[u8]| {
            let start = part.as_ptr().addr();
            let start = start.wrapping_sub(head.bytes.as_ptr().addr());
            start..start.saturating_add(part.len())
        };
        Origin {
            client,
            server_name: server_name.into(),
            request_line: range(head.request_line()),
            host: head.field("host").map(range),
            referrer: head.field("referer").map(range),
            head: head.bytes.clone(),
            subrequest: subrequest.map(<[u8]>::to_vec),
        }
    }

    /// `, client: 127.0.0.1, server: localhost, request: "GET / HTTP/1.1", host:
    /// "localhost"`, and the Referer where one was sent.
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(160);
        let mut client = Vec::with_capacity(40);
        match self.client {
            Some(address) => put_ip(address, &mut client),
            None => client.extend_from_slice(b"unix:"),
        }
        out.push_str(", client: ");
        push_text(&client, &mut out);
        let _ = write!(out, ", server: {}", self.server_name);
        let mut quoted = |name: &str, value: &[u8]| {
            let _ = write!(out, ", {name}: \"");
            push_text(value, &mut out);
            out.push('"');
        };
        let part = |range: &Range<usize>| self.head.get(range.clone()).unwrap_or_default();
        if !self.request_line.is_empty() {
            quoted("request", part(&self.request_line));
        }
        for (name, value) in [
            ("subrequest", self.subrequest.as_deref()),
            ("host", self.host.as_ref().map(part)),
            ("referrer", self.referrer.as_ref().map(part)),
        ] {
            if let Some(value) = value {
                quoted(name, value);
            }
        }
        out
    }
}
