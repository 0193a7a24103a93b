//! The error log: `2026/11/20 18:38:56 [error] PID#TID: *CONNECTION message,
//! client: ..., server: ..., request: "...", host: "..."`, as nginx writes it,
//! so that tools which read nginx's can read ours.
//!
//! A line is one write, and nothing that a client sends can end a line or hide
//! in one: control characters and bytes that are not text are written `\xXX`.

pub mod line_budget;
pub mod not_stored;
pub mod now_and_then;
pub mod origin;

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use site::{ErrorLog, LogLevel};

use crate::log_sinks::LogSinks;
use crate::stats::Stats;
use line_budget::LineBudget;
use not_stored::NotStored;
use now_and_then::NowAndThen;

/// Longest line; the rest is cut off. PHP's messages with a trace fit.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The error logs of a process, and the bounds on the number of their lines.
pub struct ErrorLogs {
    sinks: Arc<LogSinks>,
    /// The counters of lines.
    stats: Arc<Stats>,
    /// For lines about refused requests.
    pub refusals: LineBudget,
    /// For lines about connections that were ended because of the client's
    /// bytes.
    pub broken_connections: LineBudget,
    /// Background requests that were not sent.
    pub left_out: NowAndThen,
    /// Answers that were not stored.
    pub not_stored: NotStored,
    /// For lines about PHP that cannot keep up.
    pub busy_workers: LineBudget,
}

impl Default for ErrorLogs {
    fn default() -> ErrorLogs {
        ErrorLogs::new(Arc::default(), Arc::default())
    }
}

impl ErrorLogs {
    /// Writes to `sinks`, and counts lines in `stats`.
    pub fn new(sinks: Arc<LogSinks>, stats: Arc<Stats>) -> ErrorLogs {
        ErrorLogs {
            sinks,
            stats,
            refusals: LineBudget::default(),
            broken_connections: LineBudget::default(),
            left_out: NowAndThen::default(),
            not_stored: NotStored::default(),
            busy_workers: LineBudget::of_state(),
        }
    }

    /// Writes a line about `connection` (0: about none) to those of `logs` that
    /// take `level`. `context` goes behind the message, with its leading comma.
    pub fn write(
        &self,
        logs: &[ErrorLog],
        level: LogLevel,
        connection: u64,
        message: fmt::Arguments<'_>,
        context: &str,
    ) {
        if !are_logged(logs, level) {
            return;
        }
        if let Some(lines) = self.stats.log_lines.get(usize::from(severity(level))) {
            lines.fetch_add(1, Relaxed);
        }
        let line = line(clock::now(), level, connection, message, context);
        for log in logs.iter().filter(|log| is_wanted(log, level)) {
            let sink = self.sinks.sink(&log.target);
            sink.write_line(&line, Some(severity(level)));
        }
    }
}

/// Whether one of `logs` takes lines of `level`.
#[inline]
pub fn are_logged(logs: &[ErrorLog], level: LogLevel) -> bool {
    logs.iter().any(|log| is_wanted(log, level))
}

#[inline]
fn is_wanted(log: &ErrorLog, level: LogLevel) -> bool {
    level <= log.level
}

/// Severities of RFC 3164 §4.1.1, from 0 for emergencies.
fn severity(level: LogLevel) -> u8 {
    level as u8
}

fn line(
    now: u64,
    level: LogLevel,
    connection: u64,
    message: fmt::Arguments<'_>,
    context: &str,
) -> Vec<u8> {
    let mut head = Vec::with_capacity(64);
    clock::put_error_log_time(now, &mut head);
    let mut text = String::with_capacity(256);
    push_text(&head, &mut text);
    let _ = write!(
        text,
        " [{}] {}#{}: ",
        level.name(),
        std::process::id(),
        thread_number()
    );
    if connection > 0 {
        let _ = write!(text, "*{connection} ");
    }
    let _ = write!(EscapedText(&mut text), "{message}{context}");
    // Escaping may have passed the bound that it looked at before.
    let end = whole_characters(&text, MAX_LINE_BYTES - 1);
    text.truncate(end);
    text.push('\n');
    text.into_bytes()
}

