//! The five calls at a Redis or Valkey: each is a script, which the engine runs as one step. `Engine` in
//! the tests of `cache-nodes` defines the meaning of each.
//!
//! ```text
//! NAME:nodes   hash     log: identifier, tip: number of the newest entry, node:INSTANCE: beat:position:name,
//!                       expelled: instances that stay out
//! NAME:log     stream   entry N-0: node INSTANCE purge BYTES epoch MARK
//! ```
//!
//! All that the nodes agree on is in one hash, so that no part of it can be lost alone.

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
/// How long the engine holds a reader that has nothing to read: less than it may take to answer.
const BELL: Duration = Duration::from_millis(500);

#[derive(Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub number: u64,
    /// The node that has published it.
    pub instance: u64,
    pub purge: Vec<u8>,
}

/// The result of reading after a position.
pub enum ReadEntries {
    OtherEpoch,
    /// The entries there, and the number of the newest entry.
    Entries(Vec<LogEntry>, u64),
}

/// The engine's facts about itself, from `INFO`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineFacts {
    /// `redis_version`, which Valkey has as well.
    pub version: String,
    /// `maxmemory_policy`: the keys it throws away when its memory is full.
    pub eviction: String,
    /// `maxmemory`; 0: no bound.
    pub memory_max: u64,
    /// It follows another one, and takes no purges.
    pub is_replica: bool,
}

impl EngineFacts {
    /// Whether it may throw the log of purges away when its memory is full. Keys that live for a time only are not
    /// the log.
    #[must_use]
    pub fn may_lose_log(&self) -> bool {
        self.memory_max > 0 && self.eviction.starts_with("allkeys")
    }

    /// Whether it may refuse purges when its memory is full. Pages fill it.
    #[must_use]
    pub fn may_refuse_purges(&self) -> bool {
        self.memory_max > 0
            && !self.eviction.starts_with("allkeys")
            && !self.eviction.starts_with("volatile")
    }
}

/// A node as the engine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownNode {
    /// The number of this life of the node.
    pub instance: u64,
    /// Grows with each renewal of the lease.
    pub beat: u64,
    /// All entries of the log up to this one are applied there.
    pub position: u64,
    /// By which people know it.
    pub name: String,
    pub is_expelled: bool,
}

/// The nodes that the engine knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownNodes {
    /// The number of the newest entry of the log.
    pub tip: u64,
    pub nodes: Vec<KnownNode>,
}

impl KnownNodes {
    /// Reads the fields of the hash. Fields that another version has written beside them are left out.
    fn of(fields: &[(String, String)]) -> KnownNodes {
        let field = |name| fields.iter().find(|(field, _)| field == name);
        let expelled = field("expelled").map_or("", |(_, list)| list);
        let node = |(field, noted): &(String, String)| {
            let instance = field.strip_prefix("node:")?;
            let mut parts = noted.splitn(3, ':');
            Some(KnownNode {
                is_expelled: expelled.split(' ').any(|it| it == instance),
                instance: instance.parse().ok()?,
                beat: parts.next()?.parse().ok()?,
                position: parts.next()?.parse().ok()?,
                name: parts.next().unwrap_or(instance).to_owned(),
            })
        };
        let mut nodes: Vec<KnownNode> = fields.iter().filter_map(node).collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        KnownNodes {
            tip: field("tip").map_or(0, |(_, tip)| tip.parse().unwrap_or_default()),
            nodes,
        }
    }
}

/// A connection to an engine.
pub struct RedisEngine {
    calls: Connection,
    /// Readers wait on a connection of their own.
    bell: Connection,
    /// Pages go by one of their own: they are long.
    pages: Option<Connection>,
    /// Asked whether this engine is the one in force.
    sentinels: Option<(Sentinels, crate::settings::HostPort)>,
    pub facts: EngineFacts,
    instance: u64,
    /// By which people know the node.
    name: String,
    keys: [String; 2],
    scripts: Scripts,
}

