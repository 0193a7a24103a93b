//! The exporter: the handle that takes spans, and its thread.

use std::io;
use std::sync::{Arc, Once};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::time::Instant;

use crate::queue::{Counts, Queue};
use crate::sending::{BatchSender, Report};
use crate::settings::Settings;
use crate::span::Span;

/// An exporter that a reload has replaced has this time to send waiting spans.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
/// The time within which losses are logged, also on a busy machine: it is one line.
const REPORT_WITHIN: Duration = Duration::from_secs(2);

/// Sends spans to a collector. When the last handle is gone, waiting spans are still sent.
pub struct Exporter {
    inner: Arc<Inner>,
    started: Once,
}

struct Inner {
    sending: BatchSender,
    is_running: Mutex<bool>,
    stopped: Condvar,
}

impl Exporter {
    /// An exporter that does nothing before the first span.
    pub fn new(settings: Settings, counts: Arc<Counts>, report: Box<dyn Report>) -> Exporter {
        let queue = Queue::new(settings.batch_size, settings.batch_count, settings.interval);
        Exporter {
            inner: Arc::new(Inner {
                sending: BatchSender {
                    settings: Arc::new(settings),
                    queue,
                    counts,
                    report,
                },
                is_running: Mutex::new(false),
                stopped: Condvar::new(),
            }),
            started: Once::new(),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.sending.settings
    }

    /// Hands over spans that belong together. Never waits.
    pub fn send(&self, spans: Vec<Span>) {
        if spans.is_empty() {
            return;
        }
        self.started.call_once(|| {
            if let Err(error) = start(&self.inner) {
                let message = format!("could not start a thread: {error}");
                self.inner.sending.report.trouble(&message);
            }
        });
        let left_out = self.inner.sending.queue.put(spans);
        if left_out > 0 {
            Counts::add(&self.inner.sending.counts.dropped, left_out);
        }
    }

    /// Sends all waiting spans, for no longer than `within`, and waits until losses are in the log.
    /// No spans are taken any more.
    pub fn finish(&self, within: Duration) {
        let mut is_running = self.inner.is_running.lock();
        if !*is_running {
            return;
        }
        self.inner.sending.queue.close(Instant::now() + within);
        // The thread keeps to the deadline by itself, and then reports losses.
        let deadline = std::time::Instant::now() + within + REPORT_WITHIN;
        while *is_running {
            let waited = self.inner.stopped.wait_until(&mut is_running, deadline);
            if waited.timed_out() {
                return;
            }
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.inner
            .sending
            .queue
            .close(Instant::now() + LEAVE_WITHIN);
    }
}

fn start(inner: &Arc<Inner>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .build()?;
    let of_thread = inner.clone();
    *inner.is_running.lock() = true;
    let run = move || {
        runtime.block_on(of_thread.sending.run());
        // A name that is being looked up holds nothing up.
        runtime.shutdown_background();
        *of_thread.is_running.lock() = false;
        of_thread.stopped.notify_all();
    };
    let spawned = std::thread::Builder::new()
        .name("traces".to_owned())
        .spawn(run);
    if let Err(error) = spawned {
        *inner.is_running.lock() = false;
        return Err(error);
    }
    Ok(())
}
