//! Collects the facts of a request before the lookup: the zone, the key, the facts by which
//! `cache_decision` decides. Reads conditions and variables; touches no store.

use std::sync::Arc;

use cache_decision::cookies::{is_writer, session_of};
use cache_decision::{
    Action, Audience, BodyPlace, Decision, Plan, PurgeReach, RequestFacts, SharedPage, StoredUse,
    before_lookup,
};
use http_cache::{CacheKey, Reason, Urgency, Zone};
use page_evidence::Standing;
use shared_request::{Bypass, LeftOut, Trait, TraitSet, Visitor};
use site::{CacheRules, CacheZoneChoice, Pass, SharedRules, Template};
use transport::request_body::RequestBody;

use super::guests;
use super::purge_keys::{Invalidation, invalidation, purge_targets};
use super::shared;
use super::standing;
use super::with_cookies;
use crate::content::own_machine;
use crate::content::pass::learned;
use crate::content::proxy;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::own_visit::Purpose;
use crate::exchange::request::{Method, Request};
use crate::exchange::request_route::{RequestRoute, TargetOrigin};
use crate::exchange::variable;
use crate::exchange::view::View;
use purge_order::Target;

/// How a request and the cache deal with each other.
pub enum CachePlan<'a> {
    /// Look up, unless the plan goes past the stored response.
    Use(Plan<'a>),
    /// Nothing is looked up; with the pages to remove, if any.
    NoLookup(Decision, Option<Removal<'a>>),
    /// `*_cache` with variables came to the name of no zone.
    UnknownZone(String),
}

/// The pages that a request removes from a zone.
pub enum Removal<'a> {
    /// These, now.
    Purge {
        zone: &'a Arc<Zone>,
        targets: Vec<Target>,
        reach: PurgeReach,
    },
    /// The pages that are out of date once the request has succeeded.
    Invalidation(Invalidation<'a>),
}

/// Collects the decisions and facts before the lookup. The plan borrows from the configuration: a hit
/// takes no share of anything that all threads have in common.
#[inline]
pub fn plan<'a>(
    request: &mut Request,
    configuration: &'a ActiveConfiguration,
    pass: &'a Pass,
) -> CachePlan<'a> {
    let (rules, zone) = match cache_of(request, configuration, pass) {
        Ok(found) => found,
        Err(None) => return no_lookup(&request.cache, Decision::OFF, None),
        Err(Some(name)) => return CachePlan::UnknownZone(name),
    };
    let overlooks_something = rules.overlooks_something();
    if overlooks_something {
        request.cache.view = View::Cache(rules.clone());
    }
    // Its memory is used again and again.
    let mut key = std::mem::take(&mut request.cache.key);
    key.clear();
    let mut facts = Facts {
        request,
        pass,
        rules,
        zone,
        key,
        left_out: LeftOut::default(),
        page: None,
    };
    let decided = before_lookup(&mut facts, rules);
    let Facts {
        request, key, page, ..
    } = facts;
    let plan = match decided {
        Ok((audience, past)) => {
            // A copy for one session: everything of its visitor is sent that is known.
            let tried = match &audience {
                Audience::Class(_, Some(_)) => TraitSet::ALL,
                _ => TraitSet::NONE,
            };
            let mut plan = Plan::new((zone, rules), CacheKey::new(key), audience, past);
            (plan.shared, plan.tried) = (page.map(Box::new), tried);
            if request.class == upstream::Class::Fragment {
                plan.urgency = Urgency::Part;
            }
            CachePlan::Use(plan)
        }
        Err(decision) => {
            request.cache.key = key;
            let removal = removal(request, &decision, (rules, zone));
            no_lookup(&request.cache, decision, removal)
        }
    };
    if overlooks_something {
        request.cache.view = View::Plain;
    }
    plan
}

