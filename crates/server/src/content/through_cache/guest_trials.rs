//! Does a page depend on the session that it begins, and does it leave the session as it was? The application is asked as
//! guests would: a few times without a cookie, once with the session that the first answer began, and for the site's
//! first page with that session. What differs between guests are times, counts and tokens; then only the traits of the
//! visitor are tried, as for any page.

use std::sync::Arc;

use guest_pages::session::{self, SetCookie, without_links};
use guest_pages::{Comparison, GuestPage, PageForm, compare};
use live_state::evidence::SeenPages;
use page_evidence::{PageName, Renderer, Rendering, Trial, TrialOrder, TrialStep, TrialVerdict};
use shared_request::{Trait, TraitSet};

use super::asking::{self, WholeAnswer};
use super::guests;
use super::tried::{BrokenOff, TrialSource, TriedAnswer, fetch};

/// So many answers are compared at most.
const MOST_ANSWERS: usize = 4;
/// So many pages of the site, beside its first one, are asked for with a session; twice as many where the page has
/// arguments.
const MOST_WITNESSES: usize = 2;

/// Carries out a trial. `requests` counts those that are made.
pub async fn carry_out(
    seen: &Arc<SeenPages>,
    source: &mut TrialSource,
    order: &TrialOrder,
    requests: &mut u32,
) -> Result<TrialVerdict, BrokenOff> {
    let mut trial = GuestTrial {
        source,
        requests,
        session: None,
    };
    let Some((form, answers)) = trial.common_form().await? else {
        return Ok(TrialVerdict::NotShareable);
    };
    let [first, second, ..] = &answers[..] else {
        return Err(BrokenOff::NoAnswer);
    };
    let verdict = trial
        .traits(&form, order.traits.without(Trait::Session), [first, second])
        .await?;
    if verdict == TrialVerdict::NotShareable
        || !trial.leaves_session_alone(seen, &form, first).await?
    {
        return Ok(TrialVerdict::NotShareable);
    }
    trial.note_page(seen, order.page, form);
    note_constants(seen, trial.source, first, second);
    Ok(verdict)
}

/// A trial under way.
struct GuestTrial<'t> {
    source: &'t mut TrialSource,
    requests: &'t mut u32,
    /// The cookies of the first answer, as a browser sends them back.
    session: Option<Arc<[u8]>>,
}

