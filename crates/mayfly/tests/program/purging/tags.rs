//! `cache_tags`: the fields in which an application names the tags of a response, and the fields that
//! browsers get for pages that carry tags.

use testkit::fake_http::{FakeHttp, Script as HttpScript};
use testkit::fake_php::{FakePhp, Script};
use testkit::process::is_root;
use testkit::running::RunningServer;
use testkit::wait::until;

use super::{API, ask, site};
use crate::start;

/// Purges a tag; how many stored responses carried it.
async fn purge(target: &testkit::client::Target, tag: &str) -> String {
    let reply = ask(target, &format!("{{\"tags\":[\"{tag}\"]}}")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let text = reply.text();
    let (_, count) = text.split_once("\"responses\":").expect("a count");
    count.chars().take_while(char::is_ascii_digit).collect()
}

#[tokio::test]
async fn each_known_field_counts_and_none_is_sent_on() {
    for (field, value, tags) in [
        ("Surrogate-Key", "a b", ["a", "b"]),
        ("Cache-Tag", "a a, b", ["a a", "b"]),
        ("xkey", "a,b", ["a", "b"]),
        ("X-Cache-Tags", "a,b", ["a", "b"]),
        ("X-Magento-Tags", "cat_p_5,cat_p", ["cat_p_5", "cat_p"]),
        ("X-LiteSpeed-Tag", "P.5, FP", ["P.5", "FP"]),
    ] {
        // A field that comes twice names its tags once.
        let head = format!("{field}: {value}\r\n{field}: {value}\r\nContent-Type: text/html\r\n");
        let php = FakePhp::tcp(move |_| Script::page(&head, "page")).await;
        let server = site(&php, API, "").await;
        let target = server.target();
        for tag in tags {
            let first = target.get("/").await;
            assert!(
                !first.has(&field.to_lowercase()),
                "{field} is for the cache"
            );
            assert_eq!(target.get("/").await.x_cache(), "HIT");
            assert_eq!(purge(&target, tag).await, "1", "{field}");
            assert_eq!(purge(&target, "other").await, "0");
            assert_eq!(target.get("/").await.x_cache(), "MISS", "{field}: {tag}");
        }
    }
}

#[tokio::test]
async fn cache_tags_chooses_fields_and_may_send_them_on() {
    let php = FakePhp::tcp(|_| Script::page("X-Own: one,two\r\nxkey: three\r\n", "page")).await;
    let server = site(&php, API, "cache_tags x-own sent;").await;
    let target = server.target();
    let reply = target.get("/").await;
    assert_eq!(
        (reply.field("x-own"), reply.field("xkey")),
        ("one,two", "three")
    );
    assert_eq!(purge(&target, "three").await, "0");
    assert_eq!(purge(&target, "two").await, "1");
    let server = site(&php, API, "cache_tags off;").await;
    let target = server.target();
    assert_eq!(target.get("/").await.field("xkey"), "three");
    assert_eq!(purge(&target, "three").await, "0");
}

#[tokio::test]
async fn groups_are_of_one_origin() {
    let php = FakePhp::tcp(|request| {
        let head = match request.param("REQUEST_METHOD") {
            "GET" => "Cache-Groups: \"news\", \"list\"\r\n",
            _ => "Cache-Group-Invalidation: \"news\"\r\n",
        };
        Script::page(head, "page")
    })
    .await;
    let server = site(&php, API, "cache_purge_fields on;").await;
    let target = server.target();
    let other = "Host: other.test\r\n";
    let get = async |host: &str| {
        let mut client = server.connect().await;
        client.send(format!("GET / HTTP/1.1\r\n{host}\r\n")).await;
        let reply = client.receive(false).await.expect("a response");
        reply.x_cache().to_owned()
    };
    for host in ["Host: site.test\r\n", other] {
        assert_eq!(get(host).await, "MISS");
    }
    let written = target.ask("POST", "/other-page", "", "x").await;
    assert!(!written.has("cache-group-invalidation"));
    assert_eq!(get("Host: site.test\r\n").await, "MISS");
    assert_eq!(
        get(other).await,
        "HIT",
        "another origin has groups of its own"
    );
}

#[tokio::test]
async fn tags_may_come_in_the_error_stream_and_no_visitor_can_forge_them() {
    let php = FakePhp::tcp(|request| {
        let mark = request.param("MAYFLY_TAG_MARK").to_owned();
        assert!(mark.len() > 32, "{mark:?}");
        let visitors_text = request.param("REQUEST_URI").to_owned();
        Script::new()
            .stderr(format!("PHP message: PHP Warning: {visitors_text}\n"))
            .stdout("Content-Type: text/html\r\n\r\npage")
            .stderr(format!("PHP message: {mark} news:5 li"))
            .stdout(" goes on")
            .stderr("st\n")
            .stderr("mayfly-00000000000000000000000000000000 forged\n")
    })
    .await;
    let server = site(&php, API, "cache_tags on stderr;").await;
    let target = server.target();
    for (tag, count) in [("news:5", "1"), ("list", "1"), ("forged", "0"), ("li", "0")] {
        target.get("/visitor").await;
        assert_eq!(target.get("/visitor").await.x_cache(), "HIT");
        assert_eq!(purge(&target, tag).await, count, "{tag}");
    }
    let log = server.error_log();
    assert!(log.contains("PHP Warning: /visitor"), "{log}");
    assert!(log.contains("forged") && !log.contains("news:5"), "{log}");
}

/// Names tags with and without the mark of the end, and logs text of a visitor.
const NAMES_AND_LOGS: &str = r#"<?php
    $mark = $_SERVER['MAYFLY_TAG_MARK'];
    error_log("$mark news:5 news:6");
    error_log("$mark news:7 /$mark");
    error_log("login failed for $_GET[t]");
    echo 'page';
    flush();
    error_log("$mark late:1 /$mark");
    error_log("$_GET[t]\ntoo late");
    error_log(print_r($_SERVER, true));"#;

/// Names more in one message than PHP-FPM lets through.
const NAMES_TOO_MUCH: &str = r#"<?php
    $mark = $_SERVER['MAYFLY_TAG_MARK'];
    header('X-Accel-Expires: 3600');
    error_log("$mark " . str_repeat('long ', 300) . "/$mark");
    error_log("login failed for $_GET[t]");"#;

/// A pool of the real PHP-FPM with the two scripts above, whose settings are `settings`.
async fn real_php(folder: &std::path::Path, settings: &str) -> Option<RunningServer> {
    if !crate::has_php_fpm() {
        return None;
    }
    let scripts = [("names.php", NAMES_AND_LOGS), ("much.php", NAMES_TOO_MUCH)];
    testkit::serving::write_files(folder, &scripts);
    let user = if is_root() { "user www-data;" } else { "" };
    let main = format!("php_pool site {{ workers 1; {user} {settings} }}");
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http; server_name site.test; {API} location / {{\n\
         fastcgi_pass php:site; fastcgi_param SCRIPT_FILENAME {}$uri;\n\
         fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method;\n\
         cache_tags on stderr; fastcgi_cache zone; fastcgi_cache_key $request_uri;\n\
         fastcgi_cache_valid 200 1h; add_header X-Cache $upstream_cache_status always; }} }}",
        folder.display()
    );
    Some(RunningServer::start(crate::program(), &main, &http).await)
}

