//! Plans a fetch for the cache: the request for the upstream, and the facts needed when its response arrives. Both
//! are put together while the visitor's request is at hand.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cache_decision::fields::Fields;
use cache_decision::litespeed;
use cache_decision::litespeed::VisitorId;
use cache_decision::with_cookies::{RequestMemory, learned_cookies};
use cache_decision::{Audience, FetchRole, PastCache, Plan};
use cache_decision::{storing_policy, use_stale};
use http_cache::{CacheKey, Leader, Millis, Policy, Reason, StaleReason, Zone, may_serve_stale};
use live_state::evidence::{SeenPages, SharedOffer};
use live_state::shared_pages::{MIN_LIFETIME, PageSharing, WantedPage};
use recoding::Conversions;
use shared_request::{Class, SentCookies, SharedHead, Trait, TraitSet, left_out};
use site::{CacheRules, LearnRules, Pass, Protocol, Revalidation};

use super::cookies::has_cookie_outside_key;
use super::evidence::{EvidenceLink, StoredPlace};
use super::guests;
use super::learned::{self as learned_pages, LearnedFetch};
use super::shared;
use super::site_variance;
use super::standing;
use super::tags;
use crate::content::pass::fetch_log::Visitor;
use crate::content::pass::fetch_purpose::FetchPurpose;
use crate::content::pass::fetch_spec::spec;
use crate::content::pass::learned;
use crate::content::proxy;
use crate::content::purging::by_response::ByResponse;
use crate::content::robots::RobotsOfSite;
use crate::content::slice::range::WantedSlice;
use crate::exchange::request::{Method, Request};
use crate::exchange::view::View;
use crate::log::traces::{self, FetchKey, FetchTrace};
use upstream_fetch::FetchSpec;

/// How long it is remembered that a page may not be shared, so that private
/// pages do not queue behind each other.
const REMEMBER_NOT_SHAREABLE: Duration = Duration::from_secs(5);

/// The facts that the storing side of a fetch needs; outlives the client.
pub struct StorePlan {
    pub zone: Arc<Zone>,
    pub rules: Arc<CacheRules>,
    pub key: CacheKey,
    pub policy: Policy,
    pub sent: SentRequest,
    pub privacy: ResponsePrivacy,
    /// The facts of the request for LiteSpeed's fields, with `cache_litespeed`.
    pub expected: RequestMemory,
    pub uses: u32,
    pub pass: Arc<Pass>,
    pub is_validating: bool,
    /// Why the request went past the cache, if it did.
    pub past: Option<PastCache>,
    pub form: StoredForm,
    /// The purge by response fields, if the upstream is trusted with it.
    pub purges: Option<ByResponse>,
    /// The request, for conditions that are read once the response is there.
    pub request: Option<Box<Request>>,
    pub links: FetchLinks,
}

/// The form in which a body is stored.
pub struct StoredForm {
    /// The slice that a 206 must be to be stored.
    pub slice: Option<WantedSlice>,
    /// The conversions of the configuration's `charset_map`, if there is one.
    pub charsets: Option<Arc<Conversions>>,
}

/// Other parts of the server that are informed of a fetch.
pub struct FetchLinks {
    /// Other nodes (`cache_nodes_pages`).
    pub sharing: Option<Box<PageSharing>>,
    /// Sent when the fetch is over.
    pub trace: Option<Box<FetchTrace>>,
    /// With `cache_shared`: the evidence about the page.
    pub evidence: Option<EvidenceLink>,
    /// Of a shared request that may be the first one of a trial.
    pub offer: Option<SharedOffer>,
    /// The pages that guests share, with `cache_guest_sessions`.
    pub guests: Option<Arc<SeenPages>>,
    /// For a page that is not stored: PHP's report of it is received until the fetch is over.
    pub visit: Option<learning::Fetch>,
    /// Of a fetch of robots.txt.
    pub robots: Option<RobotsOfSite>,
}

