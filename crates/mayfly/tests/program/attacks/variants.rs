//! Variants of a page: preferences that applications ask for in `Vary`, and their effect on the pages of others.

use testkit::fake_http::{FakeHttp, Request, Script};
use testkit::serving::FolderServer;

use super::start_before;

async fn serve(
    handler: impl Fn(&Request) -> Script + Send + Sync + 'static,
) -> (FakeHttp, FolderServer) {
    let upstream = FakeHttp::start(handler).await;
    let server = start_before(&upstream).await;
    (upstream, server)
}

fn page(vary: &str, text: &str) -> Script {
    let fields = match vary {
        "" => "Content-Type: text/html\r\n".to_owned(),
        vary => format!("Content-Type: text/html\r\nVary: {vary}\r\n"),
    };
    Script::page(&fields, text)
}

/// Frameworks send `Vary` when they choose a language, and forget it when they redirect, fail, or find a
/// language that they do not have. The preference that was sent has shaped such an answer all the same.
#[tokio::test]
async fn an_answer_that_forgets_vary_is_not_shown_to_others() {
    let (_upstream, server) = serve(|request| {
        let language = request.field("accept-language");
        let vary = match language {
            "xx" => "",
            _ => "Accept-Language",
        };
        page(vary, &format!("in {language}."))
    })
    .await;
    let target = server.target();
    target.get("/").await;
    let evil = target.get_with("/", "Accept-Language: xx\r\n").await;
    assert_eq!(evil.text(), "in xx.");
    assert_eq!(target.get("/").await.text(), "in .");
    let german = "Accept-Language: de\r\n";
    assert_eq!(target.get_with("/", german).await.text(), "in de.");
    // Each is kept for those who want the same.
    for (fields, text) in [
        ("", "in ."),
        (german, "in de."),
        ("Accept-Language: xx\r\n", "in xx."),
    ] {
        let reply = target.get_with("/", fields).await;
        assert_eq!((reply.x_cache(), reply.text()), ("HIT", text.to_owned()));
    }
}

/// The fields that an application varies on were learned for each address: the first visitor of each new one got
/// the page in the application's own language, and so did those who came while it was made.
#[tokio::test]
async fn the_first_visitor_of_a_new_address_reads_their_own_language_where_the_site_has_languages()
{
    let (_upstream, server) = serve(|request| {
        page(
            "Accept-Language",
            &format!("in {}.", request.field("accept-language")),
        )
    })
    .await;
    let target = server.target();
    target.get("/").await;
    let german = "Accept-Language: de-AT, de;q=0.9\r\n";
    for path in ["/news", "/?page=2", "/index.php/news"] {
        for (fields, text) in [
            (german, "in de-at,de;q=0.9."),
            ("", "in ."),
            ("Accept-Language: fr\r\n", "in fr."),
        ] {
            for wanted in ["MISS", "HIT"] {
                let reply = target.get_with(path, fields).await;
                assert_eq!((reply.x_cache(), &*reply.text()), (wanted, text), "{path}");
            }
        }
    }
    let other = target.get_with("http://other.test/news", german).await;
    let own = "in de-AT, de;q=0.9.";
    assert_eq!(other.text(), own, "another host is another site");
}

/// A visitor chooses which responses there are. An error, a redirect, or data at an odd address must not make
/// variants of all pages of the site.
#[tokio::test]
async fn only_pages_teach_what_a_site_varies_on() {
    let (_upstream, server) = serve(|request| {
        let language = request.field("accept-language").to_owned();
        let answer = |line: &str, fields: &str| {
            Script::new().raw(format!(
                "HTTP/1.1 {line}\r\nVary: Accept-Language, Origin, Sec-CH-UA\r\n{fields}Content-Length: 2\r\n\r\nno"
            ))
        };
        let html = "Content-Type: text/html\r\n";
        match request.target.as_str() {
            "/missing" => answer("404 Not Found", html),
            "/gone" => answer("410 Gone", html),
            "/moved" => answer("301 Moved Permanently", "Content-Type: text/html\r\nLocation: /\r\n"),
            "/broken" => answer("500 Internal Server Error", html),
            "/api/odd" => answer("200 OK", "Content-Type: application/json\r\n"),
            "/private" => answer("200 OK", "Content-Type: text/html\r\nCache-Control: private\r\n"),
            "/session" => answer("200 OK", "Content-Type: text/html\r\nSet-Cookie: s=1\r\n"),
            _ => page("", &format!("in {language}.")),
        }
    })
    .await;
    let target = server.target();
    let evil = "Accept-Language: xx\r\nOrigin: https://evil.test\r\n";
    for path in [
        "/missing", "/gone", "/moved", "/broken", "/api/odd", "/private", "/session",
    ] {
        for _ in 0..2 {
            target.get_with(path, evil).await;
        }
    }
    for path in ["/", "/news"] {
        // The visitor's own request has the language as it is. Once a site is known to vary on it, it is brought
        // to one form, and distinguishes variants.
        let own = target
            .get_with(path, "Accept-Language: de-AT, de;q=0.8\r\n")
            .await;
        assert_eq!(own.text(), "in de-AT, de;q=0.8.", "{path}");
        for cache in ["MISS", "HIT"] {
            let reply = target.get(path).await;
            assert_eq!((reply.x_cache(), &*reply.text()), (cache, "in ."), "{path}");
        }
        assert_eq!(target.get_with(path, evil).await.text(), "in xx.", "{path}");
    }
}

