//! The freshness lifetime of a response (RFC 9111 §4.2), with nginx's additions.
//!
//! The first source with a lifetime decides: `X-Accel-Expires`, `CDN-Cache-Control` (RFC 9213),
//! `Cache-Control`, `Expires`, then the operator's rules by status. `X-Accel-Expires` overrides the
//! prohibitions of those below it, as in nginx; `stale-while-revalidate` and `stale-if-error` apply
//! whichever source gave the lifetime. A value that cannot be parsed counts as stale (§4.2.1).

#[cfg(test)]
mod tests;

use crate::fields::{Field, first, values};
use crate::policy::{Policy, StatusSet, ValidRule};
use crate::reason::Reason;
use crate::time::Millis;
use std::time::Duration;

/// Seconds above this are cut to it (RFC 9111 §1.2.2).
const MAX_DELTA_SECS: u64 = 1 << 31;

/// How far `Date` may lie behind our clock before it counts as age: it is cut to whole seconds and
/// clocks are never quite equal, and a microcache's lifetimes are of that size.
const DATE_SLACK: Duration = Duration::from_secs(2);

/// The source of a response's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeSource {
    /// `X-Accel-Expires`.
    AccelExpires,
    /// `CDN-Cache-Control`.
    CdnCacheControl,
    /// `Cache-Control: s-maxage`.
    SMaxage,
    /// `Cache-Control: max-age`.
    MaxAge,
    /// `Expires`.
    Expires,
    /// A rule by status.
    Rule,
    /// A share of the time since `Last-Modified`.
    Heuristic,
    /// `Cache-Control: no-cache`: no time at all, it is validated on each use.
    NoCache,
}

impl LifetimeSource {
    /// Returns whether age gathered upstream shortens the lifetime. `X-Accel-Expires` and the
    /// operator's rules speak about time in this cache.
    #[must_use]
    pub fn counts_age(self) -> bool {
        !matches!(
            self,
            LifetimeSource::AccelExpires | LifetimeSource::Rule | LifetimeSource::NoCache
        )
    }

    /// One word for logs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            LifetimeSource::AccelExpires => "x-accel-expires",
            LifetimeSource::CdnCacheControl => "cdn-cache-control",
            LifetimeSource::SMaxage => "s-maxage",
            LifetimeSource::MaxAge => "max-age",
            LifetimeSource::Expires => "expires",
            LifetimeSource::Rule => "rule",
            LifetimeSource::Heuristic => "heuristic",
            LifetimeSource::NoCache => "no-cache",
        }
    }
}

/// The directives of `Cache-Control` that a cache reads from a response (RFC 9111 §5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache`, also with field names.
    pub no_cache: bool,
    /// `private`, also with field names.
    pub private: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// `must-understand`.
    pub must_understand: bool,
    /// `s-maxage`; zero when it cannot be parsed.
    pub s_maxage: Option<Duration>,
    /// `max-age`; zero when it cannot be parsed.
    pub max_age: Option<Duration>,
    /// `stale-while-revalidate`; absent when it cannot be parsed.
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error`; absent when it cannot be parsed.
    pub stale_if_error: Option<Duration>,
    /// `s-maxage` or `max-age` is there and cannot be parsed.
    pub is_lifetime_unreadable: bool,
}

/// A positive answer of [`lifetime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    pub lifetime: Duration,
    pub source: LifetimeSource,
    pub stale_while_revalidate: Option<Duration>,
    pub stale_if_error: Option<Duration>,
    pub must_revalidate: bool,
    pub allows_authorized: bool,
}

impl Lifetime {
    /// The lifetime of a response that is validated on each use.
    pub const NONE_BUT_VALIDATED: Lifetime = Lifetime {
        lifetime: Duration::ZERO,
        source: LifetimeSource::NoCache,
        stale_while_revalidate: Some(Duration::ZERO),
        stale_if_error: Some(Duration::ZERO),
        must_revalidate: true,
        allows_authorized: false,
    };

    /// Returns the lifetime that a rule sets, whatever the fields contain.
    pub fn of_rule(lifetime: Duration) -> Lifetime {
        Lifetime {
            lifetime,
            source: LifetimeSource::Rule,
            stale_while_revalidate: None,
            stale_if_error: None,
            must_revalidate: false,
            allows_authorized: false,
        }
    }
}

/// The lifetime from one field or rule.
enum LifetimeRule {
    Nothing,
    Never(Reason),
    For(Duration, LifetimeSource),
}

