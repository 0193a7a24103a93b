//! Looking names up: from memory, together with others, or by asking.
//!
//! ```text
//! look: Known -------------------------------> answer
//!       UnderWay -- wait -------------------> the asker's answer
//! Unknown  -- announce, spawn lead ---> lead asks, stores, sends to all
//! ```
//!
//! The task that asks belongs to the resolver, not to the request that caused it; the task ends
//! when the last waiting request has gone.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::Millis;
use crate::cache::{Cache, CacheLookup, DnsAnswer, Flight, Key, TimedAnswer};
use crate::error::{Fault, ResolveError};
use crate::exchange::Round;
use crate::message::{RecordKind, Reply, Service, reverse_name};

/// Bound of one lookup with all its repeated questions; nginx's `expire`.
const MAX_LOOKUP: Duration = Duration::from_secs(30);
/// Aliases followed from question to question.
const MAX_ALIASES: usize = 16;
/// Before the next server after one that could not even be sent to.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// The arguments of the directive `resolver`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverSpec {
    /// Asked in turn.
    pub servers: Vec<SocketAddr>,
    /// How long an answer holds; `None`: for the TTL of its records.
    pub valid: Option<Duration>,
    /// Ask for IPv4 addresses.
    pub ipv4: bool,
    /// Ask for IPv6 addresses.
    pub ipv6: bool,
    /// After this time without an answer the next server is asked.
    pub resend: Duration,
    /// How long a server has to answer over TCP.
    pub tcp_timeout: Duration,
}

impl ResolverSpec {
    /// nginx's defaults for these servers.
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self {
            servers,
            valid: None,
            ipv4: true,
            ipv6: true,
            resend: Duration::from_secs(5),
            tcp_timeout: Duration::from_secs(5),
        }
    }
}

/// The addresses of a name: IPv4 first, each kind in the server's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// At least one.
    pub addresses: Arc<[IpAddr]>,
    /// When to ask again.
    pub valid_until: Millis,
}

/// The SRV records of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// At least one, in the server's order.
    pub services: Arc<[Service]>,
    /// When to ask again.
    pub valid_until: Millis,
}

/// The names that an address has by its PTR records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNames {
    /// At least one, in lower case and the server's order. The owner of the address chooses them.
    pub hosts: Arc<[String]>,
    /// When to ask again.
    pub valid_until: Millis,
}

/// A `resolver` line at work.
#[derive(Debug)]
pub struct Resolver {
    spec: ResolverSpec,
    next_server: AtomicUsize,
    cache: Mutex<Cache>,
}

impl Resolver {
    /// With nothing known yet.
    pub fn new(spec: ResolverSpec) -> Arc<Self> {
        Arc::new(Self {
            spec,
            next_server: AtomicUsize::new(0),
            cache: Mutex::default(),
        })
    }

    /// Returns the directive's arguments from which the resolver was made.
    pub fn spec(&self) -> &ResolverSpec {
        &self.spec
    }

    /// The addresses of `name`, waiting for `resolver_timeout` at most.
    ///
    /// An IP address is its own answer, for good. Call it inside of a tokio
    /// runtime: a name that is not known is asked for by a task.
    pub async fn resolve(
        self: &Arc<Self>,
        name: &str,
        resolver_timeout: Duration,
        now: Millis,
    ) -> Result<Addresses, ResolveError> {
        if let Ok(address) = name.parse() {
            return Ok(Addresses {
                addresses: [address].into(),
                valid_until: Millis::MAX,
            });
        }
        let timed = self
            .find(Key::Addresses(normal(name)), resolver_timeout, now)
            .await;
        match timed {
            Ok(TimedAnswer {
                found: DnsAnswer::Addresses(addresses),
                valid_until,
            }) => Ok(Addresses {
                addresses,
                valid_until,
            }),
            Ok(_) => Err(error(name, Fault::HostNotFound)),
            Err(fault) => Err(error(name, fault)),
        }
    }

