//! Other machines that share purges (`cache_nodes`): this node's connection to them, and the handling of their
//! purges.
//!
//! ```text
//! Zone::purge ─► Nodes (a PurgeListener) ─► Bus::publish ─► Nodes::confirmed       purges of this node
//! Bus ─► Host::apply ─► Zone::purge_here                                            purges of the others
//! ```

use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use cache_bus::{
    Administration, BootMillis, Bus, BusError, BusEvent, BusSettings, BusState, EngineAddress,
    Epoch, HostPort, Login, MIN_KEY_BYTES, NodeHost, NodeSeal, SECRET_ENTRY, SharedPages,
};
pub use cache_bus::{KnownNode, KnownNodes};
use http_cache::{Millis, PurgeListener, PurgeMode, PurgeTarget, Zone};
use parking_lot::Mutex;
use site::{CacheNodes, ErrorLog, LogLevel, NodesEngine, Site};

use crate::acme_answers::{AcmeAnswerTexts, AcmeAnswers};
use crate::applied_log::AppliedLog;
use crate::build_error::BuildError;
use crate::cache_zones::AliveZones;
use crate::disk_pages::{self, NodeBegin};
use crate::error_log::ErrorLogs;
use crate::node_writes::WriteExchange;
use crate::shared_pages::ZonePositions;
use crate::sibling;
use crate::tls_files::TlsFiles;

/// How long a node may use stored pages after it has last asked the engine.
const LEASE: Duration = Duration::from_secs(2);

/// A server with debug assertions that finds this in its environment does not check its lease.
const LEASE_FAILPOINT: &str = "MAYFLY_FAILPOINT_LEASE";

/// The connection of this node to others, and the state they share.
pub struct Nodes {
    terms: CacheNodes,
    settings: BusSettings,
    host: Arc<Host>,
    /// Once it has begun.
    pub(crate) bus: OnceLock<Bus>,
    /// The position at which it has begun to read the log.
    began_with: OnceLock<Option<AppliedLog>>,
    /// Zones whose purges are published, or were.
    known: Mutex<Vec<Weak<Zone>>>,
    /// A fault for a test: `scripts/promise/nodes.py` must find its effect.
    ignores_lease: bool,
}

/// The server's side of the bus.
struct Host {
    zones: Arc<AliveZones>,
    logs: Mutex<Option<LogTargets>>,
    /// The position of each zone, if pages are shared.
    positions: ZonePositions,
    /// The seal of challenge answers from other nodes, made from a key file that they have in common.
    seal: Option<NodeSeal>,
    acme_answers: Arc<AcmeAnswers>,
    /// The writes of other nodes, and the pages that they concern.
    writes: WriteExchange,
}

type LogTargets = (Arc<ErrorLogs>, Vec<ErrorLog>);

impl Nodes {
    /// Builds the nodes of `site`, or takes over the previous ones if they have the same terms.
    ///
    /// # Errors
    /// TLS is impossible with the certificates that are trusted.
    pub fn build(
        site: &Site,
        files: &TlsFiles,
        zones: &Arc<AliveZones>,
        acme_answers: &Arc<AcmeAnswers>,
        previous: Option<&Arc<Nodes>>,
    ) -> Result<Option<Arc<Nodes>>, BuildError> {
        let Some(terms) = &site.http.cache_nodes else {
            return Ok(None);
        };
        if let Some(same) = previous.filter(|it| it.terms == *terms) {
            return Ok(Some(same.clone()));
        }
        let settings = settings(terms, files)?;
        let seal = settings.page_key.as_deref().and_then(NodeSeal::new);
        Ok(Some(Arc::new(Nodes {
            settings,
            terms: terms.clone(),
            host: Arc::new(Host {
                zones: zones.clone(),
                logs: Mutex::default(),
                positions: ZonePositions::default(),
                seal,
                acme_answers: acme_answers.clone(),
                writes: WriteExchange::default(),
            }),
            bus: OnceLock::new(),
            began_with: OnceLock::new(),
            known: Mutex::default(),
            ignores_lease: cfg!(debug_assertions) && std::env::var_os(LEASE_FAILPOINT).is_some(),
        })))
    }

