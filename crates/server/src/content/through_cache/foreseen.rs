//! Tests that `explain` foresees the real decision, with random requests at a real zone. Each is foreseen by
//! `outlook`, which `explain` prints, and then served by `pass::decide` and `miss::serve`, up to where it waits
//! for an upstream.
//!
//! All locations store under the same keys, so that a request finds a response of another location stale, private
//! or of another variant. No upstream can be reached: stored responses come from the test, and the requests' own
//! fetches are under way until they fail.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use cache_decision::{Action, Decision, ForeseenReason};
use http_cache::{
    CacheKey, Forward, Leader, Millis, Policy, PurgeMode, PurgeTarget, Reason, RequestFacts,
    ResponseFacts, ResponseHead, ServedFrom, StoredResponse, Zone,
};
use site::{Content, Pass};
use tokio::task::{unconstrained, yield_now};
use transport::client::ClientSide;
use transport::request_body::RequestBody;
use upstream::{Admission, Class, PickKey, TriedSet};

use super::outlook::{Outlook, outlook};
use super::policy::{self, CachePlan};
use crate::content::pass::ask::ask;
use crate::content::pass::{PassDecision, UpstreamPlan, decide};
use crate::exchange::cache_facts::CacheNotes;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::StoredFrom;
use crate::exchange::request::Request;
use crate::test_site::{Random, TestSite};

const REQUESTS: usize = 100_000;
const LOCATIONS: usize = 48;
const PAGES: usize = 4;

/// Returns a random location with cache directives.
fn random_location(random: &mut Random, name: usize) -> String {
    let mut lines = String::new();
    let mut put = |is_there: bool, line: &str| {
        if is_there {
            let _ = write!(lines, "{line} ");
        }
    };
    put(random.one_in(2), "proxy_cache_min_uses 2;");
    put(!random.one_in(4), "proxy_cache_lock on;");
    put(random.one_in(2), "proxy_cache_background_update on;");
    put(random.one_in(4), "proxy_cache_convert_head off;");
    put(random.one_in(4), "proxy_cache_methods POST;");
    put(random.one_in(2), "proxy_cache_max_range_offset 100;");
    put(random.one_in(4), "cache_stale 1s 2s;");
    put(random.one_in(4), "cache_read_your_writes 5s;");
    put(random.one_in(4), "proxy_pass_request_body off;");
    put(random.one_in(2), "proxy_set_header Upgrade $http_upgrade;");
    put(random.one_in(2), "cache_store_authorized on;");
    let to = match is_busy(name) {
        true => "busy",
        false => "unix:/nonexistent/socket:/",
    };
    let stale = ["off", "updating", "error", "error updating"][random.below(4)];
    let key = match random.one_in(4) {
        true => "cache_shared on;",
        false => "proxy_cache_key $arg_page;",
    };
    format!(
        "location /{name}/ {{ proxy_pass http://{to}; proxy_cache pages; {key} {lines}
         proxy_cache_use_stale {stale}; proxy_cache_bypass $arg_bypass; proxy_no_cache $arg_alone;
         proxy_cache_purge $arg_purge; proxy_cache_valid 200 3s; cache_queue_stale 1; }}\n"
    )
}

/// Requests wait in line for the upstream of each fourth location.
fn is_busy(location: usize) -> bool {
    location.is_multiple_of(4)
}

/// A random request, as often as it is made.
struct RandomRequest {
    line: String,
    fields: String,
    body: Option<&'static [u8]>,
    is_busy: bool,
    now: u64,
}

