//! Learns the inputs of a page beside its fetch (`cache_learn`): the fetch has a number, and its result is reported to
//! the pool's [`learning::LearnedPool`].

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cache_decision::{Audience, MAX_OF_OWN_COPY, Plan};
use http_cache::{
    CacheKey, Guard, GuardVerdict, Leader, Millis, Promotion, PurgeMode, PurgeTarget, Reason,
    Refusal, Stamp, StoredResponse, TierPage, VarySpec, Zone,
};
use learning::{
    Fetch, KeepPage, PageDigest, PageMark, PageVerdict, SessionWatch, StoredPage, WithdrawPage,
    Withdrawal,
};
use site::{Content, LearnMode, LearnRules, Pass};

use super::own_copies::EarlierCopy;
use super::store_plan::StorePlan;
use super::tags;
use crate::content::pass::learned;
use crate::exchange::request::Request;
use upstream_fetch::FetchedResponse;

/// How long requests for a page go past the cache that was made with a database of addresses. If a site does without
/// it, its page is stored again after that time; otherwise the page may be shown once more until PHP has reported the
/// files it opened.
const REMEMBER_ADDRESS_DATABASE: Duration = Duration::from_secs(24 * 60 * 60);

/// The same for a page that looks the visitor's address up, while the database has any. It is asked before the page is
/// shared again.
const REMEMBER_ADDRESS_LOOKUP: Duration = Duration::from_secs(60);

/// A fetch whose page is learned, if it is stored.
pub struct LearnedFetch {
    fetch: Fetch,
    digest: PageDigest,
    most: Duration,
    /// The lifetime that the application has set.
    said: Option<Duration>,
    /// It may be shown beyond its ordinary lifetime.
    keeps: bool,
    /// Its URL.
    address: String,
    /// The shape of its address, with `cache_learn auto`.
    shape: Option<String>,
    /// The visitor's address, and the one that a shared request has in its place.
    clients: Vec<IpAddr>,
    /// PHP gets a cookie that may be a visitor's session.
    has_session: bool,
    /// Set if the page is for one visitor.
    own: Option<Arc<OwnCopy>>,
    /// The visitor's copy that PHP made before.
    earlier: Option<EarlierCopy>,
}

/// A copy for one visitor (`cache_private`).
#[derive(Debug)]
struct OwnCopy {
    sessions: SessionWatch,
    /// Its fields say that it is not to be stored, as PHP writes them for each session: it is shown only while it is known
    /// what it was made of.
    needs_inputs: AtomicBool,
    /// PHP has made the page before as it is, but for numbers and times.
    is_repeated: AtomicBool,
}

impl LearnedFetch {
    pub fn begin(
        request: &Request,
        pass: &Pass,
        plan: &Plan<'_>,
        leader: &Leader,
    ) -> Option<Box<LearnedFetch>> {
        let rules = plan.rules.learn.as_ref()?;
        let pool = learned::pool(request, pass)?;
        let is_own = matches!(plan.audience, Audience::Visitor(_));
        let entered = is_own
            .then(|| {
                let values = learned::session_values(request.received.head(), plan.rules);
                pool.sessions().enter(values)
            })
            .flatten();
        let own = entered.as_ref().map(|visit| {
            Arc::new(OwnCopy {
                sessions: visit.watch(),
                needs_inputs: AtomicBool::new(false),
                is_repeated: AtomicBool::new(false),
            })
        });
        let visit = match plan.audience.class() {
            // The visitor's cookies are sent.
            None => entered.or_else(|| learned::visit(request, pool)),
            Some(_) => entered,
        };
        let fetch = pool.begin(visit);
        let keeps = may_keep(plan, rules) && is_own == own.is_some();
        if keeps || own.is_some() {
            if own.is_none() {
                // It may be made of the visitor's own address, or find that of another one by a shared request's.
                fetch.mark().hold();
            }
            leader.set_guard(Box::new(MarkedPage {
                mark: fetch.mark().clone(),
                holds_since: None,
                own: own.clone(),
            }));
        }
        Some(Box::new(LearnedFetch {
            fetch,
            digest: PageDigest::default(),
            most: match is_own {
                true => rules.most.min(MAX_OF_OWN_COPY),
                false => rules.most,
            },
            said: None,
            keeps,
            earlier: own
                .is_some()
                .then(|| EarlierCopy::of(request, plan))
                .flatten(),
            own,
            address: {
                let mut url = tags::origin(&request.received);
                url.extend_from_slice(request.received.target());
                String::from_utf8_lossy(&url).into_owned()
            },
            shape: (rules.mode == LearnMode::Auto).then(|| shape(request)),
            clients: request.received.client_ip().into_iter().collect(),
            has_session: learned::has_session(request),
        }))
    }