/// The request that was sent to the upstream.
pub struct SentRequest {
    pub method: &'static [u8],
    /// The head that the upstream is sent, or that was received where fields go as they are.
    pub head: http_semantics::RequestHead,
    /// It is the shared request.
    pub is_shared: bool,
    /// The fields that tell variants apart, whether or not the visitor has them, of a request that the
    /// server has written.
    pub preferences: Option<Vec<String>>,
    /// Stands for the site, with `cache_shared`.
    pub site: Option<CacheKey>,
    /// The host, with `cache_guest_sessions`.
    pub guests_host: Vec<u8>,
    /// Scheme, host and port of the request, where responses may have tags.
    pub origin: Vec<u8>,
    /// The fetch whose page inputs are learned.
    pub learned: Option<Box<LearnedFetch>>,
}

/// Whether the response may be for one visitor alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponsePrivacy {
    /// The response's fields decide.
    AsSaid,
    /// The response's fields decide, and `private` and `no-store` count although `Cache-Control` is ignored.
    AsSaidAlthoughIgnored,
    /// It is shown within the visitor's session only.
    OfSession,
    /// A response that begins a session is shared all the same (`cache_guest_sessions`). `is_uniform`: its caching
    /// fields, which all pages of the site have alike, do not count either.
    OfGuests { is_uniform: bool },
}

impl ResponsePrivacy {
    pub fn is_of_guests(self) -> bool {
        matches!(self, ResponsePrivacy::OfGuests { .. })
    }
}

impl StorePlan {
    pub fn allowed(&self) -> http_cache::UseStale {
        use_stale(&self.rules)
    }

    /// Returns the zone, key and request head under which the response is stored, or would be.
    pub fn place(&self) -> StoredPlace<'_> {
        StoredPlace {
            zone: &self.zone,
            key: &self.key,
            head: &self.sent.head,
        }
    }

    pub fn fields(&self) -> Fields<'_> {
        match &self.sent.preferences {
            None => Fields::Received(&self.sent.head),
            Some(names) => Fields::Sent(&self.sent.head, names),
        }
    }

    /// Was the application sent a preference that one visitor has and others have not? Its refusal of one visitor's
    /// Origin does not apply to others.
    pub fn has_sent_preferences(&self) -> bool {
        let mut names = self.sent.preferences.iter().flatten();
        names.any(|name| self.sent.head.field(name).is_some())
    }

    /// The visitor is sent a cookie, whose own copies are of the time before.
    pub fn note_cookies(&self, fields: &[(Bytes, Bytes)]) {
        let own = self.sent.learned.as_ref().map(|learned| learned.fetch());
        learned::note_cookies(own.or(self.links.visit.as_ref()), fields);
    }

    /// Adds the preferences that the application was sent to the fields that the response varies on. One response has
    /// named them; this one may say nothing of it (a redirect that the language chose), and was shaped by them all
    /// the same.
    pub fn name_what_was_sent(&self, fields: &mut Cow<'_, [(Bytes, Bytes)]>) {
        let preferences = self.sent.preferences.as_ref();
        let Some(names) = preferences.filter(|names| !names.is_empty()) else {
            return;
        };
        let names = Bytes::from(names.join(","));
        fields.to_mut().push((Bytes::from_static(b"vary"), names));
    }

    /// Returns the scope of the tags: the origin of the request, and the visitor if the response is for one alone.
    pub fn tag_scope(&self) -> (&[u8], &[VisitorId]) {
        let ids = self
            .expected
            .cookies
            .as_ref()
            .map_or(&[][..], |with| &with.ids[..]);
        (&self.sent.origin, ids)
    }

    /// May the stale copy stand in for a fetch that failed like this? Then those who ask next
    /// need not wait to learn of it.
    pub fn stands_in(&self, leader: &Leader, why: StaleReason, now: Millis) -> bool {
        let Some(stale) = leader.stale() else {
            return false;
        };
        let info = self.zone.stale_info(stale, now);
        let stands_in = info.is_some_and(|info| may_serve_stale(why, &self.allowed(), &info));
        if stands_in {
            stale.note_failure(now);
        }
        stands_in
    }

    /// Did the request go past the cache, so that its response is no evidence about others?
    pub fn is_bypass(&self) -> bool {
        self.past == Some(PastCache::OwnRequest)
    }

    /// Does a response that may not be stored show that the stale copy is out of date? A page that is gone, moved or
    /// private now must not be shown for as long as requests for it come. Server errors are no evidence about the
    /// page, nor are reasons that concern one request. A cookie is often set for first visits only, but not in
    /// answer to the shared request, which is no visitor's.
    pub fn outdates(&self, status: u16, why: Reason) -> bool {
        let is_of_page = match self.sent.is_shared {
            true => !why.is_of_one_request(),
            false => why.is_of_page(),
        };
        status < 500 && !self.is_bypass() && is_of_page
    }

    /// Returns how long a refusal counts for all requests of the same key: not at all where the reason is this very
    /// request. Otherwise one visitor who is logged in would keep all others from a new copy.
    pub fn remembered_for(&self, why: Reason) -> Duration {
        // With cookies in the key, notes record it for each group of visitors.
        let is_noted = self.expected.cookies.is_some();
        let is_own = self.is_bypass() || self.has_sent_preferences() || why.is_of_one_request();
        // A database of addresses is remembered for longer already.
        match is_noted || is_own || why == Reason::AddressDatabase {
            true => Duration::ZERO,
            false => REMEMBER_NOT_SHAREABLE,
        }
    }
}

