//! A client of MySQL's protocol, for the few questions about tables: logs in, asks, reads rows of text.
//! The server that answers is the one of the configuration; what it sends is bounded all the same.

use std::io;
use std::time::Duration;

use aws_lc_rs::digest;
use mysql_wire::{CommandAnswer, Parameter, PrepareAnswer, StatementAnswer, execute_command};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::postgres::{self, PostgresClient};

/// Bytes of one packet of the server.
const MAX_PACKET_BYTES: usize = 1 << 20;
/// Rows and bytes of one answer.
const MAX_ROWS: usize = 500_000;
const MAX_BYTES: usize = 64 << 20;
/// All of a conversation.
const WITHIN: Duration = Duration::from_secs(10);

/// Protocol 4.1 with 20 bytes of challenge, named methods of authentication, transactions.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
/// utf8mb4_general_ci
const COLLATION: u8 = 45;

/// Asks for the server's own number of the connection. A proxy answers the plain question alone by its own number.
const CONNECTION: &str = "SELECT CONNECTION_ID() + 0";

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING: &[u8] = b"caching_sha2_password";

/// Whom to ask about tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseAccount {
    /// The address by which PHP reaches it: `unix:PATH` or `IP:PORT`. That of a PostgreSQL is `postgres:ADDRESS/DATABASE`.
    pub server: String,
    pub user: String,
    pub password: String,
}