impl RandomRequest {
    fn new(random: &mut Random, now: u64) -> RandomRequest {
        let method = match random.one_in(4) {
            true => ["HEAD", "POST", "PUT", "PURGE"][random.below(4)],
            false => "GET",
        };
        let (name, page) = (random.below(LOCATIONS), random.below(PAGES));
        let mut line = format!("{method} /{name}/?page={page}");
        let mut fields = String::new();
        let language = ["Accept-Language: de", "Accept-Language: en", "X-Other: 1"];
        for (times, put) in [(12, "&bypass=1"), (12, "&alone=1"), (24, "&purge=1")] {
            if random.one_in(times) {
                line.push_str(put);
            }
        }
        for (times, put) in [
            (8, "Range: bytes=200-"),
            (32, "Connection: upgrade\r\nUpgrade: other"),
            (16, "Cookie: session=1"),
            (16, "Authorization: Basic YTpi"),
            (16, "X-Forwarded-For: 192.0.2.1"),
            (1, language[random.below(3)]),
        ] {
            if random.one_in(times) {
                let _ = write!(fields, "{put}\r\n");
            }
        }
        if random.one_in(32) {
            let _ = write!(fields, "Cookie: mayfly_writer={}\r\n", now + 2000);
        }
        RandomRequest {
            line,
            fields,
            body: random.one_in(12).then_some(&b"a=b"[..]),
            is_busy: is_busy(name),
            now,
        }
    }

    fn make(&self, site: &TestSite) -> Box<Request> {
        let mut request = site.request(&self.line, &self.fields, self.now);
        if let Some(body) = self.body {
            request.body = RequestBody::Memory(Bytes::from_static(body));
        }
        request
    }
}

/// The actual result of a request.
#[derive(Debug)]
enum RequestFate {
    Hit(Arc<StoredResponse>),
    Stale(Arc<StoredResponse>, ServedFrom),
    /// It waits: for a fetch through the cache, its own or another's, or in line for its upstream.
    Fetched,
    /// The upstream was asked for this client alone.
    Direct,
    /// The upstream would be asked past the cache.
    NoLookup,
    /// It purged, or was not allowed to.
    Purge,
}

