//! `mayfly serve DIR | URL`: from a folder or an HTTP server to a configuration, which is then run like any other;
//! in the foreground, with a line about the found site and how to see it work.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serve_folder::wordpress_plugin::{MustUse, State};
use serve_folder::{
    AccessLogPlace, DEFAULT_TTL, Dashboard, DatabaseLogin, DetectedSite, Files, Folder, Https,
    Kind, ServeOptions, UpstreamUrl, WatchedFolder, account_of_file, database_login, detect,
    object_cache_login, write_config, write_upstream_config,
};

use crate::cli::{LearnMode, ServeArgs, Workers};
use crate::commands::local_authority::{self, LocalCertificate};
use crate::commands::serve_dashboard;
use crate::commands::serve_home::{self, Home};
use crate::commands::serve_htaccess;
use crate::config::{Invocation, MADE_CONF};
use crate::paths;
use crate::processes::account;
use system_error::SystemError;

/// The site to serve, and the text to print about it.
pub struct Serve {
    /// The configuration.
    pub text: String,
    /// The folder or the address that is served.
    pub served: PathBuf,
    /// The name of the site, and its place.
    what: String,
    /// The maker of the pages, for messages.
    maker: &'static str,
    urls: Vec<String>,
    listen: Vec<String>,
    is_cached: bool,
    notes: Vec<String>,
    access_log: Option<AccessLogPlace>,
    pub dashboard: Option<Dashboard>,
    pub home: Option<Home>,
    /// It may lead visitors to another address.
    is_wordpress: bool,
}

/// The default address of `serve`.
const LISTEN: &str = "127.0.0.1:8080";
/// The default address if the upstream listens on [`LISTEN`].
const LISTEN_BESIDE: &str = "127.0.0.1:8081";
/// How long WordPress's plug-in vouches for a page. Forms of visitors hold tokens that count for twelve hours at
/// least.
const VOUCHED_TTL: Duration = Duration::from_secs(8 * 3600);
/// The port of `--tls`.
const LOCAL_PORT: &str = "8443";

