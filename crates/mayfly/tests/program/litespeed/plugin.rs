//! The fields of LiteSpeed's plug-in for WordPress when a user writes, and when a user logs in or out.

use std::sync::atomic::Ordering::SeqCst;

use testkit::fake_php::Script;

use super::{NOT_KEPT, PRIVATE, PUBLIC, SUBSCRIBERS, Version, logged_in, php, site, store};

/// src/purge.cls.php, `_get_purge_tags_by_post` and `_build`: a post is published, edited, commented, loses a
/// comment, or is trashed.
const A_POST: &str = "X-LiteSpeed-Purge: public,7c8_Po.4,7c8_URL.c2640972ae3761a1b1ef658ef9c68216,\
    7c8_W.recent-posts-1,7c8_T.1,7c8_FD,7c8_A.1,7c8_PT.post,7c8_post,7c8_F,7c8_H,7c8_PGS,7c8_PGSRP,\
    7c8_D.202611,7c8_REST";
/// `_purge_all_lscache`
const ALL: &str = "X-LiteSpeed-Purge: public,7c8_";
/// The purge field with the setting `purge-stale`.
const STALE: &str = "X-LiteSpeed-Purge: public,stale,7c8_Po.4";
/// `purge_on_logout`: also when a user logs in.
const LOGIN: &str = "X-LiteSpeed-Purge: private,*";
/// `_build`: a widget with recent comments, with the setting `esi`.
const A_COMMENT: &str =
    "X-LiteSpeed-Purge: public,7c8_W.recent-comments-1;private,7c8_W.recent-comments-1";
/// `purge_url` with `$purge2`.
const TOO: &str = "X-LiteSpeed-Purge2: public,7c8_URL.c2640972ae3761a1b1ef658ef9c68216";

/// src/tag.cls.php, `_build_type_tags`
#[rustfmt::skip]
const PAGES: [(&str, &str); 5] = [
    ("/first/", "7c8_post,7c8_URL.c2640972ae3761a1b1ef658ef9c68216,7c8_Po.4,7c8_"),
    ("/", "7c8_home,7c8_URL.6666cd76f96956469e7be39d750cc7d9,7c8_F,7c8_"),
    ("/feed/", "7c8_default,7c8_URL.750978a6610fa2b4f8e13fb3a731f1b6,7c8_FD,7c8_"),
    ("/about/", "7c8_page,7c8_URL.f34bb62f734d1cecaa4de6a8b8efab52,7c8_Po.6,7c8_PGS,7c8_"),
    ("/category/quiet/", "7c8_category,7c8_URL.39fd6b1b16bf8aab9533a66556dc0865,7c8_T.3,7c8_"),
];

#[tokio::test]
async fn what_a_post_is_part_of_is_purged_and_nothing_else() {
    let php = php(|request| match request.param("REQUEST_METHOD") {
        "POST" => Script::page(
            &format!("{NOT_KEPT}{}\r\n", String::from_utf8_lossy(&request.body)),
            "done",
        ),
        _ => {
            let path = request.param("REQUEST_URI");
            let (_, tags) = PAGES
                .iter()
                .find(|(page, _)| *page == path)
                .expect("a page");
            let fields = format!(
                "X-LiteSpeed-Cache-Control: public,max-age=604800\r\nX-LiteSpeed-Tag: {tags}\r\n"
            );
            Script::page(&fields, path)
        }
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    for (purge, kept) in [
        (A_POST, &PAGES[4..]),
        (ALL, &[]),
        (TOO, &PAGES[1..]),
        (LOGIN, &PAGES[..]),
        (A_COMMENT, &PAGES[..]),
    ] {
        for (path, _) in PAGES {
            target.get(path).await;
        }
        let done = target
            .ask("POST", "/wp-json/wp/v2/posts/4", "", purge)
            .await;
        assert_eq!(done.status, 200);
        let (name, _) = purge.split_once(':').expect("a field");
        assert!(!done.has(&name.to_lowercase()), "{name} is for the server");
        for page in PAGES {
            let expected = if kept.contains(&page) { "HIT" } else { "MISS" };
            assert_eq!(
                target.get(page.0).await.x_cache(),
                expected,
                "{purge}: {}",
                page.0
            );
        }
    }
    target
        .ask("POST", "/wp-json/wp/v2/posts/4", "", STALE)
        .await;
    assert_eq!(target.get("/first/").await.x_cache(), "STALE");
}

/// An editor's own change is in the answer that follows, for everybody: also in the copies of others.
#[tokio::test]
async fn an_edit_is_seen_at_once() {
    let version = Version::default();
    let text = version.clone();
    let php = php(move |request| match request.param("REQUEST_METHOD") {
        "POST" => {
            text.fetch_add(1, SeqCst);
            Script::page(&format!("{NOT_KEPT}{A_POST}\r\n"), "")
        }
        _ if request.param("HTTP_COOKIE").contains("logged_in") => {
            Script::page(PRIVATE, format!("{}", text.load(SeqCst)))
        }
        _ => Script::page(PUBLIC, format!("{}", text.load(SeqCst))),
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    let carl = logged_in("carl", SUBSCRIBERS);
    for number in 0..5 {
        for fields in ["", &carl] {
            let page = store(&target, "/first/", fields).await;
            assert_eq!(page.text(), number.to_string(), "{fields}");
        }
        target.ask("POST", "/wp-json/wp/v2/posts/4", "", "").await;
    }
    assert_eq!(version.load(SeqCst), 5);
}

/// Logging out ends the copies of the visitor who does, and no others.
#[tokio::test]
async fn logging_out_ends_ones_own_copies() {
    let php = php(|request| match request.param("REQUEST_URI") {
        "/wp-login.php?action=logout" => Script::page(&format!("{NOT_KEPT}{LOGIN}\r\n"), ""),
        _ => Script::page(PRIVATE, super::visitor(request)),
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    let (carl, dora) = (
        logged_in("carl", SUBSCRIBERS),
        logged_in("dora", SUBSCRIBERS),
    );
    assert_eq!(store(&target, "/first/", &carl).await.text(), "carl");
    assert_eq!(store(&target, "/first/", &dora).await.text(), "dora");
    target.get_with("/wp-login.php?action=logout", &carl).await;
    assert_eq!(target.get_with("/first/", &dora).await.x_cache(), "HIT");
    assert_eq!(target.get_with("/first/", &carl).await.x_cache(), "MISS");
}

/// src/tag.cls.php, `check_login_cacheable`: the login page is for everybody, with the cookie that WordPress
/// tests browsers by.
#[tokio::test]
async fn a_cookie_for_everybody_is_kept_with_its_page() {
    const COOKIE: &str = "wordpress_test_cookie=WP%20Cookie%20check; path=/";
    let php = php(|_| {
        let fields = format!(
            "X-LiteSpeed-Cache-Control: public,max-age=604800\r\nX-LiteSpeed-Tag: 7c8_L,7c8_\r\n\
             Set-Cookie: {COOKIE}\r\nlsc-cookie: {COOKIE}\r\n"
        );
        Script::page(&fields, "log in")
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    for expected in ["MISS", "HIT"] {
        let page = target.get("/wp-login.php").await;
        assert_eq!(page.x_cache(), expected);
        assert_eq!(page.field("set-cookie"), COOKIE);
        assert!(!page.has("lsc-cookie"));
    }
}
