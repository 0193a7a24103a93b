//! Does a page depend on the session that it begins, and does it leave the session as it was? The application is asked as
//! guests would: a few times without a cookie, once with the session that the first answer began, and for other pages of
//! the site with that session. What differs between guests are times, counts and tokens; then only the traits of the
//! visitor are tried, as for any page.

mod other_pages;
mod two_rounds;

use std::sync::Arc;
use std::time::Duration;

use guest_pages::session::{self, SetCookie};
use guest_pages::{
    Comparison, GuestPage, Guests, LearnedForm, PageForm, SessionNumbers, SessionTraces, compare,
    has_key,
};
use guest_pages::{outline, target};
use live_state::evidence::SeenPages;
use page_evidence::{Renderer, Rendering, Trial, TrialOrder, TrialStep, TrialVerdict};
use shared_request::{Trait, TraitSet};
use site::LogLevel;

use super::ahead::{front_if_unknown, less_one_argument, other_pages};
use super::asking::WholeAnswer;
use super::guests;
use super::trial_requests::{TrialRequest, TrialRequests};
use super::tried::{BrokenOff, TrialSource, TriedAnswer, purge, store_shared, stored_body};
use crate::exchange::request::Request;
use crate::log::error_log;

/// So many answers of guests who differ in nothing are compared at most.
const MAX_ANSWERS: usize = 6;
/// So many where a number was the same in all of them, and is another one in an answer to another guest.
const MAX_NEUTRAL: usize = 9;
/// Before a page is made once more where some answers were the same; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(40);
/// So many answers to a guest who comes back are compared where a number stays: it may be how long the page took.
const MAX_RETURNS: usize = 4;

/// After a trial the page is looked at once more, when the second is another.
const CONFIRM_AFTER: Duration = Duration::from_millis(1100);

/// Looks at a page again that guests share since a moment: what is made of the second was the same in all answers of the
/// trial. Its form is noted, and what is stored removed, if so.
pub async fn confirm(seen: &Arc<SeenPages>, source: &mut TrialSource, order: &TrialOrder) {
    tokio::time::sleep(CONFIRM_AFTER).await;
    // The address of the trial may be blocked by now.
    source.moves();
    let mut requests = 0;
    let mut trial = GuestTrial::new(source, &mut requests);
    let Some(known) = seen.guests.page(order.page) else {
        return;
    };
    let Ok(Some(answer)) = trial.ask(ComparedPage::Own).await else {
        return;
    };
    if known.form().find(&answer.body).is_some() {
        return;
    }
    let Ok(mut neutral) = trial.neutral(ComparedPage::Own, answer).await else {
        // It has changed meanwhile: the next guest's answer is compared.
        return seen.evidence.doubt_session(order.page, clock::now());
    };
    // Guests are shown an answer of a moment ago, with other tokens.
    if let Some(stored) = stored_body(trial.requests.source) {
        let stored = WholeAnswer {
            status: neutral.first().map_or(0, |first| first.status),
            fields: Vec::new(),
            body: stored,
        };
        let fits = trial.fits(ComparedPage::Own, &mut neutral, &stored).await;
        if !matches!(fits, Ok(true)) {
            return seen.evidence.doubt_session(order.page, clock::now());
        }
    }
    let unseen = known.known().unseen.iter().cloned();
    trial.unseen = unseen.map(|target| (target, None)).collect();
    trial.note(seen, order, (neutral, known.known().cookies.clone()));
    purge(trial.requests.source);
    store_shared(trial.requests.source);
}