/// Looks at the folder and writes the configuration.
///
/// # Errors
/// The reason why there is nothing to serve.
pub fn prepare(args: &ServeArgs) -> Result<Serve, String> {
    let shown = args.dir.display().to_string();
    if UpstreamUrl::is_one(&shown) {
        return prepare_upstream(args, &shown);
    }
    let dir = paths::from_here(args.dir.clone());
    let resolved = std::fs::canonicalize(&dir)
        .map_err(|error| format!("{shown} cannot be opened ({})", SystemError(&error)))?;
    // A link is followed for each request: a deployment that switches /srv/current is seen at once.
    let is_linked = leads_through_a_link(&dir);
    let dir = if is_linked { dir } else { resolved };
    if !dir.is_dir() {
        return Err(format!("{shown} is not a folder"));
    }
    // Looks at the names and at their targets.
    std::fs::read_dir(&dir)
        .and_then(|_| std::fs::metadata(dir.join(".")))
        .map_err(|error| format!("{shown} cannot be read ({})", SystemError(&error)))?;
    let files = WatchedFolder::new(Folder(dir.clone()));
    let mut found = detect(&files);
    found.is_linked = is_linked;
    if let (Kind::Static, Some(refused)) = (found.kind, files.refused()) {
        return Err(format!(
            "{refused}, so the kind of the site is unknown; this account needs the right to \
             read the folder and what is in it"
        ));
    }
    let document_root = match found.document_root {
        "" => dir.clone(),
        below => dir.join(below),
    };
    let user = if account::is_root() {
        Some(who_runs_php(args, &document_root)?)
    } else if args.php_user.is_some() {
        return Err("--php-user is for a server that root starts: only root may start PHP as another account".to_owned());
    } else {
        None
    };
    let https = https(args)?;
    let listen = listens(args, https.as_ref());
    let local = local_certificate(args, &listen)?;
    let dashboard = dashboard(args, &listen)?;
    let urls = urls(args, &listen, https.as_ref());
    let home = match &args.home {
        Some(typed) => Some(serve_home::prepare(
            typed,
            urls.first().map(String::as_str),
            &found,
        )?),
        None => None,
    };
    let must_use = must_use(&found, &document_root);
    let has_plugin = match (&must_use, args.wordpress_plugin) {
        (Some(plugin), true) => !matches!(plugin.state(), State::Foreign(_)),
        (Some(plugin), false) => matches!(plugin.state(), State::Current | State::Other),
        (None, true) => return Err(no_folder_for_plugin(&shown, &found)),
        (None, false) => false,
    };
    let learned = learned_site(args, (&files, &document_root), &found, has_plugin)?;
    let options = ServeOptions {
        listen: listen.clone(),
        ttl: args.ttl.unwrap_or(DEFAULT_TTL),
        vouched_ttl: (has_plugin && args.ttl.is_none()).then_some(VOUCHED_TTL),
        learn: learned.as_ref().map(|learned| learned.mode),
        learn_database: learned.as_ref().and_then(|it| it.login.clone().ok()),
        learn_object_cache: learned.as_ref().and_then(|it| it.object_cache.clone()),
        guest_sessions: args.guest_sessions.written(),
        cache_folder: paths::cache(),
        workers: match args.workers {
            Workers::Auto => None,
            Workers::Count(count) => Some(count),
        },
        php: args.php.clone().map(paths::from_here),
        prepend: home.as_ref().map(|home| home.file.clone()),
        user,
        mail_gains_rights: mail_gains_rights(),
        access_log: access_log(args),
        behind: args.behind.clone(),
        https: https.clone(),
        local_certificate: local.as_ref().map(|local| local.certificate.clone()),
        dashboard: dashboard.clone(),
        service: args.service,
    };
    if found.kind != Kind::Static && !args.print_config {
        php_pool::find_php_fpm(options.php.as_deref()).map_err(|error| error.to_string())?;
    }
    let mut notes: Vec<String> = found.notes().iter().map(|&note| note.to_owned()).collect();
    notes.extend(files.refused().map(|refused| format!("{refused}.")));
    notes.extend(local.as_ref().map(how_to_trust));
    notes.extend(learned.as_ref().map(|learned| learned.note(&document_root)));
    notes.extend(serve_htaccess::notes(&document_root));
    let text = write_config(&found, &dir, &options).map_err(|error| error.to_string())?;
    let is_cached = found.kind != Kind::Static && !options.ttl.is_zero();
    let lacks_index = ["index.php", "index.html"]
        .iter()
        .all(|name| found.front_controller.is_none() && !document_root.join(name).exists());
    if lacks_index {
        notes.insert(
            0,
            "there is no index.php or index.html, so / answers 403.".to_owned(),
        );
    }
    if let Some(plugin) = &must_use {
        notes.push(plugin_note(args, plugin, &options)?);
    }
    Ok(Serve {
        text,
        served: dir,
        what: what_and_where(&found, &document_root),
        maker: "PHP",
        urls,
        listen,
        is_cached,
        notes,
        access_log: options.access_log,
        dashboard,
        home,
        is_wordpress: found.kind == Kind::WordPress,
    })
}

/// A site whose pages are learned.
struct LearnedSite {
    mode: serve_folder::LearnMode,
    /// The account by which the database is asked, or why it is not known.
    login: Result<DatabaseLogin, String>,
    /// The account by which its object cache is followed, if it needs one.
    object_cache: Option<DatabaseLogin>,
    is_default: bool,
}

/// Whether a part of the path is a link, so that it may lead elsewhere tomorrow.
fn leads_through_a_link(path: &Path) -> bool {
    let mut above = path.ancestors();
    above.any(|part| part.symlink_metadata().is_ok_and(|it| it.is_symlink()))
}

