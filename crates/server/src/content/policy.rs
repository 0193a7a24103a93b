//! What the cache may do for a request: nothing, a purge, or a look-up by a
//! key under rules. Reads conditions and variables; touches no store.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use http_cache::{
    IgnoreFields, KeyRef, Methods, Millis, Policy, PurgeMode, PurgeTarget, StaleBounds, StatusSet,
    UseStale, ValidRule, VaryRules, Zone,
};
use shared_request::Class;
use site::{CacheRules, CacheZoneChoice, CookieInKey, Pass, SharedRules};

use crate::content::proxy;
use crate::content::shared;
use crate::content::shared::Fields;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::request::{Method, Request};
use crate::exchange::variable;
use crate::exchange::view::{View, cookies, matches_glob};
use crate::transport::body::RequestBody;

/// Carries until when (unix milliseconds) its browser sees past the cache.
pub const WRITER_COOKIE: &[u8] = b"mayfly_writer";

/// How a request and the cache deal with each other.
pub enum CachePlan<'a> {
    /// The cache has no part in it.
    Off,
    /// Remove what is stored under these keys.
    Purge {
        zone: &'a Arc<Zone>,
        keys: Vec<PurgedKeys>,
    },
    /// It changes something: what is stored for the same target goes once the
    /// origin server agreed to it (RFC 9111 §4.4).
    Invalidate(Invalidation<'a>),
    Use(Plan<'a>),
    /// `*_cache` with variables came to the name of no zone.
    UnknownZone(String),
}

/// What a request to purge is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgedKeys {
    One(Vec<u8>),
    /// All that begin so.
    Prefix(Vec<u8>),
    /// All that begin with one of these: a URL under each scheme, the one asked for first.
    Url([Vec<u8>; 2]),
    /// All of the zone.
    Everything,
}

impl PurgedKeys {
    /// A key that ends in `*` means all that begin with what stands before.
    fn of(mut key: Vec<u8>) -> PurgedKeys {
        match key.pop_if(|last| *last == b'*') {
            Some(_) => PurgedKeys::Prefix(key),
            None => PurgedKeys::One(key),
        }
    }

    /// For people: without what stands behind the address in keys of several parts.
    pub fn shown(&self) -> Vec<u8> {
        match self {
            PurgedKeys::One(key) => key.clone(),
            PurgedKeys::Prefix(start) | PurgedKeys::Url([start, _]) => {
                match start.strip_suffix(b"\0") {
                    Some(url) => url.to_vec(),
                    None => [start, &b"*"[..]].concat(),
                }
            }
            PurgedKeys::Everything => b"*".to_vec(),
        }
    }

    /// Removes what is stored under them; how many responses.
    pub fn purge(&self, zone: &Zone, now: Millis) -> usize {
        let purge = |target| zone.purge(target, PurgeMode::Hard, now).responses;
        match self {
            PurgedKeys::One(key) => purge(PurgeTarget::Key(KeyRef::new(key))),
            PurgedKeys::Prefix(start) => purge(PurgeTarget::Prefix(start)),
            PurgedKeys::Url(starts) => starts
                .iter()
                .map(|start| purge(PurgeTarget::Prefix(start)))
                .sum(),
            PurgedKeys::Everything => purge(PurgeTarget::Everything),
        }
    }
}

/// What a write removes once it has succeeded.
pub struct Invalidation<'a> {
    pub zone: &'a Arc<Zone>,
    pub keys: Vec<Vec<u8>>,
    /// How often anybody's write may do so; `None`: always.
    pub pause: Option<Duration>,
    /// Answers that there is no such page go as well: the write may have made one.
    drops_not_found: bool,
}

/// Look up, and store what comes.
pub struct Plan<'a> {
    pub zone: &'a Arc<Zone>,
    pub rules: &'a Arc<CacheRules>,
    pub key: Vec<u8>,
    /// Go past what is stored; a named reason.
    pub bypass: Option<&'static str>,
    /// Do not store, whatever the response says.
    pub never_store: bool,
    /// A copy for one session: the group it counts against.
    pub session: Option<u64>,
    /// How often the key was asked for; counted only where that matters.
    pub uses: u32,
    /// With `cache_shared`: the visitor's class. The request is written anew.
    pub shared: Option<Class>,
}

