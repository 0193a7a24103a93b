//! `dashboard`: a look inside the cache, who may have it, and who may purge there.

use control::{Entry, FoundEntries, PurgeReport};
use testkit::client::{Reply, Target};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use crate::start;

const MARKUP: &str = "/%3Cimg%20src=x%20onerror=alert(1)%3E";
const ELSEWHERE: &str = "X-Forwarded-For: 192.0.2.1\r\n";

async fn php() -> FakePhp {
    FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/moved?token=secret1" => Script::page(
            "Status: 301 Moved Permanently\r\nLocation: /there?token=secret1&page=2\r\n\
             Set-Cookie: session=secret2\r\n",
            "",
        ),
        "/languages" => Script::page("Vary: Accept-Language\r\n", "page"),
        path => Script::page(
            &format!(
                "Content-Type: text/html\r\nX-Cache-Tags: all,{}\r\n",
                path.trim_start_matches('/').split('?').next().unwrap_or("")
            ),
            format!("{path} {}", request.number),
        ),
    })
    .await
}

/// A site whose dashboard is read-only at `/read`, and else asks for a token.
async fn site(php: &FakePhp) -> (RunningServer, String) {
    let pages = php.cached_site(
        "fastcgi_cache_valid any 1h; cache_store_set_cookie on; cache_tags X-Cache-Tags;",
    );
    let more = "server_name site.test; cache_purge_token %%/tokens;
         location = /read { dashboard; cache_purge_token off; }
         location = /dashboard { dashboard; }
         location = /open { dashboard; allow all; }
         location = /closed { dashboard; deny all; }
         location = /broken { dashboard; cache_purge_token %%/none; }
         location = /password { dashboard; auth_basic site; auth_basic_user_file %%/users; }";
    let http = format!("cache_show_args page; cache_purge_log %%/purge.log;\n{pages}");
    let http = http.replacen("server_name site.test;", more, 1);
    let server = start(&http).await;
    let made = std::process::Command::new(crate::program())
        .args(["purge", "--new-token", "owner"])
        .output()
        .expect("the program");
    let made = String::from_utf8(made.stdout).expect("text");
    let lines: Vec<&str> = made.lines().map(str::trim).collect();
    server.write("tokens", format!("{}\n", lines[3]));
    server.write("users", "me:{PLAIN}word\n");
    (server, format!("Authorization: Bearer {}\r\n", lines[1]))
}

