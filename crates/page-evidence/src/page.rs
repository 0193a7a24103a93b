//! The record of one page, and the rule that follows for a visitor.

use shared_request::{LeftOut, Trait, TraitSet};

use crate::shape::Shape;

/// Whether a visitor may be shown the shared answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing that the shared request leaves out of this visitor's matters, as far as was seen.
    Shared,
    /// It has not been seen yet whether it matters: the visitor's own request is made.
    Unproven,
    /// A trial has found no answer that visitors can share. It is made again later: visitors' own requests are compared.
    NotShareable,
    /// It matters: the visitor's own request is made, and compared with nothing.
    Depends(Trait),
    /// The same: something matters that is no trait.
    Unexplained,
}

/// The evidence about the session that a page begins for each guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionStanding {
    /// No answer has begun one, as far as was seen.
    #[default]
    None,
    /// Answers begin one. It has not been seen that the page does not depend on it: nothing is shared.
    Begun,
    /// Guests without a session share the page. Whether it leaves the session of a guest who comes back as it was is still
    /// tried.
    SharedByNew,
    /// The page does not depend on it, and leaves it as any other page does: guests share the page without a session.
    Indifferent,
}

impl SessionStanding {
    /// Do guests without a session share the page?
    #[must_use]
    pub fn is_shared_by_new(self) -> bool {
        matches!(
            self,
            SessionStanding::SharedByNew | SessionStanding::Indifferent
        )
    }
}

/// The outline of an answer that may not be stored: two visitors whose answers have the same outline were led to the
/// same place, and were given the same cookies or fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AnswerOutline {
    /// Stands for its status and for where it leads.
    pub digest: u32,
    /// The names of the cookies that it sets, as bits.
    pub cookies: u32,
    /// It is a page, and neither a redirect nor an error.
    pub is_page: bool,
}

impl AnswerOutline {
    /// Does this answer show nothing beyond the other one?
    fn is_within(self, other: AnswerOutline) -> bool {
        self.digest == other.digest && self.cookies & !other.cookies == 0
    }
}

/// This many answers to one visitor, over more than this many seconds, count like those to two: it is no double click,
/// and no link that works once.
const SAME_VISITOR_ANSWERS: u8 = 3;
const SAME_VISITOR_SECONDS: u32 = 1;
/// After a trial that found a page to depend on its session, another one is made no sooner than this, in seconds; twice as
/// late each time.
const FIRST_SESSION_PAUSE: u32 = 10;
const MAX_SESSION_PAUSE: u32 = 1800;

/// Values that are remembered of one page.
const MAX_AGREED: usize = 32;
/// Values that were seen to matter.
const MAX_DIFFERING: usize = 6;
/// This many values of one trait that matter stand for all of them.
const DIFFERING_STAND_FOR_ALL: u8 = 3;
/// How long it is remembered that something matters, in seconds; then it is tried again.
const DIFFERING_SECONDS: u32 = 1800;
/// How long it is remembered that a page that is not shared leaves a session as it was, in seconds.
const LEFT_SECONDS: u32 = 1800;
/// How long after a comparison the answer of a visitor of another network is compared, in seconds. It
/// doubles each time.
const FIRST_AUDIT_SECONDS: u32 = 10;
const MAX_AUDIT_SECONDS: u32 = 2880;
/// So much later that of any visitor is: an hour at most after the last one.
const FOR_ANY_SECONDS: u32 = 720;
/// Two answers to one visitor that no trait explains count like those to two if they are so many seconds apart.
const UNEXPLAINED_APART: u32 = 10;

