//! RFC 9111 as its text has it, for a shared cache: which stored response may be reused without validation, and how old
//! it is.
//!
//! If the text leaves a choice, the model takes that of this crate, and marks it with the word "choice".

use crate::history::{
    Directive, HEURISTIC_MOST, HEURISTIC_PERCENT, OriginAnswer, Request, Seconds,
};

/// How the text is read: rightly, or with one error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    AsWritten,
    AgeForgotten,
    DateForgotten,
    SMaxageForgotten,
    ExpiresFirst,
    LastOfTwoCounts,
    GarbageForgotten,
    NoCacheForgotten,
    PrivateForgotten,
    NoStoreForgotten,
    MustUnderstandForgotten,
    VaryForgotten,
    AuthorizationForgotten,
    HeuristicForAll,
    PublicForgotten,
    NotModifiedForgotten,
    InvalidationForgotten,
    ErrorsInvalidate,
    FreshAtItsEnd,
}

impl Reading {
    pub const WRONG: &[Reading] = &[
        Reading::AgeForgotten,
        Reading::DateForgotten,
        Reading::SMaxageForgotten,
        Reading::ExpiresFirst,
        Reading::LastOfTwoCounts,
        Reading::GarbageForgotten,
        Reading::NoCacheForgotten,
        Reading::PrivateForgotten,
        Reading::NoStoreForgotten,
        Reading::MustUnderstandForgotten,
        Reading::VaryForgotten,
        Reading::AuthorizationForgotten,
        Reading::HeuristicForAll,
        Reading::PublicForgotten,
        Reading::NotModifiedForgotten,
        Reading::InvalidationForgotten,
        Reading::ErrorsInvalidate,
        Reading::FreshAtItsEnd,
    ];
}

/// A response that may be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reusable {
    pub body: u32,
    /// For the field `Age`, in seconds.
    pub age: i64,
}

/// A stored response.
struct KeptResponse {
    answer: OriginAnswer,
    /// The request that brought it, or validated it last.
    request: Request,
    response_time: i64,
}

pub struct Model {
    reading: Reading,
    kept: Vec<KeptResponse>,
}

impl Model {
    pub fn new(reading: Reading) -> Model {
        Model {
            reading,
            kept: Vec::new(),
        }
    }

    fn reads(&self, error: Reading) -> bool {
        self.reading != error
    }

    /// §3: storing responses. What could never be reused is not kept: choice.
    pub fn store(&mut self, request: &Request, answer: &OriginAnswer, now: i64) {
        let kept = KeptResponse {
            answer: answer.clone(),
            request: request.clone(),
            response_time: now,
        };
        let may_be_stored = !self.forbids_storing(answer) && self.may_share(request, answer);
        if may_be_stored && self.is_of_use(&kept) {
            self.kept.push(kept);
        }
    }

    fn forbids_storing(&self, answer: &OriginAnswer) -> bool {
        let has = |directive| answer.control.contains(&directive);
        // §5.2.2.3: who knows the status may pass over no-store.
        let is_understood = answer.status != 299;
        let understands =
            self.reads(Reading::MustUnderstandForgotten) && has(Directive::MustUnderstand);
        let is_no_store = has(Directive::NoStore) && self.reads(Reading::NoStoreForgotten);
        // §5.2.2.7. A list of fields makes it no milder: choice.
        let is_private = has(Directive::Private(false)) || has(Directive::Private(true));
        is_no_store && !(understands && is_understood)
            || is_private && self.reads(Reading::PrivateForgotten)
    }

    /// §3.5: an answer to a request with credentials.
    fn may_share(&self, request: &Request, answer: &OriginAnswer) -> bool {
        let mut fields = request.fields.iter();
        let is_authorized = fields.any(|(name, _)| *name == "authorization");
        let allows = |directive: &Directive| {
            matches!(
                directive,
                Directive::MustRevalidate | Directive::Public | Directive::SMaxage(_)
            )
        };
        !is_authorized
            || answer.control.iter().any(allows)
            || !self.reads(Reading::AuthorizationForgotten)
    }

