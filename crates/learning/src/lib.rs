//! The inputs of pages of own PHP pools, and which of these pages may have changed (`cache_learn`).
//!
//! ```text
//! library in PHP ─► channel ─► php_report ─┐
//!                                          ├─► join ─► book: pages, indexes of `learned`, files
//! server: begin, stored, dropped ──────────┘             │
//! explain, metrics ◄─────────────────────────────────────┘
//! ```
//!
//! Each pool has a thread of its own, which hears its workers and keeps its book, and another one for what takes
//! milliseconds: a page of hundreds of statements. A worker that sends nonsense, or too much, can spoil what is
//! known of its own pool's pages and nothing else. The server waits for none of this. It gets the numbers of fetches here, reports how each of them ended, and asks
//! what is known of a page.

mod address_databases;
mod address_lookups;
mod announced;
mod binary_log;
mod book;
mod caches;
mod channel;
mod client;
mod client_addresses;
mod counts;
mod differing;
mod digest;
mod doubts;
mod failpoint;
mod files;
mod guest_sessions;
mod heartbeat;
mod join;
mod known_databases;
mod learn_pages;
mod log_state;
mod mark;
mod memcached_tracker;
mod nodes_wait;
mod on_disk;
mod other_nodes;
mod own_files;
mod page_digest;
mod pages;
mod php_report;
mod poll;
mod pool_thread;
mod postgres;
mod process;
mod read_back;
mod record;
mod replay;
mod replay_time;
mod schema_reader;
mod server_identity;
mod session_data;
mod sessions;
mod sqlite;
mod sqlite_of_pool;
mod statement_text;
mod statements;
mod steady;
mod tracker;
mod trials;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use learned::NoisyStatement;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use address_lookups::AddressLookups;
use book::{Book, Confirmation, LearnedEnd, PageEnd, Showing};
pub use client::DatabaseAccount;
pub use counts::{Comparison, Counts, ReplayEnd, SHAPE_STATES};
pub use digest::Digest;
pub use files::has_unreliable_times;
use join::End;
use known_databases::KnownDatabases;
use learn_pages::MadePage;
pub use log_state::LogState;
use mark::{Marks, WriteCounts};
pub use mark::{PageMark, PageVerdict};
use nodes_wait::NodesOfPool;
use other_nodes::WrittenEntry;
pub use other_nodes::{NodesKnow, OtherNodes, merged};
pub use page_digest::PageDigest;
pub use pages::PageReport;
pub use read_back::PageToReadBack;
pub use record::{Reason, WhyNot};
pub use replay_time::MAX_PERCENT as MAX_REPLAY_PERCENT;
pub use sessions::{SessionWatch, Sessions, Visit, may_be_session};

/// The FastCGI parameter with the number of a fetch.
pub const FETCH_PARAMETER: &[u8] = learn_record::FETCH_PARAMETER.as_bytes();

/// Ends of fetches that wait for the thread of their pool. Beyond it they are not learned.
const MAX_ENDS: usize = 4096;

/// The pools whose pages are learned.
pub struct Learning {
    pools: BTreeMap<String, Arc<LearnedPool>>,
    /// Pools of the configuration before, whose processes may still write.
    ending: Vec<Arc<LearnedPool>>,
    sessions: Arc<Sessions>,
}

/// The rules for a pool in a configuration.
#[derive(Default)]
pub struct PoolRules {
    /// The accounts with which the tables of its database servers are read.
    pub accounts: Vec<DatabaseAccount>,
    /// The accounts by which its object caches are followed.
    pub cache_accounts: Vec<DatabaseAccount>,
    /// Pages are kept by what is known of them: `cache_learn on` and `auto`.
    pub keeps: bool,
    /// Statements of suspect pages are run again: `cache_learn_replay on`.
    pub replays: bool,
    /// The binary log of the database is followed: `cache_learn_binary_log on`.
    pub follows: bool,
    /// Stands for what runs PHP, where pages are written to disk and read back.
    pub lasts: Option<u64>,
}

