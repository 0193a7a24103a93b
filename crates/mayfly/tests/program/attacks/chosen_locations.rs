//! A field of the request that chooses the location: the page made there is stored for visitors who
//! did not send the field.

use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use crate::start;

async fn server(lines: &str) -> ([FakePhp; 2], RunningServer) {
    let beta = FakePhp::tcp(|_| Script::page("Content-Type: text/html\r\n", "beta")).await;
    let php = FakePhp::tcp(|request| {
        let seen = ["EDITION", "SCRIPT_FILENAME"].map(|name| request.param(name).to_owned());
        Script::page("Content-Type: text/html\r\n", seen.join(" "))
    })
    .await;
    let lines = lines
        .replace("ASK_BETA", &format!("fastcgi_pass {};", beta.address()))
        .replace("PASS", &format!("fastcgi_pass {};", php.address()));
    let server = start(&format!(
        "fastcgi_cache_path %%/pages keys_zone=pages:1m memory=8m;\n\
             server {{ listen unix:%%/http; cache_shared on; fastcgi_cache pages;\n\
             fastcgi_cache_valid 200 1h; add_header X-Cache $upstream_cache_status;\n\
             fastcgi_param EDITION common;\n{lines}\n}}"
    ))
    .await;
    ([php, beta], server)
}

/// Fields by which a location is chosen, and the cache status of two requests that have one: the first
/// value makes no difference for a page by itself, the second makes a request personal.
const FIELDS: [(&str, [&str; 2]); 2] = [
    ("X-Forwarded-Proto", ["MISS", "HIT"]),
    ("X-Beta", ["BYPASS", "BYPASS"]),
];

#[tokio::test]
async fn what_a_field_leads_to_is_not_shown_to_those_without_it() {
    let named = "location / { error_page 418 = @beta; if ($FIELD) { return 418; } PASS }\n\
        location @beta { fastcgi_param EDITION beta; PASS }";
    let conditional = "location / { PASS if ($FIELD) { ASK_BETA } }";
    let set = "set $edition common; if ($FIELD) { set $edition beta; }\n\
        location / { fastcgi_param EDITION $edition; PASS }";
    let rewritten = "if ($FIELD) { rewrite ^ /beta$uri; }\n\
        location / { PASS } location /beta { fastcgi_param EDITION beta; PASS }";
    for (way, lines) in [
        ("a named location", named),
        ("an if block", conditional),
        ("a variable", set),
        ("a rewritten path", rewritten),
    ] {
        for (field, of_beta) in FIELDS {
            let variable = format!("http_{}", field.to_ascii_lowercase().replace('-', "_"));
            let (_php, server) = server(&lines.replace("FIELD", &variable)).await;
            let target = server.target();
            for (of_beta, of_common) in of_beta.into_iter().zip(["MISS", "HIT"]) {
                let beta = target.get_with("/page", &format!("{field}: 1\r\n")).await;
                let seen = (beta.text().trim().to_owned(), beta.x_cache());
                assert_eq!(seen, ("beta".to_owned(), of_beta), "{way} by {field}");
                let common = target.get("/page").await;
                let seen = (common.text().trim().to_owned(), common.x_cache());
                assert_eq!(seen, ("common".to_owned(), of_common), "{way} by {field}");
            }
        }
    }
}

#[tokio::test]
async fn the_file_that_try_files_has_found_is_asked_for() {
    let lines = "location ~ ^/app/ { alias %%/; try_files script.php =404;\n\
        fastcgi_param SCRIPT_FILENAME $request_filename; PASS }";
    let (_php, server) = server(lines).await;
    server.write("script.php", "");
    let wanted = format!(" {}", server.path("script.php").display());
    assert_eq!(server.target().get("/app/x").await.text(), wanted);
}
