//! A client of PostgreSQL's protocol, for the few questions about tables: logs in, asks, reads rows of text.
//! The server that answers is the one of the configuration; what it sends is bounded all the same.

use std::io;
use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::{constant_time, digest, hmac, pbkdf2, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use postgres_wire::{Fields, put_message, startup_message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{self, DatabaseAccount, TextRow};

/// How the address of such a server begins, as the library in PHP names it: `postgres:ADDRESS/DATABASE`.
const SCHEME: &str = "postgres:";

/// Bytes of one message of the server.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Rows and bytes of one answer.
const MAX_ROWS: usize = 500_000;
const MAX_BYTES: usize = 64 << 20;

/// Rounds of the hash that a server may ask for; 4,096 are usual.
const MAX_ROUNDS: u32 = 200_000;

/// With an empty path, definitions of views come with the schemas of their tables.
const SESSION: &str = "SET search_path = ''";

/// The number by which PostgreSQL itself knows the connection, and the address at which it took it. A proxy gives another
/// number to its client; a balancer leaves the number and has another address.
const CONNECTION: &str = "SELECT pg_backend_pid(), host(inet_server_addr()), inet_server_port()";

/// The parts of such a server's name: its address and its database. `None`: it is no PostgreSQL.
pub fn parts(server: &str) -> Option<(&str, &str)> {
    server.strip_prefix(SCHEME)?.rsplit_once('/')
}

/// A connection to a server.
pub struct PostgresClient {
    stream: Box<dyn client::Stream>,
    is_direct: bool,
}

impl PostgresClient {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The system or the server reports an error, or a proxy stands between.
    pub async fn open(account: &DatabaseAccount) -> io::Result<PostgresClient> {
        let (address, database) = parts(&account.server).ok_or_else(nonsense)?;
        let stream = client::connect(address).await?;
        let mut client = PostgresClient {
            stream,
            is_direct: false,
        };
        let is_local = address.starts_with("unix:");
        let process = client.log_in(account, database, is_local).await?;
        client.query(SESSION).await?;
        let known = client.query(CONNECTION).await?;
        let [known, host, port] = known.first().map_or(&[][..], Vec::as_slice) else {
            return Err(nonsense());
        };
        if known.as_deref() != Some(process.to_string().as_bytes()) {
            return Err(io::Error::other("a proxy stands before the database"));
        }
        client.is_direct = is_direct(address, host.as_deref(), port.as_deref());
        Ok(client)
    }

    /// Whether the server itself took the connection at the address that was asked for, so that the next
    /// connection to this address comes to the same server.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Says that nothing more is asked.
    pub async fn quit(&mut self) {
        // The server closes, whatever comes of it.
        let _ = self.send(b'X', b"").await;
    }

    /// # Errors
    /// The system or the server reports an error.
    pub async fn query(&mut self, text: &str) -> io::Result<Vec<TextRow>> {
        self.send(b'Q', &[text.as_bytes(), b"\0"].concat()).await?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        loop {
            let (letter, fields) = self.receive().await?;
            bytes += fields.len();
            if rows.len() >= MAX_ROWS || bytes > MAX_BYTES {
                return Err(io::Error::other("there are too many tables"));
            }
            match letter {
                b'D' => rows.push(row(&fields).ok_or_else(nonsense)?),
                b'E' => return Err(said(&fields)),
                b'Z' => return Ok(rows),
                _ => {}
            }
        }
    }

    async fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).await?;
        let [letter, length @ ..] = head;
        let length = (u32::from_be_bytes(length) as usize).checked_sub(4);
        let length = length.filter(|length| *length <= MAX_MESSAGE_BYTES);
        let mut fields = vec![0; length.ok_or_else(nonsense)?];
        self.stream.read_exact(&mut fields).await?;
        Ok((letter, fields))
    }

    async fn send(&mut self, letter: u8, fields: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(fields.len() + 5);
        put_message(letter, fields, &mut message);
        self.stream.write_all(&message).await
    }

    /// Returns the number of the server's process.
    async fn log_in(
        &mut self,
        account: &DatabaseAccount,
        database: &str,
        is_local: bool,
    ) -> io::Result<u32> {
        let start = startup_message(&[
            ("user", &account.user),
            ("database", database),
            ("client_encoding", "UTF8"),
            ("application_name", "mayfly"),
        ]);
        self.stream.write_all(&start).await?;
        let password = account.password.as_str();
        let mut scram: Option<Scram> = None;
        let mut process = 0;
        loop {
            let (letter, fields) = self.receive().await?;
            let mut fields = Fields(&fields);
            match letter {
                b'R' => match fields.long().ok_or_else(nonsense)? {
                    0 if scram.as_ref().is_none_or(|scram| scram.is_proved) => {}
                    3 if is_local => {
                        self.send(b'p', &[password.as_bytes(), b"\0"].concat())
                            .await?
                    }
                    3 => {
                        let message = "the server asks for the password itself: use its socket";
                        return Err(io::Error::other(message));
                    }
                    5 => {
                        let answer = md5_answer(&account.user, password, fields.0);
                        self.send(b'p', answer.as_bytes()).await?;
                    }
                    10 => {
                        let new = Scram::new()?;
                        self.send(b'p', &new.first_message()).await?;
                        scram = Some(new);
                    }
                    11 => {
                        let scram = scram.as_mut().ok_or_else(nonsense)?;
                        let answer = scram.answer(password, fields.0).ok_or_else(nonsense)?;
                        self.send(b'p', answer.as_bytes()).await?;
                    }
                    12 => {
                        let scram = scram.as_mut().ok_or_else(nonsense)?;
                        scram.is_proved = scram.is_proof_of_server(fields.0);
                    }
                    _ => {
                        let message =
                            "the server asks for a method to log in that is not supported";
                        return Err(io::Error::other(message));
                    }
                },
                b'K' => process = fields.long().ok_or_else(nonsense)?,
                b'E' => return Err(said(fields.0)),
                b'Z' => return Ok(process),
                _ => {}
            }
        }
    }
}

