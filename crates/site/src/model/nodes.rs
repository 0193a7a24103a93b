//! Several machines that share purges: the settings of `cache_nodes`.

use std::fmt;
use std::path::PathBuf;

/// `cache_nodes`
#[derive(Clone, PartialEq, Eq)]
pub struct CacheNodes {
    pub engine: NodesEngine,
    pub is_tls: bool,
    /// `trusted=`; `None`: the authorities of the system.
    pub trusted: Option<PathBuf>,
    pub user: Option<String>,
    pub password: Option<String>,
    /// The number of the engine's database.
    pub database: u32,
    /// `key=`: the file with the key that seals shared pages.
    pub page_key: Option<PathBuf>,
    /// `name=`: the prefix of the engine's keys.
    pub name: String,
}

/// The address of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodesEngine {
    /// A host, IPv6 without brackets, and a port.
    Tcp(String, u16),
    Unix(PathBuf),
    /// The name of the engine at the Sentinels, and their addresses.
    Sentinel(String, Vec<(String, u16)>),
}

impl fmt::Debug for CacheNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheNodes")
            .field("engine", &self.engine)
            .field("is_tls", &self.is_tls)
            .field("trusted", &self.trusted)
            .field("user", &self.user)
            .field("has_password", &self.password.is_some())
            .field("database", &self.database)
            .field("name", &self.name)
            .finish()
    }
}
