//! Secrets that nodes share beside purges and pages, seldom and for long: certificates with their keys, and challenge
//! answers for an issuer. They are sealed as pages are, and need the key file.
//!
//! ```text
//! NAME:secret:ID   string   sealed bytes, until they are of no use
//! NAME:turn:ID     string   the token of the process whose turn it is, for a while
//! NAME:log         an entry that is no purge: a secret that all nodes have once they have read it
//! ```
//!
//! A program that can write to the engine can put an older secret back, and takes turns. It makes none.

use std::time::Duration;

use redis::Script;
use tokio::time::{Instant, sleep};

use crate::connection::BusError;
use crate::engine::RedisEngine;
use crate::random::random;
use crate::seal::{NodeSeal, SealedPlace};
use crate::settings::BusSettings;

/// An entry of the log begins so that is a secret.
pub const SECRET_ENTRY: u8 = b'S';
/// The name to which secrets of the log are bound.
const ENTRY_NAME: &str = "entry";
/// How often it is looked whether all nodes have read an entry.
const LOOK_EACH: Duration = Duration::from_millis(20);

/// The secrets of all nodes, for a process that is not a node itself.
pub struct SharedSecrets {
    engine: RedisEngine,
    seal: NodeSeal,
    name: String,
    take_turn: Script,
}

impl SharedSecrets {
    /// Connects to the engine in force.
    ///
    /// # Errors
    /// The reason why that is not possible, or that there is no key file.
    pub async fn connect(settings: &BusSettings) -> Result<SharedSecrets, BusError> {
        let no_key = || BusError("cache_nodes has no key= file".to_owned());
        let seal = settings.page_key.as_deref().and_then(NodeSeal::new);
        let seal = seal.ok_or_else(no_key)?;
        Ok(SharedSecrets {
            engine: RedisEngine::connect(settings, 0).await?,
            seal,
            name: settings.name.clone(),
            take_turn: Script::new(include_str!("scripts/take_turn.lua")),
        })
    }

    /// Returns the secret under this name; `None` if the name is unknown, or another key sealed it.
    ///
    /// # Errors
    /// The engine does not answer, for this reason.
    pub async fn read(&self, name: &[&[u8]]) -> Result<Option<Vec<u8>>, BusError> {
        let id = self.seal.name(name);
        let mut get = redis::cmd("GET");
        get.arg(self.key("secret", &id));
        let sealed: Option<Vec<u8>> = self.engine.call(&get).await?;
        Ok(sealed.and_then(|sealed| Some(self.seal.open(&id, "", &sealed)?.1)))
    }

    /// Writes it, for this time.
    ///
    /// # Errors
    /// The engine does not take it, for this reason.
    pub async fn write(
        &self,
        name: &[&[u8]],
        bytes: &[u8],
        lifetime: Duration,
    ) -> Result<(), BusError> {
        let id = self.seal.name(name);
        let mut set = redis::cmd("SET");
        set.arg(self.key("secret", &id))
            .arg(sealed(&self.seal, &id, bytes)?)
            .arg("PX")
            .arg(clock::millis(lifetime).max(1));
        self.engine.call(&set).await
    }

    /// Whether it is this process's turn, from now on for `lasts`. `token` is its own.
    ///
    /// # Errors
    /// The engine does not answer, for this reason.
    pub async fn take_turn(
        &self,
        name: &[&[u8]],
        token: u64,
        lasts: Duration,
    ) -> Result<bool, BusError> {
        let id = self.seal.name(name);
        let mut call = self.take_turn.key(self.key("turn", &id));
        call.arg(token).arg(clock::millis(lasts).max(1));
        let taken: u8 = self.engine.invoke(&call).await?;
        Ok(taken == 1)
    }

    /// Publishes a secret to all nodes, and waits, for a bounded time, until they have read it. Returns whether all
    /// have.
    ///
    /// # Errors
    /// The engine does not take it, for this reason.
    pub async fn tell_all(&self, secret: &[u8], within: Duration) -> Result<bool, BusError> {
        let mut entry = vec![SECRET_ENTRY];
        entry.extend(sealed(&self.seal, ENTRY_NAME, secret)?);
        let until = Instant::now() + within;
        let Some(number) = self.engine.publish_in_any_epoch(&entry).await? else {
            // There are no nodes.
            return Ok(true);
        };
        while Instant::now() < until {
            let known = self.engine.nodes().await?;
            if known.nodes.iter().all(|node| node.position >= number) {
                return Ok(true);
            }
            sleep(LOOK_EACH).await;
        }
        Ok(false)
    }

    fn key(&self, kind: &str, id: &str) -> String {
        format!("{}:{kind}:{id}", self.name)
    }
}

/// The secret of an entry that begins with [`SECRET_ENTRY`]; `None` for one that was not sealed with this key.
#[must_use]
pub fn open_secret(seal: &NodeSeal, entry: &[u8]) -> Option<Vec<u8>> {
    let sealed = entry.strip_prefix(&[SECRET_ENTRY])?;
    Some(seal.open(ENTRY_NAME, "", sealed)?.1)
}

/// A number by which a process takes turns.
///
/// # Errors
/// The error of the system.
pub fn turn_token() -> std::io::Result<u64> {
    random()
}

fn sealed(seal: &NodeSeal, name: &str, bytes: &[u8]) -> Result<Vec<u8>, BusError> {
    let place = SealedPlace {
        name,
        epoch: "",
        position: 0,
    };
    let no_random = || BusError("the system gives no random bytes".to_owned());
    seal.seal(place, bytes.to_vec()).ok_or_else(no_random)
}
