//! Requests that go on to somebody else: groups of servers, what all protocols
//! towards upstreams have in common, and what is FastCGI's and HTTP's own.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{CacheRules, GroupId, NameResolution, Pattern, Template, TlsId, Variable};

/// `upstream NAME { ... }`, or the group made for a literal address.
#[derive(Debug, Clone)]
pub struct UpstreamGroup {
    pub name: String,
    pub servers: Vec<UpstreamServer>,
    pub method: BalanceMethod,
    pub keepalive: Option<KeepAlive>,
    pub queue: Option<Queue>,
    /// For its servers marked `resolve`.
    pub names: NameResolution,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamServer {
    /// As written: consistent hashing goes by it.
    pub name: String,
    pub endpoint: UpstreamEndpoint,
    pub weight: u32,
    /// 0: unlimited.
    pub max_conns: usize,
    pub max_fails: u32,
    pub fail_timeout: Duration,
    /// Zero: it comes back with all its weight.
    pub slow_start: Duration,
    pub backup: bool,
    pub down: bool,
}

impl UpstreamServer {
    /// Does it stand for servers that are found at run time?
    pub fn is_name(&self) -> bool {
        matches!(self.endpoint, UpstreamEndpoint::Name(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UpstreamEndpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// `php:NAME`: a pool of our own.
    PhpPool(String),
    /// `resolve`: as many servers as the name has addresses at the time.
    Name(UpstreamName),
}

/// A name that is looked up at run time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpstreamName {
    pub host: String,
    pub port: u16,
    /// `service=`: the name to ask for SRV records by.
    pub service: Option<String>,
}

#[derive(Debug, Clone)]
pub enum BalanceMethod {
    RoundRobin,
    LeastConn,
    IpHash,
    Hash { key: Template, consistent: bool },
    Random { two: bool },
}

/// `keepalive` (0 connections: none are kept), `keepalive_requests`, `keepalive_time`, `keepalive_timeout` of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepAlive {
    pub connections: usize,
    pub requests: u64,
    pub time: Duration,
    pub timeout: Duration,
    /// Connections are used again within their location only.
    pub local: bool,
}

/// `queue NUMBER [timeout=TIME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub length: usize,
    pub timeout: Duration,
}

/// Where a `*_pass` leads.
#[derive(Debug, Clone)]
pub enum PassTarget {
    Group(GroupId),
    /// With variables: the name of a group, an address or `unix:` path.
    Variable(Template),
}

/// A `*_pass` and everything that steers it: what all protocols share, and what
/// is one protocol's own.
#[derive(Debug, Clone)]
pub struct Pass {
    pub target: PassTarget,
    pub exchange: Exchange,
    pub cache: Option<Arc<CacheRules>>,
    pub protocol: Protocol,
}

/// What is spoken to the upstream.
#[derive(Debug, Clone)]
pub enum Protocol {
    FastCgi(FastCgi),
    Http(Box<Proxy>),
    Memcached(Memcached),
}

impl Pass {
    /// The directive that leads there, for messages.
    pub fn directive(&self) -> &'static str {
        match self.protocol {
            Protocol::FastCgi(_) => "fastcgi_pass",
            Protocol::Http(_) => "proxy_pass",
            Protocol::Memcached(_) => "memcached_pass",
        }
    }

    /// What log lines put before an upstream's address.
    pub fn scheme(&self) -> &'static str {
        match &self.protocol {
            Protocol::FastCgi(_) => "fastcgi",
            Protocol::Http(proxy) if proxy.is_tls => "https",
            Protocol::Http(_) => "http",
            Protocol::Memcached(_) => "memcached",
        }
    }

    pub fn fastcgi(&self) -> Option<&FastCgi> {
        match &self.protocol {
            Protocol::FastCgi(fastcgi) => Some(fastcgi),
            Protocol::Http(_) | Protocol::Memcached(_) => None,
        }
    }

    pub fn proxy(&self) -> Option<&Proxy> {
        match &self.protocol {
            Protocol::Http(proxy) => Some(proxy),
            Protocol::FastCgi(_) | Protocol::Memcached(_) => None,
        }
    }
}

/// What only `fastcgi_*` says.
#[derive(Debug, Clone)]
pub struct FastCgi {
    pub params: Vec<FastCgiParam>,
    /// `fastcgi_index`
    pub index: Option<Box<[u8]>>,
    pub split_path_info: Option<Arc<Pattern>>,
    pub keep_conn: bool,
    /// `fastcgi_catch_stderr`
    pub catch_stderr: Vec<Box<[u8]>>,
}

/// What only `memcached_*` says.
#[derive(Debug, Clone)]
pub struct Memcached {
    /// `$memcached_key`
    pub key: Variable,
    /// `memcached_gzip_flag`: any of these bits says that a value is compressed.
    pub gzip_flags: u32,
}

