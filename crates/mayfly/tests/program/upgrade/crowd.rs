//! Upgrades under visitors of HTTP/1.1, HTTP/2 and HTTP/3 and under purges, judged by content: does a request fail, or is
//! a page older than a purge that was answered, mixed or torn?
//!
//! ```console
//! $ MAYFLY_UPGRADES=200 MAYFLY_CONNECTIONS=50 cargo test -p mayfly --test program -- upgrade::crowd --nocapture
//! ```

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use control::PurgeRequest;
use testkit::client::{Client, Reply};
use testkit::fake_php::{FakePhp, Script};
use testkit::http2::Http2Client;
use testkit::http3::{Http3Client, QuicClient};
use testkit::process::{Signal, send_signal};

use super::ReplacedServer;
use crate::tls::Certificates;

const PAGES: usize = 20;
/// Two out of three pages are small.
const LINES: [usize; 3] = [1, 2, 600];
/// Purges come with this pause.
const PAUSE: Duration = Duration::from_millis(10);

/// The present version of each page, the purges, and the pages that visitors saw.
#[derive(Default)]
struct Crowd {
    version: [AtomicUsize; PAGES],
    purged: [AtomicUsize; PAGES],
    answers: AtomicUsize,
    hits: AtomicUsize,
    purges: AtomicUsize,
    is_over: AtomicBool,
    /// Processes are killed: requests may fail.
    may_fail: AtomicBool,
}

fn body(page: usize, version: usize) -> String {
    format!("page {page} version {version};").repeat(LINES[page % LINES.len()])
}

/// The version of a whole page.
fn version_of(page: usize, text: &str) -> Option<usize> {
    let first = text.split(';').next()?.rsplit(' ').next()?;
    let version = first.parse().ok()?;
    (text == body(page, version)).then_some(version)
}

impl Crowd {
    async fn php(self: &Arc<Self>) -> FakePhp {
        let crowd = self.clone();
        FakePhp::tcp(move |request| {
            let page: usize = request.param("REQUEST_URI")[1..].parse().unwrap_or(0);
            let head = format!("X-Cache-Tags: page-{page}\r\n");
            Script::page(&head, body(page, crowd.version[page].load(SeqCst)))
        })
        .await
    }

    /// Asks for one page after the other, and returns the faults.
    async fn visit(&self, first: usize, mut connection: Connection) -> Vec<String> {
        let (mut wrong, mut page) = (Vec::new(), first % PAGES);
        while !self.is_over.load(SeqCst) && !connection.waits_in_vain(self) {
            page = (page + 7) % PAGES;
            let at_least = self.purged[page].load(SeqCst);
            let reply = match connection.ask(&format!("/{page}")).await {
                Ok(Some(reply)) => reply,
                Ok(None) => continue,
                Err(_) if self.may_fail.load(SeqCst) => continue,
                Err(error) => {
                    wrong.push(error);
                    continue;
                }
            };
            self.answers.fetch_add(1, SeqCst);
            let is_hit = reply.x_cache() == "HIT";
            self.hits.fetch_add(usize::from(is_hit), SeqCst);
            match version_of(page, &reply.text()) {
                Some(version) if version >= at_least && reply.status == 200 => {}
                version => wrong.push(format!(
                    "{page}: {version:?} after {at_least}: {} {}",
                    reply.status,
                    reply.x_cache()
                )),
            }
        }
        wrong
    }

    /// Changes pages and purges them, by whichever process answers commands.
    async fn change(&self, socket: PathBuf) -> Vec<String> {
        let (mut wrong, mut page) = (Vec::new(), 0);
        while !self.is_over.load(SeqCst) {
            page = (page + 3) % PAGES;
            let version = self.version[page].fetch_add(1, SeqCst) + 1;
            let order = PurgeRequest {
                tags: vec![format!("page-{page}")],
                ..PurgeRequest::default()
            };
            match control::client::purge(&socket, &order).await {
                Ok(_) => {
                    self.purged[page].fetch_max(version, SeqCst);
                    self.purges.fetch_add(1, SeqCst);
                }
                Err(_) if self.may_fail.load(SeqCst) => {}
                Err(error) => wrong.push(format!("purge: {error:?}")),
            }
            tokio::time::sleep(PAUSE).await;
        }
        wrong
    }
}

/// A visitor's connection, which is made again where the server has ended it.
enum Connection {
    Http1(PathBuf, Option<Client>),
    Http2(PathBuf, Option<Http2Client>),
    Http3(Box<QuicClient>, SocketAddr, Option<Box<Http3Client>>),
}

impl Connection {
    /// A client of QUIC does not notice that a process was killed.
    fn waits_in_vain(&self, crowd: &Crowd) -> bool {
        matches!(self, Connection::Http3(..)) && crowd.may_fail.load(SeqCst)
    }

