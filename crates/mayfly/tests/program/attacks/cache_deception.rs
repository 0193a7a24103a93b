//! Web cache deception: a visitor who is logged in is led to an address that looks like a
//! file, their page comes without `private` and without a cookie, and the attacker asks for
//! the same address afterwards.

use testkit::serving::FolderServer;

use super::start_site;

const ACCOUNT: &str = "<?php header('Content-Type: text/html');
    $name = implode(' ', $_COOKIE) . ($_SERVER['HTTP_AUTHORIZATION'] ?? '');
    echo $name === '' ? 'log in' : \"account of $name\";";

const PLAIN: &[(&str, &str)] = &[
    ("index.php", ACCOUNT),
    ("account.php", ACCOUNT),
    ("area/index.php", ACCOUNT),
    ("static/x.css", "body {}"),
];

/// Everything that is no file leads to `index.php`.
const WORDPRESS: &[(&str, &str)] = &[
    ("index.php", ACCOUNT),
    ("account.php", ACCOUNT),
    ("area/index.php", ACCOUNT),
    ("static/x.css", "body {}"),
    ("wp-login.php", "<?php"),
    ("wp-load.php", "<?php"),
    ("wp-settings.php", "<?php"),
    ("wp-includes/version.php", "<?php $wp_version = '6.1';"),
];

/// Text that is put behind, or in front of, the address of a page.
#[rustfmt::skip]
const TAILS: &[&str] = &[
    "", "/x.css", "/static/x.css", "/..%2fstatic/x.css", "/../static/x.css", "/%2e%2e/static/x.css",
    "/..%5cstatic%5cx.css", "%2f..%2fstatic%2fx.css", "%2fx.css", "%252fx.css", ";x.css", "%3bx.css", ";/x.css",
    "%00.css", "%0a.css", "%0d%0a.css", "%09.css", "%20.css", "%23.css", "#.css", "#/x.css", "%3f.css", "?x.css",
    "?/static/x.css", "&x.css", "%26x.css", "!.css", "~x.css", ".css", "..css", "/.css", "//x.css", "/./x.css",
    "/x.js", "/x.png", "/x.ico", "/x.woff2", "/robots.txt", "/favicon.ico", "/.well-known/x.css", "%c0%ae.css",
    "%ff.css", "?utm_source=1#.css", "?utm_source=x.css",
];
const STARTS: &[&str] = &[
    "/account.php",
    "/",
    "/index.php",
    "/area",
    "/area/",
    "/static/../account.php",
    "/static/..%2faccount.php",
    "/static/%2e%2e/account.php",
    "/static/x.css/../../account.php",
    "/static/x.css%2f..%2f..%2faccount.php",
    "//account.php",
    "/./account.php",
    "/Account.php",
    "/account.php.",
];

/// Leads a victim with these credentials to every address, then asks for it as two others;
/// answers how often the victim saw the page.
async fn pages_seen_by_the_victim(server: &FolderServer, credentials: &str) -> usize {
    let mut client = server.connect().await;
    let mut seen = 0;
    let addresses = STARTS
        .iter()
        .flat_map(|start| TAILS.iter().map(move |tail| format!("{start}{tail}")));
    for address in addresses {
        for (fields, is_victim) in [
            (credentials, true),
            ("", false),
            ("Cookie: _ga=1\r\n", false),
        ] {
            let request = format!("GET {address} HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n");
            client.send(request).await;
            let reply = client.receive(false).await.expect("a response");
            if reply.field("connection") == "close" {
                client = server.connect().await;
            }
            let (text, has_page) = (reply.text(), reply.text().contains("victim"));
            assert!(is_victim || !has_page, "{address}: {text}");
            // A cache in front gets no permission to keep it either.
            let is_kept = reply.field("cache-control").contains("max-age");
            let may_be_kept = is_kept || reply.has("expires");
            assert!(!has_page || !may_be_kept, "{address}");
            seen += usize::from(has_page);
        }
    }
    seen
}

#[tokio::test]
async fn no_address_keeps_the_page_of_who_is_logged_in() {
    for (layout, files, credentials) in [
        ("plain", PLAIN, "Cookie: session=victim\r\n"),
        ("plain", PLAIN, "Authorization: Bearer victim\r\n"),
        (
            "wordpress",
            WORDPRESS,
            "Cookie: wordpress_logged_in_x=victim\r\n",
        ),
    ] {
        let server = start_site(files).await;
        let seen = pages_seen_by_the_victim(&server, credentials).await;
        assert!(seen > 100, "{layout}: the victim saw {seen} pages");
    }
}