    /// The SRV records of `name`; otherwise as [`Self::resolve`].
    pub async fn services(
        self: &Arc<Self>,
        name: &str,
        resolver_timeout: Duration,
        now: Millis,
    ) -> Result<Services, ResolveError> {
        let timed = self
            .find(Key::Services(normal(name)), resolver_timeout, now)
            .await;
        match timed {
            Ok(TimedAnswer {
                found: DnsAnswer::Services(services),
                valid_until,
            }) => Ok(Services {
                services,
                valid_until,
            }),
            Ok(_) => Err(error(name, Fault::HostNotFound)),
            Err(fault) => Err(error(name, fault)),
        }
    }

    /// The host names of `address`; otherwise as [`Self::resolve`].
    pub async fn host_names(
        self: &Arc<Self>,
        address: IpAddr,
        resolver_timeout: Duration,
        now: Millis,
    ) -> Result<HostNames, ResolveError> {
        let name = reverse_name(address.to_canonical());
        let timed = self
            .find(Key::Hosts(name.clone()), resolver_timeout, now)
            .await;
        match timed {
            Ok(TimedAnswer {
                found: DnsAnswer::Hosts(hosts),
                valid_until,
            }) => Ok(HostNames { hosts, valid_until }),
            Ok(_) => Err(error(&name, Fault::HostNotFound)),
            Err(fault) => Err(error(&name, fault)),
        }
    }

    async fn find(
        self: &Arc<Self>,
        key: Key,
        resolver_timeout: Duration,
        now: Millis,
    ) -> Result<TimedAnswer, Fault> {
        let mut answer = {
            let mut cache = self.cache.lock();
            match cache.look(&key, now) {
                CacheLookup::Known(timed) => return Ok(timed),
                CacheLookup::UnderWay(flight) => flight.subscribe(),
                CacheLookup::Unknown => {
                    let (flight, answer) = watch::channel(None);
                    let flight = Arc::new(flight);
                    cache.announce(key.clone(), flight.clone());
                    tokio::spawn(self.clone().lead(key, flight, now));
                    answer
                }
                CacheLookup::Full => return Err(Fault::Refused),
            }
        };
        match timeout(resolver_timeout, answer.wait_for(Option::is_some)).await {
            Ok(Ok(answer)) => answer.clone().unwrap_or(Err(Fault::TimedOut)),
            // The thread of the asker has ended, or `resolver_timeout` is over.
            Ok(Err(_)) | Err(_) => Err(Fault::TimedOut),
        }
    }

    /// Asks for `key`, stores the answer and sends it to all that wait for it.
    async fn lead(self: Arc<Self>, key: Key, flight: Flight, now: Millis) {
        // However this task ends, the name does not stay under way.
        let landing = FlightGuard {
            resolver: &self,
            key: &key,
            flight: &flight,
        };
        let began = Instant::now();
        let mut query = std::pin::pin!(timeout(MAX_LOOKUP, self.ask(&key)));
        let asked = loop {
            tokio::select! {
                asked = &mut query => break asked.unwrap_or(Err(Fault::TimedOut)),
                () = flight.closed() => {
                    // Looked at again under the lock, so that no request joins an abandoned lookup.
                    let mut cache = self.cache.lock();
                    if flight.receiver_count() == 0 {
                        cache.land(&key, &flight, None);
                        drop(cache);
                        return;
                    }
                }
            }
        };
        let ended = now.saturating_add(millis(began.elapsed()));
        let result = asked.map(|(found, ttl)| TimedAnswer {
            found,
            valid_until: ended.saturating_add(millis(self.spec.valid.unwrap_or(ttl))),
        });
        let worth_keeping = result
            .as_ref()
            .ok()
            .filter(|timed| timed.valid_until > ended);
        self.cache
            .lock()
            .land(&key, &flight, worth_keeping.cloned());
        drop(landing);
        flight.send_replace(Some(result));
    }

