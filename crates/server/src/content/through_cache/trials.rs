//! Trials: why a visitor's own answer and the shared one differ is found out by asking the application again, in
//! the background, with one thing altered at a time (`page_evidence::Trial`). A trial stands in the line of
//! refreshes, and ends where the upstream has no time for it.

use std::sync::Arc;
use std::time::Duration;

use live_state::evidence::SeenPages;
use page_evidence::{Renderer, Rendering, Trial, TrialOrder, TrialStep, TrialVerdict};
use tokio::time::timeout;

use super::asking::WholeAnswer;
use super::guest_trials;
use super::tried::{TrialSource, fetch, purge, store_shared};

/// A trial that takes longer is given up.
const MAX_TRIAL: Duration = Duration::from_secs(60);
/// The time after which another second has begun.
const NEXT_SECOND: Duration = Duration::from_millis(1100);

/// Begins a trial, in a task of its own.
pub fn begin(seen: &Arc<SeenPages>, source: TrialSource, order: TrialOrder) {
    let seen = seen.clone();
    tokio::spawn(Box::pin(async move {
        let mut run = TrialRun {
            seen: seen.clone(),
            order,
            requests: 0,
            verdict: None,
        };
        let mut source = source.of_page(order.page);
        let _ = timeout(MAX_TRIAL, run.carry_out(&mut source)).await;
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
    async fn carry_out(&mut self, source: &mut TrialSource) {
        if self.order.of_session {
            let tried =
                guest_trials::carry_out(&self.seen, source, &self.order, &mut self.requests);
            if let Ok(verdict) = tried.await {
                self.end(source, verdict);
            }
            return;
        }
        // What is removed from each request may show in the visitor's own answer.
        let own = self.order.own.filter(|_| !source.removes_something());
        let mut trial = Trial::new(self.order.traits).of_answer(own);
        loop {
            let with = match trial.next() {
                TrialStep::Done(verdict) => return self.end(source, verdict),
                TrialStep::Fetch(with) => with,
                TrialStep::FetchLater(with) => {
                    tokio::time::sleep(NEXT_SECOND).await;
                    with
                }
            };
            self.requests += 1;
            match fetch(source, with, None).await {
                Ok(tried) => trial.note(with, tried.storable().as_ref().map(rendered)),
                Err(_) => return,
            }
        }
    }

    fn end(&mut self, source: &mut TrialSource, verdict: TrialVerdict) {
        match verdict {
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