/// Returns the rules and the zone of the cache that has a part in the request.
///
/// # Errors
/// There is none; the name of a zone that is not there.
fn cache_of<'a>(
    request: &Request,
    configuration: &'a ActiveConfiguration,
    pass: &'a Pass,
) -> Result<(&'a Arc<CacheRules>, &'a Arc<Zone>), Option<String>> {
    let rules = pass.cache.as_ref().ok_or(None)?;
    if request.route.method.is_write() && rules.read_your_writes.is_some() {
        request
            .cache
            .write(|notes| notes.marks_writer = rules.read_your_writes);
    }
    let zone = zone(request, configuration, rules)?;
    match rules.shared.is_none() && is_led_by_rules(request, configuration) {
        true => Err(None),
        false => Ok((rules, zone)),
    }
}

/// The pages that the request removes.
fn removal<'a>(
    request: &Request,
    decision: &Decision,
    (rules, zone): (&CacheRules, &'a Arc<Zone>),
) -> Option<Removal<'a>> {
    match decision.action {
        Action::Purge(reach) => Some(Removal::Purge {
            zone,
            targets: purge_targets(request, rules),
            reach,
        }),
        Action::Invalidate => Some(Removal::Invalidation(invalidation(request, rules, zone))),
        _ => None,
    }
}

/// May `.htaccess` files have led the request here, or set something for the script? Both may depend on anything of the
/// request; only the keys of `cache_shared` have it in them.
fn is_led_by_rules(request: &Request, configuration: &ActiveConfiguration) -> bool {
    configuration.htaccess[request.route.server().0].is_some()
        && (request.route.origin != TargetOrigin::Received
            || !request.route.script_variables.is_empty())
}

/// Is it a question whose answer may be stored under a key that has its body in it?
pub fn asks_by_body(route: &RequestRoute, pass: &Pass) -> bool {
    route.method == Method::Post && pass.cache.as_ref().is_some_and(|rules| rules.methods.post)
}

fn no_lookup<'a>(
    cache: &CacheFacts,
    decision: Decision,
    removal: Option<Removal<'a>>,
) -> CachePlan<'a> {
    cache.note_decision(&decision);
    CachePlan::NoLookup(decision, removal)
}

/// A request as decisions ask for it, with the memory for its key.
struct Facts<'r> {
    request: &'r mut Request,
    pass: &'r Pass,
    rules: &'r CacheRules,
    zone: &'r Arc<Zone>,
    key: Vec<u8>,
    /// With `cache_shared`: the parts that the shared request leaves out.
    left_out: LeftOut,
    /// The facts of the page have been asked for.
    page: Option<SharedPage>,
}

impl RequestFacts for Facts<'_> {
    fn method(&self) -> Method {
        self.request.route.method
    }

    fn body(&self) -> BodyPlace {
        match &self.request.body {
            RequestBody::None => BodyPlace::None,
            body if body.length() == Some(0) => BodyPlace::None,
            RequestBody::Memory(_) => BodyPlace::Memory,
            _ => BodyPlace::Elsewhere,
        }
    }

    fn is_any_true(&mut self, conditions: &[Template]) -> bool {
        variable::is_any_true(self.request, conditions)
    }

    fn asks_to_purge(&mut self, conditions: &[Template]) -> bool {
        conditions.iter().any(|condition| {
            let value = variable::evaluate(self.request, condition);
            !matches!(&*value, b"" | b"0" | b"off")
        })
    }

    fn is_made_here(&self) -> bool {
        self.request.is_made_here()
    }

    fn purge_reach(&self) -> Option<PurgeReach> {
        own_machine::purge_reach(self.request).ok()
    }

    fn passes_body(&self) -> bool {
        self.pass.exchange.pass_request_body
    }

    fn passes_upgrade(&mut self) -> bool {
        let proxy = self.pass.proxy();
        proxy.is_some_and(|proxy| proxy::passes_upgrade(self.request, proxy))
    }

    fn audience(&mut self) -> Result<Audience, Reason> {
        let visit = self.request.own_visit.as_ref();
        if visit.is_some_and(|visit| matches!(visit.purpose, Purpose::Try)) {
            return Err(Reason::Bypass);
        }
        let cache = (self.rules, self.zone);
        let (audience, left_out) = audience(self.request, self.pass, cache, &mut self.key)?;
        self.left_out = left_out;
        Ok(audience)
    }

    #[inline]
    fn standing(&mut self) -> Standing {
        let Some(shared) = &self.rules.shared else {
            return Standing::Shared;
        };
        let (standing, page) = standing::of(
            self.request,
            (self.pass, shared),
            (self.zone, &mut self.key),
            self.left_out,
        );
        self.page = page;
        match &mut self.request.cache.guest {
            Some(_) => self.standing_of_guest(standing),
            None => standing,
        }
    }

    fn is_writer(&self) -> bool {
        let lifetime = self.rules.read_your_writes;
        lifetime
            .is_some_and(|time| is_writer(self.request.received.head(), time, self.request.now()))
    }

    #[inline]
    fn stored_use(&mut self) -> StoredUse {
        match self.request.configuration.may_forbid_stored {
            true => guarded_use(self.request),
            false => StoredUse::Allowed,
        }
    }

    fn range(&self) -> Option<&[u8]> {
        self.request.received.head().field("range")
    }
}

