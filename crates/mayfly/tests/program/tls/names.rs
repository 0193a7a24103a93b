//! The certificate that a client gets, and cases in which it gets none.

use rustls::{AlertDescription, SignatureScheme, version};
use testkit::tls_client::{Offer, alert_of};
use testkit::wait::until;

use super::{Certificates, connect, get};

#[tokio::test]
async fn the_name_that_a_client_asks_for_chooses_the_certificate() {
    let certificates = Certificates::new();
    let default = certificates.authority.identity("*.shop.test");
    certificates.put("default", &default);
    let own = certificates.add("a", "a.test");
    let wildcard = certificates.add("w", "*.w.test");
    let server = |rest: &str, stem: &str| {
        format!(
            "server {{ listen unix:%%/http {rest}; ssl_certificate FILES/{stem}.pem;\n\
             ssl_certificate_key FILES/{stem}.key; location / {{ return 200 {stem}; }} }}"
        )
    };
    let http = [
        server("ssl; server_name a.test", "a"),
        server("ssl default_server", "default"),
        server("ssl; server_name *.w.test", "w"),
    ];
    let server = certificates.start(&http.concat()).await;
    let client = certificates.client();
    for (name, expected, page) in [
        ("a.test", &own, "a"),
        ("A.Test", &own, "a"),
        ("x.w.test", &wildcard, "w"),
        ("X.W.TEST", &wildcard, "w"),
        ("other.shop.test", &default, "default"),
    ] {
        let connection = connect(&client, &server, name).await;
        assert!(
            connection.certificate == expected.certificate_der(),
            "{name}"
        );
        assert_eq!(
            get(&client, &server, name, "/").await.text(),
            page,
            "{name}"
        );
    }
}

#[tokio::test]
async fn rsa_or_ecdsa_is_chosen_by_what_the_client_can_verify() {
    let certificates = Certificates::new();
    let rsa = certificates.authority.rsa_identity("a.test");
    certificates.put("rsa", &rsa);
    let ecdsa = certificates.add("ecdsa", "a.test");
    let server = certificates
        .start(
            "ssl_certificate FILES/rsa.pem; ssl_certificate_key FILES/rsa.key;\n\
             ssl_certificate FILES/ecdsa.pem; ssl_certificate_key FILES/ecdsa.key;\n\
             server { listen unix:%%/http ssl; return 200 page; }",
        )
        .await;
    for versions in [[&version::TLS12], [&version::TLS13]] {
        for (schemes, expected) in [
            (&[SignatureScheme::RSA_PSS_SHA256][..], &rsa),
            (&[SignatureScheme::ECDSA_NISTP256_SHA256], &ecdsa),
            (
                &[
                    SignatureScheme::RSA_PSS_SHA256,
                    SignatureScheme::ECDSA_NISTP256_SHA256,
                ],
                &ecdsa,
            ),
        ] {
            let offer = Offer {
                versions: &versions,
                schemes,
                ..Offer::default()
            };
            let connection = connect(&certificates.client_of(&offer), &server, "a.test").await;
            let is_expected = connection.certificate == expected.certificate_der();
            assert!(is_expected, "{versions:?} {schemes:?}");
        }
    }
}

#[tokio::test]
async fn a_name_that_is_not_served_gets_the_alert_unrecognized_name() {
    let certificates = Certificates::new();
    let http = format!(
        "server {{ listen unix:%%/http ssl default_server; ssl_reject_handshake on; }}\n{}",
        super::site("return 200 page;")
    );
    let server = certificates.start(&http).await;
    let client = certificates.client();
    assert_eq!(get(&client, &server, "a.test", "/").await.text(), "page");
    let refused = client.connect(&server.path("http"), "b.test").await;
    let error = refused.err().expect("a refusal");
    assert_eq!(alert_of(&error), Some(AlertDescription::UnrecognisedName));
    let message = "handshake rejected while SSL handshaking, client: unix:, server: unix:";
    until("a line", || server.error_log().contains(message)).await;
    let log = server.error_log();
    assert!(!log.contains("[error]"), "{log}");
}

