//! Text that a visitor has sent must not become a tag, a URL or markup.

use testkit::fake_php::{FakePhp, Script};

use super::{ASKS, PLAIN, page, result, shown, site};

const INCLUDE: &str = "<esi:include src='/secret'/>";

#[tokio::test]
async fn a_page_that_did_not_ask_stays_text() {
    let php = FakePhp::tcp(|_| Script::page(PLAIN, INCLUDE)).await;
    let server = site(&php, "").await;
    for _ in 0..2 {
        assert_eq!(server.target().get("/").await.text(), INCLUDE);
    }
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn a_fragment_that_did_not_ask_stays_text() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "<esi:include src='/comment'/>"),
        "/comment" => Script::page(PLAIN, INCLUDE),
        _ => Script::page(PLAIN, "the secret"),
    })
    .await;
    let server = site(&php, "").await;
    for _ in 0..2 {
        assert_eq!(server.target().get("/").await.text(), INCLUDE);
    }
}

#[tokio::test]
async fn nothing_is_run_where_the_location_does_not_say_so() {
    let php = page(INCLUDE).await;
    let server = site(&php, "esi off;").await;
    let page = server.target().get("/").await;
    assert_eq!(page.text(), INCLUDE);
    assert_eq!(page.field("surrogate-control"), "content=\"ESI/1.0\"");
}

#[tokio::test]
async fn always_runs_pages_of_its_types_alone() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/html" => Script::page(PLAIN, INCLUDE),
        "/text" => Script::page("Content-Type: text/plain\r\n", INCLUDE),
        _ => shown(request),
    })
    .await;
    let server = site(&php, "esi always;").await;
    assert_eq!(server.target().get("/html").await.text(), "[/secret]");
    assert_eq!(server.target().get("/text").await.text(), INCLUDE);
}

#[tokio::test]
async fn values_are_escaped_where_they_are_shown_and_never_run() {
    let shown = result(
        "<esi:vars>$(HTTP_REFERER) $(QUERY_STRING{q})</esi:vars>",
        "Referer: <script><esi:include src=\"/secret\"/>\r\n",
    )
    .await;
    assert_eq!(
        shown,
        "&lt;script&gt;&lt;esi:include src=&quot;/secret&quot;/&gt; "
    );
}

#[tokio::test]
async fn values_stay_within_one_part_of_a_url() {
    let text = "<esi:include src='/f/$(HTTP_COOKIE{x})?a=1&amp;b=$(HTTP_COOKIE{x})'/>";
    let shown = result(text, "Cookie: x=../admin?y#z&k=1\r\n").await;
    // A path whose parts lead out of its folder is not asked for at all.
    assert_eq!(shown, "");
    let shown = result(text, "Cookie: x=a?y#z&k=1\r\n").await;
    assert_eq!(shown, "[/f/a%3Fy%23z%26k%3D1?a=1&b=a%3Fy%23z%26k%3D1]");
}

#[tokio::test]
async fn fragments_are_of_this_host() {
    let text = "<esi:include src='http://other.test/x'/><esi:include src='//site.test/y'/>\
        <esi:include src='https://SITE.test:443/z?q#f'/><esi:include src='http://site.test'/>\
        <esi:include src='http://169.254.169.254/latest'/><esi:include src='file:///etc/passwd'/>";
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/page" => Script::page(ASKS, text),
        _ => shown(request),
    })
    .await;
    let server = site(&php, "").await;
    let page = server.target().get("/page").await;
    assert_eq!(page.text(), "[/y][/z?q][/][/file:///etc/passwd]");
    let log = server.error_log();
    assert!(log.contains("failed: it is on another host"), "{log}");
}

#[tokio::test]
async fn line_ends_do_not_get_into_the_request() {
    let text = "<esi:include src='/a b\r\nX-Evil: 1\r\n\r\n'/>";
    assert_eq!(result(text, "").await, "[/a%20b%0D%0AX-Evil:%201]");
}

/// A visitor's fields about bodies and conditions concern the page.
#[tokio::test]
async fn a_fragment_is_a_get_without_the_pages_body() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "<esi:include src='/f'/>"),
        _ => Script::page(
            PLAIN,
            format!(
                "{} [{}] [{}]",
                request.param("REQUEST_METHOD"),
                request.param("CONTENT_LENGTH"),
                String::from_utf8_lossy(&request.body)
            ),
        ),
    })
    .await;
    let server = site(&php, "").await;
    let page = server
        .target()
        .ask("POST", "/", "", "user=1&password=2")
        .await;
    assert_eq!(page.text(), "GET [] []");
}
