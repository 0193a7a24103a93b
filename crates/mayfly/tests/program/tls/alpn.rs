//! The protocol that client and server agree on.

use rustls::AlertDescription;
use testkit::tls_client::{Offer, alert_of};

use super::{Certificates, ask, connect};

#[tokio::test]
async fn h2_is_agreed_on_only_where_http2_is_on() {
    let certificates = Certificates::new();
    for (http2, offered, expected) in [
        ("", &["http/1.1"][..], Some("http/1.1")),
        ("", &[], None),
        ("", &["h2", "http/1.1"], Some("http/1.1")),
        ("http2 off;", &["h2", "http/1.1"], Some("http/1.1")),
        ("http2 on;", &["h2", "http/1.1"], Some("h2")),
        ("http2 on;", &["http/1.1", "h2"], Some("h2")),
        ("http2 on;", &["http/1.1"], Some("http/1.1")),
        ("http2 on;", &[], None),
    ] {
        let server = certificates
            .site(&format!("{http2} return 200 $ssl_alpn_protocol!;"))
            .await;
        let client = certificates.client_of(&Offer {
            protocols: offered,
            ..Offer::default()
        });
        let mut connection = connect(&client, &server, "a.test").await;
        assert_eq!(
            connection.protocol.as_deref(),
            expected,
            "{http2} {offered:?}"
        );
        if expected != Some("h2") {
            let page = ask(&mut connection.client, "a.test", "/").await.text();
            assert_eq!(page, format!("{}!", expected.unwrap_or("")));
        }
    }
}

#[tokio::test]
async fn http2_is_the_business_of_the_server_that_the_client_names() {
    let certificates = Certificates::new();
    certificates.add("b", "b.test");
    let http = format!(
        "{}\nserver {{ listen unix:%%/http ssl; server_name b.test; http2 on;\n\
         ssl_certificate FILES/b.pem; ssl_certificate_key FILES/b.key; return 200 b; }}",
        super::site("http2 off; return 200 a;")
    );
    let server = certificates.start(&http).await;
    let client = certificates.client_of(&Offer {
        protocols: &["h2", "http/1.1"],
        ..Offer::default()
    });
    for (name, expected) in [("a.test", "http/1.1"), ("b.test", "h2")] {
        let connection = connect(&client, &server, name).await;
        assert_eq!(connection.protocol.as_deref(), Some(expected), "{name}");
    }
}

#[tokio::test]
async fn a_client_with_no_protocol_of_ours_is_told_so() {
    let certificates = Certificates::new();
    let server = certificates.site("return 200 page;").await;
    let client = certificates.client_of(&Offer {
        protocols: &["imap"],
        ..Offer::default()
    });
    let refused = client.connect(&server.path("http"), "a.test").await;
    let error = refused.err().expect("a refusal");
    assert_eq!(
        alert_of(&error),
        Some(AlertDescription::NoApplicationProtocol)
    );
}