/// The record of one page.
// Large: facts of one page, of which there are thousands: each comparison reads and writes most of them.
#[derive(Debug, Default)]
pub(crate) struct PageRecord {
    /// The start of the evidence, in seconds; 0: nothing is known.
    since: u32,
    /// A visitor's own answer and the shared one were the same, or the shared request was the visitor's own.
    pub(crate) is_agreed: bool,
    /// The last answer of a visitor's own could not have been stored.
    pub(crate) is_refused: bool,
    /// Stands for the last shared answer; 0: none.
    pub(crate) shared_answer: u32,
    pub(crate) session: SessionStanding,
    /// Stands for the first visitor whose answer began a session.
    begun_for: u32,
    /// When that was, in seconds, and how many answers there were since.
    begun_at: u32,
    begun_again: u8,
    /// The time from which a trial of the session is made, in seconds, and the length of the next pause.
    session_from: u32,
    session_pause: u32,
    /// The time, in seconds, until which a page that is not shared is known to leave a session as it was, if its answer
    /// has the outline of this one.
    left_until: u32,
    left: AnswerOutline,
    /// The page differs each time it is made.
    pub(crate) differs_each_time: bool,
    /// Addresses of clients do not matter, as far as was seen; nor addresses that fields name.
    is_of_any_network: bool,
    is_of_any_named_address: bool,
    /// Stands for the visitor whose answer no trait explained, and when that was, in seconds; 0: none.
    unexplained_for: u32,
    unexplained_at: u32,
    /// Until this time, in seconds, the page is not shared, because of two such visitors.
    unexplained_until: u32,
    agreed: Recent<MAX_AGREED>,
    /// Traits of which a value did not matter on this page: the evidence of other pages about their other values
    /// counts.
    immaterial: TraitSet,
    differing: Recent<MAX_DIFFERING>,
    differing_by_trait: [u8; Trait::ALL.len()],
    /// When the differing values are forgotten, in seconds.
    differing_until: u32,
    depends: TraitSet,
    pub(crate) keyed: TraitSet,
    networks: Recent<4>,
    audit_from: u32,
    audit_after: u32,
    /// Comparisons that found the same bytes, and trials that found a reason.
    comparisons: u32,
}

/// The latest of some values, each once.
#[derive(Debug)]
struct Recent<const N: usize> {
    values: [u32; N],
}

impl<const N: usize> Default for Recent<N> {
    fn default() -> Self {
        Recent { values: [0; N] }
    }
}

impl<const N: usize> Recent<N> {
    fn has(&self, value: u32) -> bool {
        self.values.contains(&value)
    }

    /// Puts a value in front; the one noted longest ago leaves. True if there was one.
    fn note(&mut self, value: u32) -> bool {
        let at = self.values.iter().position(|it| *it == value);
        let leaves = at.is_none() && self.values[N - 1] != 0;
        self.values[..=at.unwrap_or(N - 1)].rotate_right(1);
        self.values[0] = value;
        leaves
    }

    fn forget(&mut self, value: u32) {
        let values = self.values.iter_mut().filter(|it| **it == value);
        values.for_each(|it| *it = 0);
    }
}

/// Stands for an answer of this digest in few bytes; never 0.
pub(crate) fn short(digest: u64) -> u32 {
    ((digest ^ (digest >> 32)) as u32).max(1)
}

/// A value together with its trait.
pub(crate) fn named(of: Trait, value: u32) -> u32 {
    value
        .rotate_left(of as u32 * 5)
        .wrapping_add(of as u32 + 1)
        .max(1)
}

/// The findings about a page, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFindings {
    /// The start of the evidence, in seconds of the clock that the table is given.
    pub since: u32,
    pub is_shared: bool,
    pub is_refused: bool,
    pub session: SessionStanding,
    /// It is not shared, and leaves a session as it was.
    pub leaves_session: bool,
    pub differs_each_time: bool,
    pub is_of_any_network: bool,
    /// Answers to two visitors differed by something that is no trait: the page is not shared for now.
    pub is_unexplained: bool,
    /// Values that did not matter.
    pub agreed: usize,
    /// Traits of which a value mattered.
    pub depends: TraitSet,
    /// The traits that are in the key.
    pub keyed: TraitSet,
    pub comparisons: u32,
}

impl PageRecord {
    pub(crate) fn standing(&self, left_out: &LeftOut, shape: Option<&Shape>, now: u32) -> Standing {
        let has_session = left_out.value(Trait::Session) != 0;
        if self.session == SessionStanding::Begun
            || has_session && self.session != SessionStanding::Indifferent
        {
            return Standing::Unproven;
        }
        if left_out.is_nothing() {
            return Standing::Shared;
        }
        if now < self.unexplained_until {
            return Standing::Unexplained;
        }
        let remembers = now < self.differing_until;
        let mut is_proven = self.is_agreed;
        for it in left_out.traits().iter() {
            let value = left_out.value(it);
            let is_near = it == Trait::Network && self.differing.has(left_out.place());
            if remembers
                && (self.depends.has(it) || is_near || self.differing.has(named(it, value)))
            {
                return Standing::Depends(it);
            }
            is_proven = is_proven && self.is_immaterial(it, left_out, shape);
        }
        match is_proven {
            true => Standing::Shared,
            false => Standing::Unproven,
        }
    }