impl Plan<'_> {
    /// The fields of `request` by which the cache tells variants apart.
    #[inline]
    pub fn fields<'r>(&self, request: &'r Request) -> Fields<'r> {
        match self.shared {
            None => Fields::Received(&request.head),
            Some(_) => Fields::Shared(&request.head),
        }
    }
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
        return CachePlan::Off;
    };
    if request.method.is_write()
        && let Some(lifetime) = rules.read_your_writes
    {
        request.cache.marks_writer = Some(lifetime);
    }
    let zone = match zone(request, configuration, rules) {
        Ok(Some(zone)) => zone,
        Ok(None) => return CachePlan::Off,
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
/// A body that reaches the application may shape the answer and is not in the key; an
/// upgrade makes a tunnel. Nor would others wait for a body that may never come.
fn why_alone(request: &mut Request, pass: &Pass) -> Option<&'static str> {
    let is_read = matches!(request.method, Method::Get | Method::Head);
    if is_read && pass.exchange.pass_request_body && request.body.length() != Some(0) {
        return Some("body");
    }
    match pass.proxy() {
        Some(proxy) if proxy::passes_upgrade(request, proxy) => Some("upgrade"),
        _ => None,
    }
}

fn plan_with<'a>(
    request: &mut Request,
    pass: &Pass,
    rules: &'a Arc<CacheRules>,
    zone: &'a Arc<Zone>,
) -> CachePlan<'a> {
    if is_any_true(request, &rules.purge) {
        let keys = match &rules.shared {
            _ if rules.purges_everything => vec![PurgedKeys::Everything],
            Some(shared) => vec![url_keys(request, shared)],
            None => keys_of_reads(request, rules),
        };
        return CachePlan::Purge { zone, keys };
    }
    if !is_cacheable(request.method, rules) {
        request.cache.reason = Some("method");
        if request.method.is_write() {
            return CachePlan::Invalidate(invalidation(request, rules, zone));
        }
        return CachePlan::Off;
    }
    if request.method == Method::Post
        && !matches!(request.body, RequestBody::None | RequestBody::Memory(_))
    {
        // `$request_body` is empty, and the key of all such questions the same.
        request.cache.reason = Some("body");
        return CachePlan::Off;
    }
    // Its memory is used again and again.
    let mut key = std::mem::take(&mut request.cache.key);
    key.clear();
    let mut class = None;
    let mut personal = None;
    match &rules.shared {
        None => variable::append(request, &rules.key, &mut key),
        Some(shared) => match put_shared_key(request, shared, &mut key) {
            Ok(of) => class = Some(of),
            Err(why) => personal = Some(why),
        },
    }
    let session = session_of(request, rules, &mut key);
    let writer = rules
        .read_your_writes
        .is_some_and(|lifetime| is_writer(request, lifetime));
    let alone = why_alone(request, pass);
    let bypass = if alone.is_some() {
        alone
    } else if personal.is_some() {
        personal
    } else if writer {
        Some("own-write")
    } else if is_any_true(request, &rules.bypass) {
        Some("bypass")
    } else {
        None
    };
    CachePlan::Use(Plan {
        zone,
        rules,
        key,
        bypass,
        // What is forwarded whole was made for one visitor.
        never_store: writer || alone.is_some() || rules.shared.is_some() && bypass.is_some(),
        session,
        uses: 1,
        shared: class,
    })
}

/// Appends the key of a request whose answer may be shared, or says in one word why it goes
/// past the cache.
fn put_shared_key(
    request: &mut Request,
    rules: &SharedRules,
    key: &mut Vec<u8>,
) -> Result<Class, &'static str> {
    if !matches!(request.method, Method::Get | Method::Head) {
        return Err("method");
    }
    if !matches!(request.body, RequestBody::None) {
        return Err("body");
    }
    let class = shared::put_key(request, rules, key).map_err(|why| why.word())?;
    if let Some(own) = &rules.key {
        key.push(0);
        variable::append(request, own, key);
    }
    Ok(class)
}

/// The keys of all that is stored for a URL, whatever the visitor's class, cookies and scheme:
/// an application knows one scheme, and the proxy in front of it may speak another. As
/// elsewhere, `*` at the end of the address means all that begin so.
fn url_keys(request: &Request, rules: &SharedRules) -> PurgedKeys {
    let other = match request.scheme {
        "http" => "https",
        _ => "http",
    };
    PurgedKeys::Url([request.scheme, other].map(|scheme| {
        let mut start = Vec::new();
        shared::put_url(request, scheme, rules, &mut start);
        if start.ends_with(b"*\0") {
            start.truncate(start.len() - 2);
        }
        start
    }))
}

