//! The floods of QUIC and HTTP/3.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_tools::quic::{self, Failure};
use bench_tools::tls;
use quinn::{Connection, Endpoint, TransportConfig, VarInt};
use rustls::Side;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Suite, Version};

use super::{NAME, SentCounts, Target};

/// Addresses that packets come from, each with a port of its own.
const SOURCES: u32 = 512;
/// The clock is read once for this many packets.
const PACKETS_A_LOOK: u32 = 64;
/// The least that a client's first datagram has (RFC 9000 §14.1).
const INITIAL_BYTES: usize = 1200;
const CONNECTION_ID_BYTES: u8 = 8;
/// The bytes of the tag behind a protected packet.
const TAG_BYTES: usize = 16;
/// A protected packet's bytes that its header is protected with, and how far behind the packet
/// number they begin (RFC 9001 §5.4.2).
const SAMPLE_BYTES: usize = 16;
const SAMPLE_OFFSET: usize = 4;
const TINY_BYTES: usize = 40;
/// Handshakes at a time.
const HANDSHAKES: usize = 64;
/// Connections that stall: at a time, requests on each, and what each stream may be sent.
const STALLED_CONNECTIONS: usize = 256;
const STALLED_STREAMS: usize = 100;
const STALLED_WINDOW: u32 = 16;
/// A handshake that the server does not answer is given up.
const GIVE_UP: Duration = Duration::from_secs(2);

/// Sends until the time is over; `None`: there is no such flood.
pub fn flood(kind: &str, target: &Target) -> Option<Result<SentCounts, Failure>> {
    Some(match kind {
        "forged_addresses" => forged_addresses(target),
        "tiny_packets" => tiny_packets(target),
        "handshakes" => in_tasks(target, HANDSHAKES, false),
        "stalls" => in_tasks(target, HANDSHAKES, true),
        _ => return None,
    })
}

/// Numbers without a pattern (xorshift), for uses in which they may be guessed.
struct Numbers(u64);

impl Numbers {
    fn new() -> Numbers {
        Numbers(0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id()))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Sends datagrams from all sources in turn, and reads nothing.
fn send_from_everywhere(
    target: &Target,
    mut datagram: impl FnMut(&mut Numbers, &mut Vec<u8>) -> Result<(), Failure>,
) -> Result<SentCounts, Failure> {
    let sources = (0..SOURCES).map(|number| {
        let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 7, 0, 1)) + number);
        let socket = UdpSocket::bind((address, 0))?;
        socket.connect(target.at)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    let sources = sources.collect::<std::io::Result<Vec<UdpSocket>>>()?;
    let (mut sent, mut numbers, mut bytes) = (SentCounts::default(), Numbers::new(), Vec::new());
    for (packet, source) in (0u32..).zip(sources.iter().cycle()) {
        if packet % PACKETS_A_LOOK == 0 && Instant::now() >= target.ends_at {
            break;
        }
        bytes.clear();
        datagram(&mut numbers, &mut bytes)?;
        // A datagram that the machine cannot take at this moment is lost, as on a network.
        if source.send(&bytes).is_ok() {
            sent.pieces += 1;
            sent.bytes += bytes.len() as u64;
        }
    }
    sent.connections = u64::from(SOURCES);
    Ok(sent)
}

/// The beginnings of connections, valid in every bit, from addresses that discard the answers.
fn forged_addresses(target: &Target) -> Result<SentCounts, Failure> {
    let first = FirstPackets::new()?;
    send_from_everywhere(target, |numbers, bytes| first.write(numbers.next(), bytes))
}

/// Datagrams of up to 40 bytes that belong to no connection: with long headers and with short ones.
fn tiny_packets(target: &Target) -> Result<SentCounts, Failure> {
    send_from_everywhere(target, |numbers, bytes| {
        let length = 1 + numbers.next() as usize % TINY_BYTES;
        while bytes.len() < length {
            bytes.extend_from_slice(&numbers.next().to_be_bytes());
        }
        bytes.truncate(length);
        // The bit that every packet of QUIC has.
        if let Some(first) = bytes.first_mut() {
            *first |= 0x40;
        }
        Ok(())
    })
}

/// Makes first packets of connections: one ClientHello in as many of them as wanted.
struct FirstPackets {
    suite: Suite,
    hello: Vec<u8>,
}

impl FirstPackets {
    fn new() -> Result<FirstPackets, Failure> {
        let suite = TLS13_AES_128_GCM_SHA256.tls13();
        let suite = suite.and_then(|suite| suite.quic_suite());
        // The only transport parameter that must be there: the own connection id (0x0f).
        let parameters = [&[0x0f, CONNECTION_ID_BYTES], &source_id()[..]].concat();
        let config = Arc::new(tls::client(b"h3")?);
        let name = ServerName::try_from(NAME)?;
        let mut client = ClientConnection::new(config, Version::V1, name, parameters)?;
        let mut hello = Vec::new();
        client.write_hs(&mut hello);
        Ok(FirstPackets {
            suite: suite.ok_or("no cipher suite for QUIC")?,
            hello,
        })
    }

