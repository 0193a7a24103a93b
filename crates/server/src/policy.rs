//! What the cache may do for a request: nothing, a purge, or a look-up by a
//! key under rules. Reads conditions and variables; touches no store.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use http_cache::{
    IgnoreFields, Methods, Policy, RequestFields, StaleBounds, StatusSet, UseStale, ValidRule,
    VaryRules, Zone,
};
use http1::RequestHead;
use site::{CacheRules, CacheZoneChoice, Pass};

use crate::body::RequestBody;
use crate::request::{Method, Request, View};
use crate::runtime::Runtime;
use crate::serve::proxy;
use crate::variable;

/// Carries until when (unix milliseconds) its browser sees past the cache.
pub const WRITER_COOKIE: &[u8] = b"mayfly_writer";

/// How a request and the cache deal with each other.
pub enum CachePlan<'a> {
    /// The cache has no part in it.
    Off,
    /// Remove what is stored under the key.
    Purge {
        zone: &'a Arc<Zone>,
        key: Vec<u8>,
    },
    /// It changes something: what is stored for the same target goes once the
    /// origin server agreed to it (RFC 9111 §4.4).
    Invalidate {
        zone: &'a Arc<Zone>,
        key: Vec<u8>,
    },
    Use(Plan<'a>),
    /// `*_cache` with variables came to the name of no zone.
    UnknownZone(String),
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
}

/// Decides what the cache may do. A purge condition needs no cacheable method.
/// What the plan names is the configuration's own: a hit takes no share of anything
/// that all threads have in common.
#[inline]
pub fn plan<'a>(request: &mut Request, runtime: &'a Runtime, pass: &'a Pass) -> CachePlan<'a> {
    let Some(rules) = &pass.cache else {
        return CachePlan::Off;
    };
    if request.method.is_write()
        && let Some(lifetime) = rules.read_your_writes
    {
        request.cache.marks_writer = Some(lifetime);
    }
    let zone = match zone(request, runtime, rules) {
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
        return CachePlan::Purge {
            zone,
            key: variable::evaluate(request, &rules.key),
        };
    }
    if !is_cacheable(request.method, rules) {
        request.cache.reason = Some("method");
        if request.method.is_write() {
            return CachePlan::Invalidate {
                zone,
                key: key_of_get(request, rules),
            };
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
    variable::append(request, &rules.key, &mut key);
    let session = session_of(request, rules, &mut key);
    let writer = rules
        .read_your_writes
        .is_some_and(|lifetime| is_writer(request, lifetime));
    let alone = why_alone(request, pass);
    let bypass = if alone.is_some() {
        alone
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
        never_store: writer || alone.is_some(),
        session,
        uses: 1,
    })
}

/// The key that a GET for the same target has.
fn key_of_get(request: &mut Request, rules: &CacheRules) -> Vec<u8> {
    let method = request.method_override.replace("GET");
    let key = variable::evaluate(request, &rules.key);
    request.method_override = method;
    key
}

/// The zone; none where variables came to `off` or nothing; the name of one that
/// is not there.
fn zone<'a>(
    request: &mut Request,
    runtime: &'a Runtime,
    rules: &CacheRules,
) -> Result<Option<&'a Arc<Zone>>, String> {
    match &rules.zone {
        CacheZoneChoice::Zone(id) => Ok(Some(&runtime.zones[id.0])),
        CacheZoneChoice::Variable(template) => {
            let name = variable::evaluate(request, template);
            let names = &runtime.site.http.cache_zones;
            if name.is_empty() || name == b"off" {
                return Ok(None);
            }
            match names.iter().position(|zone| zone.name.as_bytes() == name) {
                Some(index) => Ok(Some(&runtime.zones[index])),
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
fn is_writer(request: &Request, lifetime: std::time::Duration) -> bool {
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

/// Cookies of a request: name and value.
pub fn cookies(head: &RequestHead) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.field_all(b"cookie")
        .flat_map(|value| value.split(|&byte| byte == b';'))
        .filter_map(|pair| {
            let pair = pair.trim_ascii();
            let equals = pair.iter().position(|&byte| byte == b'=')?;
            Some((&pair[..equals], &pair[equals + 1..]))
        })
}

/// `*` at the end stands for anything.
pub fn matches_glob(glob: &[u8], name: &[u8]) -> bool {
    match glob.strip_suffix(b"*") {
        Some(prefix) => name.starts_with(prefix),
        None => glob == name,
    }
}

/// Appends `args` without the arguments that `cache_ignore_args` names.
pub fn put_counted_args(args: &[u8], ignored: &[Box<[u8]>], out: &mut Vec<u8>) {
    let start = out.len();
    for pair in args.split(|&byte| byte == b'&') {
        let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
        if pair.is_empty() || ignored.iter().any(|glob| matches_glob(glob, name)) {
            continue;
        }
        if out.len() > start {
            out.push(b'&');
        }
        out.extend_from_slice(pair);
    }
}

/// Appends the cookies that count, as they would stand in a Cookie field.
pub fn put_counted_cookies(head: &RequestHead, ignored: &[Box<[u8]>], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    for (name, value) in cookies(head) {
        if ignored.iter().any(|glob| matches_glob(glob, name)) {
            continue;
        }
        if out.len() > start {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value);
    }
    out.len() > start
}

/// A request's fields as the cache asks for them.
pub struct Fields<'a>(pub &'a RequestHead);

impl RequestFields for Fields<'_> {
    fn each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for value in self.0.field_all(name.as_bytes()) {
            visit(value);
        }
    }
}

/// The storing policy that `rules` and the upstream's settings add up to.
pub fn storing_policy(rules: &CacheRules, exchange: &site::Exchange) -> Policy {
    let ignored = exchange.ignored_fields;
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
            set_cookie: ignored.set_cookie || rules.stores_set_cookie,
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
                lifetime: rule.lifetime,
            })
            .collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_arguments_leave_no_trace_in_the_key() {
        let ignored: Vec<Box<[u8]>> = vec![(*b"utm_*").into(), (*b"gclid").into()];
        for (args, wanted) in [
            ("a=1&utm_source=x&b=2", "a=1&b=2"),
            ("utm_source=x", ""),
            ("gclid=1&gclidx=2", "gclidx=2"),
            ("", ""),
            ("a&b=&&c", "a&b=&c"),
        ] {
            let mut out = Vec::new();
            put_counted_args(args.as_bytes(), &ignored, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), wanted, "{args}");
        }
    }
}
