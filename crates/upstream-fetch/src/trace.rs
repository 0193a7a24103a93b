//! The course of a fetch at the upstreams, for the `$upstream_*` variables: one value for each
//! server that was tried, joined as nginx joins them.

use std::sync::Arc;

use bytes::Bytes;
use site::Builtin as B;

use server_base::field_list::write_field_called;

/// How a variable is written.
type Write = fn(&Trace, &mut Vec<u8>) -> bool;

pub const VARIABLES: &[(B, Write)] = &[
    (B::UpstreamAddr, |trace, out| {
        trace.write_tries(out, |it, out| out.extend_from_slice(it.address.as_bytes()))
    }),
    (B::UpstreamBytesReceived, |trace, out| {
        trace.write_tries(out, |it, out| put_count(it.received_bytes.or(Some(0)), out))
    }),
    (B::UpstreamBytesSent, |trace, out| {
        trace.write_tries(out, |it, out| put_count(it.sent_bytes.or(Some(0)), out))
    }),
    (B::UpstreamConnectTime, |trace, out| {
        trace.write_tries(out, |it, out| put_time(it.connect_ms, out))
    }),
    (B::UpstreamHeaderTime, |trace, out| {
        trace.write_tries(out, |it, out| put_time(it.head_ms, out))
    }),
    (B::UpstreamQueueTime, |trace, out| {
        trace.write_tries(out, |it, out| put_time(it.queue_ms, out))
    }),
    (B::UpstreamResponseLength, |trace, out| {
        trace.write_tries(out, |it, out| put_count(it.body_bytes.or(Some(0)), out))
    }),
    (B::UpstreamResponseTime, |trace, out| {
        trace.write_tries(out, |it, out| put_time(it.response_ms, out))
    }),
    (B::UpstreamStatus, |trace, out| {
        trace.write_tries(out, |it, out| put_count(it.status.map(u64::from), out))
    }),
];

/// All that was tried for one request.
#[derive(Debug, Default)]
pub struct Trace {
    pub tries: Vec<Try>,
    /// Fields of the last response head, where some value may read them.
    fields: Vec<(Bytes, Bytes)>,
    /// Fields behind the body of the last response.
    trailers: Vec<(Bytes, Bytes)>,
}

/// One server's part. Times are in milliseconds.
#[derive(Debug, Default, Clone)]
pub struct Try {
    pub address: Arc<str>,
    pub status: Option<u16>,
    pub started_at: u64,
    pub queue_ms: Option<u64>,
    /// No server had room: how long that was waited for.
    pub refused_after_ms: Option<u64>,
    pub connect_ms: Option<u64>,
    pub head_ms: Option<u64>,
    pub response_ms: Option<u64>,
    pub body_bytes: Option<u64>,
    pub sent_bytes: Option<u64>,
    pub received_bytes: Option<u64>,
}

impl Trace {
    /// The server at `address` is asked, after `queue_ms` in line; over a connection
    /// that is there already?
    pub fn begin_try(&mut self, address: Arc<str>, queue_ms: u64, is_connected: bool) {
        self.tries.push(Try {
            address,
            status: None,
            started_at: clock::recent(),
            queue_ms: Some(queue_ms),
            refused_after_ms: None,
            connect_ms: is_connected.then_some(0),
            head_ms: None,
            response_ms: None,
            body_bytes: None,
            sent_bytes: None,
            received_bytes: None,
        });
    }

    pub fn connected(&mut self) {
        if let Some(last) = self.tries.last_mut() {
            last.connect_ms = Some(clock::recent().saturating_sub(last.started_at));
        }
    }

    pub fn head(&mut self, status: u16) {
        if let Some(last) = self.tries.last_mut() {
            last.status = Some(status);
            last.head_ms = Some(clock::recent().saturating_sub(last.started_at));
        }
    }

    /// Stores the fields of the last head.
    pub fn keep_fields(&mut self, fields: &[(Bytes, Bytes)]) {
        self.fields = fields.to_vec();
    }

    pub fn keep_trailers(&mut self, trailers: &[(Bytes, Bytes)]) {
        self.trailers = trailers.to_vec();
    }

    pub fn count(&mut self, sent: u64, received: u64, body: u64) {
        if let Some(last) = self.tries.last_mut() {
            last.sent_bytes = Some(sent);
            last.received_bytes = Some(received);
            last.body_bytes = Some(body);
        }
    }

    /// The last try is over; `status` where it had no response.
    pub fn end_try(&mut self, status: Option<u16>) {
        if let Some(last) = self.tries.last_mut() {
            last.status = last.status.or(status);
            if last.response_ms.is_none() {
                last.response_ms = Some(clock::recent().saturating_sub(last.started_at));
            }
        }
    }

    /// Appends the value that `put` writes for each server that was tried; returns false if no
    /// server was tried.
    fn write_tries(&self, out: &mut Vec<u8>, put: fn(&Try, &mut Vec<u8>)) -> bool {
        for (index, attempt) in self.tries.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            put(attempt, out);
        }
        !self.tries.is_empty()
    }

    /// Appends `$upstream_http_NAME`.
    pub fn write_field(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        write_field_called(name, &self.fields, out)
    }

    /// Appends `$upstream_trailer_NAME`.
    pub fn write_trailer(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        write_field_called(name, &self.trailers, out)
    }

    /// Appends `$upstream_cookie_NAME`: the value in the first Set-Cookie of it.
    pub fn write_cookie(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        let found = self.fields.iter().find_map(|(field, value)| {
            if !field.eq_ignore_ascii_case(b"set-cookie") {
                return None;
            }
            let rest = trim_spaces(value.strip_prefix(name)?);
            let rest = rest.strip_prefix(b"=")?;
            let value = rest.split(|&byte| byte == b';').next()?;
            Some(trim_spaces(value))
        });
        if let Some(value) = found {
            out.extend_from_slice(value);
        }
        found.is_some()
    }
}

/// Without the spaces before it; a tab is part of a value.
fn trim_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|&&byte| byte == b' ').count();
    &text[spaces..]
}

fn put_time(milliseconds: Option<u64>, out: &mut Vec<u8>) {
    match milliseconds {
        Some(milliseconds) => decimal::put_seconds(milliseconds, out),
        None => out.push(b'-'),
    }
}

fn put_count(count: Option<u64>, out: &mut Vec<u8>) {
    match count {
        Some(count) => decimal::put(count, out),
        None => out.push(b'-'),
    }
}
