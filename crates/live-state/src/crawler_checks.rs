//! Whether clients that name themselves a search engine's crawler are that: the host name of their address is
//! below a domain of the search engine, and has that address.
//!
//! Name servers are asked in the background. A request takes what is known at the time. Clients choose when they
//! ask, and who owns an address chooses its host name: lookups and results are bounded.

use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dns::{Fault, ResolveError, Resolver, ResolverSpec};
use fair_queue::NameEvidence;
use parking_lot::Mutex;
use site::Site;

use crate::names::resolver_spec;

/// Results that are kept.
const MAX_RESULTS: usize = 4096;
/// Lookups under way.
const MAX_UNDER_WAY: usize = 8;
/// Lookups that begin within a second.
const MAX_IN_SECOND: u32 = 20;
/// Host names of one address that are looked at.
const MAX_HOSTS: usize = 4;
/// How long one name is looked up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
/// How long results hold. A lookup that failed says nothing, and is tried again sooner.
const GENUINE_FOR: u64 = 24 * HOUR;
const FALSE_FOR: u64 = HOUR;
const FAILED_FOR: u64 = HOUR / 6;
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// As in the C library.
const MAX_NAME_SERVERS: usize = 3;
const MAX_RESOLV_CONF_BYTES: u64 = 65_536;
const DNS_PORT: u16 = 53;

/// The checks, and the name servers that are asked.
#[derive(Debug)]
pub struct CrawlerChecks {
    /// `None`: there are no name servers.
    resolver: Option<Arc<Resolver>>,
    results: Mutex<Results>,
}

#[derive(Debug, Default)]
struct Results {
    by_client: HashMap<(IpAddr, &'static str), CheckResult>,
    under_way: usize,
    second: u64,
    begun_in_second: u32,
}

#[derive(Clone, Copy, Debug)]
struct CheckResult {
    is_genuine: bool,
    /// A check is under way: the result before it still holds.
    is_under_way: bool,
    valid_until: u64,
}

impl CrawlerChecks {
    /// Checks by the first `resolver` of the configuration, or else by the name servers of the system. Results are
    /// kept where these are those of `previous`.
    pub(crate) fn renew(site: &Site, previous: Option<&Arc<Self>>) -> Arc<Self> {
        let spec = match site.http.resolvers.first() {
            Some(settings) => Some(resolver_spec(settings)),
            None => name_servers(Path::new(RESOLV_CONF)).map(ResolverSpec::new),
        };
        let spec = spec.map(|spec| ResolverSpec {
            // Crawlers come from addresses of both kinds.
            ipv4: true,
            ipv6: true,
            ..spec
        });
        match previous {
            Some(previous) if previous.resolver.as_ref().map(|it| it.spec()) == spec.as_ref() => {
                previous.clone()
            }
            _ => Arc::new(Self::new(spec)),
        }
    }

    fn new(spec: Option<ResolverSpec>) -> Self {
        Self {
            resolver: spec.map(Resolver::new),
            results: Mutex::default(),
        }
    }

