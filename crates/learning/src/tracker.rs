//! Follows the writes to an object cache: a connection of its own, on which the server names each key that it changes, evicts
//! or lets expire (`CLIENT TRACKING ON BCAST`, Redis 6 or later), and answers how long keys live.
//!
//! ```text
//! tracker ─► HELLO 3, CLIENT TRACKING ON BCAST, INFO      everything counts as written before
//!         ◄─ invalidate [keys]  ─► Book::cache_written    no keys: all of them (FLUSHALL)
//! each second: PING ─► PONG, and a new connection asks the same server  ─► pages are shown for 2 seconds more
//! ```
//!
//! The server puts an invalidation into the connection before its writer gets an answer. So the answer to PING shows that all
//! writes are known that were answered before it was sent. The new connection shows that the address still leads to the
//! same server, and finds `SWAPDB`, which names no keys. Without both, pages of the cache are shown no longer.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cache_wire::{RedisValue, command, parse};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use crate::LearnedPool;
use crate::caches::{CacheState, Lifetime};
use crate::client::{self, DatabaseAccount, Stream};
use crate::memcached_tracker;
use crate::poll;
use crate::record::{CacheWrite, ServerName};

/// The account for an address that needs none: any program on this machine could reach it.
pub fn loopback(server: &str) -> Option<DatabaseAccount> {
    let address: SocketAddr = server.parse().ok()?;
    address.ip().is_loopback().then(|| DatabaseAccount {
        server: server.to_owned(),
        user: String::new(),
        password: String::new(),
    })
}

/// Bytes of one value of the server. It names all keys at once that changed within one turn of its loop.
const MAX_VALUE_BYTES: usize = 4 << 20;

/// Lifetimes that are asked for at a time.
const MAX_ASKED: usize = 1000;

/// How often the server is asked whether it is still there, and for lifetimes.
pub const ASK_EVERY: Duration = Duration::from_millis(500);

/// A server that takes longer to answer is not followed.
pub const WITHIN: Duration = Duration::from_secs(2);

/// Before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);

/// Versions in the answer to INFO of servers whose invalidations are known to be those of Redis.
const KNOWN_VERSIONS: [&str; 3] = ["redis_version", "valkey_version", "gcc_version"];

/// From these on, fields of a hash may expire by themselves (HEXPIRE), and INFO counts the hashes that have such fields.
const FIELD_LIFETIMES: [(&str, (u32, u32), &str); 2] = [
    ("valkey_version", (9, 0), "keys_with_volatile_items=0"),
    ("redis_version", (7, 4), "subexpiry=0"),
];

/// The facts by which a server is known again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerFacts {
    run: String,
    role: String,
    /// How often databases were exchanged.
    swaps: String,
}

/// The caches that are followed.
#[derive(Clone, Default)]
pub struct Trackers(Arc<Mutex<HashSet<ServerName>>>);

impl Trackers {
    /// Follows each cache that pages were made of, where pages are kept, and none twice at a time.
    pub fn begin(&self, pool: &Arc<LearnedPool>) {
        if !pool.keeps() {
            return;
        }
        let servers = pool.book.lock().caches.servers();
        if servers.is_empty() {
            return;
        }
        for server in servers {
            let Some(account) = pool.cache_account_of(&server) else {
                let why = "no cache_learn_object_cache names it";
                note_state(pool, &server, CacheState::NotFollowed(why.into()));
                continue;
            };
            if !self.0.lock().insert(server.clone()) {
                continue;
            }
            let (pool, trackers) = (Arc::downgrade(pool), self.clone());
            tokio::spawn(async move {
                let ended = follow(&pool, &server, &account).await;
                if let Some(pool) = pool.upgrade() {
                    let why = ended.err().map_or_else(
                        || "it is followed while pages are asked for".to_owned(),
                        |error| error.to_string(),
                    );
                    note_state(&pool, &server, CacheState::NotFollowed(why.into()));
                }
                tokio::time::sleep(PAUSE).await;
                trackers.0.lock().remove(&server);
            });
        }
    }
}

pub fn note_state(pool: &Arc<LearnedPool>, server: &ServerName, state: CacheState) {
    pool.change(|book| book.note_cache(server, state));
}

