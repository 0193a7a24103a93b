//! The server is killed at each step of issuance, and started again: it gets its certificate, with
//! the account that it has, and orders no more than it needs.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use testkit::pebble::{Pebble, PebbleOptions};
use testkit::process::{Signal, descendants, free_port, is_alive, send_signal};
use testkit::running::RunningServer;
use testkit::tls_relay::{Side, TlsRelay};
use testkit::wait::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Scene;

/// More requests than an issuance has.
const MAX_STEPS: usize = 20;
/// Servers at the same time.
const AT_ONCE: usize = 8;

/// One issuer for many servers, which it finds by their names.
struct Issuer {
    pebble: Arc<Pebble>,
    http_ports: HashMap<String, u16>,
    turns: Semaphore,
}

impl Issuer {
    async fn start() -> Arc<Issuer> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let pebble = Pebble::start(PebbleOptions {
            http_port: listener.local_addr().expect("an address").port(),
            tls_port: free_port(),
            ..PebbleOptions::default()
        });
        let http_ports = (0..=2 * MAX_STEPS).map(|nth| (format!("a{nth}.example"), free_port()));
        let issuer = Arc::new(Issuer {
            pebble: Arc::new(pebble.await),
            http_ports: http_ports.collect(),
            turns: Semaphore::new(AT_ONCE),
        });
        let validating = issuer.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let validating = validating.clone();
                tokio::spawn(async move { validating.pass_on(stream).await });
            }
        });
        issuer
    }

    /// Passes a connection on to the server of the host that its first head names.
    async fn pass_on(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let host = text.lines().find_map(|line| line.strip_prefix("host:"));
        let host = host.and_then(|host| host.trim().split(':').next());
        let port = host.and_then(|host| self.http_ports.get(host)).copied();
        let mut server = TcpStream::connect(("127.0.0.1", port.unwrap_or(0))).await?;
        server.write_all(&head).await?;
        tokio::io::copy_bidirectional(&mut stream, &mut server).await?;
        Ok(())
    }

    /// A server of its own, and the relay between it and the issuer.
    async fn scene(&self, nth: usize) -> (Scene, TlsRelay) {
        let relay = TlsRelay::start(self.pebble.port(), &self.pebble.authority_file()).await;
        let name = format!("a{nth}.example");
        let scene = Scene {
            pebble: self.pebble.clone(),
            directory: format!("https://127.0.0.1:{}/dir", relay.port()),
            authority_file: relay.authority_file(),
            http_port: self.http_ports[&name],
            name,
            tls_port: free_port(),
            state: tempfile::tempdir().expect("a folder"),
        };
        (scene, relay)
    }
}

/// Ends all processes of a server, which have no time to do anything.
async fn kill(server: RunningServer) {
    let processes = descendants(server.pid());
    for process in &processes {
        send_signal(*process, Signal::KILL);
    }
    until("all have ended", || {
        !processes.iter().any(|process| is_alive(*process))
    })
    .await;
}

/// How many requests are for this.
fn count(requests: &[String], what: &str) -> usize {
    requests.iter().filter(|line| line.contains(what)).count()
}

/// Kills a server at a request, and starts it again.
async fn killed_at(issuer: Arc<Issuer>, scene: usize, step: usize, side: Side) {
    let _turn = issuer.turns.acquire().await.expect("a turn");
    let (scene, relay) = issuer.scene(scene).await;
    relay.stop_at(step, side);
    let server = scene.start("", "").await;
    tokio::select! {
        () = relay.stopped() => {}
        // It has asked fewer times than another whether the issuer is done.
        () = scene.issued(&server, 1) => return,
    }
    kill(server).await;
    let case = format!("killed at step {step}, {side:?}: {:#?}", relay.passed_on());
    let key = std::fs::read(scene.state().join("account.key")).ok();
    let has_order = || {
        let files = std::fs::read_dir(scene.state()).expect("the folder");
        let names = files.map(|file| file.expect("a file").file_name());
        let mut names = names.map(|name| name.to_string_lossy().into_owned());
        names.any(|name| name.ends_with(".order"))
    };
    let orders = if has_order() { 1 } else { 2 };

    let server = scene.start("", "").await;
    scene.issued(&server, 1).await;
    scene.visited(&server).await;
    let requests = relay.passed_on();
    let placed = count(&requests, "/order-plz");
    assert!((1..=orders).contains(&placed), "{case}: {requests:#?}");
    assert!(
        count(&requests, "/sign-me-up") <= 2,
        "{case}: {requests:#?}"
    );
    let path = scene.state();
    if let Some(key) = key {
        let now = std::fs::read(path.join("account.key")).expect("a key");
        assert_eq!(now, key, "{case}: another account");
    }
    for file in std::fs::read_dir(&path).expect("the folder") {
        let file = file.expect("a file");
        let name = file.file_name().to_string_lossy().into_owned();
        let is_known = ["account.key", "account.url"].contains(&&*name) || name.ends_with(".pem");
        assert!(is_known, "{case}: {name} is left");
        let mode = file.metadata().expect("a mode").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{case}: {name}");
    }
    assert_eq!(scene.stored().len(), 1, "{case}");
    assert!(!server.error_log().contains("[error]"), "{case}");
}

#[tokio::test]
async fn whenever_it_is_killed_it_gets_its_certificate_after_the_next_start() {
    let issuer = Issuer::start().await;
    // Finds the steps of an issuance.
    let (scene, relay) = issuer.scene(0).await;
    let server = scene.start("", "").await;
    scene.issued(&server, 1).await;
    let steps = relay.passed_on();
    drop(server);
    for what in ["/sign-me-up", "/order-plz", "/finalize-order/", "/certZ/"] {
        assert_eq!(count(&steps, what), 1, "{what}: {steps:#?}");
    }
    assert!(steps.len() <= MAX_STEPS, "{steps:#?}");
    let mut killed = JoinSet::new();
    for step in 0..steps.len() {
        for (side, nth) in [(Side::Request, 1), (Side::Response, 2)] {
            killed.spawn(killed_at(issuer.clone(), 2 * step + nth, step, side));
        }
    }
    while let Some(ended) = killed.join_next().await {
        ended.expect("what is promised");
    }
}
