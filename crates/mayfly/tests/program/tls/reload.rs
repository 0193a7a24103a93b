//! Certificates that are replaced on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use testkit::process::{Signal, descendants, memory_bytes};
use testkit::running::RunningServer;
use testkit::tls_client::TlsClient;
use testkit::wait::until;

use super::{Certificates, ask, connect, get};

/// A longer run: `MAYFLY_RELOADS=200 cargo test -p mayfly --test program tls::reload`.
fn reloads_wanted() -> usize {
    std::env::var("MAYFLY_RELOADS").map_or(50, |text| text.parse().expect("a number"))
}

/// The first reloads, whose growth is not counted.
const WARM_UP: usize = 10;
const MAX_GROWTH_BYTES: u64 = 8 << 20;

fn memory(server: &RunningServer) -> u64 {
    let children = descendants(server.pid());
    let pids = children.into_iter().chain([server.pid()]);
    pids.map(|pid| memory_bytes(pid, "VmRSS")).sum()
}

fn reloads(server: &RunningServer) -> usize {
    server.error_log().matches("reloaded").count()
}

/// Asks until the test ends it; on one connection for as long as that lasts, or on a new one
/// for each request.
async fn load(
    client: TlsClient,
    socket: std::path::PathBuf,
    keeps: bool,
    stop: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
) {
    while !stop.load(Ordering::Relaxed) {
        let connected = client.connect(&socket, "a.test").await;
        let mut connection = connected.expect("a handshake").client;
        loop {
            let request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
            // A server may close a connection that is idle. The next one must be good.
            let sent = connection.try_send(request).await;
            let reply = match sent {
                Ok(()) => connection.receive(false).await,
                Err(_) => None,
            };
            let Some(reply) = reply else {
                assert!(keeps, "a new connection without a response");
                break;
            };
            assert_eq!((reply.status, &*reply.text()), (200, "page"));
            served.fetch_add(1, Ordering::Relaxed);
            if !keeps || stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_certificate_is_replaced_again_and_again_under_load() {
    let certificates = Certificates::new();
    let server = certificates.site("return 200 page;").await;
    let client = certificates.client();
    let stop = Arc::new(AtomicBool::new(false));
    let served: [Arc<AtomicUsize>; 2] = Default::default();
    let loads: Vec<_> = (0..4)
        .map(|number| {
            let keeps = number % 2 == 0;
            let client = match number {
                0 | 1 => client.forgetful(),
                _ => client.clone(),
            };
            let (stop, served) = (stop.clone(), served[number % 2].clone());
            tokio::spawn(load(client, server.path("http"), keeps, stop, served))
        })
        .collect();
    let fresh = client.forgetful();
    let mut memory_before = 0;
    for number in 1..=reloads_wanted() {
        let replaced = certificates.add("a", "a.test");
        server.signal(Signal::HUP);
        until("the reload", || reloads(&server) == number).await;
        let connection = connect(&fresh, &server, "a.test").await;
        let is_new = connection.certificate == replaced.certificate_der();
        assert!(is_new, "the new certificate after reload {number}");
        if number == WARM_UP {
            memory_before = memory(&server);
        }
    }
    let grown = memory(&server).saturating_sub(memory_before);
    eprintln!("{} KB grown from {} KB", grown >> 10, memory_before >> 10);
    assert!(grown < MAX_GROWTH_BYTES, "{grown} bytes");
    stop.store(true, Ordering::Relaxed);
    for load in loads {
        load.await.expect("no failed request");
    }
    for served in served {
        assert!(served.load(Ordering::Relaxed) > reloads_wanted());
    }
}

#[tokio::test]
async fn a_reload_with_a_broken_certificate_changes_nothing_and_names_the_file() {
    let certificates = Certificates::new();
    let server = certificates.site("return 200 page;").await;
    let client = certificates.client();
    let other = certificates.authority.identity("a.test");
    let good = certificates.authority.identity("a.test");
    for (file, text, message) in [
        (
            "a.pem",
            "nothing",
            "cannot load certificate \"FILES/a.pem\"",
        ),
        ("a.key", "", "cannot load certificate key \"FILES/a.key\""),
        (
            "a.key",
            &*other.key_pem(),
            "SSL_CTX_use_PrivateKey(\"FILES/a.key\") failed",
        ),
    ] {
        certificates.put("a", &good);
        certificates.write(file, text);
        server.signal(Signal::HUP);
        let message = certificates.resolve(message);
        until(&message, || server.error_log().contains(&message)).await;
        let reply = get(&client.forgetful(), &server, "a.test", "/").await;
        assert_eq!(reply.text(), "page");
    }
    assert_eq!(reloads(&server), 0);
    certificates.put("a", &good);
    server.signal(Signal::HUP);
    until("the reload", || reloads(&server) == 1).await;
    let connection = connect(&client.forgetful(), &server, "a.test").await;
    assert!(connection.certificate == good.certificate_der());
}

#[tokio::test]
async fn a_connection_that_is_open_goes_on_with_the_certificate_it_began_with() {
    let certificates = Certificates::new();
    let server = certificates
        .site("keepalive_timeout 1h; return 200 page;")
        .await;
    let before = connect(&certificates.client(), &server, "a.test").await;
    let mut client = before.client;
    // Between its requests the configuration changes.
    assert_eq!(ask(&mut client, "a.test", "/").await.text(), "page");
    certificates.add("a", "a.test");
    server.signal(Signal::HUP);
    until("the reload", || reloads(&server) == 1).await;
    client
        .send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        .await;
    let reply = client.receive(false).await.expect("a response");
    assert_eq!(reply.text(), "page");
    assert_eq!(client.receive_all().await, b"");
    assert_eq!(client.error(), None);
}
