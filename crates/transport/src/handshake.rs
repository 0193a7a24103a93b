//! The TLS handshake of a client's connection. The certificate and the rules are chosen when the
//! client has sent the name it wants (RFC 6066 §3).
//!
//! With `ssl_early_data on`, a client that comes back may send a request along with its first
//! message (RFC 8446 §2.3). Then the handshake is left to go on while the request is served: the
//! session (`tls.rs`) takes the client's last message when it comes.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::server::{Accepted, Acceptor};
use rustls::{CommonState, HandshakeKind, ProtocolVersion, ServerConfig, ServerConnection};
use tls_server::ClientVerdict;

use crate::facts::{ClientOffer, SessionId, TlsFacts};
use crate::stream::ClientStream;
use crate::tls::{self, Session};

/// The only ALPN protocol that an issuer of certificates asks for (RFC 8737 §6.2).
pub const VALIDATION_PROTOCOL: &[u8] = b"acme-tls/1";
/// A fatal alert before there are keys: record of type 21, version 3.3, two bytes
/// (RFC 8446 §5.1, §6.2).
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
const DECODE_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];
/// The offset of the session identifier's length in the first record of a server: behind the heads
/// of record and message, version and random number (RFC 5246 §6.2.1, §7.4, §7.4.1.3).
const SESSION_ID_AT: usize = 5 + 4 + 2 + 32;
/// The bytes of the first record that are kept.
const SERVER_HELLO_BYTES: usize = SESSION_ID_AT + 1 + SessionId::MAX_BYTES;
/// The exporter label from which a session's identifier is derived in TLS 1.3.
pub const SESSION_ID_LABEL: &[u8] = b"EXPORTER-mayfly-session-id";

/// The facts of a ClientHello by which certificate and rules are chosen.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeRequest<'a> {
    pub name: Option<&'a str>,
    /// An issuer of certificates wants to see that the name is served here (RFC 8737).
    pub for_validation: bool,
}

