//! Stored responses in a content coding: sent from the form kept beside them, which is made once
//! if it is missing.
//!
//! A form is made by a thread of its own, never by one that serves. Requests that ask meanwhile
//! wait for it, as followers wait for a fetch: the work takes about as long as it would on their
//! own connection, is done once for all of them, and holds up no other request. If too many forms
//! are being made already, an answer is compressed on its way, as any other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_cache::{Body, Claim, EncodedLookup, Encoding, PendingForm, StoredResponse};
use site::{Coding, CodingSettings};

use crate::encoder::Encoder;
use crate::recoder::Recoder;

/// How long an answer waits for its form. Only a large body at a high level takes longer; it is
/// sent plain until the form is there.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The encoded form of a stored response, or how to get it.
pub enum EncodedForm {
    Ready(Body),
    /// Compression gains nothing: plain is best.
    Useless,
    /// It is being made.
    Wait(Box<Wait>),
    /// Nothing, and it is not being made: compress on the way.
    No,
}

/// An answer that waits for its form.
pub struct Wait {
    response: Arc<StoredResponse>,
    coding: Coding,
    settings: CodingSettings,
    making: PendingForm,
}

/// Looks for the form of `response`, and has it made where it is absent and
/// `is_wanted`, as it is not by a HEAD.
#[inline]
pub fn look(
    response: &Arc<StoredResponse>,
    coding: Coding,
    settings: &CodingSettings,
    is_wanted: bool,
) -> EncodedForm {
    let making = match response.encoded(encoding(coding, settings)) {
        EncodedLookup::Ready(body) => return EncodedForm::Ready(body),
        EncodedLookup::Useless => return EncodedForm::Useless,
        EncodedLookup::Busy(making) if is_wanted => making,
        EncodedLookup::Absent(claim) if is_wanted => {
            let making = claim.making();
            if !make(claim, response, coding, settings) {
                return EncodedForm::No;
            }
            making
        }
        EncodedLookup::Busy(_) | EncodedLookup::Absent(_) | EncodedLookup::NotKept => {
            return EncodedForm::No;
        }
    };
    EncodedForm::Wait(Box::new(Wait {
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

/// The content coding of a form that `encoding` names.
pub fn coding_name(form: Encoding) -> &'static str {
    match form.0 >> 10 {
        0 => "br",
        1 => "zstd",
        _ => "gzip",
    }
}

/// The form in which an answer is sent that has waited for its encoding.
pub enum SettledForm {
    Ready(Coding, Body),
    /// The body as it is, of this length: its form is of no use, or not there yet.
    Plain(u64),
    /// The maker gave up: compress on the way.
    OnTheWay(Recoder),
}

impl Wait {
    /// Waits, for no longer than an answer may.
    pub async fn settle(self) -> SettledForm {
        let is_over = tokio::time::timeout(MAX_WAIT, self.making.over())
            .await
            .is_ok();
        match self.response.encoded(encoding(self.coding, &self.settings)) {
            EncodedLookup::Ready(body) => SettledForm::Ready(self.coding, body),
            EncodedLookup::Useless => SettledForm::Plain(self.response.body.len()),
            _ if is_over => SettledForm::OnTheWay(Recoder::encoding(self.coding, &self.settings)),
            _ => SettledForm::Plain(self.response.body.len()),
        }
    }
}

/// Forms being made, in the whole process.
static MAKERS: AtomicUsize = AtomicUsize::new(0);

/// Encoders at work at most: one for each core. More would only take turns.
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

/// Starts to make a form; false if there are makers enough. They have the usual priority, since
/// requests wait for them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::tests::{expand, settings};
    use bytes::Bytes;
    use http_cache::{
        KeyRef, Millis, NoFields, Policy, RequestFacts, ResponseFacts, ResponseHead, StoredHead,
        Zone, ZoneConfig, decide,
    };

    /// The makers are the process's; who counts on them takes turns.
    static TURN: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    fn stored(zone: &Zone, body: &[u8]) -> Arc<StoredResponse> {
        let fields = [(Bytes::from("Cache-Control"), Bytes::from("max-age=60"))];
        let request = RequestFacts {
            method: b"GET",
            fields: &NoFields,
            no_store_condition: false,
            uses: 1,
        };
        let facts = ResponseFacts {
            status: 200,
            fields: &fields,
            declared_length: None,
        };
        let storable = decide(&request, &facts, &Policy::default(), Millis(0)).expect("storable");
        let head = ResponseHead {
            fields: &fields,
            ..ResponseHead::OK
        };
        let response = StoredResponse::new(
            StoredHead::new(&head, &storable, Millis(0)),
            Body::pack(&[Bytes::copy_from_slice(body)]),
            zone.stamp(),
        );
        zone.insert(&KeyRef::new(b"key"), response, Millis(0))
            .expect("stored")
    }

    fn ready(settled: SettledForm) -> Option<(Coding, Vec<u8>)> {
        match settled {
            SettledForm::Ready(coding, form) => Some((coding, form.chunks().concat())),
            SettledForm::Plain(_) | SettledForm::OnTheWay(_) => None,
        }
    }

    fn waits(kept: EncodedForm) -> Option<Box<Wait>> {
        match kept {
            EncodedForm::Wait(wait) => Some(wait),
            _ => None,
        }
    }

    #[tokio::test]
    #[allow(
        clippy::await_holding_lock,
        reason = "each test has a tokio runtime of its own"
    )]
    async fn a_crowd_waits_for_one_making() {
        let _turn = TURN.lock();
        let page = b"<li>an item of a list</li>\n".repeat(1000);
        let zone = Zone::new(ZoneConfig::default());
        let response = stored(&zone, &page);
        for coding in Coding::ALL {
            let before = zone.stats().encoded;
            let waiting: Vec<Box<Wait>> = (0..50)
                .filter_map(|_| waits(look(&response, coding, &settings(5), true)))
                .collect();
            // The others came when it was ready.
            assert!(!waiting.is_empty());
            for wait in waiting {
                let (sent_coding, form) = ready(wait.settle().await).expect("the form is there");
                assert_eq!(sent_coding, coding);
                assert!(expand(coding, &form) == page);
            }
            assert_eq!(zone.stats().encoded - before, 1);
        }
    }

    #[tokio::test]
    #[allow(
        clippy::await_holding_lock,
        reason = "each test has a tokio runtime of its own"
    )]
    async fn no_more_makers_are_hired_than_there_may_be() {
        let _turn = TURN.lock();
        let zone = Zone::new(ZoneConfig::default());
        let response = stored(&zone, &b"the page ".repeat(1000));
        let look = || look(&response, Coding::Gzip, &settings(5), true);
        let all: Vec<Maker> = std::iter::from_fn(Maker::hire).collect();
        assert_eq!(all.len(), max_makers());
        assert!(matches!(look(), EncodedForm::No));
        drop(all);
        let wait = waits(look()).expect("the claim was given back");
        assert!(ready(wait.settle().await).is_some());
        assert!(matches!(look(), EncodedForm::Ready(_)));
    }
}