/// What only `proxy_*` says.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// `https://`
    pub is_tls: bool,
    /// `proxy_ssl_*`, where it is.
    pub tls: Option<TlsId>,
    /// `proxy_ssl_name`
    pub tls_name: Template,
    pub version: ProxyVersion,
    /// How the request target is made.
    pub uri: ProxyUri,
    /// `$proxy_host` and `$proxy_port`, where `proxy_pass` has no variables.
    pub host: Box<[u8]>,
    pub port: Box<[u8]>,
    /// `proxy_set_header`, with the defaults that it does not name: these fields
    /// are sent, and of their names none of the client's.
    pub fields: Vec<SetField>,
    /// `proxy_method`
    pub method: Option<Template>,
    /// `proxy_set_body`
    pub body: Option<Template>,
    /// `proxy_redirect`, in order.
    pub redirects: Vec<Replacement>,
    /// `proxy_cookie_domain`
    pub cookie_domains: Vec<Replacement>,
    /// `proxy_cookie_path`
    pub cookie_paths: Vec<Replacement>,
    /// `proxy_cookie_flags`
    pub cookie_flags: Vec<CookieFlags>,
    /// `proxy_pass_trailers`
    pub pass_trailers: bool,
}

impl Proxy {
    /// Is any field of responses written anew?
    pub fn rewrites_fields(&self) -> bool {
        !(self.redirects.is_empty()
            && self.cookie_domains.is_empty()
            && self.cookie_paths.is_empty()
            && self.cookie_flags.is_empty())
    }
}

/// `proxy_ssl_*`: how connections to `https://` upstreams are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// `proxy_ssl_verify`, with `proxy_ssl_trusted_certificate`.
    pub verify: Option<TlsVerify>,
    /// `proxy_ssl_certificate` and `proxy_ssl_certificate_key`
    pub identity: Option<(PathBuf, PathBuf)>,
    /// `proxy_ssl_protocols`
    pub tls12: bool,
    pub tls13: bool,
    /// `proxy_ssl_server_name`
    pub send_name: bool,
    /// `proxy_ssl_session_reuse`
    pub reuse_sessions: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsVerify {
    pub trusted: PathBuf,
    pub depth: usize,
    pub crl: Option<PathBuf>,
}

/// `proxy_http_version`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyVersion {
    Http10,
    Http11,
}

/// What becomes of the request's path on its way to the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyUri {
    /// `proxy_pass` has none: the target as received, or the path as changed.
    Kept,
    /// Stands in for so many bytes at the beginning of the path: the location's prefix.
    Replaces { uri: Box<[u8]>, prefix_bytes: usize },
    /// `proxy_pass` has variables: what follows host and port there, if anything.
    OfTarget,
}

/// `proxy_set_header NAME VALUE`; a field with an empty value is not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct SetField {
    /// As written.
    pub name: Box<[u8]>,
    pub value: Template,
}

/// A text to be found and what stands in for it: `proxy_redirect` and the like.
#[derive(Debug, Clone)]
pub struct Replacement {
    pub matching: Matching,
    pub replacement: Template,
}

#[derive(Debug, Clone)]
pub enum Matching {
    Text(Template),
    Pattern(Arc<Pattern>),
}

/// `proxy_cookie_flags COOKIE FLAG ...`
#[derive(Debug, Clone)]
pub struct CookieFlags {
    pub cookie: Matching,
    pub flags: Vec<Template>,
}

#[derive(Debug, Clone)]
pub struct FastCgiParam {
    pub name: Box<[u8]>,
    pub value: Template,
    pub if_not_empty: bool,
}

/// Settings that `fastcgi_*` and `proxy_*` share.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// `*_bind`: where connections come from.
    pub bind: Option<Bind>,
    /// `*_socket_keepalive`: the kernel probes connections.
    pub socket_keepalive: bool,
    pub connect_timeout: Duration,
    pub send_timeout: Duration,
    pub read_timeout: Duration,
    /// `*_buffering`
    pub buffering: bool,
    /// `*_buffer_size`: the largest response head, in bytes.
    pub head_bytes: u64,
    /// `*_buffers`: bytes kept in memory before a response spills to disk.
    pub buffer_bytes: u64,
    /// `*_max_temp_file_size`; 0: no temporary file.
    pub max_temp_file_bytes: u64,
    pub temp_path: PathBuf,
    pub request_buffering: bool,
    pub ignore_client_abort: bool,
    pub intercept_errors: bool,
    pub pass_request_headers: bool,
    pub pass_request_body: bool,
    /// Bytes per second; 0: no limit.
    pub limit_rate: Template,
    pub force_ranges: bool,
    pub next_upstream: Failures,
    /// `non_idempotent` of `*_next_upstream`.
    pub next_non_idempotent: bool,
    /// 0: no limit.
    pub next_tries: usize,
    /// Zero: no limit.
    pub next_timeout: Duration,
    /// Fields of the upstream's response not sent on, in lower case:
    /// the defaults of the protocol, plus `*_hide_header`, less `*_pass_header`.
    pub hidden_fields: FieldNames,
    /// `*_pass_header` names `Date`, or `Server`: ours is not sent.
    pub passes_date: bool,
    pub passes_server: bool,
    /// `*_ignore_headers`
    pub ignored_fields: IgnoredFields,
    pub file_copy: Option<FileCopy>,
}