/// Prepares the request of a fetch for the cache, and the plan for its response.
pub fn prepare(
    request: &Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    leader: &Leader,
) -> Result<(FetchSpec, StorePlan), u16> {
    let role = &plan.role;
    let is_shared = plan.audience.class().is_some() && *role == FetchRole::Shared;
    let validating = leader
        .stale()
        // PHP may confirm a page by a time that knows nothing of its data, reads less for a 304 than for the page, and
        // leaves nothing to be compared.
        .filter(|_| !learned_pages::may_be_kept(request, pass, plan))
        // LiteSpeed's response fields are not stored, so they would be missing after a 304.
        .filter(|_| !plan.rules.speaks_litespeed())
        .filter(|stored| matches!(stored.head.status, 200 | 206))
        .filter(|stored| match plan.rules.revalidation {
            Revalidation::Off => false,
            Revalidation::BeyondDoubt => stored.head.has_sure_validator(),
            Revalidation::On => stored.head.etag().or(stored.head.last_modified()).is_some(),
        });
    let tags = plan.rules.tags.as_ref();
    let tag_mark = tags
        .filter(|rules| rules.from_stderr)
        .map(|_| tags::new_mark());
    let vary_value = match plan.audience.class() {
        Some(Class::Mobile) if pass.exchange.litespeed => Some(litespeed::MOBILE_VALUE),
        _ => None,
    };
    let (mut learned, visit) = match role {
        FetchRole::Shared => (LearnedFetch::begin(request, pass, plan, leader), None),
        FetchRole::Own(_) | FetchRole::Trial => (None, learned::begin(request, pass)),
    };
    let number = learned.as_ref().map(|learned| learned.number());
    let is_own = matches!(role, FetchRole::Own(_));
    let purpose = FetchPurpose {
        learned_fetch: number.or(visit.as_ref().map(learning::Fetch::number)),
        for_cache: !is_own,
        validating: validating.map(|stored| &**stored),
        deadline: None,
        tag_mark: tag_mark.as_deref(),
        vary_value,
        trace: None,
    };
    let varied = match plan.audience.class() {
        Some(_) if !is_own => Some(varied_fields(plan, leader)),
        _ => None,
    };
    let visitor = Visitor::begin_fetch(request)?;
    let traced = traces::begin_fetch(request, pass);
    let evidence = evidence_link(request, plan);
    let made = match is_own {
        true => None,
        false => request_for_cache(request, pass, plan, varied.as_deref())?,
    };
    // The fetch has a trace of its own.
    let made = made.or_else(|| traced.is_some().then(|| request.again()));
    if let Some((learned, made)) = learned.as_mut().zip(made.as_ref()) {
        learned.is_sent_as(made);
    }
    let sent = made.as_deref().unwrap_or(request);
    let mut trace = traced;
    let fields = trace.as_mut().and_then(|fetch| fetch.enter(sent));
    let purpose = FetchPurpose {
        trace: fields.as_ref(),
        ..purpose
    };
    let spec = spec(sent, pass, &purpose, visitor);
    let head = sent.received.head().clone();
    drop(made);
    let spec = spec?;
    let is_own_pool = spec.to.own_pool;
    let trace = trace.and_then(|fetch| {
        let key = FetchKey::new(plan.zone, plan.key.as_ref().bytes());
        fetch.begun(request, Some(key))
    });
    // Some conditions are evaluated only when the response is there.
    let asks_later = !plan.rules.no_cache.is_empty()
        || pass.exchange.limit_rate.as_constant().is_none() && !pass.exchange.limit_rate.is_empty();
    let slice = WantedSlice::by(request);
    let site = plan
        .audience
        .class()
        .map(|_| site_variance::site_key(request));
    let minds_private = || {
        pass.exchange.ignored_fields.cache_control
            && plan.audience.class().is_none()
            && has_cookie_outside_key(request, plan.rules)
    };
    let privacy = match plan.audience.group() {
        // The copies for a session have its cookies in their key.
        Some(_) => ResponsePrivacy::OfSession,
        None if minds_private() => ResponsePrivacy::AsSaidAlthoughIgnored,
        None if guests::may_share(request, plan) => ResponsePrivacy::OfGuests { is_uniform: false },
        None => ResponsePrivacy::AsSaid,
    };
    let conditions = asks_later.then(|| {
        let mut copy = request.internal();
        copy.trace = request.trace().clone().into();
        copy.cache.view = View::Cache(plan.rules.clone());
        copy
    });
    Ok((
        spec,
        StorePlan {
            zone: plan.zone.clone(),
            rules: plan.rules.clone(),
            key: plan.key.clone(),
            policy: Policy {
                stores_partial: slice.is_some(),
                ..storing_policy(plan, &pass.exchange)
            },
            sent: SentRequest {
                method: match request.route.method {
                    Method::Post => b"POST",
                    _ => b"GET",
                },
                head,
                is_shared,
                preferences: varied,
                site,
                guests_host: match shares_with_guests(plan) {
                    true => request.received.host().to_vec(),
                    false => Vec::new(),
                },
                origin: match plan.rules.tags {
                    Some(_) => tags::origin(&request.received),
                    None => Vec::new(),
                },
                learned,
            },
            privacy,
            expected: expected(plan, leader, vary_value),
            uses: plan.uses,
            pass: pass.clone(),
            is_validating: validating.is_some(),
            past: plan.past_cache(),
            form: StoredForm {
                slice,
                charsets: Conversions::given(&request.configuration.charsets),
            },
            purges: ByResponse::of(request, pass, is_own_pool),
            request: conditions,
            links: FetchLinks {
                sharing: match role {
                    FetchRole::Shared => sharing(request, plan, leader).map(Box::new),
                    FetchRole::Own(_) | FetchRole::Trial => None,
                },
                trace,
                evidence,
                offer: None,
                guests: shares_with_guests(plan).then(|| guests::seen(request).clone()),
                visit,
                robots: RobotsOfSite::asked_for(request),
            },
        },
    ))
}