impl DatabaseAccount {
    /// Is this the server that a worker names? It is connected to by its own address, not by the worker's. PHP may know
    /// a socket by another path, such as `/var/run` for `/run`.
    pub fn is_for(&self, server: &str) -> bool {
        let resolved = |server: &str| {
            let (address, database) = postgres::parts(server).unwrap_or((server, ""));
            let path = std::fs::canonicalize(address.strip_prefix("unix:")?).ok()?;
            Some((path, database.to_owned()))
        };
        self.server == server
            || resolved(server).is_some_and(|it| Some(it) == resolved(&self.server))
    }
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects to a server by its address, as PHP wrote it.
pub(crate) async fn connect(server: &str) -> io::Result<Box<dyn Stream>> {
    Ok(match server.strip_prefix("unix:") {
        Some(path) => Box::new(UnixStream::connect(path).await?),
        None => Box::new(TcpStream::connect(server).await?),
    })
}

/// A row of texts; `None`: NULL.
pub type TextRow = Vec<Option<Vec<u8>>>;

/// A connection to a server.
pub struct Client {
    stream: Box<dyn Stream>,
    /// The conversation does not leave this machine.
    is_local: bool,
    sequence: u8,
    /// The connection, as who greeted calls it.
    identifier: u32,
}

/// The answers to these questions, in their order.
///
/// # Errors
/// The system or the server reports an error, or a proxy stands between: it may ask one server after the other.
pub async fn ask(account: &DatabaseAccount, questions: &[&str]) -> io::Result<Vec<Vec<TextRow>>> {
    within(async {
        let mut answers = Vec::with_capacity(questions.len());
        if postgres::parts(&account.server).is_some() {
            let mut client = PostgresClient::open(account).await?;
            for question in questions {
                answers.push(client.query(question).await?);
            }
            client.quit().await;
        } else {
            let mut client = Client::open(account, COLLATION).await?;
            client.expect_no_proxy().await?;
            for question in questions {
                answers.push(client.query(question).await?);
            }
            client.quit().await;
        }
        Ok(answers)
    })
    .await
}

/// Bounds the time of a conversation.
///
/// # Errors
/// The errors of the conversation, or it takes too long.
pub async fn within<T>(conversation: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(WITHIN, conversation).await {
        Ok(answers) => answers,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

impl Client {
    /// Connects and logs in, with a collation by its number in the protocol.
    ///
    /// # Errors
    /// The system or the server reports an error.
    pub async fn open(account: &DatabaseAccount, collation: u8) -> io::Result<Client> {
        let mut client = Client::connect(account).await?;
        client.log_in(account, collation).await?;
        Ok(client)
    }

    /// A proxy for MySQL's protocol (ProxySQL, MaxScale) greets by itself, and numbers its connections.
    async fn expect_no_proxy(&mut self) -> io::Result<()> {
        let answer = self.query(CONNECTION).await?;
        let known = answer.first().and_then(|row| row.first()?.as_deref());
        let known: Option<u64> = known.and_then(|it| str::from_utf8(it).ok()?.parse().ok());
        // The protocol has the lower half of it.
        match known.ok_or_else(nonsense)? & 0xffff_ffff == u64::from(self.identifier) {
            true => Ok(()),
            false => Err(io::Error::other("a proxy stands before the database")),
        }
    }

    /// Says that nothing more is asked.
    pub async fn quit(&mut self) {
        self.sequence = 0;
        // COM_QUIT: the server closes, whatever comes of it.
        let _ = self.send(&[1]).await;
    }

    /// Returns the answer to a statement, hashed like the library in PHP does. The connection is of no use after an error.
    ///
    /// # Errors
    /// The system reports an error, or the answer makes no sense or is longer than a packet may be.
    pub async fn answer(&mut self, text: &str, seed: u64) -> io::Result<CommandAnswer> {
        self.ask(text).await?;
        self.receive_answer(seed).await
    }

    /// Returns the answer to a statement that is prepared, and closed afterwards; see [`Self::answer`].
    ///
    /// # Errors
    /// The errors of [`Self::answer`]; or the statement is refused, or has another number of parameters.
    pub async fn answer_of_prepared(
        &mut self,
        text: &str,
        values: &[Parameter],
        seed: u64,
    ) -> io::Result<CommandAnswer> {
        let prepare = [&[0x16], text.as_bytes()].concat();
        self.command_without_answer(&prepare).await?;
        let mut answer = PrepareAnswer::default();
        let prepared = loop {
            let packet = self.receive().await?;
            if let Some(prepared) = answer.packet(&packet).map_err(|_| nonsense())? {
                break prepared;
            }
        };
        let (id, _) = prepared
            .filter(|(_, parameters)| usize::from(*parameters) == values.len())
            .ok_or_else(|| io::Error::other("the statement is not prepared"))?;
        let execute = execute_command(id, values).ok_or_else(nonsense)?;
        self.command_without_answer(&execute).await?;
        let answer = self.receive_answer(seed).await?;
        let close = [&[0x19][..], &id.to_le_bytes()].concat();
        self.command_without_answer(&close).await?;
        Ok(answer)
    }

    async fn receive_answer(&mut self, seed: u64) -> io::Result<CommandAnswer> {
        let (mut answer, mut bytes) = (StatementAnswer::new(seed), 0);
        loop {
            let packet = self.receive().await?;
            bytes += packet.len();
            if bytes > MAX_PACKET_BYTES {
                return Err(io::Error::other("the answer is too long"));
            }
            if let Some(answer) = answer.packet(&packet).map_err(|_| nonsense())? {
                return Ok(answer);
            }
        }
    }

    /// Sends a command that is answered with OK.
    ///
    /// # Errors
    /// The system or the server reports an error.
    pub async fn command(&mut self, command: &[u8]) -> io::Result<()> {
        self.command_without_answer(command).await?;
        match self.receive().await?.split_first() {
            Some((0x00, _)) => Ok(()),
            Some((0xff, rest)) => Err(said(rest)),
            _ => Err(nonsense()),
        }
    }

    /// # Errors
    /// The system reports an error.
    pub async fn command_without_answer(&mut self, command: &[u8]) -> io::Result<()> {
        self.sequence = 0;
        self.send(command).await
    }

    /// Bytes that follow a command, as they come; 0 at their end.
    ///
    /// # Errors
    /// The system reports an error.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer).await
    }

    async fn connect(account: &DatabaseAccount) -> io::Result<Client> {
        let is_local = account.server.starts_with("unix:");
        let stream = connect(&account.server).await?;
        Ok(Client {
            stream,
            is_local,
            sequence: 0,
            identifier: 0,
        })
    }

    async fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).await?;
        let [low, middle, high, sequence] = head;
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        if length > MAX_PACKET_BYTES {
            return Err(nonsense());
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        self.sequence = sequence.wrapping_add(1);
        Ok(body)
    }

    async fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).map_err(|_| nonsense())?;
        let [low, middle, high, _] = length.to_le_bytes();
        let mut packet = vec![low, middle, high, self.sequence];
        packet.extend_from_slice(body);
        self.stream.write_all(&packet).await
    }

    async fn log_in(&mut self, account: &DatabaseAccount, collation: u8) -> io::Result<()> {
        let greeting = self.receive().await?;
        let (identifier, challenge, method) = greeted(&greeting)?;
        self.identifier = identifier;
        let answer = proof(&method, &account.password, &challenge).unwrap_or_default();
        let mut response = CAPABILITIES.to_le_bytes().to_vec();
        response.extend_from_slice(&0x0100_0000_u32.to_le_bytes());
        response.push(collation);
        response.extend_from_slice(&[0; 23]);
        response.extend_from_slice(account.user.as_bytes());
        response.push(0);
        response.push(u8::try_from(answer.len()).map_err(|_| nonsense())?);
        response.extend_from_slice(&answer);
        response.extend_from_slice(&method);
        response.push(0);
        self.send(&response).await?;
        loop {
            let packet = self.receive().await?;
            match packet.split_first() {
                Some((0x00, _)) => return Ok(()),
                Some((0xff, rest)) => return Err(said(rest)),
                // Another method is asked for.
                Some((0xfe, rest)) => {
                    let (method, challenge) = split_at_zero(rest).ok_or_else(nonsense)?;
                    let challenge = challenge.strip_suffix(&[0]).unwrap_or(challenge);
                    let answer = proof(method, &account.password, challenge);
                    let answer = answer.ok_or_else(|| {
                        let method = String::from_utf8_lossy(method).into_owned();
                        io::Error::other(format!(
                            "the server asks for {method}, which is not supported"
                        ))
                    })?;
                    self.send(&answer).await?;
                }
                // caching_sha2_password: it is known (3), or the password itself is asked for (4).
                Some((0x01, [3])) => {}
                Some((0x01, [4])) if self.is_local => {
                    let mut password = account.password.clone().into_bytes();
                    password.push(0);
                    self.send(&password).await?;
                }
                Some((0x01, [4])) => {
                    let message = "the server asks for the password itself: log in once by another client, or use its socket";
                    return Err(io::Error::other(message));
                }
                _ => return Err(nonsense()),
            }
        }
    }

    async fn ask(&mut self, text: &str) -> io::Result<()> {
        self.sequence = 0;
        let mut command = vec![3];
        command.extend_from_slice(text.as_bytes());
        self.send(&command).await
    }

    /// # Errors
    /// The system or the server reports an error.
    pub async fn query(&mut self, text: &str) -> io::Result<Vec<TextRow>> {
        self.ask(text).await?;
        let head = self.receive().await?;
        let columns = match head.split_first() {
            Some((0xff, rest)) => return Err(said(rest)),
            // The answer to SET.
            Some((0x00, _)) => return Ok(Vec::new()),
            Some((0xfb, _)) | None => return Err(nonsense()),
            Some((count, _)) => usize::from(*count),
        };
        // Their definitions, and the end of them.
        for _ in 0..=columns {
            self.receive().await?;
        }
        let (mut rows, mut bytes) = (Vec::new(), 0);
        loop {
            let packet = self.receive().await?;
            match packet.first() {
                Some(0xfe) if packet.len() < 9 => return Ok(rows),
                Some(0xff) => return Err(said(packet.get(1..).unwrap_or_default())),
                _ => {}
            }
            bytes += packet.len();
            if rows.len() >= MAX_ROWS || bytes > MAX_BYTES {
                return Err(io::Error::other("there are too many tables"));
            }
            rows.push(row(&packet, columns).ok_or_else(nonsense)?);
        }
    }
}