/// The lifetime, or the reason why the response may not be reused.
pub(crate) fn lifetime(
    status: u16,
    fields: &[Field],
    policy: &Policy,
    now: Millis,
) -> Result<Lifetime, Reason> {
    let ignore = policy.ignore;
    let (control, targeted) = match ignore.cache_control {
        true => (CacheControl::default(), false),
        false => effective_control(fields, policy.targeted),
    };
    let mut says = match ignore.accel_expires {
        true => LifetimeRule::Nothing,
        false => accel_expires(fields, now),
    };
    if let LifetimeRule::Nothing = says {
        says = by_control(&control, targeted, status);
    }
    if let (LifetimeRule::Nothing, false, false) = (&says, ignore.expires, targeted) {
        says = by_expires(fields, now);
    }
    if let LifetimeRule::Nothing = says {
        says = by_rule(status, &policy.valid);
    }
    if let LifetimeRule::Nothing = says {
        says = by_heuristic((status, &control), fields, policy, now);
    }
    match says {
        LifetimeRule::Nothing => Err(Reason::NoLifetime),
        LifetimeRule::Never(reason) => Err(reason),
        LifetimeRule::For(Duration::ZERO, source) if source != LifetimeSource::AccelExpires => {
            Err(Reason::ZeroLifetime)
        }
        LifetimeRule::For(lifetime, source) => Ok(Lifetime {
            lifetime,
            source,
            stale_while_revalidate: control.stale_while_revalidate,
            stale_if_error: control.stale_if_error,
            must_revalidate: control.must_revalidate || control.proxy_revalidate,
            // RFC 9111 §3.5.
            allows_authorized: control.public
                || control.must_revalidate
                || control.s_maxage.is_some(),
        }),
    }
}

/// RFC 9213 §2.2: a targeted field that parses and is not empty replaces Cache-Control and Expires.
fn effective_control(fields: &[Field], obey_targeted: bool) -> (CacheControl, bool) {
    let targeted =
        obey_targeted.then(|| CacheControl::parse_targeted(values(fields, "cdn-cache-control")));
    match targeted.flatten() {
        Some(control) => (control, true),
        None => (CacheControl::parse(values(fields, "cache-control")), false),
    }
}

/// nginx: a number of seconds, zero to forbid, `@` before an absolute time; fractions are ours.
/// An unreadable value is ignored.
fn accel_expires(fields: &[Field], now: Millis) -> LifetimeRule {
    let Some(value) = first(fields, "x-accel-expires").map(<[u8]>::trim_ascii) else {
        return LifetimeRule::Nothing;
    };
    let (absolute, number) = match value.split_first() {
        Some((b'@', rest)) => (true, rest),
        _ => (false, value),
    };
    let Some(millis) = decimal_millis(number) else {
        return LifetimeRule::Nothing;
    };
    let lifetime = match absolute {
        _ if millis == 0 => return LifetimeRule::Never(Reason::ZeroLifetime),
        // A moment that has passed is stored all the same, stale (as in nginx): the application
        // asks for a copy that is refreshed on each use.
        true => Millis(millis).since(now),
        false => Duration::from_millis(millis),
    };
    LifetimeRule::For(lifetime, LifetimeSource::AccelExpires)
}

/// `12`, `0.5`, `.5`: seconds as milliseconds, rounded down.
fn decimal_millis(text: &[u8]) -> Option<u64> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(dot) => (text.get(..dot)?, text.get(dot + 1..)?),
        None => (text, &b"0"[..]),
    };
    if whole.is_empty() && fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let secs = if whole.is_empty() { 0 } else { digits(whole)? };
    let millis = (0..3).fold(0, |sum, i| {
        sum * 10 + fraction.get(i).map_or(0, |digit| u64::from(digit - b'0'))
    });
    Some(secs.saturating_mul(1000).saturating_add(millis))
}

fn by_control(control: &CacheControl, targeted: bool, status: u16) -> LifetimeRule {
    // RFC 9111 §5.2.2.3: a cache that knows the status may pass over no-store.
    let no_store = control.no_store && !(control.must_understand && is_understood(status));
    if no_store {
        return LifetimeRule::Never(Reason::NoStoreDirective);
    }
    if control.private {
        return LifetimeRule::Never(Reason::Private);
    }
    if control.no_cache {
        return LifetimeRule::Never(Reason::NoCache);
    }
    let lifetime = control.s_maxage.or(control.max_age);
    if control.is_lifetime_unreadable && lifetime == Some(Duration::ZERO) {
        return LifetimeRule::Never(Reason::UnknownLifetime);
    }
    match (control.s_maxage, control.max_age, targeted) {
        (Some(age), _, false) => LifetimeRule::For(age, LifetimeSource::SMaxage),
        (None, Some(age), false) => LifetimeRule::For(age, LifetimeSource::MaxAge),
        (Some(age), _, true) | (None, Some(age), true) => {
            LifetimeRule::For(age, LifetimeSource::CdnCacheControl)
        }
        (None, None, _) => LifetimeRule::Nothing,
    }
}

