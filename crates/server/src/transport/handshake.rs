//! The TLS handshake of a client's connection. Which certificate and which rules hold is asked
//! once the client has said which name it wants (RFC 6066 §3).

use std::future::poll_fn;
use std::io::{self, Read};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::server::{Accepted, Acceptor};
use rustls::{CommonState, HandshakeKind, ServerConfig, ServerConnection};
use tls_server::ClientVerdict;

use crate::live::acme_answers::TLS_PROTOCOL;
use crate::transport::facts::TlsFacts;
use crate::transport::stream::ClientStream;
use crate::transport::tls::Session;

/// A fatal alert before there are keys: record of type 21, version 3.3, two bytes
/// (RFC 8446 §5.1, §6.2).
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
const DECODE_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub name: Option<&'a str>,
    /// An issuer of certificates wants to see that the name is served here (RFC 8737).
    pub for_validation: bool,
}

/// Makes the handshake; from then on the stream is encrypted. What the client sent along is put
/// into `ahead`. `choose` gives the rules for what the client asked for, or `None` where that is
/// not served.
///
/// # Errors
/// What happened, for the log.
pub async fn accept(
    stream: &ClientStream,
    ahead: &mut BytesMut,
    choose: impl FnOnce(Asked<'_>) -> Option<Arc<ServerConfig>>,
) -> Result<TlsFacts, String> {
    let accepted = client_hello(stream).await?;
    let hello = accepted.client_hello();
    let name = hello.server_name().map(str::to_owned);
    let asked = Asked {
        name: name.as_deref(),
        for_validation: hello
            .alpn()
            .is_some_and(|mut protocols| protocols.any(|it| it == TLS_PROTOCOL)),
    };
    let Some(config) = choose(asked) else {
        let _ = stream.try_write(&UNRECOGNIZED_NAME);
        return Err("handshake rejected".to_owned());
    };
    let mut connection = match accepted.into_connection(config) {
        Ok(connection) => connection,
        Err((error, mut alert)) => {
            let _ = stream.write_socket(|socket| alert.write(socket));
            return Err(failed(&error));
        }
    };
    poll_fn(|cx| poll_handshake(stream, &mut connection, cx)).await?;
    let facts = facts(&connection, name);
    // Bytes that came ahead (RFC 8446 §2.3). They wait for the end of the handshake, which
    // nobody who repeats them can bring about.
    if let Some(mut early) = connection.early_data() {
        let mut bytes = Vec::new();
        let _ = early.read_to_end(&mut bytes);
        ahead.extend_from_slice(&bytes);
    }
    stream.encrypt(Session::new(connection));
    Ok(facts)
}

fn failed(error: &impl std::fmt::Display) -> String {
    format!("SSL_do_handshake() failed ({error})")
}

/// The client went away.
pub fn closed() -> String {
    "peer closed connection in SSL handshake".to_owned()
}

/// Reads the first message of the client.
async fn client_hello(stream: &ClientStream) -> Result<Accepted, String> {
    let mut acceptor = Acceptor::default();
    poll_fn(|cx| {
        loop {
            let read = ready!(stream.poll_socket(cx, |socket| acceptor.read_tls(socket)));
            match read {
                Ok(0) => return Poll::Ready(Err(closed())),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(failed(&error))),
            }
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => return Poll::Ready(Ok(accepted)),
                Err((error, mut alert)) => {
                    let sent = stream.write_socket(|socket| alert.write(socket));
                    // rustls has no alert for what is not even a record.
                    if matches!(sent, Ok(0)) {
                        let _ = stream.try_write(&DECODE_ERROR);
                    }
                    return Poll::Ready(Err(failed(&error)));
                }
            }
        }
    })
    .await
}

fn poll_handshake(
    stream: &ClientStream,
    connection: &mut ServerConnection,
    cx: &mut Context<'_>,
) -> Poll<Result<(), String>> {
    loop {
        while connection.wants_write() {
            match stream.write_socket(|socket| connection.write_tls(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Err(error) = ready!(stream.poll_write_ready(cx)) {
                        return Poll::Ready(Err(failed(&error)));
                    }
                }
                Err(error) => return Poll::Ready(Err(failed(&error))),
            }
        }
        if !connection.is_handshaking() {
            return Poll::Ready(Ok(()));
        }
        match ready!(stream.poll_socket(cx, |socket| connection.read_tls(socket))) {
            Ok(0) => return Poll::Ready(Err(closed())),
            Ok(_) => {}
            Err(error) => return Poll::Ready(Err(failed(&error))),
        }
        if let Err(error) = connection.process_new_packets() {
            let _ = stream.write_socket(|socket| connection.write_tls(socket));
            return Poll::Ready(Err(failed(&error)));
        }
    }
}

/// What a handshake came to. The client's certificate is not judged yet.
pub fn facts(connection: &CommonState, server_name: Option<String>) -> TlsFacts {
    TlsFacts {
        protocol: connection.protocol_version(),
        cipher: connection.negotiated_cipher_suite(),
        group: connection
            .negotiated_key_exchange_group()
            .map(|group| group.name()),
        server_name,
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