/// The number of the connection in a greeting, the challenge, and the method that the server prefers.
fn greeted(greeting: &[u8]) -> io::Result<(u32, Vec<u8>, Vec<u8>)> {
    match greeting.split_first() {
        Some((10, rest)) => {
            let read = || {
                let (_version, rest) = split_at_zero(rest)?;
                let (identifier, _) = rest.split_first_chunk()?;
                // Behind it comes the first part of the challenge.
                let mut challenge = rest.get(4..12)?.to_vec();
                // A zero, capabilities, collation, status, capabilities, length, and ten bytes.
                let rest = rest.get(12 + 1 + 2 + 1 + 2 + 2 + 1 + 10..)?;
                challenge.extend_from_slice(rest.get(..12)?);
                let method = rest.get(13..).and_then(split_at_zero);
                let method = method.map_or(NATIVE, |(method, _)| method);
                Some((u32::from_le_bytes(*identifier), challenge, method.to_vec()))
            };
            read().ok_or_else(nonsense)
        }
        Some((0xff, rest)) => Err(said(rest)),
        _ => Err(nonsense()),
    }
}

/// Proves by a method that the password is known; `None`: not by this one.
fn proof(method: &[u8], password: &str, challenge: &[u8]) -> Option<Vec<u8>> {
    let hash = |algorithm: &'static digest::Algorithm, parts: &[&[u8]]| {
        let mut context = digest::Context::new(algorithm);
        parts.iter().for_each(|part| context.update(part));
        context.finish().as_ref().to_vec()
    };
    let algorithm = match method {
        NATIVE => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        CACHING => &digest::SHA256,
        _ => return None,
    };
    if password.is_empty() {
        return Some(Vec::new());
    }
    let once = hash(algorithm, &[password.as_bytes()]);
    let twice = hash(algorithm, &[&once]);
    let mask = match method {
        NATIVE => hash(algorithm, &[challenge, &twice]),
        _ => hash(algorithm, &[&twice, challenge]),
    };
    Some(
        once.iter()
            .zip(mask)
            .map(|(one, other)| one ^ other)
            .collect(),
    )
}