    /// §4: what may answer a request without validation.
    pub fn reusable(&self, request: &Request, now: i64) -> Option<Reusable> {
        let mut suitable = self
            .kept
            .iter()
            .filter(|kept| self.is_selected(kept, request));
        // The most recent one.
        let kept = suitable.next_back()?;
        let age = self.age(kept, now);
        let is_fresh =
            self.lifetime(kept)
                .is_some_and(|lifetime| match self.reads(Reading::FreshAtItsEnd) {
                    true => lifetime > age,
                    false => lifetime >= age,
                });
        let is_reusable = is_fresh && !self.has_no_cache(&kept.answer);
        is_reusable.then_some(Reusable {
            body: kept.answer.body,
            age,
        })
    }

    fn has_no_cache(&self, answer: &OriginAnswer) -> bool {
        // §5.2.2.4. A list of fields makes it no milder: choice.
        let has = |listed| answer.control.contains(&Directive::NoCache(listed));
        self.reads(Reading::NoCacheForgotten) && (has(false) || has(true))
    }

    /// §4.1: the fields that `Vary` names are as in the request that brought it; `*` never fits.
    fn is_selected(&self, kept: &KeptResponse, request: &Request) -> bool {
        let value = |request: &Request, wanted: &str| {
            let mut fields = request.fields.iter();
            fields
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| *value)
        };
        let fits = |name: &&str| *name != "*" && value(request, name) == value(&kept.request, name);
        let vary_fits = kept.answer.vary.iter().all(fits) || !self.reads(Reading::VaryForgotten);
        kept.request.url == request.url && vary_fits
    }

    /// The freshness lifetime (§4.2.1), in seconds; `None`: the response does not say one, and none may be estimated.
    fn lifetime(&self, kept: &KeptResponse) -> Option<i64> {
        let answer = &kept.answer;
        let in_order = |wanted: fn(&Directive) -> Option<Seconds>| {
            let mut found = answer.control.iter().filter_map(wanted);
            let first = match self.reads(Reading::LastOfTwoCounts) {
                true => found.next(),
                false => found.next_back(),
            };
            first.filter(|it| *it != Seconds::Garbage || self.reads(Reading::GarbageForgotten))
        };
        let shared = in_order(|it| match it {
            Directive::SMaxage(age) => Some(*age),
            _ => None,
        });
        let max_age = in_order(|it| match it {
            Directive::MaxAge(age) => Some(*age),
            _ => None,
        });
        let shared = shared.filter(|_| self.reads(Reading::SMaxageForgotten));
        let date = answer.date.unwrap_or(kept.response_time);
        let expires = answer.expires.map(|it| match it {
            Seconds::Number(at) => Seconds::Number(at - date),
            // §5.3: invalid dates, 0 above all, are in the past.
            Seconds::Garbage => Seconds::Number(0),
        });
        let explicit = match self.reads(Reading::ExpiresFirst) {
            true => shared.or(max_age).or(expires),
            false => expires.or(shared).or(max_age),
        };
        match explicit {
            Some(Seconds::Number(seconds)) => Some(seconds),
            // An unreadable value is stale.
            Some(Seconds::Garbage) => Some(0),
            None => self.heuristic(answer, date),
        }
    }

    /// §4.2.2: a share of the time since it was changed (choice), where the status or `public` allows it.
    fn heuristic(&self, answer: &OriginAnswer, date: i64) -> Option<i64> {
        let by_status = matches!(
            answer.status,
            200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
        );
        let is_public =
            answer.control.contains(&Directive::Public) && self.reads(Reading::PublicForgotten);
        if !by_status && !is_public && self.reads(Reading::HeuristicForAll) {
            return None;
        }
        let since = date - answer.last_modified?;
        // Whole and tenths of seconds: both sides count ages in whole seconds.
        let tenths = since * i64::from(HEURISTIC_PERCENT) / 10;
        let seconds = (tenths + 9) / 10;
        Some(seconds.min(i64::try_from(HEURISTIC_MOST).ok()?))
    }

    /// §4.2.3. In these histories this hop has no delay.
    fn age(&self, kept: &KeptResponse, now: i64) -> i64 {
        let apparent = kept
            .answer
            .date
            .map_or(0, |date| (kept.response_time - date).max(0));
        let apparent = if self.reads(Reading::DateForgotten) {
            apparent
        } else {
            0
        };
        let stated = kept
            .answer
            .age
            .filter(|_| self.reads(Reading::AgeForgotten))
            .unwrap_or(0);
        apparent.max(stated) + now - kept.response_time
    }

    /// §4.2.4: may a response that is stale be shown where the origin does not answer?
    pub fn may_be_stale(&self, body: u32, request: &Request) -> bool {
        let forbids = |directive: &Directive| {
            matches!(
                directive,
                Directive::MustRevalidate
                    | Directive::ProxyRevalidate
                    | Directive::NoCache(_)
                    | Directive::SMaxage(_)
            )
        };
        let mut kept = self.kept.iter().filter(|kept| kept.answer.body == body);
        kept.any(|kept| self.is_selected(kept, request) && !kept.answer.control.iter().any(forbids))
    }

    /// §4.3.1: it is stored, has a validator and was selected.
    pub fn may_validate(&self, body: u32, request: &Request) -> bool {
        let mut kept = self.kept.iter().filter(|kept| kept.answer.body == body);
        kept.any(|kept| {
            let has_validator = kept.answer.has_etag || kept.answer.last_modified.is_some();
            has_validator && self.is_selected(kept, request)
        })
    }

    /// §4.3.4 and §3.2: the fields of a 304 replace those that are stored.
    pub fn freshen(&mut self, body: u32, request: &Request, answer: &OriginAnswer, now: i64) {
        if !self.reads(Reading::NotModifiedForgotten) {
            return;
        }
        let Some(at) = self.kept.iter().rposition(|kept| kept.answer.body == body) else {
            return;
        };
        let kept = &self.kept[at];
        let mut merged = kept.answer.clone();
        if !answer.control.is_empty() {
            merged.control.clone_from(&answer.control);
        }
        merged.expires = answer.expires.or(merged.expires);
        // RFC 9110 §6.6.1: without a date it gets that of its reception.
        merged.date = answer.date;
        // It is made anew for each answer (§5.1), and is no part of what is stored: choice.
        merged.age = answer.age;
        merged.last_modified = answer.last_modified.or(merged.last_modified);
        merged.has_etag |= answer.has_etag;
        if !answer.vary.is_empty() {
            merged.vary.clone_from(&answer.vary);
        }
        if self.forbids_storing(&merged) {
            // A choice: no other visitor gets it, and the others for the address go as well.
            self.kept.retain(|other| other.request.url != request.url);
            return;
        }
        let freshened = KeptResponse {
            answer: merged,
            request: request.clone(),
            response_time: now,
        };
        // A 304 that leaves nothing to reuse changes nothing of what is stored, which is stale: a difference to §3.2, by
        // which the fields are replaced.
        if self.may_share(request, &freshened.answer) && self.is_of_use(&freshened) {
            self.kept.remove(at);
            self.kept.push(freshened);
        }
    }

    /// May it be reused at some time, as it is or once it is validated?
    fn is_of_use(&self, kept: &KeptResponse) -> bool {
        let answer = &kept.answer;
        if answer.vary.contains(&"*") {
            return false;
        }
        if self.has_no_cache(answer) {
            // Pages that were made for no one in particular: choice.
            let is_authorized = kept
                .request
                .fields
                .iter()
                .any(|(name, _)| *name == "authorization");
            let has_validator = answer.has_etag || answer.last_modified.is_some();
            return answer.status == 200 && has_validator && !is_authorized;
        }
        let age = self.age(kept, kept.response_time);
        self.lifetime(kept).is_some_and(|lifetime| lifetime > age)
    }

    /// §4.4: what is not known to be safe, and succeeded, invalidates.
    pub fn write(&mut self, url: u32, method: &str, succeeds: bool) {
        let is_safe = matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE");
        let counts = succeeds || !self.reads(Reading::ErrorsInvalidate);
        if !is_safe && counts && self.reads(Reading::InvalidationForgotten) {
            self.kept.retain(|kept| kept.request.url != url);
        }
    }
}
