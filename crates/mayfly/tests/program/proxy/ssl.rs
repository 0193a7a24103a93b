//! `https://` upstreams as a client sees them: whom the server trusts, by what name
//! it asks, with what certificate, and over which connections.

use testkit::client::Reply;
use testkit::fake_http::{FakeHttp, Script};
use testkit::running::RunningServer;
use testkit::tls::Authority;

use crate::start;

/// The certificates of a test, as files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a folder"))
    }

    fn with(self, name: &str, pem: &str) -> Files {
        std::fs::write(self.0.path().join(name), pem).expect("a file");
        self
    }
}

/// A server with these directives; `UP` stands for the upstream's address, `FILES`
/// for the folder of certificates.
async fn proxy(upstream: &FakeHttp, files: &Files, directives: &str) -> RunningServer {
    let directives = directives
        .replace("UP", &upstream.address())
        .replace("FILES", &files.0.path().display().to_string());
    let http = format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         upstream app.test {{ server {}; }}\n\
         server {{\n listen unix:%%/http;\n server_name site.test;\n{directives}\n}}",
        upstream.address()
    );
    start(&http).await
}

/// An upstream with a certificate for `app.test` that answers with the facts of its connection.
async fn telling(signed_by: &Authority, clients: Option<&Authority>) -> FakeHttp {
    let config = signed_by.identity("app.test").server(clients);
    FakeHttp::start_encrypted(config, |request| {
        let tls = request.tls.as_ref().expect("an encrypted connection");
        let name = tls.name.as_deref().unwrap_or("none");
        let certificate = tls.has_certificate;
        let connection = request.connection;
        Script::page(
            "Cache-Control: max-age=60\r\n",
            format!("name={name} certificate={certificate} connection={connection}"),
        )
    })
    .await
}

/// Returns the upstream's answer on its n-th connection.
fn told(name: &str, certificate: bool, connection: usize) -> (u16, String) {
    let text = format!("name={name} certificate={certificate} connection={connection}");
    (200, text)
}

fn seen(reply: &Reply) -> (u16, String) {
    (reply.status, reply.text())
}

#[tokio::test]
async fn an_upstream_is_trusted_as_far_as_the_directives_say() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let files = Files::new()
        .with("ours.pem", &ours.pem())
        .with("theirs.pem", &theirs.pem());
    let upstream = telling(&ours, None).await;
    let server = proxy(
        &upstream,
        &files,
        "proxy_ssl_verify on; proxy_ssl_trusted_certificate FILES/ours.pem;\n\
         location /good/ { proxy_pass https://app.test; proxy_cache zone; }\n\
         location /named/ { proxy_pass https://UP; proxy_ssl_name app.test; }\n\
         location /off/ { proxy_pass https://UP; proxy_ssl_verify off; proxy_ssl_name other.test; }\n\
         location /mismatch/ { proxy_pass https://UP; proxy_ssl_name other.test; proxy_cache zone; }\n\
         location /address/ { proxy_pass https://UP; }\n\
         location /untrusted/ { proxy_pass https://app.test; proxy_ssl_trusted_certificate FILES/theirs.pem; }",
    )
    .await;
    for path in ["/good/", "/named/", "/off/"] {
        let reply = server.target().get(path).await;
        assert_eq!(reply.status, 200, "{path}");
    }
    let requests = upstream.requests();
    for (path, words) in [
        (
            "/mismatch/",
            "upstream SSL certificate does not match \"other.test\" while SSL handshaking to upstream",
        ),
        (
            "/address/",
            "upstream SSL certificate does not match \"127.0.0.1\" while SSL handshaking to upstream",
        ),
        (
            "/untrusted/",
            "upstream SSL certificate verify error: (20:unable to get local issuer certificate) while SSL handshaking to upstream",
        ),
    ] {
        // A refusal lasts no longer than its request; so the next request is refused again.
        for _ in 0..2 {
            assert_eq!(server.target().get(path).await.status, 502, "{path}");
        }
        let log = server.error_log();
        assert!(log.contains(words), "{path}: {log}");
        assert!(log.contains("upstream: \"https://"), "{path}: {log}");
    }
    assert_eq!(upstream.requests(), requests, "nothing was asked of them");
}

#[tokio::test]
async fn the_name_is_sent_where_that_is_asked_for() {
    let ours = Authority::new("ours");
    let upstream = telling(&ours, None).await;
    let server = proxy(
        &upstream,
        &Files::new(),
        "proxy_ssl_server_name on; proxy_set_header Connection close;\n\
         location /group/ { proxy_pass https://app.test; }\n\
         location /own/ { proxy_pass https://UP; proxy_ssl_name own.test; }\n\
         location /variable/ { proxy_pass https://UP; proxy_ssl_name $arg_name.test; }\n\
         location /address/ { proxy_pass https://UP; }\n\
         location /off/ { proxy_pass https://app.test; proxy_ssl_server_name off; }",
    )
    .await;
    for (number, (path, name)) in [
        ("/group/", "app.test"),
        ("/own/", "own.test"),
        ("/variable/?name=my", "my.test"),
        ("/address/", "none"),
        ("/off/", "none"),
    ]
    .into_iter()
    .enumerate()
    {
        let reply = server.target().get(path).await;
        assert_eq!(seen(&reply), told(name, false, number + 1), "{path}");
    }
}

