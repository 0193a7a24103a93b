//! The exporter's thread: takes batches, sends each until it is taken, refused or too old, and
//! logs losses now and then.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use outgoing::OutgoingError;
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::client::Client;
use crate::endpoint::Protocol;
use crate::message;
use crate::queue::{Counts, Queue};
use crate::retry::{self, Outcome};
use crate::settings::Settings;

/// A batch that the collector has not taken for this long is dropped: newer ones are wanted more.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// The pause between two lines about losses.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The receiver of reports about failures. Called rarely, from the exporter's thread.
pub trait Report: Send + Sync {
    fn trouble(&self, message: &str);
}

/// The state of the exporter's thread.
pub struct BatchSender {
    pub settings: Arc<Settings>,
    pub queue: Queue,
    pub counts: Arc<Counts>,
    pub report: Box<dyn Report>,
}

impl BatchSender {
    /// Sends until the queue is closed and empty.
    pub async fn run(&self) {
        let settings = &self.settings;
        let mut teller = Teller::new(self);
        let tls = match settings.endpoint.is_tls {
            true => match tls(settings) {
                Ok(tls) => Some(tls),
                Err(error) => {
                    teller.tell(&error.to_string());
                    return throw_all_away(self).await;
                }
            },
            false => None,
        };
        let mut client = Client::new(settings.clone(), tls);
        while let Some(spans) = self.queue.next().await {
            let count = spans.len();
            let batch = message::encode(&settings.resource, &settings.version, spans);
            let (lost, reason) = match send(&mut client, &self.queue, &batch.into()).await {
                Ok(()) => (0, None),
                Err(Trouble { rejected, reason }) => (rejected.unwrap_or(count), Some(reason)),
            };
            let lost = lost.min(count);
            Counts::add(&self.counts.sent, count - lost);
            Counts::add(&self.counts.failed, lost);
            teller.look(reason);
        }
    }
}

/// Sending is impossible: new spans are counted and dropped until the end.
async fn throw_all_away(exporter: &BatchSender) {
    while let Some(spans) = exporter.queue.next().await {
        Counts::add(&exporter.counts.failed, spans.len());
    }
}

/// The reason why a batch was not taken, or only a part of it.
struct Trouble {
    /// `None`: all of it.
    rejected: Option<usize>,
    reason: String,
}

impl Trouble {
    fn of_all(reason: String) -> Trouble {
        Trouble {
            rejected: None,
            reason,
        }
    }
}

/// Sends a batch, again and again where that helps.
async fn send(client: &mut Client, queue: &Queue, batch: &Bytes) -> Result<(), Trouble> {
    let began = Instant::now();
    let mut tries = 0;
    loop {
        tries += 1;
        let outcome = match queue.closes_at() {
            None => until_closed(queue, client.send(batch)).await,
            Some(end) => tokio::time::timeout_at(end, client.send(batch)).await.ok(),
        };
        let (reason, after) = match outcome {
            Some(Outcome::Taken { rejected: 0, .. }) => return Ok(()),
            Some(Outcome::Taken { rejected, message }) => {
                return Err(Trouble {
                    rejected: Some(usize::try_from(rejected).unwrap_or(usize::MAX)),
                    reason: format!("it rejected some: {message}"),
                });
            }
            Some(Outcome::Refused { reason }) => return Err(Trouble::of_all(reason)),
            Some(Outcome::Later { reason, after }) => (reason, after),
            None => ("there was no time left to send them".to_owned(), None),
        };
        let pause = retry::pause(tries, after);
        let no_time_left = match queue.closes_at() {
            Some(end) => Instant::now() + pause >= end,
            None => began.elapsed() > GIVE_UP_AFTER,
        };
        if no_time_left {
            return Err(Trouble::of_all(reason));
        }
        // The end may come meanwhile: then it is tried once more at once.
        let _ = tokio::time::timeout(pause, closed(queue)).await;
    }
}

/// Returns the result of `sending`; after the queue was closed, `sending` has the time that the
/// close leaves.
async fn until_closed<T>(queue: &Queue, sending: impl Future<Output = T>) -> Option<T> {
    let mut sending = std::pin::pin!(sending);
    tokio::select! {
        biased;
        sent = &mut sending => return Some(sent),
        () = closed(queue) => {}
    }
    let end = queue.closes_at()?;
    tokio::time::timeout_at(end, sending).await.ok()
}

async fn closed(queue: &Queue) {
    while queue.closes_at().is_none() {
        queue.changed().await;
    }
}

/// Logs losses, at once when they begin and then once in a while.
struct Teller<'a> {
    exporter: &'a BatchSender,
    reported_at: Option<Instant>,
    /// The number of lost spans in the last report.
    reported: u64,
    reason: Option<String>,
}

impl Teller<'_> {
    fn new(exporter: &BatchSender) -> Teller<'_> {
        let mut teller = Teller {
            exporter,
            reported_at: None,
            reported: 0,
            reason: None,
        };
        // The exporter before this one has reported its losses.
        teller.reported = teller.lost();
        teller
    }

    fn lost(&self) -> u64 {
        let counts = &self.exporter.counts;
        counts.dropped.load(Relaxed) + counts.failed.load(Relaxed)
    }

    /// After a batch, which may not have been taken for a reason.
    fn look(&mut self, reason: Option<String>) {
        self.reason = reason.or(self.reason.take());
        let lost = self.lost();
        let is_time = self
            .reported_at
            .is_none_or(|reported| reported.elapsed() >= TELL_EVERY);
        if lost == self.reported || !is_time {
            return;
        }
        let reason = self.reason.take();
        let reason = reason.unwrap_or_else(|| "more came than could be sent".to_owned());
        let message = format!("{} spans were dropped: {reason}", lost - self.reported);
        self.reported = lost;
        self.tell(&message);
    }

    fn tell(&mut self, message: &str) {
        self.reported_at = Some(Instant::now());
        let endpoint = &self.exporter.settings.endpoint;
        let message = format!("{message}, collector: \"{endpoint}\"");
        self.exporter.report.trouble(&message);
    }
}

fn tls(settings: &Settings) -> Result<Arc<ClientConfig>, OutgoingError> {
    let mut config = outgoing::tls(settings.trusted.as_ref().map(|trusted| &*trusted.0))?;
    config.alpn_protocols = match settings.endpoint.protocol() {
        Protocol::Http => vec![b"http/1.1".to_vec()],
        Protocol::Grpc => vec![b"h2".to_vec()],
    };
    Ok(Arc::new(config))
}
