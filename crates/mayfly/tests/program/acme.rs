//! `acme_issuer`, `acme_certificate`, and `serve --domain`, with Pebble as the issuer.

mod killed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use testkit::pebble::{Pebble, PebbleOptions};
use testkit::process::free_port;
use testkit::redis::RedisServer;
use testkit::running::RunningServer;
use testkit::serving::FolderServer;
use testkit::started::StartedProcess;
use testkit::wait::until_or;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::program;

/// A server with Pebble beside it.
struct Scene {
    pebble: Arc<Pebble>,
    /// The URL of the issuer's directory, and the authorities that its certificate is verified
    /// with.
    directory: String,
    authority_file: PathBuf,
    /// The name that the certificate is for.
    name: String,
    http_port: u16,
    tls_port: u16,
    state: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Scene {
        let (http_port, tls_port) = (free_port(), free_port());
        let pebble = Pebble::start(PebbleOptions {
            http_port,
            tls_port,
            ..PebbleOptions::default()
        });
        let pebble = Arc::new(pebble.await);
        Scene {
            directory: pebble.directory(),
            authority_file: pebble.authority_file(),
            pebble,
            name: "a.example".to_owned(),
            http_port,
            tls_port,
            state: tempfile::tempdir().unwrap(),
        }
    }

    /// Another machine, which the issuer does not reach.
    fn machine(&self, name: &str) -> Scene {
        Scene {
            directory: self.directory.clone(),
            authority_file: self.authority_file.clone(),
            pebble: self.pebble.clone(),
            name: name.to_owned(),
            http_port: free_port(),
            tls_port: free_port(),
            state: tempfile::tempdir().unwrap(),
        }
    }

    fn state(&self) -> std::path::PathBuf {
        self.state.path().join("issuer")
    }

    /// An http block; `issuer` has more lines for the issuer, `server` for both servers.
    fn http(&self, issuer: &str, server: &str) -> String {
        let name = &self.name;
        format!(
            "acme_issuer pebble {{ uri {}; ssl_trusted_certificate {}; state_path {};
                                   accept_terms_of_service; contact admin@example.org; {issuer} }}
             server {{ listen 127.0.0.1:{}; server_name {name}; {server}
                       return 301 https://$host$request_uri; }}
             server {{ listen 127.0.0.1:{} ssl; listen unix:%%/http; server_name {name}; {server}
                       acme_certificate pebble;
                       ssl_certificate $acme_certificate;
                       ssl_certificate_key $acme_certificate_key;
                       location / {{ return 200 served; }} }}",
            self.directory,
            self.authority_file.display(),
            self.state().display(),
            self.http_port,
            self.tls_port,
        )
    }

    async fn start(&self, issuer: &str, server: &str) -> RunningServer {
        RunningServer::start(program(), "", &self.http(issuer, server)).await
    }

    /// Waits until the log reports this number of issued certificates.
    async fn issued(&self, server: &StartedProcess, count: usize) {
        let is_so = || server.error_log().matches("has been issued").count() >= count;
        until_or(is_so, || {
            format!("{}\n{}", server.error_log(), self.pebble.log())
        })
        .await;
    }