/// A pool whose pages are learned.
// Large: most have a lock of their own, so that a request waits for none that it does not need.
pub struct LearnedPool {
    name: String,
    /// Tells its socket from that of another pool of the same name.
    socket: (u64, u64),
    /// Who runs PHP.
    account: u32,
    /// The seed of the hashes of results.
    seed: u64,
    book: Mutex<Book>,
    /// How many writes each database server has seen, as of now.
    writes: Mutex<Arc<WriteCounts>>,
    last_fetch: AtomicU64,
    marks: Arc<Marks>,
    keeps: AtomicBool,
    /// A copy of the book's value, which is read without its lock.
    replays: AtomicBool,
    follows: AtomicBool,
    /// [`PoolRules::lasts`], with `replays`.
    lasts: Mutex<Option<u64>>,
    read_backs: mpsc::Sender<PageToReadBack>,
    address_lookups: AddressLookups,
    ends: mpsc::Sender<End>,
    made: mpsc::Sender<MadePage>,
    /// Whom to ask about tables.
    accounts: Mutex<Vec<DatabaseAccount>>,
    /// By whom object caches are followed.
    cache_accounts: Mutex<Vec<DatabaseAccount>>,
    /// The other pools.
    neighbours: Mutex<Vec<Weak<LearnedPool>>>,
    /// The other machines.
    nodes: NodesOfPool,
    /// Statements may have to be run again.
    wanted: Arc<Notify>,
    /// A visitor waits for that.
    awaited: Arc<Notify>,
    /// A round of them is over.
    replayed: Notify,
    /// The SQLite databases that its pages were made of lately.
    sqlite: Mutex<KnownDatabases>,
    /// Of all pools.
    sessions: Arc<Sessions>,
}

impl Learning {
    /// Hears the workers that connect to `sockets`, which are those of pools by name. A pool that has
    /// the same socket as in `previous` goes on with what was learned. `rules` are those of a pool.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn renew(
        previous: Option<&Learning>,
        sockets: HashMap<String, OwnedFd>,
        rules: impl Fn(&str) -> PoolRules,
    ) -> io::Result<Learning> {
        let mut pools = BTreeMap::new();
        let sessions = previous.map(|previous| previous.sessions.clone());
        let sessions = sessions.unwrap_or_default();
        for (name, socket) in sockets {
            let identity = identity(&socket)?;
            let known = previous.and_then(|previous| previous.pools.get(&name));
            let pool = match known.filter(|known| known.socket == identity) {
                Some(known) => known.clone(),
                None => begin_pool(&name, socket, identity, &sessions)?,
            };
            pools.insert(name, pool);
        }
        for pool in pools.values() {
            let PoolRules {
                accounts,
                cache_accounts,
                keeps,
                replays,
                follows,
                lasts,
            } = rules(pool.name());
            *pool.accounts.lock() = accounts;
            *pool.cache_accounts.lock() = cache_accounts;
            pool.book.lock().set_replays(keeps && replays);
            pool.replays.store(keeps && replays, Ordering::Release);
            pool.keeps.store(keeps, Ordering::Release);
            pool.follows.store(keeps && follows, Ordering::Release);
            *pool.lasts.lock() = lasts.filter(|_| keeps && replays);
            let others = pools.values().filter(|it| !Arc::ptr_eq(it, pool));
            *pool.neighbours.lock() = others.map(Arc::downgrade).collect();
        }
        let ending = previous.into_iter().flat_map(|previous| {
            let stays = |it: &&Arc<LearnedPool>| pools.values().any(|new| Arc::ptr_eq(new, it));
            previous.pools.values().filter(move |it| !stays(it))
        });
        let ending: Vec<_> = ending.cloned().collect();
        for pool in &ending {
            // Its processes go on for a while, and tell this one alone.
            let others = pools.values();
            *pool.neighbours.lock() = others.map(Arc::downgrade).collect();
            pool.end();
        }
        Ok(Learning {
            pools,
            ending,
            sessions,
        })
    }

    /// The sessions of visitors who have copies of their own.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    pub fn pool(&self, name: &str) -> Option<&Arc<LearnedPool>> {
        self.pools.get(name)
    }

    pub fn pools(&self) -> impl Iterator<Item = &Arc<LearnedPool>> {
        self.pools.values()
    }

    /// Reports writes of programs here to the other nodes from now on, before these programs know that they have written.
    pub fn tell(&self, nodes: Option<&Arc<dyn OtherNodes>>) {
        let nodes = nodes.filter(|_| self.pools().any(|pool| pool.keeps()));
        // Pools that keep no pages, or none any more, write what others read.
        for pool in self.pools().chain(&self.ending) {
            pool.book.lock().has_nodes = nodes.is_some();
            pool.nodes.set(nodes.cloned());
        }
    }

    /// Takes an entry of another node. Its writes count when this returns.
    pub fn written_elsewhere(&self, entry: &[u8]) {
        let entry = WrittenEntry::decode(entry);
        for pool in self.pools() {
            pool.change(|book| book.written_elsewhere(&entry, Instant::now()));
            pool.want_replays();
        }
    }
}

