//! What was found and what was asked for in, nginx-syntax configuration out;
//! pure. The text is for reading: an administrator copies it and goes on from
//! there, so each part says why it is there.
//!
//! Two shapes of caching. Most applications set cookies only when they mean
//! it: one location runs PHP, looks up what is not personal and bypasses the
//! rest. DokuWiki starts a session for everybody, which makes PHP say
//! `no-store` on every page: there PHP runs uncached unless the request is an
//! ordinary look without any cookie, and such looks go to a location that
//! disregards what the session did. Crawlers get a location of their own in
//! both shapes, as a lifetime cannot be a variable.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::applications::{
    ANALYTICS_ARGUMENTS, ANALYTICS_COOKIES, CRAWLERS, Cookies, PHP, Rules, SECRET_EXTENSIONS,
    SECRET_NAMES, Scripts, rules,
};
use super::conf_text::{CannotWrite, Conf, path, time, word};
use super::detect::{Found, Kind};

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
        }
    }
}

/// Crawlers get pages up to this age.
pub(super) const CRAWLER_TTL: Duration = Duration::from_secs(60);

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
    let rules = rules(found.kind);
    let caching = rules.as_ref().filter(|_| !options.ttl.is_zero());
    main_context(&mut conf, found, options, rules.is_some())?;
    conf.open("http");
    log(&mut conf, options)?;
    types(&mut conf);
    if let Some(rules) = caching {
        cache_zone(&mut conf, FASTCGI, dir.as_os_str().as_encoded_bytes());
        maps(&mut conf, found.kind, rules);
    }
    conf.open("server");
    server(&mut conf, found, dir, options)?;
    if rules.is_some() {
        php_params(&mut conf);
    }
    if caching.is_some() {
        cache_rules(&mut conf, FASTCGI, found.kind, options);
    }
    conf.gap();
    locations(&mut conf, found, rules.as_ref(), caching.is_some());
    if caching.is_some() {
        page_locations(&mut conf, found.kind, options);
    }
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
const TYPES: [(&str, &str); 34] = [
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
    ("image/jpeg", "jpeg jpg"),
    ("image/png", "png"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/svg+xml", "svg"),
    ("image/x-icon", "ico"),
    ("image/bmp", "bmp"),
    ("font/woff", "woff"),
    ("font/woff2", "woff2"),
    ("font/ttf", "ttf"),
    ("font/otf", "otf"),
    ("audio/mpeg", "mp3"),
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

/// A protocol's spelling of directives, and who makes the pages.
#[derive(Clone, Copy)]
pub(super) struct Spelling {
    pub(super) prefix: &'static str,
    pub(super) maker: &'static str,
    /// What else makes a request one of its own.
    pub(super) exempts: &'static str,
    /// Failures of the maker's that the last copy stands in for.
    pub(super) failures: &'static str,
}

const FASTCGI: Spelling = Spelling {
    prefix: "fastcgi",
    maker: "PHP",
    exempts: "",
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

pub(super) fn maps(conf: &mut Conf, kind: Kind, rules: &Rules) {
    conf.note("Only looking at a page is shared, never an action.");
    conf.map(
        "$request_method $is_action",
        &[("default", "1"), ("GET", "0"), ("HEAD", "0")],
    );
    conf.note("Cookies that make a page personal.");
    match rules.cookies {
        Cookies::Named(names) => {
            let pattern = format!("~(?:^|;\\s*)(?:{})=", names.join("|"));
            conf.map(
                "$http_cookie $is_personal",
                &[("default", "0"), (&pattern, "1")],
            );
        }
        Cookies::Any => {
            let names: Vec<String> = ANALYTICS_COOKIES
                .iter()
                .map(|name| name.replace('*', "[^=;]*"))
                .collect();
            let pattern = format!("~^(?:\\s*(?:{})=[^;]*(?:;|$))+$", names.join("|"));
            conf.map(
                "$http_cookie $is_personal",
                &[("default", "1"), ("''", "0"), (&pattern, "0")],
            );
        }
    }
    conf.note("Addresses that are personal or do something.");
    let paths = format!("~*^[^?]*/(?:{})(?:[/?]|$)", rules.paths.join("|"));
    let arguments = format!(
        "~*^[^?]*\\?(?:.*&)?(?:{})(?:=|&|$)",
        rules.arguments.join("|")
    );
    let mut cases = vec![("default", "0"), (&*paths, "1")];
    if !rules.arguments.is_empty() {
        cases.push((&*arguments, "1"));
    }
    conf.map("$request_uri $is_exempt", &cases);
    conf.note("Crawlers read everything and may get pages that are a little older.");
    let crawlers = format!("~*(?:{})", CRAWLERS.join("|"));
    conf.map(
        "$http_user_agent $is_crawler",
        &[("default", "0"), (&crawlers, "1")],
    );
    if kind == Kind::DokuWiki {
        conf.note("An ordinary look at a page: none of the above, no password, no script.");
        let all = "\"$is_action$is_personal$is_exempt$http_authorization$http_x_requested_with/$is_crawler\" $look";
        let nobody = ("default", "''");
        conf.map(all, &[nobody, ("000/0", "visitor"), ("000/1", "crawler")]);
    }
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
    Ok(())
}

/// Debian's fastcgi.conf, with the folder's real path so that a link to the
/// current release may change, and without a field that scripts take for the
/// environment variable.
const PARAMS: [(&str, &str); 21] = [
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
    ("REMOTE_USER", "$remote_user"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$host"),
];

fn php_params(conf: &mut Conf) {
    conf.gap();
    for (name, value) in PARAMS {
        conf.line(&format!("fastcgi_param {name} {value};"));
    }
    conf.line("fastcgi_param REDIRECT_STATUS 200;");
    conf.line("fastcgi_param HTTP_PROXY '';");
    conf.line("fastcgi_keep_conn on;");
    conf.line("fastcgi_read_timeout 300s;");
    conf.line("fastcgi_buffers 16 16k;");
    conf.line("fastcgi_buffer_size 32k;");
}

/// Everything that applications build links and redirects from: a visitor who
/// lies about one of them gets a page of their own, and nobody else does.
pub(super) const KEY: &str =
    "$scheme://$http_host$request_uri $host $http_x_forwarded_proto $http_x_forwarded_host";

pub(super) fn cache_rules(conf: &mut Conf, spelling: Spelling, kind: Kind, options: &ServeOptions) {
    let Spelling {
        prefix,
        maker,
        exempts,
        failures,
    } = spelling;
    conf.gap();
    conf.note(&format!(
        "One request per page and lifetime reaches {maker}; while it is renewed or {maker}"
    ));
    conf.note("fails, the last copy is shown.");
    if kind != Kind::DokuWiki {
        conf.line(&format!("{prefix}_cache pages;"));
        let reasons =
            "$is_action $is_personal $is_exempt $http_authorization $http_x_requested_with";
        conf.line(&format!("{prefix}_cache_bypass {reasons}{exempts};"));
        conf.line(&format!("{prefix}_no_cache {reasons}{exempts};"));
    }
    conf.line(&format!("{prefix}_cache_key \"{KEY}\";"));
    conf.line(&valid(spelling, options.ttl));
    conf.line(&format!("{prefix}_cache_use_stale {failures} updating;"));
    conf.line(&format!("{prefix}_cache_background_update on;"));
    conf.line(&format!("{prefix}_cache_lock on;"));
    conf.note("Who has just written something sees it.");
    conf.line("cache_read_your_writes 2s;");
    conf.note("What only statistics read makes no page of its own.");
    conf.line(&format!(
        "cache_ignore_args {};",
        ANALYTICS_ARGUMENTS.join(" ")
    ));
    conf.line(&format!(
        "cache_ignore_cookies {};",
        ANALYTICS_COOKIES.join(" ")
    ));
    conf.line("add_header X-Cache $upstream_cache_status always;");
}

pub(super) fn valid(spelling: Spelling, lifetime: Duration) -> String {
    format!(
        "{}_cache_valid 200 203 301 308 404 410 {};",
        spelling.prefix,
        time(lifetime)
    )
}

fn locations(conf: &mut Conf, found: &Found, rules: Option<&Rules>, is_caching: bool) {
    conf.note("What begins with a dot is nobody's business, but for .well-known.");
    conf.refuse("/\\.(?!well-known(?:/|$))");
    for (why, pattern) in rules.iter().flat_map(|rules| rules.refused) {
        conf.note(why);
        conf.refuse(pattern);
    }
    if let Some(parent) = found.wp_content_parent {
        debian_wp_content(conf, parent);
    }
    if let Some(rules) = rules {
        php(conf, found.kind, rules.scripts, is_caching);
    } else {
        conf.note("There is no PHP here: scripts are not shown as text.");
        conf.refuse(PHP);
    }
    if rules.is_some() {
        conf.note("Copies, databases, logs and sources.");
        conf.refuse(&format!(
            "\\.(?:{SECRET_EXTENSIONS})$|~$|/(?:{SECRET_NAMES})$"
        ));
    } else {
        conf.note("What editors leave behind.");
        conf.refuse("\\.(?:bak|orig|save|sw[op])$|~$");
    }
    if found.has_short_wiki_paths {
        conf.open("location ^~ /wiki/");
        conf.line("rewrite ^ /index.php last;");
        conf.close();
        conf.gap();
    }
    files(conf, found);
}

/// Where PHP runs.
fn php(conf: &mut Conf, kind: Kind, scripts: Scripts, is_caching: bool) {
    if kind == Kind::DokuWiki && is_caching {
        conf.note("Styles and scripts, the same for everybody, say themselves how long.");
        conf.open("location ~ ^/lib/exe/(?:css|js|jquery|manifest|opensearch)\\.php$");
        conf.line("fastcgi_cache pages;");
        conf.line("fastcgi_pass php:site;");
        conf.close();
        conf.gap();
        conf.note("Pictures and the housekeeping that each page calls need no session: a cookie");
        conf.note("from here would make every further page of the visitor personal.");
        conf.open("location ~ ^/lib/exe/(?:fetch|taskrunner|indexer)\\.php(?:/|$)");
        conf.line(SPLIT);
        conf.line("fastcgi_hide_header Set-Cookie;");
        conf.line("fastcgi_pass php:site;");
        conf.close();
        conf.gap();
    }
    match scripts {
        Scripts::All => conf.open("location ~ \\.php(?:/|$)"),
        Scripts::Only(pattern) => conf.open(&format!("location ~ \"{pattern}\"")),
    }
    conf.line(SPLIT);
    conf.line("if (!-f $document_root$fastcgi_script_name) { return 404; }");
    if is_caching {
        conf.line("error_page 419 = @crawler;");
        if kind == Kind::DokuWiki {
            conf.line("error_page 418 = @visitor;");
            conf.line("if ($look = visitor) { return 418; }");
            conf.line("if ($look = crawler) { return 419; }");
        } else {
            conf.line("if ($is_crawler) { return 419; }");
        }
    }
    conf.line("fastcgi_pass php:site;");
    conf.close();
    conf.gap();
    if let Scripts::Only(_) = scripts {
        conf.note("No other script runs, or is shown.");
        conf.refuse(PHP);
    }
}

const SPLIT: &str = "fastcgi_split_path_info ^(.+?\\.php)(/.*)?$;";

/// The locations that only the one above leads to.
fn page_locations(conf: &mut Conf, kind: Kind, options: &ServeOptions) {
    let is_dokuwiki = kind == Kind::DokuWiki;
    if is_dokuwiki {
        conf.note("DokuWiki starts a session for everybody, so PHP says no-store and sets a");
        conf.note("cookie on every page. These requests came without a cookie: the page is the");
        conf.note("same for all who ask so, and the session is of no use to them.");
        conf.open("location @visitor");
        look(conf);
        conf.close();
        conf.gap();
    }
    conf.open("location @crawler");
    if is_dokuwiki {
        look(conf);
    } else {
        conf.line(SPLIT);
        conf.line("fastcgi_pass php:site;");
    }
    conf.line(&format!("fastcgi_cache_key \"crawler {KEY}\";"));
    conf.line(&valid(FASTCGI, options.ttl.max(CRAWLER_TTL)));
    conf.close();
}

fn look(conf: &mut Conf) {
    conf.line(SPLIT);
    conf.line("fastcgi_pass php:site;");
    conf.line("fastcgi_cache pages;");
    conf.line("fastcgi_ignore_headers Cache-Control Expires Set-Cookie;");
    conf.line("fastcgi_hide_header Set-Cookie;");
    conf.line("cache_store_set_cookie on;");
}

/// Debian's WordPress keeps themes, plugins and uploads elsewhere.
fn debian_wp_content(conf: &mut Conf, parent: &str) {
    conf.note("Themes, plugins and uploads; nothing there is visited as a script.");
    conf.open("location ^~ /wp-content/");
    conf.line(&format!("root {parent};"));
    conf.line("expires 1h;");
    conf.line("try_files $uri =404;");
    conf.refuse("/\\.");
    conf.refuse(PHP);
    conf.refuse(&format!("\\.(?:{SECRET_EXTENSIONS})$|~$"));
    conf.close();
    conf.gap();
}

/// Files, and what is none.
fn files(conf: &mut Conf, found: &Found) {
    let fallback = match (found.kind, found.front_controller) {
        (Kind::DokuWiki, _) => "@wiki".to_owned(),
        (_, Some(script)) => format!("{script}?$args"),
        (_, None) => "=404".to_owned(),
    };
    let lifetimes = [
        ("1h", "css|js|mjs|map|webmanifest"),
        (
            "7d",
            "gif|jpe?g|png|webp|avif|svg|ico|bmp|woff2?|ttf|otf|eot|mp3|ogg|opus|mp4|m4v|webm|ogv|pdf|zip",
        ),
    ];
    for (lifetime, extensions) in lifetimes {
        conf.open(&format!("location ~* \"\\.(?:{extensions})$\""));
        conf.line(&format!("expires {lifetime};"));
        conf.line(&format!("try_files $uri {fallback};"));
        conf.close();
        conf.gap();
    }
    conf.open("location /");
    conf.line(&format!("try_files $uri $uri/ {fallback};"));
    conf.close();
    conf.gap();
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
        }
    }

    fn cases() -> Vec<(&'static str, Found, ServeOptions)> {
        let plain = |name, kind| (name, found(kind), ServeOptions::default());
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
        };
        let uncached = ServeOptions {
            ttl: Duration::ZERO,
            ..ServeOptions::default()
        };
        vec![
            plain("wordpress", Kind::WordPress),
            ("wordpress_debian", debian, ServeOptions::default()),
            plain("mediawiki", Kind::MediaWiki),
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