fn shares_with_guests(plan: &Plan<'_>) -> bool {
    let rules = plan.rules.shared.as_ref();
    rules.is_some_and(|rules| rules.guest_sessions.are_shared())
}

/// How long other nodes wait for a fetch, as a multiple of the page's last duration, with bounds; and if that is not
/// known.
const LOCK_FACTOR: u32 = 3;
const LOCK_BOUNDS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
const LOCK_OF_NEW_PAGE: Duration = Duration::from_secs(5);

/// Begins to share the page with other nodes, if any visitor may be shown it, and it is looked up.
fn sharing(request: &Request, plan: &Plan<'_>, leader: &Leader) -> Option<PageSharing> {
    let rules = plan.rules;
    let is_kept = rules.learn.as_ref().is_some_and(LearnRules::keeps);
    let is_shared = rules.shares_pages
        // A page with learned inputs is not sent without them.
        && !is_kept
        && plan.past_cache().is_none()
        && plan.audience.group().is_none()
        && plan.audience.cookies().is_none()
        && plan.uses >= rules.min_uses;
    if !is_shared {
        return None;
    }
    let nodes = request.configuration.live.nodes.as_ref()?;
    let lives_long = |rule: &site::ValidRule| rule.lifetime >= MIN_LIFETIME;
    let took = leader
        .stale()
        .map(|stale| Duration::from_micros(stale.head.made_in.micros()));
    let took = took.filter(|took| !took.is_zero());
    let lock = took.map_or(LOCK_OF_NEW_PAGE, |took| took * LOCK_FACTOR);
    let varies_on = leader.varies_on().or_else(|| plan.varies_on.clone());
    let fields = plan.fields(request.received.head());
    let wanted = WantedPage {
        zone: plan.zone.clone(),
        key: plan.key.clone(),
        variant: WantedPage::variant_of(varies_on.as_deref(), &fields),
        lock: match rules.valid.iter().any(lives_long) {
            true => lock.clamp(LOCK_BOUNDS.0, LOCK_BOUNDS.1),
            false => Duration::ZERO,
        },
    };
    PageSharing::begin(nodes, wanted)
}