    /// The certificates in the folder, each with its key.
    fn stored(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.state()).into_iter().flatten();
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        let pem = paths.filter(|path| path.extension().is_some_and(|it| it == "pem"));
        pem.filter_map(|path| std::fs::read_to_string(path).ok())
            .collect()
    }

    /// Makes a handshake, trusting only the stored certificate; returns the response to a
    /// request.
    async fn visit(&self) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        for pem in self.stored() {
            for certificate in rustls::pki_types::CertificateDer::pem_slice_iter(pem.as_bytes()) {
                // The chain ends in one that is an authority.
                let _ = roots.add(certificate.unwrap());
            }
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(("127.0.0.1", self.tls_port)).await?;
        let name = ServerName::try_from(self.name.clone()).unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let mut stream = connector.connect(name, stream).await?;
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.name
        );
        stream.write_all(request.as_bytes()).await?;
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response).await;
        Ok(String::from_utf8_lossy(&response).into_owned())
    }

    /// Waits until the server shows a certificate of the issuer's.
    async fn visited(&self, server: &StartedProcess) {
        for _ in 0..1000 {
            if let Ok(response) = self.visit().await {
                assert!(response.contains("served"), "{response}");
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("no trusted certificate: {}", server.error_log());
    }
}

#[tokio::test]
async fn a_certificate_comes_by_http_01_past_redirects_and_refusals() {
    let scene = Scene::new().await;
    let server = scene.start("", "deny all;").await;
    scene.issued(&server, 1).await;
    drop(server);
    // The next start has it from the beginning.
    let server = scene.start("", "").await;
    scene.visited(&server).await;
    assert_eq!(scene.pebble.issued(), 1);
    assert!(!server.error_log().contains("has been issued"));
}

#[tokio::test]
async fn a_certificate_is_served_as_soon_as_it_is_there_without_a_reload() {
    let scene = Scene::new().await;
    let server = scene.start("", "").await;
    // Until then there is one that no client trusts: the handshake fails for no other reason.
    scene.visited(&server).await;
    scene.issued(&server, 1).await;
}

#[tokio::test]
async fn a_certificate_comes_by_tls_alpn_01() {
    let scene = Scene::new().await;
    let server = scene.start("challenge tls-alpn-01;", "").await;
    scene.visited(&server).await;
}

#[tokio::test]
async fn a_reload_neither_asks_again_nor_forgets() {
    let scene = Scene::new().await;
    let state = format!("state_path {};", scene.state().display());
    let in_memory = |server: &str| scene.http("", server).replace(&state, "state_path off;");
    let server = RunningServer::start(program(), "", &in_memory("")).await;
    scene.issued(&server, 1).await;
    server.rewrite("", &in_memory("add_header X-A b;"));
    server.signal(testkit::process::Signal::HUP);
    let is_so = || server.error_log().contains("reloaded");
    until_or(is_so, || server.error_log()).await;
    assert_eq!(scene.pebble.issued(), 1);
    assert!(!Path::new(&scene.state()).exists(), "nothing is written");
}

#[tokio::test]
async fn a_configuration_is_good_before_its_certificates_are_there() {
    let scene = Scene::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.conf");
    let text = format!("events {{}} http {{ {} }}", scene.http("", ""));
    std::fs::write(
        &file,
        text.replace("%%", &folder.path().display().to_string()),
    )
    .unwrap();
    let checked = std::process::Command::new(program())
        .arg("check")
        .arg(&file)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert!(!scene.state().exists(), "nothing is written");
}

#[tokio::test]
async fn serve_with_a_domain_serves_it_over_https_and_redirects_to_that() {
    let scene = Scene::new().await;
    let site = FolderServer::folder();
    std::fs::write(site.path().join("index.html"), "served").unwrap();
    let (tls, http) = (
        format!("127.0.0.1:{}", scene.tls_port),
        format!("127.0.0.1:{}", scene.http_port),
    );
    let directory = scene.pebble.directory();
    let authorities = scene.pebble.authority_file();
    let issuer = directory.strip_prefix("https://").unwrap();
    let issuer = issuer.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    // The folder in which the scene looks for certificates.
    std::os::unix::fs::symlink(scene.state.path().join(issuer), scene.state()).unwrap();
    let arguments = [
        "--domain",
        "a.example",
        "--listen",
        &tls,
        "--listen-http",
        &http,
        "--acme-directory",
        &directory,
        "--acme-ca",
        authorities.to_str().unwrap(),
        "--acme-state",
        scene.state.path().to_str().unwrap(),
    ];
    let server = FolderServer::start(program(), site.path().to_str().unwrap(), &arguments).await;
    scene.visited(&server).await;
    let told = format!("Alt-Svc: h3=\":{}\"; ma=86400\r\n", scene.tls_port);
    assert!(scene.visit().await.unwrap().contains(&told));
    let mut plain = TcpStream::connect(("127.0.0.1", scene.http_port))
        .await
        .unwrap();
    let request = b"GET /x?y HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n";
    plain.write_all(request).await.unwrap();
    let mut response = String::new();
    plain.read_to_string(&mut response).await.unwrap();
    let location = format!("Location: https://a.example:{}/x?y\r\n", scene.tls_port);
    assert!(response.starts_with("HTTP/1.1 301"), "{response}");
    assert!(response.contains(&location), "{response}");
}

#[tokio::test]
async fn one_node_gets_the_certificate_that_all_have_whichever_the_issuer_reaches() {
    let folder = tempfile::tempdir().unwrap();
    let redis = RedisServer::start(folder.path(), true);
    let key = folder.path().join("key");
    std::fs::write(&key, [7; 32]).unwrap();
    let nodes = format!(
        "cache_nodes unix:{} key={};\n",
        redis.socket().display(),
        key.display()
    );
    let start = async |scene: &Scene, issuer: &str| {
        let http = nodes.clone() + &scene.http(issuer, "");
        RunningServer::start(program(), "", &http).await
    };
    for (challenge, name) in [
        ("challenge http;", "one.example"),
        ("challenge tls-alpn;", "two.example"),
    ] {
        let reached = Scene::new().await;
        let node = start(&reached, challenge).await;
        reached.visited(&node).await;
        let holds_lease = || node.error_log().contains("holds a lease");
        until_or(holds_lease, || node.error_log()).await;
        // The issuer's questions for this name come to the other one.
        let first = reached.machine(name);
        let issuing = start(&first, challenge).await;
        first.visited(&issuing).await;
        assert_eq!(reached.pebble.issued(), 2);
        let second = reached.machine(name);
        let given = start(&second, challenge).await;
        second.visited(&given).await;
        assert_eq!(reached.pebble.issued(), 2);
        assert_eq!(first.stored(), second.stored());
        let log = given.error_log();
        assert!(log.contains("has come from another machine"), "{log}");
    }
}