/// Follows a cache until it cannot, or until no page may be shown by what is known.
async fn follow(
    pool: &Weak<LearnedPool>,
    server: &ServerName,
    account: &DatabaseAccount,
) -> io::Result<()> {
    if timeout(WITHIN, memcached_tracker::is_memcached(account)).await?? {
        return memcached_tracker::follow(pool, server, account).await;
    }
    let mut client = timeout(WITHIN, Client::open(account)).await??;
    client
        .expect_ok(&[b"CLIENT", b"TRACKING", b"ON", b"BCAST"])
        .await?;
    let facts = client.facts().await?;
    let mut asks = interval(ASK_EVERY);
    asks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    match pool.upgrade() {
        Some(pool) => note_state(&pool, server, CacheState::Followed),
        None => return Ok(()),
    }
    loop {
        let Some(pool) = pool.upgrade() else {
            return Ok(());
        };
        if !pool.marks.is_awake() || !pool.keeps() {
            return Ok(());
        }
        ask_once(&pool, server, &mut client, account, &facts).await?;
        let mut see = |keys: CacheWrite| pool.change(|book| book.cache_changed(server, &keys));
        client.until(&mut asks, &mut see).await?;
    }
}

/// Asks whether the server is the same, and for the lifetimes of keys.
async fn ask_once(
    pool: &Arc<LearnedPool>,
    server: &ServerName,
    client: &mut Client,
    account: &DatabaseAccount,
    facts: &ServerFacts,
) -> io::Result<()> {
    let now = clock::now();
    let again = async {
        let mut again = Client::open(account).await?;
        again.facts().await
    };
    if timeout(WITHIN, again).await?? != *facts {
        return Err(io::Error::other(
            "another server answers, or databases were exchanged",
        ));
    }
    let keys = pool.book.lock().keys_to_ask(server, MAX_ASKED);
    let began = Instant::now();
    let mut question = command(&[b"PING"]);
    for key in &keys {
        question.extend(command(&[b"SELECT", key.database.to_string().as_bytes()]));
        question.extend(command(&[b"PTTL", &key.key]));
    }
    let mut see = |keys: CacheWrite| pool.change(|book| book.cache_changed(server, &keys));
    let answers = client.ask(&question, 1 + 2 * keys.len(), &mut see);
    let answers = timeout(WITHIN, answers).await??;
    let mut lifetimes = Vec::new();
    let pairs = answers.get(1..).unwrap_or_default().chunks(2);
    for (key, pair) in keys.into_iter().zip(pairs) {
        let (RedisValue::Text(_), RedisValue::Integer(left)) = (&pair[0], &pair[1]) else {
            return Err(nonsense());
        };
        lifetimes.push((key, lifetime(*left, began)));
    }
    pool.change(|book| {
        book.set_lifetimes(server, &lifetimes);
        book.cache_asked(began);
    });
    pool.marks.note_tracked(now + poll::holds());
    Ok(())
}

/// By the answer to PTTL: -1 is a key without an end, -2 one that is not there.
fn lifetime(milliseconds: i64, asked: Instant) -> Lifetime {
    match u64::try_from(milliseconds) {
        Ok(left) => asked
            .checked_add(Duration::from_millis(left))
            .map_or(Lifetime::Unlimited, Lifetime::Until),
        Err(_) => Lifetime::Unlimited,
    }
}

struct Client {
    stream: Box<dyn Stream>,
    bytes: Vec<u8>,
}

impl Client {
    async fn open(account: &DatabaseAccount) -> io::Result<Client> {
        let mut client = Client {
            stream: client::connect(&account.server).await?,
            bytes: Vec::new(),
        };
        let user = match account.user.as_str() {
            "" => "default",
            user => user,
        };
        let hello: &[&[u8]] = match account.password.is_empty() && account.user.is_empty() {
            true => &[b"HELLO", b"3"],
            false => &[
                b"HELLO",
                b"3",
                b"AUTH",
                user.as_bytes(),
                account.password.as_bytes(),
            ],
        };
        match client.ask_one(hello).await? {
            RedisValue::List(_) => Ok(client),
            answer => Err(refused(answer)),
        }
    }

    async fn expect_ok(&mut self, arguments: &[&[u8]]) -> io::Result<()> {
        match timeout(WITHIN, self.ask_one(arguments)).await?? {
            RedisValue::Text(text) if text == b"OK" => Ok(()),
            answer => Err(refused(answer)),
        }
    }

