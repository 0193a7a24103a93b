//! The five calls at a Redis or Valkey: each is a script, which the engine runs as one step. `cache_nodes::Engine`
//! says what each means.
//!
//! ```text
//! NAME:nodes   hash     log: identifier, tip: number of the newest entry, node:INSTANCE: beat:position
//! NAME:log     stream   entry N-0: node INSTANCE purge BYTES
//! ```
//!
//! What the nodes agree on is one hash, so that no part of it can be lost alone.

use std::sync::Arc;
use std::time::Duration;

use cache_nodes::{
    ConfirmAnswer, ConfirmCall, JoinAnswer, JoinCall, MissingNode, PublishAnswer, RenewAnswer,
    RenewCall,
};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Script, Value};

use crate::connection::{BusError, CALL_TIMEOUT, Connection, connect};
use crate::sentinel::Sentinels;
use crate::settings::{BusSettings, EngineAddress};

/// The life of a log.
pub type Epoch = Arc<str>;

/// Entries of the log that the engine keeps at least. A node that was away for longer starts empty.
const KEPT_ENTRIES: u32 = 100_000;
/// Entries of one reading.
const READ_AT_ONCE: u32 = 256;
/// The engine holds a reader for so long that has nothing to read: less than it may take to answer.
const BELL: Duration = Duration::from_millis(500);

/// An entry of the log.
#[derive(Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub number: u64,
    /// Who has published it.
    pub instance: u64,
    pub purge: Vec<u8>,
}

/// What reading after a position brings.
pub enum ReadEntries {
    OtherEpoch,
    /// What there is, and the number of the newest entry.
    Entries(Vec<LogEntry>, u64),
}

/// What an engine says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineFacts {
    /// `redis_version`, which Valkey has as well.
    pub version: String,
    /// `maxmemory_policy`: what it throws away when its memory is full.
    pub eviction: String,
    /// `maxmemory`; 0: no bound.
    pub memory_max: u64,
}

/// A connection to an engine.
pub struct RedisEngine {
    calls: Connection,
    /// Readers wait on a connection of their own.
    bell: Connection,
    /// Asked whether this engine is the one in force.
    sentinels: Option<(Sentinels, crate::settings::HostPort)>,
    pub facts: EngineFacts,
    instance: u64,
    keys: [String; 2],
    scripts: Scripts,
}

struct Scripts {
    join: Script,
    renew: Script,
    publish: Script,
    read: Script,
    confirm: Script,
}

impl Scripts {
    fn new() -> Scripts {
        let script = |text: &str| Script::new(&[include_str!("scripts/epoch.lua"), text].concat());
        Scripts {
            join: script(include_str!("scripts/join.lua")),
            renew: script(include_str!("scripts/renew.lua")),
            publish: script(include_str!("scripts/publish.lua")),
            read: script(include_str!("scripts/read.lua")),
            confirm: script(include_str!("scripts/confirm.lua")),
        }
    }
}

impl RedisEngine {
    /// Connects to the engine in force.
    pub async fn connect(settings: &BusSettings, instance: u64) -> Result<RedisEngine, BusError> {
        let (address, sentinels) = match &settings.engine {
            EngineAddress::Sentinel { master, sentinels } => {
                let sentinels = Sentinels::connect(settings, master, sentinels).await;
                let named = sentinels.named().await?;
                let address = EngineAddress::Tcp(named.clone());
                (address, Some((sentinels, named)))
            }
            address => (address.clone(), None),
        };
        let mut calls = connect(settings, &address).await?;
        let bell = connect(settings, &address).await?;
        let facts = facts(&mut calls.calls).await?;
        Ok(RedisEngine {
            calls,
            bell,
            sentinels,
            facts,
            instance,
            keys: [
                format!("{}:nodes", settings.name),
                format!("{}:log", settings.name),
            ],
            scripts: Scripts::new(),
        })
    }

    /// Does a majority of the Sentinels say that this engine is the one in force? Without Sentinels there is no
    /// other.
    pub async fn is_in_force(&self) -> bool {
        match &self.sentinels {
            None => true,
            Some((sentinels, address)) => {
                sentinels.named().await.is_ok_and(|named| named == *address)
            }
        }
    }

    /// `join`. A new log gets the identifier `log`.
    pub async fn join(
        &self,
        call: &JoinCall<Epoch>,
        log: u64,
    ) -> Result<JoinAnswer<Epoch>, BusError> {
        let (epoch, position) = match &call.applied {
            Some((epoch, position)) => (&**epoch, *position),
            None => ("", 0),
        };
        let (epoch, first, tip): (String, u64, u64) = self
            .scripts
            .join
            .key(&self.keys)
            .arg(self.instance)
            .arg(call.beat)
            .arg(epoch)
            .arg(position)
            .arg(log)
            .invoke_async(&mut self.calls())
            .await?;
        Ok(JoinAnswer {
            epoch: epoch.into(),
            first,
            tip,
        })
    }

