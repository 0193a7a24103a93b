//! Helpers of the tests: rules of a location, a request of plain facts, an upstream, random numbers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{
    Body, CacheKey, Millis, Policy, Reason, RequestFacts as StoringRequest, ResponseFacts,
    ResponseHead, StoredHead, Zone, ZoneConfig,
};
use http_semantics::{Method, RequestHead};
use http1::{HeadLimits, parse_head};
use page_evidence::Standing;
use site::{CacheMethods, CacheRules, CacheZoneChoice, CacheZoneId, Failures, Template};

use crate::audience::Audience;
use crate::facts::{BodyPlace, PurgeReach, RequestFacts, StoredUse, UpstreamFacts};
use crate::foresight::StoringFacts;

/// Rules that say nothing but where.
pub(crate) fn rules() -> CacheRules {
    CacheRules {
        zone: CacheZoneChoice::Zone(CacheZoneId(0)),
        key: Template::default(),
        valid: Vec::new(),
        methods: CacheMethods::default(),
        min_uses: 1,
        bypass: Vec::new(),
        no_cache: Vec::new(),
        use_stale: Some(Failures::default()),
        lock: true,
        lock_timeout: Duration::from_secs(5),
        lock_age: Duration::from_secs(5),
        background_update: false,
        revalidation: site::Revalidation::Off,
        max_range_offset: None,
        convert_head: true,
        purge: Vec::new(),
        purges_everything: false,
        read_your_writes: None,
        private: None,
        ignored_arguments: Default::default(),
        ignored_cookies: Default::default(),
        stores_set_cookie: false,
        stores_authorized: false,
        cookies_in_key: Vec::new(),
        shared: None,
        queue_stale: None,
        stale: None,
        max_valid: None,
        heuristic: false,
        refill: false,
        shares_pages: false,
        learn: None,
        tags: None,
        lines: Vec::new(),
    }
}

/// A condition of this value.
pub(crate) fn condition(value: &str) -> Vec<Template> {
    vec![Template::literal(value)]
}

/// A GET with these fields.
pub(crate) fn head(fields: &[&str]) -> RequestHead {
    let lines: String = fields.iter().map(|line| format!("{line}\r\n")).collect();
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    parse_head(text.into_bytes(), &HeadLimits::OF_OWN_HEADS).unwrap()
}

/// A request of plain facts. Conditions are constants.
// Large: each is the answer to a question of its own that decisions ask.
#[derive(Clone)]
pub(crate) struct TestRequest {
    pub method: Method,
    pub body: BodyPlace,
    pub passes_body: bool,
    pub is_upgrade: bool,
    pub is_here: bool,
    pub reach: Option<PurgeReach>,
    pub audience: Result<Audience, Reason>,
    pub is_writer: bool,
    pub range: Option<&'static [u8]>,
    /// The result of `*_no_cache`.
    pub no_cache: bool,
    pub is_authorized: bool,
    pub has_cookie: bool,
    pub stored_use: StoredUse,
    pub standing: Standing,
}

impl Default for TestRequest {
    fn default() -> TestRequest {
        TestRequest {
            method: Method::Get,
            body: BodyPlace::None,
            passes_body: true,
            is_upgrade: false,
            is_here: false,
            reach: Some(PurgeReach::Zone),
            audience: Ok(Audience::Everybody),
            is_writer: false,
            range: None,
            no_cache: false,
            is_authorized: false,
            has_cookie: false,
            stored_use: StoredUse::Allowed,
            standing: Standing::Shared,
        }
    }
}