impl Facts<'_> {
    /// The page is noted that a guest asks for.
    #[cold]
    fn standing_of_guest(&mut self, standing: Standing) -> Standing {
        let page = self.page.as_ref().map(|page| page.name);
        let name = || standing::name_of(self.request, self.zone, &self.key);
        let page = page.unwrap_or_else(name);
        if let Some(guest) = &mut self.request.cache.guest {
            guest.page = Some(page);
        }
        match standing {
            Standing::Shared if !guests::is_settled(self.request) => {
                Standing::Depends(Trait::Session)
            }
            Standing::Shared => {
                guests::note_shown(self.request);
                Standing::Shared
            }
            standing => standing,
        }
    }
}

/// With nodes or learned pages: decides how stored responses may be used for the request.
#[cold]
fn guarded_use(request: &Request) -> StoredUse {
    let visit = request.own_visit.as_ref();
    if visit.is_some_and(|visit| matches!(visit.purpose, Purpose::Audit)) {
        return StoredUse::Forbidden;
    }
    let nodes = request.configuration.live.nodes.as_ref();
    match nodes.is_none_or(|nodes| nodes.may_use_stored()) {
        true => StoredUse::Allowed,
        false => without_lease(request),
    }
}

/// Decides how a node without a lease may use stored responses.
fn without_lease(request: &Request) -> StoredUse {
    let configuration = &request.configuration;
    let nodes = configuration.live.nodes.as_ref();
    let lost = configuration.site.http.cache_nodes_lost.zip(nodes);
    match lost.is_some_and(|(time, nodes)| nodes.has_lost_lease_within(time)) {
        true => {
            request
                .cache
                .write(|notes| notes.reason = Some(Reason::LostLease));
            StoredUse::WithoutPromise
        }
        false => StoredUse::Forbidden,
    }
}

