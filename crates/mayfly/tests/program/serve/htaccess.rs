//! The `.htaccess` files of a site are obeyed as Apache obeys them, and open nothing that `serve` closes by itself.

use std::time::Duration;

use testkit::client::{Reply, Target};
use testkit::serving::FolderServer;

use crate::{has_php_fpm, program};

const RULES: &str = "RewriteEngine On\n\
    RewriteRule ^private/ - [F]\n\
    RedirectMatch 403 ^/old\n\
    Redirect 301 /here /there\n\
    AddHandler php .png\n\
    RewriteCond %{REQUEST_FILENAME} !-d\n\
    RewriteRule ^(.+)/$ /$1 [R=301,L]\n\
    RewriteCond %{QUERY_STRING} (GLOBALS|_REQUEST)= [NC]\n\
    RewriteRule .* - [F]\n\
    <FilesMatch \"\\.(md|secret)$\">\nRequire all denied\n</FilesMatch>\nNoSuchThing x\n";

#[tokio::test]
async fn rules_that_refuse_or_redirect_are_kept_and_others_are_named() {
    let files = [
        (".htaccess", RULES),
        ("index.html", "the page"),
        ("private/a.html", "private"),
        ("old.html", "old"),
        ("notes.md", "notes"),
        ("here", "here"),
        (
            "up/.htaccess",
            "<FilesMatch \"\\.(?i:php)$\">\nRequire all denied\n</FilesMatch>\n",
        ),
        ("up/a.txt", "text"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    let target = server.target();
    for (path, status) in [
        ("/", 200),
        ("/private/a.html", 403),
        ("/private/%61.html", 403),
        ("//private/a.html", 403),
        ("/old.html", 403),
        ("/notes.md", 403),
        ("/?globals=1", 403),
        ("/up/a.txt", 200),
        ("/up/a.PHP", 403),
    ] {
        assert_eq!(target.get(path).await.status, status, "{path}");
    }
    for (path, place) in [
        ("/here", "/there"),
        ("/here/a%0d%0ab?c", "/there/a%0d%0ab?c"),
        ("/a%20b/?c", "/a%20b?c"),
        ("//x.test/", "/x.test"),
    ] {
        let reply = target.get(path).await;
        assert_eq!(reply.status, 301, "{path}");
        let (_, found) = reply.field("location").split_at("http://localhost".len());
        assert_eq!(found, place, "{path}: {}", reply.field("location"));
    }
    let said = server.read("stdout");
    let named =
        "another effect than in Apache:\n  13: nosuchthing: there is no such directive here\n";
    assert!(said.contains(named), "{said}");
}

#[tokio::test]
async fn a_site_that_its_htaccess_closes_is_closed() {
    let files = [
        (
            ".htaccess",
            "AuthType Basic\nAuthName a\nAuthUserFile /none\nRequire valid-user\n",
        ),
        ("index.html", "the page"),
        ("a/b.css", "style"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    for path in ["/", "/index.html", "/a/b.css", "/none"] {
        let reply = server.target().get(path).await;
        assert_eq!(reply.status, 401, "{path}");
        assert_eq!(reply.field("www-authenticate"), "Basic realm=\"a\"");
    }
}

const SAYS: &str = "<?php echo basename($_SERVER['SCRIPT_FILENAME']), '|', $_SERVER['QUERY_STRING'], '|', \
    $_SERVER['HTTP_MOD_REWRITE'] ?? '';";

/// Applications write addresses without `index.php`, and `.htaccess` files, where the software is named Apache: LiteCart
/// and WordPress ask for the word, YOURLS with a capital letter, Drupal and Concrete for a version behind it.
#[tokio::test]
async fn scripts_learn_that_rules_of_apache_are_obeyed() {
    if !has_php_fpm() {
        return;
    }
    let says = "<?php echo preg_match('!^mayfly .*\\bApache/(\\d+)\\.(\\d+)!', $_SERVER['SERVER_SOFTWARE'], $found) ? \"$found[1].$found[2]\" : \
        $_SERVER['SERVER_SOFTWARE'], '|', getenv('MOD_REWRITE') ?: getenv('REDIRECT_MOD_REWRITE');";
    let files = [
        (
            ".htaccess",
            "<IfModule mod_rewrite.c>\n<IfModule mod_env.c>\nSetEnv MOD_REWRITE On\n</IfModule>\nRewriteEngine on\n\
            RewriteRule ^page$ index.php [L]\n</IfModule>\n",
        ),
        ("index.php", says),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    for path in ["/", "/page"] {
        assert_eq!(server.target().get(path).await.text(), "2.4|On", "{path}");
    }
}

/// Folders, and how often each of these files of them is refused: a file, a script, and the index.
#[tokio::test]
async fn what_a_folder_closes_is_closed_scripts_and_index_included() {
    if !has_php_fpm() {
        return;
    }
    #[rustfmt::skip]
    let rules = [
        (
            "password",
            "AuthType Basic\nAuthName a\nAuthUserFile /none\nOrder allow,deny\nAllow from all\nRequire valid-user\n",
            401, 401,
        ),
        ("both", "<RequireAll>\nRequire all granted\nRequire ip 10.9.9.9\n</RequireAll>\n", 403, 403),
        ("method", "Require method POST\n", 403, 403),
        ("except", "<LimitExcept POST>\nDeny from all\n</LimitExcept>\n", 403, 403),
        ("cookie", "RewriteEngine on\nRewriteCond %{HTTP_COOKIE} !pass=1\nRewriteRule ^ - [F]\n", 403, 403),
        ("if", "<If \"%{HTTP_COOKIE} !~ /pass/\">\nRequire all denied\n</If>\n", 403, 403),
        ("engine", "php_flag engine off\n", 200, 403),
        ("handler", "SetHandler none\n", 200, 403),
        ("names", "<FilesMatch \\.php$>\nRequire all denied\n</FilesMatch>\n", 200, 403),
        ("rule", "RewriteEngine on\nRewriteRule \\.php$ - [F]\n", 200, 403),
        ("match", "RedirectMatch 403 ^/match/.*\\.php$\n", 200, 403),
    ];
    let mut files = vec![("index.php".to_owned(), SAYS)];
    for (folder, text, _, _) in rules {
        files.push((format!("{folder}/.htaccess"), text));
        files.push((format!("{folder}/a.css"), "style"));
        files.push((format!("{folder}/a.php"), SAYS));
        files.push((format!("{folder}/index.php"), SAYS));
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (&path[..], *text))
        .collect();
    let server = FolderServer::start_site(program(), &files, &[]).await;
    for (folder, _, file, script) in rules {
        for (path, status) in [
            ("a.css", file),
            ("a.php", script),
            ("index.php", script),
            ("", script),
        ] {
            let reply = server.target().get(&format!("/{folder}/{path}")).await;
            assert_eq!(reply.status, status, "{folder}/{path}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn front_controllers_of_any_name_answer_and_keep_files_from_visitors() {
    if !has_php_fpm() {
        return;
    }
    let files = [
        (
            ".htaccess",
            "SetEnv HTTP_MOD_REWRITE On\nDirectoryIndex front.php\nRewriteEngine on\nRewriteRule ^content/ front.php [L]\n\
            RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule ^.*$ front.php [L]\n",
        ),
        ("front.php", SAYS),
        ("content/a.md", "a draft"),
        ("a.css", "style"),
        ("private/.htaccess", "Redirect 404 /\n"),
        ("private/a.css", "style"),
        (
            "closed/.htaccess",
            "Require all denied\n<FilesMatch \"^a\\.(css|epub)$\">\nRequire all granted\n</FilesMatch>\n",
        ),
        ("closed/a.css", "style"),
        ("closed/a.epub", "book"),
        ("closed/b.css", "style"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    for (path, expected) in [
        ("/", "front.php||On"),
        ("/content/a.md", "front.php||On"),
        ("/link?a=b", "front.php|a=b|On"),
        ("/a.css", "style"),
        ("/closed/a.css", "style"),
        ("/closed/a.epub", "book"),
    ] {
        assert_eq!(server.target().get(path).await.text(), expected, "{path}");
    }
    for (path, status) in [("/closed/b.css", 403), ("/private/a.css", 404)] {
        assert_eq!(server.target().get(path).await.status, status, "{path}");
    }
}

const OF_RESPONSES: &str = "Header set X-A a\nHeader always set X-B \"b %{NAME}e\"\nHeader set X-C c env=NAME\n\
    Header unset X-Powered-By\nHeader set X-Content-Type-Options none\nHeader append Cache-Control public\n\
    SetEnvIf Cookie name=(\\w+) NAME=$1\nExpiresActive on\nExpiresByType text/css \"access plus 1 hour\"\n\
    AddType image/x-own .own\nAddCharset koi8-r .ru\nErrorDocument 403 \"Not for you\"\n\
    ErrorDocument 404 /error.php?a=b\nErrorDocument 410 https://x.test/gone\n\
    RewriteEngine on\nRewriteRule ^cookie\\.css$ - [CO=seen:1:x.test:60:/:secure:httponly]\nRedirect gone /gone\n";

/// Fields, lifetimes, types and pages of errors are those of Apache; a forbidden file is no page of an error.
#[tokio::test]
async fn responses_have_what_the_files_say_of_them() {
    if !has_php_fpm() {
        return;
    }
    let says = "<?php header('X-Powered-By: me'); echo 'error ', $_SERVER['REDIRECT_STATUS'], $_SERVER['REDIRECT_URL'], \
        $_SERVER['QUERY_STRING'];";
    let files = [
        (".htaccess", OF_RESPONSES),
        ("index.php", "<?php echo 'page';"),
        ("error.php", says),
        ("a.css", "style"),
        ("cookie.css", "style"),
        ("b.own.ru", "text"),
        ("closed/.htaccess", "Require all denied\n"),
        (
            "away/.htaccess",
            "Require all denied\nErrorDocument 403 /closed/a.css\n",
        ),
        ("closed/a.css", "secret"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    let target = server.target();
    #[rustfmt::skip]
    let cases = [
        (
            "/a.css", 200, "style",
            &[
                ("x-a", "a"),
                ("x-b", "b (null)"),
                ("x-c", ""),
                ("cache-control", "max-age=3600, public"),
                ("x-content-type-options", "nosniff"),
            ][..],
        ),
        (
            "/cookie.css", 200, "style",
            &[("set-cookie", "seen=1; path=/; domain=x.test; Max-Age=3600; secure; HttpOnly")],
        ),
        ("/b.own.ru", 200, "text", &[("content-type", "image/x-own; charset=koi8-r")]),
        ("/closed/a.css", 403, "Not for you", &[("x-a", ""), ("x-b", "b (null)")]),
        ("/none", 404, "error 404/nonea=b", &[("x-powered-by", ""), ("x-a", "a")]),
        ("/gone", 302, "", &[("location", "https://x.test/gone")]),
        ("/away/a.css", 403, "", &[]),
    ];
    for (path, status, text, fields) in cases {
        let reply = target.get(path).await;
        assert_eq!(reply.status, status, "{path}");
        assert!(
            text.is_empty() || reply.text() == text,
            "{path}: {}",
            reply.text()
        );
        assert!(!reply.text().contains("secret"), "{path}");
        for (name, value) in fields {
            let found = reply.field(name);
            assert_eq!(found, *value, "{path}: {name}");
        }
    }
}

/// A field that depends on a visitor is in no stored page.
#[tokio::test]
async fn a_field_for_one_visitor_goes_to_no_other_with_a_stored_page() {
    if !has_php_fpm() {
        return;
    }
    let rules = "<If \"%{HTTP_USER_AGENT} == 'ada'\">\nHeader set X-Agent %{HTTP_AGENT}e\n</If>\n\
        <If \"%{HTTP_USER_AGENT} == 'bob'\">\nHeader set X-Agent bob\n</If>\n";
    let files = [
        (".htaccess", rules),
        (
            "index.php",
            "<?php header('Cache-Control: max-age=3600'); echo uniqid();",
        ),
    ];
    let server = FolderServer::start_site(program(), &files, &["--ttl", "1h"]).await;
    let target = server.target();
    let mut pages = std::collections::BTreeSet::new();
    for (agent, expected) in [
        ("ada", "(null)"),
        ("bob", "bob"),
        ("eve", ""),
        ("ada", "(null)"),
    ] {
        let fields = format!("User-Agent: {agent}\r\n");
        let reply = target.visit_until_hit("/", &fields).await;
        assert_eq!(reply.field("x-agent"), expected, "{agent}");
        pages.insert(reply.text());
    }
    assert_eq!(pages.len(), 1, "{pages:?}");
}

/// Asks again and again until the reply is so.
async fn asked_until(target: &Target, path: &str, is_so: impl Fn(&Reply) -> bool) {
    for _ in 0..MAX_ASKED {
        if is_so(&target.get(path).await) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{path} is not answered so");
}

/// How often; more than a minute on a machine that does nothing else.
const MAX_ASKED: usize = 6000;

/// A file that appears counts within two seconds, for pages from memory as well, and stops to count when it goes.
#[tokio::test]
async fn a_file_that_appears_or_goes_counts_while_the_server_runs() {
    if !has_php_fpm() {
        return;
    }
    let files = [
        (
            "index.php",
            "<?php header('Cache-Control: max-age=3600'); echo uniqid();",
        ),
        ("up/private/a.css", "style"),
    ];
    let server = FolderServer::start_site(program(), &files, &["--ttl", "1h"]).await;
    let target = server.target();
    let site = server.site().to_owned();
    asked_until(&target, "/", |reply| reply.x_cache() == "HIT").await;
    let page = target.get("/").await.text().to_owned();
    assert_eq!(target.get("/up/private/a.css").await.status, 200);
    for path in ["/", "/up/private/a.css"] {
        let folder = site.join(
            path.rsplit_once('/')
                .map_or("", |it| it.0)
                .trim_start_matches('/'),
        );
        let file = folder.join(".htaccess");
        std::fs::write(&file, "Require all denied\n").expect("a file");
        asked_until(&target, path, |reply| reply.status == 403).await;
        std::fs::remove_file(&file).expect("it was there");
        asked_until(&target, path, |reply| reply.status == 200).await;
    }
    // The stored page is the same, for each thread once it has looked at the folder.
    asked_until(&target, "/", |reply| reply.text() == page).await;
}

/// An account of the site must not make the server read files outside of the site, or wait.
#[tokio::test]
async fn links_out_of_the_site_and_fifos_close_their_folder() {
    let site = FolderServer::folder();
    let outside = FolderServer::folder();
    std::fs::write(outside.path().join("secret"), "SECRET words\n").expect("a file");
    testkit::serving::write_files(
        site.path(),
        &[
            ("index.html", "page"),
            ("link/a.css", "a"),
            ("fifo/a.css", "a"),
            ("inner/a.css", "a"),
            ("rules", "Require all granted\n"),
        ],
    );
    let link = |to: &std::path::Path, from: &str| {
        std::os::unix::fs::symlink(to, site.path().join(from)).expect("a link");
    };
    link(&outside.path().join("secret"), "link/.htaccess");
    // Root's own links are followed, and those to files of the same account.
    let another = Some(65534);
    let place = site.path().join("link/.htaccess");
    if std::os::unix::fs::lchown(&place, another, another).is_err() {
        return;
    }
    link(std::path::Path::new("../rules"), "inner/.htaccess");
    let fifo = std::process::Command::new("mkfifo")
        .arg(site.path().join("fifo/.htaccess"))
        .status();
    assert!(fifo.expect("mkfifo").success());
    let shown = site.path().to_str().expect("a plain path");
    let server = FolderServer::start(program(), shown, &[]).await;
    for (path, status) in [
        ("/", 200),
        ("/link/a.css", 403),
        ("/fifo/a.css", 403),
        ("/inner/a.css", 200),
    ] {
        assert_eq!(server.target().get(path).await.status, status, "{path}");
    }
    let log = server.error_log();
    assert!(log.contains("/link/.htaccess cannot be read"), "{log}");
    assert!(
        !log.contains("SECRET") && !server.read("stdout").contains("SECRET"),
        "{log}"
    );
}

/// A visitor who gets PHP to write the file opens nothing by it.
#[tokio::test]
async fn nothing_that_serve_closes_is_opened() {
    if !has_php_fpm() {
        return;
    }
    let opens = "Require all granted\n<FilesMatch \".*\">\nRequire all granted\n</FilesMatch>\n\
        <Files dump.sql>\nRequire all granted\n</Files>\nRewriteRule . - [L]\nAddHandler php .png\n";
    let files = [
        (".htaccess", opens),
        ("index.php", "<?php echo 'page';"),
        ("b.php", "<?php echo 'b';"),
        ("dump.sql", "a dump"),
        (".env", "a key"),
        ("a.png", "<?php echo 'run';"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    let target = server.target();
    for (path, status) in [
        ("/", 200),
        ("/b.php", 200),
        ("/dump.sql", 403),
        ("/.env", 403),
        ("/.htaccess", 403),
    ] {
        assert_eq!(target.get(path).await.status, status, "{path}");
    }
    assert_eq!(target.get("/a.png").await.text(), "<?php echo 'run';");
}

/// A denied script does not run, however it is asked for, and an exception holds for its own name.
#[tokio::test]
async fn a_script_that_the_htaccess_refuses_does_not_run() {
    if !has_php_fpm() {
        return;
    }
    let rules = "<FilesMatch \"\\.php$\">\nDeny from all\n</FilesMatch>\n\
        <FilesMatch \"^(index|open)\\.php$\">\nAllow from all\n</FilesMatch>\n";
    let files = [
        (".htaccess", rules),
        ("index.php", "<?php echo 'page';"),
        ("open.php", "<?php echo 'open';"),
        ("secret.php", "<?php echo 'run';"),
    ];
    let server = FolderServer::start_site(program(), &files, &[]).await;
    let target = server.target();
    for path in [
        "/secret.php",
        "/secret.php/",
        "/secret.php/index.php",
        "/secret.php/open.php",
        "/x/../secret.php",
        "/%73ecret.php/a.css",
    ] {
        let reply = target.get(path).await;
        assert_eq!(reply.status, 403, "{path}");
        assert!(!reply.text().contains("run"), "{path}");
    }
    for (path, page) in [("/", "page"), ("/index.php", "page"), ("/open.php", "open")] {
        assert_eq!(target.get(path).await.text(), page, "{path}");
    }
}

/// Returns the output of the comparison with Debian's Apache; `None` without Apache, its PHP or root.
fn compared_with_apache(arguments: &[&str]) -> Option<String> {
    let modules = std::fs::read_dir("/usr/lib/apache2/modules")
        .into_iter()
        .flatten();
    let mut names = modules.flatten().map(|it| it.file_name());
    let has_php = names.any(|name| name.to_string_lossy().starts_with("libphp"));
    if !has_php || !has_php_fpm() || !rustix::process::geteuid().is_root() {
        return None;
    }
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scripts/conformance/apache_htaccess.py"
    );
    let compared = std::process::Command::new("python3")
        .args([script, "--binary", program()])
        .args(arguments)
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&compared.stdout).into_owned();
    let failed = String::from_utf8_lossy(&compared.stderr);
    assert!(compared.status.success(), "{said}{failed}");
    Some(said)
}

/// Trees of files that are made from seeds are answered as Debian's Apache answers them; a request that Apache refuses
/// is refused.
#[test]
fn generated_trees_are_answered_as_by_apache() {
    if let Some(said) = compared_with_apache(&["--generated", "500", "--requests", "6"]) {
        assert!(said.contains("seeds 1 to 500: "), "{said}");
    }
}

/// So are virtual hosts that `mayfly convert` has made servers of.
#[test]
fn converted_virtual_hosts_are_answered_as_by_apache() {
    let arguments = ["--generated", "30", "--requests", "10", "--way", "convert"];
    if let Some(said) = compared_with_apache(&arguments) {
        assert!(said.contains("30 virtual hosts converted"), "{said}");
    }
}

/// FreshRSS has such a line, for the address of a proxy in front.
#[tokio::test]
async fn a_variable_with_the_address_of_a_visitor_makes_no_page_personal_that_does_not_show_it() {
    if !has_php_fpm() {
        return;
    }
    let files = [
        (
            ".htaccess",
            "RewriteEngine on\nRewriteRule .* - [E=CONN_REMOTE_ADDR:%{CONN_REMOTE_ADDR}]\nSetEnv PLACE 198.51.100.7\n",
        ),
        ("index.php", "<?php echo uniqid();"),
        (
            "own.php",
            "<?php echo $_SERVER['CONN_REMOTE_ADDR'], $_SERVER['PLACE'];",
        ),
    ];
    let arguments = ["--behind", "unix:", "--ttl", "1h"];
    let server = FolderServer::start_site(program(), &files, &arguments).await;
    let get = async |path: &str, visitor: u8| {
        let fields = format!("X-Forwarded-For: 10.{visitor}.0.1\r\n");
        server.target().get_with(path, &fields).await
    };
    for visitor in 1..=200 {
        let own = get("/own.php", visitor).await.text();
        assert_eq!(own, format!("10.{visitor}.0.1198.51.100.7"));
        if get("/", visitor).await.x_cache() == "HIT" && visitor > 9 {
            return;
        }
    }
    panic!("each visitor has a page of their own");
}