#[tokio::test]
async fn files_may_be_called_after_the_name_that_a_client_asks_for() {
    let certificates = Certificates::new();
    let own = certificates.add("a.test", "a.test");
    let server = certificates
        .start(
            "server { listen unix:%%/http ssl; ssl_certificate FILES/$ssl_server_name.pem;\n\
             ssl_certificate_key FILES/${ssl_server_name}.key; return 200 $ssl_server_name; }",
        )
        .await;
    let client = certificates.client();
    for name in ["a.test", "A.Test"] {
        let connection = connect(&client, &server, name).await;
        assert!(connection.certificate == own.certificate_der(), "{name}");
    }
    // A client that gives an address asks for no name.
    for name in ["b.test", "127.0.0.1"] {
        let refused = client.connect(&server.path("http"), name).await;
        let error = refused.err().expect("no handshake");
        assert_eq!(
            alert_of(&error),
            Some(AlertDescription::UnrecognisedName),
            "{name}"
        );
    }
    // Files that come later are found.
    let other = certificates.add("b.test", "b.test");
    let connection = connect(&client, &server, "b.test").await;
    assert!(connection.certificate == other.certificate_der());
    // The log reports a certificate that cannot be used.
    certificates.write("c.test.pem", "nothing");
    certificates.write("c.test.key", "nothing");
    assert!(
        client
            .connect(&server.path("http"), "c.test")
            .await
            .is_err()
    );
    until("a line", || {
        let log = server.error_log();
        log.contains("cannot load certificate \"") && log.contains("/c.test.pem\"")
    })
    .await;
    let connection = connect(&client, &server, "a.test").await;
    assert!(connection.certificate == own.certificate_der());
}

#[tokio::test]
async fn a_name_without_files_gets_the_other_certificates_of_the_server() {
    let certificates = Certificates::new();
    let all = certificates.authority.identity("*.shop.test");
    certificates.put("all", &all);
    let own = certificates.add("b.shop.test", "b.shop.test");
    let server = certificates
        .start(
            "server { listen unix:%%/http ssl; return 200 page;\n\
             ssl_certificate FILES/all.pem; ssl_certificate_key FILES/all.key;\n\
             ssl_certificate FILES/$ssl_server_name.pem;\n\
             ssl_certificate_key FILES/$ssl_server_name.key; }",
        )
        .await;
    let client = certificates.client();
    for (name, expected) in [("a.shop.test", &all), ("b.shop.test", &own)] {
        let connection = connect(&client, &server, name).await;
        assert!(
            connection.certificate == expected.certificate_der(),
            "{name}"
        );
        // Sessions are resumed as well.
        assert_eq!(get(&client, &server, name, "/").await.text(), "page");
    }
}

#[tokio::test]
async fn variables_name_the_certificate_of_a_client() {
    let certificates = Certificates::new();
    let one = certificates.add("one", "a.test");
    let two = certificates.add("two", "b.test");
    let three = certificates.authority.identity("c.test");
    let text = |pem: &str| pem.replace('\n', "\\n");
    let (chain, key) = (three.certificate_pem(), three.key_pem());
    let http = format!(
        "map $ssl_server_name $stem {{ b.test two; d.test missing; default one; }}\n\
         map $ssl_server_name $chain {{ c.test \"data:{}\"; default FILES/$stem.pem; }}\n\
         map $ssl_server_name $key {{ c.test \"data:{}\"; default FILES/$stem.key; }}\n\
         server {{ listen unix:%%/http ssl; ssl_certificate $chain; ssl_certificate_key $key; return 200 page; }}",
        text(&chain),
        text(&key)
    );
    let server = certificates.start(&http).await;
    let client = certificates.client();
    for _ in 0..2 {
        for (name, expected) in [("a.test", &one), ("b.test", &two), ("c.test", &three)] {
            let connection = connect(&client, &server, name).await;
            assert!(
                connection.certificate == expected.certificate_der(),
                "{name}"
            );
        }
    }
    let refused = client.connect(&server.path("http"), "d.test").await;
    assert!(refused.is_err());
    until("a line about the file that is missing", || {
        server
            .error_log()
            .contains("missing.pem\": there is no such file")
    })
    .await;
}