/// Applies `--learn`. The printed configuration goes to terminals and into files that others may read: it has no
/// password.
fn learned_site(
    args: &ServeArgs,
    (files, document_root): (&dyn Files, &Path),
    found: &DetectedSite,
    has_plugin: bool,
) -> Result<Option<LearnedSite>, String> {
    use std::os::unix::fs::FileTypeExt;
    let is_wordpress = found.kind == Kind::WordPress;
    let mode = match args.learn {
        Some(LearnMode::Off) if args.learn_account.is_some() => {
            return Err(
                "--learn-account FILE is for --learn, and --learn=off was given".to_owned(),
            );
        }
        Some(LearnMode::Off) => return Ok(None),
        Some(LearnMode::Watch) => serve_folder::LearnMode::Watch,
        Some(LearnMode::Auto) => serve_folder::LearnMode::Auto,
        None if !is_wordpress => serve_folder::LearnMode::Auto,
        Some(LearnMode::On) | None => serve_folder::LearnMode::On,
    };
    let is_default = args.learn.is_none();
    let may_be_learned = match is_default {
        true => {
            let is_of_use = is_wordpress || !learning::has_untold_times(document_root);
            found.kind != Kind::Static
                && is_of_use
                && !has_plugin
                && args.ttl != Some(Duration::ZERO)
        }
        false => found.kind != Kind::Static,
    };
    if !may_be_learned {
        return Ok(None);
    }
    let is_socket = |path: &str| std::fs::metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let login = match &args.learn_account {
        Some(file) => Ok(written_account(file)?),
        None => database_login(files, found, &is_socket),
    };
    let shown = |login: DatabaseLogin| DatabaseLogin {
        password: login.password.filter(|_| !args.print_config),
        ..login
    };
    let login = login.map(shown);
    let object_cache = object_cache_login(files, found).map(shown);
    let is_learned = login.is_ok() || !is_default || !is_wordpress;
    Ok(is_learned.then_some(LearnedSite {
        mode,
        login,
        object_cache,
        is_default,
    }))
}

/// `--learn-account`
fn written_account(file: &Path) -> Result<DatabaseLogin, String> {
    const MOST_BYTES: u64 = 4096;
    let (shown, path) = (file.display(), paths::from_here(file.to_owned()));
    let failed = |error| format!("--learn-account {shown}: {}", SystemError(&error));
    let text = serve_folder::begin_of_text(&path, MOST_BYTES + 1).map_err(failed)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!(
            "--learn-account {shown}: the file has more than {MOST_BYTES} bytes, and one line with an account was expected"
        ));
    }
    let mode = std::fs::metadata(&path).map_err(failed)?.mode();
    if mode & 0o007 != 0 {
        return Err(format!(
            "--learn-account {shown}: every account of the machine may read or write the password in it: chmod 600 {shown}"
        ));
    }
    account_of_file(&text).map_err(|why| format!("--learn-account {shown}:{why}"))
}

impl LearnedSite {
    /// Returns a note with the owner of the account, or the remedy.
    fn note(&self, document_root: &Path) -> String {
        if learning::has_untold_times(document_root) {
            return format!(
                "no page is learned: {} lies among files that come and go, whose times say nothing. Move the site, for \
                 instance below /srv.",
                document_root.display()
            );
        }
        const KEPT_LATER: &str = "pages are kept until what they were made of changes, once 200 pages with such \
             addresses were made again and were the same (--learn=off: they are not)";
        match &self.login {
            Err(_) if self.is_default => format!("{KEPT_LATER}."),
            Ok(login) => {
                let why = match (self.is_default, self.mode) {
                    (true, serve_folder::LearnMode::Auto) => &format!("{KEPT_LATER}. For that"),
                    (true, _) => {
                        "pages are kept until what they were made of changes (--learn=off: they are not). For that"
                    }
                    (false, _) => "for --learn",
                };
                format!(
                    "{why}, the database is asked about its tables with the account of {} ({} at {}).",
                    login.settings, login.user, login.server
                )
            }
            Err(why) => format!(
                "pages of files and of SQLite are learned; pages of MySQL or MariaDB are not, before it is known by which \
                 account the database can be asked about its tables. {why}.\n  Write one line into a file that only \
                 you can read, and give it with --learn-account FILE:\n  unix:/run/mysqld/mysqld.sock USER PASSWORD\n  \
                 mayfly explain shows the address of the server in its place."
            ),
        }
    }
}