/// Whether the server took the connection at this address. It has none for a socket.
fn is_direct(address: &str, host: Option<&[u8]>, port: Option<&[u8]>) -> bool {
    let text = |field: Option<&[u8]>| String::from_utf8(field?.to_vec()).ok();
    match address.parse::<SocketAddr>() {
        Ok(asked) => {
            let host: Option<IpAddr> = text(host).and_then(|it| it.parse().ok());
            let port: Option<u16> = text(port).and_then(|it| it.parse().ok());
            (host, port) == (Some(asked.ip()), Some(asked.port()))
        }
        Err(_) => host.is_none(),
    }
}

/// `md5` and the hash of the salt and the hash of password and user.
fn md5_answer(user: &str, password: &str, salt: &[u8]) -> String {
    let hex = |parts: [&[u8]; 2]| {
        let mut hash = Md5::new();
        parts.iter().for_each(|part| hash.update(part));
        hash.finalize()
            .iter()
            .fold(String::new(), |all, byte| format!("{all}{byte:02x}"))
    };
    let inner = hex([password.as_bytes(), user.as_bytes()]);
    format!("md5{}\0", hex([inner.as_bytes(), salt]))
}

/// Proves by SCRAM-SHA-256 (RFC 5802, RFC 7677) that the password is known, and lets the server prove it.
struct Scram {
    nonce: String,
    server_signature: Option<hmac::Tag>,
    is_proved: bool,
}

impl Scram {
    fn new() -> io::Result<Scram> {
        let mut nonce = [0; 18];
        rand::fill(&mut nonce).map_err(|_| io::Error::other("there is no chance"))?;
        Ok(Scram {
            nonce: STANDARD.encode(nonce),
            server_signature: None,
            is_proved: false,
        })
    }

    /// The server knows the user's name already.
    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    fn first_message(&self) -> Vec<u8> {
        let first = format!("n,,{}", self.first_bare());
        let length = u32::try_from(first.len()).unwrap_or(0).to_be_bytes();
        [b"SCRAM-SHA-256\0", &length[..], first.as_bytes()].concat()
    }

    /// Answers the server's challenge; `None`: it makes no sense.
    fn answer(&mut self, password: &str, challenge: &[u8]) -> Option<String> {
        let challenge = str::from_utf8(challenge).ok()?;
        let field = |name: &str| challenge.split(',').find_map(|it| it.strip_prefix(name));
        let nonce = field("r=")?;
        let salt = STANDARD.decode(field("s=")?).ok()?;
        let rounds: u32 = field("i=")?.parse().ok().filter(|it| *it <= MAX_ROUNDS)?;
        if !nonce.starts_with(&self.nonce) || nonce == self.nonce {
            return None;
        }
        let mut salted = [0; 32];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            rounds.try_into().ok()?,
            &salt,
            password.as_bytes(),
            &mut salted,
        );
        let sign = |key: &[u8], text: &str| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
        };
        let client_key = sign(&salted, "Client Key");
        let stored = digest::digest(&digest::SHA256, client_key.as_ref());
        let without_proof = format!("c=biws,r={nonce}");
        let all = format!("{},{challenge},{without_proof}", self.first_bare());
        let signature = sign(stored.as_ref(), &all);
        let proof = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = proof.map(|(one, other)| one ^ other).collect();
        let server_key = sign(&salted, "Server Key");
        self.server_signature = Some(sign(server_key.as_ref(), &all));
        Some(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    fn is_proof_of_server(&self, last: &[u8]) -> bool {
        let signature = last
            .strip_prefix(b"v=")
            .and_then(|it| STANDARD.decode(it).ok());
        let expected = self.server_signature.as_ref();
        expected
            .zip(signature)
            .is_some_and(|(expected, signature)| {
                constant_time::verify_slices_are_equal(expected.as_ref(), &signature).is_ok()
            })
    }
}

