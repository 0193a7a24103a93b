//! `cache_purge_api`: its targets, and who may use it.

use super::*;

const PAGES: &[&str] = &["/", "/news/5", "/news/5?page=2", "/news/6", "/about"];

#[tokio::test]
async fn each_kind_of_target_purges_what_it_names_and_nothing_else() {
    let php = tagged_pages().await;
    let server = site(&php, API, "").await;
    let target = server.target();
    store(&target, PAGES).await;
    #[rustfmt::skip]
    let cases = [
        (r#"{"urls":["https://site.test/news/5"]}"#, &["/news/5"][..], 1),
        (r#"{"urls":["http://SITE.test:8080/news/5?page=2"]}"#, &["/news/5?page=2"], 1),
        (r#"{"urls":["/about","/none"],"hosts":["site.test"]}"#, &["/about"], 1),
        (r#"{"tags":["news/5"]}"#, &["/news/5", "/news/5?page=2"], 2),
        (r#"{"tags":["news"]}"#, &[], 0),
        (r#"{"prefixes":["https://site.test/news/"]}"#, &["/news/5", "/news/5?page=2", "/news/6"], 3),
        (r#"{"patterns":["https://site.test/*/6"]}"#, &["/news/6"], 1),
        (r#"{"patterns":["~^site\\.test/(about|news/6)$"]}"#, &["/news/6", "/about"], 2),
        (r#"{"patterns":["/news/5?page=*"],"hosts":["site.test"]}"#, &["/news/5?page=2"], 1),
        (r#"{"hosts":["other.test"]}"#, &[], 0),
        (r#"{"hosts":["site.test"]}"#, PAGES, 5),
        (r#"{"tags":["all"]}"#, PAGES, 5),
        (r#"{"everything":true}"#, PAGES, 5),
        (r#"{"everything":true,"dry_run":true}"#, &[], 5),
        (r#"{"tags":["all"],"dry_run":true}"#, &[], 5),
    ];
    for (json, expected, count) in cases {
        let reply = ask(&target, json).await;
        assert_eq!(reply.status, 200, "{json}: {}", reply.text());
        assert_eq!(reply.field("content-type"), "application/json");
        let counted: usize = reply
            .text()
            .split("\"responses\":")
            .skip(1)
            .filter_map(|rest| rest.split([',', '}']).next()?.parse::<usize>().ok())
            .sum();
        assert_eq!(counted, count, "{json}: {}", reply.text());
        assert_eq!(gone(&target, PAGES).await, expected, "{json}");
    }
}

#[tokio::test]
async fn a_url_reaches_all_that_is_stored_for_it() {
    let php = tagged_pages().await;
    let location = "cache_ignore_args utm_*;";
    let key = "fastcgi_cache_key $scheme$request_method$host$request_uri$cookie_lang;";
    let http = configuration(&php, "", API, location);
    let server = start(&http.replace("fastcgi_cache_key $host$request_uri;", key)).await;
    let target = server.target();
    let lookup = async |method: &str, path: &str, cookie: &str| {
        let reply = target.ask(method, path, cookie, "").await;
        reply.x_cache().to_owned()
    };
    let variants = [
        ("GET", "/news/5", ""),
        ("HEAD", "/news/5", ""),
        ("GET", "/news/5", "Cookie: lang=de\r\n"),
        ("GET", "/news/%35?utm_source=mail", "Cookie: lang=en\r\n"),
    ];
    for (method, path, cookie) in variants {
        lookup(method, path, cookie).await;
        assert_eq!(
            lookup(method, path, cookie).await,
            "HIT",
            "{method} {path} {cookie}"
        );
    }
    let json = r#"{"urls":["https://site.test/news/5?utm_campaign=x"]}"#;
    let reply = ask(&target, json).await;
    assert!(reply.text().contains("\"responses\":4"), "{}", reply.text());
    for (method, path, cookie) in variants {
        assert_eq!(
            lookup(method, path, cookie).await,
            "MISS",
            "{method} {path} {cookie}"
        );
    }
}

#[tokio::test]
async fn a_soft_purge_shows_the_stale_page_while_it_is_fetched() {
    let php = tagged_pages().await;
    let location = "fastcgi_cache_use_stale updating; fastcgi_cache_background_update on;";
    let server = site(&php, API, location).await;
    let target = server.target();
    store(&target, &["/news/5"]).await;
    let reply = ask(&target, r#"{"tags":["news/5"],"soft":true}"#).await;
    assert!(
        reply.text().starts_with("{\"soft\":true"),
        "{}",
        reply.text()
    );
    let stale = target.get("/news/5").await;
    assert_ne!(stale.x_cache(), "MISS");
    assert_eq!(stale.text(), "/news/5 1");
    testkit::wait::until("the new page", || php.requests() == 2).await;
}

#[tokio::test]
async fn a_mistake_is_answered_by_what_was_expected() {
    let php = tagged_pages().await;
    let server = site(&php, API, "").await;
    let target = server.target();
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    #[rustfmt::skip]
    let cases = [
        ("POST", json, r#"{"urls":["/news/5"]}"#, 400, "\"field\":\"urls[0]\""),
        ("POST", json, r#"{"urls":[5]}"#, 400, "expected a string, found a number"),
        ("POST", json, r#"{"tag":["a"]}"#, 400, "unknown field"),
        ("POST", json, "{}", 400, "nothing to purge"),
        ("POST", json, "urls=a", 400, "JSON object"),
        ("POST", json, r#"{"patterns":["~("]}"#, 400, "\"field\":\"patterns[0]\""),
        ("POST", "", r#"{"tags":["a"]}"#, 415, "application/json"),
        ("POST", "Content-Type: text/plain\r\n", r#"{"tags":["a"]}"#, 415, "application/json"),
        ("GET", "", "", 405, "expected POST"),
        ("DELETE", json, "", 405, "expected POST"),
    ];
    for (method, fields, body, status, expected) in cases {
        let reply = target.ask(method, "/purge", fields, body).await;
        assert_eq!(reply.status, status, "{method} {body}");
        assert_eq!(reply.field("content-type"), "application/json");
        assert!(reply.text().contains(expected), "{body}: {}", reply.text());
    }
    let wrong = target.get("/purge").await;
    assert_eq!(wrong.field("allow"), "POST");
}

#[tokio::test]
async fn without_a_word_on_it_only_programs_on_this_machine_may() {
    let php = tagged_pages().await;
    let allowed = "location = /all { allow all; cache_purge_api; }\n\
                   location = /none { deny all; cache_purge_api; }\n\
                   location = /listed { deny 192.0.2.7; cache_purge_api; }";
    let server = site(&php, &format!("{API}\n{allowed}"), "").await;
    let target = server.target();
    let ask = async |path: &str, fields: &str| {
        let fields = format!("Content-Type: application/json\r\n{fields}");
        let body = r#"{"tags":["news/5"]}"#;
        target.ask("POST", path, &fields, body).await.status
    };
    assert_eq!(ask("/purge", "").await, 200);
    for through_proxy in [
        "X-Forwarded-For: 192.0.2.1\r\n",
        "Forwarded: for=192.0.2.1\r\n",
        "Via: 1.1 proxy\r\n",
    ] {
        store(&target, &["/news/5"]).await;
        assert_eq!(ask("/purge", through_proxy).await, 403);
        assert_eq!(target.get("/news/5").await.x_cache(), "HIT");
        assert_eq!(ask("/listed", through_proxy).await, 403);
        assert_eq!(target.get("/news/5").await.x_cache(), "HIT");
        assert_eq!(ask("/all", through_proxy).await, 200);
    }
    assert_eq!(ask("/none", "").await, 403);
}

/// A page of another site may lead its own name to this machine when a browser here asks for it a second
/// time (DNS rebinding). To the browser, this server is then of the same origin as the page, which may send
/// it JSON.
#[tokio::test]
async fn a_browser_on_this_machine_purges_nothing_for_a_page_of_somebody_else() {
    let php = tagged_pages().await;
    let names = "server_name named.test *.wild.test .dotted.test end.* ~^pattern;\n\
                 location = /all { allow all; cache_purge_api; }\n\
                 location /page/ { cache_purge_api; }";
    let server = site(&php, &format!("{API}\n{names}"), "").await;
    let ask = async |line: &str, host: &str| {
        let mut client = server.connect().await;
        let json = "Content-Type: application/json";
        let body = r#"{"tags":["news/5"]}"#;
        let length = body.len();
        client
            .send(format!(
                "{line} HTTP/1.1\r\n{host}Connection: close\r\n{json}\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            ))
            .await;
        client.receive(false).await.expect("a response")
    };
    for host in [
        "localhost",
        "localhost:8080",
        "app.localhost",
        "127.0.0.1",
        "192.0.2.1:8080",
        "[::1]:8080",
        "site.test",
        "SITE.test:8080",
        "named.test",
        "any.wild.test",
        "dotted.test",
        "any.dotted.test",
    ] {
        let reply = ask("POST /purge", &format!("Host: {host}\r\n")).await;
        assert_eq!(reply.status, 200, "{host}: {}", reply.text());
    }
    store(&server.target(), &["/news/5"]).await;
    for host in [
        "rebound.example",
        "localhost.example",
        "127.0.0.1.example",
        "site.test.example",
        "wild.test",
        "evilwild.test",
        "end.example",
        "pattern.example",
    ] {
        let host = format!("Host: {host}\r\n");
        let reply = ask("POST /purge", &host).await;
        assert_eq!(reply.status, 403, "{host}");
        assert!(reply.text().contains("server_name"), "{}", reply.text());
        assert_eq!(ask("PURGE /page/news/5", &host).await.status, 403);
        assert_eq!(ask("GET /page/news/5", &host).await.status, 403);
    }
    assert_eq!(server.target().get("/news/5").await.x_cache(), "HIT");
    let elsewhere = "Host: rebound.example\r\n";
    assert_eq!(ask("POST /all", elsewhere).await.status, 403);
}

#[tokio::test]
async fn a_token_is_asked_for_where_there_is_a_file_of_them() {
    let php = tagged_pages().await;
    let api = "location = /purge { cache_purge_api; cache_purge_token %%/tokens; }\n\
               location = /broken { cache_purge_api; cache_purge_token %%/none; }";
    let http = "cache_purge_log %%/purge.log;";
    let server = start(&configuration(&php, http, api, "")).await;
    let made = std::process::Command::new(crate::program())
        .args(["purge", "--new-token", "deploy"])
        .output()
        .expect("the program");
    let made = String::from_utf8(made.stdout).expect("text");
    let lines: Vec<&str> = made.lines().map(str::trim).collect();
    let (token, line) = (lines[1], lines[3]);
    assert!(
        line.starts_with("deploy:") && !line.contains(token),
        "{made}"
    );
    server.write("tokens", format!("# those who may\n{line}\n"));
    let target = server.target();
    let ask = async |path: &str, fields: &str| {
        let fields = format!("Content-Type: application/json\r\n{fields}");
        target.ask("POST", path, &fields, r#"{"tags":["a"]}"#).await
    };
    for wrong in [
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer x\r\n",
        &format!("Authorization: Basic {token}\r\n"),
        &format!("Authorization: Bearer {token}x\r\n"),
        &format!(
            "Authorization: Bearer {}\r\n",
            line.rsplit(':').next().unwrap_or_default()
        ),
    ] {
        let reply = ask("/purge", wrong).await;
        assert_eq!(reply.status, 401, "{wrong}");
        assert!(reply.field("www-authenticate").starts_with("Bearer"));
    }
    let right = format!("Authorization: bearer {token}\r\nX-Forwarded-For: 192.0.2.1\r\n");
    assert_eq!(ask("/purge", &right).await.status, 200);
    assert_eq!(ask("/broken", &right).await.status, 500);
    let log = server.read("purge.log");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(" api unix: deploy hard 0 responses "), "{log}");
}

#[tokio::test]
async fn a_purge_reaches_zones_of_a_configuration_whose_requests_are_not_over() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/slow" => Script::new()
            .wait_for(&held)
            .stdout("Content-Type: text/html\r\n\r\nslow"),
        _ => Script::page("Content-Type: text/html\r\nX-Cache-Tags: t\r\n", "page"),
    })
    .await;
    let server = start(&configuration(&php, "", API, "")).await;
    let target = server.target();
    store(&target, &["/page"]).await;
    let mut slow = server.connect().await;
    slow.send("GET /slow HTTP/1.0\r\nHost: site.test\r\n\r\n")
        .await;
    while php.requests() < 2 {
        tokio::task::yield_now().await;
    }
    // Another zone takes its place.
    let other = configuration(&php, "", API, "").replace("memory=8m", "memory=9m");
    server.rewrite("", &other);
    server.signal(testkit::process::Signal::HUP);
    testkit::wait::until("the reload", || server.error_log().contains("reloaded")).await;
    let reply = ask(&target, r#"{"tags":["t"]}"#).await;
    assert!(reply.text().contains("\"responses\":1"), "{}", reply.text());
    let zones = reply.text().matches("\"name\":\"zone\"").count();
    assert_eq!(zones, 2, "{}", reply.text());
    gate.add_permits(1);
    slow.receive_all().await;
}
