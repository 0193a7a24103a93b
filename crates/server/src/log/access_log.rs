//! The access log: one line for each request, formatted by `log_format`
//! (<https://nginx.org/en/docs/http/ngx_http_log_module.html>).
//!
//! Lines are formatted straight into a buffer of the thread and leave together,
//! before the thread goes to sleep (`pending`): a line costs neither a system
//! call nor an allocation of its own. Paths with variables are opened by name
//! for each line, or kept open by `open_log_file_cache` (`variable_path`).

mod pending;
mod variable_path;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use site::{AccessLogTarget, Builtin, LogEscape, LogFormat, Part, Variable};
use tokio::sync::Notify;

use crate::exchange::request::Request;
use crate::exchange::variable;
use pending::GatheredLines;
use variable_path::OpenFiles;

/// The log buffers of a thread.
#[derive(Default)]
struct Writer {
    gathered: GatheredLines,
    open_files: OpenFiles,
    /// Holds a line that is not gathered.
    line: Vec<u8>,
    /// Holds a value while it is escaped.
    scratch: Vec<u8>,
}

thread_local! {
    /// `None` while it is out.
    static WRITER: RefCell<Option<Box<Writer>>> = const { RefCell::new(None) };
}

/// Writes the line of a request that has ended to its location's logs.
pub fn log(request: &Request) {
    if request.settings().access_logs.is_empty()
        || (request.route.is_subrequest() && !request.settings().log_subrequests)
    {
        return;
    }
    // Variables are evaluated while the writer is out: none of them logs.
    let mut writer = WRITER.take().unwrap_or_default();
    write_all(request, &mut writer);
    WRITER.set(Some(writer));
}

fn write_all(request: &Request, writer: &mut Writer) {
    let formats = &request.configuration.site.http.log_formats;
    for log in &request.settings().access_logs {
        if let Some(condition) = &log.condition
            && !variable::is_true(request, condition)
        {
            continue;
        }
        let Some(format) = formats.get(log.format.0) else {
            continue;
        };
        let Writer {
            gathered,
            open_files,
            line,
            scratch,
        } = writer;
        match &log.target {
            AccessLogTarget::Fixed(target) => {
                let pending = gathered.pending(request.configuration.shared(), log, || {
                    request.configuration.live.log_sinks.sink(target)
                });
                pending.append(clock::recent(), |out| {
                    put_line(request, format, scratch, out)
                });
            }
            AccessLogTarget::Variable(path) => {
                line.clear();
                put_line(request, format, scratch, line);
                open_files.write(request, path, line);
            }
        }
    }
}

/// Writes out the lines gathered by this thread, except for logs with `buffer=` whose
/// time has not come. Called whenever the thread is about to sleep.
pub fn flush_thread() {
    // A thread that is ending has written its lines already.
    let _ = WRITER.try_with(|writer| {
        if let Ok(mut writer) = writer.try_borrow_mut()
            && let Some(writer) = writer.as_mut()
        {
            writer.gathered.flush_due();
        }
    });
}

/// Notified when this thread begins to gather lines that a timer flushes.
pub fn waiting_lines() -> Arc<Notify> {
    pending::waiting_lines()
}

/// Returns how long this thread's lines may still wait, if any do.
pub fn next_flush() -> Option<Duration> {
    let next = WRITER.try_with(|writer| {
        let writer = writer.try_borrow().ok()?;
        writer.as_ref()?.gathered.next_flush()
    });
    next.ok().flatten()
}

/// Writes out everything that this thread has gathered: before it ends, and
/// when logs are reopened.
pub fn flush_all_thread() {
    let _ = WRITER.try_with(|writer| {
        if let Ok(mut writer) = writer.try_borrow_mut()
            && let Some(writer) = writer.as_mut()
        {
            writer.gathered.flush_all();
            writer.open_files.close();
        }
    });
}