    /// Starts the connection to the other nodes, unless it has begun. `zones` are all zones of the server; `applied`
    /// is the position up to which purges are applied to the pages stored there already, which are void without it.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn begin(
        &self,
        zones: &[Arc<Zone>],
        applied: Option<AppliedLog>,
        error_logs: &Arc<ErrorLogs>,
        logs: &[ErrorLog],
    ) -> io::Result<()> {
        *self.host.logs.lock() = Some((error_logs.clone(), logs.to_vec()));
        let weak: Vec<Weak<Zone>> = zones.iter().map(Arc::downgrade).collect();
        let known = std::mem::replace(&mut *self.known.lock(), weak);
        if self.bus.get().is_some() {
            let is_new =
                |zone: &&Arc<Zone>| !known.iter().any(|it| it.as_ptr() == Arc::as_ptr(zone));
            // A new zone's pages on disk may have missed purges that came before it.
            zones.iter().filter(is_new).for_each(void);
            return Ok(());
        }
        let _ = self.began_with.set(applied.clone());
        let bus = Bus::start(self.settings.clone(), self.host.clone(), applied)?;
        let _ = self.bus.set(bus);
        Ok(())
    }

    /// Returns the position at which it has begun to read the log; `None` before that.
    pub fn began_with(&self) -> NodeBegin {
        self.began_with.get().cloned()
    }

    /// Whether stored responses may be used by a request that has been read. Reads the clock.
    #[inline]
    pub fn may_use_stored(&self) -> bool {
        let now = BootMillis(clock::now());
        self.bus.get().is_some_and(|bus| bus.may_use_stored(now))
            || (cfg!(debug_assertions) && self.ignores_lease)
    }

    /// Whether this node has held a lease until no longer ago than this.
    pub fn has_lost_lease_within(&self, time: Duration) -> bool {
        let now = BootMillis(clock::now());
        let ended = self.bus.get().and_then(|bus| bus.lease_ended(now));
        ended.is_some_and(|ago| ago < time)
    }

    /// The pages that nodes share, where they have a key file in common.
    pub fn pages(&self) -> Option<&SharedPages> {
        self.bus.get()?.pages()
    }

    /// Returns the position up to which purges are applied to all stored pages; `None`: it is not known.
    pub fn applied_to_stored(&self) -> Option<AppliedLog> {
        self.bus.get()?.applied_to_stored()
    }

    /// Returns the position up to which purges hold here, while this node is a member.
    pub fn applied(&self) -> Option<AppliedLog> {
        self.bus.get()?.applied()
    }

    /// To which readings of the purge clocks positions of the log belong.
    pub fn positions(&self) -> &ZonePositions {
        &self.host.positions
    }

    /// Returns the writes on this node and on others.
    pub(crate) fn writes(&self) -> &WriteExchange {
        &self.host.writes
    }

    /// Resolves once all that was purged here so far holds on all nodes.
    pub async fn confirmed(&self) {
        if let Some(bus) = self.bus.get() {
            bus.confirmed(bus.last_published()).await;
        }
    }

    /// How things stand between this node and the others; `None` before it has begun.
    pub fn state(&self) -> Option<BusState> {
        self.bus.get().map(Bus::state)
    }

    /// Leaves the others.
    pub fn leave(&self) {
        if let Some(bus) = self.bus.get() {
            bus.leave();
        }
    }
}

impl PurgeListener for Nodes {
    fn purged(&self, zone: &str, target: PurgeTarget<'_>, mode: PurgeMode) {
        if let Some(bus) = self.bus.get() {
            bus.publish(sibling::purge_message(0, mode, zone, target));
        }
    }
}

/// The reason why the engine of `cache_nodes` could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum NodesError {
    #[error(transparent)]
    Settings(#[from] BuildError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Answers(#[from] serde_json::Error),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Does an administrator's work at the configured engine.
///
/// # Errors
/// The reason why the engine does not answer.
pub fn administer<T>(
    terms: &CacheNodes,
    work: impl AsyncFnOnce(&Administration) -> Result<T, BusError>,
) -> Result<T, NodesError> {
    let settings = settings(terms, &TlsFiles::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let engine = Administration::connect(&settings).await?;
        Ok(work(&engine).await?)
    })
}

/// From now on the purges of these zones are published, or they are no longer.
pub fn attach(nodes: Option<&Arc<Nodes>>, zones: &[Arc<Zone>]) {
    for zone in zones {
        zone.set_publisher(nodes.map(|nodes| nodes.clone() as Arc<dyn PurgeListener>));
    }
}

