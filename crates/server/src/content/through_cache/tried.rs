//! The requests of a trial: a visitor's request is a source of shared requests that copy some parts of
//! the visitor's.

use std::net::Ipv4Addr;
use std::sync::Arc;

use cache_decision::{FetchRole, Plan};
use guest_pages::MAX_BODY_BYTES;
use http_cache::{FoundResponse, Leader, Millis, PurgeMode, PurgeTarget};
use page_evidence::{PageName, TrialOrder};
use shared_request::{TraitSet, arguments, cookies, left_out};
use site::{Pass, SharedRules};
use transport::facts::ConnectionFacts;
use upstream::Class;

use super::asking::WholeAnswer;
use super::policy::{self, CachePlan};
use super::purge_keys::address_of;
use super::shared;
use super::standing;
use super::storability;
use super::store_plan::prepare;
use super::storing::{self, Background};
use crate::content::pass::aim;
use crate::exchange::own_visit::{OwnVisit, Purpose};
use crate::exchange::request::Request;

/// A visitor's request of which a trial is made.
pub struct TrialSource {
    request: Box<Request>,
    pass: Arc<Pass>,
    /// The page that the trial is of.
    page: Option<PageName>,
    /// The address that all its requests come from: a session may be bound to it. `None`: each comes from another
    /// network, since an application may refuse one that asks often.
    address: Option<Ipv4Addr>,
    /// Visitors wait for the end of the trial.
    is_awaited: bool,
}

impl TrialSource {
    /// A copy of the request, made while its visitor waits.
    pub fn new(request: Box<Request>, pass: &Arc<Pass>) -> TrialSource {
        TrialSource::at(Some(left_out::next_address()), request, pass)
    }

    /// A copy for requests that are begun before the trial for which visitors wait.
    pub fn ahead(address: Ipv4Addr, request: Box<Request>, pass: &Arc<Pass>) -> TrialSource {
        TrialSource {
            is_awaited: true,
            ..TrialSource::at(Some(address), request, pass)
        }
    }

    /// Lets the requests come from the address of those that were begun before.
    pub fn comes_from(&mut self, address: Ipv4Addr) {
        self.address = Some(address);
    }

    /// Lets each further request come from another network. No visitor waits for them.
    pub fn moves(&mut self) {
        self.address = None;
        self.is_awaited = false;
    }

    /// The line in which its requests wait.
    pub fn class(&self) -> Class {
        match self.is_awaited {
            true => Class::Visitor,
            false => Class::Refresh,
        }
    }

    fn at(address: Option<Ipv4Addr>, mut request: Box<Request>, pass: &Arc<Pass>) -> TrialSource {
        request.own_visit = Some(Box::new(OwnVisit::new(Purpose::Read)));
        TrialSource {
            request,
            pass: pass.clone(),
            page: None,
            address,
            is_awaited: false,
        }
    }

    /// Sets what the trial is of, and whether visitors wait for its end.
    #[must_use]
    pub fn for_trial(mut self, order: &TrialOrder) -> TrialSource {
        self.page = Some(order.page);
        self.is_awaited = order.is_awaited;
        self
    }

    /// Returns a copy for a further request of the trial.
    pub fn duplicate(&self) -> TrialSource {
        TrialSource {
            page: self.page,
            is_awaited: self.is_awaited,
            ..TrialSource::at(self.address, shared::copy_of(&self.request), &self.pass)
        }
    }

    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The connection that its requests come by.
    pub fn connection(&self) -> Arc<ConnectionFacts> {
        let address = self.address.unwrap_or_else(left_out::next_address);
        shared::without_visitor(&self.request.received, address)
    }

    /// Do the requests lack arguments or cookies of the visitor's that are taken not to matter?
    pub fn removes_something(&self) -> bool {
        let Some(rules) = self.shared_rules().map(|rules| &rules.request) else {
            return false;
        };
        let received = &self.request.received;
        let mut counted = Vec::new();
        arguments::put_target(received.target(), &rules.removed_arguments, &mut counted);
        let mut pairs = cookies::pairs(received.head().view());
        counted != received.target()
            || pairs.any(|(name, _)| cookies::is_named(name, &rules.removed_cookies))
    }

    /// Do responses for the page name fields of the request (`Vary`)? Those are in the key, in one spelling for all who mean the
    /// same.
    pub fn varies(&mut self) -> bool {
        let configuration = self.request.configuration.clone();
        let CachePlan::Use(plan) = policy::plan(&mut self.request, &configuration, &self.pass)
        else {
            return true;
        };
        let spec = standing::varies_on(&self.request, plan.zone, plan.key.as_ref().bytes());
        spec.is_some_and(|spec| spec.names().iter().any(|name| name != "accept-encoding"))
    }

    pub fn shared_rules(&self) -> Option<&SharedRules> {
        self.pass.cache.as_ref()?.shared.as_deref()
    }
}

/// The application gave no answer to compare, or has no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenOff {
    NoAnswer,
    TooLong,
}

/// An answer to a request of a trial.
#[derive(Debug)]
pub struct TriedAnswer {
    pub answer: WholeAnswer,
    pub is_storable: bool,
}

