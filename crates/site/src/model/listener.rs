//! Listening addresses, the servers behind them, and how a host name chooses a server.

use std::sync::Arc;

use super::byte_map::ByteMap;
use super::ids::{LocationId, ServerId, ServerTlsId};
use super::location::{Location, Locations};
use super::pattern::Pattern;
use super::rewrite::RewriteOp;
use super::server_tls::{Http2Settings, Http3Settings};
use super::settings::Settings;

pub use transport_settings::{HeadSettings, ListenAddress};

/// One listening socket and the servers behind it.
#[derive(Debug)]
pub struct Listener {
    pub address: ListenAddress,
    pub options: ListenOptions,
    pub default_server: ServerId,
    pub names: ServerNames,
}

/// Parameters of `listen` that belong to the socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListenOptions {
    pub reuseport: bool,
    pub backlog: Option<u32>,
    pub rcvbuf: Option<u64>,
    pub sndbuf: Option<u64>,
    pub ipv6only: Option<bool>,
    pub so_keepalive: Option<bool>,
    pub proxy_protocol: bool,
    /// Clients speak TLS.
    pub ssl: bool,
    /// All servers behind the address speak HTTP/2.
    pub http2: bool,
    /// Clients speak HTTP/3.
    pub quic: bool,
}

/// How a request's host selects a server: exact, `*.example.org`,
/// `www.example.*`, pattern, in this order; names are lower case.
#[derive(Debug, Default)]
pub struct ServerNames {
    pub exact: ByteMap<ServerId>,
    /// Suffix with its leading dot (`.example.org`), longest first. The flag is true if
    /// the bare name matches as well (`.example.org` was written).
    pub leading_wildcard: Vec<(Box<[u8]>, ServerId)>,
    /// Prefix with its trailing dot (`www.example.`), longest first.
    pub trailing_wildcard: Vec<(Box<[u8]>, ServerId)>,
    /// Patterns in order of appearance.
    pub patterns: Vec<(Arc<Pattern>, ServerId)>,
}

/// A `server` block.
#[derive(Debug)]
pub struct Server {
    /// The first name: the value of `$server_name`, and the host of redirects with
    /// `server_name_in_redirect`.
    pub name: String,
    /// Directives of the rewrite module at server level.
    pub rewrite: Vec<RewriteOp>,
    /// All locations: nested ones and those of `if` blocks included. The first
    /// is the server's own level, which holds if no location matches.
    pub locations: Vec<Location>,
    /// The tree's top level.
    pub top: Locations,
    pub head: HeadSettings,
    /// `merge_slashes`.
    pub merge_slashes: bool,
    /// `htaccess`
    pub obeys_htaccess: bool,
    /// `apache_rules`
    pub apache_rules: Option<Arc<htaccess::ServerRules>>,
    /// `ssl_*`, if the server has a certificate or rejects handshakes. For a server without,
    /// those of the default server of the address hold, which always has some where the
    /// address speaks TLS.
    pub tls: Option<ServerTlsId>,
    pub http2: Http2Settings,
    pub http3: Http3Settings,
}

impl Server {
    /// The server level itself.
    pub const ROOT: LocationId = LocationId(0);

    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0]
    }

    pub fn settings(&self, id: LocationId) -> &Arc<Settings> {
        &self.locations[id.0].settings
    }
}