struct Scripts {
    join: Script,
    renew: Script,
    publish: Script,
    read: Script,
    confirm: Script,
    expel: Script,
    epoch_now: Script,
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
            expel: script(include_str!("scripts/expel.lua")),
            epoch_now: script(include_str!("scripts/epoch_now.lua")),
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
        let pages = match &settings.page_key {
            Some(_) => Some(connect(settings, &address).await?),
            None => None,
        };
        let facts = facts(&mut calls.calls).await?;
        Ok(RedisEngine {
            calls,
            bell,
            pages,
            sentinels,
            facts,
            instance,
            name: own_name(),
            keys: [
                format!("{}:nodes", settings.name),
                format!("{}:log", settings.name),
            ],
            scripts: Scripts::new(),
        })
    }

    /// Whether a majority of the Sentinels reports this engine as the one in force. Without Sentinels there is no
    /// other.
    pub async fn is_in_force(&self) -> bool {
        match &self.sentinels {
            None => true,
            Some((sentinels, address)) => {
                sentinels.named().await.is_ok_and(|named| named == *address)
            }
        }
    }

    /// `join`; `None` if this node was expelled. A new log gets the identifier `log`.
    pub async fn join(
        &self,
        call: &JoinCall<Epoch>,
        log: u64,
    ) -> Result<Option<JoinAnswer<Epoch>>, BusError> {
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
            .arg(&self.name)
            .invoke_async(&mut self.calls())
            .await?;
        Ok((!epoch.is_empty()).then(|| JoinAnswer {
            epoch: epoch.into(),
            first,
            tip,
        }))
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
            .arg(&self.name)
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
        call.arg(mark(epoch));
        for purge in purges {
            call.arg(&purge[..]);
        }
        let number: u64 = call.invoke_async(&mut self.calls()).await?;
        Ok(match number {
            0 => PublishAnswer::OtherEpoch,
            number => PublishAnswer::Published(number),
        })
    }

    /// `publish` in any epoch, for entries that are no purges. Returns the entry's number; `None` if there is no
    /// log.
    pub async fn publish_in_any_epoch(&self, entry: &[u8]) -> Result<Option<u64>, BusError> {
        loop {
            let now = self.scripts.epoch_now.key(&self.keys);
            let epoch: String = now.invoke_async(&mut self.calls()).await?;
            if epoch.is_empty() {
                return Ok(None);
            }
            let published = self.publish(&epoch.into(), &[entry.to_vec()]).await?;
            if let PublishAnswer::Published(number) = published {
                return Ok(Some(number));
            }
        }
    }

    /// Waits for entries after `position`, for a bounded time. They are returned if each has the mark of `epoch`;
    /// otherwise the log has to be [read](RedisEngine::read), which compares its epoch.
    pub async fn wait_for_entries(
        &self,
        epoch: &Epoch,
        position: u64,
    ) -> Result<Vec<LogEntry>, BusError> {
        let mut question = redis::cmd("XREAD");
        question.arg("COUNT").arg(READ_AT_ONCE).arg("BLOCK");
        question.arg(clock::millis(BELL));
        question.arg("STREAMS").arg(&self.keys[1]);
        question.arg(format!("{position}-0"));
        let answer: Value = question.query_async(&mut self.bell.calls.clone()).await?;
        Ok(entries_of(answer, &mark(epoch)).unwrap_or_default())
    }

    /// Reads the entries behind `position`.
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
                // A field in another form was not written by this version.
                instance: instance.parse().unwrap_or_default(),
                purge,
            })
        };
        let entries: Result<Vec<LogEntry>, BusError> = answer.map(entry).collect();
        Ok(ReadEntries::Entries(entries?, tip))
    }

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
                let (missing, _) = missing.as_chunks::<3>();
                let node = |&[instance, beat, position]: &[u64; 3]| MissingNode {
                    instance,
                    beat,
                    position,
                };
                ConfirmAnswer::Missing(missing.iter().map(node).collect())
            }
            _ => ConfirmAnswer::NotMember,
        })
    }

    /// The nodes that the engine knows.
    pub async fn nodes(&self) -> Result<KnownNodes, BusError> {
        let mut get = redis::cmd("HGETALL");
        let fields: Vec<(String, String)> = get
            .arg(&self.keys[0])
            .query_async(&mut self.calls())
            .await?;
        Ok(KnownNodes::of(&fields))
    }

    /// By which name people know a node; its number where it has none.
    pub async fn name_of(&self, instance: u64) -> Result<String, BusError> {
        let nodes = self.nodes().await?.nodes;
        let node = nodes.into_iter().find(|node| node.instance == instance);
        Ok(node.map_or_else(|| instance.to_string(), |node| node.name))
    }

    /// From now on this node gets no lease in this life. Whether the engine knows it.
    pub async fn expel(&self, instance: u64) -> Result<bool, BusError> {
        let mut script = self.scripts.expel.key(&self.keys);
        let known: u8 = script.arg(instance).invoke_async(&mut self.calls()).await?;
        Ok(known == 1)
    }

    /// The node uses nothing any more that is stored: purges need not wait for it.
    pub async fn leave(&self) -> Result<(), BusError> {
        let node = format!("node:{}", self.instance);
        let mut leave = redis::cmd("HDEL");
        leave.arg(&self.keys[0]).arg(node);
        Ok(leave.query_async(&mut self.calls()).await?)
    }

    /// The connection for pages, if they are shared.
    pub fn calls_of_pages(&self) -> Option<MultiplexedConnection> {
        self.pages.as_ref().map(|pages| pages.calls.clone())
    }

    /// Another command.
    pub async fn call<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, BusError> {
        Ok(command.query_async(&mut self.calls()).await?)
    }

    /// Another script.
    pub async fn invoke<T: FromRedisValue>(
        &self,
        script: &redis::ScriptInvocation<'_>,
    ) -> Result<T, BusError> {
        Ok(script.invoke_async(&mut self.calls()).await?)
    }

    fn calls(&self) -> MultiplexedConnection {
        self.calls.calls.clone()
    }
}

