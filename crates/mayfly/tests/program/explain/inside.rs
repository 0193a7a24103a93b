//! Reports about stored responses: lifetimes and where they come from, variants, tags, who shares a
//! copy; searches. And facts that are not reported.

use std::os::unix::fs::PermissionsExt;

use control::explain::{Effect, ExplainRequest, Outcome, PlanKind};
use control::{EntryRequest, Explanation, FoundEntries, SearchRequest};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use super::{explain, get, get_with};
use crate::start;

async fn php() -> FakePhp {
    FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/maxage" => Script::page("Cache-Control: max-age=60\r\nAge: 10\r\n", "page"),
        "/accel" => Script::page("X-Accel-Expires: 60\r\n", "page"),
        "/long" => Script::page("Cache-Control: s-maxage=86400\r\n", "page"),
        "/missing" => Script::page("Status: 404 Not Found\r\n", "no page"),
        "/tagged" => Script::page(
            "Surrogate-Key: news:5 author:7\r\nX-Accel-Expires: 60\r\n",
            "page",
        ),
        "/vary" => Script::page("Vary: Accept-Language, X-Hidden\r\n", "page"),
        _ => Script::page(
            "Content-Type: text/html\r\nX-Kind: page\r\n",
            "x".repeat(4000),
        ),
    })
    .await
}

async fn site(php: &FakePhp) -> RunningServer {
    start(&format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         fastcgi_cache_path %%/other keys_zone=other:1m memory=8m;\n\
         upstream backend {{ server {0}; }}\n\
         cache_show_args page;\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
         gzip on; gzip_min_length 100;\n\
         fastcgi_param REQUEST_URI $request_uri; fastcgi_pass_header X-Accel-Expires;\n\
         location / {{ fastcgi_pass backend; fastcgi_cache zone; fastcgi_cache_key $host$request_uri;\n\
         fastcgi_cache_valid 200 10m;\n\
         fastcgi_cache_valid 404 1m;\n\
         cache_ignore_args utm_*; cache_max_valid 1h; }}\n\
         location /lang {{ fastcgi_pass backend; fastcgi_cache other;\n\
         fastcgi_cache_key $host$request_uri$cookie_lang; fastcgi_cache_valid any 5m;\n\
         fastcgi_cache_bypass $cookie_session; }}\n\
         location /files/ {{ root %%; }}\n\
         location /moved {{ return 301 /elsewhere; }}\n\
         location /guarded {{ auth_request /check; fastcgi_pass backend; fastcgi_cache zone; fastcgi_cache_key $uri; }}\n\
         location = /check {{ fastcgi_pass backend; }}\n\
         location /api {{ cache_purge_api; }} }}",
        php.address()
    ))
    .await
}

/// Fetches a page, and explains it.
async fn stored(server: &RunningServer, path: &str) -> Explanation {
    server.target().get(path).await;
    let told = explain(server, &get(path)).await;
    assert_eq!(told.outcome, Outcome::Hit, "{told:?}");
    told
}

#[tokio::test]
async fn a_lifetime_is_told_with_the_line_or_the_field_that_gave_it() {
    let php = php().await;
    let server = site(&php).await;
    for (path, lifetime, by) in [
        ("/page", 600, "fastcgi_cache_valid 200 10m"),
        ("/missing", 60, "fastcgi_cache_valid 404 1m"),
        ("/maxage", 60, "max-age in the field Cache-Control"),
        ("/accel", 60, "the field X-Accel-Expires"),
        ("/long", 3600, "s-maxage in the field Cache-Control"),
    ] {
        let entry = stored(&server, path).await.entry.expect("an entry");
        assert_eq!(entry.lifetime_milliseconds / 1000, lifetime, "{path}");
        assert!(
            entry.lifetime_by.contains(by),
            "{path}: {}",
            entry.lifetime_by
        );
        assert_eq!(
            path == "/long",
            entry.lifetime_by.contains("cut by"),
            "{}",
            entry.lifetime_by
        );
        if by.starts_with("fastcgi") {
            // `FILE:LINE: TEXT`
            let (at, _) = entry.lifetime_by.split_once(": ").expect("a line");
            let (file, line) = at.rsplit_once(':').expect("a file");
            let text = std::fs::read_to_string(file).expect("the configuration");
            let line = text
                .lines()
                .nth(line.parse::<usize>().expect("a number") - 1);
            assert!(line.is_some_and(|line| line.contains(by)), "{line:?}");
        }
    }
    let entry = explain(&server, &get("/maxage"))
        .await
        .entry
        .expect("an entry");
    assert!(
        (10_000..60_000).contains(&entry.age_milliseconds),
        "{entry:?}"
    );
    assert!(entry.fresh_milliseconds <= 50_000, "{entry:?}");
}