    fn is_immaterial(&self, it: Trait, left_out: &LeftOut, shape: Option<&Shape>) -> bool {
        let value = left_out.value(it);
        let is_of_any = match left_out.names_address() {
            true => self.is_of_any_named_address,
            false => self.is_of_any_network,
        };
        it == Trait::Network && is_of_any
            || self.agreed.has(named(it, value))
            || shape.is_some_and(|shape| {
                let was_compared = self.immaterial.has(it) || shape.is_immaterial_trait(it);
                was_compared && shape.is_immaterial(named(it, value))
            })
    }

    /// The traits of a visitor that are not known not to matter.
    pub(crate) fn unproven(&self, left_out: &LeftOut, shape: Option<&Shape>) -> TraitSet {
        let traits = left_out.traits();
        let unknown = traits
            .iter()
            .filter(|it| !self.is_immaterial(*it, left_out, shape));
        unknown.fold(TraitSet::NONE, TraitSet::with)
    }

    /// A request that left nothing out got an answer that may be stored.
    pub(crate) fn note_shared(&mut self, now: u32) {
        self.begin(now);
        self.is_refused = false;
    }

    /// A visitor's own answer and the shared one were the same.
    pub(crate) fn agree(&mut self, left_out: &LeftOut, now: u32) {
        self.begin(now);
        self.is_agreed = true;
        self.is_refused = false;
        self.comparisons = self.comparisons.saturating_add(1);
        for it in left_out.traits().iter() {
            let value = named(it, left_out.value(it));
            // A finding stands for its time: the value may matter together with another one alone.
            if now >= self.differing_until {
                self.differing.forget(value);
            }
            // Addresses are many, and count by their networks.
            if it != Trait::Network {
                self.agreed.note(value);
            }
            self.immaterial = self.immaterial.with(it);
        }
        if left_out.value(Trait::Network) != 0 {
            self.is_of_any_network = true;
            self.is_of_any_named_address |= left_out.names_address();
            self.networks.note(left_out.place());
        }
        self.audit_after = self.audit_after.max(FIRST_AUDIT_SECONDS);
        self.audit_from = now.saturating_add(self.audit_after);
    }

    /// A trial found that these matter.
    pub(crate) fn differ(&mut self, left_out: &LeftOut, found: TraitSet, now: u32) {
        self.begin(now);
        if now >= self.differing_until {
            self.differing = Recent::default();
            self.differing_by_trait = [0; Trait::ALL.len()];
            self.depends = TraitSet::NONE;
        }
        self.differing_until = now.saturating_add(DIFFERING_SECONDS);
        self.comparisons = self.comparisons.saturating_add(1);
        self.audit_after = 0;
        for it in found.iter() {
            let value = named(it, left_out.value(it));
            self.agreed.forget(value);
            self.immaterial = self.immaterial.without(it);
            let is_known = self.differing.has(value);
            // A value that leaves takes its trait with it: it would be shared again.
            let mut is_full = self.differing.note(value);
            if it == Trait::Network {
                // Other addresses of its network count as different, too.
                is_full |= self.differing.note(left_out.place());
            }
            if is_full {
                let seen = self.differing_traits();
                self.depends = seen.fold(self.depends, TraitSet::with);
            }
            let count = &mut self.differing_by_trait[it as usize];
            *count = count.saturating_add(u8::from(!is_known));
            if *count >= DIFFERING_STAND_FOR_ALL {
                self.depends = self.depends.with(it);
            }
        }
    }

    /// The traits of which a value mattered.
    fn differing_traits(&self) -> impl Iterator<Item = Trait> + use<> {
        let counts = self.differing_by_trait;
        (Trait::ALL.into_iter()).filter(move |it| counts[*it as usize] > 0)
    }

    /// A trial found nothing that explains a visitor's (`who`) answer. True if it is the second one: the page is not
    /// shared for a while.
    pub(crate) fn note_unexplained(&mut self, who: u32, now: u32) -> bool {
        self.begin(now);
        let since = now.saturating_sub(self.unexplained_at);
        let is_known = self.unexplained_at != 0 && since < DIFFERING_SECONDS;
        if is_known && (self.unexplained_for != who || since >= UNEXPLAINED_APART) {
            self.unexplained_until = now.saturating_add(DIFFERING_SECONDS);
            self.unexplained_at = 0;
            return true;
        }
        if !is_known {
            (self.unexplained_for, self.unexplained_at) = (who, now);
        }
        false
    }

