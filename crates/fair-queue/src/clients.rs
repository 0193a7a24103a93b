//! The turn and the class of a request: they follow from its client's past behaviour, not from its
//! name. A name lowers the class at most, so that a false one gains nothing.
//!
//! ```text
//! names itself a crawler                              crawlers, one turn for each name, and another for
//!                                                     those whose address is not that search engine's
//! 40 cold pages (160 with a session), and no asset    crawlers, the turn of its network and agent
//! session that the site gave, and that came back      a turn of its own
//! loads assets, or asks for what others ask for       the turn of its address
//! one of many like that                               visitors, the turn they share
//! a newcomer                                          the turn of its address
//! ```
//!
//! A page is cold if it was not asked for lately. A page of the client's own network counts neither as
//! cold nor as known when it is asked for again.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::Millis;
use crate::asset_marks::AssetMarks;
use crate::class::Class;
use crate::crawl_delays::CrawlDelays;
use crate::decaying::DecayingSum;
use crate::generations::Generations;

/// How long a cold page counts, in milliseconds.
const MEMORY: f64 = 300_000.0;
/// Cold pages of one client that make it a crawler.
const CRAWL_OF_CLIENT: f64 = 40.0;
/// Cold pages of one client with a session that make it a crawler: browsers that have all assets of a
/// site load none for a long time.
const CRAWL_WITH_SESSION: f64 = 160.0;
/// Cold pages of one network and agent after which newcomers from there share a turn.
const CRAWL_OF_NETWORK: f64 = 20.0;
/// Cold pages of one agent from all networks after which newcomers with it share a turn.
const CRAWL_OF_AGENT: f64 = 40.0;
/// The number of cold pages that a page which others ask for as well makes up for.
const KNOWN_WEIGHT: f64 = 3.0;
/// Sessions of one address that are turns of their own, within an hour.
const SESSIONS_OF_ADDRESS: f64 = 1024.0;
const HOUR: f64 = 3_600_000.0;
/// Half of the entries of each table.
const HALF: usize = 32_768;
/// A value of a cookie that is shorter is no session's.
const MIN_SESSION_BYTES: usize = 16;
/// Cookies of a request that are looked at.
const MAX_COOKIES: usize = 16;
/// A robots.txt is read after this time again, as its site may have changed it.
const ROBOTS_EVERY: Millis = 60_000;
/// Crawlers keep a robots.txt for a day (RFC 9309 §2.4).
const DELAYS_HOLD: Millis = 86_400_000;
/// Half of the sites whose `Crawl-delay` is known.
const SITES_HALF: usize = 256;
/// A refused client is worth a line in the log after this time.
const LOG_EVERY: Millis = 60_000;

/// The properties of a request by which its client is recognized.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visit<'a> {
    /// `None` for a client on a unix socket.
    pub address: Option<IpAddr>,
    /// The value of `User-Agent`.
    pub agent: &'a [u8],
    /// The crawler that it names, if any.
    pub crawler: Option<CrawlerName>,
    /// The value of `Cookie`.
    pub cookies: &'a [u8],
    /// Host and target.
    pub page: (&'a [u8], &'a [u8]),
    /// Its method is not safe.
    pub writes: bool,
}

/// The name that a crawler gives itself, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CrawlerName {
    /// In lower case.
    pub name: &'static str,
    /// Whether it is the crawler of that name.
    pub evidence: NameEvidence,
}

/// Whether a crawler is the search engine's that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameEvidence {
    /// The name is not that of a search engine.
    NoSearchEngine,
    /// There is no name server to ask: the name counts.
    Unchecked,
    /// DNS does not say so, or not yet.
    Unverified,
    /// DNS says that the address is the search engine's.
    Verified,
}

/// The owner of a turn, for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TurnKind {
    /// An address, or the /64 of one.
    Address(IpAddr),
    /// A session that was first seen from this address.
    Session(IpAddr),
    /// Clients of one network and agent, none of which has loaded an asset.
    Network(IpAddr),
    /// Clients of one agent, likewise.
    Agent,
    /// A crawler by its name.
    Crawler(CrawlerName),
    /// The server itself, a client without an address, or a request that others wait for.
    #[default]
    Other,
}

impl fmt::Display for TurnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Session(address) => write!(f, "session of {address}"),
            Self::Network(IpAddr::V4(network)) => write!(f, "{network}/24 without assets"),
            Self::Network(IpAddr::V6(network)) => write!(f, "{network}/48 without assets"),
            Self::Agent => f.write_str("one agent without assets"),
            Self::Crawler(CrawlerName { name, evidence }) => match evidence {
                NameEvidence::NoSearchEngine | NameEvidence::Unchecked => f.write_str(name),
                NameEvidence::Unverified => write!(f, "{name} (not verified)"),
                NameEvidence::Verified => write!(f, "{name} (verified)"),
            },
            Self::Other => f.write_str("server"),
        }
    }
}