    /// `renew`; with the number of the newest entry and how many nodes there are.
    pub async fn renew(
        &self,
        call: &RenewCall<Epoch>,
    ) -> Result<(RenewAnswer, u64, u64), BusError> {
        let (is_member, tip, nodes): (u8, u64, u64) = self
            .scripts
            .renew
            .key(&self.keys)
            .arg(self.instance)
            .arg(call.beat)
            .arg(&*call.epoch)
            .arg(call.position)
            .invoke_async(&mut self.calls())
            .await?;
        let answer = match is_member {
            0 => RenewAnswer::NotMember,
            _ => RenewAnswer::Renewed,
        };
        Ok((answer, tip, nodes))
    }

    /// `publish`: the number of the last of several purges, which follow each other.
    pub async fn publish(
        &self,
        epoch: &Epoch,
        purges: &[Vec<u8>],
    ) -> Result<PublishAnswer, BusError> {
        let mut call = self.scripts.publish.key(&self.keys);
        call.arg(&**epoch).arg(KEPT_ENTRIES).arg(self.instance);
        for purge in purges {
            call.arg(&purge[..]);
        }
        let number: u64 = call.invoke_async(&mut self.calls()).await?;
        Ok(match number {
            0 => PublishAnswer::OtherEpoch,
            number => PublishAnswer::Published(number),
        })
    }

    /// Waits until there may be an entry after `position`, for a bounded time.
    pub async fn wait_for_entry(&self, position: u64) -> Result<(), BusError> {
        let _: Value = redis::cmd("XREAD")
            .arg("COUNT")
            .arg(1)
            .arg("BLOCK")
            .arg(u64::try_from(BELL.as_millis()).unwrap_or_default())
            .arg("STREAMS")
            .arg(&self.keys[1])
            .arg(format!("{position}-0"))
            .query_async(&mut self.bell.calls.clone())
            .await?;
        Ok(())
    }

    /// Reads what follows `position`.
    pub async fn read(&self, epoch: &Epoch, position: u64) -> Result<ReadEntries, BusError> {
        let answer: Vec<Value> = self
            .scripts
            .read
            .key(&self.keys)
            .arg(&**epoch)
            .arg(position)
            .arg(READ_AT_ONCE)
            .invoke_async(&mut self.calls())
            .await?;
        let mut answer = answer.into_iter();
        let tip = answer.next().map_or(Ok(-1), i64::from_redis_value);
        let tip = tip.map_err(|error| BusError(error.to_string()))?;
        let Ok(tip) = u64::try_from(tip) else {
            return Ok(ReadEntries::OtherEpoch);
        };
        let entry = |value| {
            let (number, instance, purge) = <(u64, String, Vec<u8>)>::from_redis_value(value)
                .map_err(|error| BusError(error.to_string()))?;
            Ok(LogEntry {
                number,
                // What this version has not written is another's.
                instance: instance.parse().unwrap_or_default(),
                purge,
            })
        };
        let entries: Result<Vec<LogEntry>, BusError> = answer.map(entry).collect();
        Ok(ReadEntries::Entries(entries?, tip))
    }

    /// `confirm`
    pub async fn confirm(&self, call: &ConfirmCall<Epoch>) -> Result<ConfirmAnswer, BusError> {
        let mut script = self.scripts.confirm.key(&self.keys);
        script.arg(self.instance).arg(&*call.epoch).arg(call.entry);
        for (instance, beat) in &call.expired {
            script.arg(instance).arg(beat);
        }
        let answer: Vec<u64> = script.invoke_async(&mut self.calls()).await?;
        let (kind, missing) = answer.split_first().unwrap_or((&1, &[]));
        Ok(match kind {
            0 => ConfirmAnswer::Yes,
            2 => ConfirmAnswer::OtherEpoch,
            3 => {
                let (missing, _) = missing.as_chunks::<2>();
                let node = |&[instance, beat]: &[u64; 2]| MissingNode { instance, beat };
                ConfirmAnswer::Missing(missing.iter().map(node).collect())
            }
            _ => ConfirmAnswer::NotMember,
        })
    }

    /// The node uses nothing any more that is stored: purges need not wait for it.
    pub async fn leave(&self) -> Result<(), BusError> {
        let node = format!("node:{}", self.instance);
        let mut leave = redis::cmd("HDEL");
        leave.arg(&self.keys[0]).arg(node);
        Ok(leave.query_async(&mut self.calls()).await?)
    }

    fn calls(&self) -> MultiplexedConnection {
        self.calls.calls.clone()
    }
}

/// Asks the engine what it is.
async fn facts(calls: &mut MultiplexedConnection) -> Result<EngineFacts, BusError> {
    let info: String = redis::cmd("INFO").query_async(calls).await?;
    let fact = |name: &str| {
        let mut lines = info.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_default().trim().to_owned()
    };
    if fact("cluster_enabled") == "1" {
        return Err(BusError(
            "the engine is a Redis Cluster, which is refused: the log is one stream, which a cluster keeps on one of \
             its servers anyway, and its failover is asked for by no majority of Sentinels; use one server, or Sentinel"
                .to_owned(),
        ));
    }
    Ok(EngineFacts {
        version: fact("redis_version"),
        eviction: fact("maxmemory_policy"),
        memory_max: fact("maxmemory").parse().unwrap_or_default(),
    })
}

const _: () = assert!(BELL.as_millis() < CALL_TIMEOUT.as_millis());
