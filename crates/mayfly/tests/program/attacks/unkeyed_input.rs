//! Parts of a request that shape the answer without being in the key: one visitor sends them, and the
//! next is shown the resulting page.

use testkit::fake_http::{FakeHttp, Request, Script};

use super::{showing_requests, start_before};

/// Marks text of an attacker.
const MARK: &str = "chosen-by-the-attacker";

const BROWSER: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0\r\n\
    Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Encoding: gzip\r\n";
const PHONE: &str = "User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Mobile/15E148\r\n";
const CRAWLER: &str = "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1)\r\n";

/// An application that shows everything that it was sent.
async fn answering(handler: impl Fn(&Request) -> Script + Send + Sync + 'static) -> FakeHttp {
    FakeHttp::start(handler).await
}

/// The others mean nothing if nothing is shared.
#[tokio::test]
async fn what_two_visitors_ask_alike_is_shared() {
    let upstream = showing_requests().await;
    let server = start_before(&upstream).await;
    let target = server.target();
    assert_eq!(target.get("/page").await.x_cache(), "MISS");
    assert_eq!(target.get("/page").await.x_cache(), "HIT");
    // Another program, in which all fields that do not concern a page are different.
    let other = "Accept-Encoding: gzip\r\nVia: 1.1 proxy\r\nX-Forwarded-For: 203.0.113.9\r\n";
    assert_eq!(target.get_with("/page", other).await.x_cache(), "HIT");
}

#[tokio::test]
async fn no_field_of_one_visitor_shapes_the_page_of_another() {
    let upstream = showing_requests().await;
    let server = start_before(&upstream).await;
    let target = server.target();
    #[rustfmt::skip]
    let fields = [
        // No response has named it yet.
        "X-Invented-Tomorrow",
        // Hosts, schemes, addresses and paths that frameworks believe.
        "X-Forwarded-Host", "X-Forwarded-Server", "X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Forwarded-Port",
        "X-Forwarded-Prefix", "X-Forwarded-For", "X-Forwarded-Ssl", "Forwarded", "X-Host", "X-HTTP-Host-Override",
        "X-Real-IP", "X-Client-IP", "Client-IP", "True-Client-IP", "CF-Connecting-IP", "Front-End-Https",
        "X-Url-Scheme", "X-Original-Host", "X-Original-URL", "X-Rewrite-URL", "X-Wap-Profile", "X-ProxyUser-Ip",
        "Via",
        // Fields that every client sends.
        "User-Agent", "Accept", "Accept-Language", "Accept-Charset", "Accept-Encoding", "Referer", "Origin",
        "Cache-Control", "Pragma", "From", "TE", "DNT", "Priority", "Save-Data", "Sec-CH-UA", "Sec-CH-UA-Platform",
        "Sec-Fetch-Site", "If-None-Match", "If-Modified-Since", "Max-Forwards", "Purpose", "Content-Type",
        "Content-Language", "Expect-CT", "Warning", "traceparent", "baggage", "Cookie2",
    ];
    let mut reached_somebody = 0;
    for field in fields {
        let path = format!("/{}", field.to_ascii_lowercase());
        let line = format!("{field}: {MARK}\r\n");
        let mut reached = 0;
        for _ in 0..2 {
            let reply = target.get_with(&path, &line).await;
            let is_own = reply.text().contains(MARK);
            reached += usize::from(is_own);
            assert!(!is_own || reply.x_cache() != "HIT", "{field}");
        }
        reached_somebody += usize::from(reached > 0);
        // A comparison that is under way may end the page that is stored, so one of them may meet none.
        let mut hits = 0;
        for _ in 0..3 {
            let reply = target.get(&path).await;
            assert_eq!(reply.status, 200, "{field}");
            assert!(!reply.text().contains(MARK), "{field}: {}", reply.text());
            hits += usize::from(reply.x_cache() == "HIT");
        }
        assert!(hits > 0, "{field}");
    }
    // So that the above can be believed: the application has seen many of them.
    assert!(reached_somebody > 20, "{reached_somebody}");
}

#[tokio::test]
async fn requests_with_credentials_never_meet_the_cache() {
    let upstream = showing_requests().await;
    let server = start_before(&upstream).await;
    let target = server.target();
    #[rustfmt::skip]
    let fields = [
        "Authorization", "Proxy-Authorization", "X-Api-Key", "X-API-Token", "X-Auth-Token", "X-Access-Token",
        "Remote-User", "X-Remote-User", "X-Forwarded-User", "X-Forwarded-Email", "X-Auth-Request-User",
        "X-Authenticated-User", "X-WEBAUTH-USER", "Client-Cert", "SSL-Client-Cert", "X-SSL-Client-Verify",
        "X-SSL-Client-S-DN", "X-Client-Cert", "X-Amzn-Oidc-Data", "X-Goog-Authenticated-User-Email",
        "X-MS-CLIENT-PRINCIPAL", "Cf-Access-Jwt-Assertion", "X-CSRF-Token", "X-WP-Nonce", "X-HTTP-Method-Override",
        "X-Method-Override",
    ];
    for field in fields {
        for value in [MARK, "0", "false", ""] {
            let path = format!("/{}/{}", field.to_ascii_lowercase(), value.len());
            let line = format!("{field}: {value}\r\n");
            let own = target.get_with(&path, &line).await;
            assert_eq!(own.x_cache(), "BYPASS", "{line}");
            assert!(own.text().contains(&format!("{field}: {value}")), "{line}");
            let other = target.get(&path).await;
            assert_eq!(other.x_cache(), "MISS", "{line}");
            assert!(!other.text().contains(field), "{line}");
            let own = target.get_with(&path, &line).await;
            assert_eq!(own.x_cache(), "BYPASS", "{line}: never from the store");
        }
    }
}

