//! A name server with the answers that a test wants, over UDP and TCP of one
//! port.
//!
//! A closure answers each question; every question is noted with its time's
//! order. The threads end with the value.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, PTR, SRV};
use hickory_proto::rr::{Name, RData, Record};

/// A question as a test sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQuestion {
    /// Lower case, without the last dot.
    pub name: String,
    /// `A`, `AAAA`, `SRV` ...
    pub kind: String,
    pub over_tcp: bool,
}

/// One record, owned by the name asked for, with its TTL in seconds.
#[derive(Clone, Debug)]
pub enum DnsRecord {
    Address(u32, IpAddr),
    Alias(u32, &'static str),
    /// The host name of an address.
    Host(u32, &'static str),
    /// Priority, weight, port and target.
    Service(u32, u16, u16, u16, &'static str),
}

impl DnsRecord {
    /// `A` or `AAAA`, whichever `address` is.
    pub fn address(ttl: u32, address: &str) -> Self {
        Self::Address(ttl, address.parse().expect("an address"))
    }
}

/// The reply of the server.
#[derive(Clone, Debug)]
pub enum DnsReply {
    /// Answers with these records, as far as they are of the kind asked for.
    Records(Vec<DnsRecord>),
    /// A response code: 2 SERVFAIL, 3 NXDOMAIN ...
    Code(u16),
    /// "Ask over TCP".
    Truncated,
    /// Nothing.
    Silence,
    /// The answer to another question.
    WrongNumber,
    /// These bytes.
    Garbage(Vec<u8>),
}

type Script = dyn Fn(&DnsQuestion) -> DnsReply + Send + Sync;

/// A running name server on a port of 127.0.0.1 that the system chose.
pub struct FakeDns {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<DnsQuestion>>>,
    is_over: Arc<AtomicBool>,
}

impl FakeDns {
    /// Starts answering.
    pub fn start(script: impl Fn(&DnsQuestion) -> DnsReply + Send + Sync + 'static) -> Self {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().expect("a bound socket has an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let script: Arc<Script> = Arc::new(script);
        let server = Server {
            script,
            asked: asked.clone(),
            is_over: is_over.clone(),
        };
        let over_tcp = server.clone();
        std::thread::spawn(move || server.serve_udp(&udp));
        std::thread::spawn(move || over_tcp.serve_tcp(&tcp));
        Self {
            address,
            asked,
            is_over,
        }
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All questions so far.
    pub fn asked(&self) -> Vec<DnsQuestion> {
        self.asked.lock().expect("no panic holds it").clone()
    }

    /// How often `name` was asked for, whatever the kind.
    pub fn asked_for(&self, name: &str) -> usize {
        self.asked().iter().filter(|it| it.name == name).count()
    }
}

impl Drop for FakeDns {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
    }
}

/// Binds one free port for both. Another program may take it in between; then
/// it tries again.
fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = udp.local_addr().expect("a bound socket has an address");
        if let Ok(tcp) = TcpListener::bind(address) {
            return (udp, tcp);
        }
    }
    panic!("no port is free for both UDP and TCP");
}

#[derive(Clone)]
struct Server {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<DnsQuestion>>>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    fn serve_udp(&self, socket: &UdpSocket) {
        let pause = Some(Duration::from_millis(50));
        socket.set_read_timeout(pause).expect("a pause above zero");
        let mut buffer = [0; 4096];
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok((length, client)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            if let Some(answer) = self.answer(&buffer[..length], false) {
                drop(socket.send_to(&answer, client));
            }
        }
    }

    fn serve_tcp(&self, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            if let Ok(stream) = stream {
                // A client that closes early has its answer.
                drop(self.serve_stream(stream));
            }
        }
    }

    fn serve_stream(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut bytes)?;
        if let Some(answer) = self.answer(&bytes, true) {
            let length = u16::try_from(answer.len()).map_err(std::io::Error::other)?;
            stream.write_all(&length.to_be_bytes())?;
            stream.write_all(&answer)?;
        }
        Ok(())
    }

    fn answer(&self, bytes: &[u8], over_tcp: bool) -> Option<Vec<u8>> {
        let query = Message::from_vec(bytes).ok()?;
        let asked = query.queries.first()?.clone();
        let question = DnsQuestion {
            name: asked
                .name()
                .to_lowercase()
                .to_ascii()
                .trim_end_matches('.')
                .to_owned(),
            kind: asked.query_type().to_string(),
            over_tcp,
        };
        self.asked
            .lock()
            .expect("no panic holds it")
            .push(question.clone());
        let mut message = Message::response(query.metadata.id, OpCode::Query);
        message.add_query(asked.clone());
        match (self.script)(&question) {
            DnsReply::Silence => return None,
            DnsReply::Garbage(bytes) => return Some(bytes),
            DnsReply::WrongNumber => message.metadata.id = message.metadata.id.wrapping_add(1),
            DnsReply::Truncated => message.metadata.truncation = true,
            DnsReply::Code(code) => {
                let [high, low] = code.to_be_bytes();
                message.metadata.response_code = ResponseCode::from(high, low);
            }
            DnsReply::Records(records) => {
                for record in records {
                    let (ttl, data) = record.data();
                    let is_asked =
                        data.record_type() == asked.query_type() || matches!(data, RData::CNAME(_));
                    if is_asked {
                        message.add_answer(Record::from_rdata(asked.name().clone(), ttl, data));
                    }
                }
            }
        }
        message.to_vec().ok()
    }
}

impl DnsRecord {
    fn data(self) -> (u32, RData) {
        let name = |text: &str| Name::from_ascii(format!("{text}.")).expect("a name");
        match self {
            Self::Address(ttl, IpAddr::V4(address)) => (ttl, v4(address)),
            Self::Address(ttl, IpAddr::V6(address)) => (ttl, v6(address)),
            Self::Alias(ttl, target) => (ttl, RData::CNAME(CNAME(name(target)))),
            Self::Host(ttl, host) => (ttl, RData::PTR(PTR(name(host)))),
            Self::Service(ttl, priority, weight, port, target) => (
                ttl,
                RData::SRV(SRV::new(priority, weight, port, name(target))),
            ),
        }
    }
}

fn v4(address: Ipv4Addr) -> RData {
    RData::A(A(address))
}

fn v6(address: Ipv6Addr) -> RData {
    RData::AAAA(AAAA(address))
}
