//! `cache_purge_log`: a line for each purge: time, interface, client, mode, number of stored responses,
//! duration, targets.
//!
//! ```text
//! 2026-11-23T10:00:00+00:00 api 127.0.0.1 hard 3 responses 0.412 ms url="https://example.org/" tag="post-5"
//! ```
//!
//! Data from outside is escaped, so that a line is a line.

use control::PurgeReport;
use site::{PurgeLog, PurgeLogFormat};

use crate::exchange::active_configuration::ActiveConfiguration;

/// Targets that one line names; the others are counted.
const MAX_TARGETS: usize = 100;
/// Bytes of a target that a line shows.
const MAX_TEXT_BYTES: usize = 1024;

/// The interface by which a purge came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeInterface {
    /// `cache_purge_api`
    Api,
    /// `dashboard`
    Dashboard,
    /// The control socket.
    Socket,
    /// A request such as PURGE.
    Request,
    /// A field of a response.
    Response,
    /// A folder in which it was left while no server ran.
    Folder,
}

impl PurgeInterface {
    fn word(self) -> &'static str {
        match self {
            PurgeInterface::Api => "api",
            PurgeInterface::Dashboard => "dashboard",
            PurgeInterface::Socket => "socket",
            PurgeInterface::Request => "request",
            PurgeInterface::Response => "response",
            PurgeInterface::Folder => "folder",
        }
    }
}

/// The client that asked for a purge, and the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub door: PurgeInterface,
    /// An address, or the number of an account.
    pub who: String,
    /// A page asked for it in a request that the server made itself. Pages named by such a purge wait for
    /// visitors: pages that purge each other would otherwise be fetched for ever.
    pub is_own_visit: bool,
}

/// Writes the line of a purge that is done, if there is a log.
pub fn write(configuration: &ActiveConfiguration, source: &Source, report: &PurgeReport) {
    let Some(PurgeLog { target, format }) = &configuration.site.http.purge_log else {
        return;
    };
    let line = line(*format, clock::wall_now(), source, report);
    configuration
        .live
        .log_sinks
        .sink(target)
        .write_line(&line, None);
}

fn line(format: PurgeLogFormat, now_ms: u64, source: &Source, report: &PurgeReport) -> Vec<u8> {
    let mut time = Vec::new();
    clock::put_iso8601(now_ms, &mut time);
    let time = String::from_utf8_lossy(&time);
    let mode = if report.soft { "soft" } else { "hard" };
    let dry = report.dry_run;
    let (shown, left) = match report.targets.split_at_checked(MAX_TARGETS) {
        Some((shown, left)) => (shown, left.len()),
        None => (&report.targets[..], 0),
    };
    let mut out = Vec::new();
    match format {
        PurgeLogFormat::Text => {
            let (who, count) = (text(&source.who), report.responses());
            let (door, ms) = (source.door.word(), report.milliseconds);
            let dry = if dry { " dry-run" } else { "" };
            let head = format!("{time} {door} {who} {mode}{dry} {count} responses {ms:.3} ms");
            out.extend_from_slice(head.as_bytes());
            for target in shown {
                out.push(b' ');
                out.extend_from_slice(target.kind.word().as_bytes());
                if !target.text.is_empty() {
                    out.extend_from_slice(format!("=\"{}\"", text(&target.text)).as_bytes());
                }
            }
            if left > 0 {
                out.extend_from_slice(format!(" and {left} more").as_bytes());
            }
        }
        PurgeLogFormat::Json => {
            let head = format!(
                "{{\"time\":\"{time}\",\"door\":\"{}\",\"who\":\"{}\",\"mode\":\"{mode}\",\"dry_run\":{dry},\
                 \"responses\":{},\"milliseconds\":{:.3},\"targets\":[",
                source.door.word(),
                json(&source.who),
                report.responses(),
                report.milliseconds,
            );
            out.extend_from_slice(head.as_bytes());
            for (at, target) in shown.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let target = format!(
                    "{comma}{{\"kind\":\"{}\",\"text\":\"{}\",\"responses\":{}}}",
                    target.kind.word(),
                    json(&target.text),
                    target.responses
                );
                out.extend_from_slice(target.as_bytes());
            }
            out.extend_from_slice(format!("],\"more\":{left}}}").as_bytes());
        }
    }
    out.push(b'\n');
    out
}

/// Escapes like `escape=default` of an access log: `\xXX` for bytes that are not plain ASCII.
fn text(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for &byte in value.as_bytes().iter().take(MAX_TEXT_BYTES) {
        match byte {
            b'"' | b'\\' => out.push_str(&format!("\\x{byte:02X}")),
            32..=126 => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02X}")),
        }
    }
    out
}

/// Escapes as a JSON string, in ASCII.
fn json(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for unit in value.encode_utf16().take(MAX_TEXT_BYTES) {
        match u8::try_from(unit) {
            Ok(byte @ (b'"' | b'\\')) => {
                out.push('\\');
                out.push(char::from(byte));
            }
            Ok(byte @ 32..=126) => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::{TargetKind, TargetReport};

    fn report(texts: &[&str]) -> PurgeReport {
        let target = |text: &&str| TargetReport {
            kind: TargetKind::Tag,
            text: (*text).to_owned(),
            responses: 2,
        };
        PurgeReport {
            soft: true,
            dry_run: false,
            targets: texts.iter().map(target).collect(),
            zones: Vec::new(),
            milliseconds: 0.25,
        }
    }

    fn source() -> Source {
        Source {
            door: PurgeInterface::Api,
            who: "127.0.0.1".to_owned(),
            is_own_visit: false,
        }
    }

    #[test]
    fn no_text_breaks_out_of_its_line() {
        let report = report(&["post-5", "a\"\n\u{1}\u{e9}\\"]);
        let written = line(PurgeLogFormat::Text, 0, &source(), &report);
        let written = String::from_utf8(written).unwrap();
        let (_, rest) = written.split_once(' ').unwrap();
        assert_eq!(
            rest,
            "api 127.0.0.1 soft 4 responses 0.250 ms tag=\"post-5\" tag=\"a\\x22\\x0A\\x01\\xC3\\xA9\\x5C\"\n"
        );
        let written = line(PurgeLogFormat::Json, 0, &source(), &report);
        let written = String::from_utf8(written).unwrap();
        assert!(
            written.ends_with(
                "\"targets\":[{\"kind\":\"tag\",\"text\":\"post-5\",\"responses\":2},\
                 {\"kind\":\"tag\",\"text\":\"a\\\"\\u000a\\u0001\\u00e9\\\\\",\"responses\":2}],\"more\":0}\n"
            ),
            "{written}"
        );
    }

    #[test]
    fn a_line_is_bounded() {
        let long = "x".repeat(100_000);
        let texts = vec![&*long; 10_000];
        for format in [PurgeLogFormat::Text, PurgeLogFormat::Json] {
            let written = line(format, 0, &source(), &report(&texts));
            assert!(written.len() < 200_000, "{}", written.len());
        }
    }
}
