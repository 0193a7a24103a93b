//! The commands that are understood, with their keys. A table of facts: <https://redis.io/docs/latest/commands/>.

/// The effect of a command on the keys that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It reads no key and changes none. The answer says nothing that a page is made of, or nothing more than a clock does:
    /// INFO, which the most common object cache of WordPress asks for at each request.
    Nothing,
    /// The answer depends on the values of its keys alone.
    Reads,
    /// It changes nothing. The answer depends on more than the values of keys: all keys, the clock, chance.
    ReadsMore,
    /// It changes its keys and no others.
    Writes,
    /// It is not known, or may change any key.
    Anything,
}

/// The arguments that are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPlaces {
    None,
    First,
    All,
    /// The first, the third, and so on: values stand between them.
    EveryOther,
}

/// What has to be known of a command beyond its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    None,
    /// It names another database.
    Select,
    /// Afterwards the server may say things that nobody asked for, or say nothing.
    Unreadable,
    /// It ends the connection.
    Ends,
    /// As [`Turn::Unreadable`], with some words behind it.
    Client,
}

pub(crate) type KnownCommand = (Effect, KeyPlaces, Turn);

const NOTHING: KnownCommand = (Effect::Nothing, KeyPlaces::None, Turn::None);
const READS: KnownCommand = (Effect::Reads, KeyPlaces::First, Turn::None);
const READS_ALL: KnownCommand = (Effect::Reads, KeyPlaces::All, Turn::None);
const READS_MORE: KnownCommand = (Effect::ReadsMore, KeyPlaces::None, Turn::None);
const WRITES: KnownCommand = (Effect::Writes, KeyPlaces::First, Turn::None);
const WRITES_ALL: KnownCommand = (Effect::Writes, KeyPlaces::All, Turn::None);
const WRITES_PAIRS: KnownCommand = (Effect::Writes, KeyPlaces::EveryOther, Turn::None);
const UNREADABLE: KnownCommand = (Effect::Anything, KeyPlaces::None, Turn::Unreadable);
pub(crate) const UNKNOWN: KnownCommand = (Effect::Anything, KeyPlaces::None, Turn::None);

/// What is known of a command by its name, in any case.
pub(crate) fn known(name: &[u8]) -> KnownCommand {
    match name.to_ascii_uppercase().as_slice() {
        b"PING" | b"ECHO" | b"AUTH" | b"HELLO" | b"INFO" | b"COMMAND" | b"WAIT" => NOTHING,
        b"SELECT" => (Effect::Nothing, KeyPlaces::None, Turn::Select),
        b"QUIT" => (Effect::Nothing, KeyPlaces::None, Turn::Ends),
        b"CLIENT" => (Effect::Nothing, KeyPlaces::None, Turn::Client),
        b"GET" | b"GETRANGE" | b"SUBSTR" | b"STRLEN" | b"GETBIT" | b"BITCOUNT" | b"BITPOS"
        | b"TYPE" | b"DUMP" | b"HGET" | b"HMGET" | b"HGETALL" | b"HEXISTS" | b"HLEN" | b"HKEYS"
        | b"HVALS" | b"HSTRLEN" | b"LRANGE" | b"LLEN" | b"LINDEX" | b"LPOS" | b"SMEMBERS"
        | b"SISMEMBER" | b"SMISMEMBER" | b"SCARD" | b"ZRANGE" | b"ZREVRANGE" | b"ZRANGEBYSCORE"
        | b"ZREVRANGEBYSCORE" | b"ZRANGEBYLEX" | b"ZREVRANGEBYLEX" | b"ZCARD" | b"ZSCORE"
        | b"ZMSCORE" | b"ZRANK" | b"ZREVRANK" | b"ZCOUNT" | b"ZLEXCOUNT" => READS,
        b"MGET" | b"EXISTS" | b"SINTER" | b"SUNION" | b"SDIFF" => READS_ALL,
        b"TTL" | b"PTTL" | b"EXPIRETIME" | b"PEXPIRETIME" | b"TIME" | b"KEYS" | b"SCAN"
        | b"HSCAN" | b"SSCAN" | b"ZSCAN" | b"DBSIZE" | b"RANDOMKEY" | b"SRANDMEMBER"
        | b"HRANDFIELD" | b"ZRANDMEMBER" | b"OBJECT" | b"ROLE" | b"LASTSAVE" => READS_MORE,
        b"SET" | b"SETEX" | b"PSETEX" | b"SETNX" | b"GETSET" | b"GETDEL" | b"GETEX" | b"APPEND"
        | b"SETRANGE" | b"SETBIT" | b"INCR" | b"INCRBY" | b"INCRBYFLOAT" | b"DECR" | b"DECRBY"
        | b"EXPIRE" | b"PEXPIRE" | b"EXPIREAT" | b"PEXPIREAT" | b"PERSIST" | b"HSET"
        | b"HSETNX" | b"HMSET" | b"HDEL" | b"HINCRBY" | b"HINCRBYFLOAT" | b"LPUSH" | b"RPUSH"
        | b"LPUSHX" | b"RPUSHX" | b"LPOP" | b"RPOP" | b"LTRIM" | b"LSET" | b"LREM" | b"LINSERT"
        | b"SADD" | b"SREM" | b"SPOP" | b"ZADD" | b"ZREM" | b"ZINCRBY" | b"ZPOPMIN"
        | b"ZPOPMAX" | b"ZREMRANGEBYRANK" | b"ZREMRANGEBYSCORE" | b"ZREMRANGEBYLEX" | b"PFADD" => {
            WRITES
        }
        b"DEL" | b"UNLINK" | b"TOUCH" => WRITES_ALL,
        b"MSET" | b"MSETNX" => WRITES_PAIRS,
        b"MONITOR" | b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" | b"SYNC" | b"PSYNC"
        | b"RESET" => UNREADABLE,
        _ => UNKNOWN,
    }
}

/// Whether CLIENT with this word says nothing and changes nothing of what the server says.
pub(crate) fn is_harmless_client(word: &[u8]) -> bool {
    matches!(
        word.to_ascii_uppercase().as_slice(),
        b"SETNAME" | b"SETINFO" | b"GETNAME" | b"ID" | b"INFO" | b"NO-EVICT" | b"NO-TOUCH"
    )
}

impl KeyPlaces {
    /// Whether the argument at this place, from 1 on, is a key.
    pub(crate) const fn holds(self, place: u64) -> bool {
        match self {
            Self::None => false,
            Self::First => place == 1,
            Self::All => true,
            Self::EveryOther => place % 2 == 1,
        }
    }
}