    async fn facts(&mut self) -> io::Result<ServerFacts> {
        let mut all = String::new();
        for section in ["server", "replication", "commandstats", "keyspace"] {
            let question: [&[u8]; 2] = [b"INFO", section.as_bytes()];
            match timeout(WITHIN, self.ask_one(&question)).await?? {
                RedisValue::Text(text) => all.push_str(&String::from_utf8_lossy(&text)),
                answer => return Err(refused(answer)),
            }
        }
        facts_of(&all)
    }

    async fn ask_one(&mut self, arguments: &[&[u8]]) -> io::Result<RedisValue> {
        // What was written before everything was counted is in no page that is known.
        let mut answers = self.ask(&command(arguments), 1, &mut |_| ()).await?;
        answers.pop().ok_or_else(nonsense)
    }

    /// Asks questions, and returns their answers. What the server says meanwhile goes to `see`, in its order.
    async fn ask(
        &mut self,
        questions: &[u8],
        count: usize,
        see: &mut (impl FnMut(CacheWrite) + Send),
    ) -> io::Result<Vec<RedisValue>> {
        self.stream.write_all(questions).await?;
        let mut answers = Vec::with_capacity(count);
        while answers.len() < count {
            match self.next().await? {
                RedisValue::Push(push) => see(changed(push)?),
                answer => answers.push(answer),
            }
        }
        Ok(answers)
    }

    /// Hears the server until the next tick.
    async fn until(
        &mut self,
        asks: &mut Interval,
        see: &mut (impl FnMut(CacheWrite) + Send),
    ) -> io::Result<()> {
        loop {
            tokio::select! {
                biased;
                _ = asks.tick() => return Ok(()),
                // What has come so far is kept if the other is first.
                value = self.next() => match value? {
                    RedisValue::Push(push) => see(changed(push)?),
                    _ => return Err(nonsense()),
                },
            }
        }
    }

