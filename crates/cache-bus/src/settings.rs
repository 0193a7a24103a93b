//! The settings of a node: the engine's address, how to log in, how long a lease lasts.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How to become a node.
#[derive(Clone)]
pub struct BusSettings {
    pub engine: EngineAddress,
    /// `Some`: over TLS.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The account at the engine.
    pub login: Login,
    /// The prefix of the keys' names: nodes with the same name share purges.
    pub name: String,
    /// How long a lease lasts.
    pub lease: Duration,
    /// The content of the key file by which pages are sealed that nodes share; `None`: they share none.
    pub page_key: Option<Vec<u8>>,
    /// The purge of everything, which stands for others when too many wait.
    pub everything: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineAddress {
    /// One server.
    Tcp(HostPort),
    /// One server on this machine.
    Unix(PathBuf),
    /// Whichever server most of the Sentinels name.
    Sentinel {
        /// The name of the master at the Sentinels.
        master: String,
        /// All Sentinels there are.
        sentinels: Vec<HostPort>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name or an address, IPv6 without brackets.
    pub host: String,
    pub port: u16,
}

/// The account at an engine.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// `None`: the engine's default account.
    pub user: Option<String>,
    /// `None`: no password is sent.
    pub password: Option<String>,
    /// The number of the database.
    pub database: u32,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineAddress::Tcp(address) => address.fmt(f),
            EngineAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            EngineAddress::Sentinel { master, .. } => write!(f, "sentinel {master}"),
        }
    }
}