fn unix_seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}

fn identity(socket: &OwnedFd) -> io::Result<(u64, u64)> {
    let facts = rustix::fs::fstat(socket)?;
    Ok((facts.st_dev, facts.st_ino))
}

fn begin_pool(
    name: &str,
    socket: OwnedFd,
    identity: (u64, u64),
    sessions: &Arc<Sessions>,
) -> io::Result<Arc<LearnedPool>> {
    let (ends, received) = mpsc::channel(MAX_ENDS);
    let (made, pages) = mpsc::channel(learn_pages::MAX_WAITING);
    let (read_backs, to_read_back) = mpsc::channel(read_back::MAX_WAITING);
    let (address_lookups, questions) = AddressLookups::new();
    let facts = fs::metadata(path_of(&socket)?)?;
    let pool = Arc::new(LearnedPool {
        name: name.to_owned(),
        socket: identity,
        account: facts.uid(),
        seed: learn_record::result_seed(&facts),
        book: Mutex::default(),
        writes: Mutex::default(),
        cache_accounts: Mutex::default(),
        last_fetch: AtomicU64::new(0),
        marks: Arc::new(Marks::new()),
        keeps: AtomicBool::new(false),
        replays: AtomicBool::new(false),
        follows: AtomicBool::new(false),
        lasts: Mutex::default(),
        read_backs,
        address_lookups,
        ends,
        made,
        accounts: Mutex::default(),
        neighbours: Mutex::default(),
        nodes: NodesOfPool::default(),
        wanted: Arc::default(),
        awaited: Arc::default(),
        replayed: Notify::new(),
        sqlite: Mutex::default(),
        sessions: sessions.clone(),
    });
    pool.book.lock().expect_scripts_of(&facts);
    learn_pages::begin(&pool, pages)?;
    pool_thread::begin(&pool, socket, (received, to_read_back, questions))?;
    Ok(pool)
}

/// Returns the path of a socket: its owner is the account of PHP, and no other may connect.
fn path_of(socket: &OwnedFd) -> io::Result<PathBuf> {
    let address = rustix::net::getsockname(socket)?;
    let address = rustix::net::SocketAddrUnix::try_from(address)?;
    let path = address.path_bytes().unwrap_or_default();
    let end = path.iter().position(|byte| *byte == 0);
    let path = path.get(..end.unwrap_or(path.len())).unwrap_or_default();
    let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(path);
    Ok(path.into())
}

impl LearnedPool {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sessions of visitors who have copies of their own, of all pools.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// A fetch begins, by the request of this visitor.
    pub fn begin(self: &Arc<Self>, visit: Option<Visit>) -> Fetch {
        self.marks.begin_fetch();
        let number = self.next_fetch();
        Fetch {
            pool: self.clone(),
            mark: Arc::new(PageMark::new(self, number)),
            number,
            visit,
            is_over: false,
        }
    }