    /// The next value. Cancel safe.
    async fn next(&mut self) -> io::Result<RedisValue> {
        loop {
            if let Some((value, count)) = parse(&self.bytes).map_err(|_| nonsense())? {
                self.bytes.drain(..count);
                return Ok(value);
            }
            if self.bytes.len() > MAX_VALUE_BYTES {
                return Err(io::Error::other("it says more at once than is read"));
            }
            if self.stream.read_buf(&mut self.bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The keys of an invalidation; without a list all of them. Anything else may mean anything.
fn changed(push: Vec<RedisValue>) -> io::Result<CacheWrite> {
    let [RedisValue::Text(kind), keys] = &push[..] else {
        return Err(nonsense());
    };
    if kind != b"invalidate" {
        return Err(nonsense());
    }
    let RedisValue::List(keys) = keys else {
        return Ok(CacheWrite::Everything);
    };
    let keys = keys.iter().map(|key| match key {
        RedisValue::Text(key) => Some(key.as_slice().into()),
        _ => None,
    });
    let keys: Option<Arc<[_]>> = keys.collect();
    Ok(keys.map_or(CacheWrite::Everything, CacheWrite::Keys))
}

/// What INFO says of a server; `Err`: why its writes cannot be followed.
fn facts_of(info: &str) -> io::Result<ServerFacts> {
    let lines = || info.lines().filter_map(|line| line.split_once(':'));
    let value = |name: &str| lines().find(|(it, _)| *it == name).map(|(_, value)| value);
    let other =
        lines().find(|(name, _)| name.ends_with("_version") && !KNOWN_VERSIONS.contains(name));
    if let Some((name, version)) = other {
        return Err(io::Error::other(format!(
            "{name} {version} is not known to name all keys that change"
        )));
    }
    if value("redis_mode").or_else(|| value("server_mode")) != Some("standalone") {
        return Err(io::Error::other("it is part of a cluster"));
    }
    let number = |text: &str| {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        Some((parts.next()??, parts.next()??))
    };
    // Valkey names a version of Redis as well, which is no later.
    let (name, from, none) = match value("valkey_version") {
        Some(_) => FIELD_LIFETIMES[0],
        None => FIELD_LIFETIMES[1],
    };
    let version = value(name)
        .and_then(number)
        .ok_or_else(|| io::Error::other("its version is not known"))?;
    let run = value("run_id");
    let run = run.ok_or_else(|| io::Error::other("it does not say which server it is"))?;
    let is_database = |name: &str| {
        name.strip_prefix("db")
            .is_some_and(|it| it.parse::<u32>().is_ok())
    };
    let mut databases = lines().filter(|(name, _)| is_database(name));
    if version >= from && !databases.all(|(_, value)| value.split(',').any(|it| it == none)) {
        let why = "fields of its hashes may expire by themselves";
        return Err(io::Error::other(why));
    }
    Ok(ServerFacts {
        run: run.to_owned(),
        role: value("role").unwrap_or_default().to_owned(),
        swaps: value("cmdstat_swapdb")
            .and_then(|value| value.split(',').next())
            .unwrap_or_default()
            .to_owned(),
    })
}

fn refused(answer: RedisValue) -> io::Error {
    match answer {
        RedisValue::Error(text) => io::Error::other(crate::php_report::shown(&text)),
        _ => nonsense(),
    }
}

fn nonsense() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the object cache's answer makes no sense",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\ngcc_version:12.2.0\r\n\
        run_id:abc\r\nrole:master\r\ncmdstat_swapdb:calls=2,usec=9\r\n";

    #[test]
    fn a_server_is_followed_whose_invalidations_are_known() {
        let facts = facts_of(INFO).unwrap();
        assert_eq!(
            (&*facts.run, &*facts.role, &*facts.swaps),
            ("abc", "master", "calls=2")
        );
        for (from, to) in [
            ("standalone", "cluster"),
            ("7.0.15", "x"),
            ("run_id", "other"),
            ("role:master", "dragonfly_version:1.2"),
            ("role:master", "valkey_version:9.0.0\r\ndb0:keys=1"),
        ] {
            let info = INFO.replace(from, to);
            assert!(facts_of(&info).is_err(), "{from} {to}");
        }
        assert!(facts_of(&INFO.replace("role:master", "valkey_version:8.1.0")).is_ok());
    }

    #[test]
    fn a_server_with_fields_that_expire_is_not_followed() {
        for (version, databases, is_followed) in [
            ("7.0.15", "db0:keys=1,expires=0,avg_ttl=0", true),
            ("7.4.1", "db0:keys=1,expires=0,avg_ttl=0", false),
            ("7.4.1", "db0:keys=1,expires=0,avg_ttl=0,subexpiry=0", true),
            (
                "8.2.0",
                "db0:keys=1,subexpiry=0\r\ndb3:keys=1,subexpiry=10",
                false,
            ),
            ("8.2.0", "", true),
        ] {
            let info = format!("{}{databases}\r\n", INFO.replace("7.0.15", version));
            assert_eq!(
                facts_of(&info).is_ok(),
                is_followed,
                "{version} {databases}"
            );
        }
    }

    #[test]
    fn invalidations_name_keys_or_all() {
        let text = |text: &str| RedisValue::Text(text.as_bytes().to_vec());
        let some = |push: Vec<RedisValue>| changed(push).map_err(|error| error.kind());
        let keys = RedisValue::List(vec![text("a"), text("b")]);
        let expected: Arc<[Box<[u8]>]> = Arc::new([b"a"[..].into(), b"b"[..].into()]);
        assert_eq!(
            some(vec![text("invalidate"), keys]),
            Ok(CacheWrite::Keys(expected))
        );
        let all = vec![text("invalidate"), RedisValue::Null];
        assert_eq!(some(all), Ok(CacheWrite::Everything));
        let odd = RedisValue::List(vec![RedisValue::Integer(1)]);
        assert_eq!(
            some(vec![text("invalidate"), odd]),
            Ok(CacheWrite::Everything)
        );
        assert!(changed(vec![text("message"), text("a")]).is_err());
        assert!(changed(Vec::new()).is_err());
    }

    #[test]
    fn loopback_alone_needs_no_account() {
        for (address, is_known) in [
            ("127.0.0.1:6379", true),
            ("[::1]:6379", true),
            ("192.0.2.1:6379", false),
            ("unix:/run/redis/redis.sock", false),
            ("localhost:6379", false),
        ] {
            assert_eq!(loopback(address).is_some(), is_known, "{address}");
        }
    }
}