    /// Returns what is known of a client that names itself the crawler `name` of a search engine whose machines are
    /// below `domains`. If that is too little, a check begins in the background.
    pub fn evidence(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        (name, domains): (&'static str, &'static [&'static str]),
        now: u64,
    ) -> NameEvidence {
        let Some(resolver) = &self.resolver else {
            return NameEvidence::Unchecked;
        };
        let Some(address) = address.filter(|_| !domains.is_empty()) else {
            return NameEvidence::Unverified;
        };
        let address = address.to_canonical();
        let mut results = self.results.lock();
        let known = results.by_client.get(&(address, name)).copied();
        let is_settled = known.is_some_and(|it| it.is_under_way || now < it.valid_until);
        if !is_settled
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
            && results.may_begin(now)
        {
            results.begin((address, name), known);
            let (checks, resolver) = (self.clone(), resolver.clone());
            runtime.spawn(async move {
                let mut end = CheckEnd {
                    checks,
                    client: (address, name),
                    now,
                    result: Err(Fault::TimedOut),
                };
                end.result = is_of(&resolver, address, domains, now).await;
            });
        }
        match known {
            Some(result) if result.is_genuine => NameEvidence::Verified,
            _ => NameEvidence::Unverified,
        }
    }
}

impl Results {
    fn may_begin(&mut self, now: u64) -> bool {
        if now / SECOND != self.second {
            self.second = now / SECOND;
            self.begun_in_second = 0;
        }
        self.under_way < MAX_UNDER_WAY && self.begun_in_second < MAX_IN_SECOND
    }

    fn begin(&mut self, client: (IpAddr, &'static str), before: Option<CheckResult>) {
        self.under_way += 1;
        self.begun_in_second += 1;
        if self.by_client.len() >= MAX_RESULTS {
            // False names come from anywhere, and genuine crawlers from few machines.
            self.by_client
                .retain(|_, it| it.is_genuine || it.is_under_way);
        }
        if self.by_client.len() >= MAX_RESULTS {
            self.by_client.retain(|_, it| it.is_under_way);
        }
        let result = CheckResult {
            is_genuine: before.is_some_and(|it| it.is_genuine),
            is_under_way: true,
            valid_until: 0,
        };
        self.by_client.insert(client, result);
    }
}

/// Writes the result of a check down, however its task ends.
struct CheckEnd {
    checks: Arc<CrawlerChecks>,
    client: (IpAddr, &'static str),
    now: u64,
    result: Result<bool, Fault>,
}

impl Drop for CheckEnd {
    fn drop(&mut self) {
        let mut results = self.checks.results.lock();
        results.under_way = results.under_way.saturating_sub(1);
        let Some(result) = results.by_client.get_mut(&self.client) else {
            return;
        };
        let valid_for = match self.result {
            Ok(true) => GENUINE_FOR,
            Ok(false) => FALSE_FOR,
            Err(_) => FAILED_FOR,
        };
        *result = CheckResult {
            is_genuine: self.result.unwrap_or(result.is_genuine),
            is_under_way: false,
            valid_until: self.now + valid_for,
        };
    }
}

/// Returns whether a host name of `address` is below one of `domains` and has the address.
///
/// # Errors
/// A name server has failed.
async fn is_of(
    resolver: &Arc<Resolver>,
    address: IpAddr,
    domains: &[&str],
    now: u64,
) -> Result<bool, Fault> {
    let names = resolver.host_names(address, LOOKUP_TIMEOUT, now).await;
    let Some(names) = found(names)? else {
        return Ok(false);
    };
    let hosts = names.hosts.iter().filter(|host| is_below(host, domains));
    for host in hosts.take(MAX_HOSTS) {
        let addresses = found(resolver.resolve(host, LOOKUP_TIMEOUT, now).await)?;
        if addresses.is_some_and(|it| it.addresses.contains(&address)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `None`: there is no such name.
fn found<T>(result: Result<T, ResolveError>) -> Result<Option<T>, Fault> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.fault == Fault::HostNotFound => Ok(None),
        Err(error) => Err(error.fault),
    }
}

fn is_below(host: &str, domains: &[&str]) -> bool {
    domains.iter().any(|domain| {
        host.strip_suffix(domain)
            .is_some_and(|rest| rest.ends_with('.'))
    })
}

/// The name servers of the system; `None`: there are none.
fn name_servers(path: &Path) -> Option<Vec<SocketAddr>> {
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    let mut file = file.take(MAX_RESOLV_CONF_BYTES);
    file.read_to_string(&mut text).ok()?;
    let servers = servers_in(&text);
    (!servers.is_empty()).then_some(servers)
}

/// The addresses of `nameserver` lines. Those with a zone (`fe80::1%eth0`) are left out.
fn servers_in(text: &str) -> Vec<SocketAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address: IpAddr = match words.next()? {
            "nameserver" => words.next()?.parse().ok()?,
            _ => return None,
        };
        Some(SocketAddr::new(address, DNS_PORT))
    });
    servers.take(MAX_NAME_SERVERS).collect()
}

#[cfg(test)]
mod tests;
