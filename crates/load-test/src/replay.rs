//! The requests of access logs, to be asked again at the times they came.
//!
//! Only GET and HEAD are asked again: a log does not have the bodies of others. Requests of a log whose
//! times are whole seconds are spread evenly over their second.

use std::path::PathBuf;
use std::time::Duration;

use log_advice::{Entry, Format, Input, InputError};

/// Requests of one replay.
const MAX_REQUESTS: usize = 1_000_000;
const MAX_TARGET_BYTES: usize = 8 << 10;

/// The requests of a replay, and their times.
#[derive(Debug, Default)]
pub struct Replay {
    pub requests: Vec<ReplayedRequest>,
    /// Lines that are not asked again: other methods, and bytes that no client may send.
    pub left_out: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedRequest {
    /// After the first.
    pub due: Duration,
    pub target: String,
    pub is_head: bool,
    pub user_agent: Option<String>,
}

/// The reason why there is no replay.
#[derive(Debug)]
pub enum ReplayError {
    Input(InputError),
    Empty,
}

impl Replay {
    /// Reads the part of logs that is due within `duration` at `speed` times their speed.
    ///
    /// # Errors
    /// A log cannot be read, or nothing in it can be asked again.
    pub fn read(
        paths: impl IntoIterator<Item = PathBuf>,
        format: Option<Format>,
        speed: f64,
        duration: Duration,
    ) -> Result<Replay, ReplayError> {
        let input = Input::open(paths, format).map_err(ReplayError::Input)?;
        let mut reading = Reading {
            logged: Vec::new(),
            left_out: 0,
            until_ms: u64::MAX,
            lasts_ms: (duration.as_secs_f64() * speed * 1000.0) as u64,
        };
        let bad = input.entries(&mut |entry| reading.take(entry), |_| ());
        let bad = bad.map_err(ReplayError::Input)?;
        let bad: u64 = bad.iter().map(|it| it.lines).sum();
        let Reading {
            mut logged,
            left_out,
            ..
        } = reading;
        spread(&mut logged);
        logged.sort_by_key(|(at_us, _, _)| *at_us);
        let Some(&(first, _, _)) = logged.first() else {
            return Err(ReplayError::Empty);
        };
        let requests = logged
            .into_iter()
            .map(|(at_us, _, request)| ReplayedRequest {
                due: Duration::from_micros(at_us - first).div_f64(speed),
                ..request
            });
        Ok(Replay {
            requests: requests.collect(),
            left_out: left_out + bad,
        })
    }
}

/// Time in microseconds, whether it is exact, and the request.
type LoggedRequest = (u64, bool, ReplayedRequest);

struct Reading {
    logged: Vec<LoggedRequest>,
    left_out: u64,
    until_ms: u64,
    lasts_ms: u64,
}

impl Reading {
    fn take(&mut self, entry: &Entry<'_>) {
        let took = match entry.is_exact {
            true => u64::from(entry.request_ms.unwrap_or(0)),
            false => 0,
        };
        let at_ms = entry.at_ms.saturating_sub(took);
        if self.logged.is_empty() {
            self.until_ms = at_ms.saturating_add(self.lasts_ms);
        }
        if at_ms > self.until_ms || self.logged.len() >= MAX_REQUESTS {
            return;
        }
        match replayed(entry) {
            Some(request) => self.logged.push((at_ms * 1000, entry.is_exact, request)),
            None => self.left_out += 1,
        }
    }
}

fn replayed(entry: &Entry<'_>) -> Option<ReplayedRequest> {
    let is_head = match entry.method {
        b"GET" => false,
        b"HEAD" => true,
        _ => return None,
    };
    let is_sendable = |it: &u8| it.is_ascii_graphic() && *it != b'\\' && *it != b'#';
    let target = entry.target;
    if target.first() != Some(&b'/')
        || !target.iter().all(is_sendable)
        || target.len() > MAX_TARGET_BYTES
    {
        return None;
    }
    let is_text = |it: &&[u8]| {
        let is_letter = |it: &u8| it.is_ascii_graphic() || *it == b' ';
        it.iter().all(is_letter) && !it.contains(&b'\\') && **it != b"-"[..]
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(ReplayedRequest {
        due: Duration::ZERO,
        target: text(target),
        is_head,
        user_agent: entry.user_agent.filter(is_text).map(text),
    })
}

/// Spreads the requests of each whole second over it.
fn spread(logged: &mut [LoggedRequest]) {
    let mut rest = logged;
    while let Some(&(at_us, is_exact, _)) = rest.first() {
        let same = rest
            .iter()
            .take_while(|it| (it.0, it.1) == (at_us, is_exact))
            .count();
        let (second, behind) = rest.split_at_mut(same);
        if !is_exact {
            for (number, request) in second.iter_mut().enumerate() {
                request.0 += 1_000_000 * number as u64 / same as u64;
            }
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn a_log_is_asked_again_in_its_times_as_far_as_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = String::new();
        for (second, request, agent) in [
            (10, "GET /a HTTP/1.1", "Mozilla/5.0"),
            (10, "HEAD /b?c=d HTTP/2.0", "-"),
            (10, "POST /a HTTP/1.1", "x"),
            (10, "GET /\\x22 HTTP/1.1", "x"),
            (11, "GET /c HTTP/1.1", "x\\x0d"),
            (59, "GET /late HTTP/1.1", "x"),
        ] {
            let _ = writeln!(
                log,
                "::1 - - [23/Nov/2026:11:22:{second} +0000] \"{request}\" 200 5 \"-\" \"{agent}\""
            );
        }
        std::fs::write(&path, log + "nonsense\n").unwrap();
        let replay = Replay::read([path], None, 2.0, Duration::from_secs(10)).unwrap();
        assert_eq!(replay.left_out, 3);
        let shown: Vec<String> = replay
            .requests
            .iter()
            .map(|it| {
                format!(
                    "{:?} {} {} {:?}",
                    it.due, it.target, it.is_head, it.user_agent
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "0ns /a false Some(\"Mozilla/5.0\")",
                "250ms /b?c=d true None",
                "500ms /c false None",
            ]
        );
    }
}
