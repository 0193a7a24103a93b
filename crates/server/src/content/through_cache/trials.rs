//! Trials: why a visitor's own answer and the shared one differ is found out by asking the application again, in
//! the background, with one thing altered at a time (`page_evidence::Trial`). A trial stands in the line of
//! refreshes, and ends where the upstream has no time for it.

use std::sync::Arc;
use std::time::Duration;

use cache_decision::FetchRole;
use http_cache::{Millis, PurgeMode, PurgeTarget};
use live_state::evidence::SeenPages;
use page_evidence::{Renderer, Rendering, Trial, TrialOrder, TrialStep, TrialVerdict};
use shared_request::TraitSet;
use site::Pass;
use tokio::time::timeout;
use upstream::Class;

use super::policy::{self, CachePlan};
use super::purge_keys::address_of;
use super::storability;
use super::store_plan::prepare;
use crate::content::pass::aim;
use crate::exchange::own_visit::{OwnVisit, Purpose};
use crate::exchange::request::Request;

/// A trial that takes longer is given up.
const MAX_TRIAL: Duration = Duration::from_secs(60);
/// More of a page is not compared.
const MAX_BODY_BYTES: usize = 2 << 20;

/// A visitor's request of which a trial is made.
pub struct TrialSource {
    request: Box<Request>,
    pass: Arc<Pass>,
}

impl TrialSource {
    /// A copy of the request, made while its visitor waits.
    pub fn new(mut request: Box<Request>, pass: &Arc<Pass>) -> TrialSource {
        request.extras.own_visit = Some(Box::new(OwnVisit::new(Purpose::Read)));
        TrialSource {
            request,
            pass: pass.clone(),
        }
    }
}

/// Begins a trial, in a task of its own.
pub fn begin(seen: &Arc<SeenPages>, source: TrialSource, order: TrialOrder) {
    let seen = seen.clone();
    tokio::spawn(Box::pin(async move {
        let mut run = TrialRun {
            seen,
            order,
            requests: 0,
            verdict: None,
        };
        let _ = timeout(MAX_TRIAL, run.carry_out(source)).await;
    }));
}

/// A trial under way; its end is told when it is dropped.
struct TrialRun {
    seen: Arc<SeenPages>,
    order: TrialOrder,
    requests: u32,
    verdict: Option<TrialVerdict>,
}

impl TrialRun {
    async fn carry_out(&mut self, mut source: TrialSource) {
        let mut trial = Trial::new(self.order.traits);
        loop {
            match trial.next() {
                TrialStep::Done(verdict) => {
                    // The visitor's answer and the shared one are the same by now: what is stored is older.
                    let is_old = verdict == TrialVerdict::Agree { each_time: false };
                    if is_old || verdict == TrialVerdict::NotShareable {
                        purge(&mut source);
                    }
                    self.verdict = Some(verdict);
                    return;
                }
                TrialStep::Fetch(with) => {
                    self.requests += 1;
                    match fetch(&mut source, with).await {
                        Ok(answer) => trial.note(with, answer),
                        Err(BrokenOff) => return,
                    }
                }
            }
        }
    }
}

impl Drop for TrialRun {
    fn drop(&mut self) {
        let evidence = &self.seen.evidence;
        evidence.trial_ended(&self.order, self.verdict, self.requests, clock::now());
        self.seen.announce(self.order.page);
    }
}

/// The application gave no answer to compare, or has no time.
struct BrokenOff;

/// Asks the application once. `None`: its answer could not be stored.
async fn fetch(source: &mut TrialSource, with: TraitSet) -> Result<Option<Rendering>, BrokenOff> {
    let TrialSource { request, pass } = source;
    let configuration = request.configuration.clone();
    request.now = clock::now();
    if aim(request, pass).is_some() {
        return Err(BrokenOff);
    }
    let CachePlan::Use(mut plan) = policy::plan(request, &configuration, pass) else {
        return Err(BrokenOff);
    };
    (plan.past, plan.role, plan.tried) = (None, FetchRole::Trial, with);
    let (mut spec, mut store) = {
        let fields = plan.fields(request.received.head());
        let address = address_of(&request.received, plan.rules);
        let join = plan.join_request(&fields, &address, Millis(request.now));
        let leader = plan.zone.detached(&join);
        prepare(request, pass, &plan, &leader).map_err(|_| BrokenOff)?
    };
    spec.class = Class::Refresh;
    let mut fetched = upstream_fetch::fetch(&mut spec)
        .await
        .map_err(|_| BrokenOff)?;
    if fetched.status >= 500 {
        fetched.body.give_up(upstream::Outcome::Success);
        return Err(BrokenOff);
    }
    let is_storable = storability::decide(&mut store, &fetched, Millis(clock::now())).is_ok();
    let fields = fetched
        .fields
        .iter()
        .map(|(name, value)| (&name[..], &value[..]));
    let mut renderer = Renderer::new(fetched.status, fields, true);
    let mut bytes = 0;
    while let Some(piece) = fetched.body.next().await.map_err(|_| BrokenOff)? {
        bytes += piece.len();
        if bytes > MAX_BODY_BYTES {
            return Err(BrokenOff);
        }
        renderer.read(&piece);
    }
    Ok(is_storable.then(|| renderer.finish()))
}

/// Removes what is stored for the page: it is not what the page is.
fn purge(source: &mut TrialSource) {
    let TrialSource { request, pass } = source;
    let configuration = request.configuration.clone();
    if let CachePlan::Use(plan) = policy::plan(request, &configuration, pass) {
        let target = PurgeTarget::Key(plan.key.as_ref());
        plan.zone
            .purge(target, PurgeMode::Hard, Millis(clock::now()));
    }
}
