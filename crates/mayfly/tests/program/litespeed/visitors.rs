//! The visitors who share a page.

use testkit::fake_php::Script;

use super::{
    EDITORS, NOT_KEPT, OF_GROUP, PRIVATE, PUBLIC, SUBSCRIBERS, logged_in, pages, php, site, store,
    visitor,
};

#[tokio::test]
async fn visitors_without_cookies_share_a_page_at_once() {
    let php = pages(PUBLIC).await;
    let server = site(&php).await;
    assert_eq!(server.target().get("/first/").await.x_cache(), "MISS");
    assert_eq!(server.target().get("/first/").await.x_cache(), "HIT");
    assert_eq!(php.requests(), 1);
}

/// The first answer lets visitors of a group share, the second is kept.
#[tokio::test]
async fn a_group_shares_what_it_is_told_to_share() {
    let php = pages(OF_GROUP).await;
    let server = site(&php).await;
    let target = server.target();
    let (carl, dora) = (
        logged_in("carl", SUBSCRIBERS),
        logged_in("dora", SUBSCRIBERS),
    );
    let words: Vec<String> = {
        let mut words = Vec::new();
        for fields in [&carl, &carl, &dora, &carl] {
            words.push(
                target
                    .get_with("/first/", fields)
                    .await
                    .x_cache()
                    .to_owned(),
            );
        }
        words
    };
    assert_eq!(words, ["BYPASS", "MISS", "HIT", "HIT"]);
    // Neither visitors without cookies nor another group see it.
    assert_eq!(target.get("/first/").await.text(), "nobody 2");
    let ellen = logged_in("ellen", EDITORS);
    assert_eq!(store(&target, "/first/", &ellen).await.text(), "ellen 4");
    assert_eq!(target.get_with("/first/", &dora).await.text(), "carl 1");
    let page = target.get_with("/first/", &dora).await;
    assert_eq!(page.field("cache-control"), "private, no-cache");
}

#[tokio::test]
async fn a_private_page_is_kept_for_its_visitor() {
    let php = php(|request| Script::page(PRIVATE, visitor(request))).await;
    let server = site(&php).await;
    let target = server.target();
    for name in ["carl", "dora", "carl", "ellen"] {
        let fields = logged_in(name, SUBSCRIBERS);
        let page = store(&target, "/first/", &fields).await;
        assert_eq!(page.text(), name);
        assert_eq!(page.field("cache-control"), "private, no-cache");
    }
    // Only the visitor's own browser has it: one cookie more or less is another visitor.
    let more = logged_in("carl", SUBSCRIBERS).replace("\r\n", "; more=1\r\n");
    assert_eq!(target.get_with("/first/", &more).await.x_cache(), "MISS");
}

/// A visitor known by short cookies only has no private copy, since no purge could reach it.
#[tokio::test]
async fn a_visitor_whom_nothing_tells_from_others_has_no_copy() {
    let php = pages(PRIVATE).await;
    let server = site(&php).await;
    for fields in [
        "",
        "Cookie: lang=de\r\n",
        "Cookie: wordpress_test_cookie=WP%20Cookie%20check\r\n",
    ] {
        for _ in 0..4 {
            let page = server.target().get_with("/first/", fields).await;
            assert_ne!(page.x_cache(), "HIT", "{fields}");
        }
    }
}

/// src/vary.cls.php, `finalize`: filters of other plug-ins name more cookies.
#[tokio::test]
async fn more_cookies_tell_copies_apart() {
    let php = php(|request| {
        let mut cookies = request.param("HTTP_COOKIE").split("; ");
        let currency = cookies.find_map(|cookie| cookie.strip_prefix("Currency="));
        let fields = format!("{PUBLIC}X-LiteSpeed-Vary: cookie=Currency\r\n");
        Script::page(&fields, currency.unwrap_or("none"))
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    for currency in ["EUR", "USD", "EUR"] {
        let page = store(
            &target,
            "/",
            &format!("Cookie: other=1; Currency={currency}\r\n"),
        )
        .await;
        assert_eq!(page.text(), currency);
    }
    assert_eq!(
        store(&target, "/", "Cookie: other=1\r\n").await.text(),
        "none"
    );
    assert_eq!(store(&target, "/", "").await.text(), "none");
    assert_eq!(
        target
            .get_with("/", "Cookie: other=2; Currency=EUR\r\n")
            .await
            .x_cache(),
        "HIT"
    );
}

/// `no-vary`: src/esi.cls.php, `load_widget_block`.
#[tokio::test]
async fn groups_share_what_does_not_vary() {
    let php = pages("X-LiteSpeed-Cache-Control: public,no-vary,max-age=86400\r\n").await;
    let server = site(&php).await;
    let target = server.target();
    let (carl, ellen) = (logged_in("carl", SUBSCRIBERS), logged_in("ellen", EDITORS));
    store(&target, "/widget", &carl).await;
    target.get_with("/widget", &ellen).await;
    assert_eq!(target.get_with("/widget", &ellen).await.text(), "carl 1");
}

/// A page that is not stored costs PHP as much as without a cache, and PHP sees the visitor's request.
#[tokio::test]
async fn what_is_not_kept_is_asked_for_once_as_the_visitor_asked() {
    let php = php(|request| Script::page(NOT_KEPT, request.param("HTTP_REFERER"))).await;
    let server = site(&php).await;
    let fields = format!("{}Referer: /before\r\n", logged_in("carl", SUBSCRIBERS));
    for number in 1..5 {
        let page = server.target().get_with("/wp-admin/", &fields).await;
        assert_eq!(page.text(), "/before");
        assert_eq!(php.requests(), number);
    }
}

/// A page that begins to set cookies is asked for once all the same, and as the visitor asks from then on.
#[tokio::test]
async fn a_page_that_sets_cookies_is_asked_for_once() {
    let sets = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let has_cart = sets.clone();
    let php = php(move |request| {
        let cookie = match has_cart.load(std::sync::atomic::Ordering::SeqCst) {
            true => format!("Set-Cookie: cart={}\r\n", request.number),
            false => String::new(),
        };
        Script::page(&format!("{OF_GROUP}{cookie}"), "page")
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    let fields = format!("{}Referer: /before\r\n", logged_in("carl", SUBSCRIBERS));
    store(&target, "/", &fields).await;
    sets.store(true, std::sync::atomic::Ordering::SeqCst);
    target.ask("POST", "/", "", "").await;
    let before = php.requests();
    for number in 1..5 {
        let page = target.get_with("/", &fields).await;
        assert_eq!(php.requests(), before + number);
        assert!(page.has("set-cookie"), "{number}");
    }
}

/// Pages that are public for some of a group and private for others stay right.
#[tokio::test]
async fn who_may_share_is_what_the_last_answer_said() {
    let php = php(|request| match visitor(request) {
        "carl" => Script::page(PRIVATE, "carl's own"),
        name => Script::page(OF_GROUP, name),
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    for name in [
        "dora", "carl", "dora", "carl", "carl", "carl", "ellen", "carl", "dora", "dora", "carl",
    ] {
        for _ in 0..3 {
            let page = target
                .get_with("/first/", &logged_in(name, SUBSCRIBERS))
                .await;
            let text = page.text();
            match name {
                // The page of a group is not kept for Carl under his own key, nor his for the group.
                "carl" => assert!(["carl's own", "dora", "ellen"].contains(&text.as_str())),
                _ => assert_ne!(text, "carl's own", "{name}"),
            }
        }
    }
}