/// RFC 9111 §5.3: an invalid date, `0` above all, means already stale; so does a second field.
fn by_expires(fields: &[Field], now: Millis) -> LifetimeRule {
    let mut all = values(fields, "expires");
    let Some(value) = all.next() else {
        return LifetimeRule::Nothing;
    };
    let generated = first(fields, "date").and_then(date).unwrap_or(now);
    let is_number = |value: &[u8]| value.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    let lifetime = match (date(value), all.next()) {
        (Some(expires), None) => expires.since(generated),
        (None, None) if !is_number(value.trim_ascii()) => {
            return LifetimeRule::Never(Reason::UnknownLifetime);
        }
        _ => Duration::ZERO,
    };
    LifetimeRule::For(lifetime, LifetimeSource::Expires)
}

fn by_rule(status: u16, rules: &[ValidRule]) -> LifetimeRule {
    let rule = rules.iter().find(|rule| match &rule.statuses {
        StatusSet::Any => true,
        StatusSet::Of(statuses) => statuses.contains(&status),
    });
    match rule {
        Some(rule) => LifetimeRule::For(rule.lifetime, LifetimeSource::Rule),
        None => LifetimeRule::Nothing,
    }
}

/// RFC 9111 §4.2.2, for the statuses of RFC 9110 §15.1, and for others that `public` allows.
fn by_heuristic(
    (status, control): (u16, &CacheControl),
    fields: &[Field],
    policy: &Policy,
    now: Millis,
) -> LifetimeRule {
    let is_allowed = control.public || is_heuristically_cacheable(status);
    let (Some((percent, max)), true) = (policy.heuristic, is_allowed) else {
        return LifetimeRule::Nothing;
    };
    let Some(modified) = first(fields, "last-modified").and_then(date) else {
        return LifetimeRule::Nothing;
    };
    let generated = first(fields, "date").and_then(date).unwrap_or(now);
    let lifetime = generated.since(modified).saturating_mul(percent) / 100;
    LifetimeRule::For(lifetime.min(max), LifetimeSource::Heuristic)
}

/// The age a response had when it came (RFC 9111 §4.2.3, without the delay of this hop).
pub(crate) fn initial_age(fields: &[Field], now: Millis) -> Duration {
    let stated = first(fields, "age")
        // RFC 9111 §5.1: the first member counts; a member that is no number is ignored.
        .and_then(|value| value.split(|&b| b == b',').next())
        .and_then(|value| delta_seconds(value.trim_ascii()))
        .unwrap_or_default();
    let apparent = first(fields, "date")
        .and_then(date)
        .map_or(Duration::ZERO, |d| now.since(d));
    let apparent = if apparent < DATE_SLACK {
        Duration::ZERO
    } else {
        apparent
    };
    stated.max(apparent)
}

fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(
        status,
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// Statuses whose caching requirements this cache knows (206 and 304 are handled elsewhere).
fn is_understood(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 307 | 308 | 400..=418 | 421..=426 | 428 | 429 | 431 | 451 | 500..=511)
}

impl CacheControl {
    /// Reads the values of all `Cache-Control` fields. Unknown directives are passed over, the
    /// first of repeated ones counts (RFC 9111 §4.2.1).
    #[must_use]
    pub fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> CacheControl {
        let mut control = CacheControl::default();
        for value in values {
            for (name, argument) in Directives::of(value) {
                control.apply(name, argument);
            }
        }
        control
    }