/// Carries out a trial. `own`: the visitor's own answer, where that may be compared. `requests` counts those that are made.
pub async fn carry_out(
    seen: &Arc<SeenPages>,
    source: &mut TrialSource,
    (order, own): (&TrialOrder, Option<WholeAnswer>),
    requests: &mut u32,
) -> Result<TrialVerdict, BrokenOff> {
    let mut trial = GuestTrial::new(source, requests);
    trial.own = own;
    let end = trial.try_page(seen, order).await;
    let is_confirmed = matches!(end, Ok(TrialVerdict::Agree { .. }));
    if trial.is_shared_by_new && !is_confirmed {
        purge(trial.requests.source);
    }
    match end {
        Ok(verdict) => Ok(verdict),
        Err(TrialEnd::BrokenOff(why)) => Err(why),
        Err(TrialEnd::NotShared(why)) => {
            seen.guests.note_refusal(order.page, why);
            let request = trial.request();
            error_log::request(
                request,
                LogLevel::Info,
                format_args!("page that begins a session is not shared: {why}"),
            );
            Ok(TrialVerdict::NotShareable)
        }
    }
}

/// Why a trial ends early.
enum TrialEnd {
    BrokenOff(BrokenOff),
    /// In words for the log.
    NotShared(&'static str),
}

impl From<BrokenOff> for TrialEnd {
    fn from(why: BrokenOff) -> TrialEnd {
        TrialEnd::BrokenOff(why)
    }
}

/// May it be seen by a trial that a page leaves a session as it was?
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayLeave {
    Yes,
    /// It has arguments that no page has shown yet.
    NotYet,
    /// A link that works once does nothing when it is asked for again.
    Never,
}

/// A page that is compared.
#[derive(Clone, Copy)]
enum ComparedPage<'t> {
    /// That of the trial.
    Own,
    /// Another one of the site.
    Other(&'t [u8]),
}

impl ComparedPage<'_> {
    /// The request of a guest who has never been here.
    fn without_session(self) -> TrialRequest {
        match self {
            ComparedPage::Own => TrialRequest::Own(TraitSet::NONE, None),
            ComparedPage::Other(target) => TrialRequest::Other(target.to_vec(), None),
        }
    }

    /// How long the time lasts that the page of the trial names, where it has stayed the same.
    fn moment_in(self, form: &PageForm, answers: &[&[u8]]) -> Option<Duration> {
        match self {
            ComparedPage::Own => form.named_moment(answers.first()?, clock::wall_now() / 1000),
            ComparedPage::Other(_) => None,
        }
    }
}

/// Answers to guests who differ in nothing, and the form that they have in common.
struct NeutralAnswers {
    answers: Vec<WholeAnswer>,
    form: PageForm,
}

impl NeutralAnswers {
    fn first(&self) -> Option<&WholeAnswer> {
        self.answers.first()
    }

    fn have_no_token_in_field(&self) -> Result<(), TrialEnd> {
        let has_in_field = |answer: &WholeAnswer| {
            let tokens = self.form.tokens_of(&answer.body).into_iter().flatten();
            session::has_in_field(&answer.fields, &tokens.collect::<Vec<_>>())
        };
        match self.answers.iter().any(has_in_field) {
            true => Err(TrialEnd::NotShared(
                "a field of the answer has a token in it that the page has, too",
            )),
            false => Ok(()),
        }
    }
}

/// A trial under way.
struct GuestTrial<'t> {
    requests: TrialRequests<'t>,
    /// The cookies of the first answer, as a browser sends them back.
    session: Option<Arc<[u8]>>,
    /// On which other pages the session shows, once they were compared.
    traces: Option<SessionTraces>,
    /// Other pages that did not say it, as they were known then.
    unseen: Vec<(Vec<u8>, Option<Arc<GuestPage>>)>,
    /// Visitors wait for the end of the trial: what will be needed is begun side by side.
    is_awaited: bool,
    /// The visitor's own answer, for a guest without a session.
    own: Option<WholeAnswer>,
    /// Guests without a session share the page already.
    is_shared_by_new: bool,
}