    fn next_fetch(&self) -> u64 {
        self.last_fetch.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Is a page still good?
    fn confirm(&self, number: u32, fetch: u64) -> Confirmation {
        self.book.lock().confirm(number, fetch, Instant::now())
    }

    /// Returns once it is known whether a page is still good. `true`: it was found out meanwhile that it is.
    async fn decided(&self, (number, fetch): (u32, u64), mut has_waited: bool) -> bool {
        loop {
            // Made before looking: it hears of each round from here on.
            let replayed = self.replayed.notified();
            match self.book.lock().await_replay(number, fetch, Instant::now()) {
                Confirmation::Open => {}
                Confirmation::Good(_) => return has_waited,
                Confirmation::Outdated => return false,
            }
            self.wanted.notify_one();
            self.awaited.notify_one();
            replayed.await;
            has_waited = true;
        }
    }

    /// How a page may be shown.
    fn showing(&self, number: u32) -> Showing {
        let book = self.book.lock();
        book.showing(LearnedEnd::Known(number, 0))
    }

    /// Pages may have become suspect.
    fn want_replays(&self) {
        if self.replays.load(Ordering::Acquire) {
            self.wanted.notify_one();
        }
    }

    /// Have all writes that are announced or in doubt been so for long?
    fn has_slow_writes_only(&self) -> bool {
        self.book.lock().has_slow_writes_only(Instant::now())
    }

    /// No page is shown any more by what was learned.
    fn end(&self) {
        self.keeps.store(false, Ordering::Release);
        *self.lasts.lock() = None;
        let why = "the pool was started anew";
        self.change(|book| book.suspect_all(why, Instant::now(), |_| true));
        self.marks.note_polled(0);
    }

    fn keeps(&self) -> bool {
        self.keeps.load(Ordering::Acquire)
    }

    /// The account for a server that PHP reached by this address.
    fn account_of(&self, server: &str) -> Option<DatabaseAccount> {
        // The path of a socket that a worker names may lead to a mount that does not answer.
        let accounts = self.accounts.lock().clone();
        accounts.into_iter().find(|it| it.is_for(server))
    }

    /// The account by which the object cache is followed that PHP reached by this address.
    fn cache_account_of(&self, server: &str) -> Option<DatabaseAccount> {
        let accounts = self.cache_accounts.lock().clone();
        let known = accounts.into_iter().find(|it| it.is_for(server));
        known.or_else(|| tracker::loopback(server))
    }

    /// Is the binary log of its database followed?
    fn follows(&self) -> bool {
        self.keeps() && self.follows.load(Ordering::Acquire)
    }

    /// May the answer to one visitor's request for this page be another than the answer to another's, since the page looks
    /// their addresses up? The key is that of [`StoredPage`]. No, as far as is known, if no such page was made.
    pub async fn depends_on_address(&self, key: &[u8]) -> bool {
        let lookups = self.address_lookups.of(key);
        if lookups.is_empty() {
            return false;
        }
        let results = self.address_lookups.ask(lookups).await;
        results.is_none_or(|results| results.iter().any(|it| it.rows > 0))
    }

    /// Returns the report about a page.
    pub fn page(&self, name: &[u8]) -> Option<PageReport> {
        let sqlite = self.look_at_sqlite();
        let mut book = self.book.lock();
        book.sqlite_looked_at(&sqlite, Instant::now());
        book.report(name, Instant::now())
    }

    /// Takes the messages for the error log: each is given once.
    pub fn take_notices(&self) -> Vec<String> {
        self.book.lock().take_notices()
    }

    pub fn counts(&self) -> Counts {
        self.book.lock().snapshot()
    }

    /// The statements of pages that writes concern most often.
    pub fn noisiest(&self, most: usize) -> Vec<NoisyStatement> {
        self.book.lock().noisiest(most)
    }

    /// A page that counts as fresh, for an audit: the one that was made longest ago of a few.
    pub fn page_to_audit(&self) -> Option<String> {
        self.book.lock().page_to_audit(Instant::now())
    }

    /// Returns the `sql_mode` that a database server gives to each session.
    fn modes(&self, server: &str) -> String {
        self.book.lock().modes(server)
    }

    /// Changes the book, and publishes its numbers of writes.
    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let mut book = self.book.lock();
        let changed = change(&mut book);
        *self.writes.lock() = book.writes();
        self.marks.set(book.moves(), book.count_under_way() as u64);
        changed
    }