/// Returns the folder of WordPress's must-use plug-ins; `None` if it cannot be found.
fn must_use(found: &DetectedSite, document_root: &Path) -> Option<MustUse> {
    if found.kind != Kind::WordPress {
        return None;
    }
    let settings = Folder(document_root.to_owned())
        .text("wp-config.php")
        .unwrap_or_default();
    let (content, constants): (_, &[&str]) = match found.wp_content_parent {
        // Debian's settings name this folder.
        Some(parent) => (Path::new(parent).join("wp-content"), &["WPMU_PLUGIN_DIR"]),
        None => (
            document_root.join("wp-content"),
            &["WPMU_PLUGIN_DIR", "WP_CONTENT_DIR"],
        ),
    };
    let is_elsewhere = constants.iter().any(|constant| settings.contains(constant));
    (content.is_dir() && !is_elsewhere).then(|| MustUse::new(content.join("mu-plugins")))
}

fn no_folder_for_plugin(shown: &str, found: &DetectedSite) -> String {
    match found.kind {
        Kind::WordPress => {
            "--wordpress-plugin: where this WordPress has its must-use plug-ins cannot be told (there is no wp-content, \
             or wp-config.php names another folder); php/wordpress/build.sh --must-use FOLDER puts the plug-in there"
                .to_owned()
        }
        kind => format!("--wordpress-plugin: {shown} is not WordPress but {}", kind.name()),
    }
}

/// Returns the note about the plug-in. Installs it if that was asked for.
fn plugin_note(
    args: &ServeArgs,
    plugin: &MustUse,
    options: &ServeOptions,
) -> Result<String, String> {
    let (loader, inner) = (plugin.loader(), plugin.inner());
    if args.wordpress_plugin && !args.print_config {
        plugin.install()?;
        if let Some(user) = &options.user {
            let php = account::named(user)?;
            if let Some(file) = [&loader, &inner.join("classes.php")]
                .into_iter()
                .find(|file| !account::may_read(&php, file))
            {
                return Err(format!(
                    "--wordpress-plugin: {user}, who runs PHP, may not read {}; open the folders above it: chmod o+x",
                    file.display()
                ));
            }
        }
    }
    let kept = match options.vouched_ttl {
        Some(ttl) => format!("pages are kept for {} hours", ttl.as_secs() / 3600),
        None => "pages are kept for --ttl".to_owned(),
    };
    let take_out = format!(
        "WordPress's cron is called each minute, also while no page is made. To take the plug-in out, remove {} and \
         {}, and restart the server.",
        loader.display(),
        inner.display()
    );
    Ok(match plugin.state() {
        State::Current => format!("with Mayfly's plug-in in WordPress, {kept}, and a change is seen at once. {take_out}"),
        State::Other => format!(
            "with Mayfly's plug-in in WordPress, {kept}; it is of another version than this server, and \
             --wordpress-plugin brings it up to date. {take_out}"
        ),
        State::Absent | State::Foreign(_) => {
            "with --wordpress-plugin, pages are kept for hours, and a change is seen at once. It puts a file and a \
             folder into wp-content/mu-plugins."
                .to_owned()
        }
    })
}

/// The places of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// Returns the settings of `--domain`.
fn https(args: &ServeArgs) -> Result<Option<Https>, String> {
    if args.domain.is_empty() {
        return Ok(None);
    }
    for domain in &args.domain {
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        let is_name = domain.bytes().all(is_name_byte) && domain.contains('.');
        if !is_name || domain.starts_with('.') || domain.ends_with('.') {
            return Err(format!(
                "--domain {domain}: expected a name such as example.org"
            ));
        }
    }
    let (issuer, directory) = match (&args.acme_directory, args.staging) {
        (Some(url), _) => (issuer_name(url), url.clone()),
        (None, true) => (
            "letsencrypt-staging".to_owned(),
            LETS_ENCRYPT_STAGING.to_owned(),
        ),
        (None, false) => ("letsencrypt".to_owned(), LETS_ENCRYPT.to_owned()),
    };
    let listen_http = match args.listen_http.is_empty() {
        true => everywhere("80"),
        false => args.listen_http.clone(),
    };
    let state = state_folder(args)?;
    Ok(Some(Https {
        domains: args
            .domain
            .iter()
            .map(|it| it.to_ascii_lowercase())
            .collect(),
        listen_http,
        directory,
        email: args.acme_email.clone(),
        authorities: args.acme_ca.clone().map(paths::from_here),
        state: state.join(&issuer),
        issuer,
        is_trusted: !args.staging && args.acme_directory.is_none(),
    }))
}