/// Certificates of a client with their keys: `known` of the authority that the upstream knows, `unknown` of another.
fn identities_of(known: &Authority, unknown: &Authority) -> Files {
    let [known, unknown] = [known, unknown].map(|it| it.identity("client.test"));
    Files::new()
        .with("known.pem", &known.certificate_pem())
        .with("known.key", &known.key_pem())
        .with("unknown.pem", &unknown.certificate_pem())
        .with("unknown.key", &unknown.key_pem())
}

#[tokio::test]
async fn our_certificate_lets_us_in() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let files = identities_of(&ours, &theirs);
    let upstream = telling(&ours, Some(&ours)).await;
    let server = proxy(
        &upstream,
        &files,
        "location /none/ { proxy_pass https://UP; }\n\
         location /unknown/ { proxy_pass https://UP; proxy_ssl_certificate FILES/unknown.pem; proxy_ssl_certificate_key FILES/unknown.key; }\n\
         location /known/ { proxy_pass https://app.test; proxy_ssl_certificate FILES/known.pem; proxy_ssl_certificate_key FILES/known.key; }",
    )
    .await;
    for path in ["/none/", "/unknown/"] {
        assert_eq!(server.target().get(path).await.status, 502, "{path}");
    }
    assert_eq!(upstream.requests(), 0);
    assert!(server.error_log().contains("[error]"));
    let reply = server.target().get("/known/").await;
    assert_eq!(seen(&reply), told("none", true, 3));
}

#[tokio::test]
async fn the_certificate_is_that_of_the_request_where_its_name_has_variables() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let files = identities_of(&ours, &theirs);
    let upstream = telling(&ours, Some(&ours)).await;
    let server = proxy(
        &upstream,
        &files,
        "proxy_ssl_certificate FILES/$arg_c.pem; proxy_ssl_certificate_key FILES/$arg_c.key;\n\
         location / { proxy_pass https://app.test; }\n\
         location /kept/ { proxy_pass https://app.test; proxy_ssl_certificate_cache max=2 valid=1h inactive=1h; }",
    )
    .await;
    let status = async |path: &str| server.target().get(path).await.status;
    assert_eq!(status("/?c=known").await, 200);
    assert_eq!(
        status("/?c=unknown").await,
        502,
        "no connection is kept for another"
    );
    assert_eq!(status("/?c=missing").await, 500);
    assert_eq!(status("/?c=../FILES/known").await, 500);
    assert_eq!(status("/kept/?c=known").await, 200);
    std::fs::write(files.0.path().join("known.key"), "nonsense").expect("a file");
    assert_eq!(status("/?c=known").await, 500);
    assert_eq!(status("/kept/?c=known").await, 200);
    // Two files are kept.
    assert_eq!(status("/kept/?c=unknown").await, 502);
    assert_eq!(status("/kept/?c=known").await, 500);
}

#[tokio::test]
async fn encrypted_connections_are_kept_for_requests_of_the_same_kind() {
    let ours = Authority::new("ours");
    let files = Files::new().with("ours.pem", &ours.pem());
    let upstream = telling(&ours, None).await;
    let server = proxy(
        &upstream,
        &files,
        "location / { proxy_pass https://app.test; }\n\
         location /mixed/ { proxy_pass https://UP; }\n\
         location /mixed/verified/ { proxy_pass https://UP; proxy_ssl_name app.test;\n\
           proxy_ssl_verify on; proxy_ssl_trusted_certificate FILES/ours.pem; }",
    )
    .await;
    for _ in 0..3 {
        assert_eq!(
            seen(&server.target().get("/").await),
            told("none", false, 1)
        );
    }
    // A connection that was made without a look at the certificate serves no request that wants
    // one.
    for (number, path) in ["/mixed/", "/mixed/verified/", "/mixed/"]
        .iter()
        .enumerate()
    {
        let reply = server.target().get(path).await;
        assert_eq!(seen(&reply), told("none", false, number + 2), "{path}");
    }
}

/// Without the close_notify of TLS anybody on the way could have cut it off.
#[tokio::test]
async fn a_body_that_ends_without_close_notify_does_not_look_whole() {
    let ours = Authority::new("ours");
    let config = ours.identity("app.test").server(None);
    let upstream = FakeHttp::start_encrypted(config, |request| {
        let script = Script::new().raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\npage");
        match request.target.as_str() {
            "/cut" => script.cut(),
            _ => script.close(),
        }
    })
    .await;
    let server = proxy(
        &upstream,
        &Files::new(),
        "location / { proxy_pass https://UP; proxy_cache zone; }",
    )
    .await;
    for round in 1..=2 {
        let reply = server.target().get("/cut").await;
        assert!(reply.status == 502 || !reply.is_complete, "{reply:?}");
        assert_eq!(upstream.requests(), round, "stored");
    }
    for _ in 0..2 {
        let reply = server.target().get("/whole").await;
        assert_eq!(
            (seen(&reply), reply.is_complete),
            ((200, "page".into()), true)
        );
    }
    assert_eq!(upstream.requests(), 3);
}

/// It counts as time for connecting.
#[tokio::test]
async fn a_handshake_that_takes_too_long_is_given_up() {
    // It takes the handshake for the beginning of a request.
    let silent = FakeHttp::start(|_| Script::new()).await;
    let server = proxy(
        &silent,
        &Files::new(),
        "location / { proxy_pass https://UP; proxy_connect_timeout 50ms; }",
    )
    .await;
    assert_eq!(server.target().get("/").await.status, 504);
    assert!(server.error_log().contains("upstream timed out"));
}