    /// Reads a targeted field (RFC 9213 §2.1), a structured-field dictionary: the last of repeated
    /// members counts, numbers are integers, and one mistake makes the whole field void. None when
    /// void, empty or absent.
    #[must_use]
    pub fn parse_targeted<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<CacheControl> {
        let mut control = CacheControl::default();
        let mut seen = false;
        for value in values {
            for member in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                let member = member
                    .split(|&b| b == b';')
                    .next()
                    .unwrap_or_default()
                    .trim_ascii();
                let (name, argument) = match memchr::memchr(b'=', member) {
                    Some(at) => (member.get(..at)?, Some(member.get(at + 1..)?)),
                    None => (member, None),
                };
                if !is_dictionary_key(name) {
                    return None;
                }
                control.apply_targeted(name, argument)?;
                seen = true;
            }
        }
        seen.then_some(control)
    }

    fn apply(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let seconds = || argument.and_then(delta_seconds);
        // §4.2.1: a lifetime that cannot be read counts as stale.
        let unreadable = &mut self.is_lifetime_unreadable;
        let or_stale = || {
            *unreadable |= seconds().is_none();
            Some(seconds().unwrap_or_default())
        };
        match name.to_ascii_lowercase().as_slice() {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache = true,
            b"private" => self.private = true,
            b"public" => self.public = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"must-understand" => self.must_understand = true,
            b"s-maxage" => self.s_maxage = self.s_maxage.or_else(or_stale),
            b"max-age" => self.max_age = self.max_age.or_else(or_stale),
            b"stale-while-revalidate" => {
                self.stale_while_revalidate = self.stale_while_revalidate.or_else(seconds);
            }
            b"stale-if-error" => self.stale_if_error = self.stale_if_error.or_else(seconds),
            _ => {}
        }
    }

    fn apply_targeted(&mut self, name: &[u8], argument: Option<&[u8]>) -> Option<()> {
        let on = argument != Some(b"?0");
        // A value of another type makes the directive void, not the field (RFC 9213 §2.1).
        let seconds = argument
            .filter(|a| !a.starts_with(b"\""))
            .and_then(delta_seconds);
        match name {
            b"no-store" => self.no_store = on,
            b"no-cache" => self.no_cache = on,
            b"private" => self.private = on,
            b"public" => self.public = on,
            b"must-revalidate" => self.must_revalidate = on,
            b"proxy-revalidate" => self.proxy_revalidate = on,
            b"must-understand" => self.must_understand = on,
            b"s-maxage" => self.s_maxage = seconds,
            b"max-age" => self.max_age = seconds,
            b"stale-while-revalidate" => self.stale_while_revalidate = seconds,
            b"stale-if-error" => self.stale_if_error = seconds,
            _ => {}
        }
        // A bare item is a number, a token, a string, a boolean, bytes or a list: never empty.
        argument.is_none_or(|a| !a.is_empty()).then_some(())
    }
}

fn is_dictionary_key(name: &[u8]) -> bool {
    name.first()
        .is_some_and(|b| b.is_ascii_lowercase() || *b == b'*')
        && name.iter().all(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'.' | b'*')
        })
}

/// The members of a `Cache-Control` value: name and argument, with quotes taken off.
struct Directives<'a> {
    rest: &'a [u8],
}

impl<'a> Directives<'a> {
    fn of(value: &'a [u8]) -> Self {
        Directives { rest: value }
    }
}

impl<'a> Iterator for Directives<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let (member, rest) = split_member(self.rest);
            self.rest = rest;
            let member = member.trim_ascii();
            if member.is_empty() {
                continue;
            }
            let Some(at) = memchr::memchr(b'=', member) else {
                return Some((member, None));
            };
            let (name, argument) = member.split_at(at);
            let argument = argument.get(1..).unwrap_or_default();
            // White space around `=` is not allowed; keeping it in makes the directive unreadable.
            return Some((name, Some(unquoted(argument))));
        }
    }
}

/// Splits at the first comma outside quotes.
fn split_member(value: &[u8]) -> (&[u8], &[u8]) {
    let mut quoted = false;
    let mut escaped = false;
    for (at, &b) in value.iter().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                return (
                    value.get(..at).unwrap_or_default(),
                    value.get(at + 1..).unwrap_or_default(),
                );
            }
            _ => {}
        }
    }
    (value, &[])
}

fn unquoted(argument: &[u8]) -> &[u8] {
    argument
        .strip_prefix(b"\"")
        .and_then(|a| a.strip_suffix(b"\""))
        .unwrap_or(argument)
}

/// RFC 9111 §1.2.2: digits only, large values cut.
fn delta_seconds(text: &[u8]) -> Option<Duration> {
    digits(text).map(|secs| Duration::from_secs(secs.min(MAX_DELTA_SECS)))
}

/// One or more digits; a value that does not fit is the largest number.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0u64, |n, d| {
        n.saturating_mul(10).saturating_add(u64::from(d - b'0'))
    }))
}

/// A date in any of the three formats (RFC 9110 §5.6.7).
fn date(value: &[u8]) -> Option<Millis> {
    let seconds = u64::try_from(http_semantics::date::parse(value)?).ok()?;
    Some(Millis::default().plus(Duration::from_secs(seconds)))
}

/// Fuzz entry: reading arbitrary values never panics, and reading is stable.
#[doc(hidden)]
pub fn fuzz_cache_control(data: &[u8]) {
    let lines = || data.split(|&b| b == b'\n');
    assert_eq!(CacheControl::parse(lines()), CacheControl::parse(lines()));
    let _ = CacheControl::parse_targeted(lines());
    let name = |n: &'static [u8]| bytes::Bytes::from_static(n);
    let value = bytes::Bytes::copy_from_slice(data);
    for field in [
        &b"x-accel-expires"[..],
        b"expires",
        b"date",
        b"age",
        b"cache-control",
    ] {
        let fields = [(name(field), value.clone())];
        let _ = lifetime(200, &fields, &Policy::default(), Millis(1_700_000_000_000));
        let _ = initial_age(&fields, Millis(1_700_000_000_000));
    }
}
