//! Certificates of clients: `ssl_verify_client`.

use rustls::version;
use testkit::running::RunningServer;
use testkit::tls::{Authority, Identity};
use testkit::tls_client::{Offer, TlsClient};

use super::{Certificates, ask, connect, get};

/// A server that answers with its verdict on clients, with these directives.
async fn verifying(certificates: &Certificates, directives: &str) -> RunningServer {
    certificates
        .site(&format!(
            "ssl_client_certificate FILES/ca.pem; {directives}\n\
             location / {{ return 200 \"$ssl_client_verify $ssl_client_s_dn\"; }}"
        ))
        .await
}

fn client(certificates: &Certificates, identity: Option<&Identity>) -> TlsClient {
    certificates.client_of(&Offer {
        identity,
        ..Offer::default()
    })
}

#[tokio::test]
async fn a_missing_or_bad_certificate_gets_a_page_that_says_so() {
    let certificates = Certificates::new();
    let good = certificates.authority.identity("client.test");
    let bad = Authority::new("another").identity("client.test");
    for (mode, identity, status, text) in [
        ("on", Some(&good), 200, "SUCCESS "),
        (
            "on",
            None,
            400,
            "<title>400 No required SSL certificate was sent</title>",
        ),
        (
            "on",
            Some(&bad),
            400,
            "<title>400 The SSL certificate error</title>",
        ),
        ("optional", Some(&good), 200, "SUCCESS "),
        ("optional", None, 200, "NONE "),
        (
            "optional",
            Some(&bad),
            400,
            "<title>400 The SSL certificate error</title>",
        ),
        ("optional_no_ca", Some(&bad), 200, "FAILED:"),
        ("off", Some(&good), 200, "NONE "),
    ] {
        let server = verifying(&certificates, &format!("ssl_verify_client {mode};")).await;
        for versions in [[&version::TLS12], [&version::TLS13]] {
            let client = certificates.client_of(&Offer {
                versions: &versions,
                identity,
                ..Offer::default()
            });
            // The second session is resumed, and the judgement is the same.
            for _ in 0..2 {
                let reply = get(&client, &server, "a.test", "/").await;
                assert_eq!(reply.status, status, "{mode} {versions:?}");
                let page = reply.text();
                assert!(page.contains(text), "{mode} {versions:?}: {page}");
            }
        }
    }
}

#[tokio::test]
async fn error_pages_for_495_and_496_take_the_place_of_400() {
    let certificates = Certificates::new();
    let bad = Authority::new("another").identity("client.test");
    let server = verifying(
        &certificates,
        "ssl_verify_client on; error_page 495 =403 /bad; error_page 496 =401 /none;\n\
         location = /bad { return 200 \"bad $ssl_client_verify\"; } location = /none { return 200 none; }",
    )
    .await;
    let reply = get(&client(&certificates, Some(&bad)), &server, "a.test", "/").await;
    assert!(reply.text().starts_with("bad FAILED:"), "{}", reply.text());
    assert_eq!(reply.status, 403);
    let reply = get(&client(&certificates, None), &server, "a.test", "/").await;
    assert_eq!((reply.status, &*reply.text()), (401, "none"));
    let log = server.error_log();
    for message in [
        "client SSL certificate verify error: FAILED:",
        "client sent no required SSL certificate while reading client request headers",
    ] {
        assert!(log.contains(message), "{message} in {log}");
    }
}

#[tokio::test]
async fn a_host_of_a_server_that_verifies_is_misdirected_on_the_connection_of_another() {
    let certificates = Certificates::new();
    certificates.add("b", "b.test");
    let http = format!(
        "{}\nserver {{ listen unix:%%/http ssl; server_name b.test;\n\
         ssl_certificate FILES/b.pem; ssl_certificate_key FILES/b.key;\n\
         ssl_client_certificate FILES/ca.pem; ssl_verify_client on; return 200 secret; }}\n\
         server {{ listen unix:%%/http ssl; server_name c.test;\n\
         ssl_certificate FILES/b.pem; ssl_certificate_key FILES/b.key; return 200 c; }}",
        super::site("return 200 a;")
    );
    let server = certificates.start(&http).await;
    let identity = certificates.authority.identity("client.test");
    for identity in [None, Some(&identity)] {
        let client = client(&certificates, identity);
        let mut connection = connect(&client, &server, "a.test").await.client;
        assert_eq!(ask(&mut connection, "c.test", "/").await.text(), "c");
        let reply = ask(&mut connection, "b.test", "/").await;
        assert_eq!(reply.status, 421, "{}", reply.text());
    }
    let client = client(&certificates, Some(&identity));
    assert_eq!(get(&client, &server, "b.test", "/").await.text(), "secret");
}

#[tokio::test]
async fn a_session_of_one_server_is_worth_nothing_to_another_that_verifies() {
    let certificates = Certificates::new();
    certificates.add("b", "*.shop.test");
    let server = |name: &str, lines: &str| {
        format!(
            "server {{ listen unix:%%/http ssl; server_name {name};\n\
             ssl_certificate FILES/b.pem; ssl_certificate_key FILES/b.key;\n{lines} return 200 page; }}"
        )
    };
    let verify = "ssl_client_certificate FILES/ca.pem; ssl_verify_client on;";
    let http = [
        "ssl_session_cache shared:a:1m;\n".to_owned(),
        server("open.shop.test", ""),
        server("closed.shop.test", verify),
    ];
    let server = certificates.start(&http.concat()).await;
    let client = certificates.client();
    for _ in 0..2 {
        assert_eq!(
            get(&client, &server, "open.shop.test", "/").await.status,
            200
        );
        assert_eq!(
            get(&client, &server, "closed.shop.test", "/").await.status,
            400
        );
    }
}
