//! `listen ... ssl`: TLS as clients see it, and HTTP/1.1 over it.

mod alpn;
mod clients;
mod content;
mod early_data;
mod files;
mod handshake;
mod lingering;
mod names;
mod plain_http;
mod proxy_protocol;
mod reload;
mod resumption;
mod variables;

use tempfile::TempDir;
use testkit::client::{Client, Reply};
use testkit::running::RunningServer;
use testkit::tls::{Authority, Identity};
use testkit::tls_client::{Offer, TlsClient, TlsConnection};

use crate::program;

/// Certificates as files, signed by an authority that clients trust.
pub struct Certificates {
    pub authority: Authority,
    folder: TempDir,
}

impl Certificates {
    /// With `a.pem` and `a.key`, for `a.test`.
    pub fn new() -> Certificates {
        let certificates = Certificates {
            authority: Authority::new("authority"),
            folder: tempfile::tempdir().expect("a folder"),
        };
        certificates.write("ca.pem", &certificates.authority.pem());
        certificates.add("a", "a.test");
        certificates
    }

    pub fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).expect("a file");
    }

    /// Writes `STEM.pem` and `STEM.key`, for a host of this name.
    pub fn add(&self, stem: &str, name: &str) -> Identity {
        let identity = self.authority.identity(name);
        self.put(stem, &identity);
        identity
    }

    pub fn put(&self, stem: &str, identity: &Identity) {
        self.write(&format!("{stem}.pem"), &identity.certificate_pem());
        self.write(&format!("{stem}.key"), &identity.key_pem());
    }

    /// Puts the folder's name for `FILES`.
    pub fn resolve(&self, text: &str) -> String {
        text.replace("FILES", &self.folder.path().display().to_string())
    }

    /// A server with this in its http block; `FILES` stands for the folder of certificates.
    pub async fn start(&self, http: &str) -> RunningServer {
        self.start_with("", http).await
    }

    /// Like [`Self::start`], with `main` in the main block.
    pub async fn start_with(&self, main: &str, http: &str) -> RunningServer {
        RunningServer::start(program(), main, &self.resolve(http)).await
    }

    /// A server for `a.test` with these directives.
    async fn site(&self, directives: &str) -> RunningServer {
        self.start(&site(directives)).await
    }

    fn client(&self) -> TlsClient {
        self.client_of(&Offer::default())
    }

    fn client_of(&self, offer: &Offer<'_>) -> TlsClient {
        TlsClient::new(&self.authority, offer)
    }
}

/// The http block of [`Certificates::site`].
fn site(directives: &str) -> String {
    format!(
        "server {{ listen unix:%%/http ssl; server_name a.test;\n\
         ssl_certificate FILES/a.pem; ssl_certificate_key FILES/a.key;\n{directives}\n}}"
    )
}

/// Connects and asks for `name`; the handshake succeeds.
async fn connect(client: &TlsClient, server: &RunningServer, name: &str) -> TlsConnection {
    let connected = client.connect(&server.path("http"), name).await;
    connected.expect("a handshake")
}

/// A request without a body, on a connection that stays open.
async fn ask(client: &mut Client, host: &str, path: &str) -> Reply {
    client
        .send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        .await;
    client.receive(false).await.expect("a response")
}

/// One request on a connection of its own, for the name that the connection is for.
async fn get(client: &TlsClient, server: &RunningServer, name: &str, path: &str) -> Reply {
    let mut connection = connect(client, server, name).await;
    ask(&mut connection.client, name, path).await
}
