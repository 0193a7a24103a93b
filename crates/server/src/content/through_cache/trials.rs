//! Trials: why a visitor's own answer and the shared one differ is found out by asking the application again, in
//! the background, with one thing altered at a time (`page_evidence::Trial`). A trial stands in the line of
//! refreshes, and ends where the upstream has no time for it.

use std::sync::Arc;
use std::time::Duration;

use live_state::evidence::SeenPages;
use page_evidence::{
    Renderer, Rendering, SessionStanding, Trial, TrialOrder, TrialStep, TrialVerdict,
};
use site::LogLevel;
use tokio::time::timeout;

use super::asking::WholeAnswer;
use super::guest_trials;
use super::tried::{TrialSource, fetch, purge, store_shared, stored_body};
use crate::log::error_log;

/// A trial that takes longer is given up.
const MAX_TRIAL: Duration = Duration::from_secs(60);
/// The time after which another second has begun.
const NEXT_SECOND: Duration = Duration::from_millis(1100);

/// Why a page is not shared that begins no session.
const NEW_KEY: &str = "a form has a key that is new each time";

/// Begins a trial, in a task of its own. `own`: the visitor's own answer, where that may be compared.
pub fn begin(
    seen: &Arc<SeenPages>,
    source: TrialSource,
    (order, own): (TrialOrder, Option<WholeAnswer>),
) {
    let seen = seen.clone();
    tokio::spawn(Box::pin(async move {
        let mut run = TrialRun {
            seen: seen.clone(),
            order,
            requests: 0,
            verdict: None,
        };
        let mut source = source.for_trial(&order);
        let _ = timeout(MAX_TRIAL, run.carry_out(&mut source, own)).await;
        let is_shared = matches!(run.verdict, Some(TrialVerdict::Agree { .. }));
        let is_to_be_stored = run.order.of_session && is_shared;
        drop(run);
        if is_to_be_stored {
            // The next guest finds it.
            store_shared(&mut source);
            guest_trials::confirm(&seen, &mut source, &order).await;
        }
    }));
}

/// A trial under way; its result is reported when it is dropped.
struct TrialRun {
    seen: Arc<SeenPages>,
    order: TrialOrder,
    requests: u32,
    verdict: Option<TrialVerdict>,
}

impl TrialRun {
    async fn carry_out(&mut self, source: &mut TrialSource, own: Option<WholeAnswer>) {
        if self.order.of_session {
            let order = (&self.order, own);
            let tried = guest_trials::carry_out(&self.seen, source, order, &mut self.requests);
            if let Ok(verdict) = tried.await {
                self.end(source, verdict);
            }
            return;
        }
        // What is removed from each request may show in the visitor's own answer.
        let own = self.order.own;
        let own = own.filter(|_| !source.removes_something() && !source.varies());
        let mut trial = Trial::new(self.order.traits).of_answer(own);
        // Of the shared request.
        let mut bodies: Vec<Vec<u8>> = Vec::new();
        let mut is_purged = false;
        loop {
            if !is_purged && trial.is_unexplained_yet() {
                // Nobody is shown an older page while more is asked for.
                purge(source);
                is_purged = true;
            }
            let with = match trial.next() {
                TrialStep::Done(TrialVerdict::Agree { each_time: true })
                    if have_form_keys(&bodies) =>
                {
                    error_log::request(
                        source.request(),
                        LogLevel::Info,
                        format_args!("page is not shared: {NEW_KEY}"),
                    );
                    let guests = &self.seen.guests;
                    guests.note_refusal(self.order.page, NEW_KEY);
                    return self.end(source, TrialVerdict::NotShareable);
                }
                TrialStep::Done(verdict) => return self.end(source, verdict),
                TrialStep::Fetch(with) => with,
                TrialStep::FetchLater(with) => {
                    tokio::time::sleep(NEXT_SECOND).await;
                    with
                }
            };
            self.requests += 1;
            match fetch(source, with, None).await {
                Ok(tried) => {
                    let answer = tried.storable();
                    trial.note(with, answer.as_ref().map(rendered));
                    if let Some(answer) = answer.filter(|_| with.is_empty()) {
                        bodies.push(answer.body);
                    }
                }
                Err(_) => return,
            }
        }
    }

    fn is_shared_by_new(&self) -> bool {
        self.seen.evidence.session(self.order.page) == SessionStanding::SharedByNew
    }

    fn end(&mut self, source: &mut TrialSource, verdict: TrialVerdict) {
        match verdict {
            // The answer to the shared request may wait for this verdict, or it is shown since the trial's first rounds.
            TrialVerdict::Agree { .. }
                if self.order.of_session
                    && (self.is_shared_by_new() || stored_body(source).is_none()) => {}
            // The visitor's answer and the shared one are the same by now: the stored response is older, as it may be
            // where nothing explains the visitor's answer.
            TrialVerdict::Agree { each_time: false }
            | TrialVerdict::Unexplained
            | TrialVerdict::NotShareable => purge(source),
            TrialVerdict::Agree { each_time: true }
            | TrialVerdict::Depends(_)
            | TrialVerdict::LeavesSession { .. } => {}
        }
        self.verdict = Some(verdict);
    }
}

/// Have answers to the same request a form whose key is new each time?
fn have_form_keys(bodies: &[Vec<u8>]) -> bool {
    let mut pairs = bodies.windows(2);
    pairs.any(|pair| matches!(pair, [one, other] if guest_pages::has_new_key(one, other)))
}

/// The answer as far as it is compared.
fn rendered(answer: &WholeAnswer) -> Rendering {
    let fields = answer
        .fields
        .iter()
        .map(|(name, value)| (&name[..], &value[..]));
    let mut renderer = Renderer::new(answer.status, fields, true);
    renderer.read(&answer.body);
    renderer.finish()
}

impl Drop for TrialRun {
    fn drop(&mut self) {
        let evidence = &self.seen.evidence;
        evidence.trial_ended(&self.order, self.verdict, self.requests, clock::now());
        self.seen.announce(self.order.page);
    }
}
