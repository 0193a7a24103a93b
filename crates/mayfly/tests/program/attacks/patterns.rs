//! Paths and fields that make a pattern hit a limit of the pattern library. A pattern that
//! gives up has no verdict on its subject: a server that counted that as "no match" would
//! skip the `deny` that stands behind it.

use testkit::client::Reply;
use testkit::running::RunningServer;

use crate::start;

/// Without a larger stack the library gives up on each of these groups' many turns.
const MANY_TURNS: &str = "(?:(a)|(b))*secret";
/// Tries 2^40 ways to divide a run of 40 letters: beyond the limit of any library.
const MANY_WAYS: &str = "(?:(?:a+)+!|secret)";

async fn server(http: &str) -> RunningServer {
    let server = start(http).await;
    std::fs::create_dir(server.path("site")).expect("a folder");
    server.write("site/secret", "SECRET");
    server
}

fn many_turns() -> String {
    format!("/{}secret", "ab".repeat(3000))
}

fn many_ways() -> String {
    format!("/{}/secret", "a".repeat(40))
}

fn is_withheld(reply: &Reply, server: &RunningServer) {
    assert!(!reply.text().contains("SERVED"), "{}", reply.text());
    assert_eq!(reply.status, 500, "{}", reply.text());
    let log = server.error_log();
    assert!(log.contains("pattern \""), "{log}");
    assert!(log.contains("failed"), "{log}");
}

#[tokio::test]
async fn a_pattern_with_many_turns_is_run_to_its_end() {
    let http = format!(
        "server {{ listen unix:%%/http; root %%/site;\n\
         location / {{ return 200 SERVED; }}\n\
         location ~ ^/{MANY_TURNS} {{ deny all; }} }}"
    );
    let server = server(&http).await;
    let reply = server.target().get(&many_turns()).await;
    assert_eq!(reply.status, 403, "{}", reply.text());
}

#[tokio::test]
async fn no_location_serves_what_a_location_pattern_could_not_be_asked_about() {
    let http = format!(
        "server {{ listen unix:%%/http; root %%/site;\n\
         location / {{ return 200 SERVED; }}\n\
         location ~ {MANY_WAYS} {{ deny all; }} }}"
    );
    let server = server(&http).await;
    is_withheld(&server.target().get(&many_ways()).await, &server);
    // Its neighbours are served and refused as ever.
    assert_eq!(server.target().get("/open").await.text(), "SERVED");
    assert_eq!(server.target().get("/secret").await.status, 403);
}

#[tokio::test]
async fn conditions_rewrites_and_maps_that_fail_refuse_the_request() {
    let map = "map $request_uri $is_secret { default 0; \"~PATTERN\" 1; }";
    #[rustfmt::skip]
    let cases = [
        ("if", "", "if ($uri ~ \"PATTERN\") { return 403; } return 200 SERVED;"),
        // A negated condition without a verdict is not served either.
        ("if not", "", "if ($uri !~ \"PATTERN\") { return 200 SERVED; } deny all;"),
        ("rewrite", "", "rewrite \"PATTERN\" /denied last; return 200 SERVED;"),
        ("map in if", map, "if ($is_secret) { return 403; } return 200 SERVED;"),
        ("map in a response", map, "return 200 SERVED$is_secret;"),
        ("map in a field", map, "add_header X-Secret $is_secret always; try_files /secret =404;"),
        (
            "map in a limit", "limit_req_zone $is_secret zone=z:1m rate=1r/m; MAP",
            "limit_req zone=z; try_files /secret =404;",
        ),
        (
            "referers", "",
            "valid_referers server_names \"~PATTERN\"; if ($invalid_referer = '') { return 403; } return 200 SERVED;",
        ),
    ];
    for (what, outside, location) in cases {
        let http = format!(
            "{outside}\nserver {{ listen unix:%%/http; root %%/site;\n\
             location = /denied {{ deny all; }}\n location / {{ {location} }} }}"
        );
        let http = http.replace("MAP", map).replace("PATTERN", MANY_WAYS);
        let server = server(&http).await;
        let referer = format!("Referer: http:/{}\r\n", many_ways());
        let reply = server.target().get_with(&many_ways(), &referer).await;
        assert_eq!(reply.status, 500, "{what}: {}", reply.text());
        assert_ne!(reply.text(), "SECRET", "{what}");
        is_withheld(&reply, &server);
    }
}

#[tokio::test]
async fn a_host_that_a_server_pattern_could_not_be_asked_about_reaches_no_server() {
    let http = format!(
        "server {{ listen unix:%%/http default_server; server_name _; return 200 SERVED; }}\n\
         server {{ listen unix:%%/http; server_name \"~{MANY_WAYS}\"; return 403; }}"
    );
    let server = server(&http).await;
    let mut client = server.connect().await;
    let host = format!("{}.secret", "a".repeat(40));
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    client.send(request).await;
    is_withheld(&client.receive(false).await.expect("a response"), &server);
}

/// The error page of the 500 is looked for by a path of its own; a pattern that fails for
/// that as well leads to the built-in page, not round and round.
#[tokio::test]
async fn the_error_page_of_a_pattern_that_failed_is_shown() {
    let http = format!(
        "server {{ listen unix:%%/http; root %%/site; error_page 500 /sorry;\n\
         location / {{ return 200 SERVED; }}\n\
         location = /sorry {{ return 500 sorry; }}\n\
         location ~ {MANY_WAYS} {{ deny all; }} }}"
    );
    let server = server(&http).await;
    let reply = server.target().get(&many_ways()).await;
    assert_eq!((reply.status, reply.text().as_str()), (500, "sorry"));
}

/// The condition for storing or passing on is evaluated before anybody else is asked.
#[tokio::test]
async fn an_application_is_not_asked_where_a_pattern_for_it_failed() {
    use testkit::fake_php::{FakePhp, Script};
    let php = FakePhp::tcp(|_| Script::page("Content-Type: text/plain\r\n", "SERVED")).await;
    for (directives, key) in [
        ("fastcgi_param IS_SECRET $is_secret;", ""),
        (
            "fastcgi_cache_valid 1h; fastcgi_cache_bypass $is_secret;",
            "",
        ),
        ("fastcgi_cache_valid 1h;", "$is_secret"),
        (
            "fastcgi_cache_valid 1h; fastcgi_split_path_info \"^(.*?)()SPLIT\"; fastcgi_param A $fastcgi_path_info;",
            "",
        ),
    ] {
        let directives = &directives.replace("()SPLIT", &format!("({MANY_WAYS})$"));
        let site = php.cached_site(directives);
        let http = format!(
            "map $uri $is_secret {{ default 0; \"~{MANY_WAYS}\" 1; }}\n{}",
            site.replace("fastcgi_cache_key $host", "fastcgi_cache_key KEY$host")
                .replace("KEY", key)
        );
        let server = server(&http).await;
        is_withheld(&server.target().get(&many_ways()).await, &server);
        assert_eq!(php.requests(), 0, "{directives}");
    }
}
