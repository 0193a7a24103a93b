//! Promises of the written configurations, request by request: which paths are
//! refused, run or handed out, and which requests are personal. The tests read
//! the configuration as nginx would (locations with patterns in order, the
//! first that matches wins) instead of asking the tables it came from.

use std::path::Path;
use std::sync::Arc;

use pcre2::bytes::{Regex, RegexBuilder};
use shared_request::{Bypass, ReceivedRequest, Rules};

use super::detect::DetectedSite;
use super::{GuestSessions, ServeOptions, SiteKind, detect, write_config};

fn found(kind: SiteKind) -> DetectedSite {
    struct Nothing;
    impl super::site_files::Files for Nothing {
        fn is_file(&self, _: &str) -> bool {
            false
        }
        fn names(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
        fn text(&self, _: &str) -> Option<String> {
            None
        }
    }
    DetectedSite {
        kind,
        ..detect(&Nothing)
    }
}

fn config(kind: SiteKind) -> String {
    config_with(kind, GuestSessions::Uniform)
}

fn config_with(kind: SiteKind, guest_sessions: GuestSessions) -> String {
    let options = ServeOptions {
        guest_sessions,
        ..ServeOptions::default()
    };
    write_config(&found(kind), Path::new("/srv/site"), &options).unwrap()
}

#[test]
fn paths_of_unknown_applications_are_personal_where_nothing_is_found_out() {
    use SiteKind::{DokuWiki, Drupal, Laravel, PlainPhp, WordPress};
    for (kind, sessions, has) in [
        (PlainPhp, GuestSessions::Off, true),
        (PlainPhp, GuestSessions::On, false),
        (PlainPhp, GuestSessions::Uniform, false),
        (Laravel, GuestSessions::Uniform, false),
        (DokuWiki, GuestSessions::Uniform, true),
        (Drupal, GuestSessions::Uniform, true),
        (WordPress, GuestSessions::Uniform, true),
    ] {
        let config = config_with(kind, sessions);
        let names = config.contains("cache_personal_paths \"~*/");
        assert_eq!(names, has, "{kind:?} {sessions:?}");
    }
}

fn regex(pattern: &str, ignores_case: bool) -> Regex {
    RegexBuilder::new()
        .caseless(ignores_case)
        .build(pattern)
        .unwrap()
}

/// A location with a pattern.
#[derive(Default)]
struct Location {
    head: String,
    lines: Vec<String>,
    inner: Vec<Location>,
}

/// The lines and the locations of a block, from behind its opening brace.
fn block<'a>(lines: &mut impl Iterator<Item = &'a str>, head: &str) -> Location {
    let mut location = Location {
        head: head.to_owned(),
        ..Location::default()
    };
    while let Some(line) = lines.next().map(str::trim) {
        match line.strip_suffix(" {") {
            Some(head) => {
                let inner = block(lines, head);
                location.inner.push(inner);
            }
            None if line == "}" => break,
            None => location.lines.push(line.to_owned()),
        }
    }
    location
}

impl Location {
    /// Whether the path fits the pattern. Locations without one are not looked
    /// at.
    fn takes(&self, path: &str) -> bool {
        let Some(head) = self.head.strip_prefix("location ~") else {
            return false;
        };
        let (ignores_case, rest) = match head.strip_prefix('*') {
            Some(rest) => (true, rest.trim()),
            None => (false, head.trim()),
        };
        regex(rest.trim_matches('"'), ignores_case)
            .is_match(path.as_bytes())
            .unwrap()
    }

    /// Whether the path begins with a prefix that goes before patterns.
    fn begins(&self, path: &str) -> bool {
        let prefix = self.head.strip_prefix("location ^~ ");
        prefix.is_some_and(|prefix| path.starts_with(prefix.trim_matches('"')))
    }

    /// The innermost location for a path.
    fn locate(&self, path: &str) -> Option<&Location> {
        let first = self.inner.iter().find(|inner| inner.begins(path));
        let inner = first.or_else(|| self.inner.iter().find(|inner| inner.takes(path)))?;
        Some(inner.locate(path).unwrap_or(inner))
    }

    fn says(&self, line: &str) -> bool {
        self.lines.iter().any(|said| said == line)
    }
}

/// Returns how the location of a path treats it.
fn fate(config: &str, path: &str) -> &'static str {
    let (_, server) = config.split_once("server {\n").unwrap();
    match block(&mut server.lines(), "server").locate(path) {
        None => "page",
        Some(location) if location.says("deny all;") => "refused",
        Some(location) if location.says("fastcgi_pass php:site;") => "run",
        // A page of that name may be.
        Some(location) if location.says("if (-f $request_filename) { return 420; }") => "no file",
        Some(location) if location.says("rewrite ^ /index.php last;") => "page",
        Some(location) if location.says("return 404;") => "nothing",
        Some(_) => "file",
    }
}

