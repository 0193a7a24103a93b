//! The trial of a page that a crowd waits for, on a site whose pages are known to begin sessions. Two rounds of requests are
//! enough where all answers fit: the first round is begun before the trial.
//!
//! ```text
//! before   the first guest's own request, the shared one, the same again, the site's first page
//! then     the page with the first session, other pages with the second session, the page without each argument
//!          ── guests without a session are shown the page ──
//! then     other pages with the first session
//! ```
//!
//! The two sessions are used side by side, since PHP locks a session. Only answers that fit count here: where one does not,
//! the trial goes on as for any page, with further answers.

use std::sync::Arc;

use guest_pages::{
    Comparison, GuestPage, Guests, PageForm, SessionNumbers, SessionTraces, compare,
};
use live_state::evidence::SeenPages;
use page_evidence::{TrialOrder, TrialVerdict};
use shared_request::{Trait, TraitSet};

use super::{
    ComparedPage, GuestTrial, NeutralAnswers, TrialEnd, cookies_of_scripts, cookies_sent_back,
    rendered,
};
use crate::content::through_cache::ahead::{less_one_argument, other_pages};
use crate::content::through_cache::asking::WholeAnswer;
use crate::content::through_cache::guests;
use crate::content::through_cache::trial_requests::TrialRequest;
use crate::content::through_cache::tried::BrokenOff;

/// The findings of these rounds.
pub(super) struct TwoRounds {
    neutral: NeutralAnswers,
    others: Vec<OtherPage>,
}

/// Another page of the site, as a guest without a session sees it.
struct OtherPage {
    target: Vec<u8>,
    look: u64,
    known: Option<Arc<GuestPage>>,
    without: Option<WholeAnswer>,
}

