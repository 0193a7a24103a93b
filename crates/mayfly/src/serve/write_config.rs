//! What was found and what was asked for in, nginx-syntax configuration out;
//! pure. The text is for reading: an administrator copies it and goes on from
//! there, so each part says why it is there.
//!
//! A page is shared by `cache_shared`: see there for what a visitor's request may shape. The
//! tables of [`super::applications`] tell which requests are personal. DokuWiki starts a
//! session for everybody, which makes PHP say `no-store` on every page: what it says there is
//! disregarded, for pages that were made without any cookie.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::applications::{ANALYTICS_ARGUMENTS, HARMLESS_COOKIES, PHP, Rules, Scripts, rules};
use super::below;
use super::closed_folders::{ClosedFolder, Closure};
use super::conf_text::{CannotWrite, Conf, literal_pattern, over_lines, path, time, word};
use super::detect::{Found, Kind};
use super::refused::{LIFETIMES, REFUSED_NAMES, browser_types, handed_out, refused_files};

/// What the command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Arguments of `listen`, one each.
    pub listen: Vec<String>,
    /// How long a page is kept; zero keeps none.
    pub ttl: Duration,
    /// PHP workers; `None` lets the machine decide.
    pub workers: Option<u32>,
    /// The php-fpm binary; `None` finds one.
    pub php: Option<PathBuf>,
    /// Who runs PHP, for a program started by root.
    pub user: Option<String>,
    /// The machine's mail program gains rights when it is started.
    pub mail_gains_rights: bool,
    /// Where requests are logged; `None` logs none.
    pub access_log: Option<PathBuf>,
    /// Addresses of proxies in front, whose word on visitors counts.
    pub behind: Vec<String>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            listen: vec!["127.0.0.1:8080".to_owned()],
            ttl: Duration::from_secs(1),
            workers: None,
            php: None,
            user: None,
            mail_gains_rights: false,
            access_log: None,
            behind: Vec::new(),
        }
    }
}

/// Crawlers get pages up to this age.
pub(super) const CRAWLER_TTL: Duration = Duration::from_secs(60);

/// For so long a stranger is told that there is no such page, unless somebody writes.
const NOT_FOUND_TTL: Duration = Duration::from_secs(300);

/// The configuration that serves what was `found` in the folder `dir` (an
/// absolute path).
///
/// # Errors
/// A path or word that the syntax cannot carry.
pub fn write_config(
    found: &Found,
    dir: &Path,
    options: &ServeOptions,
) -> Result<String, CannotWrite> {
    let mut conf = Conf::default();
    let rules = rules(found.kind).map(|own| below::with_others(own, &found.below));
    let caching = rules.as_ref().filter(|_| !options.ttl.is_zero());
    main_context(&mut conf, found, options, rules.is_some())?;
    conf.open("http");
    log(&mut conf, options)?;
    types(&mut conf);
    compression(&mut conf);
    if caching.is_some() {
        cache_zone(&mut conf, FASTCGI, dir.as_os_str().as_encoded_bytes());
    }
    if rules.is_some() && !options.behind.is_empty() {
        conf.note("The port that visitors see is the one of the proxy in front.");
        conf.map(
            "$scheme:$request_port $visitor_port",
            &[
                ("default", "$request_port"),
                ("http:", "80"),
                ("https:", "443"),
            ],
        );
    }
    conf.open("server");
    server(&mut conf, found, dir, options)?;
    if rules.is_some() {
        php_params(&mut conf, options);
    }
    if let Some(rules) = caching {
        cache_rules(&mut conf, FASTCGI, rules, options);
        changes(&mut conf, found, options);
        below::personal(&mut conf, &found.below);
    }
    conf.gap();
    locations(&mut conf, found, rules.as_ref(), caching.is_some());
    conf.close();
    conf.close();
    Ok(conf.text)
}