impl RequestFacts for TestRequest {
    fn method(&self) -> Method {
        self.method
    }
    fn body(&self) -> BodyPlace {
        self.body
    }
    fn is_any_true(&mut self, conditions: &[Template]) -> bool {
        let mut values = conditions.iter().filter_map(Template::as_constant);
        values.any(|value| !matches!(value, b"" | b"0"))
    }
    fn asks_to_purge(&mut self, conditions: &[Template]) -> bool {
        let mut values = conditions.iter().filter_map(Template::as_constant);
        values.any(|value| !matches!(value, b"" | b"0" | b"off"))
    }
    fn is_made_here(&self) -> bool {
        self.is_here
    }
    fn purge_reach(&self) -> Option<PurgeReach> {
        self.reach
    }
    fn passes_body(&self) -> bool {
        self.passes_body
    }
    fn passes_upgrade(&mut self) -> bool {
        self.is_upgrade
    }
    fn audience(&mut self) -> Result<Audience, Reason> {
        self.audience.clone()
    }
    fn standing(&mut self) -> Standing {
        self.standing
    }
    fn is_writer(&self) -> bool {
        self.is_writer
    }
    fn stored_use(&mut self) -> StoredUse {
        self.stored_use
    }
    fn range(&self) -> Option<&[u8]> {
        self.range
    }
}

impl StoringFacts for TestRequest {
    fn is_not_to_be_stored(&mut self) -> bool {
        self.no_cache
    }
    fn is_authorized(&self) -> bool {
        self.is_authorized
    }
    fn has_cookie_outside_key(&mut self) -> bool {
        self.has_cookie
    }
}

/// An upstream with a queue of this length.
#[derive(Clone, Copy, Default)]
pub(crate) struct TestUpstream {
    pub queue_length: usize,
    pub is_crawler: bool,
    pub leaves_out_refresh: bool,
}

impl UpstreamFacts for TestUpstream {
    fn queue_length(&self) -> usize {
        self.queue_length
    }
    fn is_crawler_in_the_way(&self) -> bool {
        self.is_crawler && self.queue_length > 0
    }
    fn leaves_out_refresh(&self) -> bool {
        self.leaves_out_refresh
    }
}

/// Returns the failures that `*_cache_use_stale` names.
pub(crate) fn named(rules: &mut CacheRules) -> &mut Failures {
    rules.use_stale.get_or_insert_default()
}

/// When the tests begin.
pub(crate) const T0: Millis = Millis(784_111_777_000);

/// A zone that a test looks into.
pub(crate) struct TestZone {
    pub zone: Arc<Zone>,
    pub key: CacheKey,
}

impl TestZone {
    /// Creates a zone with a response for the key, fresh for 5 seconds from [`T0`], that varies on
    /// `vary` if given.
    pub(crate) fn new(fields: &[(&'static str, &'static str)]) -> TestZone {
        let zone = Zone::new(ZoneConfig {
            max_variants: 1,
            ..ZoneConfig::default()
        });
        let test = TestZone {
            zone,
            key: CacheKey::new(b"/".to_vec()),
        };
        if !fields.is_empty() {
            test.store(fields);
        }
        test
    }

    pub(crate) fn store(&self, fields: &[(&'static str, &'static str)]) {
        let field = |&(name, value): &(&'static str, &'static str)| {
            (Bytes::from_static(name.as_bytes()), Bytes::from(value))
        };
        let fields: Vec<(Bytes, Bytes)> = fields.iter().map(field).collect();
        let request = StoringRequest {
            method: b"GET",
            fields: &http_cache::NoFields,
            no_store_condition: false,
            uses: 1,
        };
        let facts = ResponseFacts {
            status: 200,
            fields: &fields,
            declared_length: None,
        };
        let policy = Policy {
            stores_no_cache: true,
            ..Policy::default()
        };
        let storable = http_cache::decide(&request, &facts, &policy, T0).unwrap();
        let stored = ResponseHead {
            fields: &fields,
            ..ResponseHead::OK
        };
        let stored = http_cache::StoredResponse::new(
            StoredHead::new(&stored, &storable, T0),
            Body::pack(&[Bytes::from_static(b"page")]),
            self.zone.stamp(),
        );
        self.zone.insert(&self.key.as_ref(), stored, T0).unwrap();
    }
}