#[tokio::test]
async fn each_message_of_php_fpm_names_its_own_tags_and_no_text_of_a_visitor_does() {
    for settings in ["", "php_value error_log /nowhere/php.log;"] {
        let folder = testkit::serving::FolderServer::folder();
        let Some(server) = real_php(folder.path(), settings).await else {
            return;
        };
        let target = server.target();
        let page = "/names.php?t=bob%20vict:1";
        let visitor = "User-Agent: x vict:2\r\n";
        for (tag, count) in [
            ("news:5", "1"),
            ("news:6", "1"),
            ("news:7", "1"),
            ("late:1", "1"),
            ("news:6;", "0"),
            ("vict:1", "0"),
            ("vict:2", "0"),
        ] {
            target.get_with(page, visitor).await;
            assert_eq!(target.get(page).await.x_cache(), "HIT");
            assert_eq!(purge(&target, tag).await, count, "{tag} {settings}");
        }
        let log = server.error_log();
        for line in ["login failed for bob vict:1", "too late", "x vict:2"] {
            assert!(log.contains(line), "{line}: {log}");
        }
        assert!(!log.contains("news:") && !log.contains("late:1"), "{log}");
    }
}

#[tokio::test]
async fn a_page_whose_tags_php_fpm_has_cut_is_kept_for_a_second_and_the_log_says_so() {
    let folder = testkit::serving::FolderServer::folder();
    let Some(server) = real_php(folder.path(), "").await else {
        return;
    };
    let target = server.target();
    let page = "/much.php?t=bob%20vict:1";
    target.get(page).await;
    assert_eq!(purge(&target, "vict:1").await, "0");
    let log = server.error_log();
    assert!(log.contains("in a line that PHP has cut"), "{log}");
    assert!(log.contains("login failed for bob vict:1"), "{log}");
}