impl TriedAnswer {
    /// `None`: it could not be stored.
    pub fn storable(self) -> Option<WholeAnswer> {
        self.is_storable.then_some(self.answer)
    }
}

/// Asks the application once, with some traits of the visitor. `session`: the cookies of a session.
pub async fn fetch(
    source: &mut TrialSource,
    with: TraitSet,
    session: Option<Arc<[u8]>>,
) -> Result<TriedAnswer, BrokenOff> {
    let class = source.class();
    let TrialSource {
        request,
        pass,
        page,
        address,
        ..
    } = source;
    let configuration = request.configuration.clone();
    request.note_time(clock::now());
    request.route.proxy_url = aim(request, pass).map_err(|_| BrokenOff::NoAnswer)?;
    let CachePlan::Use(mut plan) = policy::plan(request, &configuration, pass) else {
        return Err(BrokenOff::NoAnswer);
    };
    let name = standing::name_of(request, plan.zone, plan.key.as_ref().bytes());
    if page.is_some_and(|page| page != name) {
        // Another trial has put something into the key meanwhile: the shared request would say it, too.
        return Err(BrokenOff::NoAnswer);
    }
    (plan.past, plan.role, plan.tried) = (None, FetchRole::Trial, with);
    (plan.tried_session, plan.tried_address) = (session, *address);
    let (mut spec, mut store) = {
        let fields = plan.fields(request.received.head());
        let address = address_of(&request.received, plan.rules);
        let join = plan.join_request(&fields, &address, Millis(request.now()));
        let leader = plan.zone.detached(&join);
        prepare(request, pass, &plan, &leader).map_err(|_| BrokenOff::NoAnswer)?
    };
    spec.class = class;
    let mut fetched = upstream_fetch::fetch(&mut spec)
        .await
        .map_err(|_| BrokenOff::NoAnswer)?;
    if fetched.status >= 500 {
        fetched.body.give_up(upstream::Outcome::Success);
        return Err(BrokenOff::NoAnswer);
    }
    let is_storable = storability::decide(&mut store, &fetched, Millis(clock::now())).is_ok();
    let body = fetched.body.whole(MAX_BODY_BYTES).await;
    let body = body.map_err(|_| BrokenOff::NoAnswer)?;
    let body = body.ok_or(BrokenOff::TooLong)?;
    Ok(TriedAnswer {
        answer: WholeAnswer {
            status: fetched.status,
            fields: fetched.fields,
            body,
        },
        is_storable,
    })
}

/// Removes the stored responses of the page, which are out of date.
pub fn purge(source: &mut TrialSource) {
    let TrialSource { request, pass, .. } = source;
    let configuration = request.configuration.clone();
    if let CachePlan::Use(plan) = policy::plan(request, &configuration, pass) {
        let target = PurgeTarget::Key(plan.key.as_ref());
        plan.zone
            .purge(target, PurgeMode::Hard, Millis(clock::now()));
    }
}

/// Begins the shared request, if nothing is stored for the page.
pub fn store_shared(source: &mut TrialSource) {
    let background = match source.is_awaited {
        true => Background::AwaitedByVisitors,
        false => Background::Refresh,
    };
    let TrialSource { request, pass, .. } = source;
    let configuration = request.configuration.clone();
    request.note_time(clock::now());
    let Ok(url) = aim(request, pass) else {
        return;
    };
    request.route.proxy_url = url;
    let CachePlan::Use(mut plan) = policy::plan(request, &configuration, pass) else {
        return;
    };
    plan.past = None;
    let Some(leader) = lead(request, &plan) else {
        return;
    };
    if let Ok((spec, store)) = prepare(request, pass, &plan, &leader) {
        storing::begin_in_background(leader, spec, store, background);
    }
}

/// A leader for the shared request, if nothing fresh is stored.
pub fn lead(request: &Request, plan: &Plan<'_>) -> Option<Leader> {
    let (now, fields) = (Millis(request.now()), plan.fields(request.received.head()));
    let address = address_of(&request.received, plan.rules);
    match plan.zone.find_again(&plan.key.as_ref(), &fields, now) {
        FoundResponse::Fresh(_) => None,
        FoundResponse::NotFresh(found) => plan
            .zone
            .refresh(&plan.join_request(&fields, &address, now), &found),
    }
}

/// Returns the stored body of the page.
pub fn stored_body(source: &mut TrialSource) -> Option<Vec<u8>> {
    let TrialSource { request, pass, .. } = source;
    let configuration = request.configuration.clone();
    request.note_time(clock::now());
    let CachePlan::Use(plan) = policy::plan(request, &configuration, pass) else {
        return None;
    };
    let fields = plan.fields(request.received.head());
    let found = plan
        .zone
        .find_again(&plan.key.as_ref(), &fields, Millis(request.now()));
    let stored = match &found {
        FoundResponse::Fresh(stored) => stored,
        FoundResponse::NotFresh(found) => found.stale()?.0,
    };
    Some(stored.body.chunks().concat())
}