    /// This request is sent in the place of the visitor's own.
    pub fn is_sent_as(&mut self, made: &Request) {
        self.clients.extend(made.received.client_ip());
        self.has_session = learned::has_session(made);
    }

    pub fn number(&self) -> u64 {
        self.fetch.number()
    }

    pub fn fetch(&self) -> &Fetch {
        &self.fetch
    }

    /// Is the page for one visitor, and shown while nothing changes?
    pub fn is_own_copy(&self) -> bool {
        self.own.is_some()
    }

    /// The page may not be shown unless it is known what it was made of.
    pub fn need_inputs(&self) {
        if let Some(own) = &self.own {
            own.needs_inputs.store(true, Ordering::Release);
        }
    }

    pub fn read_head(&mut self, fetched: &FetchedResponse, said: Option<Duration>) {
        self.said = said;
        let fields = fetched.fields.iter();
        let fields = fields.map(|(name, value)| (&**name, &**value));
        self.digest.read_head(fetched.status, fields);
    }

    pub fn read(&mut self, bytes: &[u8]) {
        self.digest.read(bytes);
    }

    /// The page is in memory.
    pub fn stored(mut self, store: &StorePlan, stored: &Arc<StoredResponse>) {
        let digest = self.digest.finish();
        self.report(store, stored, Some(digest));
    }

    /// The upstream confirms the stored response.
    pub fn freshened(self, store: &StorePlan, stored: &Arc<StoredResponse>) {
        self.report(store, stored, None);
    }

    fn report(self, store: &StorePlan, stored: &Arc<StoredResponse>, digest: Option<u64>) {
        let vary = stored.head.vary.as_ref();
        let vary = vary.map(|vary| (&**vary.spec(), vary.values()));
        let is_repeated = digest.is_some() && self.earlier.is_some_and(|it| it.is_repeated(stored));
        if let Some(own) = &self.own {
            own.is_repeated.store(is_repeated, Ordering::Release);
        }
        self.fetch.stored(StoredPage {
            name: page_name(&store.zone, store.key.as_ref().bytes(), vary).into(),
            key: page_name(&store.zone, store.key.as_ref().bytes(), None).into(),
            address: self.address,
            digest,
            clients: self.clients,
            is_own: self.own.is_some(),
            has_session: self.has_session,
            is_repeated,
            most: self.most,
            said_until: self.said.map(|said| {
                let end = stored.head.stored_at.plus(said);
                Instant::now() + end.since(Millis(clock::now()))
            }),
            shape: self.shape,
            keep: self.keeps.then(|| keep(store, stored)),
            withdraw: withdraw(store, stored),
        });
    }
}

/// Takes the page from visitors once it is known that PHP made it with a database of addresses, or looked theirs up.
fn withdraw(store: &StorePlan, stored: &StoredResponse) -> WithdrawPage {
    let (zone, key, status) = (store.zone.clone(), store.key.clone(), stored.head.status);
    Box::new(move |_found, withdrawal| made_for_an_address(&zone, &key, (status, withdrawal)))
}

/// The page of a key may be for the visitors of one network: removes its stored responses, and has requests for it go
/// past the cache for a time.
fn made_for_an_address(zone: &Zone, key: &CacheKey, (status, withdrawal): (u16, Withdrawal)) {
    let (key, now, why) = (key.as_ref(), Millis(clock::now()), Reason::AddressDatabase);
    let time = match withdrawal {
        Withdrawal::ForLong => REMEMBER_ADDRESS_DATABASE,
        Withdrawal::UntilAsked => REMEMBER_ADDRESS_LOOKUP,
    };
    // First: a purge forgets the remembered refusal of the key.
    zone.purge(PurgeTarget::Key(key), PurgeMode::Hard, now);
    zone.remember_not_shareable(&key, why, now.plus(time));
    let refusal = Refusal {
        why,
        status,
        at: now,
    };
    zone.note_refusal(&key, refusal);
}