#[tokio::test]
async fn who_does_not_take_html_goes_past_the_cache() {
    let upstream = answering(|request| {
        let body = match request.field("accept").starts_with("application/json") {
            true => "json",
            false => "html",
        };
        Script::page("Content-Type: text/html\r\n", body)
    })
    .await;
    let server = start_before(&upstream).await;
    let target = server.target();
    let json = "Accept: application/json\r\n";
    assert_eq!(target.get_with("/", json).await.text(), "json");
    assert_eq!(target.get("/").await.text(), "html");
    assert_eq!(target.get_with("/", json).await.text(), "json");
    // It takes anything, and the application's answer to it is for its like alone.
    let any = "Accept: application/json, */*\r\n";
    for _ in 0..3 {
        assert_eq!(target.get_with("/", any).await.text(), "json");
        let reply = target.get("/").await;
        assert_eq!((reply.x_cache(), &*reply.text()), ("HIT", "html"));
    }
}

#[tokio::test]
async fn each_class_of_visitors_has_pages_of_its_own() {
    let upstream = answering(|request| {
        let agent = request.field("user-agent");
        let class = match agent {
            agent if agent.contains("bot") => "crawler",
            agent if agent.contains("Mobile") || agent.contains("Mini") => "mobile",
            _ => "desktop",
        };
        Script::page("Content-Type: text/html\r\n", class)
    })
    .await;
    let server = start_before(&upstream).await;
    let target = server.target();
    for wanted in ["MISS", "MISS", "HIT"] {
        for (class, fields) in [
            ("desktop", BROWSER),
            ("mobile", PHONE),
            ("crawler", CRAWLER),
        ] {
            let reply = target.get_with("/", fields).await;
            assert_eq!((reply.x_cache(), &*reply.text()), (wanted, class));
        }
    }
    assert_eq!(
        upstream.requests(),
        6,
        "an own and a shared one for each class"
    );
    // Another phone, with fields of another form.
    let other = "User-Agent: Opera/9.80 (J2ME/MIDP; Opera Mini/7.1)\r\n";
    for wanted in ["MISS", "HIT"] {
        let reply = target.get_with("/", other).await;
        assert_eq!((reply.x_cache(), &*reply.text()), (wanted, "mobile"));
    }
}

#[tokio::test]
async fn a_preference_is_sent_once_a_response_has_named_it() {
    let upstream = answering(|request| {
        let language = request.field("accept-language").to_owned();
        Script::page(
            "Content-Type: text/html\r\nVary: Accept-Language, User-Agent, Cookie\r\n",
            format!("[{language}]"),
        )
    })
    .await;
    let server = start_before(&upstream).await;
    let target = server.target();
    let german = "Accept-Language: de-AT, de;q=0.8\r\n";
    let french = "Accept-Language: fr\r\n";
    // No response has yet shown that the page depends on it: the visitor's own request has the field as
    // it is.
    assert_eq!(
        target.get_with("/", german).await.text(),
        "[de-AT, de;q=0.8]"
    );
    // The shared request is made without it.
    assert_eq!(target.get("/").await.text(), "[]");
    // All visitors are of one network: each page is compared for itself.
    for (field, wanted) in [(german, "[de-at,de;q=0.9]"), (french, "[fr]"), ("", "[]")] {
        let reply = target.visit_until_hit("/", field).await;
        assert_eq!(reply.text(), wanted);
    }
    // An equal wish in other words.
    let same = "Accept-Language: de-at;q=1.0,DE;q=0.5\r\n";
    assert_eq!(target.get_with("/", same).await.x_cache(), "HIT");
}

#[tokio::test]
async fn a_field_named_in_vary_that_may_not_be_sent_is_not_sent() {
    let upstream = answering(|request| {
        Script::page(
            "Content-Type: text/html\r\nVary: X-Invented-Tomorrow, X-Forwarded-Host\r\n",
            &request.head,
        )
    })
    .await;
    let server = start_before(&upstream).await;
    let target = server.target();
    for _ in 0..3 {
        let invented = target
            .get_with("/", &format!("X-Invented-Tomorrow: {MARK}\r\n"))
            .await;
        let seen = (invented.x_cache(), invented.text().contains(MARK));
        assert_eq!(seen, ("BYPASS", true), "it makes a request personal");
        let reply = target
            .get_with("/", &format!("X-Forwarded-Host: {MARK}\r\n"))
            .await;
        assert!(!reply.text().contains(MARK), "{}", reply.text());
    }
    let reply = target.get("/").await;
    assert_eq!(
        (reply.x_cache(), reply.text().contains(MARK)),
        ("HIT", false)
    );
}
