//! A relay in front of a server of HTTPS on this machine: it sees each request, and can stop at one
//! of them, before the server gets it or before the client gets the response.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::tls::Authority;
use crate::wait::TIMEOUT;

/// A relay that runs until it is dropped.
pub struct TlsRelay {
    port: u16,
    shared: Arc<RelayState>,
    folder: TempDir,
    task: JoinHandle<()>,
}

/// The side on which a request is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The server does not get it.
    Request,
    /// The server has answered it, and the client does not get the response.
    Response,
}

struct RelayState {
    server_port: u16,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    state: Mutex<RelayedRequests>,
    has_stopped: Notify,
}

#[derive(Default)]
struct RelayedRequests {
    /// How many requests have come.
    count: usize,
    /// Method and path of each that the server got.
    passed_on: Vec<String>,
    /// The number of a request, from 0 on.
    stop: Option<(usize, Side)>,
}

impl Drop for TlsRelay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TlsRelay {
    /// A relay to `server_port`, whose certificate for `127.0.0.1` is verified with those of a
    /// file.
    ///
    /// # Panics
    /// When it cannot be started.
    pub async fn start(server_port: u16, trusted: &Path) -> TlsRelay {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::new("the relay's own");
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).expect("a file");
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(trusted).expect("certificates") {
            let added = roots.add(certificate.expect("a certificate"));
            added.expect("a certificate to trust");
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let shared = Arc::new(RelayState {
            server_port,
            acceptor: TlsAcceptor::from(authority.identity("127.0.0.1").server(None)),
            connector: TlsConnector::from(Arc::new(client)),
            state: Mutex::default(),
            has_stopped: Notify::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let relaying = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let relaying = relaying.clone();
                // A client that leaves is its own business.
                tokio::spawn(async move { relaying.relay(stream).await });
            }
        });
        TlsRelay {
            port,
            shared,
            folder,
            task,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate that the relay's own is verified with.
    pub fn authority_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Stops at the request of this number, from 0 on.
    pub fn stop_at(&self, nth: usize, side: Side) {
        self.shared.state().stop = Some((nth, side));
    }

    /// Waits until a request was stopped. It stays so until its client leaves.
    ///
    /// # Panics
    /// When none is.
    pub async fn stopped(&self) {
        let stopped = tokio::time::timeout(TIMEOUT, self.shared.has_stopped.notified()).await;
        stopped.expect("the request at which it stops");
    }

    /// Method and path of each request that the server got.
    pub fn passed_on(&self) -> Vec<String> {
        self.shared.state().passed_on.clone()
    }
}

impl RelayState {
    fn state(&self) -> MutexGuard<'_, RelayedRequests> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Relays the one request of a connection.
    async fn relay(&self, stream: TcpStream) -> io::Result<()> {
        let mut client = self.acceptor.accept(stream).await?;
        let request = read_request(&mut client).await?;
        let line = request.split(|byte| *byte == b'\r').next();
        let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
        let stop = {
            let mut state = self.state();
            let stop = state.stop.filter(|(nth, _)| *nth == state.count);
            state.count += 1;
            if !matches!(stop, Some((_, Side::Request))) {
                state
                    .passed_on
                    .push(line.trim_end_matches(" HTTP/1.1").to_owned());
            }
            stop.map(|(_, side)| side)
        };
        let response = match stop {
            Some(Side::Request) => Vec::new(),
            _ => self.ask(&line, &request).await?,
        };
        if stop.is_some() {
            self.has_stopped.notify_one();
            // Until the client is gone.
            let _ = client.read(&mut [0]).await;
            return Ok(());
        }
        client.write_all(&response).await?;
        client.shutdown().await
    }

    /// The server's response, which ends with the connection.
    async fn ask(&self, line: &str, request: &[u8]) -> io::Result<Vec<u8>> {
        let stream = TcpStream::connect(("127.0.0.1", self.server_port)).await?;
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let mut server = self.connector.connect(name, stream).await?;
        let (first, rest) = request.split_at(line.len());
        let request = [first, b"\r\nConnection: close", rest].concat();
        server.write_all(&request).await?;
        let mut response = Vec::new();
        server.read_to_end(&mut response).await?;
        Ok(response)
    }
}

/// Reads a head, and a body of the length in it.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&request).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    request.append(&mut body);
    Ok(request)
}