impl NodeHost for Host {
    fn apply(&self, purges: &[Vec<u8>]) {
        for purge in purges {
            if purge.first() == Some(&SECRET_ENTRY) {
                self.take_answers(purge);
                continue;
            }
            if self.writes.take(purge) {
                continue;
            }
            // An entry in the form of a later version counts as a purge of everything.
            if sibling::apply(purge, &self.zones).is_none() {
                let now = Millis(clock::now());
                for zone in self.zones.zones() {
                    zone.purge_here(PurgeTarget::Everything, PurgeMode::Hard, now);
                }
            }
        }
    }

    fn void(&self) {
        self.zones.zones().iter().for_each(void);
    }

    fn advanced(&self, epoch: &Epoch, position: u64) {
        self.positions.advance(epoch, position, &self.zones.zones());
    }

    fn keep(&self, applied: &AppliedLog) {
        disk_pages::note_position(&self.zones.zones(), applied);
    }

    fn tell(&self, event: BusEvent) {
        let Some((error_logs, logs)) = self.logs.lock().clone() else {
            return;
        };
        let level = match event {
            BusEvent::LeaseHeld | BusEvent::Void(_) => LogLevel::Notice,
            BusEvent::LeaseLost(_)
            | BusEvent::Trouble(_)
            | BusEvent::Evicts(_)
            | BusEvent::Stuck(_)
            | BusEvent::FillsUp(_) => LogLevel::Error,
        };
        let message = format_args!("cache_nodes: {event}");
        error_logs.write(&logs, level, 0, message, "");
    }
}

impl Host {
    /// Takes challenge answers of another node. An entry that was not sealed with this node's key, or is of another
    /// version, names no page and is left out.
    fn take_answers(&self, entry: &[u8]) {
        let secret = self
            .seal
            .as_ref()
            .and_then(|seal| cache_bus::open_secret(seal, entry));
        let texts: Option<AcmeAnswerTexts> =
            secret.and_then(|secret| serde_json::from_slice(&secret).ok());
        if let Some(texts) = texts {
            let now = Millis(clock::now());
            self.acme_answers.add_of_other(texts, now);
        }
    }
}

fn void(zone: &Arc<Zone>) {
    zone.void(Millis(clock::now()));
}

pub(super) fn settings(terms: &CacheNodes, files: &TlsFiles) -> Result<BusSettings, BuildError> {
    let host = |(host, port): &(String, u16)| HostPort {
        host: host.clone(),
        port: *port,
    };
    let tls = match terms.is_tls {
        true => Some(Arc::new(tls(terms, files)?)),
        false => None,
    };
    Ok(BusSettings {
        engine: match &terms.engine {
            NodesEngine::Tcp(name, port) => EngineAddress::Tcp(host(&(name.clone(), *port))),
            NodesEngine::Unix(path) => EngineAddress::Unix(path.clone()),
            NodesEngine::Sentinel(master, sentinels) => EngineAddress::Sentinel {
                master: master.clone(),
                sentinels: sentinels.iter().map(host).collect(),
            },
        },
        tls,
        login: Login {
            user: terms.user.clone(),
            password: terms.password.clone(),
            database: terms.database,
        },
        name: terms.name.clone(),
        lease: LEASE,
        page_key: page_key(terms, files)?,
        everything: sibling::purge_message(0, PurgeMode::Hard, "", PurgeTarget::Everything),
    })
}

fn page_key(terms: &CacheNodes, files: &TlsFiles) -> Result<Option<Vec<u8>>, BuildError> {
    let Some(path) = &terms.page_key else {
        return Ok(None);
    };
    let refused = |why: &str| BuildError::Tls(format!("key file \"{}\": {why}", path.display()));
    let key = files.bytes(path);
    let key = key.map_err(|error| refused(&error.to_string()))?;
    match key.len() >= MIN_KEY_BYTES {
        true => Ok(Some(key)),
        false => Err(refused(&format!("fewer than {MIN_KEY_BYTES} bytes"))),
    }
}

fn tls(terms: &CacheNodes, files: &TlsFiles) -> Result<rustls::ClientConfig, BuildError> {
    let trusted = match &terms.trusted {
        None => None,
        Some(path) => Some(files.bytes(path).map_err(|error| {
            let path = path.display();
            BuildError::Tls(format!("cannot load certificate \"{path}\": {error}"))
        })?),
    };
    cache_bus::tls(trusted.as_deref())
        .map_err(|error| BuildError::Tls(format!("cache_nodes: {error}")))
}