/// Returns the folder of keys and certificates.
fn state_folder(args: &ServeArgs) -> Result<PathBuf, String> {
    match &args.acme_state {
        Some(folder) => Ok(paths::from_here(folder.clone())),
        None => paths::state(),
    }
}

/// A name for an issuer of which only the URL is known; its folder is called so.
fn issuer_name(url: &str) -> String {
    let place = url.strip_prefix("https://").unwrap_or(url);
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    let name: String = place.chars().map(letter).take(60).collect();
    name.trim_matches('-').to_owned()
}

/// Returns the addresses to listen on.
fn listens(args: &ServeArgs, https: Option<&Https>) -> Vec<String> {
    match (args.listen.is_empty(), https) {
        (false, _) => args.listen.clone(),
        (true, None) if args.tls => {
            let all = everywhere(LOCAL_PORT).into_iter();
            all.map(|listen| match listen.strip_prefix("[::]") {
                Some(port) => format!("[::1]{port}"),
                None => format!("127.0.0.1:{listen}"),
            })
            .collect()
        }
        (true, None) if args.service => everywhere("80"),
        (true, None) => vec![LISTEN.to_owned()],
        (true, Some(_)) => everywhere("443"),
    }
}

/// Returns the certificate of `--tls`. It is one that only this machine knows: it is served to no other.
fn local_certificate(
    args: &ServeArgs,
    listen: &[String],
) -> Result<Option<LocalCertificate>, String> {
    if !args.tls {
        return Ok(None);
    }
    if let Some(open) = listen.iter().find(|listen| !is_loopback(listen)) {
        return Err(format!(
            "--listen {open}: the network reaches it, and --tls is for browsers on this machine alone; \
             expected an address such as 127.0.0.1:{LOCAL_PORT}. --domain serves others"
        ));
    }
    local_authority::make(&state_folder(args)?.join("local")).map(Some)
}

fn is_loopback(listen: &str) -> bool {
    let is_local = |address: SocketAddr| address.ip().is_loopback();
    listen.starts_with("unix:") || listen.parse().is_ok_and(is_local)
}

fn how_to_trust(local: &LocalCertificate) -> String {
    format!(
        "browsers do not know the authority of this certificate before you tell them, once: import\n  \
         {0}\n  under \"Certificates\", \"Authorities\" in the settings of Firefox or Chromium. For curl and PHP:\n  \
         sudo cp {0} /usr/local/share/ca-certificates/mayfly-local.crt && sudo update-ca-certificates",
        local.authority.display()
    )
}

/// A port at all addresses of this machine.
fn everywhere(port: &str) -> Vec<String> {
    let mut listens = vec![port.to_owned()];
    if std::net::TcpListener::bind("[::1]:0").is_ok() {
        listens.push(format!("[::]:{port}"));
    }
    listens
}

/// Returns the URLs that visitors type.
fn urls(args: &ServeArgs, listen: &[String], https: Option<&Https>) -> Vec<String> {
    if args.tls {
        return vec![format!(
            "https://localhost{}/",
            serve_folder::port_of_urls(listen)
        )];
    }
    let Some(https) = https else {
        return listen.iter().map(|listen| url(listen)).collect();
    };
    let port = serve_folder::port_of_urls(listen);
    let domains = https.domains.iter();
    domains
        .map(|name| format!("https://{name}{port}/"))
        .collect()
}

/// Describes the applications that were found, their folders, and the files by which they were recognized.
fn what_and_where(found: &DetectedSite, document_root: &Path) -> String {
    let mut text = format!("{} from {}", found.kind.name(), document_root.display());
    if !found.signs.is_empty() {
        text.push_str(&format!(" (there is {})", found.signs.join(", ")));
    }
    for application in &found.nested {
        text.push_str(&format!(
            "\n  and {} in {}",
            application.kind.name(),
            application.path
        ));
    }
    text
}

fn access_log(args: &ServeArgs) -> Option<AccessLogPlace> {
    let typed = args.access_log.as_ref()?;
    Some(match typed.to_str() {
        Some("stderr") => AccessLogPlace::Stderr,
        _ => AccessLogPlace::File(paths::from_here(typed.clone())),
    })
}