/// The reason why a handshake failed, in nginx's words.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("peer closed connection in SSL handshake")]
    Closed,
    #[error("client timed out (110: Connection timed out)")]
    Timeout,
    /// The name that the client asks for is not served.
    #[error("handshake rejected")]
    Rejected,
    #[error("SSL_do_handshake() failed ({0})")]
    Tls(#[from] rustls::Error),
    #[error("SSL_do_handshake() failed ({0})")]
    Socket(#[from] io::Error),
}

/// Makes the handshake; from then on the stream is encrypted. Data that the client sent along is
/// put into `ahead`, and the handshake may then not be over ([`ClientStream::is_early`]). `choose`
/// returns the rules for the client's request, or `None` if it is not served.
///
/// # Errors
/// The handshake fails, or is rejected.
pub async fn accept(
    stream: &ClientStream,
    ahead: &mut BytesMut,
    choose: impl FnOnce(HandshakeRequest<'_>) -> Option<Arc<ServerConfig>>,
) -> Result<TlsFacts, HandshakeError> {
    let accepted = client_hello(stream).await?;
    let hello = accepted.client_hello();
    let name = hello.server_name().map(str::to_owned);
    let offered = ClientOffer::of(&hello);
    let asked = HandshakeRequest {
        name: name.as_deref(),
        for_validation: hello
            .alpn()
            .is_some_and(|mut protocols| protocols.any(|it| it == VALIDATION_PROTOCOL)),
    };
    let Some(config) = choose(asked) else {
        let _ = stream.try_write(&UNRECOGNIZED_NAME);
        return Err(HandshakeError::Rejected);
    };
    let mut connection = match accepted.into_connection(config) {
        Ok(connection) => connection,
        Err((error, mut alert)) => {
            let _ = stream.write_socket(|socket| alert.write(socket));
            return Err(error.into());
        }
    };
    let mut sent = ServerHello::default();
    poll_fn(|cx| poll_handshake(stream, &mut connection, &mut sent, ahead, cx)).await?;
    let mut facts = facts(&connection, name, offered);
    facts.session_id = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => sent.session_id(),
        _ => {
            let exported = connection.export_keying_material(
                [0; SessionId::MAX_BYTES],
                SESSION_ID_LABEL,
                None,
            );
            // Not before the end of the handshake.
            exported.ok().and_then(|bytes| SessionId::new(&bytes))
        }
    }
    .unwrap_or_default();
    stream.encrypt(Session::new(connection));
    Ok(facts)
}

/// Reads the first message of the client.
async fn client_hello(stream: &ClientStream) -> Result<Accepted, HandshakeError> {
    let mut acceptor = Acceptor::default();
    poll_fn(|cx| {
        loop {
            if ready!(stream.poll_socket(cx, |socket| acceptor.read_tls(socket)))? == 0 {
                return Poll::Ready(Err(HandshakeError::Closed));
            }
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => return Poll::Ready(Ok(accepted)),
                Err((error, mut alert)) => {
                    let sent = stream.write_socket(|socket| alert.write(socket));
                    // rustls has no alert for bytes that are not even a record.
                    if matches!(sent, Ok(0)) {
                        let _ = stream.try_write(&DECODE_ERROR);
                    }
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    })
    .await
}

/// Ready when the handshake is over, or when something came ahead of its end.
fn poll_handshake(
    stream: &ClientStream,
    connection: &mut ServerConnection,
    sent: &mut ServerHello,
    ahead: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<Result<(), HandshakeError>> {
    loop {
        // The error may also be in the bytes of the first message.
        if let Err(error) = connection.process_new_packets() {
            let _ = stream.write_socket(|socket| connection.write_tls(socket));
            return Poll::Ready(Err(error.into()));
        }
        while connection.wants_write() {
            let written = stream.write_socket(|socket| {
                connection.write_tls(&mut RecordingSocket {
                    socket,
                    noted: &mut *sent,
                })
            });
            match written {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(stream.poll_write_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        if take_early_data(connection, ahead) > 0 || !connection.is_handshaking() {
            return Poll::Ready(Ok(()));
        }
        if ready!(stream.poll_socket(cx, |socket| connection.read_tls(socket)))? == 0 {
            return Poll::Ready(Err(HandshakeError::Closed));
        }
    }
}

/// Appends early data (sent before the end of the handshake) to `buffer`, and returns its length.
pub fn take_early_data(connection: &mut ServerConnection, buffer: &mut BytesMut) -> usize {
    let Some(mut early) = connection.early_data() else {
        return 0;
    };
    let mut bytes = Vec::new();
    // Reads from memory; it cannot fail.
    let _ = early.read_to_end(&mut bytes);
    buffer.extend_from_slice(&bytes);
    bytes.len()
}

/// The beginning of a server's first record.
#[derive(Default)]
struct ServerHello(Vec<u8>);

impl ServerHello {
    fn note(&mut self, bytes: &[u8]) {
        let room = SERVER_HELLO_BYTES.saturating_sub(self.0.len());
        let noted = bytes.get(..room.min(bytes.len()));
        self.0.extend_from_slice(noted.unwrap_or_default());
    }

    /// The identifier in it; `None` if the message is not one of TLS 1.2.
    fn session_id(&self) -> Option<SessionId> {
        let (length, rest) = self.0.get(SESSION_ID_AT..)?.split_first()?;
        SessionId::new(rest.get(..usize::from(*length))?)
    }
}

/// A socket that is written to, and where the first bytes are noted.
struct RecordingSocket<'a, 'b> {
    socket: &'a mut tls::Socket<'b>,
    noted: &'a mut ServerHello,
}

impl Write for RecordingSocket<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.socket.write(bytes)?;
        self.noted.note(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.socket.write_vectored(slices)?;
        let mut left = written;
        for slice in slices {
            let taken = left.min(slice.len());
            self.noted.note(slice.get(..taken).unwrap_or_default());
            left -= taken;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Collects the facts of a handshake. The client's certificate is not judged yet.
pub fn facts(
    connection: &CommonState,
    server_name: Option<String>,
    offered: ClientOffer,
) -> TlsFacts {
    TlsFacts {
        protocol: connection.protocol_version(),
        cipher: connection.negotiated_cipher_suite(),
        group: connection
            .negotiated_key_exchange_group()
            .map(|group| group.name()),
        server_name,
        offered,
        session_id: SessionId::default(),
        alpn: connection.alpn_protocol().map(<[u8]>::to_vec),
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        client_certificates: connection
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .map(|certificate| certificate.clone().into_owned())
            .collect(),
        verdict: ClientVerdict::NoCertificate,
    }
}