#[test]
fn debians_wp_content_is_as_strict_as_any() {
    let found = DetectedSite {
        wp_content_parent: Some("/var/lib/wordpress"),
        ..found(SiteKind::WordPress)
    };
    let options = ServeOptions::default();
    let config = write_config(&found, Path::new("/srv/site"), &options).unwrap();
    #[rustfmt::skip]
    let cases: [(&str, &[&str]); 4] = [
        ("refused", &[
            "/wp-content/plugins/akismet/akismet.php/a.css", "/wp-content/plugins/a/b.php",
            "/wp-content/plugins/a/b.php/c.css", "/wp-content/uploads/dump.sql", "/wp-content/debug.log",
            "/wp-content/.git/HEAD",
        ]),
        ("file", &[
            "/wp-content/plugins/akismet/_inc/akismet.css", "/wp-content/themes/a/style.css",
            "/wp-content/uploads/2026/11/a.docx",
        ]),
        ("no file", &["/wp-content/notes.txt"]),
        ("nothing", &["/wp-content/dump", "/wp-content/uploads/"]),
    ];
    for (expected, paths) in cases {
        for path in paths {
            assert_eq!(fate(&config, path), expected, "{path}");
        }
    }
}

#[test]
fn each_path_is_refused_run_or_handed_out() {
    use SiteKind::*;
    #[rustfmt::skip]
    let cases: &[(SiteKind, &str, &[&str])] = &[
        (PlainPhp, "run", &["/index.php", "/a/b.php", "/a.php/info", "/A/x.php"]),
        (PlainPhp, "refused", &[
            "/.git/config", "/.env", "/a/.htaccess", "/uploads/x.php", "/a/Upload/b/x.PHP", "/uploads/x.php/y.png",
            "/uploads/x.phtml", "/dump.sql", "/dump.sql.gz", "/data.sqlite", "/index.php.bak", "/index.php~",
            "/config.inc", "/composer.json", "/vendor/a/b.php", "/vendor/a/b.php/c.css/d.php", "/x.phar",
            "/x.PHTML", "/error.log", "/settings.yml",
        ]),
        (PlainPhp, "file", &[
            "/a.css", "/a/b.JPG", "/vendor/bootstrap/bootstrap.min.css", "/uploads/a.png",
            "/.well-known/acme-challenge/x", "/robots.txt", "/feed.xml",
        ]),
        (PlainPhp, "no file", &[
            "/node_modules/a/index.html", "/vendor/a/b.txt", "/backups/site.txt", "/a/logs/today.txt",
            "/config/app.json",
        ]),
        (PlainPhp, "page", &["/", "/about", "/vendor/a/b"]),
        (WordPress, "run", &[
            "/index.php", "/wp-login.php", "/wp-admin/index.php", "/wp-admin/admin-ajax.php", "/xmlrpc.php",
            "/wp-includes/js/tinymce/wp-tinymce.php", "/wp-content/plugins/a/b.php", "/blog/wp-login.php",
        ]),
        (WordPress, "refused", &[
            "/wp-content/uploads/2026/x.php", "/wp-content/uploads/x.php/a.jpg", "/wp-config.php",
            "/wp-config.php.bak", "/wp-config-sample.php", "/wp-includes/version.php",
            "/wp-admin/includes/file.php", "/app/uploads/x.phar", "/wp-content/debug.log",
            "/wp-content/cache/x.php",
        ]),
        (WordPress, "file", &[
            "/wp-content/uploads/a.jpg", "/wp-includes/js/a.js", "/wp-content/plugins/a/vendor/b.css",
            "/wp-content/uploads/2026/11/prices.xlsx", "/wp-content/uploads/2026/11/pictures.zip", "/sitemap.xml",
            "/robots.txt",
        ]),
        (WordPress, "no file", &["/notes.txt", "/release-1.2", "/wp-content/updraft/site.uc", "/readme.md"]),
        (WordPress, "page", &["/", "/2026/11/hello/", "/wp-json/wp/v2/posts"]),
        (MediaWiki, "run", &[
            "/index.php", "/index.php/Main_Page", "/load.php", "/api.php", "/rest.php/v1/page/A",
            "/mw-config/index.php",
        ]),
        (MediaWiki, "refused", &[
            "/LocalSettings.php", "/maintenance/eval.php", "/vendor/autoload.php", "/includes/WebStart.php",
            "/images/a/ab/x.php", "/images/a/x.html", "/images/deleted/x.png", "/cache/l10n.cdb",
            "/extensions/A/x.php", "/skins/a.php", "/languages/x", "/composer.json",
        ]),
        (MediaWiki, "file", &["/images/a/ab/Logo.png", "/resources/assets/a.svg", "/skins/Vector/a.css"]),
        (DokuWiki, "run", &[
            "/doku.php", "/doku.php/wiki:syntax", "/lib/exe/css.php", "/lib/exe/fetch.php/wiki:logo.png",
            "/lib/exe/ajax.php", "/lib/plugins/a/b.php", "/feed.php",
        ]),
        (DokuWiki, "refused", &[
            "/data/pages/start.txt", "/data", "/conf/local.php", "/conf/users.auth.php", "/bin/dwpage.php",
            "/inc/init.php", "/vendor/autoload.php", "/DATA/pages/start.txt",
        ]),
        (DokuWiki, "file", &["/lib/tpl/dokuwiki/images/a.png", "/lib/scripts/a.js"]),
        (DokuWiki, "page", &["/start", "/wiki:syntax", "/wiki/syntax"]),
        (Drupal, "run", &[
            "/index.php", "/index.php/node/1", "/update.php/selection", "/core/install.php", "/cron.php",
        ]),
        (Drupal, "refused", &[
            "/sites/default/files/x.php", "/sites/default/private/a.txt", "/sites/default/settings.php",
            "/core/lib/Drupal.php", "/modules/a/a.module", "/modules/a/a.info.yml", "/a.inc",
            "/themes/a/page.tpl.php", "/themes/a/page.html.twig", "/vendor/autoload.php",
            "/sites/default/files/.htaccess", "/other.php",
        ]),
        (Drupal, "file", &["/sites/default/files/styles/large/a.jpg", "/core/misc/drupal.js"]),
        (Laravel, "run", &["/index.php", "/index.php/a"]),
        (Laravel, "refused", &["/other.php", "/storage/x.php", "/.env", "/server.php"]),
        (Laravel, "page", &["/", "/login", "/api/users"]),
        (Static, "refused", &["/a.php", "/.git/HEAD", "/a.html~"]),
        (Static, "page", &["/", "/about"]),
        (Static, "file", &["/install.sh", "/openapi.yaml", "/app-1.2.tar.gz"]),
    ];
    for (kind, expected, paths) in cases {
        let config = config(*kind);
        for path in *paths {
            assert_eq!(fate(&config, path), *expected, "{kind:?} {path}");
        }
    }
}