fn dashboard(args: &ServeArgs, listen: &[String]) -> Result<Option<Dashboard>, String> {
    let Some(typed) = &args.dashboard else {
        return Ok(None);
    };
    serve_dashboard::prepare(typed, listen).map(Some)
}

/// Like [`prepare`], for an HTTP server in the folder's place.
fn prepare_upstream(args: &ServeArgs, shown: &str) -> Result<Serve, String> {
    let upstream = UpstreamUrl::parse(shown)?;
    if args.php.is_some() || args.workers != Workers::Auto {
        return Err(format!(
            "--php and --workers are for folders: PHP runs behind {}",
            upstream.text
        ));
    }
    if args.wordpress_plugin {
        return Err("--wordpress-plugin is for folders".to_owned());
    }
    if args.home.is_some() {
        return Err("--home is for folders".to_owned());
    }
    if args.learn.is_some_and(|mode| mode != LearnMode::Off) {
        return Err("--learn is for folders: PHP has to be started with it".to_owned());
    }
    let https = https(args)?;
    let mut listen = listens(args, https.as_ref());
    let local = local_certificate(args, &listen)?;
    let mut notes: Vec<String> = local.as_ref().map(how_to_trust).into_iter().collect();
    // The usual port of both: the one who comes second takes another.
    if listen == [LISTEN] && upstream.is_at(LISTEN) {
        listen = vec![LISTEN_BESIDE.to_owned()];
        notes.push(format!(
            "{LISTEN} is the upstream itself; choose another address with --listen."
        ));
    }
    let dashboard = dashboard(args, &listen)?;
    let options = ServeOptions {
        listen: listen.clone(),
        ttl: args.ttl.unwrap_or(DEFAULT_TTL),
        access_log: access_log(args),
        behind: args.behind.clone(),
        dashboard: dashboard.clone(),
        https: https.clone(),
        cache_folder: paths::cache(),
        local_certificate: local.map(|local| local.certificate),
        guest_sessions: args.guest_sessions.written(),
        service: args.service,
        ..ServeOptions::default()
    };
    let text = write_upstream_config(&upstream, &options).map_err(|error| error.to_string())?;
    Ok(Serve {
        text,
        served: PathBuf::from(&upstream.text),
        what: format!("what {} says", upstream.text),
        maker: "the upstream",
        urls: urls(args, &listen, https.as_ref()),
        listen,
        is_cached: !options.ttl.is_zero(),
        notes,
        access_log: options.access_log,
        dashboard,
        home: None,
        is_wordpress: false,
    })
}

/// Returns the account that runs PHP when root starts us. This account and the one that serves have to get at the
/// site, which they do not in root's own folder.
fn who_runs_php(args: &ServeArgs, document_root: &Path) -> Result<String, String> {
    let php = match &args.php_user {
        Some(name) => account::named(name)?,
        None => account::php_default()?,
    };
    if !args.print_config {
        for (account, role) in [
            (&php, "runs PHP"),
            (&account::server_default(None)?, "serves"),
        ] {
            if !account::may_enter(account, document_root) {
                return Err(format!(
                    "{} may not enter {}, and as root starts the server it is {0} who {role}; \
                     move the site, to /srv for example, or open the folders above it: chmod o+x",
                    account.name,
                    document_root.display()
                ));
            }
        }
    }
    Ok(php.name)
}

/// Whether the program behind `mail()` gains rights when it is started: Postfix's `sendmail`
/// by way of `postdrop`, others themselves.
fn mail_gains_rights() -> bool {
    use std::os::unix::fs::PermissionsExt;
    let set_id_bits = 0o6000;
    ["/usr/sbin/sendmail", "/usr/sbin/postdrop"]
        .iter()
        .filter_map(|program| std::fs::metadata(program).ok())
        .any(|program| program.is_file() && program.permissions().mode() & set_id_bits != 0)
}

impl Serve {
    /// Returns the path at which commands find this server. Without a place for it the socket is left out, which the
    /// log reports.
    pub fn control_socket(&self) -> Option<PathBuf> {
        let listen = self.listen.first().map_or("", String::as_str);
        crate::processes::control_socket::serve_path(listen).ok()
    }