#[tokio::test]
async fn the_way_of_a_request_is_told() {
    let php = php().await;
    let server = site(&php).await;
    std::fs::create_dir(server.path("files")).expect("a folder");
    std::fs::write(server.path("files/a.txt"), "text").expect("a file");
    for (path, location, kind, to, status) in [
        ("/page", "/", PlanKind::Fastcgi, "backend", None),
        (
            "/files/a.txt",
            "/files/",
            PlanKind::File,
            "files/a.txt",
            Some(200),
        ),
        ("/files/none", "/files/", PlanKind::Answer, "", Some(404)),
        ("/moved", "/moved", PlanKind::Answer, "", Some(301)),
        ("/guarded", "/guarded", PlanKind::Fastcgi, "backend", None),
        ("/api", "/api", PlanKind::PurgeApi, "", None),
    ] {
        let told = explain(&server, &get(path)).await;
        assert_eq!(
            (&*told.server, &*told.location),
            ("site.test", location),
            "{path}"
        );
        assert_eq!((told.plan.kind, told.plan.status), (kind, status), "{path}");
        assert!(told.plan.to.ends_with(to), "{path}: {}", told.plan.to);
    }
    let nowhere = ExplainRequest {
        url: "http://other.test/".to_owned(),
        ..ExplainRequest::default()
    };
    let told = control::client::explain(&server.path("pid.control"), &nowhere).await;
    assert!(told.is_err_and(|error| error.to_string().contains("no site other.test")));
    assert_eq!(
        php.requests(),
        0,
        "nobody is asked, for auth_request neither"
    );
}

#[tokio::test]
async fn who_shares_a_copy_is_told() {
    let php = php().await;
    let server = site(&php).await;
    let effects = async |path: &str, fields: &str| {
        let told = explain(&server, &get_with(path, fields)).await;
        let parts = told.parts.into_iter();
        parts
            .map(|part| (part.name, part.effect))
            .collect::<Vec<_>>()
    };
    let has = |all: &[(String, Effect)], name: &str, effect: Effect| {
        let found = all.iter().find(|(other, _)| other == name);
        assert_eq!(
            found.map(|(_, effect)| *effect),
            Some(effect),
            "{name}: {all:?}"
        );
    };
    let all = effects("/page?page=2&utm_source=x", "Cookie: a=b\r\n").await;
    has(&all, "argument page", Effect::InKey);
    has(&all, "argument utm_source", Effect::Shares);
    has(&all, "cookie a", Effect::Shares);
    has(&all, "any other argument", Effect::InKey);
    has(&all, "User-Agent of a phone", Effect::Shares);
    let all = effects("/lang", "Cookie: lang=de; a=b; session=1\r\n").await;
    has(&all, "cookie session", Effect::PastCache);
    let all = effects("/lang", "Cookie: lang=de; a=b\r\n").await;
    has(&all, "cookie lang", Effect::InKey);
    has(&all, "cookie a", Effect::Shares);
    server
        .target()
        .get_with("/vary", "Accept-Language: de\r\n")
        .await;
    let all = effects("/vary", "Accept-Language: de\r\n").await;
    has(&all, "field Accept-Language", Effect::SelectsVariant);
    assert_eq!(php.requests(), 1);
}

async fn search(server: &RunningServer, request: SearchRequest) -> FoundEntries {
    let found = control::client::search(&server.path("pid.control"), &request).await;
    found.expect("found")
}

fn text(text: &str) -> SearchRequest {
    SearchRequest {
        text: Some(text.to_owned()),
        ..SearchRequest::default()
    }
}