/// The rules for shared requests that the configuration comes to.
fn shared(config: &str) -> Arc<Rules> {
    let text = config.as_bytes().to_vec();
    let loader: nginx_conf::MemoryLoader = [("/serve.conf", text)].into_iter().collect();
    let root = Path::new("/");
    let read = site::read(Path::new("/serve.conf"), root, None, None, &loader);
    let site = read
        .site
        .unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    let locations = site.http.servers[0].locations.iter();
    let caches = locations.filter_map(|location| match &location.settings.content {
        site::Content::Pass(pass) => pass.cache.as_ref(),
        _ => None,
    });
    let rules = caches.map(|cache| &cache.shared.as_ref().unwrap().request);
    let mut for_pages = rules.filter(|rules| !rules.personal_paths.is_empty());
    Arc::clone(for_pages.next().unwrap())
}

/// Returns the reason why a request for `target` with this Cookie field goes
/// past the cache.
fn bypass(rules: &Rules, target: &str, cookie: &str) -> Option<Bypass> {
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n");
    let head = http1::parse_head(text, &http1::HeadLimits::default()).unwrap();
    let received = ReceivedRequest {
        client: None,
        is_guest: false,
        head: head.view(),
        scheme: "http",
        host: b"a",
        port: None,
        server_port: 80,
        target: target.as_bytes(),
        rewritten: None,
    };
    shared_request::put_key(&received, rules, &mut Vec::new()).err()
}

