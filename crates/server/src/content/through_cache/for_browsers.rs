//! Response fields for browsers of pages that carry tags: no purge reaches browsers, so that they have to
//! ask before they show it again, and are answered with 304 from memory (`cache_tagged_control`).

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use cache_decision::with_cookies::CONTROL_WITH_COOKIES;
use http_cache::{ArrivingResponse, Tags};
use http_semantics::escape::hex_digits;

use super::store_plan::StorePlan;
use upstream_fetch::FetchedResponse;

/// The fields for browsers, while the response arrives.
pub struct ForBrowsers {
    /// The value for `Cache-Control`; `None` keeps the application's value.
    control: Option<Bytes>,
    is_control_put: bool,
    /// The digest of the body, if there is no other validator.
    digest: Option<Box<Context>>,
}

/// The bytes of the digest in the tag: enough that two bodies of one page do not collide by chance.
const ETAG_BYTES: usize = 16;

impl ForBrowsers {
    /// `named`: the tags in the head; others may follow.
    pub fn of(store: &StorePlan, fetched: &FetchedResponse, named: &Tags) -> ForBrowsers {
        let rules = store.rules.tags.as_ref();
        let control = match &store.expected.cookies {
            Some(_) => Some(CONTROL_WITH_COOKIES),
            None => rules.and_then(|rules| rules.control.as_deref()),
        };
        let has = |name: &str| {
            let is_it = |(field, _): &(Bytes, Bytes)| field.eq_ignore_ascii_case(name.as_bytes());
            fetched.fields.iter().any(is_it)
        };
        let may_follow = || rules.is_some_and(|rules| rules.from_stderr) || has("trailer");
        let wants_validator = control.is_some()
            && fetched.status == 200
            && (!named.is_empty() || may_follow())
            && !has("etag")
            && !has("last-modified");
        ForBrowsers {
            control: control.map(|value| Bytes::copy_from_slice(value.as_bytes())),
            is_control_put: false,
            digest: wants_validator.then(|| Box::new(Context::new(&SHA256))),
        }
    }

    /// Puts the field for a response whose head names tags.
    pub fn put_control(&mut self, fields: &mut Vec<(Bytes, Bytes)>) {
        let Some(control) = &self.control else {
            return;
        };
        fields.retain(|(name, _)| {
            !["cache-control", "expires", "pragma"]
                .iter()
                .any(|said| name.eq_ignore_ascii_case(said.as_bytes()))
        });
        fields.push((Bytes::from_static(b"Cache-Control"), control.clone()));
        self.is_control_put = true;
    }

    /// A part of the body has come.
    pub fn read(&mut self, body: &[u8]) {
        if let Some(digest) = &mut self.digest {
            digest.update(body);
        }
    }

    /// Sets the fields that are known only when the body has come, for a response with tags.
    pub fn put_late(self, filling: &mut ArrivingResponse) {
        if let Some(control) = self.control.filter(|_| !self.is_control_put) {
            filling.set_field("Cache-Control", control);
        }
        if let Some(digest) = self.digest {
            let digest = digest.finish();
            let digits = hex_digits(digest.as_ref()).take(2 * ETAG_BYTES);
            let text: String = digits.map(char::from).collect();
            filling.set_field("ETag", format!("\"{text}\"").into());
        }
    }
}
