//! Stored responses in a content coding: sent from what is kept beside them, made
//! once where nothing is.
//!
//! A form is made by a thread of its own, never by one that serves. Those who ask
//! meanwhile wait for it, as followers wait for a fetch: the work takes about as
//! long as it would on their own connection, is done once for all of them, and
//! holds up nobody else. Where too many are being made already an answer is
//! compressed on its way, as any other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_cache::{Body, Claim, Encoded, Encoding, Making, StoredResponse};
use site::{Coding, CodingSettings};

use super::encoder::Encoder;
use super::recoded;
use super::recoder::Recoder;
use crate::reply::{self, Compressed, Reply};

/// How long an answer waits for its form. What takes longer is a large body at a
/// high level; it is sent plain until the form is there.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// What there is for an answer.
pub enum Kept {
    Ready(Body),
    /// Compression gains nothing: plain is best.
    Useless,
    /// It is being made.
    Wait(Box<Wait>),
    /// Nothing, and nobody makes it: compress on the way.
    No,
}

/// An answer that waits for its form.
pub struct Wait {
    response: Arc<StoredResponse>,
    coding: Coding,
    settings: CodingSettings,
    making: Making,
}

/// Looks for the form of `response`, and has it made where it is absent and
/// `is_wanted`, as it is not by a HEAD.
pub fn look(
    response: &Arc<StoredResponse>,
    coding: Coding,
    settings: &CodingSettings,
    is_wanted: bool,
) -> Kept {
    let making = match response.encoded(encoding(coding, settings)) {
        Encoded::Ready(body) => return Kept::Ready(body),
        Encoded::Useless => return Kept::Useless,
        Encoded::Busy(making) if is_wanted => making,
        Encoded::Absent(claim) if is_wanted => {
            let making = claim.making();
            if !make(claim, response, coding, settings) {
                return Kept::No;
            }
            making
        }
        Encoded::Busy(_) | Encoded::Absent(_) | Encoded::NotKept => return Kept::No,
    };
    Kept::Wait(Box::new(Wait {
        response: response.clone(),
        coding,
        settings: settings.clone(),
        making,
    }))
}

/// Everything that the bytes depend on, in one number.
fn encoding(coding: Coding, settings: &CodingSettings) -> Encoding {
    let coding = match coding {
        Coding::Brotli => 0,
        Coding::Zstd => 1,
        Coding::Gzip => 2,
    };
    // Levels and windows are below 32.
    let (level, window) = (settings.level & 31, settings.window_bits & 31);
    Encoding(coding << 10 | u16::from(level) << 5 | u16::from(window))
}

/// Makes `reply`, which was to send a stored body, send this form of it.
pub fn send(reply: &mut Reply, coding: Coding, form: Body) {
    let before_bytes = match &reply.body {
        reply::Body::Stored { response, .. } => response.body.len(),
        _ => 0,
    };
    recoded(&mut reply.head, coding);
    reply.head.content_length = Some(form.len());
    reply.head.compressed = Some(Compressed {
        coding,
        before_bytes,
        after_bytes: form.len(),
    });
    reply.body = reply::Body::Encoded(form);
}

impl Wait {
    /// Waits, and makes `reply` send the form, or the body as it is. Gives what
    /// compresses it on the way where its maker gave up.
    pub async fn settle(self, reply: &mut Reply) -> Option<Recoder> {
        let is_over = tokio::time::timeout(MAX_WAIT, self.making.over())
            .await
            .is_ok();
        match self.response.encoded(encoding(self.coding, &self.settings)) {
            Encoded::Ready(body) => send(reply, self.coding, body),
            Encoded::Useless => send_plain(reply, &self.response),
            _ if is_over => return Some(Recoder::encoding(self.coding, &self.settings)),
            _ => send_plain(reply, &self.response),
        }
        None
    }
}

fn send_plain(reply: &mut Reply, response: &StoredResponse) {
    reply.head.coded = None;
    reply.head.content_length = Some(response.body.len());
}

/// Forms being made, in the whole process.
static MAKERS: AtomicUsize = AtomicUsize::new(0);

/// As many as there are cores: more would only take turns.
fn max_makers() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// One of the makers there may be.
struct Maker;

impl Maker {
    fn hire() -> Option<Maker> {
        let more = |makers| (makers < max_makers()).then_some(makers + 1);
        MAKERS
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()
            .map(|_| Maker)
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        MAKERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts to make a form; false where there are makers enough. They have the
/// priority of everybody else, since somebody waits for them.
fn make(
    claim: Claim,
    response: &Arc<StoredResponse>,
    coding: Coding,
    settings: &CodingSettings,
) -> bool {
    let Some(maker) = Maker::hire() else {
        return false;
    };
    let body = response.body.clone();
    let settings = settings.clone();
    tokio::task::spawn_blocking(move || {
        let encoded = encode(Encoder::new(coding, &settings), &body);
        // Before those who wait are woken: one of them may come to hire the next.
        drop(maker);
        // Without a form the claim is dropped, and who waits compresses for itself.
        let Ok(form) = encoded else {
            return;
        };
        if form.len() < body.len() {
            claim.attach(form);
        } else {
            claim.useless();
        }
    });
    true
}

fn encode(mut encoder: Encoder, body: &Body) -> std::io::Result<Body> {
    let mut pieces = Vec::new();
    for chunk in body.chunks() {
        pieces.push(encoder.push(chunk)?.into());
    }
    pieces.push(encoder.finish()?.into());
    Ok(Body::pack(&pieces))
}
