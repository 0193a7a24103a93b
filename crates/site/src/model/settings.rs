//! Everything that holds for a request once its location is known.
//!
//! Inheritance is resolved: each location has complete `Settings`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::byte_map::ByteMap;
use super::compression::CompressionSettings;
use super::ids::GroupId;
use super::limits::{AccessRule, AuthBasic, Limits, Satisfy};
use super::log::{AccessLog, ErrorLog, OpenLogFileCache};
use super::media_types::MediaTypes;
use super::network::Network;
use super::otel::OtelSettings;
use super::pass::{Pass, PassTarget};
use super::pattern::Pattern;
use super::resolver::NameResolution;
use super::rewrite::SetTarget;
use super::template::Template;

pub use transport_settings::{BodySettings, ConnectionSettings, InFileOnly, LingeringClose};

// Large: each field is the value that a directive, or a group of them, gives to a location.
#[derive(Debug, Clone)]
pub struct Settings {
    pub content: Content,
    pub files: FileSettings,
    pub body: BodySettings,
    pub connection: ConnectionSettings,
    pub headers: HeaderSettings,
    pub access: Vec<AccessRule>,
    /// Added to the error log when `access` refuses a request; empty: nothing.
    pub deny_reason: Box<str>,
    pub auth: Option<AuthBasic>,
    pub satisfy: Satisfy,
    /// `auth_request`; `None`: off.
    pub auth_request: Option<Arc<AuthRequest>>,
    pub own_access: OwnAccess,
    /// `mirror`; `None`: off.
    pub mirror: Option<Arc<Mirror>>,
    /// `post_action`: a request that is made when a response has been sent.
    pub post_action: Option<SubrequestTarget>,
    pub limits: Limits,
    /// `otel_*`; `None`: nothing is traced.
    pub otel: Option<Arc<OtelSettings>>,
    /// `early_hints`: if any of them is true, informational responses are sent on to the client.
    pub early_hints: Vec<Template>,
    /// `error_page`, in order.
    pub error_pages: Vec<ErrorPage>,
    pub recursive_error_pages: bool,
    pub redirects: RedirectSettings,
    /// Empty: `access_log off`.
    pub access_logs: Vec<AccessLog>,
    pub open_log_file_cache: Option<OpenLogFileCache>,
    pub error_logs: Vec<ErrorLog>,
    pub log_not_found: bool,
    pub log_subrequests: bool,
    pub compression: CompressionSettings,
    pub addition: AdditionSettings,
    /// `sub_filter`; `None` if not given.
    pub sub_filter: Option<Arc<SubFilter>>,
    pub esi: EsiSettings,
    pub ssi: SsiSettings,
    pub fragments: FragmentLimits,
    pub charset: CharsetSettings,
    /// `limit_rate`, bytes per second; empty or 0: no limit.
    pub limit_rate: Template,
    pub limit_rate_after: Template,
    /// `set_real_ip_from`, `real_ip_header`, `real_ip_recursive`.
    pub real_ip: RealIp,
    /// `resolver`, `resolver_timeout`
    pub names: NameResolution,
    /// `slice` in bytes; 0: off.
    pub slice_bytes: u64,
    /// `valid_referers`; `None` if not given.
    pub valid_referers: Option<ValidReferers>,
    /// `secure_link`, `secure_link_md5`, `secure_link_secret`; `None` if not given in full.
    pub secure_link: Option<Box<SecureLink>>,
}

/// A location's own access rules. Lines of the blocks around it do not count: a list for the whole
/// site is not written with the operator's locations in mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnAccess {
    /// `access` is of the location itself.
    pub has_rules: bool,
    pub credentials: OwnCredentials,
}

/// The credentials that a location itself demands of all clients, or of all that none of its own
/// `allow` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnCredentials {
    NotAsked,
    /// `auth_request`, or one of several with `satisfy any`.
    Asked,
    /// `auth_basic`, of all.
    PasswordAsked,
}

