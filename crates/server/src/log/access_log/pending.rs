//! Lines of one thread on their way to the logs. Without `buffer=` they stay until the
//! thread has nothing else to do, with it until the buffer is full, `flush=` has passed
//! or the log is reopened. Lines begun for a file go to that file, even if a rotation
//! gave its name to another one meanwhile.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Weak};
use std::time::Duration;

use site::AccessLog;
use tokio::sync::Notify;

use crate::exchange::active_configuration::ActiveConfiguration;
use live_state::log_sinks::{Handle, Sink};

/// Lines without `buffer=` are written when they have come to this size: one write of them is about
/// as cheap as of one line.
const GATHER_BYTES: usize = 64 * 1024;

/// The buffers of a thread.
#[derive(Default)]
pub struct GatheredLines {
    /// The configuration whose addresses are the keys of `by_directive`; they mean
    /// nothing in another.
    configuration: Weak<ActiveConfiguration>,
    /// The index of the buffer that a directive fills, by the directive's address in that
    /// configuration.
    by_directive: HashMap<usize, usize, foldhash::fast::RandomState>,
    /// The last of them that was asked for.
    last: Option<(usize, usize)>,
    buffers: Vec<Pending>,
}

impl GatheredLines {
    /// The buffer that `log` fills; `open` finds its sink the first time.
    pub fn pending(
        &mut self,
        configuration: &Arc<ActiveConfiguration>,
        log: &AccessLog,
        open: impl FnOnce() -> Arc<Sink>,
    ) -> &mut Pending {
        if !std::ptr::eq(self.configuration.as_ptr(), Arc::as_ptr(configuration)) {
            *self = GatheredLines {
                configuration: Arc::downgrade(configuration),
                ..GatheredLines::default()
            };
        }
        let directive = std::ptr::from_ref(log).addr();
        let index = match self.last {
            Some((last, index)) if last == directive => index,
            _ => self.index(directive, log, open),
        };
        self.last = Some((directive, index));
        &mut self.buffers[index]
    }

    fn index(
        &mut self,
        directive: usize,
        log: &AccessLog,
        open: impl FnOnce() -> Arc<Sink>,
    ) -> usize {
        let buffers = &mut self.buffers;
        *self.by_directive.entry(directive).or_insert_with(|| {
            let fresh = Pending::new(open(), log);
            // Locations that inherit a log share its buffer.
            let known = buffers.iter().position(|pending| pending.is_alike(&fresh));
            known.unwrap_or_else(|| {
                buffers.push(fresh);
                buffers.len() - 1
            })
        })
    }

    /// Writes the lines whose time has come.
    pub fn flush_due(&mut self) {
        for pending in self
            .buffers
            .iter_mut()
            .filter(|pending| !pending.lines.is_empty())
        {
            if pending.keep_bytes == 0 || pending.is_due(clock::recent()) {
                pending.flush();
            }
        }
    }

    /// Returns how long until the first buffer is due; `None` if none has a time.
    pub fn next_flush(&self) -> Option<Duration> {
        let now = clock::now();
        let waiting = self.buffers.iter().filter(|it| !it.lines.is_empty());
        let times = waiting.filter_map(|it| Some(it.since.saturating_add(it.flush_ms?)));
        let next = times.min()?;
        Some(Duration::from_millis(next.saturating_sub(now)).max(MIN_WAIT))
    }

    pub fn flush_all(&mut self) {
        self.buffers.iter_mut().for_each(Pending::flush);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The pause between two looks at a buffer: the clock is read in milliseconds.
const MIN_WAIT: Duration = Duration::from_millis(1);

thread_local! {
    static WAITING_LINES: Arc<Notify> = Arc::new(Notify::new());
}

/// Notified when a buffer of this thread begins to wait for its `flush` time.
pub fn waiting_lines() -> Arc<Notify> {
    WAITING_LINES.with(Arc::clone)
}

/// Whole lines for one log.
pub struct Pending {
    sink: Arc<Sink>,
    /// The file that the gathered lines are written to.
    handle: Option<Handle>,
    lines: Vec<u8>,
    /// `buffer=`; 0: none.
    keep_bytes: usize,
    /// `flush=`, in milliseconds.
    flush_ms: Option<u64>,
    gzip_level: Option<u32>,
    /// Unix milliseconds of the first line at hand.
    since: u64,
}

impl Pending {
    fn new(sink: Arc<Sink>, log: &AccessLog) -> Pending {
        Pending {
            sink,
            handle: None,
            lines: Vec::new(),
            keep_bytes: usize::try_from(log.buffer_bytes).unwrap_or(usize::MAX),
            flush_ms: log.flush.map(clock::millis),
            gzip_level: log.gzip_level,
            since: 0,
        }
    }

    fn is_alike(&self, other: &Pending) -> bool {
        Arc::ptr_eq(&self.sink, &other.sink)
            && self.keep_bytes == other.keep_bytes
            && self.flush_ms == other.flush_ms
            && self.gzip_level == other.gzip_level
    }

    /// Adds a line, which `put` appends to the earlier ones.
    pub fn append(&mut self, now: u64, put: impl FnOnce(&mut Vec<u8>)) {
        if self.lines.is_empty() {
            self.handle = self.sink.handle();
            self.since = now;
            if self.flush_ms.is_some() {
                waiting_lines().notify_one();
            }
        }
        let start = self.lines.len();
        put(&mut self.lines);
        if self.handle.is_none() {
            // Syslog takes lines one by one.
            self.sink.write_line(&self.lines, None);
            self.lines.clear();
        } else if self.keep_bytes == 0 {
            if self.lines.len() >= GATHER_BYTES {
                self.flush();
            }
        } else if self.lines.len() > self.keep_bytes {
            // The earlier lines fill the buffer; this line begins the next.
            let line = self.lines.split_off(start);
            self.flush();
            self.handle = self.sink.handle();
            self.since = now;
            self.lines.extend_from_slice(&line);
            if self.lines.len() > self.keep_bytes {
                self.flush();
            }
        }
    }

    fn is_due(&self, now: u64) -> bool {
        let is_late = self
            .flush_ms
            .is_some_and(|time| now.saturating_sub(self.since) >= time);
        is_late
            || self
                .handle
                .as_ref()
                .is_some_and(|handle| !self.sink.is_current(handle))
    }

    fn flush(&mut self) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        if self.lines.is_empty() {
            return;
        }
        match self.gzip_level {
            Some(level) => handle.write(&compressed(&self.lines, level)),
            None => handle.write(&self.lines),
        }
        self.lines.clear();
    }
}

/// A gzip member (RFC 1952) of its own, so that members can follow each other.
fn compressed(lines: &[u8], level: u32) -> Vec<u8> {
    let out = Vec::with_capacity(lines.len() / 8);
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(level.min(9)));
    // Writing to memory does not fail.
    let _ = encoder.write_all(lines);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use live_state::log_sinks::{LogSinks, open_append};
    use site::{AccessLogTarget, LogFormatId, LogTarget};
    use std::collections::HashMap;
    use std::io::Read;
    use std::path::{Path, PathBuf};