    /// An answer could have been stored but for the session that it begins. True where a trial is to be made: another
    /// visitor (`who`) was given one, too, or waits.
    pub(crate) fn begin_session(&mut self, who: u32, is_awaited: bool, now: u32) -> bool {
        self.begin(now);
        self.is_refused = false;
        self.begun_again = self.begun_again.saturating_add(1);
        let is_later = self.begun_again >= SAME_VISITOR_ANSWERS
            && now > self.begun_at.saturating_add(SAME_VISITOR_SECONDS);
        let is_second =
            self.session == SessionStanding::Begun && (self.begun_for != who || is_later);
        if self.session == SessionStanding::None {
            self.session = SessionStanding::Begun;
            (self.begun_for, self.begun_at) = (who, now);
        }
        (is_second || is_awaited) && now >= self.session_from
    }

    /// Does the page leave a session as it was, by the evidence so far? `answer`: the outline of a visitor's answer,
    /// once it is there.
    pub(crate) fn leaves_session(&self, answer: Option<AnswerOutline>, now: u32) -> bool {
        match answer {
            // A page that begins no session may write into one all the same.
            None => self.session == SessionStanding::Indifferent,
            // Guests share it by now.
            Some(answer) if answer.is_page && self.session == SessionStanding::Indifferent => true,
            Some(answer) => self.is_known_to_leave(now) && answer.is_within(self.left),
        }
    }

    /// Is it known lately that the page leaves a session as it was, although it is not shared?
    pub(crate) fn is_known_to_leave(&self, now: u32) -> bool {
        now < self.left_until
    }

    /// A trial found that the page, which is not shared, leaves a session as it was.
    pub(crate) fn note_left(&mut self, answer: AnswerOutline, is_storable: bool, now: u32) {
        self.left = answer;
        self.left_until = now.saturating_add(LEFT_SECONDS);
        match is_storable {
            true => self.put_off_session(now),
            // Once its answers can be stored, it is tried whether guests share the page.
            false => self.session_from = 0,
        }
    }

    /// A trial under way found that guests without a session, among them this visitor, can share the page.
    pub(crate) fn share_with_new(&mut self, left_out: &LeftOut, now: u32) {
        self.differs_each_time = false;
        self.agree(left_out, now);
        self.session = SessionStanding::SharedByNew;
    }

    /// The rest of that trial did not confirm it. True where the page was shared until then.
    pub(crate) fn withdraw_from_new(&mut self) -> bool {
        let is_withdrawn = self.session == SessionStanding::SharedByNew;
        if is_withdrawn {
            self.session = SessionStanding::Begun;
        }
        is_withdrawn && std::mem::take(&mut self.is_agreed)
    }

    /// A trial found that the page does not depend on its session.
    pub(crate) fn note_indifferent(&mut self) {
        self.session = SessionStanding::Indifferent;
        // It was the same for a guest who came back.
        self.agreed.note(named(Trait::Session, 1));
        self.immaterial = self.immaterial.with(Trait::Session);
        (self.session_from, self.session_pause) = (0, 0);
    }

    /// A trial found that it does, or came to no end.
    pub(crate) fn put_off_session(&mut self, now: u32) {
        self.session = SessionStanding::Begun;
        self.session_pause = (self.session_pause * 2).clamp(FIRST_SESSION_PAUSE, MAX_SESSION_PAUSE);
        self.session_from = now.saturating_add(self.session_pause);
    }

    /// An answer could not have been stored. True where the page was shared until then.
    pub(crate) fn refuse(&mut self, now: u32) -> bool {
        self.begin(now);
        self.is_refused = true;
        std::mem::take(&mut self.is_agreed)
    }

    /// Should this visitor's answer be compared, though the page is shared with them? First for networks that were not
    /// compared lately, and for values that were compared on other pages alone; a little later for any.
    pub(crate) fn is_audit_due(&self, left_out: &LeftOut, now: u32) -> bool {
        let place = left_out.place();
        let is_foreign = |it: Trait| match it {
            Trait::Network => !self.networks.has(place),
            _ => !self.agreed.has(named(it, left_out.value(it))),
        };
        let for_any = self.audit_from.saturating_add(FOR_ANY_SECONDS);
        now >= for_any || now >= self.audit_from && left_out.traits().iter().any(is_foreign)
    }

