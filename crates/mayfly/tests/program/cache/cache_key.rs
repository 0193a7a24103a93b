//! Requests that share a stored response, and requests that have one of their
//! own.

use super::*;

#[tokio::test]
async fn cookies_and_arguments_that_do_not_count_share_one_stored_response() {
    let php = counting("Vary: Cookie\r\n").await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1h; cache_ignore_cookies _ga* _gid; cache_ignore_args utm_* gclid;\n\
         fastcgi_cache_bypass $http_cookie; fastcgi_no_cache $http_cookie;",
    )
    .await;
    let target = server.target();
    assert_eq!(target.get("/?a=1").await.text(), "run 1");
    for (path, fields) in [
        ("/?a=1&utm_source=x", ""),
        ("/?gclid=7&a=1", "Cookie: _ga=GA1.2\r\n"),
        ("/?a=1", "Cookie: _ga_X=1; _gid=2\r\n"),
        // PHP reads `_gid` and `_ga`.
        ("/?a=1", "Cookie: .gid=2; %5Fga=1\r\n"),
    ] {
        let reply = target.get_with(path, fields).await;
        assert_eq!(
            (reply.x_cache(), reply.text().as_str()),
            ("HIT", "run 1"),
            "{path} {fields}"
        );
    }
    let session = target
        .get_with("/?a=1", "Cookie: _ga=1; session=7\r\n")
        .await;
    assert_eq!(
        (session.x_cache(), session.text().as_str()),
        ("BYPASS", "run 2")
    );
}

#[tokio::test]
async fn vary_keeps_a_stored_response_for_each_value() {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "Vary: Accept-Language\r\n",
            request.param("HTTP_ACCEPT_LANGUAGE"),
        )
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let target = server.target();
    for _ in 0..2 {
        for language in ["de", "fr"] {
            let fields = format!("Accept-Language: {language}\r\n");
            assert_eq!(target.get_with("/", &fields).await.text(), language);
        }
    }
    assert_eq!(php.requests(), 2);
}

#[tokio::test]
async fn a_session_gets_stored_responses_of_its_own() {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "Cache-Control: private\r\n",
            format!("for {}", request.param("HTTP_COOKIE")),
        )
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h; cache_private session;").await;
    let target = server.target();
    for round in 0..3 {
        for user in ["session=anna", "session=bert"] {
            let reply = target.get_with("/", &format!("Cookie: {user}\r\n")).await;
            assert_eq!(reply.text(), format!("for {user}"));
            assert_eq!(reply.x_cache(), if round == 0 { "MISS" } else { "HIT" });
        }
    }
    assert_eq!(php.requests(), 2);
}
