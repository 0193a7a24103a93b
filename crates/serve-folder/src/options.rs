//! The options of the command line of `mayfly serve`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long a page is kept without an application that sends purges.
pub const DEFAULT_TTL: Duration = Duration::from_secs(1);

/// `--learn`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnMode {
    /// Pages are kept.
    On,
    /// They are, once pages with such addresses were the same often enough.
    Auto,
    /// It is reported.
    Watch,
}

/// The account by which a database is asked about its tables.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseLogin {
    /// `unix:PATH` or `IP:PORT`.
    pub server: String,
    pub user: String,
    /// `None`: it is left out of the configuration, which people see.
    pub password: Option<String>,
    /// The file with the setting.
    pub settings: String,
}

impl fmt::Debug for DatabaseLogin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "DatabaseLogin({} {})", self.server, self.user)
    }
}

/// `--guest-sessions`: whether a session that every visitor is given makes a page personal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestSessions {
    Off,
    /// It does not by itself.
    On,
    /// It does not, and neither does a `Cache-Control` that the site sends with every page
    /// alike.
    Uniform,
}

/// The options of the command line.
// Large: each is an option of `mayfly serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Arguments of `listen`, one each.
    pub listen: Vec<String>,
    /// How long a page is kept; zero keeps none.
    pub ttl: Duration,
    /// How long a page is kept that WordPress's plug-in vouches for, if that is another time.
    pub vouched_ttl: Option<Duration>,
    /// `--learn`: the statements and files that pages are made of are found out.
    pub learn: Option<LearnMode>,
    /// The account with which Mayfly asks the database, if that is known.
    pub learn_database: Option<DatabaseLogin>,
    /// The account with which its object cache is followed, if it needs one and that is known.
    pub learn_object_cache: Option<DatabaseLogin>,
    pub guest_sessions: GuestSessions,
    /// Pages are kept below this folder.
    pub cache_folder: PathBuf,
    /// PHP workers; `None` lets the machine decide.
    pub workers: Option<u32>,
    /// The php-fpm binary; `None` finds one.
    pub php: Option<PathBuf>,
    /// A file that PHP reads before each script.
    pub prepend: Option<PathBuf>,
    /// The account that runs PHP, for a program started by root.
    pub user: Option<String>,
    /// The machine's mail program gains rights when it is started.
    pub mail_gains_rights: bool,
    /// The log of requests; `None` logs none.
    pub access_log: Option<AccessLogPlace>,
    /// Addresses of proxies in front, whose word on visitors counts.
    pub behind: Vec<String>,
    /// `--domain` and its options.
    pub https: Option<Https>,
    /// `--tls`: the certificate for this machine's own names, with its key in the same file.
    pub local_certificate: Option<PathBuf>,
    pub dashboard: Option<Dashboard>,
    /// For the configuration file of the package's service: its logs and includes.
    pub service: bool,
}

/// The log of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogPlace {
    /// An absolute path.
    File(PathBuf),
    Stderr,
}

/// A server for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard {
    /// A loopback address.
    pub place: SocketAddr,
    /// The file with the hashes of tokens.
    pub tokens: PathBuf,
}

/// A site on the internet: HTTPS for its names, with certificates that come by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Https {
    /// At least one.
    pub domains: Vec<String>,
    /// The addresses of the listeners without TLS.
    pub listen_http: Vec<String>,
    /// The name of the issuer, and the URL of its directory.
    pub issuer: String,
    pub directory: String,
    pub email: Option<String>,
    /// The authorities that the issuer's own certificate is verified with.
    pub authorities: Option<PathBuf>,
    /// The folder for keys and certificates.
    pub state: PathBuf,
    /// Browsers trust the issuer, so that they may get a field that demands HTTPS.
    pub is_trusted: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            listen: vec!["127.0.0.1:8080".to_owned()],
            ttl: DEFAULT_TTL,
            vouched_ttl: None,
            learn: None,
            learn_database: None,
            learn_object_cache: None,
            guest_sessions: GuestSessions::Uniform,
            cache_folder: "/var/cache/mayfly".into(),
            workers: None,
            php: None,
            prepend: None,
            user: None,
            mail_gains_rights: false,
            access_log: None,
            behind: Vec::new(),
            https: None,
            local_certificate: None,
            dashboard: None,
            service: false,
        }
    }
}
