//! A browser's private cache (RFC 9111): responses of the loads before that it may show again.

use std::collections::HashMap;
use std::time::SystemTime;

use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{request, response};
use http_cache_semantics::{AfterResponse, BeforeRequest, CacheOptions, CachePolicy};
use url::Url;

/// Bytes of all kept bodies together; bodies that nothing is read from are kept as their sizes.
const MAX_KEPT_BYTES: usize = 128 << 20;

/// Kept answers by address.
#[derive(Default)]
pub struct BrowserCache {
    kept: HashMap<Url, KeptAnswer>,
    bytes: usize,
}

struct KeptAnswer {
    policy: CachePolicy,
    body: KeptBody,
}

/// A body without its content coding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptBody {
    /// The body of a document or a style sheet, of which more resources are read.
    pub text: Vec<u8>,
    pub decoded_bytes: u64,
}

/// The cache's verdict on a request.
pub enum CacheVerdict {
    /// There is no fitting response.
    Ask,
    /// To be asked with these fields, which name the kept response.
    Validate(http::HeaderMap),
    /// The stored response is used.
    Use(Box<response::Parts>, KeptBody),
}

impl BrowserCache {
    pub fn verdict(&self, url: &Url, request: &request::Parts, now: SystemTime) -> CacheVerdict {
        let Some(kept) = self.kept.get(url) else {
            return CacheVerdict::Ask;
        };
        match kept.policy.before_request(request, now) {
            BeforeRequest::Fresh(parts) => CacheVerdict::Use(Box::new(parts), kept.body.clone()),
            BeforeRequest::Stale {
                request,
                matches: true,
            } if has_condition(&request.headers) => CacheVerdict::Validate(request.headers),
            BeforeRequest::Stale { .. } => CacheVerdict::Ask,
        }
    }

    /// Returns the response shown after a 304: the kept answer with fresh fields. A 304 that does not
    /// name the kept answer changes nothing of it, and its body is shown all the same, as browsers
    /// do.
    pub fn freshened(
        &mut self,
        url: &Url,
        request: &request::Parts,
        answer: &response::Parts,
        now: SystemTime,
    ) -> Option<(Box<response::Parts>, KeptBody)> {
        let kept = self.kept.get_mut(url)?;
        let parts = match kept.policy.after_response(request, answer, now) {
            AfterResponse::NotModified(policy, parts) => {
                kept.policy = policy;
                parts
            }
            AfterResponse::Modified(_, mut parts) => {
                parts.status = http::StatusCode::OK;
                parts
            }
        };
        Some((Box::new(parts), kept.body.clone()))
    }

    /// Keeps an answer if it may be kept.
    pub fn keep(
        &mut self,
        url: &Url,
        request: &request::Parts,
        answer: &response::Parts,
        body: KeptBody,
        now: SystemTime,
    ) {
        let options = CacheOptions {
            shared: false,
            ..CacheOptions::default()
        };
        let policy = CachePolicy::new_options(request, answer, now, options);
        if let Some(before) = self.kept.remove(url) {
            self.bytes -= before.body.text.len();
        }
        if policy.is_storable() && self.bytes + body.text.len() <= MAX_KEPT_BYTES {
            self.bytes += body.text.len();
            self.kept.insert(url.clone(), KeptAnswer { policy, body });
        }
    }
}

fn has_condition(fields: &http::HeaderMap) -> bool {
    fields.contains_key(IF_NONE_MATCH) || fields.contains_key(IF_MODIFIED_SINCE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn request() -> request::Parts {
        let made = http::Request::get("http://site.test/a.css").body(());
        made.expect("a request").into_parts().0
    }

    fn answer(status: u16, fields: &[(&str, &str)]) -> response::Parts {
        let mut made = http::Response::builder().status(status);
        for (name, value) in fields {
            made = made.header(*name, *value);
        }
        made.body(()).expect("an answer").into_parts().0
    }

    #[test]
    fn a_warm_load_asks_for_what_a_browser_would_ask_for() {
        let date = "Mon, 01 Jan 2024 00:00:00 GMT";
        let begun = SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200);
        let url = Url::parse("http://site.test/a.css").expect("a URL");
        #[rustfmt::skip]
        let cases = [
            (vec![("cache-control", "max-age=60")], 30, "use"),
            (vec![("cache-control", "max-age=60"), ("etag", "\"a\"")], 90, "validate"),
            (vec![("cache-control", "no-cache"), ("etag", "\"a\"")], 0, "validate"),
            (vec![("cache-control", "no-store"), ("etag", "\"a\"")], 0, "ask"),
            (vec![("cache-control", "private, max-age=60")], 30, "use"),
            (vec![("cache-control", "max-age=60"), ("vary", "*")], 30, "ask"),
            (vec![("expires", "Mon, 01 Jan 2024 00:01:00 GMT")], 30, "use"),
            // A tenth of its age (RFC 9111 §4.2.2).
            (vec![("last-modified", "Sun, 31 Dec 2023 00:00:00 GMT")], 3600, "use"),
            (vec![("last-modified", "Sun, 31 Dec 2023 00:00:00 GMT")], 9000, "validate"),
            (vec![], 0, "ask"),
        ];
        for (fields, later, expected) in cases {
            let mut fields = fields;
            fields.push(("date", date));
            let mut cache = BrowserCache::default();
            let body = KeptBody::default();
            cache.keep(&url, &request(), &answer(200, &fields), body, begun);
            let verdict = cache.verdict(&url, &request(), begun + Duration::from_secs(later));
            let said = match verdict {
                CacheVerdict::Ask => "ask",
                CacheVerdict::Validate(_) => "validate",
                CacheVerdict::Use(..) => "use",
            };
            assert_eq!(said, expected, "{fields:?} after {later} s");
        }
    }

    #[test]
    fn an_unchanged_answer_is_shown_again_with_its_body() {
        let now = SystemTime::now();
        let url = Url::parse("http://site.test/a.css").expect("a URL");
        let mut cache = BrowserCache::default();
        let body = KeptBody {
            text: b"a{}".to_vec(),
            decoded_bytes: 3,
        };
        let first = answer(200, &[("etag", "\"a\""), ("cache-control", "max-age=0")]);
        cache.keep(&url, &request(), &first, body.clone(), now);
        let CacheVerdict::Validate(fields) = cache.verdict(&url, &request(), now) else {
            panic!("it is stale");
        };
        assert_eq!(fields.get("if-none-match").expect("a condition"), "\"a\"");
        let unchanged = answer(304, &[("etag", "\"a\""), ("cache-control", "max-age=60")]);
        let shown = cache.freshened(&url, &request(), &unchanged, now);
        let (parts, shown) = shown.expect("it is unchanged");
        assert_eq!((parts.status.as_u16(), shown), (200, body));
        let verdict = cache.verdict(&url, &request(), now);
        assert!(
            matches!(verdict, CacheVerdict::Use(..)),
            "it is fresh again"
        );
    }
}
