//! Pages that nodes share through the engine (`cache_nodes_pages`): one node fetches, the others take the result. The
//! caller knows a page's meaning, and whether purges allow it; this module handles its sealed bytes.
//!
//! ```text
//! NAME:page:ID     string   a sealed page, for as long as it is fresh
//! NAME:fetch:ID    string   the token of the one who fetches, until its deadline; or "asked"
//! ```
//!
//! The engine's clock gives the age of a page: the nodes' clocks are not synchronized. No page is waited for without a
//! bound, and without an engine each node fetches for itself.

use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Script, Value};
use tokio::time::timeout;

use crate::engine::Epoch;
use crate::random::random;
use crate::seal::{MARK_BYTES, NodeSeal, SealedPlace};

/// The longest time of one call: a request that has waited this long fetches for itself.
const CALL_TIMEOUT: Duration = Duration::from_millis(250);
/// How long it is remembered that a page was asked for.
const ASK_REMEMBERED: Duration = Duration::from_secs(60);
/// Pages that are larger, sealed, are not shared.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// The pages of all nodes.
pub struct SharedPages {
    seal: NodeSeal,
    name: String,
    /// While there is a connection to the engine.
    calls: Mutex<Option<MultiplexedConnection>>,
    take: Script,
    give: Script,
}

/// The state of a shared page.
#[derive(Debug)]
pub enum TakenPage {
    /// All of it.
    Page(OpenedPage),
    /// Nothing: fetch it. Others wait, if that was asked for, until [`SharedPages::give`] or the deadline.
    Fetch(FetchTurn),
    /// Another node fetches it, and has this time for it.
    Wait(Duration),
    /// It is not known.
    Unknown,
}

/// A page that was opened.
#[derive(Debug)]
pub struct OpenedPage {
    /// The position at which its fetch began.
    pub position: u64,
    /// How long ago it was received.
    pub age: Duration,
    /// The bytes as they were given.
    pub bytes: Vec<u8>,
    /// The first bytes of the sealed page, which no two pages share.
    pub mark: Vec<u8>,
}

/// A node's turn to fetch a page.
#[derive(Clone, Debug)]
pub struct FetchTurn {
    token: String,
    /// The engine's clock, in milliseconds.
    pub engine_time: u64,
    /// Whether it was asked for a moment ago.
    pub was_asked: bool,
}

/// A page on its way to the others.
pub struct GivenPage<'a> {
    /// The epoch of that log.
    pub epoch: &'a Epoch,
    /// The position of the log at which its fetch began.
    pub position: u64,
    /// When it was received, by the engine's clock, in milliseconds.
    pub received: u64,
    /// How long others may use it from now on.
    pub lifetime: Duration,
    /// The bytes for the other nodes.
    pub bytes: &'a [u8],
}

impl SharedPages {
    pub(crate) fn new(seal: NodeSeal, name: String) -> SharedPages {
        SharedPages {
            seal,
            name,
            calls: Mutex::default(),
            take: Script::new(include_str!("scripts/take_page.lua")),
            give: Script::new(include_str!("scripts/give_page.lua")),
        }
    }

    pub(crate) fn connected(&self, calls: Option<MultiplexedConnection>) {
        *self.calls.lock() = calls;
    }

    /// The name of a page that all nodes call so.
    #[must_use]
    pub fn name(&self, page: &[&[u8]]) -> String {
        self.seal.name(page)
    }

    /// Asks for a page once. `lock`: how long others wait for this node's fetch; none do if it is zero. `refused`: the
    /// mark of a page that is of no use.
    pub async fn take(
        &self,
        name: &str,
        epoch: &Epoch,
        (lock, refused): (Duration, &[u8]),
    ) -> TakenPage {
        let Some(token) = random().ok() else {
            return TakenPage::Unknown;
        };
        let token = token.to_string();
        let mut call = self.take.key(&self.keys(name));
        call.arg(&token)
            .arg(clock::millis(lock))
            .arg(clock::millis(ASK_REMEMBERED))
            .arg(refused);
        let answer: Option<(u8, i64, Vec<u8>)> = self.call(&call).await;
        let Some((kind, number, page)) = answer else {
            return TakenPage::Unknown;
        };
        let number = u64::try_from(number).unwrap_or_default();
        match kind {
            1 => match self.opened(name, epoch, number, &page) {
                Some(page) => TakenPage::Page(page),
                // A page of another epoch, or not ours: it is fetched, and written over.
                None => TakenPage::Fetch(FetchTurn {
                    token,
                    engine_time: number,
                    was_asked: true,
                }),
            },
            2 => TakenPage::Wait(Duration::from_millis(number)),
            _ => TakenPage::Fetch(FetchTurn {
                token,
                engine_time: number,
                was_asked: kind == 4,
            }),
        }
    }

    fn opened(&self, name: &str, epoch: &Epoch, now: u64, page: &[u8]) -> Option<OpenedPage> {
        let (position, mut bytes) = self.seal.open(name, epoch, page)?;
        let (rest, received) = bytes.split_last_chunk::<8>()?;
        let (len, received) = (rest.len(), u64::from_be_bytes(*received));
        bytes.truncate(len);
        Some(OpenedPage {
            position,
            age: Duration::from_millis(now.saturating_sub(received)),
            bytes,
            mark: page.get(..MARK_BYTES)?.to_vec(),
        })
    }

    /// Gives a page to the others, and the turn back.
    pub async fn give(&self, name: &str, turn: &FetchTurn, page: &GivenPage<'_>) {
        let mut bytes = page.bytes.to_vec();
        bytes.extend_from_slice(&page.received.to_be_bytes());
        let place = SealedPlace {
            name,
            epoch: page.epoch,
            position: page.position,
        };
        let sealed = self.seal.seal(place, bytes);
        match sealed.filter(|sealed| sealed.len() <= MAX_PAGE_BYTES && !page.lifetime.is_zero()) {
            Some(sealed) => self.end(name, turn, &sealed, page.lifetime).await,
            None => self.give_up(name, turn).await,
        }
    }

    /// Gives the turn back: there is no page for others.
    pub async fn give_up(&self, name: &str, turn: &FetchTurn) {
        self.end(name, turn, b"", Duration::ZERO).await;
    }

    async fn end(&self, name: &str, turn: &FetchTurn, sealed: &[u8], lifetime: Duration) {
        let mut call = self.give.key(&self.keys(name));
        call.arg(&turn.token)
            .arg(sealed)
            .arg(clock::millis(lifetime))
            .arg(clock::millis(ASK_REMEMBERED));
        // Otherwise the deadline ends it.
        let _: Option<u8> = self.call(&call).await;
    }

    fn keys(&self, name: &str) -> [String; 2] {
        ["page", "fetch"].map(|kind| format!("{}:{kind}:{name}", self.name))
    }

    async fn call<T: FromRedisValue>(&self, call: &redis::ScriptInvocation<'_>) -> Option<T> {
        let mut calls = self.calls.lock().clone()?;
        let answer = call.invoke_async::<Value>(&mut calls);
        let answer = timeout(CALL_TIMEOUT, answer).await.ok()?.ok()?;
        T::from_redis_value(answer).ok()
    }
}