async fn search(target: &Target, what: &str) -> Vec<Entry> {
    let reply = target.get(&format!("/dashboard?search={what}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let found: FoundEntries = serde_json::from_str(&reply.text()).expect("what was found");
    found.entries
}

async fn one(target: &Target, what: &str) -> Entry {
    let mut found = search(target, what).await;
    assert_eq!(found.len(), 1, "{what}: {found:?}");
    found.remove(0)
}

async fn purge(target: &Target, id: &str, fields: &str) -> Reply {
    let path = format!("/dashboard?purge={id}");
    target.ask("POST", &path, fields, "").await
}

#[tokio::test]
async fn what_is_stored_is_found_by_a_part_of_its_address_and_by_a_tag_and_opened() {
    let php = php().await;
    let (server, _) = site(&php).await;
    let target = server.target();
    for path in [
        "/news/5?page=2&token=secret3",
        "/about",
        "/moved?token=secret1",
        MARKUP,
    ] {
        target.get(path).await;
        assert_eq!(target.get(path).await.x_cache(), "HIT", "{path}");
    }
    assert_eq!(search(&target, "").await.len(), 4);
    assert_eq!(search(&target, "&tag=all").await.len(), 3);
    assert_eq!(search(&target, "&limit=2").await.len(), 2);
    assert_eq!(search(&target, "none").await.len(), 0);
    assert_eq!(search(&target, "secret").await.len(), 0, "not by trying");
    assert_eq!(
        one(&target, "&tag=news/5").await.address,
        "site.test/news/5?page=2&token=*"
    );
    let found = one(&target, "ews/5%3Fpage=2").await;
    assert_eq!(
        found.key.as_deref(),
        Some("site.test/news/5?page=2&token=*")
    );
    let opened = target.get(&format!("/dashboard?entry={}", found.id)).await;
    let opened: Entry = serde_json::from_str(&opened.text()).expect("an entry");
    let mut tags = opened.tags;
    tags.sort();
    assert_eq!(tags, ["all", "news/5"]);
    assert_eq!(opened.lifetime_milliseconds, 3_600_000);
    assert!(
        opened.lifetime_by.ends_with("fastcgi_cache_valid any 1h"),
        "{}",
        opened.lifetime_by
    );
    assert!(opened.memory_bytes > opened.body_bytes && opened.body_bytes > 0);
    let moved = one(&target, "moved").await;
    let moved = target.get(&format!("/dashboard?entry={}", moved.id)).await;
    let text = moved.text();
    assert!(text.contains("/there?token=*&page=2"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    // The name is shown as it is: nothing of it becomes markup.
    let marked = one(&target, "%3Cimg").await;
    assert_eq!(marked.address, "site.test/<img src=x onerror=alert(1)>");
    let page = target.get("/dashboard").await.text();
    assert!(!page.contains("onerror"), "there is no data in the page");
    let reply = target.get("/dashboard?search=%3Cimg").await;
    assert_eq!(reply.field("content-type"), "application/json");
    assert_eq!(reply.field("x-content-type-options"), "nosniff");
    for (path, status) in [
        ("/dashboard?entry=0000000000000001-1-zone", 404),
        ("/dashboard?entry=1", 400),
        ("/dashboard?entry=1-1-other", 400),
        ("/dashboard?search=a&zone=other", 400),
        ("/dashboard?search=a&after=x", 400),
        ("/dashboard?search=a&other=x", 404),
    ] {
        let reply = target.get(path).await;
        assert_eq!(reply.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_purge_names_what_is_masked_by_its_id() {
    let php = php().await;
    let (server, token) = site(&php).await;
    let target = server.target();
    for path in ["/a?token=one", "/a?token=two", "/a"] {
        target.get(path).await;
    }
    let asked = php.requests();
    let found = search(&target, "/a%3Ftoken").await;
    assert_eq!(found.len(), 2, "{found:?}");
    let reply = purge(&target, &found[0].id, &token).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let report: PurgeReport = serde_json::from_str(&reply.text()).expect("a report");
    assert_eq!(report.responses(), 1);
    assert_eq!(report.targets[0].text, "site.test/a?token=*");
    let left = search(&target, "/a%3Ftoken").await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].id, found[1].id, "the other one");
    let mut hits = 0;
    for path in ["/a?token=one", "/a?token=two", "/a"] {
        hits += usize::from(target.get(path).await.x_cache() == "HIT");
    }
    assert_eq!((hits, php.requests()), (2, asked + 1));
    // The page is stored anew, under another id.
    let again = purge(&target, &found[0].id, &token).await;
    assert_eq!(again.status, 404, "{}", again.text());
    let log = server.read("purge.log");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(
        log.contains(" dashboard unix: owner hard 1 responses ")
            && log.contains("url=\"site.test/a?token=*\""),
        "{log}"
    );
}

#[tokio::test]
async fn a_purge_takes_all_that_is_stored_for_the_address() {
    let php = php().await;
    let (server, token) = site(&php).await;
    let target = server.target();
    for language in ["de", "en"] {
        let field = format!("Accept-Language: {language}\r\n");
        target.get_with("/languages", &field).await;
    }
    let found = search(&target, "languages").await;
    assert_eq!(found.len(), 2, "{found:?}");
    let reply = purge(&target, &found[0].id, &token).await;
    let report: PurgeReport = serde_json::from_str(&reply.text()).expect("a report");
    assert_eq!((reply.status, report.responses()), (200, 2));
    assert_eq!(search(&target, "languages").await.len(), 0);
}

#[tokio::test]
async fn only_who_has_a_token_purges() {
    let php = php().await;
    let (server, token) = site(&php).await;
    let target = server.target();
    target.get("/a").await;
    let id = one(&target, "/a").await.id;
    let path = |location: &str| format!("{location}?purge={id}");
    for (method, location, fields, status, words) in [
        (
            "POST",
            "/dashboard",
            "",
            401,
            "sign in with a token to purge",
        ),
        ("POST", "/open", "", 401, "sign in with a token to purge"),
        ("POST", "/read", "", 403, "read-only"),
        ("POST", "/read", &*token, 403, "read-only"),
        ("POST", "/broken", &token, 500, "cannot be read"),
        (
            "POST",
            "/dashboard",
            "Authorization: Bearer other\r\n",
            401,
            "this token is not known",
        ),
        // Requests that a page of another site can make a browser send.
        (
            "POST",
            "/dashboard",
            "Cookie: token=x\r\nOrigin: https://evil.example\r\nContent-Type: text/plain\r\n",
            401,
            "sign in with a token",
        ),
        ("GET", "/dashboard", &token, 405, ""),
        ("PUT", "/dashboard", &token, 405, ""),
        ("OPTIONS", "/dashboard", "", 405, ""),
        ("POST", "/closed", &token, 403, ""),
        ("POST", "/password", &token, 401, ""),
    ] {
        let reply = target.ask(method, &path(location), fields, "").await;
        assert_eq!(reply.status, status, "{method} {location} {fields}");
        assert!(reply.text().contains(words), "{location}: {}", reply.text());
        assert!(!reply.has("access-control-allow-origin"));
        let basic = reply.field("www-authenticate").starts_with("Basic");
        assert_eq!(basic, location == "/password", "{location}");
    }
    assert_eq!(target.get("/a").await.x_cache(), "HIT");
    let from_elsewhere = format!("{token}{ELSEWHERE}");
    assert_eq!(purge(&target, &id, &from_elsewhere).await.status, 200);
    assert_ne!(target.get("/a").await.x_cache(), "HIT");
}

#[tokio::test]
async fn who_has_a_token_sees_all_of_it_from_elsewhere_and_others_the_empty_page() {
    let php = php().await;
    let (server, token) = site(&php).await;
    let target = server.target();
    target.get("/a").await;
    let id = one(&target, "/a").await.id;
    let data = [
        "numbers".to_owned(),
        "pages".to_owned(),
        "table".to_owned(),
        "history=0".to_owned(),
        "search=a".to_owned(),
        format!("entry={id}"),
    ];
    let with_token = format!("{token}{ELSEWHERE}");
    let wrong = "Authorization: Bearer x\r\n";
    for what in &data {
        for (location, fields, status) in [
            ("/dashboard", "", 200),
            ("/dashboard", ELSEWHERE, 401),
            ("/dashboard", "Host: rebound.example\r\n", 401),
            ("/dashboard", &with_token, 200),
            ("/dashboard", wrong, 401),
            ("/read", ELSEWHERE, 403),
            ("/read", &with_token, 403),
            ("/open", ELSEWHERE, 200),
            ("/open", wrong, 401),
            ("/closed", &with_token, 403),
        ] {
            let path = format!("{location}?{what}");
            let reply = ask_as(&server, &path, fields).await;
            assert_eq!(reply.status, status, "{path} {fields}");
            if status == 401 {
                assert!(reply.field("www-authenticate").starts_with("Bearer"));
                assert!(reply.text().contains("token"), "{}", reply.text());
            }
        }
    }
    for (location, fields, status) in [
        ("/dashboard", ELSEWHERE, 200),
        ("/dashboard", wrong, 200),
        ("/read", ELSEWHERE, 403),
        ("/closed", &with_token, 403),
    ] {
        let reply = ask_as(&server, location, fields).await;
        assert_eq!(reply.status, status, "{location} {fields}");
    }
    #[rustfmt::skip]
    let cases = [
        ("/dashboard", "", 200, r#""tokens":true,"password":false,"sees":true,"holder":null"#),
        ("/dashboard", ELSEWHERE, 200, r#""sees":false,"holder":null"#),
        ("/dashboard", &with_token, 200, r#""sees":true,"holder":"owner""#),
        ("/dashboard", wrong, 401, "this token is not known"),
        ("/read", "", 200, r#""tokens":false,"password":false,"sees":true"#),
        ("/read", ELSEWHERE, 403, "own machine"),
        (
            "/password", "Authorization: Basic bWU6d29yZA==\r\n", 200,
            r#""tokens":false,"password":true,"sees":true"#,
        ),
        ("/password", "", 401, ""),
    ];
    for (location, fields, status, about) in cases {
        let reply = ask_as(&server, &format!("{location}?about"), fields).await;
        assert_eq!(reply.status, status, "{location} {fields}");
        assert!(reply.text().contains(about), "{}", reply.text());
    }
}

/// A GET for `site.test`, unless the fields name another host.
async fn ask_as(server: &RunningServer, path: &str, fields: &str) -> Reply {
    let host = match fields.contains("Host:") {
        true => "",
        false => "Host: site.test\r\n",
    };
    let mut client = server.connect().await;
    client
        .send(format!(
            "GET {path} HTTP/1.1\r\n{host}Connection: close\r\n{fields}\r\n"
        ))
        .await;
    client.receive(false).await.expect("a response")
}