    async fn ask(&self, key: &Key) -> Result<(DnsAnswer, Duration), Fault> {
        let (mut name, kinds) = match key {
            Key::Services(name) => (name.clone(), vec![RecordKind::Srv]),
            Key::Hosts(name) => (name.clone(), vec![RecordKind::Ptr]),
            Key::Addresses(name) => {
                let kinds = [
                    (self.spec.ipv4, RecordKind::A),
                    (self.spec.ipv6, RecordKind::Aaaa),
                ];
                let asked = kinds.into_iter().filter(|(is_asked, _)| *is_asked);
                (name.clone(), asked.map(|(_, kind)| kind).collect())
            }
        };
        let mut ttl = u32::MAX;
        for _ in 0..=MAX_ALIASES {
            let gathered = self.ask_once(&name, &kinds).await?;
            ttl = ttl.min(gathered.ttl);
            let lifetime = Duration::from_secs(u64::from(ttl));
            if !gathered.addresses.is_empty() {
                return Ok((DnsAnswer::Addresses(gathered.addresses.into()), lifetime));
            }
            if !gathered.services.is_empty() {
                return Ok((DnsAnswer::Services(gathered.services.into()), lifetime));
            }
            if !gathered.hosts.is_empty() {
                return Ok((DnsAnswer::Hosts(gathered.hosts.into()), lifetime));
            }
            match gathered.alias {
                Some(alias) => name = alias,
                None => return Err(gathered.fault),
            }
        }
        Err(Fault::HostNotFound)
    }

    /// Asks one server after the other until each question has an answer. The caller bounds the
    /// time.
    async fn ask_once(&self, name: &str, kinds: &[RecordKind]) -> Result<GatheredAnswers, Fault> {
        let mut round = Round::new(name, kinds).ok_or(Fault::HostNotFound)?;
        let mut turn = self.next_server.fetch_add(1, Ordering::Relaxed);
        loop {
            let servers = &self.spec.servers;
            let index = turn.checked_rem(servers.len()).ok_or(Fault::Refused)?;
            let Some(server) = servers.get(index) else {
                return Err(Fault::Refused);
            };
            let query = round.ask(*server, self.spec.tcp_timeout);
            if let Ok(Err(_)) = timeout(self.spec.resend, query).await {
                sleep(AFTER_ERROR).await;
            }
            if let Some(replies) = round.replies() {
                return Ok(GatheredAnswers::new(&replies));
            }
            turn = turn.wrapping_add(1);
        }
    }
}

/// The answers to all questions about a name, put together.
#[derive(Debug)]
struct GatheredAnswers {
    addresses: Vec<IpAddr>,
    services: Vec<Service>,
    hosts: Vec<String>,
    alias: Option<String>,
    ttl: u32,
    /// The fault to report if the replies have no records of the wanted type.
    fault: Fault,
}

impl GatheredAnswers {
    fn new(replies: &[&Reply]) -> Self {
        let mut gathered = Self {
            addresses: Vec::new(),
            services: Vec::new(),
            hosts: Vec::new(),
            alias: None,
            ttl: u32::MAX,
            fault: Fault::HostNotFound,
        };
        let mut failure = None;
        for reply in replies {
            match reply {
                Reply::Records(records) => {
                    gathered.addresses.extend(&records.addresses);
                    gathered.services.extend_from_slice(&records.services);
                    gathered.hosts.extend_from_slice(&records.hosts);
                    gathered.ttl = gathered.ttl.min(records.ttl);
                    // The last answer's, as with nginx.
                    gathered.alias.clone_from(&records.alias);
                }
                Reply::Fault(Fault::HostNotFound) | Reply::Truncated => gathered.alias = None,
                Reply::Fault(fault) => failure = Some(*fault),
            }
        }
        // A failure of one kind spoils the other: half of the addresses, taken
        // for all of them, would be remembered.
        match failure {
            Some(fault) => Self {
                addresses: Vec::new(),
                services: Vec::new(),
                alias: None,
                fault,
                ..gathered
            },
            None => gathered,
        }
    }
}

/// Takes a question out of the cache's table when it is dropped, whatever ended its task.
struct FlightGuard<'a> {
    resolver: &'a Resolver,
    key: &'a Key,
    flight: &'a Flight,
}

impl Drop for FlightGuard<'_> {
    fn drop(&mut self) {
        self.resolver.cache.lock().land(self.key, self.flight, None);
    }
}

/// Normalizes a name for lookups: lower case, without the last dot.
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn error(name: &str, fault: Fault) -> ResolveError {
    ResolveError {
        name: name.to_owned(),
        fault,
    }
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}