impl GuestTrial<'_> {
    /// Compares the first answer with a second neutral one, the visitor's own, and the one to a guest who comes back; and
    /// other pages with a session that the page has begun. `None`: some do not fit, and further answers will say more.
    pub(super) async fn look_in_two_rounds(
        &mut self,
        seen: &Arc<SeenPages>,
        order: &TrialOrder,
        first: &WholeAnswer,
        own: &WholeAnswer,
    ) -> Result<Option<TwoRounds>, TrialEnd> {
        let own_first = [&first.body[..], &own.body];
        if seen.guests.page(order.page).is_some()
            || matches!(self.compared_as(&own_first), Comparison::Unlike(_))
        {
            return Ok(None);
        }
        let Some(second) = self.fetch(TraitSet::NONE).await? else {
            return Ok(None);
        };
        let sessions = cookies_sent_back(first).zip(cookies_sent_back(&second));
        let Some((session, second_session)) = sessions else {
            return Ok(None);
        };
        let with = TraitSet::of(Trait::Session);
        self.requests
            .begin_once(TrialRequest::Own(with, Some(session)));
        let targets = other_pages(self.request(), seen);
        for target in &targets {
            let with = TrialRequest::Other(target.clone(), Some(second_session.clone()));
            self.requests.begin_once(with);
        }
        for (_, target) in less_one_argument(self.request(), seen) {
            self.requests.begin_once(TrialRequest::Other(target, None));
        }
        let answers = vec![first.clone(), second];
        let Some(form) = self.form_with(&answers, own) else {
            return Ok(None);
        };
        let Some(again) = self.fetch(with).await? else {
            return Ok(None);
        };
        let form = match form.find(&again.body) {
            Some(_) => Some(form),
            None => self.form_with(&answers, &again),
        };
        let Some(form) = form else {
            return Ok(None);
        };
        let neutral = NeutralAnswers { answers, form };
        if !fits_all(&neutral, own, &again) || self.names_moment(&neutral) {
            return Ok(None);
        }
        let Some(others) = self.look_at_others(seen, &targets, &second_session).await? else {
            return Ok(None);
        };
        let has_args = guests::asked_target(self.request()).contains(&b'?');
        if has_args && others.is_empty() {
            return Ok(None);
        }
        self.look_at_arguments(seen, &neutral).await?;
        Ok(Some(TwoRounds { neutral, others }))
    }

    /// Shares the page with guests who have no session, and then tries whether it leaves the session of one who comes back
    /// as it was.
    pub(super) async fn share_with_new(
        &mut self,
        seen: &Arc<SeenPages>,
        order: &TrialOrder,
        found: TwoRounds,
    ) -> Result<TrialVerdict, TrialEnd> {
        let TwoRounds { neutral, others } = found;
        let cookies = cookies_of_scripts(&neutral.answers)?;
        neutral.have_no_token_in_field()?;
        self.note(seen, order, (neutral, cookies));
        seen.evidence.share_with_new_guests(order, clock::now());
        self.is_shared_by_new = true;
        seen.announce(order.page);
        let mut traces = SessionTraces::default();
        if let Some(session) = self.session.clone() {
            for other in others {
                let with = self.ask_for(&other.target, Some(&session)).await?;
                if self.is_alike(&other, &with) {
                    continue;
                }
                let page = (&other.target[..], other.known.as_deref());
                let is_same = self.is_same(seen, page, &session).await?;
                // It was compared a moment ago.
                if !is_same.ok_or(BrokenOff::NoAnswer)? {
                    seen.guests.note_shows_session(other.look);
                    traces.note(other.look, true);
                }
            }
        }
        match traces.are_somewhere() {
            true => Err(TrialEnd::NotShared(
                "another page of the site differs for a guest who has come back to it",
            )),
            false => Ok(TrialVerdict::Agree { each_time: false }),
        }
    }

    /// Are other pages the same for a guest who has seen the page once? `None`: not all, as far as was seen.
    async fn look_at_others(
        &mut self,
        seen: &SeenPages,
        targets: &[Vec<u8>],
        session: &Arc<[u8]>,
    ) -> Result<Option<Vec<OtherPage>>, TrialEnd> {
        let host = guests::named_host(self.request());
        let mut others = Vec::with_capacity(targets.len());
        for target in targets {
            let known = seen.guests.at(&host, target);
            let without = match &known {
                Some(_) => None,
                None => Some(self.ask_for(target, None).await?),
            };
            let other = OtherPage {
                target: target.clone(),
                look: seen.guests.look(&host, target),
                known,
                without,
            };
            let with = self.ask_for(target, Some(session)).await?;
            if !self.is_alike(&other, &with) {
                return Ok(None);
            }
            others.push(other);
        }
        Ok(Some(others))
    }

    /// Is the answer with a session the one without, but for tokens that are known by their names?
    fn is_alike(&self, other: &OtherPage, with: &WholeAnswer) -> bool {
        let is_known = other.known.as_ref();
        let is_known = is_known.is_some_and(|known| known.form().find(&with.body).is_some());
        let is_page = |without: &WholeAnswer| without.status == 200 && with.status == 200;
        let without = other.without.as_ref().filter(|it| is_page(it));
        is_known
            || without.is_some_and(|without| {
                let bodies = [&without.body[..], &with.body];
                matches!(self.compared_as(&bodies), Comparison::Form(_))
            })
    }

    /// The form of neutral answers that another one has, too.
    fn form_with(&self, answers: &[WholeAnswer], other: &WholeAnswer) -> Option<PageForm> {
        match self.compared(answers) {
            Comparison::Form(form) if form.find(&other.body).is_some() => return Some(form),
            Comparison::Form(_) | Comparison::More => {}
            Comparison::Unlike(_) => return None,
        }
        let bodies = answers.iter().chain([other]);
        let bodies: Vec<&[u8]> = bodies.map(|answer| &answer.body[..]).collect();
        match self.compared_as(&bodies) {
            Comparison::Form(form) => Some(form),
            Comparison::More | Comparison::Unlike(_) => None,
        }
    }

    /// Compares answers of which the last one is to another guest.
    fn compared_as(&self, bodies: &[&[u8]]) -> Comparison {
        let host = guests::named_host(self.request());
        compare(bodies, Guests::LastUnlike, guests::asked_site(&host))
    }

    fn names_moment(&self, neutral: &NeutralAnswers) -> bool {
        let bodies: Vec<&[u8]> = neutral.answers.iter().map(|it| &it.body[..]).collect();
        ComparedPage::Own
            .moment_in(&neutral.form, &bodies)
            .is_some()
    }
}

/// Have all answers the form, and is no number of it the session's? `again`: to the guest of the first one, who comes back.
fn fits_all(neutral: &NeutralAnswers, own: &WholeAnswer, again: &WholeAnswer) -> bool {
    let NeutralAnswers { answers, form } = neutral;
    let [first, second] = &answers[..] else {
        return false;
    };
    let digest = rendered(form, first).digest;
    let mut others = [second, own].into_iter();
    let now = clock::wall_now() / 1000;
    let returned = [&first.body[..], &again.body];
    others.all(|other| form.find(&other.body).is_some() && rendered(form, other).digest == digest)
        && again.status == first.status
        && form.find(&again.body).is_some()
        && form.numbers_of_session(&returned, &[&second.body], now) == SessionNumbers::None
}
