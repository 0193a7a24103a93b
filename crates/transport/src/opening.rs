//! The opening of a connection before its first request: a header of the PROXY protocol, the TLS
//! handshake, and the choice of the protocol.
//!
//! ```text
//! accept ─► [PROXY header] ─► [TLS handshake] ─► [first bytes] ─┬─► http1
//!                                                               └─► http2
//! ```

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use transport_settings::ListenAddress;

use crate::facts::ConnectionFacts;
use crate::handshake::HandshakeError;
use crate::service::{Service, Terms};
use crate::stream::{ClientStream, Phase};
use crate::{handshake, http1, http2, proxy_protocol};

/// A record of TLS begins with this byte: a handshake (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 22;
/// A record of SSL 2.0 has this bit in its first byte, and HTTP does not: as in nginx, its client
/// gets an alert and no page.
const SSL2_HEAD: u8 = 0x80;
/// The part of HTTP/2's preface that HTTP/1 cannot begin with (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Serves a connection, which came by the socket of `address`, in a task of its own until it
/// ends. `guard` lives as long.
pub fn spawn<S: Service>(
    service: Arc<S>,
    stream: Arc<ClientStream>,
    facts: ConnectionFacts,
    address: ListenAddress,
    guard: impl Send + 'static,
) {
    let mut memory = service.memory(address);
    let terms = service.terms(&facts, &mut memory);
    match terms.map(|terms| terms.connection_opening()) {
        // Straight away: a task that is idle is as large as it ever was.
        Some(opening) if opening.is_plain() => {
            let buffer = BytesMut::new();
            let connection = http1::serve(service, stream, facts, memory, buffer, guard);
            tokio::spawn(connection);
        }
        Some(_) => {
            tokio::spawn(serve(service, stream, facts, memory, guard));
        }
        None => {}
    }
}

async fn serve<S: Service>(
    service: Arc<S>,
    stream: Arc<ClientStream>,
    mut facts: ConnectionFacts,
    mut memory: S::Memory,
    guard: impl Send + 'static,
) {
    let mut buffer = BytesMut::new();
    let opened = open(&*service, &stream, &mut facts, &mut memory, &mut buffer);
    // In a box, which goes: an idle connection holds nothing of it.
    match Box::pin(opened).await {
        Some(Protocol::Http1) => {
            http1::serve(service, stream, facts, memory, buffer, guard).await;
        }
        Some(Protocol::Http2) => {
            let connection = http2::serve(service, stream, facts, memory, buffer, guard);
            Box::pin(connection).await;
        }
        None => {
            stream.end();
        }
    }
}

enum Protocol {
    Http1,
    Http2,
}

/// Handles the opening. Bytes that were read beyond it are left in `buffer`. `None`: the connection
/// ends here, and the reason is logged.
async fn open<S: Service>(
    service: &S,
    stream: &ClientStream,
    facts: &mut ConnectionFacts,
    memory: &mut S::Memory,
    buffer: &mut BytesMut,
) -> Option<Protocol> {
    let terms = service.terms(facts, memory)?;
    let opening = terms.connection_opening();
    let timeout = terms.head().timeout;
    if opening.proxy_header {
        match proxy_protocol::read(stream, buffer, timeout, opening.tls).await {
            Ok(proxy) => facts.proxy = proxy,
            Err(reason) => {
                let reason = format!("{reason} while reading PROXY protocol");
                service.report_broken_connection(&terms, facts, &reason);
                return None;
            }
        }
    }
    if opening.tls {
        let handshaken =
            tokio::time::timeout(timeout, encrypt(service, &terms, stream, facts, buffer));
        if let Err(error) = handshaken.await.unwrap_or(Err(HandshakeError::Timeout)) {
            service.report_failed_handshake(&terms, facts, &error.to_string());
            return None;
        }
    }
    if let Some(tls) = &facts.tls
        && let Some(alpn) = &tls.alpn
    {
        // The handshake was all that an issuer of certificates needs.
        if alpn == handshake::VALIDATION_PROTOCOL {
            return None;
        }
        return Some(match &alpn[..] {
            b"h2" => Protocol::Http2,
            _ => Protocol::Http1,
        });
    }
    match opening.http2 && !facts.lacks_tls {
        true => Some(first_protocol(stream, buffer, timeout).await),
        false => Some(Protocol::Http1),
    }
}

/// Makes the handshake, unless the client speaks without TLS.
async fn encrypt<S: Service>(
    service: &S,
    terms: &S::Terms,
    stream: &ClientStream,
    facts: &mut ConnectionFacts,
    ahead: &mut BytesMut,
) -> Result<(), HandshakeError> {
    let mut first = [0; 1];
    match stream.peek_first(&mut first).await {
        Ok(1) if first[0] == TLS_HANDSHAKE || first[0] & SSL2_HEAD != 0 => {}
        Ok(1) => {
            facts.lacks_tls = true;
            return Ok(());
        }
        _ => return Err(HandshakeError::Closed),
    }
    let mut tls = handshake::accept(stream, ahead, |asked| service.tls(terms, asked)).await?;
    service.judge_client(terms, &mut tls);
    facts.scheme = "https";
    facts.tls = Some(Box::new(tls));
    Ok(())
}

/// Recognizes the protocol by the first bytes, which are then in `buffer`. A silent client counts
/// as HTTP/1, which has an answer to that.
async fn first_protocol(
    stream: &ClientStream,
    buffer: &mut BytesMut,
    timeout: Duration,
) -> Protocol {
    let reading = async {
        loop {
            let common = buffer.len().min(PREFACE.len());
            if buffer.get(..common) != PREFACE.get(..common) {
                return Protocol::Http1;
            }
            if common == PREFACE.len() {
                return Protocol::Http2;
            }
            // A graceful stop need not wait for a client that has sent nothing.
            stream.set_phase(match buffer.is_empty() {
                true => Phase::Idle,
                false => Phase::Reading,
            });
            let read = poll_fn(|cx| stream.poll_receive(cx, buffer, false)).await;
            stream.set_phase(Phase::Busy);
            match read {
                Ok(read) if read > 0 => {}
                _ => return Protocol::Http1,
            }
        }
    };
    let read = tokio::time::timeout(timeout, reading).await;
    read.unwrap_or(Protocol::Http1)
}