fn main_context(
    conf: &mut Conf,
    found: &Found,
    options: &ServeOptions,
    has_php: bool,
) -> Result<(), CannotWrite> {
    conf.note(&format!(
        "Written by `mayfly serve`: {}.",
        found.kind.name()
    ));
    conf.line("daemon off;");
    conf.line("worker_processes auto;");
    conf.line("error_log stderr warn;");
    conf.gap();
    conf.line("events {}");
    conf.gap();
    if has_php {
        conf.open("php_pool site");
        match options.workers {
            Some(workers) => conf.line(&format!("workers {workers};")),
            None => conf.line("workers auto;"),
        }
        if let Some(php) = &options.php {
            conf.line(&format!("binary {};", path(php)?));
        }
        if let Some(user) = &options.user {
            conf.line(&format!("user {};", word(user)?));
        }
        if options.mail_gains_rights {
            conf.note("The mail program of this machine is a set-id program.");
            conf.line("no_new_privs off;");
        }
        conf.line("max_requests 1000;");
        conf.line("request_terminate_timeout 300s;");
        conf.line("php_admin_value upload_max_filesize 64M;");
        conf.line("php_admin_value post_max_size 64M;");
        conf.close();
        conf.gap();
    }
    Ok(())
}

pub(super) fn log(conf: &mut Conf, options: &ServeOptions) -> Result<(), CannotWrite> {
    conf.line(
        "log_format pages '$remote_addr [$time_local] \"$request\" $status $body_bytes_sent '",
    );
    conf.line("                 '$request_time $upstream_cache_status \"$http_user_agent\"';");
    match &options.access_log {
        Some(file) => conf.line(&format!(
            "access_log {} pages buffer=64k flush=1s;",
            path(file)?
        )),
        None => conf.line("access_log off;"),
    }
    conf.gap();
    Ok(())
}

