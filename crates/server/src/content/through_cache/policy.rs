//! What the cache may do for a request: nothing, a purge, or a look-up by a
//! key under rules. Reads conditions and variables; touches no store.

use std::sync::Arc;

use cache_decision::cookies::{is_writer, session_of};
use cache_decision::{Audience, Plan};
use http_cache::{CacheKey, Forward, Outcome, Reason, Stamp, Urgency, Zone};
use shared_request::{Bypass, Class};
use site::{CacheRules, CacheZoneChoice, Pass, SharedRules};
use transport::request_body::RequestBody;

use super::purge_keys::{Invalidation, PurgedKeys, invalidation, purged_keys};
use super::shared;
use super::with_cookies;
use crate::content::own_machine::{self, PurgeReach, Stranger};
use crate::content::proxy;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::request::{Method, Request};
use crate::exchange::variable;
use crate::exchange::view::View;

/// How a request and the cache deal with each other.
pub enum CachePlan<'a> {
    /// The cache has no part in it.
    Off,
    /// Remove what is stored under these keys.
    Purge {
        zone: &'a Arc<Zone>,
        keys: Vec<PurgedKeys>,
        reach: PurgeReach,
    },
    /// It may not purge, whatever `*_cache_purge` says of its client.
    RefusedPurge(Stranger),
    /// It changes something: what is stored for the same target goes once the
    /// origin server agreed to it (RFC 9111 §4.4).
    Invalidate(Invalidation<'a>),
    Use(Plan<'a>),
    /// `*_cache` with variables came to the name of no zone.
    UnknownZone(String),
}

/// Decides what the cache may do. A purge condition needs no cacheable method.
/// What the plan names is the configuration's own: a hit takes no share of anything
/// that all threads have in common.
#[inline]
pub fn plan<'a>(
    request: &mut Request,
    configuration: &'a ActiveConfiguration,
    pass: &'a Pass,
) -> CachePlan<'a> {
    let Some(rules) = &pass.cache else {
        request.cache.reason = Some(Reason::Off);
        return CachePlan::Off;
    };
    if request.method.is_write()
        && let Some(lifetime) = rules.read_your_writes
    {
        request.cache.marks_writer = Some(lifetime);
    }
    let zone = match zone(request, configuration, rules) {
        Ok(Some(zone)) => zone,
        Ok(None) => {
            request.cache.reason = Some(Reason::Off);
            return CachePlan::Off;
        }
        Err(name) => return CachePlan::UnknownZone(name),
    };
    let overlooks_something = rules.overlooks_something();
    if overlooks_something {
        request.view = View::Cache(rules.clone());
    }
    let plan = plan_with(request, pass, rules, zone);
    if overlooks_something {
        request.view = View::Plain;
    }
    plan
}

/// Is it a question whose answer may be stored under a key that has its body in it?
pub fn asks_by_body(request: &Request, pass: &Pass) -> bool {
    request.method == Method::Post && pass.cache.as_ref().is_some_and(|rules| rules.methods.post)
}

/// Why a request is no page's, whatever is stored: its answer is for this client alone.
/// A body that reaches the application may shape the answer and is not in the key (that of
/// `cache_shared` has none, whether or not the body is sent); an upgrade makes a tunnel. Nor
/// would others wait for a body that may never come.
fn why_alone(request: &mut Request, pass: &Pass, rules: &CacheRules) -> Option<Reason> {
    let is_read = matches!(request.method, Method::Get | Method::Head);
    let is_body_outside_key = pass.exchange.pass_request_body || rules.shared.is_some();
    if is_read && is_body_outside_key && request.body.length() != Some(0) {
        return Some(Reason::Body);
    }
    match pass.proxy() {
        Some(proxy) if proxy::passes_upgrade(request, proxy) => Some(Reason::Upgrade),
        _ => None,
    }
}

/// May a request be a purge that `from local` would let, but for the page behind it? It is answered
/// here and not by the application.
fn may_be_local_purge(request: &Request, rules: &CacheRules) -> bool {
    matches!(request.method, Method::Purge | Method::Other)
        && !rules.purge.is_empty()
        && request.is_made_here()
}

