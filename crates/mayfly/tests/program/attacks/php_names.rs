//! Cookies, arguments and paths in disguise: the cache takes them for something else than
//! PHP does.

use testkit::client::Target;

use super::random::Random;
use super::start_site;

const MIRROR: &str = "<?php header('Content-Type: text/html');
    $names = fn($all) => implode(' ', array_map('bin2hex', array_map('strval', array_keys($all))));
    echo json_encode(['get' => $_GET, 'cookie' => $_COOKIE,
    'names_get' => $names($_GET), 'names_cookie' => $names($_COOKIE),
    'uri' => $_SERVER['REQUEST_URI'], 'query' => $_SERVER['QUERY_STRING'],
    'user' => [$_SERVER['REMOTE_USER'] ?? '', $_SERVER['PHP_AUTH_USER'] ?? '']]);";

/// Files by which `serve` takes a folder for WordPress.
const WORDPRESS: &[(&str, &str)] = &[
    ("index.php", MIRROR),
    ("wp-login.php", MIRROR),
    ("wp-load.php", "<?php"),
    ("wp-settings.php", "<?php"),
    ("wp-config.php", "<?php"),
    ("wp-includes/version.php", "<?php $wp_version = '6.1';"),
    ("wp-admin/index.php", MIRROR),
];

/// Stores the page as a stranger sees it.
async fn store(target: &Target, path: &str) {
    target.get(path).await;
    assert_eq!(target.get(path).await.x_cache(), "HIT", "{path}");
}

#[tokio::test]
async fn a_session_is_known_however_its_cookie_is_spelt() {
    let server = start_site(WORDPRESS).await;
    let target = server.target();
    store(&target, "/").await;
    for cookie in [
        "wordpress_logged_in_x=1",
        "wordpress.logged.in_x=1",
        "wordpress logged_in_x=1",
        "wordpress_logged_in_x[a]=1",
        "a=b;wordpress_logged_in_x=1",
        "a=b;\twordpress_logged_in_x=1",
        "a=b;   wordpress_logged_in_x=1",
        "wordpress_logged_in_x",
        "wordpress_logged_in_x=0",
        "wordpress_logged_in_x=",
        "_ga=1; wordpress.logged_in_x=1",
    ] {
        let reply = target.get_with("/", &format!("Cookie: {cookie}\r\n")).await;
        assert_eq!(reply.x_cache(), "BYPASS", "{cookie:?}");
        assert!(
            reply.text().contains("wordpress_logged_in_x"),
            "{cookie:?}: {}",
            reply.text()
        );
    }
}

