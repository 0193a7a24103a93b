//! The table of clients, for the turns that they have at upstreams. One table for all groups, and none
//! if no group distinguishes turns.

use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::Arc;

use fair_queue::{Assessment, AssetMarks, Clients, CrawlDelays, Turn, Visit, client};
use parking_lot::Mutex;
use upstream::Group;

/// Clients by their past requests. Asked for requests that an upstream answers; files only mark their
/// client.
pub struct ClientTable {
    clients: Mutex<Clients>,
    seed: RandomState,
    assets: AssetMarks,
}

impl Default for ClientTable {
    fn default() -> Self {
        let clients = Clients::default();
        Self {
            seed: clients.seed(),
            clients: Mutex::new(clients),
            assets: AssetMarks::default(),
        }
    }
}

impl ClientTable {
    /// The table of a configuration with these groups, with the clients that the one before knows.
    pub(crate) fn renew(
        groups: &[Arc<Group>],
        previous: Option<&Arc<ClientTable>>,
    ) -> Option<Arc<ClientTable>> {
        let is_wanted = groups.iter().any(|group| group.has_turns());
        is_wanted.then(|| previous.cloned().unwrap_or_default())
    }

    /// Returns the turn of a request, and notes the request.
    pub fn assess(&self, visit: &Visit<'_>, now: u64) -> Assessment {
        self.clients.lock().assess(visit, &self.assets, now)
    }

    /// Returns the turn that a request would have.
    pub fn look(&self, visit: &Visit<'_>, now: u64) -> Assessment {
        self.clients.lock().look(visit, &self.assets, now)
    }

    /// A client has loaded a file that pages are shown with.
    pub fn mark_asset(&self, address: Option<IpAddr>, agent: &[u8], now: u64) {
        self.assets.mark(client(&self.seed, address, agent), now);
    }

    /// A response gives a client cookies.
    pub fn note_cookies<'v>(
        &self,
        address: Option<IpAddr>,
        set_cookies: impl Iterator<Item = &'v [u8]>,
        now: u64,
    ) {
        let mut set_cookies = set_cookies.peekable();
        if set_cookies.peek().is_some() {
            let mut clients = self.clients.lock();
            set_cookies.for_each(|value| clients.note_set_cookie(address, value, now));
        }
    }

    /// Whether a site's robots.txt that is served now is worth a look; notes the look.
    pub fn is_robots_due(&self, host: &[u8], now: u64) -> bool {
        self.clients.lock().is_robots_due(host, now)
    }

    /// A site's robots.txt was read.
    pub fn set_crawl_delays(&self, host: &[u8], delays: CrawlDelays, now: u64) {
        self.clients.lock().set_crawl_delays(host, delays, now);
    }

    /// Whether a refusal of this turn may be logged.
    pub fn may_log(&self, turn: &Turn, now: u64) -> bool {
        self.clients.lock().may_log(turn, now)
    }
}