    struct Bench {
        _directory: tempfile::TempDir,
        path: PathBuf,
        sinks: LogSinks,
        pending: Pending,
    }

    impl Bench {
        fn new(buffer_bytes: u64, flush: Option<u64>, gzip_level: Option<u32>) -> Bench {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("access.log");
            let target = LogTarget::File(path.clone());
            let sinks = LogSinks::default();
            let log = AccessLog {
                target: AccessLogTarget::Fixed(target.clone()),
                format: LogFormatId(0),
                buffer_bytes,
                flush: flush.map(Duration::from_millis),
                gzip_level,
                condition: None,
            };
            let pending = Pending::new(sinks.sink(&target), &log);
            Bench {
                _directory: directory,
                path,
                sinks,
                pending,
            }
        }

        fn append(&mut self, now: u64, line: &str) {
            self.pending
                .append(now, |out| out.extend_from_slice(line.as_bytes()));
        }

        fn text(&self) -> String {
            read(&self.path)
        }
    }

    fn read(path: &Path) -> String {
        String::from_utf8(std::fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn lines_without_a_buffer_wait_for_the_thread_to_sleep() {
        let mut bench = Bench::new(0, None, None);
        bench.append(0, "one\n");
        bench.append(0, "two\n");
        assert_eq!(bench.text(), "");
        bench.pending.flush();
        assert_eq!(bench.text(), "one\ntwo\n");
        let line = format!("{}\n", "x".repeat(GATHER_BYTES));
        bench.append(0, &line);
        assert_eq!(bench.text().len(), 8 + line.len());
    }

    #[test]
    fn a_buffer_is_written_when_the_next_line_does_not_fit() {
        let mut bench = Bench::new(10, Some(1000), None);
        for (now, line, wanted, due) in [
            (0, "123456\n", "", false),
            (10, "12\n", "", false),
            (20, "3\n", "123456\n12\n", false),
            (1019, "4\n", "123456\n12\n", false),
            (1020, "5\n", "123456\n12\n", true),
            (
                1030,
                "longer than the buffer\n",
                "123456\n12\n3\n4\n5\nlonger than the buffer\n",
                false,
            ),
        ] {
            bench.append(now, line);
            assert_eq!(bench.text(), wanted, "at {now}");
            let is_due = !bench.pending.lines.is_empty() && bench.pending.is_due(now);
            assert_eq!(is_due, due, "at {now}");
        }
    }

    #[test]
    fn a_buffer_is_due_when_its_log_was_reopened_and_goes_to_the_old_file() {
        let mut bench = Bench::new(1000, None, None);
        bench.append(0, "one\n");
        assert!(!bench.pending.is_due(u64::MAX));
        let rotated = bench.path.with_extension("1");
        std::fs::rename(&bench.path, &rotated).unwrap();
        let opened = open_append(&bench.path).unwrap();
        let files = HashMap::from([(bench.path.clone(), opened)]);
        bench.sinks.replace_files(files);
        assert!(bench.pending.is_due(0));
        bench.pending.flush();
        bench.append(0, "two\n");
        bench.pending.flush();
        assert_eq!(
            (read(&rotated), bench.text()),
            ("one\n".into(), "two\n".into())
        );
    }

    #[test]
    fn compressed_buffers_follow_each_other_in_the_file() {
        let mut bench = Bench::new(1000, None, Some(1));
        bench.append(0, "one\n");
        bench.pending.flush();
        bench.append(0, "two\n");
        bench.pending.flush();
        let file = std::fs::File::open(&bench.path).unwrap();
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(file)
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "one\ntwo\n");
    }
}
