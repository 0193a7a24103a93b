//! HTTP/3 over upgrades: packets reach the process that has the connection.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use testkit::http3::{Http3Client, QuicClient};
use testkit::process::{Signal, send_signal};
use testkit::wait::TIMEOUT;

use super::ReplacedServer;
use crate::tls::Certificates;

struct Site {
    replaced: ReplacedServer,
    certificates: Certificates,
    address: SocketAddr,
}

impl Site {
    async fn start() -> Site {
        let certificates = Certificates::new();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = socket.local_addr().expect("an address");
        drop(socket);
        let http = format!(
            "server {{ listen unix:%%/http; listen {address} quic; server_name a.test;\n\
             ssl_certificate FILES/a.pem; ssl_certificate_key FILES/a.key; keepalive_requests 1000000;\n\
             return 200 $pid; }}"
        );
        let replaced = ReplacedServer::start("", &certificates.resolve(&http)).await;
        Site {
            replaced,
            certificates,
            address,
        }
    }

    async fn client(&self) -> Http3Client {
        let quic = QuicClient::new(&self.certificates.authority, &["h3"], None);
        quic.http3(self.address, "a.test").await
    }

    /// Starts a new program, and waits until it reads the socket: the old one does so until then. Answers both.
    async fn usr2(&mut self) -> (u32, u32) {
        let (old, new) = self.replaced.usr2().await;
        let reads = async { while pid_seen_by(&self.client().await).await != new {} };
        tokio::time::timeout(TIMEOUT, reads)
            .await
            .expect("the new process reads");
        (old, new)
    }
}

async fn pid_seen_by(client: &Http3Client) -> u32 {
    client.get("/").await.text().parse().expect("a number")
}

#[tokio::test]
async fn connections_of_both_processes_go_on_side_by_side() {
    let mut site = Site::start().await;
    let before = site.client().await;
    let (old, new) = site.usr2().await;
    for _ in 0..20 {
        let after = site.client().await;
        assert_eq!(pid_seen_by(&after).await, new);
        assert_eq!(pid_seen_by(&before).await, old);
    }
    send_signal(old, Signal::QUIT);
    // It gets GOAWAY, and ends when nothing is under way.
    before.ended().await;
    site.replaced.gone(old).await;
    assert_eq!(pid_seen_by(&site.client().await).await, new);
}

#[tokio::test]
async fn the_old_process_reads_again_when_the_new_one_has_ended() {
    let mut site = Site::start().await;
    let before = site.client().await;
    let (old, new) = site.usr2().await;
    send_signal(new, Signal::KILL);
    site.replaced.gone(new).await;
    assert_eq!(pid_seen_by(&before).await, old);
    assert_eq!(pid_seen_by(&site.client().await).await, old);
}

#[tokio::test]
async fn a_client_of_an_old_process_that_was_killed_hears_that_its_connection_is_gone() {
    let mut site = Site::start().await;
    let before = site.client().await;
    let (old, new) = site.usr2().await;
    assert_eq!(pid_seen_by(&before).await, old);
    send_signal(old, Signal::KILL);
    site.replaced.gone(old).await;
    assert_eq!(pid_seen_by(&site.client().await).await, new);
    let error = match before.try_ask("GET", "/", &[], None).await {
        Ok(whole) => panic!("{:?}", whole.reply),
        Err(error) => format!("{error:?}"),
    };
    assert!(error.contains("Reset"), "{error}");
}

#[tokio::test]
async fn upgrades_fail_no_request_of_http3() {
    let mut site = Site::start().await;
    for _ in 0..5 {
        let old = site.replaced.pid();
        let client = site.client().await;
        assert_eq!(pid_seen_by(&client).await, old);
        let asking = tokio::spawn(ask_until_told_to_go(client));
        let output = site.replaced.upgrade().await;
        assert!(output.status.success(), "{output:?}");
        let asked = asking.await.expect("a client");
        assert!(
            asked.as_ref().is_ok_and(|answered| *answered > 0),
            "{asked:?}"
        );
        site.replaced.gone(old).await;
    }
}

/// Returns how many requests were answered before the server announced that no further one is begun.
async fn ask_until_told_to_go(client: Http3Client) -> Result<usize, String> {
    let mut answered = 0;
    loop {
        let error = match client.try_ask("GET", "/", &[], None).await {
            Ok(whole) if whole.reply.status == 200 => {
                answered += 1;
                continue;
            }
            Ok(whole) => return Err(format!("{:?}", whole.reply)),
            Err(error) => format!("{error:?}"),
        };
        let graceful = ["H3_NO_ERROR", "H3_REQUEST_REJECTED", "Closing"];
        return match graceful.iter().any(|it| error.contains(it)) {
            true => Ok(answered),
            false => Err(error),
        };
    }
}
