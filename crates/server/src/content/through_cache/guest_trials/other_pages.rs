//! What a page does to the session of a guest is seen by other pages of the site: by the first one, by kinds that guests share,
//! and by the page itself without an argument.

use std::sync::Arc;

use guest_pages::{Comparison, GuestPage, SessionTraces, outline};
use live_state::evidence::SeenPages;
use page_evidence::{AnswerOutline, TrialOrder};
use shared_request::{Trait, TraitSet};
use site::LogLevel;

use super::{ComparedPage, GuestTrial, NeutralAnswers, TrialEnd, wider};
use crate::content::through_cache::ahead::{less_one_argument, other_pages};
use crate::content::through_cache::asking::WholeAnswer;
use crate::content::through_cache::guests;
use crate::content::through_cache::trial_requests::TrialRequest;
use crate::content::through_cache::tried::BrokenOff;
use crate::log::error_log;

impl GuestTrial<'_> {
    /// Does a page that is not shared (a redirect to the log-in form) leave a visitor's session as it was, so that other
    /// pages of the site are the same for who has seen it? It is noted on which pages it shows.
    pub(super) async fn leaves_session(
        &mut self,
        seen: &Arc<SeenPages>,
        order: &TrialOrder,
        first: AnswerOutline,
    ) -> Result<bool, TrialEnd> {
        let Some(session) = self.session.clone() else {
            return Ok(false);
        };
        // The session may be that of the site's first page.
        let again = TrialRequest::Own(TraitSet::of(Trait::Session), Some(session.clone()));
        let Some(again) = self.requests.take(again).await? else {
            return Ok(false);
        };
        let again = outline::of(again.answer.status, &again.answer.fields);
        if again.digest != first.digest {
            return Ok(false);
        }
        let traces = self.look_at_other_pages(seen, &session).await?;
        let is_left = !traces.are_everywhere();
        if is_left {
            seen.guests.note_traces(order.page, traces);
        }
        Ok(is_left)
    }

    /// Are other pages of the site the same for a guest with this session as for one without? Its first page, and some that
    /// guests share: the cart, if the page has put something into it.
    pub(super) async fn look_at_other_pages(
        &mut self,
        seen: &Arc<SeenPages>,
        session: &Arc<[u8]>,
    ) -> Result<SessionTraces, TrialEnd> {
        if let Some(traces) = &self.traces {
            return Ok(traces.clone());
        }
        let host = guests::named_host(self.request());
        let others = other_pages(self.request(), seen);
        for target in &others {
            let with = TrialRequest::Other(target.clone(), Some(session.clone()));
            self.requests.begin_once(with);
        }
        let mut traces = SessionTraces::default();
        for target in others {
            let known = seen.guests.at(&host, &target);
            let is_same = self.is_same(seen, (&target, known.as_deref()), session);
            let Some(is_same) = is_same.await? else {
                self.unseen.push((target, known));
                continue;
            };
            let look = seen.guests.look(&host, &target);
            traces.note(look, !is_same);
            if !is_same {
                seen.guests.note_shows_session(look);
            }
        }
        Ok(self.traces.insert(traces).clone())
    }

    /// Is the page another one without each of its arguments? One that shows nothing may be for the session: a currency, a
    /// partner's link. Not asked where pages whose addresses look alike were found to be shared.
    pub(super) async fn look_at_arguments(
        &mut self,
        seen: &Arc<SeenPages>,
        neutral: &NeutralAnswers,
    ) -> Result<(), TrialEnd> {
        let request = self.request();
        let host = guests::named_host(request);
        let path = guests::path_of(guests::asked_target(request)).to_vec();
        let less = less_one_argument(self.request(), seen);
        for (_, target) in &less {
            let without = TrialRequest::Other(target.clone(), None);
            self.requests.begin_once(without);
        }
        for (argument, target) in less {
            let without = self.ask_for(&target, None).await?;
            // A script may fail without its argument (500); these say nothing of it.
            if matches!(without.status, 429 | 502..=504) {
                return Err(TrialEnd::NotShared(
                    "without an argument it was refused, or failed",
                ));
            }
            let is_alike = neutral
                .first()
                .is_some_and(|first| first.status == without.status);
            if is_alike
                && matches!(
                    wider(&host, neutral, &without),
                    Comparison::Form(_) | Comparison::More
                )
            {
                return Err(TrialEnd::NotShared(
                    "an argument shows nothing, and may be for the session",
                ));
            }
            seen.guests.note_shown(&host, &path, &argument);
        }
        Ok(())
    }

    /// Is a page the same for a guest with this session? `None`: it differs between guests, or is none.
    ///
    /// # Errors
    /// It says nothing at this moment, although guests share it: the page of this trial is tried anew.
    pub(super) async fn is_same(
        &mut self,
        seen: &SeenPages,
        (target, known): (&[u8], Option<&GuestPage>),
        session: &Arc<[u8]>,
    ) -> Result<Option<bool>, TrialEnd> {
        let is_same = self.compare_other(target, known, session).await?;
        if is_same.is_none()
            && let Some(known) = known
            && seen.is_shared_by_new(known)
        {
            // Nobody may ask for it any more, and it would end all trials. The first page is asked for.
            if target != b"/" {
                seen.evidence.doubt_session(known.name(), clock::now());
            }
            error_log::request(
                self.request(),
                LogLevel::Info,
                format_args!(
                    "page that begins a session is not shared yet: {} says nothing of it",
                    String::from_utf8_lossy(target)
                ),
            );
            return Err(BrokenOff::NoAnswer.into());
        }
        Ok(is_same)
    }

    async fn compare_other(
        &mut self,
        target: &[u8],
        known: Option<&GuestPage>,
        session: &Arc<[u8]>,
    ) -> Result<Option<bool>, TrialEnd> {
        let mut target = target.to_vec();
        let mut with = self.ask_for(&target, Some(session)).await?;
        if known.is_some_and(|known| known.form().find(&with.body).is_some()) {
            return Ok(Some(true));
        }
        // The known form may be of another moment.
        let host = guests::named_host(self.request());
        let mut without = self.ask_for(&target, None).await?;
        if let Some(led) = same_site_target(&host, &without) {
            target = led;
            without = self.ask_for(&target, None).await?;
            with = self.ask_for(&target, Some(session)).await?;
        }
        match without.status {
            200 => {}
            // The application has no time, or refuses whoever asks often.
            429 | 500.. if known.is_none() => return Err(BrokenOff::NoAnswer.into()),
            _ => return Ok(None),
        }
        let of = ComparedPage::Other(&target);
        let neutral = match self.neutral(of, without).await {
            // It may have changed between two answers, or a token may look like none.
            Err(TrialEnd::NotShared(_)) if known.is_none() => {
                self.requests.forget(&of.without_session());
                let without = self.ask_for(&target, None).await?;
                self.neutral(of, without).await
            }
            neutral => neutral,
        };
        let mut neutral = match neutral {
            Err(TrialEnd::NotShared(_)) => return Ok(None),
            neutral => neutral?,
        };
        if self.fits(of, &mut neutral, &with).await? {
            return Ok(Some(true));
        }
        // A number that rises with each guest is known by its order.
        with = self.ask_for(&target, Some(session)).await?;
        self.fits(of, &mut neutral, &with).await.map(Some)
    }
}

/// Returns the target of a redirect within this site.
fn same_site_target(host: &[u8], answer: &WholeAnswer) -> Option<Vec<u8>> {
    if !(300..400).contains(&answer.status) {
        return None;
    }
    let location = answer.field(b"location")?;
    let is_relative = location.starts_with(b"/") && !location.starts_with(b"//");
    if is_relative {
        return Some(location.to_vec());
    }
    let rest = location
        .strip_prefix(b"https://")
        .or(location.strip_prefix(b"http://"))?;
    let target = rest.strip_prefix(host)?;
    target.starts_with(b"/").then(|| target.to_vec())
}