    /// This pool, and those whose pages one of its processes can alter: of the same account, or all of them.
    fn reached(self: &Arc<Self>, is_all: bool) -> Vec<Arc<LearnedPool>> {
        let neighbours = self.neighbours.lock();
        let neighbours = neighbours.iter().filter_map(Weak::upgrade);
        let neighbours = neighbours.filter(|it| is_all || it.account == self.account);
        std::iter::once(self.clone()).chain(neighbours).collect()
    }
}

impl Drop for LearnedPool {
    fn drop(&mut self) {
        // Nothing is heard any more.
        self.marks.note_heard(0);
        self.wanted.notify_one();
    }
}

/// A fetch of a page.
pub struct Fetch {
    pool: Arc<LearnedPool>,
    mark: Arc<PageMark>,
    number: u64,
    visit: Option<Visit>,
    is_over: bool,
}

/// A page that was stored.
pub struct StoredPage {
    pub name: Arc<[u8]>,
    /// The name without the fields of `Vary`.
    pub key: Arc<[u8]>,
    /// For people, and for an audit: the URL.
    pub address: String,
    /// `None`: it is the same as before.
    pub digest: Option<u64>,
    /// The addresses that PHP may have seen as the visitor's.
    pub clients: Vec<IpAddr>,
    /// It is a copy for one visitor.
    pub is_own: bool,
    /// A cookie was sent that may be a visitor's session.
    pub has_session: bool,
    /// It is such a copy, and PHP made it before as it is, but for numbers and times.
    pub is_repeated: bool,
    /// How long it may count as known.
    pub most: Duration,
    /// The end of the lifetime that the application has set: it is not kept for longer.
    pub said_until: Option<Instant>,
    /// The shape of its address, if such pages have to be the same often enough before they are kept (`cache_learn auto`).
    pub shape: Option<String>,
    /// Lets it be shown beyond its ordinary lifetime; `None`: it is only watched.
    pub keep: Option<KeepPage>,
    /// Called when it is known that the page may be for one network.
    pub withdraw: WithdrawPage,
}

/// Removes a page that was made with the database of addresses at this path, or by this statement, and keeps those that
/// come from being shared.
pub type WithdrawPage = Box<dyn FnOnce(&str, Withdrawal) + Send>;

/// For how long pages are not shared that depend on the visitor's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// They are not known to be alike before they are made.
    ForLong,
    /// [`LearnedPool::depends_on_address`] is asked before one is made.
    UntilAsked,
}

/// Keeps a page for this time from now on, or as long as its application has said; returns for how long. `None`: the page
/// is no longer there. It may ask for the bytes that are written beside the page, where that can be.
pub type KeepPage = Box<dyn FnOnce(Duration, MadeOfPage<'_>) -> Option<Duration> + Send>;

/// A function that returns the inputs of a page, in bytes.
pub type MadeOfPage<'a> = &'a dyn Fn() -> Option<Vec<u8>>;

impl Fetch {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Decides whether the page may be shown.
    pub fn mark(&self) -> &Arc<PageMark> {
        &self.mark
    }

    /// The visit of the visitor whose request it is, if the visitor has copies.
    pub fn visit(&self) -> Option<&Visit> {
        self.visit.as_ref()
    }

    /// The page is stored.
    pub fn stored(mut self, page: StoredPage) {
        self.is_over = true;
        let begun = self.mark.begun();
        let end = PageEnd {
            page,
            left_of_day: steady::left_of_today(begun.at / 1_000_000_000),
            begun,
            mark: self.mark.clone(),
            visit: self.visit.take(),
        };
        // A thread that does not keep up learns less.
        let end = End::Stored(self.number, Box::new(end));
        if self.pool.ends.try_send(end).is_err() {
            self.mark.forget();
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.pool.marks.end_fetch();
        if !self.is_over {
            let end = End::Dropped(self.number, self.visit.take());
            let _ = self.pool.ends.try_send(end);
        }
    }
}
