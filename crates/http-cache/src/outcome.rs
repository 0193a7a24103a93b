//! The result of the cache for one request, in RFC 9211's words and in nginx's.
//!
//! The pipeline fills an [`Outcome`] in; the `Cache-Status` field, the variable
//! `$upstream_cache_status`, the log and the counters are renderings of it.

use crate::reason::Reason;
use std::fmt;
use std::time::Duration;

/// Why a request was forwarded (RFC 9211 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// The configuration made the cache not handle this request.
    Bypass,
    /// The method's semantics require it.
    Method,
    /// Nothing stored for this key.
    UriMiss,
    /// Stored responses for the key, none for these request fields.
    VaryMiss,
    /// Nothing usable stored, without telling the two apart.
    Miss,
    /// The request's directives asked for it.
    Request,
    /// The stored response was stale.
    Stale,
    /// Only a part was stored.
    Partial,
}

/// nginx's `$upstream_cache_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamCacheStatus {
    /// Not found in the cache.
    Miss,
    /// The cache was not consulted.
    Bypass,
    /// Found stale, and the upstream's new response was sent.
    Expired,
    /// Served stale because the upstream failed, or by the request that began a refresh.
    Stale,
    /// Served stale while a refresh is under way.
    Updating,
    /// Found stale, and the upstream answered 304.
    Revalidated,
    /// Served fresh from the cache.
    Hit,
}

impl UpstreamCacheStatus {
    /// The variable's value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            UpstreamCacheStatus::Miss => "MISS",
            UpstreamCacheStatus::Bypass => "BYPASS",
            UpstreamCacheStatus::Expired => "EXPIRED",
            UpstreamCacheStatus::Stale => "STALE",
            UpstreamCacheStatus::Updating => "UPDATING",
            UpstreamCacheStatus::Revalidated => "REVALIDATED",
            UpstreamCacheStatus::Hit => "HIT",
        }
    }
}

/// How a stored response came to be the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServedFrom {
    /// It did not: the answer came from the upstream.
    #[default]
    No,
    /// Fresh.
    Fresh,
    /// Stale, and this request began the refresh in the background.
    StaleRefreshing,
    /// Stale while the refresh that another request began is under way.
    StaleUpdating,
    /// Stale because the upstream failed, was too slow, or too many requests waited for it.
    StaleError,
    /// Stale, and validated with the upstream (304).
    Revalidated,
}

/// The result of the cache for one request. `Default` is neither a hit nor forwarded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether and how the answer came from storage.
    pub served: ServedFrom,
    /// Why the request went forward, if it did. A collapsed request went forward too.
    pub fwd: Option<Forward>,
    /// The upstream's status where it differs from the one sent (RFC 9211 §2.3).
    pub fwd_status: Option<u16>,
    /// Freshness lifetime left in whole seconds; negative when stale (RFC 9211 §2.5).
    pub ttl_secs: Option<i64>,
    /// Stored now.
    pub stored: bool,
    /// Waited for another request's fetch instead of making one.
    pub collapsed: bool,
    /// The stored response came from where the zone keeps others beside memory.
    pub from_tier: bool,
    /// The cache key, where the operator wants it shown.
    pub key: Option<String>,
}

impl Outcome {
    /// A fresh stored response was the answer.
    #[must_use]
    pub fn hit(fresh_for: Duration) -> Outcome {
        let ttl_secs = Some(i64::try_from(fresh_for.as_secs()).unwrap_or(i64::MAX));
        Outcome {
            served: ServedFrom::Fresh,
            ttl_secs,
            ..Outcome::default()
        }
    }

    /// The request went forward.
    #[must_use]
    pub fn forwarded(reason: Forward) -> Outcome {
        Outcome {
            fwd: Some(reason),
            ..Outcome::default()
        }
    }

    /// nginx's word for it; none when no cache had a part in it.
    #[must_use]
    pub fn upstream_cache_status(&self) -> Option<UpstreamCacheStatus> {
        Some(match (self.served, self.fwd) {
            (ServedFrom::Fresh, _) => UpstreamCacheStatus::Hit,
            (ServedFrom::StaleUpdating, _) => UpstreamCacheStatus::Updating,
            (ServedFrom::StaleRefreshing | ServedFrom::StaleError, _) => UpstreamCacheStatus::Stale,
            (ServedFrom::Revalidated, _) => UpstreamCacheStatus::Revalidated,
            (ServedFrom::No, Some(Forward::Bypass)) => UpstreamCacheStatus::Bypass,
            (ServedFrom::No, Some(Forward::Stale)) => UpstreamCacheStatus::Expired,
            (ServedFrom::No, Some(Forward::Method) | None) => return None,
            (ServedFrom::No, Some(_)) => UpstreamCacheStatus::Miss,
        })
    }