/// A place in the order of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    pub(crate) id: u64,
    /// The owner of the turn.
    pub kind: TurnKind,
    /// Its client has a session, has loaded assets or asks for pages that others ask for: not a
    /// newcomer.
    pub is_known: bool,
    /// The order within a turn that clients share: those who have asked for less go first, so that a
    /// newcomer does not wait behind all others.
    pub(crate) rank: u32,
    /// The request that has the turn.
    pub request: RequestFacts,
}

/// The facts about a request beside its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// The address of the client.
    pub address: Option<IpAddr>,
    /// Its page and the program that asks, for the operator.
    pub latest: Arc<str>,
    /// Its turn is charged this much at least, in milliseconds: its crawler has come before the site's
    /// `Crawl-delay` was over.
    pub(crate) least_cost: Millis,
    /// The site's `Crawl-delay` for it, in milliseconds.
    pub crawl_delay: Option<Millis>,
}

impl Turn {
    /// Whether it is that of a search engine, as far as can be found out.
    #[must_use]
    pub fn is_search_engine(&self) -> bool {
        use NameEvidence::{Unchecked, Verified};
        matches!(&self.kind, TurnKind::Crawler(it) if matches!(it.evidence, Unchecked | Verified))
    }

    /// A turn with a number, for tests.
    #[must_use]
    pub fn numbered(id: u64) -> Self {
        Self {
            id,
            kind: TurnKind::Address(IpAddr::V6(Ipv6Addr::from(u128::from(id)))),
            is_known: false,
            rank: 0,
            request: RequestFacts::default(),
        }
    }
}

/// The turn and class given to a [`Visit`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assessment {
    /// The turn that it waits in.
    pub turn: Turn,
    /// Its class.
    pub class: Class,
}

impl Assessment {
    fn known(mut self) -> Self {
        self.turn.is_known = true;
        self
    }

    fn ranked(mut self, asked_for: f64) -> Self {
        self.turn.rank = asked_for as u32;
        self
    }
}

/// The past behaviour of a client, a network or an agent.
#[derive(Debug, Default)]
struct Behaviour {
    cold: DecayingSum,
    known: DecayingSum,
}

impl Behaviour {
    /// Cold pages, less those that pages of others make up for.
    fn strangeness(&self, now: Millis) -> f64 {
        self.cold.value(MEMORY, now) - KNOWN_WEIGHT * self.known.value(MEMORY, now)
    }
}

/// All clients seen, in bounded tables. One for the process.
#[derive(Debug)]
pub struct Clients {
    seed: RandomState,
    /// By client, network with agent, and agent.
    behaviours: Generations<Behaviour>,
    /// The network that asked for a page first.
    pages: Generations<u64>,
    /// The address to which a session was given.
    sessions: Generations<Option<IpAddr>>,
    /// How many were given to an address.
    given: Generations<DecayingSum>,
    /// By host, and when they were read.
    crawl_delays: Generations<(CrawlDelays, Millis)>,
    /// When the robots.txt of a host was last looked at.
    robots_seen: Generations<Millis>,
    /// When the latest request of a crawler with a delay came, by turn and host.
    crawled: Generations<Millis>,
    logged: Generations<Millis>,
}

impl Default for Clients {
    fn default() -> Self {
        Self::new(HALF)
    }
}

impl Clients {
    fn new(half: usize) -> Self {
        Self {
            seed: RandomState::new(),
            behaviours: Generations::new(half),
            pages: Generations::new(half),
            sessions: Generations::new(half),
            given: Generations::new(half),
            crawl_delays: Generations::new(half.min(SITES_HALF)),
            robots_seen: Generations::new(half.min(SITES_HALF)),
            crawled: Generations::new(half),
            logged: Generations::new(half),
        }
    }

    /// The number of a client in [`AssetMarks`].
    #[must_use]
    pub fn client(&self, address: Option<IpAddr>, agent: &[u8]) -> u64 {
        client(&self.seed, address, agent)
    }

    /// The seed of the numbers: for who marks assets without a lock.
    #[must_use]
    pub fn seed(&self) -> RandomState {
        self.seed.clone()
    }

    /// Returns the turn and class of a request, and notes the request.
    pub fn assess(&mut self, visit: &Visit<'_>, assets: &AssetMarks, now: Millis) -> Assessment {
        let client = self.client(visit.address, visit.agent);
        let loads_assets = assets.is_marked(client, now);
        self.note(visit, client, loads_assets, now);
        let mut assessment = self.look(visit, assets, now);
        if let Some(delay) = assessment.turn.request.crawl_delay {
            self.charge_early_crawler(visit, &mut assessment.turn, delay, now);
        }
        assessment
    }