fn split_at_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

fn row(packet: &[u8], columns: usize) -> Option<TextRow> {
    let mut rest = packet;
    let mut row = Vec::with_capacity(columns);
    for _ in 0..columns {
        let (first, behind) = rest.split_first()?;
        let width = match first {
            0xfb => {
                row.push(None);
                rest = behind;
                continue;
            }
            0xfc => 2,
            0xfd => 3,
            0xfe | 0xff => return None,
            _ => 0,
        };
        let length = match width {
            0 => usize::from(*first),
            width => {
                let number = behind.get(..width)?.iter().rev();
                number.fold(0, |all, byte| all << 8 | usize::from(*byte))
            }
        };
        let text = behind.get(width..)?.get(..length)?;
        row.push(Some(text.to_vec()));
        rest = behind.get(width + length..)?;
    }
    rest.is_empty().then_some(row)
}

/// Makes an error from an error packet, behind its first byte: a number, a state of six bytes, a text.
fn said(rest: &[u8]) -> io::Error {
    let text = rest.get(2..).unwrap_or_default();
    let text = match text.first() {
        Some(b'#') => text.get(6..).unwrap_or_default(),
        _ => text,
    };
    io::Error::other(crate::php_report::shown(text))
}

fn nonsense() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the database server's answer makes no sense",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_texts_and_nulls_of_every_length() {
        let mut packet = vec![1, b'a', 0xfb, 0, 0xfc, 0x2c, 0x01];
        packet.extend_from_slice(&[b'x'; 300]);
        let row_read = row(&packet, 4).unwrap();
        assert_eq!(row_read[..3], [Some(b"a".to_vec()), None, Some(Vec::new())]);
        assert_eq!(row_read[3].as_ref().map(Vec::len), Some(300));
        assert!(row(&packet, 3).is_none(), "something is left");
        for cut in 0..packet.len() {
            assert!(row(&packet[..cut], 4).is_none(), "{cut}");
        }
    }

    #[test]
    fn the_proof_is_the_one_of_the_protocol() {
        // The proof of MariaDB 10.11: SHA1(password) XOR SHA1(challenge, SHA1(SHA1(password))).
        let proof = proof(NATIVE, "secret", b"01234567890123456789").unwrap();
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "7abe1a8776b59e931059451f81e596a60dbbf7a8");
        assert_eq!(super::proof(NATIVE, "", b"x"), Some(Vec::new()));
        assert_eq!(super::proof(b"dialog", "secret", b"x"), None);
    }

    #[test]
    fn a_socket_is_known_by_each_of_its_paths() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| format!("unix:{}/{name}", folder.path().display());
        std::fs::create_dir(folder.path().join("run")).unwrap();
        std::fs::write(folder.path().join("run/sock"), "").unwrap();
        std::fs::write(folder.path().join("run/other"), "").unwrap();
        std::os::unix::fs::symlink("run", folder.path().join("var")).unwrap();
        let account = |server: &str| DatabaseAccount {
            server: server.to_owned(),
            user: String::new(),
            password: String::new(),
        };
        let by_socket = account(&path("run/sock"));
        assert!(by_socket.is_for(&path("run/sock")) && by_socket.is_for(&path("var/sock")));
        assert!(!by_socket.is_for(&path("var/other")) && !by_socket.is_for("127.0.0.1:3306"));
        // Nothing is there.
        assert!(!account(&path("none")).is_for(&path("no")));
        assert!(account("127.0.0.1:3306").is_for("127.0.0.1:3306"));
    }

    #[test]
    fn greetings_that_make_no_sense_are_errors() {
        let mut greeting = b"\x0a10.11\0\x01\0\0\0ABCDEFGH\0".to_vec();
        greeting.extend_from_slice(&[0; 18]);
        greeting.extend_from_slice(b"IJKLMNOPQRST\0mysql_native_password\0");
        let (identifier, challenge, method) = greeted(&greeting).unwrap();
        assert_eq!(identifier, 1);
        assert_eq!(challenge, b"ABCDEFGHIJKLMNOPQRST");
        assert_eq!(method, NATIVE);
        for cut in 0..greeting.len() - 23 {
            assert!(greeted(&greeting[..cut]).is_err(), "{cut}");
        }
        assert!(greeted(b"\xff\x15\x04Too many connections").is_err());
    }
}