fn row(fields: &[u8]) -> Option<TextRow> {
    let mut fields = Fields(fields);
    let count = fields.short()?;
    let row = (0..count).map(|_| Some(fields.value()?.map(<[u8]>::to_vec)));
    let row = row.collect::<Option<_>>()?;
    fields.0.is_empty().then_some(row)
}

/// Makes an error from a message of one: fields with a letter each, of which M is for people.
fn said(fields: &[u8]) -> io::Error {
    let mut fields = Fields(fields);
    while let Some(letter) = fields.byte().filter(|letter| *letter != 0) {
        let text = fields.text().unwrap_or_default();
        if letter == b'M' {
            return io::Error::other(crate::php_report::shown(text));
        }
    }
    nonsense()
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
    fn the_name_of_a_server_has_its_address_and_its_database() {
        assert_eq!(
            parts("postgres:unix:/run/postgresql/.s.PGSQL.5432/blog"),
            Some(("unix:/run/postgresql/.s.PGSQL.5432", "blog"))
        );
        assert_eq!(parts("postgres:[::1]:5432/a"), Some(("[::1]:5432", "a")));
        assert_eq!(parts("unix:/run/mysqld/mysqld.sock"), None);
    }

    #[test]
    fn a_server_behind_a_balancer_is_not_direct() {
        for (address, host, port, expected) in [
            ("unix:/run/postgresql/.s.PGSQL.5432", None, None, true),
            ("unix:/run/balancer", Some("10.0.0.2"), Some("5432"), false),
            ("127.0.0.1:5432", Some("127.0.0.1"), Some("5432"), true),
            ("[::1]:5432", Some("::1"), Some("5432"), true),
            ("127.0.0.1:5000", Some("127.0.0.1"), Some("5432"), false),
            ("10.0.0.1:5432", Some("10.0.0.2"), Some("5432"), false),
            ("10.0.0.1:5432", None, None, false),
        ] {
            let (host, port) = (host.map(str::as_bytes), port.map(str::as_bytes));
            assert_eq!(is_direct(address, host, port), expected, "{address}");
        }
    }

    #[test]
    fn passwords_are_proved_as_the_protocol_says() {
        // RFC 7677, with the name that this client leaves out.
        let mut scram = Scram {
            nonce: "rOprNGfwEbeRWgbNEkqO".to_owned(),
            ..Scram::new().unwrap()
        };
        let challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let answer = scram.answer("pencil", challenge).unwrap();
        assert!(
            answer.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=")
        );
        let signature = scram.server_signature.as_ref().unwrap();
        let proof = format!("v={}", STANDARD.encode(signature.as_ref()));
        assert!(scram.is_proof_of_server(proof.as_bytes()));
        assert!(!scram.is_proof_of_server(b"v=AAAA"));
        for wrong in [&b"r=other,s=AAAA,i=1"[..], b"s=AAAA,i=1", b"\xff"] {
            assert!(scram.answer("pencil", wrong).is_none());
        }
        let expected = "md5164dbcd37c01a78e869e72965960a754\0";
        assert_eq!(md5_answer("ada", "secret", &[1, 2, 3, 4]), expected);
    }

    #[test]
    fn rows_that_make_no_sense_are_errors() {
        let fields = [0, 2, 0, 0, 0, 1, b'a', 0xff, 0xff, 0xff, 0xff];
        assert_eq!(row(&fields).unwrap(), [Some(b"a".to_vec()), None]);
        for cut in 0..fields.len() {
            assert!(row(&fields[..cut]).is_none(), "{cut}");
        }
        assert_eq!(
            said(b"SERROR\0Mno such table\0\0").to_string(),
            "no such table"
        );
    }
}