    /// The `Cache-Status` value for the cache called `cache` (a token), see RFC 9211 §2. `reason`:
    /// why it had no part in the response.
    #[must_use]
    pub fn cache_status<'a>(
        &'a self,
        cache: &'a str,
        reason: Option<Reason>,
    ) -> impl fmt::Display + 'a {
        CacheStatus {
            outcome: self,
            cache,
            reason,
        }
    }
}

struct CacheStatus<'a> {
    outcome: &'a Outcome,
    cache: &'a str,
    reason: Option<Reason>,
}

impl fmt::Display for CacheStatus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome {
            served,
            fwd,
            fwd_status,
            ttl_secs,
            stored,
            collapsed,
            from_tier,
            key,
        } = self.outcome;
        f.write_str(self.cache)?;
        match fwd {
            // RFC 9211 §2.1: hit and fwd exclude each other; a stale answer given at once is a hit.
            None if *served != ServedFrom::No => f.write_str("; hit")?,
            None => {}
            Some(reason) => write!(f, "; fwd={}", reason.token())?,
        }
        if let Some(status) = fwd_status {
            write!(f, "; fwd-status={status}")?;
        }
        if let Some(ttl) = ttl_secs {
            write!(f, "; ttl={ttl}")?;
        }
        if *stored {
            f.write_str("; stored")?;
        }
        if *collapsed {
            f.write_str("; collapsed")?;
        }
        if let Some(key) = key {
            write!(f, "; key={}", QuotedString(key))?;
        }
        if let Some(reason) = self.reason {
            write!(f, "; detail={}", reason.word())?;
        } else if *from_tier {
            f.write_str("; detail=disk")?;
        } else if *served == ServedFrom::StaleError {
            f.write_str("; detail=upstream-trouble")?;
        }
        Ok(())
    }
}

/// A structured-field string (RFC 9651 §3.3.3): printable ASCII, the rest shown as `?`.
struct QuotedString<'a>(&'a str);

impl fmt::Display for QuotedString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                ' '..='~' => f.write_char(c)?,
                _ => f.write_char('?')?,
            }
        }
        f.write_char('"')
    }
}

impl Forward {
    fn token(self) -> &'static str {
        match self {
            Forward::Bypass => "bypass",
            Forward::Method => "method",
            Forward::UriMiss => "uri-miss",
            Forward::VaryMiss => "vary-miss",
            Forward::Miss => "miss",
            Forward::Request => "request",
            Forward::Stale => "stale",
            Forward::Partial => "partial",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_speaks_both_languages() {
        let forwarded = Outcome::forwarded;
        let stale = |served| Outcome {
            served,
            ttl_secs: Some(-3),
            ..Outcome::default()
        };
        #[rustfmt::skip]
        let cases = [
            (Outcome::hit(Duration::from_millis(1900)), "m; hit; ttl=1", Some("HIT")),
            (forwarded(Forward::Bypass), "m; fwd=bypass", Some("BYPASS")),
            (
                Outcome { stored: true, ttl_secs: Some(60), ..forwarded(Forward::UriMiss) },
                "m; fwd=uri-miss; ttl=60; stored", Some("MISS"),
            ),
            (
                Outcome { collapsed: true, ..forwarded(Forward::VaryMiss) }, "m; fwd=vary-miss; collapsed",
                Some("MISS"),
            ),
            (forwarded(Forward::Stale), "m; fwd=stale", Some("EXPIRED")),
            (
                Outcome { served: ServedFrom::Revalidated, fwd_status: Some(304), ..forwarded(Forward::Stale) },
                "m; fwd=stale; fwd-status=304", Some("REVALIDATED"),
            ),
            (stale(ServedFrom::StaleUpdating), "m; hit; ttl=-3", Some("UPDATING")),
            (stale(ServedFrom::StaleRefreshing), "m; hit; ttl=-3", Some("STALE")),
            (stale(ServedFrom::StaleError), "m; hit; ttl=-3; detail=upstream-trouble", Some("STALE")),
            (forwarded(Forward::Method), "m; fwd=method", None),
            (
                Outcome { key: Some("a\"b\\\n".into()), ..forwarded(Forward::Miss) },
                "m; fwd=miss; key=\"a\\\"b\\\\?\"", Some("MISS"),
            ),
        ];
        for (outcome, field, word) in cases {
            assert_eq!(outcome.cache_status("m", None).to_string(), field);
            let refused = outcome.cache_status("m", Some(Reason::SetCookie));
            let without = field.trim_end_matches("; detail=upstream-trouble");
            assert_eq!(refused.to_string(), format!("{without}; detail=set-cookie"));
            assert_eq!(
                outcome
                    .upstream_cache_status()
                    .map(UpstreamCacheStatus::as_str),
                word,
                "{field}"
            );
        }
    }
}