fn put_line(request: &Request, format: &LogFormat, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    for part in &format.template.parts {
        match part {
            Part::Literal(text) => out.extend_from_slice(text),
            Part::Variable(variable) => {
                let start = out.len();
                let found = variable::write(request, variable, out);
                if found && is_plain(variable) {
                    continue;
                }
                match format.escape {
                    LogEscape::Default if found => {
                        escape_from(start, breaks_text, put_hex, scratch, out)
                    }
                    LogEscape::Default => out.push(b'-'),
                    LogEscape::Json => escape_from(start, breaks_json, put_json, scratch, out),
                    LogEscape::None => {}
                }
            }
        }
    }
    out.push(b'\n');
}

/// Values of our own making, in which nothing is ever escaped.
fn is_plain(variable: &Variable) -> bool {
    use Builtin as B;
    matches!(
        variable,
        Variable::Builtin(
            B::RemoteAddr
                | B::TimeLocal
                | B::TimeIso8601
                | B::Msec
                | B::Status
                | B::BodyBytesSent
                | B::BytesSent
                | B::RequestTime
                | B::RequestLength
                | B::Connection
                | B::ConnectionRequests
                | B::Scheme
                | B::ServerProtocol
        )
    )
}

/// `escape=default`: `"`, `\`, control characters and bytes that are not ASCII.
fn breaks_text(byte: u8) -> bool {
    !(32..=126).contains(&byte) || byte == b'"' || byte == b'\\'
}

/// `escape=json`: bytes that may not stand in a JSON string (RFC 8259 §7).
fn breaks_json(byte: u8) -> bool {
    byte < 32 || byte == b'"' || byte == b'\\'
}

/// Escapes the bytes of `out` from `start` on.
fn escape_from(
    start: usize,
    changed: impl Fn(u8) -> bool,
    put: fn(u8, &mut Vec<u8>),
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let value = out.get(start..).unwrap_or_default();
    if !holds(value, &changed) {
        return;
    }
    scratch.clear();
    scratch.extend_from_slice(value);
    out.truncate(start);
    for &byte in scratch.iter() {
        if changed(byte) {
            put(byte, out);
        } else {
            out.push(byte);
        }
    }
}

/// Does `changed` hold for some byte? Without a way out of the loops, many bytes are
/// looked at together; the last may have bytes of those before it again.
fn holds(value: &[u8], changed: impl Fn(u8) -> bool) -> bool {
    let any = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(false, |found, &byte| found | changed(byte))
    };
    let Some(last) = value.last_chunk::<16>() else {
        return any(value);
    };
    value.as_chunks::<16>().0.iter().any(|chunk| any(chunk)) || any(last)
}

fn hex_digit(value: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(value & 15)]
}

fn put_hex(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'\\', b'x', hex_digit(byte >> 4), hex_digit(byte)]);
}

fn put_json(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        b'"' | b'\\' => byte,
        _ => {
            out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                hex_digit(byte >> 4),
                hex_digit(byte),
            ]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_breaks_out_of_its_place_in_the_line() {
        let mut scratch = Vec::new();
        for (value, text, json) in [
            (&b"plain /~"[..], &b"plain /~"[..], &b"plain /~"[..]),
            (b"a\"b\\c", b"a\\x22b\\x5Cc", b"a\\\"b\\\\c"),
            (
                b"\n\r\t\x08\x0c\x01\x1f",
                b"\\x0A\\x0D\\x09\\x08\\x0C\\x01\\x1F",
                b"\\n\\r\\t\\b\\f\\u0001\\u001F",
            ),
            (b"\x7f\xc3\xa9", b"\\x7F\\xC3\\xA9", b"\x7f\xc3\xa9"),
            (b"", b"", b""),
        ] {
            let mut out = b"before\"".to_vec();
            let start = out.len();
            out.extend_from_slice(value);
            let mut other = out.clone();
            escape_from(start, breaks_text, put_hex, &mut scratch, &mut out);
            assert_eq!(
                out,
                [b"before\"", text].concat(),
                "{}",
                value.escape_ascii()
            );
            escape_from(start, breaks_json, put_json, &mut scratch, &mut other);
            assert_eq!(
                other,
                [b"before\"", json].concat(),
                "{}",
                value.escape_ascii()
            );
        }
    }
}