#[test]
fn cookies_that_may_make_a_page_personal_bypass_and_analytics_do_not() {
    use SiteKind::*;
    #[rustfmt::skip]
    let cases: &[(SiteKind, &str, &[&str])] = &[
        (WordPress, "1", &[
            "wordpress_logged_in_ab12=x", "_ga=1; wordpress_logged_in_ab12=x", "_ga=1;wordpress_sec_x=1",
            "wp-postpass_x=1", "comment_author_x=me", "woocommerce_items_in_cart=1", "woocommerce_cart_hash=a",
            "wp_woocommerce_session_a=b", "PHPSESSID=1",
        ]),
        (WordPress, "0", &["", "_ga=1", "theme=dark", "note=wordpress_logged_in_", "wordpress_test_cookie=1"]),
        (PlainPhp, "1", &["PHPSESSID=1", "theme=dark", "_ga=1; sid=2", "sid=2; _ga=1", "x_ga=1", "sid", "li_at=1"]),
        (PlainPhp, "0", &[
            "", "_ga=GA1.2.3", "_ga=1; _gid=2; _ga_ABC=3", "_ga=1;_fbp=fb.1", "__utma=1; _pk_id.1.ab=2", "_ga",
            "_ga=1; ;",
        ]),
        (DokuWiki, "1", &["DokuWiki=a", "DW5d41402a=b", "_ga=1; DW5d41402a=b", "DOKU_PREFS=a"]),
        (DokuWiki, "0", &["", "_ga=1"]),
        (MediaWiki, "1", &["my_wikiUserID=1", "my_wiki_session=a", "my_wikiToken=a", "_ga=1; my_wikiUserName=a"]),
        (MediaWiki, "0", &["", "mwuser-sessionId=a", "_ga=1"]),
        (Drupal, "1", &[
            "SESS0123456789abcdef0123456789abcdef=a", "SSESS0123456789abcdef0123456789abcdef=a", "NO_CACHE=Y",
        ]),
        (Drupal, "0", &["", "_ga=1", "has_js=1"]),
        (Laravel, "1", &["laravel_session=a; XSRF-TOKEN=b", "shop_session=a", "XSRF-TOKEN=b"]),
        (Symfony, "1", &["PHPSESSID=a", "REMEMBERME=a"]),
    ];
    for (kind, expected, cookies) in cases {
        let rules = shared(&config_with(*kind, GuestSessions::Off));
        for cookie in *cookies {
            let expected = (*expected == "1").then_some(Bypass::Cookie);
            assert_eq!(bypass(&rules, "/", cookie), expected, "{kind:?} {cookie:?}");
        }
    }
}

#[test]
fn addresses_that_do_something_are_exempt_and_pages_are_not() {
    use SiteKind::*;
    #[rustfmt::skip]
    let cases: &[(SiteKind, &str, &[&str])] = &[
        (WordPress, "1", &[
            "/wp-admin/", "/wp-admin", "/wp-login.php?redirect_to=x", "/blog/wp-login.php", "/cart/",
            "/shop/checkout", "/?add-to-cart=7", "/a/?b=c&preview=true", "/?wc-ajax=get_refreshed_fragments",
            "/WP-ADMIN/",
        ]),
        (WordPress, "0", &["/", "/wp-administration-guide/", "/?s=wp-admin", "/a/?p=1", "/carts", "/?s=x?preview"]),
        (DokuWiki, "1", &[
            "/doku.php?id=a&do=edit", "/doku.php?do=login", "/doku.php?do[save]=1", "/doku.php?do%5Bsave%5D=1",
            "/doku.php?d%6f=login", "/doku.php?u=a&p=b", "/lib/exe/taskrunner.php?id=a", "/install.php",
            "/_media/a.png", "/doku.php?do=export_xhtml", "/doku.php?do=showx", "/a?sectok=1",
        ]),
        (DokuWiki, "0", &[
            "/", "/doku.php?id=a", "/doku.php?id=a&do=show", "/doku.php?do=recent&id=a", "/doku.php?id=a%3Ab",
            "/doku.php/a:b", "/doku.php?do=&id=a", "/feed.php", "/library", "/doku.php?id=a&do=search&q=login",
        ]),
        (MediaWiki, "1", &[
            "/index.php?title=A&action=edit", "/index.php?action=submit", "/wiki/Special:UserLogin", "/mw-config/",
        ]),
        (MediaWiki, "0", &[
            "/wiki/A", "/index.php?title=A", "/index.php?title=A&action=history", "/index.php/A?action=view",
        ]),
        (Drupal, "1", &["/user", "/user/login?destination=a", "/admin/content", "/de/user/1", "/node/add/page"]),
        (Drupal, "0", &["/", "/node/1", "/users-guide", "/?page=2"]),
        (PlainPhp, "1", &["/login", "/admin/", "/shop/cart?x=1"]),
        (PlainPhp, "0", &["/", "/index.php?page=login", "/logins"]),
    ];
    for (kind, expected, addresses) in cases {
        let rules = shared(&config_with(*kind, GuestSessions::Off));
        for address in *addresses {
            let is_exempt = bypass(&rules, address, "").is_some();
            assert_eq!(is_exempt, *expected == "1", "{kind:?} {address}");
        }
    }
}
