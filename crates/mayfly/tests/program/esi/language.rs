//! The tags of the language (<https://www.w3.org/TR/esi-lang/>).

use testkit::fake_php::{FakePhp, Script};

use super::{ASKS, page, result, shown, site};

#[tokio::test]
async fn comments_and_what_is_removed_are_not_shown() {
    let text = "a<esi:comment text='x'/>b<esi:remove><a href='/'>x</a><esi:include src='/x'/>\
        </esi:remove>c<!--esi <p><esi:vars>$(HTTP_HOST)</esi:vars></p>-->d<!-- stays -->";
    assert_eq!(
        result(text, "").await,
        "abc <p>site.test</p>d<!-- stays -->"
    );
}

#[tokio::test]
async fn the_first_branch_that_holds_is_shown() {
    let text = "<esi:choose> space \
        <esi:when test=\"$(HTTP_COOKIE{group})=='Advanced'\"><esi:include src='/advanced'/></esi:when>\
        <esi:when test=\"$(HTTP_COOKIE{group})=='Basic User'\">basic</esi:when>\
        <esi:when test=\"$(HTTP_COOKIE{group}) &gt; ''\">other</esi:when>\
        <esi:otherwise>new</esi:otherwise></esi:choose>.";
    for (cookie, wanted) in [
        ("Cookie: group=Advanced\r\n", "[/advanced]."),
        ("Cookie: group=Basic User\r\n", "basic."),
        ("Cookie: group=x\r\n", "other."),
        ("", "new."),
    ] {
        assert_eq!(result(text, cookie).await, wanted, "{cookie}");
    }
}

#[tokio::test]
async fn one_stored_page_is_another_for_each_visitor() {
    let text = "<esi:choose><esi:when test=\"$(HTTP_ACCEPT_LANGUAGE{de})\">Hallo</esi:when>\
        <esi:otherwise>Hello</esi:otherwise></esi:choose> \
        <esi:vars>$(HTTP_USER_AGENT{os}) $(QUERY_STRING{none}|'nobody')</esi:vars>";
    let php = page(text).await;
    let server = site(&php, "").await;
    let target = server.target();
    for (fields, wanted) in [
        (
            "Accept-Language: fr, de;q=0.5\r\nUser-Agent: Mozilla/5.0 (X11; Linux)\r\n",
            "Hallo UNIX nobody",
        ),
        (
            "Accept-Language: en\r\nUser-Agent: Mozilla/5.0 (Windows NT 10.0)\r\n",
            "Hello WIN nobody",
        ),
        ("", "Hello  nobody"),
    ] {
        assert_eq!(target.get_with("/", fields).await.text(), wanted);
    }
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn mistakes_are_in_the_log_and_the_rest_is_shown() {
    for (text, shown, said) in [
        ("a<esi:function>b", "ab", "<esi:function> is not known"),
        (
            "a<esi:include/>b",
            "ab",
            "<esi:include> has no attribute \"src\"",
        ),
        (
            "a</esi:remove>b",
            "ab",
            "</esi:remove> closes nothing that is open",
        ),
        ("a<esi:remove>b", "a", "<esi:remove> is not closed"),
        ("a<esi:try><esi:attempt>b", "a", "<esi:try> is not closed"),
        (
            "a<esi:when test='1==1'>b</esi:when>c",
            "ac",
            "<esi:when> stands outside of <esi:choose>",
        ),
        (
            "a<esi:attempt>b</esi:attempt>c",
            "ac",
            "<esi:attempt> stands outside of <esi:try>",
        ),
        (
            "<esi:choose><esi:when test='1=1'>b</esi:when></esi:choose>c",
            "c",
            "test \"1=1\" is not valid: expected an operator or the end at byte 1",
        ),
    ] {
        let php = FakePhp::tcp(move |_| Script::page(ASKS, text)).await;
        let server = site(&php, "").await;
        assert_eq!(server.target().get("/").await.text(), shown, "{text}");
        let log = server.error_log();
        assert!(log.contains(said), "{text}: {log}");
    }
}

#[tokio::test]
async fn elements_may_nest_as_deep_as_they_like_without_harm() {
    for element in ["try", "remove", "choose", "vars"] {
        let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
            "/" => {
                let open = format!("<esi:{element}><esi:attempt>").repeat(5000);
                let close = format!("</esi:attempt></esi:{element}>").repeat(5000);
                Script::page(ASKS, format!("a{open}b{close}c"))
            }
            _ => shown(request),
        })
        .await;
        let server = site(&php, "").await;
        let page = server.target().get("/").await;
        assert!(
            page.is_complete && page.text().starts_with('a'),
            "{element}"
        );
    }
}