    /// This visitor's answer is compared: the next one later.
    pub(crate) fn note_audit(&mut self, left_out: &LeftOut, now: u32) {
        self.networks.note(left_out.place());
        self.audit_after = (self.audit_after * 2).clamp(FIRST_AUDIT_SECONDS, MAX_AUDIT_SECONDS);
        self.audit_from = now.saturating_add(self.audit_after);
    }

    fn begin(&mut self, now: u32) {
        if self.since == 0 {
            self.since = now.max(1);
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.since != 0
    }

    pub(crate) fn findings(&self, now: u32) -> PageFindings {
        let depends = match now < self.differing_until {
            true => self.differing_traits().fold(self.depends, TraitSet::with),
            false => TraitSet::NONE,
        };
        PageFindings {
            since: self.since,
            is_shared: self.is_agreed,
            is_refused: self.is_refused,
            session: self.session,
            leaves_session: self.is_refused && self.is_known_to_leave(now),
            differs_each_time: self.differs_each_time,
            is_of_any_network: self.is_of_any_network,
            is_unexplained: now < self.unexplained_until,
            agreed: self.agreed.values.iter().filter(|it| **it != 0).count(),
            depends,
            keyed: self.keyed,
            comparisons: self.comparisons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PageRecord {
        fn takes_audit(&mut self, left_out: &LeftOut, now: u32) -> bool {
            let is_due = self.is_audit_due(left_out, now);
            if is_due {
                self.note_audit(left_out, now);
            }
            is_due
        }
    }

    fn visitor(values: &[(Trait, u32)]) -> LeftOut {
        let mut left_out = LeftOut::default();
        values
            .iter()
            .for_each(|(it, value)| left_out.set(*it, *value));
        left_out
    }

    #[test]
    fn a_value_that_agreed_is_shared_and_others_are_unproven() {
        let mut record = PageRecord::default();
        let german = visitor(&[(Trait::Language, 5), (Trait::Agent, 6)]);
        assert_eq!(record.standing(&german, None, 1), Standing::Unproven);
        assert_eq!(
            record.standing(&LeftOut::default(), None, 1),
            Standing::Shared
        );
        record.agree(&german, 1);
        assert_eq!(record.standing(&german, None, 1), Standing::Shared);
        let other = visitor(&[(Trait::Language, 7), (Trait::Agent, 6)]);
        assert_eq!(record.standing(&other, None, 1), Standing::Unproven);
        assert_eq!(record.unproven(&other, None), TraitSet::of(Trait::Language));
        record.refuse(2);
        assert_eq!(record.standing(&german, None, 2), Standing::Unproven);
    }

    #[test]
    fn what_matters_is_remembered_for_a_while_and_stands_for_all_in_the_end() {
        let mut record = PageRecord::default();
        let of = |value| visitor(&[(Trait::Referer, value)]);
        record.agree(&of(1), 1);
        for value in 2..=3 {
            record.differ(&of(value), TraitSet::of(Trait::Referer), 1);
            assert_eq!(
                record.standing(&of(value), None, 2),
                Standing::Depends(Trait::Referer)
            );
        }
        assert_eq!(record.standing(&of(1), None, 2), Standing::Shared);
        assert_eq!(record.standing(&of(9), None, 2), Standing::Unproven);
        record.differ(&of(4), TraitSet::of(Trait::Referer), 1);
        assert_eq!(
            record.standing(&of(9), None, 2),
            Standing::Depends(Trait::Referer)
        );
        assert_eq!(
            record.standing(&of(2), None, DIFFERING_SECONDS + 1),
            Standing::Unproven
        );
    }

    /// Where one address asks for everything, a page that was translated stayed in the old language.
    #[test]
    fn a_visitor_who_was_compared_is_compared_again_within_an_hour() {
        let mut record = PageRecord::default();
        let visitor = visitor(&[(Trait::Language, 5)]).from(Some("203.0.113.1".parse().unwrap()));
        record.agree(&visitor, 1);
        let (mut last, mut longest, mut audits) = (1, 0, 0);
        for now in 1..40_000 {
            if record.takes_audit(&visitor, now) {
                record.agree(&visitor, now);
                longest = longest.max(now - last);
                (last, audits) = (now, audits + 1);
            }
        }
        assert_eq!(longest, 3600);
        assert!((15..30).contains(&audits), "{audits}");
    }

    #[test]
    fn what_two_answers_do_not_explain_ends_sharing_for_half_an_hour() {
        let german = visitor(&[(Trait::Language, 5)]);
        for (visitors, is_ended) in [
            (&[(7, 10), (8, 11)][..], true),
            (&[(7, 10), (7, 11)], false),
            (&[(7, 10), (7, 11), (7, 30)], true),
            (&[(7, 10), (8, 10 + DIFFERING_SECONDS)], false),
        ] {
            let mut record = PageRecord::default();
            record.agree(&german, 1);
            let mut end = 0;
            for (who, now) in visitors {
                record.note_unexplained(*who, *now);
                end = *now;
            }
            let standing = |now| record.standing(&german, None, now);
            let wanted = match is_ended {
                true => Standing::Unexplained,
                false => Standing::Shared,
            };
            assert_eq!(standing(end + 1), wanted, "{visitors:?}");
            assert_eq!(standing(end + DIFFERING_SECONDS), Standing::Shared);
            assert_eq!(record.findings(end + 1).is_unexplained, is_ended);
        }
    }

    #[test]
    fn an_address_that_a_field_names_is_no_other_visitors_address() {
        let limits = http1::HeadLimits::default();
        let of = |fields: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
            let head = http1::parse_head(text, &limits).unwrap();
            let received = shared_request::ReceivedRequest {
                head: head.view(),
                scheme: "http",
                host: b"a",
                port: None,
                server_port: 80,
                target: b"/",
                rewritten: None,
                client: Some("127.0.0.1".parse().unwrap()),
                is_guest: false,
            };
            let rules = shared_request::Rules::default();
            let visitor = shared_request::put_key(&received, &rules, &mut Vec::new());
            visitor.unwrap().left_out
        };
        let mut record = PageRecord::default();
        record.agree(&of(""), 1);
        assert_eq!(record.standing(&of(""), None, 1), Standing::Shared);
        let german = of("CF-Connecting-IP: 81.1.2.3\r\n");
        assert_eq!(record.standing(&german, None, 1), Standing::Unproven);
        record.agree(&german, 1);
        let american = of("CF-Connecting-IP: 73.1.2.3\r\n");
        assert_eq!(record.standing(&american, None, 1), Standing::Shared);
        assert!(record.takes_audit(&american, 1 + FIRST_AUDIT_SECONDS));
        record.differ(&american, TraitSet::of(Trait::Network), 12);
        let near = of("CF-Connecting-IP: 73.1.9.9\r\n");
        let depends = Standing::Depends(Trait::Network);
        assert_eq!(record.standing(&near, None, 13), depends);
        assert_eq!(record.standing(&german, None, 13), Standing::Shared);
    }

    #[test]
    fn a_network_that_differs_is_kept_from_the_page_and_three_are_all() {
        let mut record = PageRecord::default();
        let of = |address: &str| LeftOut::default().from(Some(address.parse().unwrap()));
        record.agree(&of("203.0.113.1"), 1);
        assert_eq!(
            record.standing(&of("198.51.100.1"), None, 1),
            Standing::Shared
        );
        let due = 1 + FIRST_AUDIT_SECONDS;
        assert!(
            !record.takes_audit(&of("198.51.100.1"), due - 1),
            "too early"
        );
        assert!(
            !record.takes_audit(&of("203.0.7.9"), due),
            "the same network"
        );
        assert!(record.takes_audit(&of("198.51.100.1"), due));
        let again = due + 2 * FIRST_AUDIT_SECONDS;
        assert!(!record.takes_audit(&of("198.51.100.1"), again));
        let network = TraitSet::of(Trait::Network);
        record.differ(&of("198.51.100.1"), network, 11);
        let standing = |record: &PageRecord, address| record.standing(&of(address), None, 12);
        for address in ["198.51.100.1", "198.51.7.7"] {
            assert_eq!(
                standing(&record, address),
                Standing::Depends(Trait::Network),
                "{address}"
            );
        }
        assert_eq!(standing(&record, "203.0.113.1"), Standing::Shared);
        record.differ(&of("192.0.2.1"), network, 11);
        record.differ(&of("10.0.0.1"), network, 11);
        assert_eq!(
            standing(&record, "203.0.113.1"),
            Standing::Depends(Trait::Network)
        );
        assert_eq!(
            record.standing(&LeftOut::default(), None, 12),
            Standing::Shared
        );
    }
}