#[tokio::test]
async fn what_php_logged_is_in_the_log_although_its_response_breaks_off() {
    let php = FakePhp::tcp(|_| {
        Script::new()
            .stdout("Content-Type: text/html\r\n\r\npage")
            .stderr("PHP message: the reason; PHP message: mayfly")
            .close()
    })
    .await;
    let server = site(&php, API, "cache_tags on stderr;").await;
    let mut client = server.connect().await;
    client
        .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    for text in ["PHP message: the reason", "; PHP message: mayfly"] {
        until(text, || server.error_log().contains(text)).await;
    }
}

#[tokio::test]
async fn tags_may_come_as_trailers() {
    let http = FakeHttp::start(|_| {
        HttpScript::new().raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Surrogate-Key\r\n\
             Cache-Control: max-age=3600\r\n\r\n4\r\npage\r\n0\r\nSurrogate-Key: late\r\n\r\n",
        )
    })
    .await;
    let server = start(&format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http; server_name site.test; {API}\n\
         location / {{ proxy_pass {}; proxy_http_version 1.1; proxy_cache zone;\n\
         add_header X-Cache $upstream_cache_status always; }} }}",
        http.url()
    ))
    .await;
    let target = server.target();
    target.get("/").await;
    let hit = target.get("/").await;
    assert_eq!(hit.x_cache(), "HIT");
    assert_eq!(
        hit.field("cache-control"),
        "no-cache",
        "browsers have to ask"
    );
    assert!(hit.has("etag"));
    assert_eq!(purge(&target, "late").await, "1");
    assert_eq!(target.get("/").await.x_cache(), "MISS");
}

#[tokio::test]
async fn browsers_ask_for_pages_with_tags_and_get_a_304_from_memory() {
    let head = "Cache-Control: max-age=3600\r\nExpires: Thu, 01 Jan 2099 00:00:00 GMT\r\n\
                Surrogate-Key: a\r\nContent-Type: text/html\r\n";
    let php = FakePhp::tcp(move |_| Script::page(head, "the same page")).await;
    let server = site(&php, API, "").await;
    let target = server.target();
    let first = target.get("/").await;
    assert_eq!(first.field("cache-control"), "no-cache");
    assert!(!first.has("expires"));
    let etag = target.get("/").await.field("etag").to_owned();
    assert_eq!(etag.len(), 34, "{etag}");
    let asked = format!("If-None-Match: {etag}\r\n");
    assert_eq!(target.get_with("/", &asked).await.status, 304);
    assert_eq!(php.requests(), 1);
    // A page that is made again and unchanged is the same to browsers.
    purge(&target, "a").await;
    target.get("/").await;
    assert_eq!(target.get_with("/", &asked).await.status, 304);
    assert_eq!(php.requests(), 2);

    let server = site(&php, "", "cache_tagged_control off;").await;
    let reply = server.target().get("/").await;
    assert_eq!(reply.field("cache-control"), "max-age=3600");
    assert!(!server.target().get("/").await.has("etag"));
}

#[tokio::test]
async fn a_page_with_too_many_tags_is_kept_for_a_second_and_the_log_says_so() {
    let long = "x".repeat(1025);
    let head = format!("X-Accel-Expires: 3600\r\nSurrogate-Key: {long}\r\n");
    let php = FakePhp::tcp(move |_| Script::page(&head, "page")).await;
    let server = site(&php, API, "").await;
    let target = server.target();
    target.get("/").await;
    let hit = target.get("/").await;
    // A whole second is left when both requests fall into one tick of the server's clock.
    let status = hit.field("cache-status");
    assert!(
        status.ends_with("; hit; ttl=0") || status.ends_with("; hit; ttl=1"),
        "{hit:?}"
    );
    let log = server.error_log();
    assert!(log.contains("names more than 65536 tags"), "{log}");
}