fn plan_with<'a>(
    request: &mut Request,
    pass: &Pass,
    rules: &'a Arc<CacheRules>,
    zone: &'a Arc<Zone>,
) -> CachePlan<'a> {
    let is_purge = variable::is_any_true(request, &rules.purge);
    if is_purge || may_be_local_purge(request, rules) {
        match own_machine::purge_reach(request) {
            Err(stranger) => return CachePlan::RefusedPurge(stranger),
            Ok(reach) if is_purge => {
                let keys = purged_keys(request, rules);
                request.cache.reason = Some(Reason::Purge);
                return CachePlan::Purge { zone, keys, reach };
            }
            Ok(_) => {}
        }
    }
    if !is_cacheable(request.method, rules) {
        note_past_cache(request, Forward::Method, Reason::Method);
        if request.method.is_write() {
            return CachePlan::Invalidate(invalidation(request, rules, zone));
        }
        return CachePlan::Off;
    }
    if request.method == Method::Post
        && !matches!(request.body, RequestBody::None | RequestBody::Memory(_))
    {
        // `$request_body` is empty, and the key of all such questions the same.
        note_past_cache(request, Forward::Bypass, Reason::Body);
        return CachePlan::Off;
    }
    // Its memory is used again and again.
    let mut key = std::mem::take(&mut request.cache.key);
    key.clear();
    let mut personal = None;
    let audience = audience(request, rules, zone, &mut key).unwrap_or_else(|why| {
        personal = Some(why);
        Audience::Everybody
    });
    let writer = rules
        .read_your_writes
        .is_some_and(|lifetime| is_writer(&request.head, lifetime, request.now));
    let alone = why_alone(request, pass, rules);
    let bypass = if alone.is_some() {
        alone
    } else if personal.is_some() {
        personal
    } else if writer {
        Some(Reason::OwnWrite)
    } else if variable::is_any_true(request, &rules.bypass) {
        Some(Reason::Bypass)
    } else {
        None
    };
    CachePlan::Use(Plan {
        zone,
        rules,
        key: CacheKey::new(key),
        bypass,
        // What is forwarded whole was made for one visitor.
        never_store: writer || alone.is_some() || rules.shared.is_some() && bypass.is_some(),
        audience,
        uses: 1,
        varies_on: None,
        came_at: Stamp::default(),
        urgency: match request.extras.class {
            upstream::Class::Fragment => Urgency::Part,
            _ => Urgency::Page,
        },
    })
}

/// Makes the key of a request, and says who may share its response.
///
/// # Errors
/// Why the response is for one visitor.
fn audience(
    request: &mut Request,
    rules: &CacheRules,
    zone: &Arc<Zone>,
    key: &mut Vec<u8>,
) -> Result<Audience, Reason> {
    let Some(shared) = &rules.shared else {
        variable::append(request, &rules.key, key);
        let session = session_of(&request.head, rules, key);
        return Ok(session.map_or(Audience::Everybody, Audience::Session));
    };
    match put_shared_key(request, shared, key) {
        Ok(class) => Ok(Audience::Class(
            class,
            session_of(&request.head, rules, key),
        )),
        Err(Reason::Cookie) if shared.litespeed => {
            // The key holds all cookies of a visitor who has copies.
            let (class, with) =
                with_cookies::put_key(request, shared, zone, key).map_err(of_shared)?;
            Ok(Audience::WithCookies(class, with))
        }
        Err(why) => Err(why),
    }
}

/// Notes that the cache has no part in what becomes of the request.
fn note_past_cache(request: &mut Request, forward: Forward, why: Reason) {
    request.cache.outcome = Some(Outcome::forwarded(forward));
    request.cache.reason = Some(why);
}

/// Why a request goes past the cache whose answer would be shared.
fn of_shared(why: Bypass) -> Reason {
    match why {
        Bypass::Accept => Reason::Accept,
        Bypass::Argument => Reason::Argument,
        Bypass::Cookie => Reason::Cookie,
        Bypass::Credentials => Reason::Credentials,
        Bypass::Override => Reason::Override,
        Bypass::Partial => Reason::Fragment,
        Bypass::Path => Reason::Path,
        Bypass::TooLong => Reason::TooLong,
        Bypass::Upgrade => Reason::Upgrade,
    }
}

/// Appends the key of a request whose answer may be shared, or says why it goes past the cache.
fn put_shared_key(
    request: &mut Request,
    rules: &SharedRules,
    key: &mut Vec<u8>,
) -> Result<Class, Reason> {
    if !matches!(request.method, Method::Get | Method::Head) {
        return Err(Reason::Method);
    }
    let class = shared::put_key(request, rules, key).map_err(of_shared)?;
    if let Some(own) = &rules.key {
        key.push(0);
        variable::append(request, own, key);
    }
    Ok(class)
}

/// The zone; none where variables came to `off` or nothing; the name of one that
/// is not there.
fn zone<'a>(
    request: &mut Request,
    configuration: &'a ActiveConfiguration,
    rules: &CacheRules,
) -> Result<Option<&'a Arc<Zone>>, String> {
    match &rules.zone {
        CacheZoneChoice::Zone(id) => Ok(Some(&configuration.live.zones[id.0])),
        CacheZoneChoice::Variable(template) => {
            let name = variable::evaluate(request, template);
            let names = &configuration.site.http.cache_zones;
            if name.is_empty() || name == b"off" {
                return Ok(None);
            }
            match names.iter().position(|zone| zone.name.as_bytes() == name) {
                Some(index) => Ok(Some(&configuration.live.zones[index])),
                None => Err(String::from_utf8_lossy(&name).into_owned()),
            }
        }
    }
}

fn is_cacheable(method: Method, rules: &CacheRules) -> bool {
    match method {
        Method::Get => true,
        // Without conversion a HEAD's answer has no body to store.
        Method::Head => rules.convert_head,
        Method::Post => rules.methods.post,
        _ => false,
    }
}