/// Nobody's writes remove a page more often than this, even if it is fresh for longer.
const LONGEST_INVALIDATION_PAUSE: Duration = Duration::from_secs(10);

/// What a write removes: what GET has stored for its target. Where anybody may write and
/// pages are shared (`cache_shared`), once in a page's lifetime: a flood of writes would
/// otherwise keep the page out of the cache.
fn invalidation<'a>(
    request: &mut Request,
    rules: &CacheRules,
    zone: &'a Arc<Zone>,
) -> Invalidation<'a> {
    let Some(shared) = &rules.shared else {
        return Invalidation {
            zone,
            keys: vec![key_of_get(request, rules)],
            pause: None,
            drops_not_found: false,
        };
    };
    let lifetime = rules
        .valid
        .iter()
        .find(|rule| rule.statuses.is_empty() || rule.statuses.contains(&200))
        .map_or(LONGEST_INVALIDATION_PAUSE, |rule| rule.lifetime);
    Invalidation {
        zone,
        keys: shared::keys_of_classes(request, shared),
        pause: Some(lifetime.min(LONGEST_INVALIDATION_PAUSE)),
        drops_not_found: shared.not_found.is_some(),
    }
}

impl Invalidation<'_> {
    /// Removes it.
    pub fn carry_out(&self, now: Millis) {
        if self.drops_not_found {
            let target = PurgeTarget::NotFound;
            self.zone.purge(target, PurgeMode::Hard, now);
        }
        for key in &self.keys {
            let key = KeyRef::new(key);
            let may = self
                .pause
                .is_none_or(|pause| self.zone.may_invalidate(&key, now, pause));
            if may {
                self.zone.purge(PurgeTarget::Key(key), PurgeMode::Hard, now);
            }
        }
    }
}

/// What a purge is about: the page as GET and HEAD have stored it.
fn keys_of_reads(request: &mut Request, rules: &CacheRules) -> Vec<PurgedKeys> {
    let mut keys = vec![PurgedKeys::of(key_of_get(request, rules))];
    let of_head = PurgedKeys::of(key_of(request, rules, "HEAD"));
    if !keys.contains(&of_head) {
        keys.push(of_head);
    }
    keys
}

/// The key that a GET for the same target has.
fn key_of_get(request: &mut Request, rules: &CacheRules) -> Vec<u8> {
    key_of(request, rules, "GET")
}