/// The end of the last character within the first `room` bytes.
fn whole_characters(text: &str, room: usize) -> usize {
    let mut end = room.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

fn thread_number() -> u32 {
    thread_local! {
        static NUMBER: u32 = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    }
    NUMBER.with(|number| *number)
}

/// Appends `bytes`; a byte that is not text is written `\xXX`.
pub fn push_text(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        let _ = EscapedText(out).write_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02X}");
        }
    }
}

/// Writes control characters as `\xXX` and stops at the longest line.
struct EscapedText<'a>(&'a mut String);

impl fmt::Write for EscapedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_LINE_BYTES.saturating_sub(self.0.len());
        if room == 0 {
            return Err(fmt::Error);
        }
        let text = text.get(..whole_characters(text, room)).unwrap_or_default();
        if !text.bytes().any(|byte| byte.is_ascii_control()) {
            self.0.push_str(text);
            return Ok(());
        }
        for character in text.chars() {
            if character.is_ascii_control() {
                write!(self.0, "\\x{:02X}", u32::from(character))?;
            } else {
                self.0.push(character);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use site::LogTarget;

    fn text(connection: u64, message: &str, context: &str) -> String {
        let line = line(
            784_111_777_000,
            LogLevel::Error,
            connection,
            format_args!("{message}"),
            context,
        );
        let text = String::from_utf8(line).unwrap();
        let (time, rest) = text.split_at("1994/11/06 08:49:37".len());
        assert!(time.starts_with("1994/11/0"), "{time}");
        let numbers = format!("{}#{}", std::process::id(), thread_number());
        rest.replace(&numbers, "PID#TID")
    }

    #[test]
    fn lines_look_like_those_of_nginx() {
        assert_eq!(text(0, "started", ""), " [error] PID#TID: started\n");
        assert_eq!(
            text(7, "open() failed", ", client: 127.0.0.1"),
            " [error] PID#TID: *7 open() failed, client: 127.0.0.1\n"
        );
    }

    #[test]
    fn nothing_in_a_message_ends_the_line() {
        assert_eq!(
            text(0, "a\nb\x1b[0m\u{e9}", ", x: \"\r\""),
            " [error] PID#TID: a\\x0Ab\\x1B[0m\u{e9}, x: \"\\x0D\"\n"
        );
        let mut out = String::new();
        push_text(b"a\xffb\xc3\xa9\n", &mut out);
        assert_eq!(out, "a\\xFFb\u{e9}\\x0A");
    }

    #[test]
    fn lines_are_bounded() {
        // For any length of the head, some of these end within a character.
        for (padding, filling) in [("", "\u{e9}"), ("x", "\u{e9}"), ("", "\n"), ("xx", "\n")] {
            let message = format!("{padding}{}", filling.repeat(MAX_LINE_BYTES));
            let long = text(0, &message, ", more");
            assert!(
                long.len() <= MAX_LINE_BYTES && long.ends_with('\n'),
                "{}",
                long.len()
            );
        }
    }

    #[test]
    fn a_log_takes_its_level_and_all_that_is_more_severe() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let log = |name: &str, level| ErrorLog {
            target: LogTarget::File(path(name)),
            level,
        };
        let logs = [log("warn", LogLevel::Warn), log("crit", LogLevel::Crit)];
        let error_logs = ErrorLogs::new(Arc::default(), Arc::default());
        for level in [
            LogLevel::Emerg,
            LogLevel::Crit,
            LogLevel::Error,
            LogLevel::Warn,
            LogLevel::Info,
        ] {
            error_logs.write(&logs, level, 0, format_args!("message"), "");
        }
        let levels = |name: &str| -> Vec<String> {
            let text = std::fs::read_to_string(path(name)).unwrap();
            let level = |line: &str| line.split(['[', ']']).nth(1).unwrap().to_owned();
            text.lines().map(level).collect()
        };
        assert_eq!(levels("warn"), ["emerg", "crit", "error", "warn"]);
        assert_eq!(levels("crit"), ["emerg", "crit"]);
    }
}