/// May the answer to this request be for its visitor alone, since the page looks the visitor's address up? Others may have
/// been shown one answer until now: the database is asked whether an address would be found.
pub async fn depends_on_address(request: &Request, pass: &Pass, plan: &Plan<'_>) -> bool {
    let Some(pool) = learned::pool(request, pass).filter(|_| plan.rules.learn.is_some()) else {
        return false;
    };
    let key = plan.key.as_ref();
    if plan.zone.refused(&key, Millis(request.now())) == Some(Reason::AddressDatabase) {
        return true;
    }
    let name = page_name(plan.zone, key.bytes(), None);
    let depends = pool.depends_on_address(&name).await;
    if depends {
        let found = (200, Withdrawal::UntilAsked);
        made_for_an_address(plan.zone, &key.to_owned(), found);
    }
    depends
}

/// Is it remembered that the page may be for the visitors of one network? Without `cache_shared`, a request that goes
/// past the cache would store its response.
pub fn is_for_an_address(store: &StorePlan, now: Millis) -> bool {
    let refused = || store.zone.refused(&store.key.as_ref(), now);
    store.sent.learned.is_some() && refused() == Some(Reason::AddressDatabase)
}

/// Returns the function that lets the page be shown for a time, and writes the page to disk with its inputs.
fn keep(store: &StorePlan, stored: &Arc<StoredResponse>) -> KeepPage {
    let (zone, key, stored) = (store.zone.clone(), store.key.clone(), stored.clone());
    Box::new(move |time, made_of| {
        let now = Millis(clock::now());
        let is_kept = !time.is_zero() && zone.keep(&key.as_ref(), &stored, now.plus(time));
        if let Some(tier) = zone.tier().filter(|_| is_kept)
            && let Some(made_of) = made_of()
        {
            tier.note_kept(&key.as_ref(), &stored, (&made_of, time), now);
        }
        is_kept.then(|| time.max(stored.head.fresh_for(now)))
    })
}

/// Are pages kept by their learned inputs? During an upgrade the PHP of the other process writes as well. Of pages for one
/// session, those are whose key has all of the visitor's request.
fn may_keep(plan: &Plan<'_>, rules: &LearnRules) -> bool {
    let is_own = matches!(plan.audience, Audience::Visitor(_));
    rules.keeps() && plan.zone.trusts_guards() && (is_own || plan.audience.group().is_none())
}

/// Are pages read from disk that are kept by their learned inputs?
pub fn reads_from_disk(plan: &Plan<'_>) -> bool {
    let rules = plan.rules.learn.as_ref();
    let is_own = plan.audience.group().is_some();
    let is_on = |rules: &LearnRules| rules.mode == LearnMode::On && rules.replays;
    !is_own && rules.is_some_and(|rules| is_on(rules) && may_keep(plan, rules))
}

/// Are pages of this pool kept by what is known of them, or once enough of them agreed?
pub fn may_be_kept(request: &Request, pass: &Pass, plan: &Plan<'_>) -> bool {
    let rules = plan.rules.learn.as_ref();
    let rules = rules.filter(|_| learned::pool(request, pass).is_some());
    rules.is_some_and(|rules| may_keep(plan, rules))
}

/// Returns the shape of a page's address: the site, and what addresses of similar pages have in common.
fn shape(request: &Request) -> String {
    let mut shape = tags::origin(&request.received);
    shape.extend_from_slice(&page_evidence::shape_of(request.received.target()));
    String::from_utf8_lossy(&shape).into_owned()
}