/// Makes the key of a request, and returns who may share its response.
///
/// # Errors
/// The reason why the response is for one visitor.
fn audience(
    request: &mut Request,
    pass: &Pass,
    (rules, zone): (&CacheRules, &Arc<Zone>),
    key: &mut Vec<u8>,
) -> Result<(Audience, LeftOut), Reason> {
    let nothing = LeftOut::default();
    let has_own_copies = learned::has_own_copies(request, pass, rules, zone);
    let Some(shared) = &rules.shared else {
        variable::append(request, &rules.key, key);
        let session = session_of(request.received.head(), rules, key);
        let audience = match session {
            Some(session) if has_own_copies => {
                shared::put_whole_request(request, key);
                Audience::Visitor(session)
            }
            session => session.map_or(Audience::Everybody, Audience::Session),
        };
        return Ok((audience, nothing));
    };
    let mut keyed = put_shared_key(request, shared, key);
    if shared.guest_sessions.are_shared()
        && keyed == Err(Reason::Cookie)
        && let Some(guest) = guests::recognise(request, shared)
    {
        request.cache.guest = Some(guest);
        key.clear();
        keyed = put_shared_key(request, shared, key);
    }
    let is_guest = request.cache.guest.is_some();
    let keyed = match keyed {
        // Whether or not the cookie makes pages personal.
        Ok(_) if has_own_copies && !shared.litespeed && !is_guest => Err(Reason::Cookie),
        keyed => keyed,
    };
    match keyed {
        Ok(Visitor { class, left_out }) => {
            let session = session_of(request.received.head(), rules, key);
            let left_out = if session.is_some() { nothing } else { left_out };
            Ok((Audience::Class(class, session), left_out))
        }
        Err(Reason::Cookie) if has_own_copies && !shared.litespeed => {
            key.clear();
            shared::put_visitors_key(request, shared, key).map_err(of_shared)?;
            let session = session_of(request.received.head(), rules, key);
            let session = session.ok_or(Reason::Cookie)?;
            shared::put_whole_request(request, key);
            Ok((Audience::Visitor(session), nothing))
        }
        Err(Reason::Cookie) if shared.litespeed => {
            // The key holds all cookies of a visitor who has copies.
            let (class, with) =
                with_cookies::put_key(request, shared, zone, key).map_err(of_shared)?;
            Ok((Audience::WithCookies(class, with), nothing))
        }
        Err(why) => Err(why),
    }
}

/// Returns why a request goes past the cache whose answer would be shared.
fn of_shared(why: Bypass) -> Reason {
    match why {
        Bypass::Accept => Reason::Accept,
        Bypass::Argument => Reason::Argument,
        Bypass::Cookie => Reason::Cookie,
        Bypass::Credentials => Reason::Credentials,
        Bypass::Field => Reason::Field,
        Bypass::Override => Reason::Override,
        Bypass::Partial => Reason::Fragment,
        Bypass::Path => Reason::Path,
        Bypass::TooLong => Reason::TooLong,
        Bypass::Upgrade => Reason::Upgrade,
    }
}

/// Appends the key of a request whose answer may be shared; an error is the reason why it goes past
/// the cache.
fn put_shared_key(
    request: &Request,
    rules: &SharedRules,
    key: &mut Vec<u8>,
) -> Result<Visitor, Reason> {
    if !matches!(request.route.method, Method::Get | Method::Head) {
        return Err(Reason::Method);
    }
    if rules.guest_sessions.are_shared() && guests::sends_token(request) {
        return Err(Reason::Argument);
    }
    let visitor = shared::put_key(request, rules, key).map_err(of_shared)?;
    if let Some(own) = &rules.key {
        key.push(0);
        variable::append(request, own, key);
    }
    Ok(visitor)
}

/// Returns the zone.
///
/// # Errors
/// `None`: variables gave `off` or an empty name. `Some`: the name of a zone that does not exist.
fn zone<'a>(
    request: &Request,
    configuration: &'a ActiveConfiguration,
    rules: &CacheRules,
) -> Result<&'a Arc<Zone>, Option<String>> {
    match &rules.zone {
        CacheZoneChoice::Zone(id) => Ok(&configuration.live.zones[id.0]),
        CacheZoneChoice::Variable(template) => {
            let name = variable::evaluate(request, template);
            let names = &configuration.site.http.cache_zones;
            if name.is_empty() || name == b"off" {
                return Err(None);
            }
            match names.iter().position(|zone| zone.name.as_bytes() == name) {
                Some(index) => Ok(&configuration.live.zones[index]),
                None => Err(Some(String::from_utf8_lossy(&name).into_owned())),
            }
        }
    }
}
