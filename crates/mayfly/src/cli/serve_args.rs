//! The arguments of `mayfly serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};

use command_line::values::time;

// Large: each is an option of the command line.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(group = ArgGroup::new("https").args(["domain", "tls"]).multiple(true))]
pub struct ServeArgs {
    /// The folder of the site, or http://HOST:PORT of a server to cache for
    #[arg(value_name = "DIR|URL")]
    pub dir: PathBuf,
    /// Address to listen on [default: 127.0.0.1:8080, with --domain 443, with --tls 8443]; may be given more than once
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<String>,
    /// Serve this name over HTTPS, for all networks; may be given more than once
    ///
    /// The certificate comes from Let's Encrypt, whose terms of service you accept by this option.
    /// The server renews it before it expires. Let's Encrypt needs port 80, which redirects to HTTPS,
    /// and the name must lead to this machine. Keys and certificates are kept in /var/lib/mayfly, or
    /// in ~/.local/state/mayfly if another account than root starts the server.
    #[arg(long, value_name = "NAME")]
    pub domain: Vec<String>,
    /// Address to listen on without TLS, with --domain [default: 80]; may be given more than once
    #[arg(
        long,
        value_name = "ADDR:PORT",
        requires = "domain",
        conflicts_with = "tls"
    )]
    pub listen_http: Vec<String>,
    /// The e-mail address that the issuer of certificates may write to
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "domain",
        conflicts_with = "tls"
    )]
    pub acme_email: Option<String>,
    /// The directory URL of another issuer than Let's Encrypt
    #[arg(
        long,
        value_name = "URL",
        requires = "domain",
        conflicts_with_all = ["staging", "tls"]
    )]
    pub acme_directory: Option<String>,
    /// A file with the authorities that verify the issuer's own certificate
    #[arg(long, value_name = "FILE", requires = "acme_directory")]
    pub acme_ca: Option<PathBuf>,
    /// Folder for keys and certificates, with a folder for each issuer and one for --tls in it
    #[arg(long, value_name = "FOLDER", requires = "https")]
    pub acme_state: Option<PathBuf>,
    /// Get test certificates, which browsers do not trust
    #[arg(long, requires = "domain", conflicts_with = "tls")]
    pub staging: bool,
    /// Serve over HTTPS for development: for browsers on this machine alone, on port 8443
    ///
    /// The certificate is for localhost. An authority of your own signs it, which is made once and can sign for
    /// localhost and .test only; the server shows at its start how to trust it. The authority is kept in the folder for
    /// keys and certificates of --domain. Addresses that the network reaches are refused.
    #[arg(long, conflicts_with = "domain")]
    pub tls: bool,
    /// How long a page is fresh in memory at most [default: 1s]; 0 keeps none
    ///
    /// No visitor sees a page older than this, with four exceptions. A page that is being renewed is shown for up to 10
    /// s more, so that visitors need not wait. While PHP fails, or more than 10 visitors wait for it, the last copy is
    /// shown for up to an hour. Crawlers get copies of up to a minute. A MediaWiki that names this server in
    /// $wgCdnServers reports when a page changes, and its pages are kept for the lifetime that MediaWiki sets. Wrong
    /// addresses of known applications are kept like pages, for 5 minutes at most, until a request writes. Without this
    /// option, pages that the plug-in for WordPress vouches for are kept for 8 hours (--wordpress-plugin).
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub ttl: Option<Duration>,
    /// Put Mayfly's plug-in into WordPress: pages are kept for hours, and a change is seen at once
    ///
    /// It is a must-use plug-in: mayfly.php and the folder mayfly in wp-content/mu-plugins. A later
    /// start with this option brings them up to date. Without them WordPress is as it was. If other
    /// files have these names, nothing is written. With --print-config nothing is written either.
    #[arg(long)]
    pub wordpress_plugin: bool,
    /// Find out what pages are made of, and keep them until it changes
    ///
    /// PHP is started with a small library that reads its questions to the database. `mayfly explain` shows what a page
    /// was made of. With watch nothing is served differently: the numbers show how many pages could have been kept, and
    /// whether any would have been old. The database is asked when its tables were written, with the account that the
    /// application's settings name in plain words. Elsewhere the start prints the option to give (--learn-account). With
    /// auto, pages are kept once pages with such addresses were made again 200 times while nothing had changed, and were
    /// the same; the first that is another ends that for a day. Without this option a WordPress is learned (on) whose
    /// settings name the account in plain words, unless Mayfly's plug-in is in it. Any other PHP site is learned with
    /// auto.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub learn: Option<LearnMode>,
    /// Ask the database about its tables with the account in this file
    ///
    /// For --learn, where the application's settings do not name the account in plain words. The file has one line: the
    /// server as PHP reaches it, the user and the password. Only you should be able to read it.
    #[arg(long, value_name = "FILE", requires = "learn")]
    pub learn_account: Option<PathBuf>,
    /// Share pages that begin a session for every visitor, if they do not depend on it
    ///
    /// The server finds out by asking PHP as several guests would. A Cache-Control that the site sends with every page
    /// alike (MyBB's private, Drupal's no-cache) does not count; with strict it does. With off, a visitor who is given
    /// a session gets pages of their own. It does not concern WordPress and MediaWiki, whose sessions are known.
    #[arg(long, value_name = "MODE", default_value = "on")]
    pub guest_sessions: GuestSessionsMode,
    /// WordPress takes this address for its home [default: the one it is served at]
    ///
    /// For a copy of a live site, whose pages, redirects and login lead to the live address. WordPress's files and
    /// its database stay as they are: PHP reads a file before each script, which is in the folder of the control
    /// socket and is removed at the end. Addresses within the texts of pages stay.
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub home: Option<String>,
    /// How many PHP workers run: PHP makes this number of pages at the same time
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = workers)]
    pub workers: Workers,
    /// The php-fpm to run [default: the one that is found on the machine]
    #[arg(long, value_name = "BINARY")]
    pub php: Option<PathBuf>,
    /// The account that runs PHP where root starts the server [default: www-data, else nobody]
    #[arg(long, value_name = "ACCOUNT")]
    pub php_user: Option<String>,
    /// A proxy in front of this server (address, network, unix:), whose fields X-Forwarded-* are
    /// believed; may be given more than once
    #[arg(long, value_name = "ADDRESS")]
    pub behind: Vec<String>,
    /// Log requests to this file, or to stderr [default: no log]
    ///
    /// A line has the client, the time, the request, the status, the bytes sent, how long it took, the cache status
    /// (HIT, MISS, ...) and the browser. Lines are written once a second. SIGUSR1 makes the server open the file anew,
    /// after logrotate moved it.
    #[arg(long, value_name = "FILE|stderr")]
    pub access_log: Option<PathBuf>,
    /// Show the server's numbers and its stored pages in a browser on this machine [default: 127.0.0.1:8090]
    ///
    /// The server prints the address at its start. If it prints on a terminal, the address has a token in it, which
    /// allows purges and is new at each start. /metrics is for Prometheus. Addresses that the network reaches are
    /// refused.
    #[arg(
        long,
        value_name = "ADDR:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = crate::commands::serve_dashboard::PLACE
    )]
    pub dashboard: Option<String>,
    /// Print a configuration that does the same with -c, and exit
    #[arg(long)]
    pub print_config: bool,
    /// With --print-config: for the service of the package, as /etc/mayfly/mayfly.conf
    ///
    /// It listens on port 80 at all addresses without --listen and --domain, logs to /var/log/mayfly, and includes
    /// conf.d/*.conf and sites/*.conf.
    #[arg(long, requires = "print_config")]
    pub service: bool,
}

/// `--learn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LearnMode {
    On,
    Auto,
    Watch,
    Off,
}

/// `--guest-sessions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GuestSessionsMode {
    On,
    Strict,
    Off,
}

impl GuestSessionsMode {
    /// Returns the value for `cache_guest_sessions`.
    pub fn written(self) -> serve_folder::GuestSessions {
        use serve_folder::GuestSessions;
        match self {
            GuestSessionsMode::On => GuestSessions::Uniform,
            GuestSessionsMode::Strict => GuestSessions::On,
            GuestSessionsMode::Off => GuestSessions::Off,
        }
    }
}

/// `--workers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    Auto,
    Count(u32),
}

fn workers(text: &str) -> Result<Workers, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Workers::Auto),
        (_, Ok(count @ 1..)) => Ok(Workers::Count(count)),
        _ => Err("expected a number from 1, or auto".to_owned()),
    }
}
