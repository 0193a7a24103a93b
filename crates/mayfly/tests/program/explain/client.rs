//! `--from`: as which client a request is explained.

use control::explain::{LimitVerdict, Outcome, PlanKind};
use control::{ExplainRequest, Explanation};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use super::{explain, get, get_with};
use crate::start;

async fn site(http: &str, directives: &str) -> (FakePhp, RunningServer) {
    let php = FakePhp::tcp(|_| Script::page("X-Accel-Expires: 3600\r\n", "page")).await;
    let configuration = php.cached_site(directives);
    let server = start(&format!("{http}\n{configuration}")).await;
    (php, server)
}

async fn from(server: &RunningServer, client: &str, request: ExplainRequest) -> Explanation {
    let from = Some(client.parse().expect("an address"));
    explain(server, &ExplainRequest { from, ..request }).await
}

#[tokio::test]
async fn what_depends_on_the_clients_address_is_told_for_the_one_that_is_given() {
    let http = "geo $office { default 0; 10.0.0.0/8 1; }";
    let directives = "allow 10.0.0.0/8; allow 192.0.2.0/24; deny all;\n\
        fastcgi_cache_bypass $office;";
    let (_php, server) = site(http, directives).await;
    let told = from(&server, "10.1.2.3", get("/")).await;
    assert_eq!(told.outcome, Outcome::Bypass);
    assert_eq!(told.reason.expect("a reason").word, "bypass");
    let told = from(&server, "192.0.2.1", get("/")).await;
    assert_eq!(
        (told.outcome, told.plan.kind),
        (Outcome::Miss, PlanKind::Fastcgi)
    );
    assert_eq!(told.client, "192.0.2.1".parse().ok());
    for client in ["127.0.0.1", "2001:db8::1"] {
        let told = from(&server, client, get("/")).await;
        assert_eq!(
            (told.plan.kind, told.plan.status),
            (PlanKind::Answer, Some(403)),
            "{client}"
        );
    }
    // Without an address the request has no rights, and no client is shown.
    let told = explain(&server, &get("/")).await;
    assert_eq!((told.plan.status, told.client), (Some(403), None));
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_client_is_whom_the_proxy_names() {
    let directives = "set_real_ip_from 10.0.0.9; real_ip_header X-Forwarded-For;\n\
        allow 192.0.2.0/24; deny all;";
    let (_php, server) = site("", directives).await;
    let fields = "X-Forwarded-For: 192.0.2.7";
    let told = from(&server, "10.0.0.9", get_with("/", fields)).await;
    assert_eq!(
        (told.client, told.plan.kind),
        ("192.0.2.7".parse().ok(), PlanKind::Fastcgi)
    );
    // Other clients may send any fields.
    let told = from(&server, "10.0.0.8", get_with("/", fields)).await;
    assert_eq!(
        (told.client, told.plan.status),
        ("10.0.0.8".parse().ok(), Some(403))
    );
}

#[tokio::test]
async fn the_right_to_purge_is_the_clients() {
    let (_php, server) = site("", "fastcgi_cache_purge PURGE from 10.0.0.0/8;").await;
    let purge = || ExplainRequest {
        method: Some("PURGE".to_owned()),
        ..get("/")
    };
    let told = from(&server, "10.0.0.1", purge()).await;
    assert_eq!(told.outcome, Outcome::Purge);
    let told = from(&server, "192.0.2.1", purge()).await;
    assert_ne!(told.outcome, Outcome::Purge);
}

#[tokio::test]
async fn limits_say_what_they_would_say_now_and_count_nothing() {
    let http = "limit_req_zone $http_x_visitor zone=rate:1m rate=1r/m;\n\
        limit_req_zone $remote_addr zone=address:1m rate=1r/m;";
    let (php, server) = site(http, "limit_req zone=rate; limit_req zone=address burst=5;").await;
    let visitor = |name: &str| get_with("/", &format!("X-Visitor: {name}"));
    let says = async |client: &str, name: &str| {
        let told = from(&server, client, visitor(name)).await;
        let limits = told.limits.into_iter();
        limits
            .map(|it| (it.directive + " " + &it.zone, it.says))
            .collect::<Vec<_>>()
    };
    let pass = [
        ("limit_req rate".to_owned(), LimitVerdict::Pass),
        ("limit_req address".to_owned(), LimitVerdict::Pass),
    ];
    for _ in 0..3 {
        assert_eq!(says("192.0.2.1", "a").await, pass);
    }
    let target = server.target();
    assert_eq!(target.get_with("/", "X-Visitor: a\r\n").await.status, 200);
    // The test's own address is that of a unix socket.
    let after = says("192.0.2.1", "a").await;
    assert_eq!(after[0].1, LimitVerdict::Refuse { status: 503 });
    assert_eq!(target.get_with("/", "X-Visitor: a\r\n").await.status, 503);
    assert_eq!(says("192.0.2.1", "b").await, pass);
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn the_command_says_which_server_answers_for_a_url_of_another() {
    let php = FakePhp::tcp(|_| Script::page("X-Accel-Expires: 3600\r\n", "page")).await;
    let http = php.cached_site("").replace("server_name site.test;", "");
    let server = start(&http).await;
    let explain = |arguments: &[&str]| {
        let mut command = std::process::Command::new(crate::program());
        command
            .arg("explain")
            .args(arguments)
            .env("RUNTIME_DIRECTORY", server.path(""))
            .output()
            .expect("the program")
    };
    let socket = server.path("pid.control").display().to_string();
    let url = "http://elsewhere.test:9/";
    let output = explain(&[url]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for words in [url, &socket, &format!("process {}", server.pid())] {
        assert!(said.contains(words), "{said}");
    }
    let named = explain(&["--socket", &socket, url]);
    assert!(
        named.status.success() && named.stderr.is_empty(),
        "{named:?}"
    );
}