/// The key that the same request has with another method.
fn key_of(request: &mut Request, rules: &CacheRules, method: &'static str) -> Vec<u8> {
    let method = request.method_override.replace(method);
    // What maps gave for the method that came is not what they give for this one.
    let maps = std::mem::take(&mut request.extras.map_values);
    let key = variable::evaluate(request, &rules.key);
    request.extras.map_values = maps;
    request.method_override = method;
    key
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

pub fn is_any_true(request: &mut Request, conditions: &[site::Template]) -> bool {
    conditions
        .iter()
        .any(|condition| variable::is_true(request, condition))
}

/// Is this the browser of somebody who wrote something a moment ago?
fn is_writer(request: &Request, lifetime: Duration) -> bool {
    let Some(value) = http1::cookie::find(&request.head, WRITER_COOKIE) else {
        return false;
    };
    let until = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    let longest = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
    // A value further off than we ever write is not ours.
    until.is_some_and(|until| request.now < until && until - request.now <= longest)
}

/// With `cache_private`: appends the session's cookies to the key, so that it
/// holds the whole identity, and gives the group that its copies count against.
fn session_of(request: &Request, rules: &CacheRules, key: &mut Vec<u8>) -> Option<u64> {
    let private = rules.private.as_ref()?;
    let identity_start = key.len();
    for (name, value) in cookies(&request.head) {
        if private.cookies.iter().any(|glob| matches_glob(glob, name)) {
            // NUL cannot stand in a field, so no key without a session looks like this.
            key.push(0);
            key.extend_from_slice(name);
            key.push(b'=');
            key.extend_from_slice(value);
        }
    }
    let identity = &key[identity_start..];
    if identity.is_empty() {
        return None;
    }
    let mut hasher = foldhash::fast::FixedState::with_seed(0).build_hasher();
    hasher.write(identity);
    Some(hasher.finish())
}

/// Has the request cookies that count and that its key does not hold?
pub fn has_cookie_outside_key(request: &mut Request, plan: &Plan<'_>) -> bool {
    let rules = plan.rules;
    let in_key = &rules.cookies_in_key;
    let is_ignored = |name: &[u8]| {
        let ignored = rules.ignored_cookies.iter();
        let named = in_key.iter().filter_map(|part| match part {
            CookieInKey::Named(named) => Some(named),
            _ => None,
        });
        ignored.clone().any(|glob| matches_glob(glob, name))
            || named.clone().any(|named| named.eq_ignore_ascii_case(name))
            || name == WRITER_COOKIE
    };
    let fields = request.head.field_all(b"cookie");
    let has_none = fields
        .flat_map(|value| value.split(|&byte| byte == b';'))
        .map(|pair| pair.split(|&byte| byte == b'=').next().unwrap_or_default())
        .map(<[u8]>::trim_ascii)
        .all(|name| name.is_empty() || is_ignored(name));
    // A session's copies are told apart by its cookies.
    if plan.session.is_some() || has_none {
        return false;
    }
    !in_key.iter().any(|part| match part {
        CookieInKey::All => true,
        CookieInKey::Named(_) => false,
        CookieInKey::Slot(slot) => {
            let value = request.extras.slots.get(slot.0);
            value.is_some_and(|value| value.as_ref().is_some_and(|value| !value.is_empty()))
        }
        CookieInKey::Map(id) => {
            let value = variable::evaluate_map(request, *id);
            let configuration = request.configuration.clone();
            let default = &configuration.site.http.maps[id.0].default;
            !value.is_empty() && value != variable::evaluate(request, default)
        }
    })
}

/// The storing policy that a plan's rules and the upstream's settings add up to.
pub fn storing_policy(plan: &Plan<'_>, exchange: &site::Exchange) -> Policy {
    let rules = plan.rules;
    let ignored = exchange.ignored_fields;
    let at_least = match (&rules.shared, plan.shared) {
        (Some(shared), Some(Class::Crawler)) => shared.crawler_lifetime.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    let cookies = rules.ignored_cookies.iter();
    Policy {
        methods: Methods {
            get_head: true,
            post: rules.methods.post,
        },
        ignore: IgnoreFields {
            accel_expires: ignored.x_accel_expires,
            cache_control: ignored.cache_control,
            expires: ignored.expires,
            // Not what `*_ignore_headers` says: it would hand one visitor's session to all.
            set_cookie: rules.stores_set_cookie,
            vary: ignored.vary,
        },
        valid: rules
            .valid
            .iter()
            .map(|rule| ValidRule {
                statuses: match rule.statuses.as_slice() {
                    [] => StatusSet::Any,
                    statuses => StatusSet::Of(statuses.to_vec()),
                },
                lifetime: rule.lifetime.max(at_least),
            })
            .collect(),
        not_found: plan
            .shared
            .and(rules.shared.as_ref())
            .and_then(|shared| shared.not_found),
        max_fresh: rules.max_valid.map(|most| most.max(at_least)),
        store_authorized: rules.stores_authorized,
        min_uses: rules.min_uses,
        vary: Arc::new(VaryRules {
            ignore_cookies: cookies
                .map(|glob| String::from_utf8_lossy(glob).into_owned())
                .collect(),
        }),
        ..Policy::default()
    }
}

/// `*_cache_use_stale` in the cache's terms.
pub fn use_stale(rules: &CacheRules) -> UseStale {
    let named = &rules.use_stale;
    let statuses = [500, 502, 503, 504, 403, 404, 429];
    UseStale {
        updating: named.updating,
        error: named.error,
        timeout: named.timeout,
        invalid_header: named.invalid_header,
        statuses: statuses
            .into_iter()
            .filter(|&status| named.has_status(status))
            .collect(),
        // nginx's directive is the operator's word by name; it wins there too.
        override_must_revalidate: true,
        bounds: rules.stale.as_ref().map(|stale| StaleBounds {
            while_renewed: stale.while_renewed,
            while_failing: stale.while_failing,
        }),
    }
}
