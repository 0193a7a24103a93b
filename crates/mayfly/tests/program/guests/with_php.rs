//! PHP's own sessions.

use control::explain::SessionPart;

use super::{HOST, Visitor, tried, warm};
use crate::has_php_fpm;
use crate::visits::{Site, is_from_memory};

const PAGE: &str = "<?php
ini_set('session.use_trans_sid', '1'); ini_set('session.use_only_cookies', '0');
ini_set('session.trans_sid_tags', 'a=href,form='); ini_set('url_rewriter.tags', 'a=href,form=');
session_cache_limiter(basename($_SERVER['SCRIPT_NAME'], '.php'));
session_start();
$_SESSION['key'] ??= bin2hex(random_bytes(16));
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    if (($_POST['key'] ?? '') !== $_SESSION['key']) { http_response_code(403); exit('refused'); }
    $_SESSION['cart'][] = $_POST['item'];
    exit(implode(',', $_SESSION['cart']));
}
echo '<a href=\"other.php?a=1\">other</a><form method=\"post\" action=\"\">',
    '<input type=\"hidden\" name=\"key\" value=\"', $_SESSION['key'], '\"></form>', count($_SESSION['cart'] ?? []);
";

/// The page of each `session_cache_limiter`, with the session's name in links where the visitor has no cookie.
#[tokio::test]
async fn pages_of_sessions_of_php_come_from_memory_and_their_forms_work() {
    if !has_php_fpm() {
        return;
    }
    let limiters = ["nocache", "private", "private_no_expire"];
    let files = limiters.map(|name| (format!("{name}.php"), PAGE));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, *text)).collect();
    let site = Site::of_guests_with_php(&files, "1h").await;
    for limiter in limiters {
        let path = format!("/{limiter}.php");
        let shown = warm(&site, &path).await;
        assert!(!shown.has("set-cookie"), "{limiter}");
        assert!(!shown.text().contains("PHPSESSID"), "{}", shown.text());
        for nth in 0..4 {
            let mut visitor = Visitor::new(HOST, nth);
            let reply = visitor.get(&site, &path).await;
            let text = reply.text();
            // An own answer has a hidden field with the session's name before it.
            let token = text.split("name=\"key\" value=\"").nth(1).expect("a token");
            let token = token.split('"').next().expect("its end");
            let body = format!("key={token}&item=item{nth}");
            let fields = format!(
                "Origin: http://{HOST}\r\nSec-Fetch-Site: same-origin\r\nReferer: http://{HOST}{path}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let post = visitor.head(&format!("POST {path}"), &fields);
            let reply = crate::visits::ask_port(site.port, visitor.from, &post).await;
            assert_eq!(reply.text(), format!("item{nth}"), "{limiter}");
            visitor.note("", &reply);
            let reply = visitor.get(&site, &path).await;
            assert!(!is_from_memory(&reply), "{limiter}");
            assert!(reply.text().ends_with('1'), "{}", reply.text());
        }
    }
}

/// A page that shows nothing of the session, and what it does to it.
fn silent(writes: &str) -> String {
    format!(
        "<?php session_start(); $_SESSION['key'] ??= bin2hex(random_bytes(16)); {writes}
         echo '<a href=\"index.php\">home</a>';"
    )
}

/// No page shows that the visitor has written something, so that the pages' bytes say nothing of it; the session does.
#[tokio::test]
async fn a_visitor_whose_session_has_more_than_a_guests_is_somebody() {
    if !has_php_fpm() {
        return;
    }
    let (plain, writing) = (silent(""), silent("$_SESSION['wish'] = 'book';"));
    let files = [
        ("index.php", &*plain),
        ("plain.php", &*plain),
        ("wish.php", &*writing),
    ];
    let site = Site::of_reported_guests(&files, "1h").await;
    warm(&site, "/index.php").await;
    for (path, is_guest) in [("/plain.php", true), ("/wish.php", false)] {
        let mut visitor = Visitor::new(HOST, 60);
        let first = visitor.get(&site, path).await;
        assert!(first.has("set-cookie"), "{path}: {}", first.text());
        // The page is compared, and leaves the session as it was as far as pages show.
        warm(&site, path).await;
        let mut hits = 0;
        for _ in 0..8 {
            hits += u32::from(is_from_memory(&visitor.get(&site, "/index.php").await));
            tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        }
        assert_eq!(hits > 0, is_guest, "{path}");
    }
}

/// Its form has the same bytes for everybody, and is taken only from a session to which it was shown.
const SHOWN_BEFORE: &str = "<?php
session_cache_limiter(''); session_start();
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    exit(isset($_SESSION['shown']) ? 'taken' : 'refused');
}
$_SESSION['shown'] = time();
echo '<a href=\"index.php\">home</a><form method=\"post\" action=\"\"><input name=\"text\"></form>';
";

#[tokio::test]
async fn who_has_a_guests_session_may_write_from_a_page_that_came_from_memory() {
    if !has_php_fpm() {
        return;
    }
    let begins =
        "<?php session_cache_limiter(''); session_start(); echo '<a href=\"form.php\">form</a>';";
    let files = [("index.php", begins), ("form.php", SHOWN_BEFORE)];
    let site = Site::of_guests_with_php(&files, "1h").await;
    let mut visitor = Visitor::new(HOST, 60);
    let first = visitor.get(&site, "/index.php").await;
    assert!(first.has("set-cookie"), "{}", first.text());
    // Guests without a session share a page while its trial goes on.
    for path in ["/index.php", "/form.php"] {
        warm(&site, path).await;
        let verdict = tried(&site, path).await;
        assert!(matches!(verdict, SessionPart::Shared { .. }), "{verdict:?}");
    }
    let page = visitor.get(&site, "/form.php").await;
    assert!(is_from_memory(&page), "{}", page.text());
    let fields = format!(
        "Origin: http://{HOST}\r\nSec-Fetch-Site: same-origin\r\nReferer: http://{HOST}/form.php\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 6\r\n\r\ntext=a"
    );
    let post = visitor.head("POST /form.php", &fields);
    let reply = crate::visits::ask_port(site.port, visitor.from, &post).await;
    assert_eq!(reply.text(), "taken");
}
