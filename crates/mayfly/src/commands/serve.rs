//! `mayfly serve DIR | URL`: from a folder or an HTTP server to a configuration, which is then run like any other;
//! in the foreground, with a line about the found site and how to see it work.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serve_folder::wordpress_plugin::{MustUse, PluginState};
use serve_folder::{
    AccessLogPlace, DEFAULT_TTL, Dashboard, DetectedSite, Files, Folder, ServeOptions, SiteKind,
    UpstreamUrl, WatchedFolder, detect, write_config, write_upstream_config,
};

use crate::cli::{LearnMode, ServeArgs, Workers};
use crate::commands::serve_dashboard;
use crate::commands::serve_home::{self, Home};
use crate::commands::serve_htaccess;
use crate::commands::serve_learn::learned_site;
use crate::commands::serve_listen::{
    LISTEN, how_to_trust, https, listens, local_certificate, urls,
};
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

/// The default address if the upstream listens on [`LISTEN`].
const LISTEN_BESIDE: &str = "127.0.0.1:8081";
/// How long WordPress's plug-in vouches for a page. Forms of visitors hold tokens that count for twelve hours at
/// least.
const VOUCHED_TTL: Duration = Duration::from_secs(8 * 3600);

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
    if let (SiteKind::Static, Some(refused)) = (found.kind, files.refused()) {
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
        (Some(plugin), true) => !matches!(plugin.state(), PluginState::Foreign(_)),
        (Some(plugin), false) => {
            matches!(plugin.state(), PluginState::Current | PluginState::Other)
        }
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
    if found.kind != SiteKind::Static && !args.print_config {
        php_pool::find_php_fpm(options.php.as_deref()).map_err(|error| error.to_string())?;
    }
    let mut notes: Vec<String> = found.notes().iter().map(|&note| note.to_owned()).collect();
    notes.extend(files.refused().map(|refused| format!("{refused}.")));
    notes.extend(local.as_ref().map(how_to_trust));
    notes.extend(learned.as_ref().map(|learned| learned.note(&document_root)));
    notes.extend(serve_htaccess::notes(&document_root));
    let text = write_config(&found, &dir, &options).map_err(|error| error.to_string())?;
    let is_cached = found.kind != SiteKind::Static && !options.ttl.is_zero();
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
        is_wordpress: found.kind == SiteKind::WordPress,
    })
}

/// Whether a part of the path is a link, so that it may lead elsewhere tomorrow.
fn leads_through_a_link(path: &Path) -> bool {
    let mut above = path.ancestors();
    above.any(|part| part.symlink_metadata().is_ok_and(|it| it.is_symlink()))
}

/// Returns the folder of WordPress's must-use plug-ins; `None` if it cannot be found.
fn must_use(found: &DetectedSite, document_root: &Path) -> Option<MustUse> {
    if found.kind != SiteKind::WordPress {
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
        SiteKind::WordPress => {
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
        plugin.install().map_err(|error| error.to_string())?;
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
        PluginState::Current => format!("with Mayfly's plug-in in WordPress, {kept}, and a change is seen at once. {take_out}"),
        PluginState::Other => format!(
            "with Mayfly's plug-in in WordPress, {kept}; it is of another version than this server, and \
             --wordpress-plugin brings it up to date. {take_out}"
        ),
        PluginState::Absent | PluginState::Foreign(_) => {
            "with --wordpress-plugin, pages are kept for hours, and a change is seen at once. It puts a file and a \
             folder into wp-content/mu-plugins."
                .to_owned()
        }
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, Word};
    use std::ffi::OsString;

    #[test]
    fn an_empty_folder_is_served_with_a_word_about_it() {
        let folder = tempfile::tempdir().unwrap();
        let line = ["serve", "--listen", "8080", "--print-config"].map(OsString::from);
        let line = [&line[..], &[folder.path().into()]].concat();
        let Ok(Command::Word(Word::Serve(args), _)) = crate::cli::parse(&line) else {
            panic!("refused")
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
}