    /// Returns the control socket and the URL of a WordPress that may lead visitors to another address.
    pub fn may_lead_elsewhere(&self) -> Option<(PathBuf, String)> {
        let url = self
            .urls
            .first()
            .filter(|_| self.is_wordpress && self.home.is_none())?;
        Some((self.control_socket()?, url.clone()))
    }

    /// The control socket and the URL of the first page, where its pages may come from memory.
    pub fn first_page(&self) -> Option<(PathBuf, String)> {
        let url = self.urls.first().filter(|_| self.is_cached)?;
        Some((self.control_socket()?, url.clone()))
    }

    pub fn invocation(&self) -> Invocation {
        Invocation::from_text(Path::new(MADE_CONF), self.text.clone())
    }

    /// Prints the announcement when everything listens.
    pub fn announce(&self) {
        // The reader may be gone.
        let _ = io::stdout().write_all(self.announcement().as_bytes());
        let _ = io::stdout().flush();
    }

    fn announcement(&self) -> String {
        let mut text = format!("Serving {}\n", self.what);
        for url in &self.urls {
            text.push_str(&format!("  {url}\n"));
        }
        for note in &self.notes {
            text.push_str(&format!("Note: {note}\n"));
        }
        if let (true, Some(url)) = (self.is_cached, self.urls.first()) {
            text.push_str(&format!(
                "See it work: for i in 1 2 3; do curl -si {url} | grep -i cache; done\n\
                 {} makes a page for its first visitor (MISS), and once more for comparison. If all \
                 visitors get the same, it then comes from memory (HIT).\n",
                self.maker
            ));
        }
        if let Some(home) = &self.home {
            text.push_str(&format!("Home of WordPress: {}/\n", home.address.as_str()));
        }
        text.push_str(&match &self.access_log {
            Some(AccessLogPlace::File(file)) => format!("Access log: {}\n", file.display()),
            Some(AccessLogPlace::Stderr) => "Access log: stderr\n".to_owned(),
            None => "Requests are not logged; --access-log FILE does it.\n".to_owned(),
        });
        text.push_str("Next step: mayfly serve --print-config. Ctrl-C stops the server.\n");
        text
    }
}

/// `http://127.0.0.1:8080/` for an argument of `listen`.
fn url(listen: &str) -> String {
    if listen.starts_with("unix:") {
        return listen.to_owned();
    }
    let place = match listen.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => listen
            .replace("*:", "127.0.0.1:")
            .replace("0.0.0.0:", "127.0.0.1:"),
    };
    format!("http://{place}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_is_served_with_a_word_about_it() {
        let folder = tempfile::tempdir().unwrap();
        let args = ServeArgs {
            dir: folder.path().to_owned(),
            listen: vec!["8080".to_owned()],
            domain: Vec::new(),
            listen_http: Vec::new(),
            acme_email: None,
            acme_directory: None,
            acme_ca: None,
            acme_state: None,
            staging: false,
            tls: false,
            ttl: None,
            wordpress_plugin: false,
            learn: None,
            learn_account: None,
            guest_sessions: crate::cli::GuestSessionsMode::On,
            home: None,
            workers: Workers::Auto,
            php: None,
            php_user: None,
            behind: Vec::new(),
            access_log: None,
            dashboard: None,
            print_config: true,
            service: false,
        };
        let says_so = |args| {
            prepare(args)
                .unwrap()
                .announcement()
                .contains("no index.php")
        };
        assert!(says_so(&args));
        std::fs::write(folder.path().join("index.html"), "hello").unwrap();
        assert!(!says_so(&args));
    }

    #[test]
    fn an_issuer_is_named_by_its_url() {
        let url = "https://ca.example.org:9000/acme/directory";
        assert_eq!(issuer_name(url), "ca-example-org-9000-acme-directory");
    }

    #[test]
    fn addresses_to_listen_on_become_addresses_to_visit() {
        let cases = [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("8080", "http://127.0.0.1:8080/"),
            ("*:80", "http://127.0.0.1:80/"),
            ("0.0.0.0:81", "http://127.0.0.1:81/"),
            ("[::1]:82", "http://[::1]:82/"),
            ("unix:/run/x", "unix:/run/x"),
        ];
        for (listen, expected) in cases {
            assert_eq!(url(listen), expected, "{listen}");
        }
    }
}