/// Returns the facts of the request that matter for LiteSpeed's response fields.
fn expected(plan: &Plan<'_>, leader: &Leader, vary_value: Option<&'static str>) -> RequestMemory {
    let Some(with) = plan.audience.cookies() else {
        return RequestMemory {
            vary_value,
            ..RequestMemory::default()
        };
    };
    let spec = leader.varies_on().or_else(|| plan.varies_on.clone());
    RequestMemory {
        cookies: Some(with.clone()),
        learned: learned_cookies(spec.as_deref()),
        vary_value,
    }
}

/// The fields that responses for the plan's key have named in `Vary`, as far as they may be sent: by those
/// that are stored, or by one that is arriving; without any, other pages of the site.
fn varied_fields(plan: &Plan<'_>, leader: &Leader) -> Vec<String> {
    let spec = leader.varies_on().or_else(|| plan.varies_on.clone());
    let names = spec.iter().flat_map(|spec| spec.names());
    names
        .filter(|name| shared_request::varied::may_be_sent(name))
        .cloned()
        .collect()
}

/// Creates the link that reports the shared request to the evidence of its page.
fn evidence_link(request: &Request, plan: &Plan<'_>) -> Option<EvidenceLink> {
    let Audience::Class(_, None) = plan.audience else {
        return None;
    };
    if plan.role != FetchRole::Shared {
        return None;
    }
    let page = plan.shared.as_ref().map(|page| page.name);
    let name = || standing::name_of(request, plan.zone, plan.key.as_ref().bytes());
    let seen = &request.configuration.live.alive_zones.seen_pages;
    Some(EvidenceLink::shared(
        seen,
        page.unwrap_or_else(name),
        request.now(),
    ))
}

/// The request that is sent in the place of the visitor's, where it is another one.
fn request_for_cache(
    request: &Request,
    pass: &Pass,
    plan: &Plan<'_>,
    varied: Option<&[String]>,
) -> Result<Option<Box<Request>>, u16> {
    let as_get = plan.rules.convert_head && request.route.method == Method::Head;
    let made = match (&plan.rules.shared, plan.audience.class(), varied) {
        (Some(rules), Some(class), Some(varied)) => {
            let with = plan.audience.cookies();
            let mut tried = plan.tried;
            if with.is_some_and(|with| with.group.is_some()) {
                // The address is in the key of one visitor's copy.
                tried = tried.with(Trait::Network);
            }
            let shared = SharedHead {
                class,
                cookies: match with {
                    Some(_) => SentCookies::AllCookies,
                    None => SentCookies::KeyCookies,
                },
                varied,
                keyed: plan
                    .shared
                    .as_ref()
                    .map_or(TraitSet::NONE, |page| page.keyed),
                tried,
                session: plan.tried_session.as_deref(),
            };
            let address = plan.tried_address.unwrap_or_else(left_out::next_address);
            shared::request_for(request, rules, &shared, address)
        }
        _ if plan.rules.overlooks_something() => {
            shared::without_what_does_not_count(request, plan.rules)
        }
        _ if as_get => Some(request.again()),
        _ => return Ok(None),
    };
    let mut made = made.ok_or(500u16)?;
    if as_get {
        made.route.make_get();
    }
    if let Protocol::Http(proxy) = &pass.protocol {
        made.route.proxy_url = proxy::url(&made, &pass.target, proxy);
    }
    Ok(Some(made))
}