/// What a site usually holds; other files are handed out as downloads.
const TYPES: [(&str, &str); 42] = [
    ("text/html", "html htm shtml"),
    ("text/css", "css"),
    ("text/xml", "xml"),
    ("text/plain", "txt"),
    ("text/csv", "csv"),
    ("text/vtt", "vtt"),
    ("text/calendar", "ics"),
    ("text/markdown", "md"),
    ("application/javascript", "js mjs"),
    ("application/json", "json map"),
    ("application/manifest+json", "webmanifest"),
    ("application/atom+xml", "atom"),
    ("application/rss+xml", "rss"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz tgz"),
    ("application/wasm", "wasm"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpeg jpg jfif"),
    ("image/png", "png"),
    ("image/apng", "apng"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/svg+xml", "svg"),
    ("image/x-icon", "ico cur"),
    ("image/bmp", "bmp"),
    ("font/woff", "woff"),
    ("font/woff2", "woff2"),
    ("font/ttf", "ttf"),
    ("font/otf", "otf"),
    ("application/vnd.ms-fontobject", "eot"),
    ("application/xslt+xml", "xsl xslt"),
    ("audio/mpeg", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/aac", "aac"),
    ("audio/wav", "wav"),
    ("audio/flac", "flac"),
    ("video/quicktime", "mov"),
    ("audio/ogg", "ogg oga opus"),
    ("video/mp4", "mp4 m4v"),
    ("video/webm", "webm"),
    ("video/ogg", "ogv"),
];

fn types(conf: &mut Conf) {
    conf.open("types");
    for (name, extensions) in TYPES {
        conf.line(&format!("{name} {extensions};"));
    }
    conf.close();
    conf.line("default_type application/octet-stream;");
    conf.line("sendfile on;");
    conf.gap();
}

/// Types of text, beside HTML, and others that compress as well.
const COMPRESSED_TYPES: &str = "text/css text/xml text/plain text/csv text/vtt text/calendar \
    text/markdown text/javascript application/javascript application/json application/ld+json \
    application/manifest+json application/atom+xml application/rss+xml application/xml \
    application/xhtml+xml application/xslt+xml application/wasm application/vnd.ms-fontobject \
    image/svg+xml image/x-icon image/bmp font/ttf font/otf";

/// Levels are those at which a page takes a few milliseconds: a stored page is compressed once
/// for all, a personal one for its visitor.
pub(super) fn compression(conf: &mut Conf) {
    conf.note("Text is compressed, once for each stored page and each file.");
    let types: Vec<&str> = COMPRESSED_TYPES.split_whitespace().collect();
    for (coding, level) in [("brotli", 4), ("zstd", 3), ("gzip", 5)] {
        conf.line(&format!("{coding} on;"));
        conf.line(&format!("{coding}_comp_level {level};"));
        conf.line(&format!("{coding}_min_length 256;"));
        list(conf, &format!("{coding}_types"), &types);
    }
    conf.line("gzip_proxied any;");
    conf.line("gzip_vary on;");
    conf.gap();
}

/// A protocol's spelling of directives, and who makes the pages.
#[derive(Clone, Copy)]
pub(super) struct Spelling {
    pub(super) prefix: &'static str,
    pub(super) maker: &'static str,
    /// Failures of the maker's that the last copy stands in for.
    pub(super) failures: &'static str,
}

const FASTCGI: Spelling = Spelling {
    prefix: "fastcgi",
    maker: "PHP",
    failures: "error timeout invalid_header http_500 http_503",
};

/// The zone for pages; `name` is the folder's or the upstream's.
pub(super) fn cache_zone(conf: &mut Conf, spelling: Spelling, name: &[u8]) {
    let Spelling { prefix, maker, .. } = spelling;
    conf.note("Pages are kept in memory. A page nobody asked for in an hour is let go;");
    conf.note(&format!("until then it can stand in while {maker} fails."));
    let path = format!("/dev/shm/mayfly-{:016x}", digest(name));
    conf.line(&format!(
        "{prefix}_cache_path {path} levels=1:2 keys_zone=pages:8m inactive=1h;"
    ));
    conf.gap();
}

/// A short name for a site (FNV-1a, 64 bits): two sites on one machine must
/// never share a cache's path.
fn digest(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn server(
    conf: &mut Conf,
    found: &Found,
    dir: &Path,
    options: &ServeOptions,
) -> Result<(), CannotWrite> {
    for listen in &options.listen {
        conf.line(&format!("listen {} default_server;", word(listen)?));
    }
    conf.line("server_name _;");
    trusted_proxies(conf, options)?;
    let root = match found.document_root {
        "" => dir.to_owned(),
        below => dir.join(below),
    };
    conf.line(&format!("root {};", path(&root)?));
    let index = match found.kind {
        Kind::Static => "index.html",
        Kind::DokuWiki => "doku.php",
        _ => "index.php index.html",
    };
    conf.line(&format!("index {index};"));
    conf.line("client_max_body_size 64m;");
    conf.note("No browser takes a file for something that it is not sent as.");
    conf.line("add_header X-Content-Type-Options nosniff always;");
    Ok(())
}

/// Who is believed about a visitor's address, scheme and host.
pub(super) fn trusted_proxies(conf: &mut Conf, options: &ServeOptions) -> Result<(), CannotWrite> {
    for proxy in &options.behind {
        conf.line(&format!("trusted_proxy {};", word(proxy)?));
    }
    Ok(())
}

/// Debian's fastcgi.conf, with the folder's real path so that a link to the
/// current release may change, and without a field that scripts take for the
/// environment variable.
const PARAMS: [(&str, &str); 20] = [
    ("SCRIPT_FILENAME", "$realpath_root$fastcgi_script_name"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("PATH_INFO", "$fastcgi_path_info"),
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$realpath_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("HTTPS", "$https if_not_empty"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "mayfly"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$host"),
];

/// Lines at another level take the place of these: each level that hides another field
/// says this, too.
const HIDE_NOSNIFF: &str = "fastcgi_hide_header X-Content-Type-Options;";

/// What proxies in front tell; nobody else is believed.
const FORWARDED: [(&str, &str); 4] = [
    ("HTTP_X_FORWARDED_FOR", "$remote_addr"),
    ("HTTP_X_FORWARDED_HOST", "$http_host"),
    ("HTTP_X_FORWARDED_PROTO", "$scheme"),
    ("HTTP_X_REAL_IP", "$remote_addr"),
];

/// Further fields of that kind, which no script needs to see.
const NOT_FORWARDED: [&str; 6] = [
    "HTTP_FORWARDED",
    "HTTP_X_FORWARDED",
    "HTTP_X_FORWARDED_PORT",
    "HTTP_X_FORWARDED_PREFIX",
    "HTTP_X_FORWARDED_SERVER",
    "HTTP_X_FORWARDED_SSL",
];

fn php_params(conf: &mut Conf, options: &ServeOptions) {
    conf.gap();
    for (name, mut value) in PARAMS {
        if name == "SERVER_PORT" && !options.behind.is_empty() {
            value = "$visitor_port";
        }
        conf.line(&format!("fastcgi_param {name} {value};"));
    }
    conf.line("fastcgi_param REDIRECT_STATUS 200;");
    conf.line("fastcgi_param HTTP_PROXY '';");
    conf.note("What a visitor says of proxies is not passed on; scripts would believe it.");
    for (name, value) in FORWARDED {
        match options.behind.is_empty() {
            true => conf.line(&format!("fastcgi_param {name} '' if_not_empty;")),
            false => conf.line(&format!("fastcgi_param {name} {value};")),
        }
    }
    for name in NOT_FORWARDED {
        conf.line(&format!("fastcgi_param {name} '' if_not_empty;"));
    }
    conf.line("fastcgi_keep_conn on;");
    conf.line("fastcgi_read_timeout 300s;");
    conf.line("fastcgi_buffers 16 16k;");
    conf.line("fastcgi_buffer_size 32k;");
    conf.note("It is sent once, also where PHP says it.");
    conf.line(HIDE_NOSNIFF);
}

/// For how long past its lifetime the last copy is shown: while the maker of pages keeps up,
/// and while it fails or too many wait for it. A page that nobody asked for in the meantime
/// is made anew.
const STALE_TIMES: &str = "10s 1h";
/// So many waiting requests are too many: more than a moment's crowd.
const LONG_QUEUE: usize = 10;

pub(super) fn cache_rules(
    conf: &mut Conf,
    spelling: Spelling,
    rules: &Rules,
    options: &ServeOptions,
) {
    let Spelling {
        prefix,
        maker,
        failures,
    } = spelling;
    conf.gap();
    conf.note(&format!(
        "One request per page and lifetime reaches {maker}; while it is renewed or {maker}"
    ));
    conf.note("fails, the last copy is shown.");
    conf.line(&format!("{prefix}_cache pages;"));
    conf.line(&valid(spelling, options.ttl));
    if rules.is_known {
        conf.note("Redirects of strangers, as of /favicon.ico.");
        conf.line(&format!(
            "{prefix}_cache_valid 302 307 {};",
            time(options.ttl)
        ));
        conf.note("Wrong addresses: crawlers ask for them again and again. What anybody writes");
        conf.note("drops these answers: there may be a page now.");
        conf.line(&format!("cache_not_found {};", time(NOT_FOUND_TTL)));
    }
    conf.line(&format!("{prefix}_cache_use_stale {failures} updating;"));
    conf.line(&format!("{prefix}_cache_background_update on;"));
    conf.line(&format!("cache_stale {STALE_TIMES};"));
    conf.line(&format!("cache_queue_stale {LONG_QUEUE};"));
    conf.line(&format!("{prefix}_cache_lock on;"));
    conf.note(&format!(
        "A page that many may see is made for a request that Mayfly writes: {maker} sees"
    ));
    conf.note("nothing of a visitor that is not in the cache key. All other requests are");
    conf.note("forwarded as they are, and what comes of them is never stored.");
    conf.line("cache_shared on;");
    let cookies = &rules.cookies;
    list(conf, "cache_personal_cookies", cookies.personal);
    list(conf, "cache_key_cookies", cookies.key);
    if cookies.are_all_known {
        conf.line("cache_unknown_cookies remove;");
    }
    if !rules.paths.is_empty() {
        let pattern = format!("~*/(?:{})(?:/|$)", rules.paths.join("|"));
        conf.line(&format!("cache_personal_paths {};", table_word(&pattern)));
    }
    list(conf, "cache_personal_args", rules.arguments);
    conf.note("Crawlers read everything and may get pages that are a little older.");
    if options.ttl < CRAWLER_TTL {
        conf.line(&format!("cache_crawler_valid {};", time(CRAWLER_TTL)));
    }
    conf.note("Who has just written something sees it.");
    conf.line("cache_read_your_writes 2s;");
    conf.note("What only statistics read makes no page of its own.");
    list(conf, "cache_ignore_args", &ANALYTICS_ARGUMENTS);
    list(conf, "cache_ignore_cookies", &HARMLESS_COOKIES);
    conf.line("add_header X-Cache $upstream_cache_status always;");
}

/// How long a page is kept that may have changed.
fn changes(conf: &mut Conf, found: &Found, options: &ServeOptions) {
    if found.kind == Kind::MediaWiki {
        conf.note("MediaWiki tells of pages that change, where $wgCdnServers names this server.");
        conf.line("fastcgi_cache_purge PURGE from local;");
    }
    if !found.sends_purges {
        max_valid(conf, options);
    }
}

/// The bound on what an application says itself.
pub(super) fn max_valid(conf: &mut Conf, options: &ServeOptions) {
    conf.note("Nobody tells when a page has changed: it is kept no longer than this, whatever its");
    conf.note("Cache-Control says.");
    conf.line(&format!("cache_max_valid {};", time(options.ttl)));
}

/// A directive with words; nothing where there are none.
pub(super) fn list(conf: &mut Conf, directive: &str, words: &[&str]) {
    if words.is_empty() {
        return;
    }
    let words: Vec<String> = words.iter().map(|word| table_word(word)).collect();
    let mut line = directive.to_owned();
    let mut lines = Vec::new();
    for word in words {
        if line.len() + word.len() > MAX_LINE_BYTES {
            lines.push(std::mem::replace(&mut line, "   ".to_owned()));
        }
        line.push(' ');
        line.push_str(&word);
    }
    lines.push(line + ";");
    for line in lines {
        conf.line(&line);
    }
}

/// Long lists go on in a line of their own.
const MAX_LINE_BYTES: usize = 90;

/// A name or a pattern of the tables, in quotes where the syntax wants them.
fn table_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.*/=".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("\"{word}\""),
    }
}

pub(super) fn valid(spelling: Spelling, lifetime: Duration) -> String {
    format!(
        "{}_cache_valid 200 203 301 308 404 410 {};",
        spelling.prefix,
        time(lifetime)
    )
}

/// The order decides. A path is refused for what it leads through (a dot, a private
/// folder, a script that is not to be run), then run for the script that it names, then
/// looked at as a file: no later location can take back an earlier one's refusal.
fn locations(conf: &mut Conf, found: &Found, rules: Option<&Rules>, is_caching: bool) {
    let (in_wp_content, closed): (Vec<&ClosedFolder>, Vec<&ClosedFolder>) =
        found.closed_folders.iter().partition(|folder| {
            found.wp_content_parent.is_some() && folder.path.starts_with(b"/wp-content/")
        });
    closed_folders(conf, &closed);
    conf.note("What begins with a dot is nobody's business, but for .well-known.");
    conf.refuse(DOT, "/\\.(?!well-known(?:/|$))");
    for (why, pattern) in rules.iter().flat_map(|rules| rules.refused) {
        conf.refuse(why, pattern);
    }
    if let Some(layout) = found.layout {
        conf.note(&format!("{}: {}.", layout.name, layout.source));
        conf.refuse("A private part of the application.", layout.refused);
    }
    if let Some(parent) = found.wp_content_parent {
        debian_wp_content(conf, parent, &in_wp_content);
    }
    let scripts = rules.map(|rules| rules.scripts);
    below::refused_and_scripts(conf, &found.below, scripts, |conf, pattern| {
        scripts_of(
            conf,
            &format!("location ~ \"{pattern}\""),
            Kind::PlainPhp,
            is_caching,
        );
    });
    if let Some(scripts) = scripts {
        php(conf, found.kind, scripts, is_caching);
    }
    conf.note("No other script runs, or is shown as text.");
    conf.refuse("A script that is not visited.", PHP);
    if found.has_short_wiki_paths {
        conf.open("location ^~ /wiki/");
        conf.line("rewrite ^ /index.php last;");
        conf.close();
        conf.gap();
    }
    files(conf, found);
}

const DOT: &str = "A name that begins with a dot.";

/// Folders whose `.htaccess` closes them.
fn closed_folders(conf: &mut Conf, folders: &[&ClosedFolder]) {
    if folders.is_empty() {
        return;
    }
    conf.note("Folders that their .htaccess closes, when this was written.");
    for folder in folders {
        match std::str::from_utf8(&folder.path) {
            Ok(path) => conf.open(&format!("location ^~ {}", quoted(path))),
            // Not text: as a pattern, byte by byte.
            Err(_) => conf.open(&format!(
                "location ~ \"^{}\"",
                literal_pattern(&folder.path)
            )),
        }
        conf.deny("Its .htaccess closes the folder.");
        if folder.closure == Closure::AllButSome {
            conf.note("It excepts some files; pages load none but these.");
            let pattern = format!("(?s)^(?!.*{PHP}|.*/\\.).*\\.(?:{})$", browser_types());
            conf.open(&format!("location ~* \"{pattern}\""));
            conf.line("allow all;");
            conf.line("expires 1h;");
            conf.close();
        }
        conf.close();
        conf.gap();
    }
}

/// Text without variables as an argument.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Where PHP runs.
fn php(conf: &mut Conf, kind: Kind, scripts: Scripts, is_caching: bool) {
    if kind == Kind::DokuWiki && is_caching {
        conf.note("Styles and scripts, the same for everybody, say themselves how long.");
        conf.open("location ~ ^/lib/exe/(?:css|js|jquery|manifest|opensearch)\\.php$");
        conf.line("cache_personal_paths off;");
        conf.line("cache_max_valid off;");
        conf.line("fastcgi_pass php:site;");
        conf.close();
        conf.gap();
        conf.note("Pictures and the housekeeping that each page calls need no session: a cookie");
        conf.note("from here would make every further page of the visitor personal.");
        conf.open("location ~ ^/lib/exe/(?:fetch|taskrunner|indexer)\\.php(?:/|$)");
        conf.line(SPLIT);
        conf.line("fastcgi_hide_header Set-Cookie;");
        conf.line(HIDE_NOSNIFF);
        conf.line("fastcgi_pass php:site;");
        conf.close();
        conf.gap();
    }
    if kind == Kind::MediaWiki && is_caching {
        conf.note("Styles and scripts, whose addresses change with them, say themselves how long.");
        conf.open("location = /load.php");
        conf.line("cache_max_valid off;");
        conf.line("fastcgi_pass php:site;");
        conf.close();
        conf.gap();
    }
    let head = match scripts {
        Scripts::All => "location ~ \\.php(?:/|$)".to_owned(),
        Scripts::Only(pattern) => format!("location ~ \"{pattern}\""),
    };
    scripts_of(conf, &head, kind, is_caching);
}

/// A location whose scripts run.
fn scripts_of(conf: &mut Conf, head: &str, kind: Kind, is_caching: bool) {
    conf.open(head);
    conf.line(SPLIT);
    conf.line("if (!-f $document_root$fastcgi_script_name) { return 404; }");
    if kind == Kind::DokuWiki && is_caching {
        conf.note("DokuWiki starts a session for everybody, so PHP says no-store and sets a");
        conf.note("cookie on every page. A shared page was made without a cookie: it is the same");
        conf.note("for all who ask so, and the session is of no use to them.");
        conf.line("fastcgi_ignore_headers Cache-Control Expires Set-Cookie;");
        conf.line("cache_store_set_cookie on;");
    }
    conf.line("fastcgi_pass php:site;");
    conf.close();
    conf.gap();
}

const SPLIT: &str = "fastcgi_split_path_info ^(.+?\\.php)(/.*)?$;";

/// Debian's WordPress keeps themes, plugins and uploads elsewhere.
fn debian_wp_content(conf: &mut Conf, parent: &str, closed: &[&ClosedFolder]) {
    conf.note("Themes, plugins and uploads; nothing there is visited as a script.");
    conf.open("location ^~ /wp-content/");
    conf.line(&format!("root {parent};"));
    conf.gap();
    closed_folders(conf, closed);
    conf.refuse(DOT, "/\\.");
    conf.refuse("A script that is not visited.", PHP);
    names_with_a_dot(conf, Kind::WordPress, "=404");
    conf.line("return 404;");
    conf.close();
    conf.gap();
}

/// Files, and what is none.
fn files(conf: &mut Conf, found: &Found) {
    let fallback = match (found.kind, found.front_controller) {
        _ if !found.below.is_empty() => below::FALLBACK.to_owned(),
        (Kind::DokuWiki, _) => "@wiki".to_owned(),
        (_, Some(script)) => format!("{script}?$args"),
        (_, None) => "=404".to_owned(),
    };
    names_with_a_dot(conf, found.kind, &fallback);
    conf.note("Proofs of ownership, for certificates and applications.");
    conf.open("location ~ \"^/(?:\\.well-known/|apple-app-site-association$)\"");
    conf.line(&format!("try_files $uri $uri/ {fallback};"));
    conf.close();
    conf.gap();
    if found.kind == Kind::Static {
        conf.note("Keys, logs and memory images.");
        conf.open(&format!("location ~* \"{REFUSED_NAMES}\""));
        conf.refuse_files(&fallback);
        conf.close();
        conf.gap();
    }
    conf.open("location /");
    match found.kind {
        Kind::Static => conf.line(&format!("try_files $uri $uri/ {fallback};")),
        _ => {
            conf.note("Files without an extension are no part of a page.");
            conf.refuse_files(&fallback);
        }
    }
    conf.close();
    conf.gap();
    conf.open("location @refused");
    conf.deny("Not a file that is handed out.");
    conf.close();
    conf.gap();
    if !found.below.is_empty() {
        below::fallback(conf, found);
    }
    if found.kind == Kind::DokuWiki {
        conf.note("Addresses as DokuWiki writes them with `userewrite` 1.");
        conf.open("location @wiki");
        conf.line("rewrite ^/_media/(.*) /lib/exe/fetch.php?media=$1 last;");
        conf.line("rewrite ^/_detail/(.*) /lib/exe/detail.php?media=$1 last;");
        conf.line("rewrite ^/_export/([^/]+)/(.*) /doku.php?do=export_$1&id=$2 last;");
        conf.line("rewrite ^/(.*) /doku.php?id=$1 last;");
        conf.close();
        conf.gap();
    }
}

/// Names that may be files: the refused ones, then those that are handed out. Pages
/// have no dot in their last part, as a rule, and pass by all of it.
fn names_with_a_dot(conf: &mut Conf, kind: Kind, fallback: &str) {
    let is_static = kind == Kind::Static;
    conf.open("location ~ \"\\.[^/]*$|[~#]$\"");
    let rows = refused_files().into_iter();
    for row in rows.filter(|row| row.is_for_static || !is_static) {
        conf.note(row.source);
        match row.is_for_files_only {
            false => conf.refuse(row.why, &row.pattern),
            true => {
                conf.note(row.why);
                conf.open(&format!("location ~* \"{}\"", over_lines(&row.pattern)));
                conf.refuse_files(fallback);
                conf.close();
                conf.gap();
            }
        }
    }
    for (lifetime, extensions) in LIFETIMES {
        conf.open(&format!("location ~* \"\\.(?:{extensions})$\""));
        conf.line(&format!("expires {lifetime};"));
        conf.line(&format!("try_files $uri {fallback};"));
        conf.close();
        conf.gap();
    }
    match handed_out(kind) {
        Some(rows) => {
            for (why, pattern) in rows {
                conf.note(why);
                conf.open(&format!("location ~* \"{}\"", over_lines(&pattern)));
                conf.line(&format!("try_files $uri {fallback};"));
                conf.close();
                conf.gap();
            }
            conf.note("No other file.");
            conf.refuse_files(fallback);
        }
        None => conf.line(&format!("try_files $uri $uri/ {fallback};")),
    }
    conf.close();
    conf.gap();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: Kind) -> Found {
        Found {
            kind,
            document_root: match kind {
                Kind::Laravel | Kind::Symfony => "public",
                _ => "",
            },
            front_controller: match kind {
                Kind::PlainPhp | Kind::Static => None,
                Kind::DokuWiki => Some("/doku.php"),
                _ => Some("/index.php"),
            },
            wp_content_parent: None,
            has_short_wiki_paths: kind == Kind::MediaWiki,
            sends_purges: false,
            layout: None,
            signs: &[],
            below: Vec::new(),
            closed_folders: Vec::new(),
        }
    }

    fn cases() -> Vec<(&'static str, Found, ServeOptions)> {
        let plain = |name, kind| (name, found(kind), ServeOptions::default());
        let mut purging = found(Kind::MediaWiki);
        purging.sends_purges = true;
        let mut debian = found(Kind::WordPress);
        debian.wp_content_parent = Some("/var/lib/wordpress");
        let all_options = ServeOptions {
            listen: vec!["80".into(), "[::]:80".into()],
            ttl: Duration::from_millis(200),
            workers: Some(4),
            php: Some("/opt/php 8/php-fpm".into()),
            user: Some("www-data".into()),
            mail_gains_rights: true,
            access_log: Some("/var/log/mayfly.log".into()),
            behind: vec!["127.0.0.1".into(), "10.0.0.0/8".into()],
        };
        let uncached = ServeOptions {
            ttl: Duration::ZERO,
            ..ServeOptions::default()
        };
        vec![
            plain("wordpress", Kind::WordPress),
            ("wordpress_debian", debian, ServeOptions::default()),
            plain("mediawiki", Kind::MediaWiki),
            ("mediawiki_purging", purging, ServeOptions::default()),
            plain("dokuwiki", Kind::DokuWiki),
            plain("drupal", Kind::Drupal),
            plain("laravel", Kind::Laravel),
            plain("symfony", Kind::Symfony),
            plain("front_controller", Kind::FrontController),
            plain("plain_php", Kind::PlainPhp),
            plain("static", Kind::Static),
            ("all_options", found(Kind::FrontController), all_options),
            ("uncached", found(Kind::DokuWiki), uncached),
        ]
    }

    /// `MAYFLY_REWRITE_GOLDEN=1` writes what is produced; review reads the
    /// difference.
    #[test]
    fn each_application_gets_its_configuration() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/golden");
        let mut different = Vec::new();
        for (name, found, options) in cases() {
            let text = write_config(&found, Path::new("/srv/site"), &options).unwrap();
            let file = folder.join(format!("{name}.conf"));
            if std::env::var_os("MAYFLY_REWRITE_GOLDEN").is_some() {
                std::fs::write(&file, &text).unwrap();
            } else if std::fs::read_to_string(&file).ok().as_deref() != Some(&text) {
                different.push(name);
            }
        }
        assert_eq!(different, [""; 0], "differ from their golden files");
    }

    #[test]
    fn two_sites_never_share_a_cache() {
        let zone = |dir| {
            let options = ServeOptions::default();
            let text = write_config(&found(Kind::PlainPhp), Path::new(dir), &options).unwrap();
            let line = text
                .lines()
                .find(|line| line.contains("fastcgi_cache_path"));
            line.unwrap().to_owned()
        };
        assert_ne!(zone("/srv/a"), zone("/srv/b"));
        assert_eq!(zone("/srv/a"), zone("/srv/a"));
    }
}
