//! One round of questions to one name server: UDP first, TCP where the answer is truncated. Each
//! round opens new sockets on random ports, so that a forged answer has to match both the port and
//! the number of the question.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::message::{Question, RecordKind, Reply};

/// The largest datagram read, as nginx's.
const MAX_DATAGRAM_BYTES: usize = 4096;
/// Datagrams of others that are passed over in one round: a flood ends it.
const MAX_STRANGERS: usize = 1000;

/// A name's questions and the replies so far.
#[derive(Debug)]
pub(crate) struct Round {
    asked: Vec<(Question, Option<Reply>)>,
}

impl Round {
    /// `None`: no such name can be asked for.
    pub fn new(name: &str, kinds: &[RecordKind]) -> Option<Self> {
        let ask = |kind: &RecordKind| Some((Question::new(name, *kind)?, None));
        let asked = kinds.iter().map(ask).collect::<Option<Vec<_>>>()?;
        Some(Self { asked })
    }

    /// All answers, once each question has one.
    pub fn replies(&self) -> Option<Vec<&Reply>> {
        self.asked.iter().map(|(_, reply)| reply.as_ref()).collect()
    }

    /// Asks `server` the open questions, until all is answered.
    pub async fn ask(&mut self, server: SocketAddr, tcp_timeout: Duration) -> io::Result<()> {
        let local: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(local).await?;
        // Only datagrams of this server arrive from here on.
        socket.connect(server).await?;
        for (question, reply) in &self.asked {
            if reply.is_none() {
                socket.send(&question.bytes).await?;
            }
        }
        let mut buffer = [0; MAX_DATAGRAM_BYTES];
        for _ in 0..MAX_STRANGERS {
            if self.asked.iter().all(|(_, reply)| reply.is_some()) {
                return Ok(());
            }
            let length = socket.recv(&mut buffer).await?;
            self.take(&buffer[..length], server, tcp_timeout).await?;
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    async fn take(
        &mut self,
        datagram: &[u8],
        server: SocketAddr,
        tcp_timeout: Duration,
    ) -> io::Result<()> {
        let mut open = self.asked.iter_mut().filter(|(_, reply)| reply.is_none());
        let found =
            open.find_map(|(question, slot)| Some((question.reply(datagram)?, question, slot)));
        let Some((reply, question, slot)) = found else {
            return Ok(());
        };
        *slot = Some(match reply {
            Reply::Truncated => timeout(tcp_timeout, over_tcp(question, server)).await??,
            reply => reply,
        });
        Ok(())
    }
}

/// Each message has its length before it (RFC 1035 §4.2.2).
async fn over_tcp(question: &Question, server: SocketAddr) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.bytes.len()).map_err(io::Error::other)?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend_from_slice(&question.bytes);
    stream.write_all(&framed).await?;
    let length = stream.read_u16().await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    match question.reply(&bytes) {
        Some(Reply::Truncated) | None => Err(io::ErrorKind::InvalidData.into()),
        Some(reply) => Ok(reply),
    }
}