impl GuestTrial<'_> {
    /// The form that answers to guests have in common, and the answers; `None`: they have none, or may not be stored.
    async fn common_form(&mut self) -> Result<Option<(PageForm, Vec<TriedAnswer>)>, BrokenOff> {
        let mut answers: Vec<TriedAnswer> = Vec::new();
        while answers.len() < MOST_ANSWERS {
            let Some(answer) = self.fetch(TraitSet::NONE).await? else {
                return Ok(None);
            };
            if answers.is_empty() {
                self.session = cookies_sent_back(&answer);
            }
            let is_alike = answers
                .first()
                .is_none_or(|first| first.status == answer.status);
            answers.push(answer);
            if !is_alike {
                return Ok(None);
            }
            let bodies: Vec<&[u8]> = answers.iter().map(|answer| &answer.body[..]).collect();
            match compare(&bodies) {
                Comparison::Form(form) => return Ok(Some((form, answers))),
                Comparison::More => {}
                Comparison::Unlike(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Finds out which traits of the visitor matter.
    async fn traits(
        &mut self,
        form: &PageForm,
        traits: TraitSet,
        neutral: [&TriedAnswer; 2],
    ) -> Result<TrialVerdict, BrokenOff> {
        if traits.is_empty() {
            return Ok(TrialVerdict::Agree { each_time: false });
        }
        let mut trial = Trial::new(traits);
        for answer in neutral {
            trial.note(TraitSet::NONE, Some(rendered(form, answer)));
        }
        loop {
            match trial.next() {
                TrialStep::Done(verdict) => return Ok(verdict),
                TrialStep::Fetch(with) => {
                    let answer = self.fetch(with).await?;
                    trial.note(with, answer.map(|answer| rendered(form, &answer)));
                }
            }
        }
    }

    /// Is the page the same for a guest who comes back, and the site's first page, too?
    async fn leaves_session_alone(
        &mut self,
        seen: &Arc<SeenPages>,
        form: &PageForm,
        first: &TriedAnswer,
    ) -> Result<bool, BrokenOff> {
        let Some(session) = self.session.clone() else {
            return Ok(true);
        };
        let Some(again) = self.fetch(TraitSet::of(Trait::Session)).await? else {
            return Ok(false);
        };
        if again.status != first.status || form.find(&again.body).is_none() {
            return Ok(false);
        }
        self.leaves_other_pages(seen, &session).await
    }

    /// Are other pages of the site the same for a guest with this session as for one without? Its first page, and some that
    /// guests share: a cart, where one was visited.
    async fn leaves_other_pages(
        &mut self,
        seen: &Arc<SeenPages>,
        session: &[u8],
    ) -> Result<bool, BrokenOff> {
        let request = self.source.request();
        let host = guests::named_host(request);
        let own = request.received.target().to_vec();
        let has_args = !request.route.args.is_empty();
        if own != b"/" {
            let known = seen.guests.at(&host, b"/");
            let same = self.is_same(b"/", known.as_deref(), session).await?;
            // With nothing to compare with, arguments may be what is written into the session.
            if same == Some(false) || same.is_none() && has_args {
                return Ok(false);
            }
        }
        let most = if has_args {
            2 * MOST_WITNESSES
        } else {
            MOST_WITNESSES
        };
        let witnesses = seen.guests.witnesses(&host).into_iter();
        let others =
            witnesses.filter(|page| page.known().target != own && page.known().target != b"/");
        for page in others.take(most) {
            let target = page.known().target.clone();
            if self.is_same(&target, Some(&page), session).await? == Some(false) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Is a page the same for a guest with this session? `None`: it differs between guests, or is none.
    async fn is_same(
        &mut self,
        target: &[u8],
        known: Option<&GuestPage>,
        session: &[u8],
    ) -> Result<Option<bool>, BrokenOff> {
        if let Some(known) = known {
            let with = self.ask(target, Some(session)).await?;
            if known.form().find(&with.body).is_some() {
                return Ok(Some(true));
            }
        }
        // What is known may be of another moment.
        let host = guests::named_host(self.source.request());
        let mut target = target.to_vec();
        let mut without = self.ask(&target, None).await?;
        if let Some(led) = same_site_target(&host, &without) {
            target = led;
            without = self.ask(&target, None).await?;
        }
        if without.status != 200 {
            return Ok(None);
        }
        let mut bodies = vec![without.body];
        loop {
            bodies.push(self.ask(&target, None).await?.body);
            let all: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
            match compare(&all) {
                Comparison::Form(form) => {
                    let with = self.ask(&target, Some(session)).await?;
                    return Ok(Some(with.status == 200 && form.find(&with.body).is_some()));
                }
                Comparison::More if bodies.len() < MOST_ANSWERS => {}
                Comparison::More | Comparison::Unlike(_) => return Ok(None),
            }
        }
    }

    async fn fetch(&mut self, with: TraitSet) -> Result<Option<TriedAnswer>, BrokenOff> {
        *self.requests += 1;
        let session = self.session.clone().filter(|_| with.has(Trait::Session));
        let mut answer = match fetch(self.source, with, session).await {
            Err(BrokenOff::TooLong) => return Ok(None),
            answer => answer?,
        };
        if let Some(answer) = &mut answer {
            answer.body = without_links(&answer.fields, std::mem::take(&mut answer.body));
        }
        Ok(answer)
    }

    /// Asks for another page of the site, as a browser that has never been here, or with a session.
    async fn ask(
        &mut self,
        target: &[u8],
        session: Option<&[u8]>,
    ) -> Result<WholeAnswer, BrokenOff> {
        *self.requests += 1;
        let request = self.source.request();
        let mut head = [b"GET ", target, b" HTTP/1.1\r\nHost: "].concat();
        head.extend_from_slice(&guests::named_host(request));
        head.extend_from_slice(b"\r\nUser-Agent: Mozilla/5.0\r\nAccept: text/html,*/*;q=0.8\r\n");
        if let Some(session) = session {
            head.extend_from_slice(b"Cookie: ");
            head.extend_from_slice(session);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let mut answer = asking::ask(request, head)
            .await
            .ok_or(BrokenOff::NoAnswer)?;
        answer.body = without_links(&answer.fields, answer.body);
        Ok(answer)
    }

    fn note_page(
        &self,
        seen: &SeenPages,
        name: PageName,
        form: PageForm,
    ) -> Option<Arc<GuestPage>> {
        let request = self.source.request();
        let rules = self.source.shared_rules()?;
        Some(
            seen.guests
                .note(name, guests::token_page(request, rules, form)),
        )
    }
}

/// The answer as it is compared: without what stands at the places of the form.
fn rendered(form: &PageForm, answer: &TriedAnswer) -> Rendering {
    let fields = answer
        .fields
        .iter()
        .map(|(name, value)| (&name[..], &value[..]));
    let mut renderer = Renderer::new(answer.status, fields, true);
    if !form.read_blank(&answer.body, &mut |piece| renderer.read(piece)) {
        renderer.read(&answer.body);
    }
    renderer.finish()
}

/// The cookies that an answer sets, as a browser sends them back.
fn cookies_sent_back(answer: &TriedAnswer) -> Option<Arc<[u8]>> {
    let cookies = session::set_cookies(&answer.fields);
    let pairs: Vec<Vec<u8>> = cookies
        .iter()
        .filter(|cookie| !cookie.is_removed)
        .map(|cookie| [cookie.name, b"=", cookie.value].concat())
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(&b"; "[..]).into())
}

/// Where a redirect leads, if that is this site.
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

/// Cookies that both guests were given are given to all.
fn note_constants(seen: &SeenPages, source: &TrialSource, one: &TriedAnswer, other: &TriedAnswer) {
    let known = &seen.guests.cookies;
    let site = source.request().received.host();
    let others = session::set_cookies(&other.fields);
    let is_common = |cookie: &&SetCookie<'_>| !cookie.is_removed && others.contains(cookie);
    for cookie in session::set_cookies(&one.fields).iter().filter(is_common) {
        known.note_constant(site, known.mark(cookie.name, cookie.value));
    }
}