/// The source of a response.
#[derive(Debug, Clone)]
pub enum Content {
    /// Files below `root` or `alias`, index files, listings.
    Files,
    /// An upstream: `fastcgi_pass`, `proxy_pass`, `memcached_pass`.
    Pass(Arc<Pass>),
    /// A function of the server, which a directive such as `empty_gif` chooses: the name of the
    /// directive, one of [`content_handlers`](crate::directives::content_handlers).
    Handler(&'static str),
    /// `cache_purge_api`
    PurgeApi(PurgeApi),
    /// `dashboard`
    Dashboard(Dashboard),
}

/// `cache_purge_api`, with its access settings beside `allow`, `deny` and `auth_*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeApi {
    /// `cache_purge_token`: the file with the hashes of tokens, absolute.
    pub tokens: Option<PathBuf>,
}

/// `dashboard`, with its settings for who may purge there, and see it from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dashboard {
    /// `cache_purge_token`: the file with the hashes of tokens, absolute.
    pub tokens: Option<PathBuf>,
}

impl Content {
    /// Are requests passed on over TLS?
    pub fn is_https(&self) -> bool {
        match self {
            Content::Pass(pass) => pass.proxy().is_some_and(|proxy| proxy.is_tls),
            _ => false,
        }
    }

    /// The group to which requests are passed on, if it is known without variables.
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Content::Pass(pass) => match pass.target {
                PassTarget::Group(id) => Some(id),
                PassTarget::Variable(_) => None,
            },
            _ => None,
        }
    }
}

/// File extension in lower case to media type.
pub type TypeTable = ByteMap<Box<[u8]>>;

#[derive(Debug, Clone)]
pub struct FileSettings {
    /// `root` (path of the request is appended) or `alias` (the location's
    /// prefix is replaced).
    pub root: Root,
    pub index: Vec<Template>,
    pub try_files: Option<Arc<TryFiles>>,
    /// `types`: file extension in lower case to media type.
    pub types: Arc<TypeTable>,
    pub default_type: Box<[u8]>,
    pub etag: bool,
    /// `None`: the date of a file has to be the same, and a stored response may be older.
    pub if_modified_since: Option<IfModifiedSince>,
    pub max_ranges: Option<usize>,
    pub autoindex: Autoindex,
    pub random_index: bool,
    pub open_file_cache: Option<OpenFileCache>,
    pub sendfile: bool,
    /// `disable_symlinks`; `None`: off.
    pub disable_symlinks: Option<DisableSymlinks>,
}

/// `disable_symlinks on | if_not_owner [from=PATH]`
#[derive(Debug, Clone)]
pub struct DisableSymlinks {
    pub if_not_owner: bool,
    /// Links in this beginning of a path are followed.
    pub from: Template,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    Root(Template),
    Alias(Template),
}

/// `try_files FILE ... URI | =CODE`.
#[derive(Debug, Clone)]
pub struct TryFiles {
    pub candidates: Vec<TryFile>,
    pub fallback: TryFallback,
}

#[derive(Debug, Clone)]
pub struct TryFile {
    pub path: Template,
    /// Written with a trailing slash: a directory is looked for.
    pub is_directory: bool,
}

