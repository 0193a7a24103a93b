//! `<esi:include>` as the plug-in writes it.

use testkit::fake_php::Script;

use super::{
    NOT_KEPT, OF_GROUP, PUBLIC, SUBSCRIBERS, configuration, logged_in, php, site, visitor,
};
use crate::start;

/// src/esi.cls.php, `sub_esi_block`: the bar above the pages, a widget, and a nonce in an attribute.
const PAGE: &str = "<p>A post.</p>\
    <!-- lscwp adminbar --><esi:include src='/?lsesi=admin-bar&_control=private%2Cno-vary&esi=eyJyZWYiOiIvIn0%3D&_hash=b9a0' cache-control='private,no-vary' /><!-- lscwp adminbar esi end -->\
    <esi:include src='/?lsesi=widget&_control=no-vary&esi=e30%3D&_hash=77' cache-control='no-vary' />\
    <i data-nonce=\"<esi:include src='/?lsesi=nonce&esi=e30%3D&_hash=12' as-var='1' />\"></i>";
/// `load_admin_bar_block` and src/tag.cls.php, `output`.
const BAR: &str = "X-LiteSpeed-Cache-Control: private,no-vary,max-age=1800\r\n\
    X-LiteSpeed-Tag: 7c8_tag_priv,public:7c8_ESI,public:7c8_ESI.admin-bar,public:7c8_\r\n";
/// `load_widget_block`
const WIDGET: &str = "X-LiteSpeed-Cache-Control: public,no-vary,max-age=86400\r\n\
    X-LiteSpeed-Tag: 7c8_ESI,7c8_ESI.widget,7c8_W.recent-posts-2,7c8_\r\n";
/// `load_nonce_block`
const NONCE: &str = "X-LiteSpeed-Cache-Control: private,max-age=43200\r\n\
    X-LiteSpeed-Tag: 7c8_tag_priv,public:7c8_ESI,public:7c8_ESI.nonce,public:7c8_\r\n";

fn part(target: &str, name: &str) -> Script {
    if target.contains("lsesi=admin-bar") {
        Script::page(BAR, format!("[Howdy, {name}]"))
    } else if target.contains("lsesi=widget") {
        Script::page(WIDGET, "[recent posts]")
    } else {
        Script::page(NONCE, format!("nonce of {name}"))
    }
}

#[tokio::test]
async fn a_page_is_shared_and_its_fragments_are_ones_own() {
    let php = php(|request| match request.param("REQUEST_URI") {
        "/second/" => Script::page(OF_GROUP, PAGE),
        target => part(target, visitor(request)),
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    for _ in 0..4 {
        for name in ["carl", "dora"] {
            let page = target
                .get_with("/second/", &logged_in(name, SUBSCRIBERS))
                .await;
            let expected = format!(
                "<p>A post.</p><!-- lscwp adminbar -->[Howdy, {name}]<!-- lscwp adminbar esi end -->\
                 [recent posts]<i data-nonce=\"nonce of {name}\"></i>"
            );
            assert_eq!(page.text(), expected);
            assert_eq!(page.field("cache-control"), "private, no-cache");
            assert!(!page.has("surrogate-control"));
        }
    }
    // All of it is in memory by now: the page and the widget once, bar and nonce for each.
    let requests = php.requests();
    for name in ["carl", "dora"] {
        target
            .get_with("/second/", &logged_in(name, SUBSCRIBERS))
            .await;
    }
    assert_eq!(php.requests(), requests);
}

#[tokio::test]
async fn pages_that_are_not_kept_are_put_together_too() {
    let php = php(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(
            &NOT_KEPT.replace("Control: no-cache\r\n", "Control: no-cache,esi=on\r\n"),
            "<esi:include src='/?lsesi=admin-bar'/>",
        ),
        target => part(target, visitor(request)),
    })
    .await;
    let server = site(&php).await;
    let page = server
        .target()
        .get_with("/", &logged_in("carl", SUBSCRIBERS))
        .await;
    assert_eq!(page.text(), "[Howdy, carl]");
}

/// src/esi.cls.php, `_build_inline`: a fragment for the server's store, in front of its include.
#[tokio::test]
async fn what_is_inline_is_not_shown() {
    const INLINE: &str = "<esi:inline name='/?lsesi=widget' cache-control='public,max-age=60' cache-tag='7c8_W.1'>\
        [stored]</esi:inline>a<esi:include src='/?lsesi=widget' />b";
    let php = php(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(OF_GROUP, INLINE),
        target => part(target, ""),
    })
    .await;
    let server = site(&php).await;
    assert_eq!(server.target().get("/").await.text(), "a[recent posts]b");
}

/// Without `esi=on` a tag is text, and with `esi off` it always is.
#[tokio::test]
async fn a_tag_in_a_page_that_does_not_ask_is_text() {
    const TAG: &str = "<esi:include src='/?lsesi=widget'/>";
    let php = php(|request| match request.param("REQUEST_URI") {
        "/asks" => Script::page(OF_GROUP, TAG),
        "/does-not" => Script::page(PUBLIC, TAG),
        target => part(target, ""),
    })
    .await;
    let server = site(&php).await;
    assert_eq!(server.target().get("/asks").await.text(), "[recent posts]");
    assert_eq!(server.target().get("/does-not").await.text(), TAG);
    let server = start(&configuration(&php, "esi off;")).await;
    assert_eq!(server.target().get("/asks").await.text(), TAG);
}