    /// Whether a robots.txt that is served now is worth a look: one of each site in a minute. Notes the look.
    pub fn is_robots_due(&mut self, host: &[u8], now: Millis) -> bool {
        let host = self.seed.hash_one(("host", host));
        once_in(&mut self.robots_seen, host, ROBOTS_EVERY, now)
    }

    /// A site's robots.txt was read.
    pub fn set_crawl_delays(&mut self, host: &[u8], delays: CrawlDelays, now: Millis) {
        let host = self.seed.hash_one(("host", host));
        if !delays.is_empty() || self.crawl_delays.get(host).is_some() {
            *self.crawl_delays.entry(host, Default::default) = (delays, now);
        }
    }

    /// A crawler that waits for as long as the site asks is charged what its requests cost, and one that comes
    /// earlier the whole delay.
    fn charge_early_crawler(
        &mut self,
        visit: &Visit<'_>,
        turn: &mut Turn,
        delay: Millis,
        now: Millis,
    ) {
        let key = self.seed.hash_one(("crawled", turn.id, visit.page.0));
        let mut is_early = true;
        let latest = self.crawled.entry(key, || {
            is_early = false;
            now
        });
        is_early &= now.saturating_sub(*latest) < delay;
        *latest = now;
        if is_early {
            turn.request.least_cost = delay;
        }
    }

    /// Returns the turn and class that a request would have.
    #[must_use]
    pub fn look(&self, visit: &Visit<'_>, assets: &AssetMarks, now: Millis) -> Assessment {
        let Some(address) = visit.address else {
            return Assessment::default();
        };
        if let Some(name) = visit.crawler {
            let kind = TurnKind::Crawler(name);
            let mut assessment = self.shared(("crawler", name), kind, Class::Crawler);
            let host = self.seed.hash_one(("host", visit.page.0));
            if let Some((delays, read_at)) = self.crawl_delays.get(host)
                && now.saturating_sub(*read_at) < DELAYS_HOLD
            {
                assessment.turn.request.crawl_delay = delays.of(name.name);
            }
            return assessment;
        }
        let client = self.client(visit.address, visit.agent);
        let strangeness = |key| {
            let behaviour = self.behaviours.get(key);
            behaviour.map_or(0.0, |it| it.strangeness(now))
        };
        let is_usual = assets.is_marked(client, now);
        let network = network_of(address);
        let (of_network, of_agent) = self.groups(visit);
        let session = self.session(visit.cookies);
        let most = match session {
            Some(_) => CRAWL_WITH_SESSION,
            None => CRAWL_OF_CLIENT,
        };
        if !is_usual && strangeness(client) >= most {
            let turn = ("network", network, visit.agent);
            return self.shared(turn, TurnKind::Network(network), Class::Crawler);
        }
        if let Some((session, given_to)) = session {
            let class = match visit.writes {
                true => Class::Writer,
                false => Class::Visitor,
            };
            let kind = TurnKind::Session(given_to.unwrap_or(address));
            return self.shared(("session", session), kind, class).known();
        }
        let knows_others = self.behaviours.get(client).is_some_and(|behaviour| {
            behaviour.known.value(MEMORY, now) >= 1.0 && behaviour.strangeness(now) <= 0.0
        });
        if !is_usual && !knows_others {
            let asked_for = self.behaviours.get(client);
            let asked_for = asked_for.map_or(0.0, |it| it.cold.value(MEMORY, now));
            if strangeness(of_network) >= CRAWL_OF_NETWORK {
                let turn = ("network", network, visit.agent);
                let shared = self.shared(turn, TurnKind::Network(network), Class::Visitor);
                return shared.ranked(asked_for);
            }
            if strangeness(of_agent) >= CRAWL_OF_AGENT {
                let shared = self.shared(("agent", visit.agent), TurnKind::Agent, Class::Visitor);
                return shared.ranked(asked_for);
            }
        }
        let own = own_part(address);
        let own_turn = self.shared(("address", own), TurnKind::Address(own), Class::Visitor);
        match is_usual || knows_others {
            true => own_turn.known(),
            false => own_turn,
        }
    }

    fn shared(&self, key: impl std::hash::Hash, kind: TurnKind, class: Class) -> Assessment {
        let id = self.seed.hash_one(key);
        Assessment {
            turn: Turn {
                id,
                kind,
                is_known: false,
                rank: 0,
                request: RequestFacts::default(),
            },
            class,
        }
    }