    /// Returns `None` if the server has announced that it takes no further request on this connection.
    async fn ask(&mut self, path: &str) -> Result<Option<Reply>, String> {
        match self {
            Connection::Http1(socket, kept) => {
                let mut client = match kept.take() {
                    Some(client) => client,
                    None => Client::connect(socket).await,
                };
                let request = format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n");
                let sent = client.try_send(request).await;
                let reply = client.receive(false).await;
                let reply = reply.filter(|reply| reply.is_complete);
                let reply =
                    reply.ok_or_else(|| format!("HTTP/1.1: {sent:?} {:?}", client.error()))?;
                if reply.field("connection") != "close" {
                    *kept = Some(client);
                }
                Ok(Some(reply))
            }
            Connection::Http2(socket, kept) => {
                let mut client = match kept.take() {
                    Some(client) => client,
                    None => Http2Client::connect(socket).await,
                };
                let graceful = [Some(h2::Reason::NO_ERROR), Some(h2::Reason::REFUSED_STREAM)];
                match client.try_get(path).await {
                    Ok(reply) => {
                        *kept = Some(client);
                        Ok(Some(reply))
                    }
                    Err(error) if graceful.contains(&error.reason()) => Ok(None),
                    Err(error) => Err(format!("HTTP/2: {error:?}")),
                }
            }
            Connection::Http3(quic, at, kept) => {
                let client = match kept.take() {
                    Some(client) => client,
                    None => Box::new(quic.http3(*at, "site.test").await),
                };
                let error = match client.try_ask("GET", path, &[], None).await {
                    Ok(whole) => {
                        *kept = Some(client);
                        return Ok(Some(whole.reply));
                    }
                    Err(error) => format!("HTTP/3: {error:?}"),
                };
                let graceful = ["H3_NO_ERROR", "H3_REQUEST_REJECTED", "Closing"];
                match graceful.iter().any(|it| error.contains(it)) {
                    true => Ok(None),
                    false => Err(error),
                }
            }
        }
    }
}

fn number(name: &str, otherwise: usize) -> usize {
    let said = std::env::var(name).ok();
    said.and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

fn free_address() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("an address")
}

#[tokio::test]
async fn upgrades_fail_no_request_and_show_nothing_old() {
    let (upgrades, connections) = (
        number("MAYFLY_UPGRADES", 2),
        number("MAYFLY_CONNECTIONS", 2),
    );
    let crowd = Arc::<Crowd>::default();
    let php = crowd.php().await;
    let certificates = Certificates::new();
    certificates.add("site", "site.test");
    let at = free_address();
    let listen = format!(
        "listen unix:%%/http;\n http2 on;\n listen {at} quic;\n\
         ssl_certificate FILES/site.pem; ssl_certificate_key FILES/site.key; keepalive_requests 1000000;\n"
    );
    let http = php.cached_site("fastcgi_cache_valid 200 1h;\n");
    let http = certificates.resolve(&http.replacen("listen unix:%%/http;\n", &listen, 1));
    let mut replaced = ReplacedServer::start("", &http).await;
    let (mut tasks, mut of_http3) = (Vec::new(), Vec::new());
    for first in 0..connections {
        let socket = || replaced.server.path("http");
        let quic = QuicClient::new(&certificates.authority, &["h3"], None);
        for connection in [
            Connection::Http1(socket(), None),
            Connection::Http2(socket(), None),
            Connection::Http3(Box::new(quic), at, None),
        ] {
            let crowd = crowd.clone();
            let tasks = match &connection {
                Connection::Http3(..) => &mut of_http3,
                _ => &mut tasks,
            };
            tasks.push(tokio::spawn(
                async move { crowd.visit(first, connection).await },
            ));
        }
    }
    let (changing, socket) = (crowd.clone(), replaced.server.path("pid.control"));
    tasks.push(tokio::spawn(async move { changing.change(socket).await }));
    for round in 0..upgrades {
        let before = crowd.purges.load(SeqCst);
        testkit::wait::until("purges", || crowd.purges.load(SeqCst) > before + 3).await;
        let old = replaced.pid();
        let output = replaced.upgrade().await;
        assert!(
            output.status.success(),
            "{round}: {output:?} {}",
            replaced.server.error_log()
        );
        replaced.gone(old).await;
    }
    // The old program is stopped in the middle: its pages, were it not killed, would be old.
    crowd.may_fail.store(true, SeqCst);
    let mut wrong = Vec::new();
    for task in of_http3 {
        wrong.extend(task.await.expect("a visitor"));
    }
    let (old, _) = replaced.usr2().await;
    send_signal(old, Signal::STOP);
    replaced.gone(old).await;
    let before = crowd.purges.load(SeqCst);
    testkit::wait::until("purges", || crowd.purges.load(SeqCst) > before + 3).await;
    crowd.is_over.store(true, SeqCst);
    for task in tasks {
        wrong.extend(task.await.expect("a visitor"));
    }
    let (answers, hits, purges) = (&crowd.answers, &crowd.hits, &crowd.purges);
    println!(
        "{upgrades} upgrades, {answers:?} answers, {hits:?} hits, {purges:?} purges, {} wrong",
        wrong.len()
    );
    assert_eq!(
        wrong,
        Vec::<String>::new(),
        "{}",
        replaced.server.error_log()
    );
}
