//! Copies for one visitor (`cache_private` with `cache_learn`): a page is kept once two runs of PHP gave the same answer.
//! A key that a form may send once is drawn anew by each run, and shown to one tab alone.
//!
//! The copy that PHP made before is compared, whether or not it may still be shown. Numbers and times may differ, as
//! [`guest_pages`] knows them without a third answer; a drawn number is none of them.

use std::sync::Arc;

use cache_decision::Plan;
use guest_pages::{Comparison, Guests, MAX_BODY_BYTES, compare};
use http_cache::StoredResponse;
use http_semantics::same_name;

use super::guests;
use crate::exchange::request::Request;

/// Fields that say when the answer was made and how long that took, and validators of its body.
const OF_MOMENT: [&[u8]; 7] = [
    b"age",
    b"date",
    b"etag",
    b"expires",
    b"last-modified",
    b"server-timing",
    b"x-runtime",
];

/// The copy that a visitor's page is compared with.
pub struct EarlierCopy {
    stored: Arc<StoredResponse>,
    host: Vec<u8>,
}

impl EarlierCopy {
    /// `None`: there is none, or it was made within this second. A key that is made of the time would be the same in both.
    pub fn of(request: &Request, plan: &Plan<'_>) -> Option<EarlierCopy> {
        let fields = plan.fields(request.received.head());
        let stored = plan.zone.stored_for(&plan.key.as_ref(), &fields)?;
        let second = |steady_ms| clock::wall(steady_ms) / 1000;
        let is_of_other_second = second(stored.head.stored_at.0) < second(clock::now());
        is_of_other_second.then(|| EarlierCopy {
            stored,
            host: guests::named_host(request),
        })
    }

    /// Has PHP made the same page, but for numbers and times?
    pub fn is_repeated(&self, later: &StoredResponse) -> bool {
        self.stored.head.status == later.head.status
            && self.are_alike(&head_text(&self.stored), &head_text(later))
            && self.are_alike(&body_text(&self.stored), &body_text(later))
    }

    fn are_alike(&self, earlier: &[u8], later: &[u8]) -> bool {
        if earlier == later {
            return true;
        }
        if earlier.len().max(later.len()) > MAX_BODY_BYTES {
            return false;
        }
        // What is sent back is no number: a time in a form is good once, perhaps.
        let compared = compare(
            &[earlier, later],
            Guests::Alike,
            guests::asked_site(&self.host),
        );
        matches!(compared, Comparison::Form(form) if form.tokens().is_empty())
    }
}

/// The fields that a script or a browser may read something from.
fn head_text(stored: &StoredResponse) -> Vec<u8> {
    let fields = stored.head.fields.iter();
    let fields = fields.filter(|(name, _)| !OF_MOMENT.iter().any(|it| same_name(name, it)));
    let lines = fields.flat_map(|(name, value)| [name, b": ", value, b"\n"]);
    lines.collect::<Vec<_>>().concat()
}

fn body_text(stored: &StoredResponse) -> Vec<u8> {
    stored.body.chunks().concat()
}
