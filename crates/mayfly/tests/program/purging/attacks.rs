//! Purges of those who mean harm, or too much of it.

use super::*;

#[tokio::test]
async fn more_than_a_bounded_number_of_targets_is_refused() {
    let php = tagged_pages().await;
    let api = "client_max_body_size 0; location = /purge { cache_purge_api; }";
    let server = site(&php, api, "").await;
    let target = server.target();
    store(&target, &["/news/5"]).await;
    let list = |text: &str, count: usize| vec![format!("\"{text}\""); count].join(",");
    for (json, expected) in [
        (
            format!("{{\"tags\":[{}]}}", list("all", 1_000_000)),
            "1000000 targets",
        ),
        (
            format!("{{\"tags\":[{}]}}", list("all", 10_001)),
            "10001 targets",
        ),
        (
            format!("{{\"patterns\":[{}]}}", list("~a", 257)),
            "257 prefixes",
        ),
        (
            format!("{{\"tags\":[\"{}\"]}}", "a".repeat(9 << 20)),
            "body of at most",
        ),
    ] {
        let reply = ask(&target, &json).await;
        assert_eq!(reply.status, 413, "{expected}: {}", reply.text());
        assert!(reply.text().contains(expected), "{}", reply.text());
    }
    let deep = format!("{{\"tags\":{}", "[".repeat(1 << 20));
    assert_eq!(ask(&target, &deep).await.status, 400);
    assert_eq!(target.get("/news/5").await.x_cache(), "HIT");
    // The most that is taken.
    let json = format!("{{\"tags\":[{}]}}", list("none", 10_000));
    assert_eq!(ask(&target, &json).await.status, 200);
}

#[tokio::test]
async fn client_max_body_size_holds_for_the_interface_as_well() {
    let php = tagged_pages().await;
    let api = "client_max_body_size 100; location = /purge { cache_purge_api; }";
    let server = site(&php, api, "").await;
    let target = server.target();
    let json = format!("{{\"tags\":[\"{}\"]}}", "a".repeat(200));
    assert_eq!(ask(&target, &json).await.status, 413);
    // A body whose length is not announced.
    let mut client = server.connect().await;
    client
        .send(format!(
            "POST /purge HTTP/1.1\r\nHost: site.test\r\nContent-Type: application/json\r\n\
             Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{json}\r\n0\r\n\r\n",
            json.len()
        ))
        .await;
    assert_eq!(client.receive(false).await.expect("a response").status, 413);
}

#[tokio::test]
async fn expressions_that_explode_elsewhere_end_in_time() {
    let php = tagged_pages().await;
    let server = site(&php, API, "fastcgi_cache_purge PURGE from local;").await;
    let target = server.target();
    let long = format!("/{}b", "a".repeat(3000));
    store(&target, &[&long]).await;
    for pattern in [
        r"~^site\\.test/(a*)*$",
        r"~(a|aa)+$",
        r"~(.*a){20}$",
        r"~(x+x+)+y",
    ] {
        let reply = ask(&target, &format!("{{\"patterns\":[\"{pattern}\"]}}")).await;
        assert_eq!(reply.status, 200, "{pattern}: {}", reply.text());
    }
    for pattern in [r"~(?:a{1000}){1000}", r"~(a)\\1"] {
        let reply = ask(&target, &format!("{{\"patterns\":[\"{pattern}\"]}}")).await;
        assert_eq!(reply.status, 400, "{pattern}: {}", reply.text());
    }
    let field = "X-Magento-Tags-Pattern: (((((a*)*)*)*)*)*(?:b{1000}){1000}\r\n";
    assert_eq!(target.ask("PURGE", "/", field, "").await.status, 400);
}

#[tokio::test]
async fn a_flood_of_long_purges_is_bounded_and_pages_are_served_meanwhile() {
    let php = tagged_pages().await;
    let server = site(&php, API, "").await;
    let target = server.target();
    store(&target, &["/news/5"]).await;
    let patterns = vec![r#""~(a|b|c)*d$""#; 256].join(",");
    let json = format!("{{\"patterns\":[{patterns}]}}");
    let mut asked = Vec::new();
    for _ in 0..64 {
        let (target, json) = (target.clone(), json.clone());
        asked.push(tokio::spawn(async move { ask(&target, &json).await }));
    }
    assert_eq!(target.get("/news/5").await.x_cache(), "HIT");
    for one in asked {
        let reply = one.await.expect("a task");
        match reply.status {
            200 => {}
            429 => assert_eq!(reply.field("retry-after"), "1"),
            other => panic!("{other}: {}", reply.text()),
        }
    }
    assert_eq!(ask(&target, &json).await.status, 200);
}

#[tokio::test]
async fn control_characters_do_not_break_the_log() {
    let php = tagged_pages().await;
    let http = "cache_purge_log %%/purge.log;";
    let server = start(&configuration(
        &php,
        http,
        API,
        "fastcgi_cache_purge PURGE from local;",
    ))
    .await;
    let target = server.target();
    let json = r#"{"tags":["a\n2026-01-01 socket root\u0000\u001b[2J\"","ü"]}"#;
    assert_eq!(ask(&target, json).await.status, 200);
    target
        .ask("PURGE", "/a%0Ab", "X-Purge-Method: default\r\n", "")
        .await;
    let log = server.read("purge.log");
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(
        log.bytes()
            .all(|byte| byte == b'\n' || (32..127).contains(&byte)),
        "{log}"
    );
    assert!(
        log.contains(r"a\x0A2026-01-01 socket root\x00\x1B[2J\x22"),
        "{log}"
    );
}

#[tokio::test]
async fn a_location_purges_its_own_zone_alone() {
    let php = tagged_pages().await;
    let other = "fastcgi_cache_path %%/other keys_zone=other:1m memory=8m;";
    let location = format!(
        "fastcgi_cache_purge PURGE from local; fastcgi_cache_purge BAN from local;\n}}\n\
         location /other/ {{ fastcgi_pass {}; fastcgi_param REQUEST_URI $request_uri;\n\
         fastcgi_cache other; fastcgi_cache_key $host$request_uri; fastcgi_cache_valid 200 1h;\n\
         add_header X-Cache $upstream_cache_status always;",
        php.address()
    );
    let server = start(&configuration(&php, other, API, &location)).await;
    let target = server.target();
    let pages = ["/news/5", "/other/5"];
    store(&target, &pages).await;
    for (method, field) in [
        ("PURGE", "X-Magento-Tags-Pattern: .*\r\n"),
        ("BAN", "X-Url: .*\r\n"),
        ("PURGE", "xkey-purge: all\r\n"),
    ] {
        assert_eq!(target.ask(method, "/", field, "").await.status, 200);
        assert_eq!(gone(&target, &pages).await, ["/news/5"], "{field}");
    }
    assert_eq!(ask(&target, r#"{"everything":true}"#).await.status, 200);
    assert_eq!(gone(&target, &pages).await, pages);
}