    /// An Initial packet for the connection of this number (RFC 9000 §17.2.2, RFC 9001 §5).
    fn write(&self, number: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let id = number.to_be_bytes();
        // A long header, type 0, with a packet number of four bytes; version 1.
        out.extend_from_slice(&[0xc3, 0, 0, 0, 1, CONNECTION_ID_BYTES]);
        out.extend_from_slice(&id);
        out.push(CONNECTION_ID_BYTES);
        out.extend_from_slice(&source_id());
        // No token; then the length of all that follows it, in two bytes.
        out.push(0);
        let length = INITIAL_BYTES - out.len() - 2;
        out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes());
        let packet_number_at = out.len();
        out.extend_from_slice(&[0; 4]);
        let header_bytes = out.len();
        // A CRYPTO frame at offset 0, and padding.
        out.extend_from_slice(&[6, 0]);
        out.extend_from_slice(&(0x4000 | self.hello.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.hello);
        out.resize(INITIAL_BYTES - TAG_BYTES, 0);

        let keys = self.suite.keys(&id, Side::Client, Version::V1).local;
        let (header, payload) = out.split_at_mut(header_bytes);
        let tag = keys.packet.encrypt_in_place(0, header, payload)?;
        out.extend_from_slice(tag.as_ref());
        let (header, rest) = out.split_at_mut(packet_number_at + SAMPLE_OFFSET);
        let (first, header) = header.split_at_mut(1);
        let packet_number = &mut header[packet_number_at - 1..];
        let sample = &rest[..SAMPLE_BYTES];
        keys.header
            .encrypt_in_place(sample, &mut first[0], packet_number)?;
        Ok(())
    }
}

fn source_id() -> [u8; CONNECTION_ID_BYTES as usize] {
    *b"a client"
}

/// Connects again and again in as many tasks. The connections either end at once, or ask for much
/// and take nothing.
fn in_tasks(target: &Target, tasks: usize, stalls: bool) -> Result<SentCounts, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut transport = TransportConfig::default();
    if stalls {
        transport.stream_receive_window(VarInt::from_u32(STALLED_WINDOW));
    }
    runtime.block_on(async {
        let endpoint = quic::endpoint(transport)?;
        // The first one must come about; later the server may be too busy for a while.
        quic::connect(&endpoint, target.at, NAME).await?;
        let task = Connecting {
            endpoint,
            at: target.at,
            ends_at: target.ends_at,
            request: stalls.then(|| quic::request(NAME, &target.path).into()),
        };
        let running: Vec<_> = (0..tasks)
            .map(|_| tokio::spawn(task.clone().run()))
            .collect();
        let mut sent = SentCounts::default();
        for one in running {
            let (connections, requests) = one.await?;
            sent.connections += connections;
            sent.pieces += if stalls { requests } else { connections };
        }
        Ok(sent)
    })
}

/// One task that connects again and again.
#[derive(Clone)]
struct Connecting {
    endpoint: Endpoint,
    at: SocketAddr,
    ends_at: Instant,
    /// A request whose answer is not taken; `None`: connections end at once.
    request: Option<Arc<[u8]>>,
}

impl Connecting {
    /// How many connections there were, and how many requests on them.
    async fn run(self) -> (u64, u64) {
        let (mut connections, mut requests) = (0, 0);
        let mut kept = VecDeque::new();
        while Instant::now() < self.ends_at {
            let connecting = quic::connect(&self.endpoint, self.at, NAME);
            let Ok(Ok(connection)) = tokio::time::timeout(GIVE_UP, connecting).await else {
                continue;
            };
            connections += 1;
            let Some(request) = &self.request else {
                connection.close(0u32.into(), b"");
                continue;
            };
            requests += ask_and_take_nothing(&connection, request).await;
            kept.push_back(connection);
            if kept.len() > STALLED_CONNECTIONS / HANDSHAKES
                && let Some(oldest) = kept.pop_front()
            {
                oldest.close(0u32.into(), b"");
            }
        }
        (connections, requests)
    }
}

/// How many requests the server took. The streams live as long as the connection.
async fn ask_and_take_nothing(connection: &Connection, request: &[u8]) -> u64 {
    let mut streams = Vec::new();
    for _ in 0..STALLED_STREAMS {
        let opened = tokio::time::timeout(GIVE_UP, connection.open_bi()).await;
        let Ok(Ok((mut send, receive))) = opened else {
            break;
        };
        if send.write_all(request).await.is_err() {
            break;
        }
        let _ = send.finish();
        streams.push((send, receive));
    }
    let asked = streams.len() as u64;
    let connection = connection.clone();
    tokio::spawn(async move {
        connection.closed().await;
        drop(streams);
    });
    asked
}
