//! The facts of TLS in logs, FastCGI parameters and cache keys.

use rustls::version;
use testkit::client::Target;
use testkit::fake_php::{FakePhp, Script};
use testkit::tls_client::Offer;
use testkit::wait::until;

use super::{Certificates, connect, get};

#[tokio::test]
async fn variables_say_what_the_handshake_came_to() {
    let certificates = Certificates::new();
    let http = format!(
        "log_format line '$scheme $https $ssl_protocol $ssl_cipher $ssl_curve $ssl_server_name \
         $ssl_alpn_protocol $http2 $server_protocol $request_uri $ssl_client_verify $ssl_session_reused';\n{}",
        super::site("listen unix:%%/plain; access_log %%/access.log line; return 200 page;")
    );
    let server = certificates.start(&http).await;
    let two = certificates.client_of(&Offer {
        versions: &[&version::TLS12],
        protocols: &["http/1.1"],
        ..Offer::default()
    });
    let three = certificates.client_of(&Offer {
        versions: &[&version::TLS13],
        ..Offer::default()
    });
    get(&two, &server, "a.test", "/two").await;
    get(&three, &server, "A.test", "/three").await;
    Target(server.path("plain")).get("/plain").await;
    until("three lines", || {
        server.read("access.log").lines().count() == 3
    })
    .await;
    let log = server.read("access.log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines,
        [
            "https on TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 X25519 a.test http/1.1  HTTP/1.1 /two NONE .",
            "https on TLSv1.3 TLS_AES_256_GCM_SHA384 X25519MLKEM768 a.test -  HTTP/1.1 /three NONE .",
            "http  - - - - -  HTTP/1.1 /plain - -",
        ]
    );
}

#[tokio::test]
async fn php_learns_of_https_and_a_key_with_the_scheme_keeps_both_apart() {
    let certificates = Certificates::new();
    let php = FakePhp::tcp(|request| {
        let told = format!(
            "{} {}",
            request.param("HTTPS"),
            request.param("REQUEST_SCHEME")
        );
        Script::page("Content-Type: text/plain\r\n", told)
    })
    .await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n{}",
        super::site(&format!(
            "listen unix:%%/plain; location / {{ fastcgi_pass {};\n\
             fastcgi_param HTTPS $https if_not_empty; fastcgi_param REQUEST_SCHEME $scheme;\n\
             fastcgi_cache zone; fastcgi_cache_key $scheme$host$request_uri; fastcgi_cache_valid 200 1h; }}",
            php.address()
        ))
    );
    let server = certificates.start(&http).await;
    let plain = Target(server.path("plain"));
    let client = certificates.client();
    for _ in 0..2 {
        let mut connection = connect(&client, &server, "a.test").await.client;
        // The plain client asks for this host.
        let encrypted = super::ask(&mut connection, "site.test", "/").await;
        assert_eq!(encrypted.text(), "on https");
        assert_eq!(plain.get("/").await.text(), " http");
    }
    assert_eq!(php.requests(), 2);
}

#[tokio::test]
async fn what_a_client_offers_is_told_by_names_and_numbers() {
    const SUITES: &str = "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:\
                          ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256:\
                          ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-AES256-GCM-SHA384:\
                          ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305";
    let certificates = Certificates::new();
    let server = certificates
        .site("return 200 \"$ssl_ciphers $ssl_curves $ssl_early_data\";")
        .await;
    // The last one announces that the client renegotiates safely (RFC 5746 §3.3), and is no
    // cipher.
    let two = format!("{SUITES}:0x00ff X25519:prime256v1:secp384r1 ");
    let three = format!("{SUITES} X25519MLKEM768:X25519:prime256v1:secp384r1 ");
    for (version, expected) in [
        (&version::TLS12, two.as_str()),
        (&version::TLS13, three.as_str()),
    ] {
        let client = certificates.client_of(&Offer {
            versions: &[version],
            ..Offer::default()
        });
        // A session that is resumed is no different.
        for _ in 0..2 {
            let reply = get(&client, &server, "a.test", "/").await;
            assert_eq!(reply.text(), expected, "{version:?}");
        }
    }
}

#[tokio::test]
async fn a_session_has_an_identifier() {
    let certificates = Certificates::new();
    let tickets = "ssl_session_tickets on;";
    let cache = "ssl_session_tickets off; ssl_session_cache shared:a:1m;";
    // Is there one in a new session, and in a resumed one? Is it the same?
    for (version, directives, new, resumed, is_same) in [
        (&version::TLS12, cache, 64, 64, true),
        (&version::TLS12, tickets, 0, 64, false),
        (&version::TLS13, cache, 64, 64, false),
        (&version::TLS13, tickets, 64, 64, false),
    ] {
        let server = certificates
            .site(&format!("{directives} return 200 \"$ssl_session_id\";"))
            .await;
        let client = certificates.client_of(&Offer {
            versions: &[version],
            ..Offer::default()
        });
        let case = format!("{version:?} {directives}");
        let mut ids = Vec::new();
        for length in [new, resumed] {
            let mut connection = connect(&client, &server, "a.test").await.client;
            let id = super::ask(&mut connection, "a.test", "/").await.text();
            assert_eq!(id.len(), length, "{case}: {id}");
            assert!(id.bytes().all(|it| it.is_ascii_hexdigit()), "{case}: {id}");
            let again = super::ask(&mut connection, "a.test", "/").await.text();
            assert_eq!(id, again, "{case}");
            ids.push(id);
        }
        assert_eq!(ids[0] == ids[1], is_same, "{case}: {ids:?}");
    }
}