impl<'t> GuestTrial<'t> {
    fn new(source: &'t mut TrialSource, made: &'t mut u32) -> GuestTrial<'t> {
        GuestTrial {
            requests: TrialRequests::new(source, made),
            session: None,
            traces: None,
            unseen: Vec::new(),
            is_awaited: false,
            own: None,
            is_shared_by_new: false,
        }
    }

    fn request(&self) -> &Request {
        self.requests.source.request()
    }

    async fn try_page(
        &mut self,
        seen: &Arc<SeenPages>,
        order: &TrialOrder,
    ) -> Result<TrialVerdict, TrialEnd> {
        if target::is_for_one_visitor(guests::asked_target(self.request())) {
            return Err(TrialEnd::NotShared(
                "its address names an action, or something of one visitor",
            ));
        }
        let traits = order.traits.without(Trait::Session);
        let is_refused = seen.evidence.is_refused(order.page);
        let may_leave = self.may_leave_session(seen);
        match may_leave {
            MayLeave::Never if is_refused => {
                return Err(TrialEnd::NotShared(
                    "it is for one visitor, and its address may have a code in it that is used once",
                ));
            }
            // The page is not asked for.
            MayLeave::NotYet if is_refused => return Err(BrokenOff::NoAnswer.into()),
            _ => {}
        }
        self.is_awaited = order.is_awaited && !is_refused;
        let neutral = TrialRequest::Own(TraitSet::NONE, None);
        let ahead = seen.take_ahead(order.page).filter(|_| self.is_awaited);
        let is_begun = ahead.is_some();
        match ahead {
            Some(mut ahead) => {
                match self.own.is_some() {
                    true if ahead.begun.second.is_some() => {}
                    true => self.own = None,
                    false => ahead.begun.second = None,
                }
                self.requests.take_over(ahead);
            }
            None => {
                self.own = None;
                self.requests.begin(neutral.clone());
            }
        }
        if !traits.is_empty() && !is_refused && self.own.is_none() {
            self.requests.begin_once(TrialRequest::Own(traits, None));
        }
        if self.is_awaited {
            self.begin_without_session(seen, is_begun);
        }
        let first = self.requests.take(neutral).await?;
        let first = first.ok_or(TrialEnd::NotShared("an answer is too long"))?;
        self.session = self.session_of(&first.answer).await?;
        let outline = outline::of(first.answer.status, &first.answer.fields);
        let is_storable = first.is_storable;
        let why = match is_storable {
            false => "an answer may not be stored",
            true => match self.try_shared(seen, order, first.answer).await {
                Err(TrialEnd::NotShared(why)) => why,
                end => return end,
            },
        };
        // Whoever has seen it may be a guest still.
        if may_leave == MayLeave::Yes && self.leaves_session(seen, order, outline).await? {
            seen.guests.note_refusal(order.page, why);
            return Ok(TrialVerdict::LeavesSession {
                answer: outline,
                is_storable,
            });
        }
        Err(TrialEnd::NotShared(why))
    }

    /// Is the page the same for guests, and does it leave a session as it was?
    async fn try_shared(
        &mut self,
        seen: &Arc<SeenPages>,
        order: &TrialOrder,
        first: WholeAnswer,
    ) -> Result<TrialVerdict, TrialEnd> {
        let traits = order.traits.without(Trait::Session);
        if let Some(own) = self.own.take() {
            if let Some(found) = self.look_in_two_rounds(seen, order, &first, &own).await? {
                return self.share_with_new(seen, order, found).await;
            }
            self.requests
                .forget(&TrialRequest::Own(TraitSet::NONE, None));
            if !traits.is_empty() {
                self.requests.begin_once(TrialRequest::Own(traits, None));
            }
        }
        self.begin_with_session(seen, has_key(&first.body));
        let mut neutral = self.neutral(ComparedPage::Own, first).await?;
        let cookies = cookies_of_scripts(&neutral.answers)?;
        if let Some(known) = seen.guests.page(order.page) {
            // It may have places that a moment does not show.
            let mut answers = neutral.answers.iter();
            if answers.all(|answer| known.form().find(&answer.body).is_some()) {
                neutral.form = known.form().clone();
            }
        }
        let verdict = self.traits(&mut neutral, traits).await?;
        if verdict == TrialVerdict::NotShareable {
            return Ok(verdict);
        }
        if let Some(session) = self.session.clone() {
            let again = self.fetch(TraitSet::of(Trait::Session)).await?;
            let again = again.ok_or(TrialEnd::NotShared(
                "a guest who comes back gets what may not be stored",
            ))?;
            if !self.fits(ComparedPage::Own, &mut neutral, &again).await? {
                return Err(TrialEnd::NotShared(
                    "it is another one for a guest who comes back",
                ));
            }
            self.look_at_numbers(&neutral, again).await?;
            let traces = self.look_at_other_pages(seen, &session).await?;
            if traces.are_somewhere() {
                return Err(TrialEnd::NotShared(
                    "another page of the site differs for a guest who has seen it",
                ));
            }
            let has_args = guests::asked_target(self.request()).contains(&b'?');
            // With nothing to compare with, arguments may be what is written into the session.
            if has_args && traces.are_everywhere() {
                return Err(TrialEnd::NotShared(
                    "it has arguments, and no page of the site shows what they do",
                ));
            }
            self.look_at_arguments(seen, &neutral).await?;
        }
        neutral.have_no_token_in_field()?;
        self.note(seen, order, (neutral, cookies));
        let host = guests::named_host(self.request());
        let is_as_it_was = |(target, known): &(Vec<u8>, Option<Arc<GuestPage>>)| {
            seen.guests.at(&host, target).as_ref().map(Arc::as_ptr)
                == known.as_ref().map(Arc::as_ptr)
        };
        match self.unseen.iter().all(is_as_it_was) {
            true => Ok(verdict),
            // It was compared meanwhile, and may say something by now.
            false => Err(BrokenOff::NoAnswer.into()),
        }
    }

    /// Is no number of the page the session's? A number that stays may be a time or a duration, and is looked at again.
    async fn look_at_numbers(
        &mut self,
        neutral: &NeutralAnswers,
        again: WholeAnswer,
    ) -> Result<(), TrialEnd> {
        const NOT_SHARED: TrialEnd = TrialEnd::NotShared("a number in it is the session's");
        let mut returns = vec![again];
        loop {
            let bodies: Vec<&[u8]> = neutral.answers.iter().map(|it| &it.body[..]).collect();
            let Some((first, others)) = bodies.split_first() else {
                return Err(NOT_SHARED);
            };
            let mut own = vec![*first];
            own.extend(returns.iter().map(|it| &it.body[..]));
            let now = clock::wall_now() / 1000;
            match neutral.form.numbers_of_session(&own, others, now) {
                SessionNumbers::None => return Ok(()),
                SessionNumbers::Perhaps if returns.len() < MAX_RETURNS => {}
                SessionNumbers::Perhaps | SessionNumbers::Some => return Err(NOT_SHARED),
            }
            // Whole seconds have passed by the last one.
            if returns.len() + 1 == MAX_RETURNS {
                tokio::time::sleep(CONFIRM_AFTER).await;
            }
            let again = self.fetch(TraitSet::of(Trait::Session)).await?;
            returns.push(again.ok_or(NOT_SHARED)?);
        }
    }

    /// May it be seen by a trial that a page that is not shared leaves a session as it was?
    fn may_leave_session(&self, seen: &SeenPages) -> MayLeave {
        let request = self.request();
        let (host, own) = (guests::named_host(request), guests::asked_target(request));
        let path = guests::path_of(own);
        let arguments = guests::less_one_argument(own);
        let mut arguments = arguments.iter().map(|(argument, _)| argument);
        if target::has_code(own) {
            MayLeave::Never
        } else if arguments.all(|it| seen.guests.is_familiar_argument(&host, path, it)) {
            MayLeave::Yes
        } else {
            MayLeave::NotYet
        }
    }

    /// The session by which it is seen what the page does: the one that it begins, or that of the site's first page.
    async fn session_of(&mut self, first: &WholeAnswer) -> Result<Option<Arc<[u8]>>, TrialEnd> {
        if let Some(session) = cookies_sent_back(first) {
            return Ok(Some(session));
        }
        // A cookie that is removed is none.
        if session::limiter(&first.fields).is_some() {
            // The address names it: it is somebody's.
            return Err(TrialEnd::NotShared("its session is in the address"));
        }
        let front = self.ask_for(b"/", None).await?;
        Ok(cookies_sent_back(&front))
    }

    /// Begins what will be asked for without a session, since visitors wait for the end of the trial. `is_begun`: its
    /// first answer is there soon, and what follows from that goes before.
    fn begin_without_session(&mut self, seen: &SeenPages, is_begun: bool) {
        if let Some(front) = front_if_unknown(self.request(), seen) {
            let front = TrialRequest::Other(front.to_vec(), None);
            self.requests.begin_once(front);
        }
        if !is_begun {
            self.begin_less_one_argument(seen);
        }
    }

    fn begin_less_one_argument(&mut self, seen: &SeenPages) {
        for (_, target) in less_one_argument(self.request(), seen) {
            self.requests.begin_once(TrialRequest::Other(target, None));
        }
    }

    /// Begins what is asked for once the first answer is there, and with it a session. `has_key`: it takes a third one.
    fn begin_with_session(&mut self, seen: &SeenPages, has_key: bool) {
        let again = |times: usize| if has_key { times + 1 } else { times };
        let neutral = TrialRequest::Own(TraitSet::NONE, None);
        match self.is_awaited {
            true => (0..again(1)).for_each(|_| self.requests.begin(neutral.clone())),
            false => self.requests.begin_once(neutral),
        }
        let Some(session) = self.session.clone() else {
            return;
        };
        let with = Some(session.clone());
        self.requests
            .begin_once(TrialRequest::Own(TraitSet::of(Trait::Session), with));
        if let Some(front) = front_if_unknown(self.request(), seen) {
            let front = TrialRequest::Other(front.to_vec(), None);
            self.requests.begin_once(front.clone());
            if self.is_awaited {
                (0..again(1)).for_each(|_| self.requests.begin(front.clone()));
            }
        }
        if self.is_awaited {
            self.begin_less_one_argument(seen);
        }
        let most = if self.is_awaited { usize::MAX } else { 1 };
        for target in other_pages(self.request(), seen).into_iter().take(most) {
            let with = Some(session.clone());
            self.requests.begin_once(TrialRequest::Other(target, with));
        }
    }

    /// The form that answers to guests have in common.
    async fn neutral(
        &mut self,
        of: ComparedPage<'_>,
        first: WholeAnswer,
    ) -> Result<NeutralAnswers, TrialEnd> {
        let are_side_by_side = self.requests.begun_of(&of.without_session()) > 1;
        let mut answers = vec![first];
        // How long the time lasts that the page names.
        let mut moment = None;
        while answers.len() < MAX_ANSWERS + usize::from(moment.is_some()) {
            match moment {
                Some(moment) => tokio::time::sleep(moment).await,
                None => pause(answers.len()).await,
            }
            let answer = self.ask(of).await?;
            let answer = answer.ok_or(TrialEnd::NotShared("an answer may not be stored"))?;
            let [first, ..] = &answers[..] else { break };
            if first.status != answer.status {
                return Err(TrialEnd::NotShared("guests get different statuses"));
            }
            answers.push(answer);
            let mut compared = self.compared(&answers);
            if let (Comparison::Unlike(_), true, [_, second, third]) =
                (&compared, are_side_by_side, &mut answers[..])
            {
                // They were made side by side: what is counted has risen in this order, or in the other.
                std::mem::swap(second, third);
                compared = self.compared(&answers);
            }
            match compared {
                Comparison::Form(form) if moment.is_some() => {
                    return Ok(NeutralAnswers { answers, form });
                }
                Comparison::Form(form) => {
                    // What was begun besides may be of the same moment as these.
                    self.requests.forget(&of.without_session());
                    let bodies: Vec<&[u8]> = answers.iter().map(|it| &it.body[..]).collect();
                    moment = of.moment_in(&form, &bodies);
                    if moment.is_none() {
                        return Ok(NeutralAnswers { answers, form });
                    }
                }
                Comparison::More => {}
                Comparison::Unlike(_) => break,
            }
        }
        Err(TrialEnd::NotShared(
            "guests get pages that differ in more than times, counts and tokens",
        ))
    }

    /// Compares answers to neutral guests.
    fn compared(&self, answers: &[WholeAnswer]) -> Comparison {
        let bodies: Vec<&[u8]> = answers.iter().map(|answer| &answer.body[..]).collect();
        let host = guests::named_host(self.request());
        compare(&bodies, Guests::Alike, guests::asked_site(&host))
    }

    /// Is the answer one of the form? The form may get places for tokens that are bound to what is another in this
    /// answer, and for numbers that were the same by chance.
    async fn fits(
        &mut self,
        of: ComparedPage<'_>,
        neutral: &mut NeutralAnswers,
        answer: &WholeAnswer,
    ) -> Result<bool, TrialEnd> {
        if neutral
            .first()
            .is_none_or(|first| first.status != answer.status)
        {
            return Ok(false);
        }
        let host = guests::named_host(self.request());
        loop {
            if neutral.form.find(&answer.body).is_some() {
                return Ok(true);
            }
            match wider(&host, neutral, answer) {
                Comparison::Form(form) => {
                    neutral.form = form;
                    return Ok(true);
                }
                Comparison::More if neutral.answers.len() < MAX_NEUTRAL => {}
                Comparison::More | Comparison::Unlike(_) => return Ok(false),
            }
            // A text that is made of the time is another one a little later.
            pause(neutral.answers.len()).await;
            let Some(more) = self.ask(of).await? else {
                return Ok(false);
            };
            neutral.answers.push(more);
        }
    }

    /// Finds out which traits of the visitor matter. A token that is bound to one of them (the browser) is a token
    /// all the same: then the form has one place more.
    async fn traits(
        &mut self,
        neutral: &mut NeutralAnswers,
        traits: TraitSet,
    ) -> Result<TrialVerdict, TrialEnd> {
        if traits.is_empty() {
            return Ok(TrialVerdict::Agree { each_time: false });
        }
        let mut answers: Vec<(TraitSet, Option<WholeAnswer>)> = Vec::new();
        loop {
            let mut trial = Trial::new(traits);
            for answer in &neutral.answers {
                trial.note(TraitSet::NONE, Some(rendered(&neutral.form, answer)));
            }
            for (with, answer) in &answers {
                trial.note(
                    *with,
                    answer
                        .as_ref()
                        .map(|answer| rendered(&neutral.form, answer)),
                );
            }
            let with = match trial.next() {
                TrialStep::Done(verdict) => return Ok(verdict),
                TrialStep::Fetch(with) | TrialStep::FetchLater(with) => with,
            };
            let answer = self.fetch(with).await?;
            if let Some(answer) = &answer
                && !with.is_empty()
            {
                self.fits(ComparedPage::Own, neutral, answer).await?;
            }
            answers.push((with, answer));
        }
    }

    /// Asks as a guest does who has never been here. `None`: the answer may not be stored.
    async fn ask(&mut self, of: ComparedPage<'_>) -> Result<Option<WholeAnswer>, BrokenOff> {
        match of {
            ComparedPage::Own => self.fetch(TraitSet::NONE).await,
            ComparedPage::Other(target) => self.ask_for(target, None).await.map(Some),
        }
    }

    async fn fetch(&mut self, with: TraitSet) -> Result<Option<WholeAnswer>, BrokenOff> {
        let session = self.session.clone().filter(|_| with.has(Trait::Session));
        let tried = self.requests.take(TrialRequest::Own(with, session)).await?;
        Ok(tried.and_then(TriedAnswer::storable))
    }

    /// Asks for another page of the site, as a browser that has never been here, or with a session.
    async fn ask_for(
        &mut self,
        target: &[u8],
        session: Option<&Arc<[u8]>>,
    ) -> Result<WholeAnswer, BrokenOff> {
        let wanted = TrialRequest::Other(target.to_vec(), session.cloned());
        let tried = self.requests.take(wanted).await?;
        tried.map(|it| it.answer).ok_or(BrokenOff::NoAnswer)
    }

    /// Notes what was found out: the form, and the cookies that all guests are given.
    /// `cookies`: whose tokens scripts read.
    fn note(
        &self,
        seen: &SeenPages,
        order: &TrialOrder,
        (neutral, cookies): (NeutralAnswers, Vec<Vec<u8>>),
    ) {
        let request = self.request();
        if let [one, other, ..] = &neutral.answers[..] {
            note_constants(seen, request.received.host(), one, other);
        }
        let digest = neutral
            .first()
            .map_or(0, |first| rendered(&neutral.form, first).digest);
        let at = clock::now();
        let is_page = neutral
            .first()
            .is_some_and(|first| outline::is_html_page(first.status, &first.fields));
        if let Some(rules) = self.requests.source.shared_rules() {
            let unseen = self.unseen.iter().map(|(target, _)| target.clone());
            let form = (neutral.form, cookies, unseen.collect());
            let page = guests::token_page(request, rules, form);
            let noted = seen
                .guests
                .note(order.page, page, LearnedForm { digest, at }, is_page);
            let known = noted.known();
            // From now on it says what they do to a session.
            for unproven in seen.guests.unproven_by(&known.host, &known.target) {
                seen.evidence.doubt_session(unproven, at);
                seen.announce(unproven);
            }
        }
    }
}