#[tokio::test]
async fn a_cookie_that_does_not_matter_reaches_no_shared_page() {
    let server = start_site(WORDPRESS).await;
    let target = server.target();
    // One that no rule names may matter: its visitor has a page of their own.
    let unknown = "Cookie: _ga=evil; theme=evil; wp-settings-1=evil\r\n";
    let own = target.get_with("/", unknown).await;
    assert_eq!((own.x_cache(), own.text().contains("evil")), ("MISS", true));
    for wanted in ["MISS", "HIT"] {
        let reply = target
            .get_with("/", "Cookie: _ga=evil; wp-settings-1=evil\r\n")
            .await;
        assert_eq!(
            (reply.x_cache(), reply.text().contains("evil")),
            (wanted, false)
        );
    }
    target.get_with("/", unknown).await;
    let reply = target.get("/").await;
    assert_eq!(
        (reply.x_cache(), reply.text().contains("evil")),
        ("HIT", false)
    );
    // A language is in the key, and sent.
    let german = target
        .get_with("/", "Cookie: pll_language=de; _ga=1\r\n")
        .await;
    assert_eq!(german.x_cache(), "MISS");
    assert!(
        german.text().contains(r#""pll_language":"de""#),
        "{}",
        german.text()
    );
    let again = target
        .get_with("/", "Cookie: _ga=2; pll_language=de\r\n")
        .await;
    assert_eq!((again.x_cache(), again.text()), ("HIT", german.text()));
    assert!(!target.get("/").await.text().contains("pll_language"));
}

#[tokio::test]
async fn arguments_for_statistics_reach_no_shared_page() {
    let server = start_site(WORDPRESS).await;
    let target = server.target();
    for query in [
        "utm_source=evil",
        "utm%5Fsource=evil",
        "utm_source[]=evil",
        "utm.source=evil",
        "%75tm_source=evil",
        "+utm_source=evil",
        "gclid=evil",
    ] {
        let reply = target.get(&format!("/?{query}")).await;
        assert!(!reply.text().contains("evil"), "{query}: {}", reply.text());
    }
    assert_eq!(target.get("/").await.x_cache(), "HIT");
}

/// PHP takes the first 1,000 (`max_input_vars`).
#[tokio::test]
async fn a_thousand_ignored_arguments_do_not_hide_the_one_that_counts() {
    let server = start_site(WORDPRESS).await;
    let target = server.target();
    let ignored = "utm_a&".repeat(600);
    let more = "gclid&".repeat(450);
    let reply = target.get(&format!("/?{ignored}{more}page=2")).await;
    assert!(reply.text().contains(r#""page":"2""#), "{}", reply.text());
    let reply = target.get("/?page=2").await;
    assert!(reply.text().contains(r#""page":"2""#), "{}", reply.text());
}

#[tokio::test]
async fn personal_arguments_are_known_however_they_are_spelt() {
    let server = start_site(WORDPRESS).await;
    let target = server.target();
    for query in [
        "preview=true",
        "%70review=true",
        "preview[]=true",
        "+preview=true",
        "preview",
        "preview=0",
        "a=b&preview=true",
        "add-to-cart=1",
        "add%2Dto%2Dcart=1",
    ] {
        let reply = target.get(&format!("/?{query}")).await;
        assert_eq!(reply.x_cache(), "BYPASS", "{query}");
    }
}

/// Files by which `serve` takes a folder for DokuWiki.
const DOKUWIKI: &[(&str, &str)] = &[
    ("doku.php", MIRROR),
    ("lib/exe/fetch.php", MIRROR),
    ("lib/exe/css.php", MIRROR),
    ("inc/init.php", "<?php"),
    ("conf/dokuwiki.php", "<?php"),
];

/// The address of a page becomes an argument there, and with it what looks like further
/// arguments: `/start&u=admin&p=secret` is a login, and what came of it was stored.
#[tokio::test]
async fn arguments_that_a_rewrite_makes_of_a_path_are_personal_too() {
    let server = start_site(DOKUWIKI).await;
    let target = server.target();
    store(&target, "/start").await;
    store(&target, "/doku.php?id=start&do=show").await;
    store(&target, "/doku.php?id=start&do=").await;
    for path in [
        "/start&u=admin&p=secret",
        "/start&do=edit",
        "/start&x=1&do=login",
        "/start&do[edit]=",
        "/start?do[edit]=",
        "/doku.php?id=start&do[edit]=",
        "/doku.php?id=start&do[edit]=show",
        "/doku.php?id=start&do%5bedit%5D",
        "/doku.php?id=start&do[show]=&do[save][x]=1",
    ] {
        let reply = target.get(path).await;
        assert_eq!(reply.x_cache(), "BYPASS", "{path}: {}", reply.text());
    }
}

#[tokio::test]
async fn personal_paths_are_known_however_they_are_spelt() {
    let server = start_site(WORDPRESS).await;
    let target = server.target();
    for path in [
        "/wp-login.php",
        "/wp-%6cogin.php",
        "/%77p-login.php",
        "/a/../wp-login.php",
        "/a/%2e%2e/wp-login.php",
        "//wp-login.php",
        "/wp-admin/index.php",
        "/wp-%61dmin/index.php",
        "/wp-admin%2Findex.php",
        "/index.php/wp-%61dmin/",
        "/index.php/cart",
    ] {
        let reply = target.get(path).await;
        assert_eq!((reply.status, reply.x_cache()), (200, "BYPASS"), "{path}");
    }
}

#[tokio::test]
async fn credentials_that_nobody_checked_are_no_user() {
    let server = start_site(WORDPRESS).await;
    // alice:secret
    let fields = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    let reply = server.target().get_with("/", fields).await;
    assert_eq!(reply.x_cache(), "BYPASS");
    // REMOTE_USER never; PHP itself reads the field that was forwarded to it.
    assert!(
        reply.text().contains(r#""user":["","alice"]"#),
        "{}",
        reply.text()
    );
    let other = server.target().get("/").await;
    assert!(!other.text().contains("alice"));
}

/// A name with some of its bytes spelt otherwise, and bytes around it.
fn disguised(name: &str, random: &mut Random) -> String {
    const AROUND: [&str; 16] = [
        "", "", "", "", " ", "\t", "%20", "+", "[", "]", "[]", "[a]", ".", "%00", "%5B", "a",
    ];
    let mut text = AROUND[random.below(AROUND.len())].to_owned();
    for letter in name.chars() {
        match (letter, random.below(if letter == '_' { 6 } else { 40 })) {
            ('_', 0) => text.push('.'),
            ('_', 1) => text.push(' '),
            ('_', 2) => text.push('['),
            ('_', 3) => text.push_str("%5F"),
            (_, 0) => text.push_str(&format!("%{:02x}", letter as u32)),
            (_, 1) => text.push_str(&format!("%25{:02x}", letter as u32)),
            _ => text.push(letter),
        }
    }
    text.push_str(AROUND[random.below(AROUND.len())]);
    text
}

/// Whether one of the names that PHP finds in `part` is wanted.
fn has_name(text: &str, part: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
    let (_, rest) = text
        .split_once(&format!("\"names_{part}\":\""))
        .expect("a mirror");
    let (names, _) = rest.split_once('"').expect("a text");
    names.split_whitespace().any(|hex| {
        let digits = hex.as_bytes().chunks(2).map(|pair| {
            u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("hexadecimal")
        });
        is_wanted(&String::from_utf8_lossy(&digits.collect::<Vec<u8>>()))
    })
}

/// The rules and PHP read the same: whatever PHP takes for a session, a personal argument or
/// an ignored one, in random spellings. `MAYFLY_SPELLINGS` asks for more of them.
#[tokio::test]
async fn random_spellings_are_read_as_php_reads_them() {
    let server = start_site(WORDPRESS).await;
    let target = server.target();
    let count =
        std::env::var("MAYFLY_SPELLINGS").map_or(300, |text| text.parse().expect("a number"));
    let mut random = Random::new(0x6d61_7966_6c79);
    let (mut sessions, mut shared) = (0, 0);
    for _ in 0..count {
        let cookie = format!(
            "a=b;{}=1; {}",
            disguised("wordpress_logged_in_x", &mut random),
            disguised("PHPSESSID", &mut random)
        );
        let query = format!(
            "{}=1&{}",
            disguised("preview", &mut random),
            disguised("utm_source", &mut random)
        )
        .replace([' ', '\t'], "+");
        let fields = format!("Cookie: {cookie}\r\n");
        // Forwarded whole: what PHP sees in it.
        let whole = target
            .get_with(&format!("/?{query}"), &format!("{fields}X-Api-Key: 0\r\n"))
            .await;
        let seen = whole.text();
        let is_session = has_name(&seen, "cookie", |name| {
            name.starts_with("wordpress_logged_in_") || name == "PHPSESSID"
        });
        let is_personal = is_session || has_name(&seen, "get", |name| name == "preview");
        let reply = target.get_with(&format!("/?{query}"), &fields).await;
        let context = format!("{cookie:?} {query:?}\n{seen}\n{}", reply.text());
        sessions += usize::from(is_session);
        if is_personal {
            assert_eq!(reply.x_cache(), "BYPASS", "{context}");
        } else if reply.x_cache() != "BYPASS" {
            // Cookies that no rule names are tried: what came of them is for their visitor alone.
            assert!(
                has_name(&reply.text(), "cookie", |name| name == "a"),
                "{context}"
            );
            let clean = target.get(&format!("/?{query}")).await;
            shared += usize::from(clean.x_cache() != "BYPASS");
            let text = clean.text();
            let context = format!("{context}\n{text}");
            assert!(
                !has_name(&text, "get", |name| name.starts_with("utm_")),
                "{context}"
            );
            assert!(!has_name(&text, "cookie", |_| true), "{context}");
        }
    }
    assert!(
        sessions > count / 20 && shared > 0,
        "{sessions} sessions, {shared} shared: too few"
    );
}