struct World {
    site: TestSite,
    random: Random,
    now: u64,
    /// Admissions that hold or await the server of `busy`.
    _line: Vec<Admission>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed);
        let mut http = String::from(
            "access_log off; proxy_cache_path zone keys_zone=pages:1m; error_log error.log emerg;
             upstream busy { server unix:/nonexistent/socket max_conns=1; queue 100 timeout=600s; }
             server { listen 127.0.0.1:8080;\n",
        );
        for name in 0..LOCATIONS {
            http.push_str(&random_location(&mut random, name));
        }
        http.push('}');
        let site = TestSite::new(tempfile::tempdir().unwrap(), &http);
        let busy = &site.configuration.live.groups[0].group;
        let now = clock::recent();
        let enter = |_| busy.enter(PickKey::default(), &TriedSet::new(), Class::Visitor, now);
        World {
            _line: (0..4).map(enter).collect::<Result<_, _>>().unwrap(),
            site,
            random,
            now: clock::now(),
        }
    }

    fn zone(&self) -> &Arc<Zone> {
        &self.site.configuration.live.zones[0]
    }

    /// Time passes, fetches fail, pages are stored and purged.
    async fn go_on(&mut self) {
        self.now += self.random.below(1000) as u64;
        if self.random.one_in(4) {
            for _ in 0..3 {
                yield_now().await;
            }
        }
        if self.random.one_in(3) {
            let request = RandomRequest::new(&mut self.random, self.now);
            self.store(request.make(&self.site));
        }
        let mode = match self.random.below(64) {
            0 => PurgeMode::Hard,
            1..4 => PurgeMode::Soft,
            _ => return,
        };
        let key = CacheKey::new(self.random.below(PAGES).to_string().into_bytes());
        let target = PurgeTarget::Key(key.as_ref());
        self.zone().purge(target, mode, Millis(self.now));
    }

    /// The application answers a request that fetches alone: with a response that may be stored, or a private
    /// one.
    fn store(&mut self, mut request: Box<Request>) {
        let configuration = self.site.configuration.clone();
        let settings = request.settings_held();
        let plan = policy::plan(&mut request, &configuration, pass_of(&settings.content));
        let CachePlan::Use(mut plan) = plan else {
            return;
        };
        plan.came_at = plan.zone.stamp();
        let fields = plan.fields(request.received.head());
        let join = plan.join_request(&fields, b"", Millis(self.now));
        let leader = plan.zone.detached(&join);
        self.answer(leader);
    }

    fn answer(&mut self, leader: Leader) {
        let now = Millis(self.now);
        let control = match self.random.below(8) {
            0 | 1 => "private",
            2 => "no-cache",
            _ => "max-age=3, stale-while-revalidate=2, stale-if-error=2",
        };
        let vary = ["accept-language", "x-other"][self.random.below(2)];
        let fields = [
            ("cache-control", control),
            ("vary", vary),
            ("etag", "\"a\""),
        ];
        let fields = fields.map(|(name, value)| (Bytes::from(name), Bytes::from(value)));
        let request = RequestFacts {
            method: b"GET",
            fields: &http_cache::NoFields,
            no_store_condition: false,
            uses: 1,
        };
        let response = ResponseFacts {
            status: 200,
            fields: &fields,
            declared_length: None,
        };
        let policy = Policy {
            stores_no_cache: true,
            ..Policy::default()
        };
        match http_cache::decide(&request, &response, &policy, now) {
            Err(why) => {
                let remembered = Duration::from_secs(self.random.below(3) as u64);
                leader.not_shareable(why, remembered, now);
            }
            Ok(storable) => {
                let head = ResponseHead {
                    fields: &fields,
                    ..ResponseHead::OK
                };
                let mut arriving = leader.publish_head(&head, &storable, now);
                arriving.push(Bytes::from_static(b"page"), now);
                // It may have been purged meanwhile.
                let _ = arriving.complete(now);
            }
        }
    }

    /// Serves a request as the pipeline does, until it waits.
    fn serve(&self, mut request: Box<Request>) -> (Box<Request>, RequestFate) {
        let fate = 'fate: {
            let settings = request.settings_held();
            let pass = pass_of(&settings.content);
            let plan = match decide(&mut request, &self.site.configuration, pass) {
                PassDecision::UpstreamNeeded(plan @ UpstreamPlan::ThroughCache(_)) => plan,
                PassDecision::UpstreamNeeded(_) => break 'fate RequestFate::NoLookup,
                PassDecision::PurgeNeeded(_) => break 'fate RequestFate::Purge,
                PassDecision::Handled(handled) => {
                    break 'fate stored(handled).map_or(RequestFate::Purge, RequestFate::Hit);
                }
            };
            let mut client = ClientSide::none();
            let asked = {
                let mut asking = pin!(unconstrained(ask(&mut request, pass, plan, &mut client)));
                let mut context = Context::from_waker(Waker::noop());
                asking.as_mut().poll(&mut context)
            };
            match asked {
                Poll::Pending => RequestFate::Fetched,
                Poll::Ready(handled) => match stored(handled) {
                    Some(stored) => {
                        let served =
                            |notes: &CacheNotes| notes.outcome.as_ref().map(|it| it.served);
                        let served = request.cache.read(served);
                        RequestFate::Stale(stored, served.expect("an outcome"))
                    }
                    None => RequestFate::Direct,
                },
            }
        };
        (request, fate)
    }
}

fn pass_of(content: &Content) -> &Arc<Pass> {
    match content {
        Content::Pass(pass) => pass,
        _ => panic!("the location has no upstream"),
    }
}

/// The stored response that answers.
fn stored(handled: StageEnd) -> Option<Arc<StoredResponse>> {
    match handled {
        StageEnd::Reply(reply) => match reply.head.stored? {
            StoredFrom::Response(stored) => Some(stored),
            StoredFrom::Arriving(_) => None,
        },
        _ => None,
    }
}