/// The machine and the process.
fn own_name() -> String {
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    format!("{machine}, process {}", std::process::id())
}

/// Returns the mark of an epoch that its entries carry: a part of each of the epoch's parts, which are random.
fn mark(epoch: &str) -> String {
    let begin = |part: &str| part.chars().take(10).collect::<String>();
    epoch.split(':').map(begin).collect::<Vec<_>>().join(":")
}

/// The entries that `XREAD` gives of one stream; `None` if one of them is of another epoch, or written in a form
/// that an earlier version used.
fn entries_of(answer: Value, mark: &str) -> Option<Vec<LogEntry>> {
    let Value::Array(streams) = answer else {
        return None;
    };
    let stream = Vec::<Value>::from_redis_value(streams.into_iter().next()?).ok()?;
    let entries = Vec::<Value>::from_redis_value(stream.into_iter().nth(1)?).ok()?;
    let entry = |entry| {
        let mut parts = Vec::<Value>::from_redis_value(entry).ok()?.into_iter();
        let id = String::from_redis_value(parts.next()?).ok()?;
        let fields = Vec::<Vec<u8>>::from_redis_value(parts.next()?).ok()?;
        let fields: [Vec<u8>; 6] = fields.try_into().ok()?;
        let [_, instance, _, purge, _, of] = fields;
        Some(LogEntry {
            number: id.strip_suffix("-0")?.parse().ok()?,
            instance: std::str::from_utf8(&instance).ok()?.parse().ok()?,
            purge: (of == mark.as_bytes()).then_some(purge)?,
        })
    };
    entries.into_iter().map(entry).collect()
}

/// Asks the engine for its facts.
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
        is_replica: fact("role") == "slave",
    })
}

const _: () = assert!(BELL.as_millis() < CALL_TIMEOUT.as_millis());

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn answer(id: &str, fields: &[&str]) -> Value {
        let fields = fields.iter().map(|field| text(field)).collect();
        let entry = Value::Array(vec![text(id), Value::Array(fields)]);
        let stream = Value::Array(vec![text("log"), Value::Array(vec![entry])]);
        Value::Array(vec![stream])
    }

    #[test]
    fn nodes_are_read_from_the_hash_and_what_is_not_understood_is_left_out() {
        let fields = [
            ("log", "5"),
            ("tip", "12"),
            ("expelled", " 7 "),
            ("node:8", "3:11:web2, process 1: first"),
            ("node:7", "2:4:web1"),
            ("node:6", "1:0"),
            ("node:9", "a later form"),
            ("lease:9", "1:2:3"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let node = |instance, beat, position, name: &str| KnownNode {
            instance,
            beat,
            position,
            name: name.to_owned(),
            is_expelled: instance == 7,
        };
        let expected = KnownNodes {
            tip: 12,
            nodes: vec![
                node(6, 1, 0, "6"),
                node(7, 2, 4, "web1"),
                node(8, 3, 11, "web2, process 1: first"),
            ],
        };
        assert_eq!(KnownNodes::of(&fields), expected);
        assert_eq!(KnownNodes::of(&[]), KnownNodes::default());
    }

    #[test]
    fn entries_count_without_a_script_where_they_name_the_epoch_that_is_read() {
        let of = mark("0123456789abcdef:fedcba9876543210:17");
        assert_eq!(of, "0123456789:fedcba9876:17");
        let entry = LogEntry {
            number: 7,
            instance: 3,
            purge: b"bytes".to_vec(),
        };
        let fields = ["node", "3", "purge", "bytes", "epoch", &of];
        assert_eq!(entries_of(answer("7-0", &fields), &of), Some(vec![entry]));
        assert_eq!(entries_of(answer("7-1", &fields), &of), None);
        assert_eq!(entries_of(answer("7-0", &fields), "another"), None);
        assert_eq!(entries_of(answer("7-0", &fields[..4]), &of), None);
        assert_eq!(entries_of(Value::Nil, &of), None);
    }
}