/// Waits before a page is made once more that was made so often.
async fn pause(made: usize) {
    if let Some(doubled) = u32::try_from(made)
        .ok()
        .and_then(|made| made.checked_sub(3))
    {
        tokio::time::sleep(FIRST_PAUSE * (1 << doubled.min(5))).await;
    }
}

/// The form that an answer to another guest has in common with the neutral ones.
fn wider(host: &[u8], neutral: &NeutralAnswers, answer: &WholeAnswer) -> Comparison {
    let bodies = neutral.answers.iter().chain([answer]);
    let bodies: Vec<&[u8]> = bodies.map(|answer| &answer.body[..]).collect();
    compare(&bodies, Guests::LastUnlike, guests::asked_site(host))
}

/// The cookies with a token that a script of the page may read.
fn cookies_of_scripts(answers: &[WholeAnswer]) -> Result<Vec<Vec<u8>>, TrialEnd> {
    if !answers
        .iter()
        .any(|answer| session::has_script(&answer.body))
    {
        return Ok(Vec::new());
    }
    let fields: Vec<&[session::Field]> = answers.iter().map(|it| &it.fields[..]).collect();
    session::tokens_of_scripts(&fields).ok_or(TrialEnd::NotShared(
        "it gives scripts a token of the session in a cookie, now and then",
    ))
}