#[tokio::test]
async fn what_is_stored_is_found_by_a_part_of_its_address_or_by_a_tag() {
    let php = php().await;
    let server = site(&php).await;
    for number in 0..250 {
        server.target().get(&format!("/news/{number}")).await;
    }
    server.target().get("/tagged").await;
    let found = search(&server, text("/news/24")).await;
    let mut addresses: Vec<&str> = found.entries.iter().map(|it| &*it.address).collect();
    addresses.sort_unstable();
    assert_eq!(addresses[0], "site.test/news/24");
    assert_eq!((addresses.len(), found.next), (11, None));
    assert_eq!(found.looked_at, 251);

    // In pieces, each once.
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let request = SearchRequest {
            limit: Some(7),
            after,
            ..text("/news/")
        };
        let found = search(&server, request).await;
        assert!(found.entries.len() <= 7);
        seen.extend(found.entries.into_iter().map(|it| it.address));
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 250);

    let tagged = SearchRequest {
        tag: Some("news:5".to_owned()),
        ..SearchRequest::default()
    };
    let found = search(&server, tagged).await;
    assert_eq!(found.entries.len(), 1);
    let request = EntryRequest {
        id: found.entries[0].id.clone(),
    };
    let socket = server.path("pid.control");
    let entry = control::client::entry(&socket, &request)
        .await
        .expect("an entry");
    assert_eq!(entry.address, "site.test/tagged");
    let mut tags = entry.tags.clone();
    tags.sort();
    assert_eq!(tags, ["author:7", "news:5"]);
    let told = explain(&server, &get("/tagged")).await;
    assert_eq!(
        told.entry.expect("an entry").id,
        entry.id,
        "the same response"
    );

    let purge = control::PurgeRequest {
        tags: vec!["news:5".to_owned()],
        ..control::PurgeRequest::default()
    };
    control::client::purge(&socket, &purge)
        .await
        .expect("purged");
    let found = search(&server, text("/tagged")).await;
    assert!(found.entries.is_empty(), "{found:?}");
    for (id, words) in [
        ("nonsense", "expected the id"),
        ("0-0-nowhere", "no zone nowhere"),
        ("0-0-zone", "nothing with this id"),
    ] {
        let request = EntryRequest { id: id.to_owned() };
        let entry = control::client::entry(&socket, &request).await;
        assert!(
            entry.is_err_and(|error| error.to_string().contains(words)),
            "{id}"
        );
    }
}

#[tokio::test]
async fn compressed_forms_and_fields_are_told() {
    let php = php().await;
    let server = site(&php).await;
    server
        .target()
        .get_with("/page", "Accept-Encoding: gzip\r\n")
        .await;
    server
        .target()
        .get_with("/page", "Accept-Encoding: gzip\r\n")
        .await;
    let entry = explain(&server, &get("/page"))
        .await
        .entry
        .expect("an entry");
    assert_eq!((entry.status, entry.body_bytes), (200, 4000));
    assert!(entry.memory_bytes > 4000);
    let gzip = entry.forms.iter().find(|form| form.name == "gzip");
    assert!(
        gzip.and_then(|form| form.bytes)
            .is_some_and(|bytes| bytes < 4000),
        "{entry:?}"
    );
    let has = |name: &str| {
        entry
            .fields
            .iter()
            .any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    assert!(has("x-kind") && has("content-type"), "{entry:?}");
    assert_eq!(entry.key.as_deref(), Some("site.test/page"));
}

/// Attack: who may look learns no secret of a visitor.
#[tokio::test]
async fn cookies_and_values_of_arguments_are_not_told() {
    let php = php().await;
    let server = site(&php).await;
    server
        .target()
        .get("/search?q=secret1&page=2&secret2")
        .await;
    server
        .target()
        .get_with("/lang?token=secret3", "Cookie: lang=secret4; a=secret5\r\n")
        .await;
    server
        .target()
        .get_with("/vary", "Accept-Language: de\r\nX-Hidden: secret6\r\n")
        .await;
    let found = search(&server, SearchRequest::default()).await;
    assert_eq!(found.entries.len(), 3);
    let socket = server.path("pid.control");
    let mut all = serde_json::to_string(&found).expect("JSON");
    for entry in &found.entries {
        let request = EntryRequest {
            id: entry.id.clone(),
        };
        let entry = control::client::entry(&socket, &request)
            .await
            .expect("an entry");
        all.push_str(&serde_json::to_string(&entry).expect("JSON"));
    }
    assert!(!all.contains("secret"), "{all}");
    assert!(all.contains("/search?q=*&page=2&*"), "{all}");
    assert!(all.contains("\"x-hidden\",\"*\""), "{all}");
    // Guesses do not find it either.
    for guess in ["secret", "q=s", "token=s"] {
        assert!(
            search(&server, text(guess)).await.entries.is_empty(),
            "{guess}"
        );
    }
    let long = control::client::search(&socket, &text(&"x".repeat(5000))).await;
    assert!(long.is_err_and(|error| error.to_string().contains("4096")));
}

/// Attack: only the account of the server, and root, come to the socket.
#[tokio::test]
async fn the_socket_is_for_its_own_account() {
    let php = php().await;
    let server = site(&php).await;
    let socket = std::fs::metadata(server.path("pid.control")).expect("a socket");
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    for path in ["/1/explain", "/1/search", "/1/entry"] {
        let reply = server.target().ask("POST", path, "", "{}").await;
        assert!(!reply.text().contains("entries"), "{path}");
    }
}