/// Stores a page again that was kept on disk, behind the guard that decides whether it may be shown. `false`: it is of
/// no use.
pub fn store_again(request: &Request, plan: &Plan<'_>, page: &TierPage, body: Bytes) -> bool {
    let (now, head) = (Millis(request.now()), &page.record.head);
    let pool = match &request.settings().content {
        Content::Pass(pass) => learned::pool(request, pass),
        _ => None,
    };
    let (Some(pool), Some(made_of), Some(rules)) = (pool, &page.record.made_of, &plan.rules.learn)
    else {
        return false;
    };
    let vary = head.vary.as_ref();
    let vary = vary.map(|vary| (&**vary.spec(), vary.values()));
    let name = page_name(plan.zone, plan.key.as_ref().bytes(), vary);
    let age = now.since(head.stored_at);
    let Some(to_read_back) = pool.to_read_back(name, made_of, age) else {
        return false;
    };
    let guard = MarkedPage {
        mark: to_read_back.mark().clone(),
        holds_since: Some(plan.zone.stamp()),
        own: None,
    };
    let response = page.record.with_body(body, page.stamp);
    let until = head.stored_at.plus(rules.most);
    let until = until.min(now.plus(to_read_back.left()));
    let terms = (
        &page.record.names(),
        Box::new(guard) as Box<dyn Guard>,
        until,
    );
    let stored = plan
        .zone
        .promote_guarded(&plan.key.as_ref(), response, terms, now);
    if let Promotion::Stored(_) = stored {
        pool.read_back(to_read_back);
    }
    matches!(stored, Promotion::Stored(_) | Promotion::Newer)
}

/// A page that is shown while nothing that it was made of has changed.
#[derive(Debug)]
struct MarkedPage {
    mark: Arc<PageMark>,
    /// It was read from disk then.
    holds_since: Option<Stamp>,
    own: Option<Arc<OwnCopy>>,
}

impl OwnCopy {
    /// May it be shown, as far as its visitor is concerned?
    fn is_good(&self, mark: &PageMark) -> bool {
        self.sessions.is_quiet() && !self.lacks_inputs(mark) && !self.lacks_repetition()
    }

    /// Will it never be shown again?
    fn is_over(&self, mark: &PageMark) -> bool {
        self.sessions.has_moved() || self.lacks_inputs(mark)
    }

    /// It would not be stored but for what is known of it, and may have something in it that was drawn for one answer.
    fn lacks_repetition(&self) -> bool {
        self.needs_inputs.load(Ordering::Acquire) && !self.is_repeated.load(Ordering::Acquire)
    }

    fn lacks_inputs(&self, mark: &PageMark) -> bool {
        self.needs_inputs.load(Ordering::Acquire) && mark.is_free()
    }
}

impl Guard for MarkedPage {
    fn begin(&self) {
        if let Some(own) = &self.own {
            own.sessions.begin();
        }
        self.mark.begin();
    }

    fn verdict(&self, _: Millis) -> GuardVerdict {
        let own = self.own.as_ref();
        if own.is_some_and(|own| !own.is_good(&self.mark)) {
            return GuardVerdict::Outdated;
        }
        // The time of the request may be one of before the server stood still.
        match self.mark.verdict(clock::now()) {
            PageVerdict::Good => GuardVerdict::Good,
            PageVerdict::Unknown => GuardVerdict::Unknown,
            PageVerdict::Pending => GuardVerdict::Pending,
            PageVerdict::Open | PageVerdict::Outdated => GuardVerdict::Outdated,
        }
    }

    fn is_over(&self, _: Millis) -> bool {
        let own = self.own.as_ref();
        own.is_some_and(|own| own.is_over(&self.mark))
            || self.mark.look(clock::now()) == PageVerdict::Outdated
    }

    fn holds_followers(&self) -> bool {
        self.mark.is_held()
    }

    fn holds_since(&self) -> Option<Stamp> {
        self.holds_since
    }

    fn decided(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(self.mark.decided())
    }
}

/// Returns the name of a page among the learned pages: zone, key and the fields of `Vary`.
pub fn page_name(zone: &Zone, key: &[u8], vary: Option<(&VarySpec, &[u8])>) -> Vec<u8> {
    let mut name = zone.config().name.clone().into_bytes();
    name.push(0);
    name.extend_from_slice(key);
    if let Some((spec, values)) = vary {
        for field in spec.names() {
            name.push(0);
            name.extend_from_slice(field.as_bytes());
        }
        name.push(0);
        name.extend_from_slice(values);
    }
    name
}