/// Does the result match the decision? A request that would join a fetch may be shown a stale response, if
/// another request fetches already: `explain` cannot foresee that, as it does not look at other requests.
fn agrees(foreseen: &Outlook, happened: &RequestFate, is_busy: bool) -> bool {
    let found = || foreseen.lookup.as_ref()?.stored.clone();
    let is = |one: &Arc<StoredResponse>, other: &Arc<StoredResponse>| Arc::ptr_eq(one, other);
    match (&foreseen.decision.action, happened) {
        (Action::Hit, RequestFate::Hit(stored)) => found().is_some_and(|found| is(&found, stored)),
        (Action::ShowStale(stale, why), RequestFate::Stale(shown, served)) => {
            is(stale, shown) && why == served
        }
        (Action::Refresh(stale), RequestFate::Stale(shown, served)) => {
            let refreshed = [ServedFrom::StaleRefreshing, ServedFrom::StaleUpdating];
            is(stale, shown) && refreshed.contains(served)
        }
        (Action::Collapse, RequestFate::Stale(shown, ServedFrom::StaleUpdating)) => {
            found().is_some_and(|found| is(&found, shown))
        }
        (Action::Collapse | Action::Alone | Action::Validate(_), RequestFate::Fetched) => true,
        (Action::Direct, RequestFate::Direct) => true,
        // A visitor's own request, which is compared where it can be.
        (Action::Prove, RequestFate::Fetched | RequestFate::Direct) => true,
        (Action::Direct, RequestFate::Fetched) => is_busy,
        (Action::Off | Action::Invalidate, RequestFate::NoLookup) => true,
        (Action::Purge(_) | Action::RefusePurge, RequestFate::Purge) => true,
        _ => false,
    }
}

/// Returns the forward reason for Cache-Status and the value of `$cache_reason`.
fn noted(request: &Request) -> (Option<Forward>, Option<Reason>) {
    request.cache.read(|notes| {
        let outcome = notes.outcome.as_ref();
        (outcome.and_then(|outcome| outcome.fwd), notes.reason)
    })
}

fn word(decision: &Decision) -> &'static str {
    match decision.action {
        Action::Off => "off",
        Action::Purge(_) => "purge",
        Action::RefusePurge => "refuse purge",
        Action::Invalidate => "invalidate",
        Action::Direct => "direct",
        Action::Alone => "alone",
        Action::Validate(_) => "validate",
        Action::Collapse => "collapse",
        Action::CollapseLater => "collapse later",
        Action::Hit => "hit",
        Action::ShowStale(..) => "show stale",
        Action::Refresh(_) => "refresh",
        Action::Prove => "prove",
    }
}

#[tokio::test]
async fn what_explain_says_is_what_happens() {
    let mut world = World::new(25);
    let configuration = world.site.configuration.clone();
    let mut seen = BTreeMap::<_, usize>::new();
    for number in 0..REQUESTS {
        world.go_on().await;
        let random = RandomRequest::new(&mut world.random, world.now);
        let mut explained = random.make(&world.site);
        let settings = explained.settings_held();
        let pass = pass_of(&settings.content);
        let foreseen = outlook(&mut explained, &configuration, pass);
        let Decision {
            forward, reason, ..
        } = foreseen.decision;

        let (request, happened) = world.serve(random.make(&world.site));
        let described = || format!("request {number}: {}\n{}", random.line, random.fields);
        assert!(
            agrees(&foreseen, &happened, random.is_busy),
            "{}: {:?}, but {happened:?}",
            described(),
            foreseen.decision
        );
        // A stale response shown in the place of a fetch is an answer.
        let is_answer = matches!(happened, RequestFate::Stale(..));
        let expected = if is_answer {
            (None, None)
        } else {
            (forward, reason)
        };
        assert_eq!(noted(&request), expected, "{}", described());
        if let Some(ForeseenReason::ByMoment(why)) = foreseen.reason
            && !is_answer
        {
            assert_eq!(request.cache.reason(), Some(why), "{}", described());
        }
        *seen.entry(word(&foreseen.decision)).or_default() += 1;
    }
    // Each decision was made, and often.
    assert_eq!(seen.len(), 12, "{seen:?}");
    let rare = seen.iter().find(|(_, times)| **times < REQUESTS / 1000);
    assert_eq!(rare, None, "{seen:?}");
}
