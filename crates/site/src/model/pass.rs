//! How a location passes requests on (`fastcgi_pass`, `proxy_pass`, `memcached_pass`): the
//! settings that all protocols share, and those of a single one.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::cache::CacheRules;
use super::failures::Failures;
use super::field_names::FieldNames;
use super::ids::{GroupId, TlsId};
use super::pattern::Pattern;
use super::server_tls::CertificateCache;
use super::template::{Template, Variable};

/// The upstream that a `*_pass` names.
#[derive(Debug, Clone)]
pub enum PassTarget {
    Group(GroupId),
    /// With variables: the name of a group, an address or `unix:` path.
    Variable(Template),
}

/// A `*_pass` and its settings: those of all protocols, and those of one protocol.
#[derive(Debug, Clone)]
pub struct Pass {
    pub target: PassTarget,
    pub exchange: Exchange,
    pub cache: Option<Arc<CacheRules>>,
    pub protocol: Protocol,
}

/// The protocol of the upstream, with its own settings.
#[derive(Debug, Clone)]
pub enum Protocol {
    FastCgi(FastCgi),
    Http(Box<Proxy>),
    Memcached(Memcached),
}

impl Pass {
    /// The name of the directive, for messages.
    pub fn directive(&self) -> &'static str {
        match self.protocol {
            Protocol::FastCgi(_) => "fastcgi_pass",
            Protocol::Http(_) => "proxy_pass",
            Protocol::Memcached(_) => "memcached_pass",
        }
    }

    /// The scheme before an upstream's address in log lines.
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

/// The settings that only `fastcgi_*` has.
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

/// The settings that only `memcached_*` has.
#[derive(Debug, Clone)]
pub struct Memcached {
    /// `$memcached_key`
    pub key: Variable,
    /// `memcached_gzip_flag`: a value with one of these bits is compressed.
    pub gzip_flags: u32,
}

/// The settings that only `proxy_*` has.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// `https://`
    pub is_tls: bool,
    /// `proxy_ssl_*`, if `is_tls`.
    pub tls: Option<TlsId>,
    /// `proxy_ssl_name`
    pub tls_name: Template,
    pub version: ProxyVersion,
    /// How the request target is made.
    pub uri: ProxyUri,
    /// `$proxy_host` and `$proxy_port`, where `proxy_pass` has no variables.
    pub host: Box<[u8]>,
    pub port: Box<[u8]>,
    /// `proxy_set_header`, with the defaults that it does not name. These fields replace the
    /// client's fields of the same names.
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
    /// Is any field of responses changed?
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
    pub identity: Option<TlsIdentity>,
    /// `proxy_ssl_password_file`
    pub password_file: Option<PathBuf>,
    /// `proxy_ssl_protocols`
    pub tls12: bool,
    pub tls13: bool,
    /// `proxy_ssl_server_name`
    pub send_name: bool,
    /// `proxy_ssl_session_reuse`
    pub reuse_sessions: bool,
}

/// The certificate that an upstream is shown, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsIdentity {
    Files {
        chain: PathBuf,
        key: PathBuf,
    },
    /// The names of the files have variables.
    OfRequest {
        chain: Template,
        key: Template,
        /// The folder that relative names begin at.
        folder: PathBuf,
        /// `proxy_ssl_certificate_cache`; `None`: they are read for each connection.
        cache: Option<CertificateCache>,
    },
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

/// How the path of the request is changed for the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyUri {
    /// `proxy_pass` has none: the target as received, or the path as changed.
    Kept,
    /// Replaces the location's prefix, the first `prefix_bytes` of the path.
    Replaces { uri: Box<[u8]>, prefix_bytes: usize },
    /// `proxy_pass` has variables: its own path is sent, if it has one.
    OfTarget,
}

/// `proxy_set_header NAME VALUE`; a field with an empty value is not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct SetField {
    /// The name in the case in which it was written.
    pub name: Box<[u8]>,
    pub value: Template,
}

/// A text to find and its replacement: `proxy_redirect`, `proxy_cookie_domain`,
/// `proxy_cookie_path`.
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
// Large: each field is the value of a directive.
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
    /// `*_buffers`: bytes kept in memory; the rest of a response is written to a file.
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
    /// 0: no limit.
    pub next_tries: usize,
    /// Zero: no limit.
    pub next_timeout: Duration,
    /// Fields of the upstream's response not sent on, in lower case:
    /// the defaults of the protocol, plus `*_hide_header`, less `*_pass_header`.
    pub hidden_fields: FieldNames,
    /// `cache_purge_fields`: may a response purge? `None`: if it comes from an own PHP pool.
    pub purge_fields: Option<bool>,
    /// `cache_repeat`
    pub repeat: Option<RepeatedRequest>,
    /// `cache_litespeed`: the application is informed of a LiteSpeed cache.
    pub litespeed: bool,
    /// `*_pass_header` names `Date` (or `Server`): the upstream's is sent instead of ours.
    pub passes_date: bool,
    pub passes_server: bool,
    /// `*_ignore_headers`
    pub ignored_fields: IgnoredFields,
    pub file_copy: Option<FileCopy>,
}

/// The files that responses are copied to: `*_store` and `*_store_access`.
#[derive(Debug, Clone)]
pub struct FileCopy {
    /// `None`: the file that `root` or `alias` gives for the path.
    pub path: Option<Template>,
    /// Permission bits of the files.
    pub mode: u32,
}

impl FileCopy {
    /// Permission bits of directories that have to be made: accounts that may read a file may
    /// search its directory.
    pub fn folder_mode(&self) -> u32 {
        self.mode | (self.mode & 0o444) >> 2
    }
}

/// The local address of connections to upstreams, from `*_bind`; port 0: any.
#[derive(Debug, Clone, PartialEq)]
pub enum Bind {
    To(SocketAddr),
    /// Computed for each request; see [`Bind::parse`]. Empty: the system chooses.
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

/// `cache_repeat`: a request that the server makes again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedRequest {
    /// A path, and arguments.
    pub target: String,
    pub every: Duration,
}
