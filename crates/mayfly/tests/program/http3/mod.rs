//! HTTP/3, with clients that are quinn's and h3's.

mod bodies;
mod bounds;
mod ending;
mod field_tables;
mod handshake;
mod requests;
mod smuggling;
mod waiting;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use testkit::fake_http::Script;
use testkit::http3::{Http3Client, QuicClient};
use testkit::running::RunningServer;
use tokio::sync::Semaphore;

use crate::tls::Certificates;

/// A server that speaks HTTP/3, and the certificates that it shows.
struct Site {
    server: RunningServer,
    certificates: Certificates,
    address: SocketAddr,
}

/// A page of an origin that waits for `gate`.
fn held_page(gate: &Arc<Semaphore>, text: &str) -> Script {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
    Script::new().wait_for(gate).raw(head + text)
}

/// An address without a listener at this moment.
fn free_address() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("an address")
}

/// The server block of `a.test`, with these directives.
fn block(address: SocketAddr, directives: &str) -> String {
    format!(
        "server {{ listen {address} quic; server_name a.test;\n\
         ssl_certificate FILES/a.pem; ssl_certificate_key FILES/a.key;\n{directives}\n}}"
    )
}

/// A server for `a.test` with these directives.
async fn site(directives: &str) -> Site {
    site_with("", "", directives).await
}

/// Like [`site`], with more in the main block and in the http block.
async fn site_with(main: &str, http: &str, directives: &str) -> Site {
    let (certificates, address) = (Certificates::new(), free_address());
    let http = format!("{http}\n{}", block(address, directives));
    let server = certificates.start_with(main, &http).await;
    Site {
        server,
        certificates,
        address,
    }
}

impl Site {
    fn quic(&self) -> QuicClient {
        QuicClient::new(&self.certificates.authority, &["h3"], None)
    }

    async fn client(&self) -> Http3Client {
        self.quic().http3(self.address, "a.test").await
    }

    /// Replaces the configuration, with the same address.
    fn rewrite(&self, http: &str, directives: &str) {
        let http = format!("{http}\n{}", block(self.address, directives));
        self.server.rewrite("", &self.certificates.resolve(&http));
    }

    /// Reloads, and waits until that was done this number of times.
    async fn reload(&self, times: usize) {
        self.server.signal(testkit::process::Signal::HUP);
        let reloads = || self.server.error_log().matches("reloaded").count();
        testkit::wait::until("the reload", || reloads() >= times).await;
    }
}

/// The pseudo-fields of a request, for [`testkit::http3::headers`].
const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a.test"),
    (":path", "/"),
];