#[derive(Debug, Clone)]
pub enum TryFallback {
    /// Path, perhaps with arguments, or `@name`.
    Uri(Template),
    Status(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfModifiedSince {
    Off,
    Exact,
    Before,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autoindex {
    pub enabled: bool,
    pub exact_size: bool,
    pub localtime: bool,
    pub format: AutoindexFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoindexFormat {
    Html,
    Json,
    Jsonp,
    Xml,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFileCache {
    pub max: usize,
    pub inactive: Duration,
    /// `open_file_cache_valid`
    pub valid: Duration,
    pub min_uses: u32,
    pub errors: bool,
}

#[derive(Debug, Clone)]
pub struct HeaderSettings {
    /// `more_set_headers` and `more_clear_headers`, in the order in which they are applied.
    pub edits: Vec<FieldEdit>,
    pub add: Vec<AddHeader>,
    /// `add_trailer`
    pub trailers: Vec<AddHeader>,
    pub expires: Expires,
    pub server_tokens: ServerTokens,
    /// `cache_status_header`: the field `Cache-Status` of RFC 9211.
    pub cache_status: bool,
    /// `userid*`; `None`: off.
    pub user_id: Option<Box<UserIdSettings>>,
}

/// The cookie of `userid`.
#[derive(Debug, Clone)]
pub struct UserIdSettings {
    /// The kind of identifiers that are given out; `None`: none, and those of clients are logged.
    pub version: Option<UserIdVersion>,
    pub name: Box<[u8]>,
    pub expires: UserIdExpires,
    /// Domain, path and flags, as they stand behind the value.
    pub attributes: Box<[u8]>,
    /// The field `P3P`; empty: none.
    pub p3p: Box<[u8]>,
    /// A character in place of padding, without which a client gets its cookie again.
    pub mark: Option<u8>,
    /// Instead of the server's address.
    pub service: Option<u32>,
    /// `$uid_reset`, if `map` or `set` makes it.
    pub reset: Option<Template>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserIdVersion {
    One,
    Two,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserIdExpires {
    /// With the browser.
    Session,
    Max,
    After(Duration),
}

#[derive(Clone)]
pub struct AddHeader {
    /// Shared by all responses with this field, like `constant`.
    pub name: Bytes,
    pub value: Template,
    /// The value where it holds no variable.
    pub constant: Option<Bytes>,
    pub always: bool,
}

/// A field of `more_set_headers` or `more_clear_headers`: the change to the response's field of
/// that name.
#[derive(Debug, Clone)]
pub struct FieldEdit {
    pub name: Bytes,
    pub change: FieldChange,
    /// The statuses for which it holds; empty: all.
    pub statuses: Vec<u16>,
    /// The media types for which it holds; empty: all.
    pub types: Vec<Box<[u8]>>,
}

#[derive(Debug, Clone)]
pub enum FieldChange {
    /// One field with this value is there afterwards; none, if the value is empty.
    Set(Template),
    /// All fields whose names begin with the name are removed.
    RemoveFamily,
}

/// Leaves out `constant`, which repeats the value.
impl std::fmt::Debug for AddHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddHeader")
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("value", &self.value)
            .field("always", &self.always)
            .finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expires {
    Off,
    Epoch,
    Max,
    /// Seconds from now.
    Access(i64),
    /// Seconds from the last modification.
    Modified(i64),
    /// Seconds since midnight, local time.
    Daily(u64),
    /// A value with variables, which is read at run time.
    Variable {
        value: Template,
        modified: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTokens {
    On,
    Off,
    /// `build` is shown as `on`.
    Build,
    /// A literal or variable text.
    Text(Template),
}

/// `error_page CODE ... [=[RESPONSE]] URI`.
#[derive(Debug, Clone)]
pub struct ErrorPage {
    pub statuses: Vec<u16>,
    pub answer: ErrorAnswer,
    pub target: Template,
}

/// The status with which an error page is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorAnswer {
    /// The status of the error.
    Same,
    /// `=CODE`
    Status(u16),
    /// `=`: the status of the page itself.
    OfPage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedirectSettings {
    pub absolute: bool,
    pub port: bool,
    pub server_name: bool,
    /// `msie_refresh`: old browsers get a page that leads on.
    pub msie_refresh: bool,
}

/// `add_before_body`, `add_after_body` and `addition_types`.
#[derive(Debug, Clone)]
pub struct AdditionSettings {
    /// Paths of this site; `None` if nothing is added.
    pub before: Option<Template>,
    pub after: Option<Template>,
    pub types: Arc<MediaTypes>,
}

/// `sub_filter`, `sub_filter_once`, `sub_filter_types` and `sub_filter_last_modified`.
#[derive(Debug)]
pub struct SubFilter {
    pub pairs: Vec<SubFilterPair>,
    /// Each string is replaced once.
    pub once: bool,
    pub types: Arc<MediaTypes>,
    /// `Last-Modified` and a weak `ETag` are kept.
    pub last_modified: bool,
}

#[derive(Debug)]
pub struct SubFilterPair {
    pub string: Template,
    pub replacement: Template,
}

/// `auth_request URI` and `auth_request_set`.
#[derive(Debug, Clone)]
pub struct AuthRequest {
    pub target: SubrequestTarget,
    /// Variables that are set from the subrequest.
    pub set: Vec<(SetTarget, Template)>,
}

/// `mirror URI` and `mirror_request_body`.
#[derive(Debug, Clone)]
pub struct Mirror {
    pub targets: Vec<SubrequestTarget>,
    /// The body is read completely and sent with the copies.
    pub with_body: bool,
}

/// A path of this site that the server itself requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubrequestTarget {
    pub path: Box<[u8]>,
    /// The part after `?`; `None` if the URI has no `?`.
    pub args: Option<Box<[u8]>>,
}

/// `esi*`
#[derive(Debug, Clone)]
pub struct EsiSettings {
    pub mode: EsiMode,
    /// The media types that are pages with `always`.
    pub types: Arc<MediaTypes>,
    /// Fragments of fragments.
    pub max_depth: u8,
    /// Fragments of one page, at all depths together.
    pub max_includes: u32,
    /// How long the head of a fragment is waited for.
    pub timeout: Duration,
}

impl EsiSettings {
    /// Pages may be put together.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.mode != EsiMode::Off
    }
}

/// The choice of responses that are pages with Edge Side Includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EsiMode {
    Off,
    /// Responses that ask for it.
    On,
    /// All.
    Always,
}

/// `ssi*`
#[derive(Debug, Clone)]
pub struct SsiSettings {
    pub enabled: bool,
    pub types: Arc<MediaTypes>,
    /// `ssi_last_modified`
    pub last_modified: bool,
    pub silent_errors: bool,
    /// Parts of one page, at all depths together.
    pub max_includes: u32,
    /// `subrequest_output_buffer_size`
    pub output_buffer_bytes: usize,
}

/// The budget that all fragments of a page share: `fragments_max_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentLimits {
    pub bytes: u64,
    /// Upstreams are asked so often.
    pub fetches: u32,
    /// How long the page waits.
    pub time: Duration,
}

#[derive(Debug, Clone)]
pub struct CharsetSettings {
    /// `charset`; empty: off.
    pub charset: Template,
    /// `source_charset`: the charset of bodies; empty: unknown.
    pub source: Box<[u8]>,
    /// `override_charset`
    pub overrides: bool,
    pub types: Arc<MediaTypes>,
}

/// `charset_map FROM TO { ... }`, used in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CharsetMap {
    pub from: Box<[u8]>,
    pub to: Box<[u8]>,
    /// A byte of the first charset, and the same character in the second: one byte, or a
    /// character of utf-8.
    pub pairs: Vec<(u8, Box<[u8]>)>,
}

impl CharsetMap {
    pub fn is_to_utf8(&self) -> bool {
        self.to.eq_ignore_ascii_case(b"utf-8")
    }
}

#[derive(Debug, Clone)]
pub struct RealIp {
    pub from: Vec<Network>,
    pub header: RealIpHeader,
    pub recursive: bool,
    /// `trusted_proxy`: scheme and host are taken from X-Forwarded-Proto and
    /// X-Forwarded-Host as well.
    pub believes_forwarded: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RealIpHeader {
    Field(Box<[u8]>),
    ProxyProtocol,
}

/// A host name and the beginning of a path.
pub type RefererName = (Box<[u8]>, Box<[u8]>);

#[derive(Debug, Clone)]
pub struct ValidReferers {
    pub none: bool,
    pub blocked: bool,
    /// Host names, which may begin with `*.` or end with `.*`, and a path prefix.
    pub names: Vec<RefererName>,
    pub patterns: Vec<Arc<Pattern>>,
    /// Names of the server that are patterns: only the host is compared.
    pub host_patterns: Vec<Arc<Pattern>>,
}

/// The proof that a link needs.
#[derive(Debug, Clone)]
pub enum SecureLink {
    /// `link` is the digest of `text`, perhaps with an end behind a comma.
    Signed { link: Template, text: Template },
    /// A part of the path is the digest of the rest and of this.
    Secret(Box<[u8]>),
}