    fn groups(&self, visit: &Visit<'_>) -> (u64, u64) {
        let network = visit.address.map(network_of);
        (
            self.seed.hash_one(("network", network, visit.agent)),
            self.seed.hash_one(("agent", visit.agent)),
        )
    }

    /// Notes a request of a client. Once the client has loaded an asset, its earlier requests no longer
    /// count for its network.
    fn note(&mut self, visit: &Visit<'_>, client: u64, loads_assets: bool, now: Millis) {
        let network = self.seed.hash_one(visit.address.map(network_of));
        let page = self.seed.hash_one(("page", visit.page));
        let mut is_cold = false;
        let asked_by = *self.pages.entry(page, || {
            is_cold = true;
            network
        });
        let behaviour = self.behaviours.entry(client, Behaviour::default);
        if loads_assets {
            let taken_back = behaviour.cold.value(MEMORY, now);
            behaviour.cold = DecayingSum::default();
            if taken_back > 0.0 {
                self.note_of_groups(visit, -taken_back, now);
            }
            return;
        }
        match is_cold {
            true => behaviour.cold.add(1.0, MEMORY, now),
            // Pages that the client's own network asks for again are no evidence.
            false if asked_by == network => {}
            false => behaviour.known.add(1.0, MEMORY, now),
        }
        if is_cold && visit.crawler.is_none() {
            self.note_of_groups(visit, 1.0, now);
        }
    }

    fn note_of_groups(&mut self, visit: &Visit<'_>, pages: f64, now: Millis) {
        let (network, agent) = self.groups(visit);
        for group in [network, agent] {
            let behaviour = self.behaviours.entry(group, Behaviour::default);
            behaviour.cold.add(pages, MEMORY, now);
        }
    }

    /// The first session of a request that the site has given.
    fn session(&self, cookies: &[u8]) -> Option<(u64, Option<IpAddr>)> {
        let pairs = cookies.split(|&byte| byte == b';').take(MAX_COOKIES);
        pairs.map(<[u8]>::trim_ascii).find_map(|pair| {
            let session = self.seed.hash_one(("session", session_pair(pair)?));
            Some((session, *self.sessions.get(session)?))
        })
    }

    /// The site gives a client a cookie: a value of `Set-Cookie`.
    pub fn note_set_cookie(&mut self, address: Option<IpAddr>, set_cookie: &[u8], now: Millis) {
        let pair = set_cookie.split(|&byte| byte == b';').next();
        let Some(pair) = pair.and_then(|pair| session_pair(pair.trim_ascii())) else {
            return;
        };
        let session = self.seed.hash_one(("session", pair));
        if self.sessions.get(session).is_some() {
            return;
        }
        let own = self.seed.hash_one(("address", address.map(own_part)));
        let given = self.given.entry(own, DecayingSum::default);
        if given.value(HOUR, now) < SESSIONS_OF_ADDRESS {
            given.add(1.0, HOUR, now);
            self.sessions.entry(session, || address);
        }
    }

    /// Whether a refusal of this turn may be logged: once a minute for each turn.
    pub fn may_log(&mut self, turn: &Turn, now: Millis) -> bool {
        once_in(&mut self.logged, turn.id, LOG_EVERY, now)
    }
}

/// Whether `key` was not seen for this time; notes that it is seen now.
fn once_in(seen: &mut Generations<Millis>, key: u64, time: Millis, now: Millis) -> bool {
    let mut is_first = false;
    let last = seen.entry(key, || {
        is_first = true;
        now
    });
    let is_due = is_first || now.saturating_sub(*last) >= time;
    if is_due {
        *last = now;
    }
    is_due
}

/// Like [`Clients::client`], with the hash seed as an argument.
#[must_use]
pub fn client(seed: &RandomState, address: Option<IpAddr>, agent: &[u8]) -> u64 {
    seed.hash_one(("client", address.map(own_part), agent))
}

/// A name and a value that may be a session's.
fn session_pair(pair: &[u8]) -> Option<&[u8]> {
    let equals = pair.iter().position(|&byte| byte == b'=')?;
    (pair.len() - equals > MIN_SESSION_BYTES).then_some(pair)
}

/// The part of an address that one client has: all of an IPv4 address, the /64 of an IPv6 address.
fn own_part(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(masked(address, 64)),
        address => address,
    }
}

/// The network of an address: a /24, or a /48.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from(u32::from(address) & 0xffff_ff00)),
        IpAddr::V6(address) => IpAddr::V6(masked(address, 48)),
    }
}

fn masked(address: Ipv6Addr, bits: u32) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(address) & (u128::MAX << (128 - bits)))
}

#[cfg(test)]
mod tests;