/// Where responses are kept as files: `*_store` and `*_store_access`.
#[derive(Debug, Clone)]
pub struct FileCopy {
    /// `None`: where `root` or `alias` has the request's path.
    pub path: Option<Template>,
    /// Permission bits of the files.
    pub mode: u32,
}

impl FileCopy {
    /// Permission bits of folders made on the way: whoever may read a file may
    /// also look into its folder.
    pub fn folder_mode(&self) -> u32 {
        self.mode | (self.mode & 0o444) >> 2
    }
}

/// The local address of connections to upstreams, from `*_bind`; port 0: any.
#[derive(Debug, Clone, PartialEq)]
pub enum Bind {
    To(SocketAddr),
    /// Known with each request; see [`Bind::parse`]. Empty: as the system likes.
    Named(Template),
}

impl Bind {
    /// `ADDRESS`, `ADDRESS:PORT`, `[ADDRESS]:PORT`; never a name.
    pub fn parse(text: &str) -> Option<SocketAddr> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(SocketAddr::new(address, 0));
        }
        text.parse().ok().filter(|it: &SocketAddr| it.port() != 0)
    }
}

/// A set of ways to fail: `*_next_upstream` and `*_cache_use_stale`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures {
    pub error: bool,
    pub timeout: bool,
    pub invalid_header: bool,
    /// Only of `*_cache_use_stale`.
    pub updating: bool,
    pub http_500: bool,
    pub http_502: bool,
    pub http_503: bool,
    pub http_504: bool,
    pub http_403: bool,
    pub http_404: bool,
    pub http_429: bool,
}

impl Failures {
    /// Is a response with `status` one of the failures named?
    pub fn has_status(&self, status: u16) -> bool {
        match status {
            500 => self.http_500,
            502 => self.http_502,
            503 => self.http_503,
            504 => self.http_504,
            403 => self.http_403,
            404 => self.http_404,
            429 => self.http_429,
            _ => false,
        }
    }
}

/// `*_ignore_headers`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IgnoredFields {
    pub x_accel_redirect: bool,
    pub x_accel_expires: bool,
    pub x_accel_limit_rate: bool,
    pub x_accel_buffering: bool,
    pub x_accel_charset: bool,
    pub expires: bool,
    pub cache_control: bool,
    pub set_cookie: bool,
    pub vary: bool,
}

#[cfg(test)]
mod tests {
    use super::Bind;

    #[test]
    fn an_address_to_bind_to_is_numeric() {
        let cases = [
            ("127.0.0.2", Some("127.0.0.2:0")),
            ("127.0.0.2:81", Some("127.0.0.2:81")),
            ("::1", Some("[::1]:0")),
            ("[::1]:81", Some("[::1]:81")),
            ("127.0.0.2:0", None),
            ("127.0.0.2:", None),
            ("127.0.0.2:65536", None),
            ("localhost", None),
            ("unix:/a", None),
            ("", None),
        ];
        for (text, wanted) in cases {
            let wanted = wanted.map(|it| it.parse().unwrap());
            assert_eq!(Bind::parse(text), wanted, "{text}");
        }
    }
}

/// Names of fields, asked for by each field of each response: most have a length that
/// none of these has.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FieldNames {
    names: Vec<Box<[u8]>>,
    /// A bit for each length; lengths above 62 share the last.
    lengths: u64,
}

impl FieldNames {
    /// Is `name`, in any case, one of them?
    #[inline]
    pub fn has(&self, name: &[u8]) -> bool {
        self.lengths & length_bit(name) != 0
            && self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

#[inline]
fn length_bit(name: &[u8]) -> u64 {
    1 << name.len().min(63)
}

impl FromIterator<Box<[u8]>> for FieldNames {
    fn from_iter<T: IntoIterator<Item = Box<[u8]>>>(names: T) -> Self {
        let names: Vec<Box<[u8]>> = names.into_iter().collect();
        FieldNames {
            lengths: names.iter().fold(0, |bits, name| bits | length_bit(name)),
            names,
        }
    }
}

impl std::fmt::Debug for FieldNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.names.fmt(f)
    }
}