/// The answer as it is compared: without what stands at the places of the form.
fn rendered(form: &PageForm, answer: &WholeAnswer) -> Rendering {
    let fields = answer
        .fields
        .iter()
        .map(|(name, value)| (&name[..], &value[..]));
    let mut renderer = Renderer::new(answer.status, fields, true);
    form.render(&answer.body, &mut renderer);
    renderer.finish()
}

/// The cookies that an answer sets, as a browser sends them back.
fn cookies_sent_back(answer: &WholeAnswer) -> Option<Arc<[u8]>> {
    let cookies = session::set_cookies(&answer.fields);
    let pairs: Vec<Vec<u8>> = cookies
        .iter()
        .filter(|cookie| !cookie.is_removed)
        .map(|cookie| [cookie.name, b"=", cookie.value].concat())
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(&b"; "[..]).into())
}

/// Cookies that both guests were given are given to all.
fn note_constants(seen: &SeenPages, site: &[u8], one: &WholeAnswer, other: &WholeAnswer) {
    let known = &seen.guests.cookies;
    let others = session::set_cookies(&other.fields);
    let is_common = |cookie: &&SetCookie<'_>| !cookie.is_removed && others.contains(cookie);
    for cookie in session::set_cookies(&one.fields).iter().filter(is_common) {
        known.note_constant(site, known.mark(cookie.name, cookie.value), clock::now());
    }
}
