//! The locations of a site: which paths are refused, which scripts run, and which files
//! are handed out. [`locations()`] has their order.

use std::time::Duration;

use super::applications::{PHP, Rules, Scripts};
use super::conf_text::{Conf, Refusals as _, over_lines, time};
use super::detect::DetectedSite;
use super::kind::SiteKind;
use super::nested_applications;
use super::php_params::HIDE_NOSNIFF;
use super::refused::{LIFETIMES, REFUSED_NAMES, handed_out, refused_files};

/// The order decides. A path is refused for its parts (a dot, a private folder, a
/// script that is not to be run), then run for the script that it names, then looked at
/// as a file: no later location can take back an earlier one's refusal.
pub(super) fn locations(
    conf: &mut Conf,
    found: &DetectedSite,
    rules: Option<&Rules>,
    is_caching: bool,
    vouched_ttl: Option<Duration>,
) {
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
        debian_wp_content(conf, parent);
    }
    let scripts = rules.map(|rules| rules.scripts);
    nested_applications::refused_and_scripts(conf, &found.nested, scripts, |conf, pattern| {
        scripts_of(
            conf,
            &format!("location ~ \"{pattern}\""),
            SiteKind::PlainPhp,
            is_caching,
        );
    });
    if let Some(ttl) = vouched_ttl {
        conf.note("WordPress's own pages, of which its plug-in knows when they change.");
        conf.open("location = /index.php");
        conf.line(&format!("cache_max_valid {};", time(ttl)));
        conf.line("fastcgi_pass php:site;");
        conf.close();
        conf.gap();
    }
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

/// Writes the locations in which PHP runs.
fn php(conf: &mut Conf, kind: SiteKind, scripts: Scripts, is_caching: bool) {
    if kind == SiteKind::DokuWiki && is_caching {
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
    if kind == SiteKind::MediaWiki && is_caching {
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
fn scripts_of(conf: &mut Conf, head: &str, kind: SiteKind, is_caching: bool) {
    conf.open(head);
    conf.line(SPLIT);
    conf.line("if (!-f $document_root$fastcgi_script_name) { return 404; }");
    if kind == SiteKind::DokuWiki && is_caching {
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
fn debian_wp_content(conf: &mut Conf, parent: &str) {
    conf.note("Themes, plugins and uploads; nothing there is visited as a script.");
    conf.open("location ^~ /wp-content/");
    conf.line(&format!("root {parent};"));
    conf.gap();
    conf.refuse(DOT, "/\\.");
    conf.refuse("A script that is not visited.", PHP);
    names_with_a_dot(conf, SiteKind::WordPress, "=404");
    conf.line("return 404;");
    conf.close();
    conf.gap();
}

/// Files, and paths without a file.
fn files(conf: &mut Conf, found: &DetectedSite) {
    let fallback = match (found.kind, found.front_controller) {
        _ if !found.nested.is_empty() => nested_applications::FALLBACK.to_owned(),
        (SiteKind::DokuWiki, _) => "@wiki".to_owned(),
        (_, Some(script)) => format!("{script}?$args"),
        (_, None) => "=404".to_owned(),
    };
    names_with_a_dot(conf, found.kind, &fallback);
    conf.note("Proofs of ownership, for certificates and applications.");
    conf.open("location ~ \"^/(?:\\.well-known/|apple-app-site-association$)\"");
    conf.line(&format!("try_files $uri $uri/ {fallback};"));
    conf.close();
    conf.gap();
    if found.kind == SiteKind::Static {
        conf.note("Keys, logs and memory images.");
        conf.open(&format!("location ~* \"{REFUSED_NAMES}\""));
        conf.refuse_files(&fallback);
        conf.close();
        conf.gap();
    }
    conf.open("location /");
    match found.kind {
        SiteKind::Static => conf.line(&format!("try_files $uri $uri/ {fallback};")),
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
    if !found.nested.is_empty() {
        nested_applications::fallback(conf, found);
    }
    if found.kind == SiteKind::DokuWiki {
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
fn names_with_a_dot(conf: &mut Conf, kind: SiteKind, fallback: &str) {
    let is_static = kind == SiteKind::Static;
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
