//! What the tests share: rules of a location, a request of plain facts, an upstream, random numbers.

use std::time::Duration;

use http_cache::Reason;
use http_semantics::{Method, RequestHead};
use http1::{HeadLimits, parse_head};
use site::{CacheMethods, CacheRules, CacheZoneChoice, CacheZoneId, Failures, Template};

use crate::audience::Audience;
use crate::facts::{BodyPlace, PurgeReach, RequestFacts, UpstreamFacts};
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
    /// What `*_no_cache` says.
    pub no_cache: bool,
    pub has_lease: bool,
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
            has_lease: true,
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
    fn is_writer(&self) -> bool {
        self.is_writer
    }
    fn may_use_stored(&self) -> bool {
        self.has_lease
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
        false
    }
    fn has_cookie_outside_key(&mut self) -> bool {
        false
    }
}

/// An upstream with a queue of this length.
#[derive(Clone, Copy, Default)]
pub(crate) struct TestUpstream {
    pub queue_length: usize,
    pub leaves_out_refresh: bool,
}

impl UpstreamFacts for TestUpstream {
    fn queue_length(&self) -> usize {
        self.queue_length
    }
    fn leaves_out_refresh(&self) -> bool {
        self.leaves_out_refresh
    }
}

/// SplitMix64: small and seeded.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// True once in `times` calls.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What `*_cache_use_stale` names.
pub(crate) fn named(rules: &mut CacheRules) -> &mut Failures {
    rules.use_stale.get_or_insert_default()
}