/// The first visitor reads their own language also when the fields of `Vary` change from one answer to the next.
#[tokio::test]
async fn what_a_page_varies_on_only_grows() {
    let (_upstream, server) = serve(|request| {
        let vary = match request.number % 3 {
            0 => "Origin",
            1 => "Accept-Language",
            _ => "Save-Data",
        };
        let shown = ["origin", "accept-language", "save-data"].map(|name| request.field(name));
        page(vary, &shown.join(" "))
    })
    .await;
    let target = server.target();
    for round in 0..3 {
        for (fields, mark) in [
            ("Origin: https://evil.test\r\n", "evil"),
            ("Accept-Language: xx\r\n", "xx"),
            ("Save-Data: on\r\n", "on"),
        ] {
            target.get_with("/", fields).await;
            let reply = target.get("/").await;
            assert!(!reply.text().contains(mark), "{round} {}", reply.text());
        }
    }
}

/// Sixteen variants of a page are kept. Who sends a new language with each request shall
/// not drive out the one that visitors read.
#[tokio::test]
async fn invented_languages_do_not_drive_out_those_that_are_read() {
    let (_upstream, server) =
        serve(|request| page("Accept-Language", request.field("accept-language"))).await;
    let target = server.target();
    let german = "Accept-Language: de\r\n";
    target.get("/").await;
    target.get_with("/", german).await;
    assert_eq!(target.get_with("/", german).await.x_cache(), "HIT");
    for number in 0..40 {
        let line = format!("Accept-Language: x{number}\r\n");
        assert_eq!(target.get_with("/", &line).await.x_cache(), "MISS");
    }
    assert_eq!(target.get_with("/", german).await.x_cache(), "HIT");
}

/// A visitor without an Accept field is sent a page made for one that the server wrote: it was stored for
/// visitors who send that very one, and made anew for each who sends none.
#[tokio::test]
async fn a_page_for_visitors_without_accept_is_kept_for_them() {
    let (_upstream, server) = serve(|request| page("Accept", request.field("accept"))).await;
    let target = server.target();
    // The first of all was made before the page was known to vary: others drive it out.
    for number in 0..40 {
        let line = format!("Accept: text/html,a/b{number}\r\n");
        for _ in 0..2 {
            target.get_with("/", &line).await;
        }
    }
    target.get("/").await;
    assert_eq!(target.get("/").await.x_cache(), "HIT");
    // A value that cannot be sent is no variant: its visitor's own request has it.
    let unfit = format!("Accept: text/html,a/{}\r\n", "b".repeat(300));
    let own = target.get_with("/", &unfit).await;
    assert_eq!((own.x_cache(), own.text().contains("bbb")), ("MISS", true));
    let reply = target.get("/").await;
    assert_eq!(
        (reply.x_cache(), reply.text().contains("bbb")),
        ("HIT", false)
    );
}

/// Applications refuse an Origin that they do not know, or begin a session for a language. The server remembered
/// for everybody that such an answer may not be shared: one request in five seconds made the application run for
/// each visitor.
#[tokio::test]
async fn what_is_refused_to_one_origin_is_kept_for_others() {
    let (_upstream, server) = serve(|request| match request.field("origin") {
        "https://evil.test" => Script::new()
            .raw("HTTP/1.1 403 Forbidden\r\nVary: Origin\r\nContent-Length: 2\r\n\r\nno"),
        origin => page("Origin", origin),
    })
    .await;
    let target = server.target();
    target.get("/").await;
    let evil = target.get_with("/", "Origin: https://evil.test\r\n").await;
    assert_eq!(evil.status, 403);
    let good = "Origin: https://good.test\r\n";
    let reply = target.visit_until_hit("/", good).await;
    assert_eq!(&*reply.text(), "https://good.test");
    assert_eq!(target.get("/").await.x_cache(), "HIT");
}
