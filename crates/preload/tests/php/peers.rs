//! A MariaDB, a PHP-FPM that has loaded the library, and a Mayfly that writes down the messages.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use learn_record::{Acknowledgement, Message, RecordParts, StatementKind, Value};
use rustix::process::{Pid, Signal, kill_process};
use socket2::{Domain, SockAddr, Socket, Type};
use testkit::mariadb::MariaDb;

/// The longest wait, after which a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub const PASSWORD: &str = "secret";

/// One server for all tests of this program.
pub fn database() -> &'static Database {
    static DATABASE: OnceLock<Database> = OnceLock::new();
    DATABASE.get_or_init(Database::start)
}

pub struct Database(MariaDb);

/// Ends with its owner. A static owner is never dropped: then it ends with this process, which gives it
/// its standard input.
struct Process(Child);

impl Drop for Process {
    /// A master that is asked to end takes its workers along, one that is killed does not.
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

impl Database {
    fn start() -> Self {
        let certificate = tempfile::tempdir().unwrap();
        make_certificate(certificate.path());
        let of = |option: &str, name: &str| {
            let path = certificate.path().join(name);
            format!("--{option}={}", path.display())
        };
        let log = ["--general-log=1", "--log-output=TABLE"].map(str::to_owned);
        let tls = [of("ssl-cert", "cert"), of("ssl-key", "key")];
        let database = Self(MariaDb::start_with(&[log, tls].concat()));
        database.run(&format!(
            "CREATE DATABASE site CHARACTER SET utf8mb4; USE site;
             CREATE USER site@localhost IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO site@localhost;
             CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), n INT);
             INSERT INTO t (name, n) VALUES ('one', 1), ('two', 2), ('three', 3);"
        ));
        database
    }

    pub fn socket(&self) -> String {
        self.0.socket().display().to_string()
    }

    pub fn run(&self, script: &str) -> String {
        self.0.run(script)
    }

    /// Returns the server's log of these connections, statement by statement.
    pub fn log_of(&self, connections: &[u32]) -> Vec<String> {
        let numbers: Vec<_> = connections.iter().map(u32::to_string).collect();
        let rows = self.run(&format!(
            "SELECT HEX(argument) FROM mysql.general_log WHERE thread_id IN ({}) AND command_type IN ('Query', 'Execute')",
            numbers.join(",")
        ));
        rows.lines().map(unhex).collect()
    }
}

fn unhex(line: &str) -> String {
    let digits: Vec<_> = line
        .bytes()
        .map(|it| char::from(it).to_digit(16).unwrap())
        .collect();
    let bytes = digits
        .chunks(2)
        .map(|two| u8::try_from(two[0] * 16 + two[1]).unwrap());
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}

fn make_certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-days",
            "2",
        ])
        .arg("-keyout")
        .arg(folder.join("key"))
        .arg("-out")
        .arg(folder.join("cert"))
        .output()
        .expect("this test needs openssl");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

pub fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < PATIENCE, "{what} is not there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A message of the library, in own values.
#[derive(Debug, Clone, PartialEq)]
pub enum ReceivedMessage {
    Hello {
        pid: u32,
        is_again: bool,
        unseen_extensions: Vec<String>,
    },
    Write {
        number: u64,
        fetch: u64,
        text: String,
    },
    Written {
        number: u64,
        error: Option<u16>,
    },
    Record(ReceivedRecord),
    Doubt(&'static str),
    /// The connection has ended.
    End,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReceivedRecord {
    pub fetch: u64,
    pub is_complete: bool,
    /// Numbers by which the server knows the connections.
    pub connections: Vec<u32>,
    /// With the parameters in their places.
    pub statements: Vec<String>,
    pub rows: Vec<u64>,
    pub databases: Vec<Option<String>>,
    pub settings: Vec<Vec<String>>,
    /// `kind detail`.
    pub inputs: Vec<String>,
    /// `use path`, with `-` before a file that is not there.
    pub files: Vec<String>,
    /// SQLite databases that were open, with `before` after those that an earlier request opened.
    pub sqlite: Vec<String>,
}

impl ReceivedRecord {
    pub fn has_input(&self, begin: &str) -> bool {
        self.inputs.iter().any(|it| it.starts_with(begin))
    }
}

/// How the scripted Mayfly behaves to a written statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Acknowledges,
    /// Takes its time for each message.
    Slow,
    Silent,
    Garbage,
    Flood,
    Closes,
    /// Takes note of an announcement, and ends before the answer.
    Ends,
    /// Accepts and never reads.
    Deaf,
    /// Has other machines to inform, for which it takes longer than PHP waits otherwise.
    TellsNodes,
    /// Like [`Manner::TellsNodes`], but takes note of announcements alone, and listens no more.
    LosesNodes,
}

/// The time that a server with other machines demands.
pub const HOLD_MILLISECONDS: u32 = 2500;

pub struct Mayfly {
    folder: tempfile::TempDir,
    received: Receiver<ReceivedMessage>,
}

impl Mayfly {
    pub fn listen(manner: Manner) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("preload-")
            .tempdir()
            .unwrap();
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        socket
            .bind(&SockAddr::unix(folder.path().join("learn")).unwrap())
            .unwrap();
        socket.listen(16).unwrap();
        open_to_all(folder.path());
        open_to_all(&folder.path().join("learn"));
        let (tell, received) = mpsc::channel();
        let path = folder.path().join("learn");
        std::thread::spawn(move || {
            let mut deaf = Vec::new();
            while let Ok((connection, _)) = socket.accept() {
                let tell = tell.clone();
                if manner == Manner::LosesNodes {
                    let _ = std::fs::remove_file(&path);
                }
                if manner == Manner::Deaf {
                    deaf.push(connection);
                } else {
                    std::thread::spawn(move || listen_to(&connection, manner, &tell));
                }
            }
        });
        Self { folder, received }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("learn")
    }

    /// Receives the next message.
    pub fn next(&self) -> ReceivedMessage {
        self.received
            .recv_timeout(PATIENCE)
            .expect("something is told")
    }

    /// Receives the messages up to the next record, and that record.
    pub fn until_record(&self) -> (Vec<ReceivedMessage>, ReceivedRecord) {
        let mut before = Vec::new();
        loop {
            match self.next() {
                ReceivedMessage::Record(record) => return (before, record),
                other => before.push(other),
            }
        }
    }

    pub fn record(&self) -> ReceivedRecord {
        self.until_record().1
    }

    pub fn has_nothing_to_tell(&self) -> bool {
        self.received.try_recv().is_err()
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
}

fn listen_to(connection: &Socket, manner: Manner, tell: &Sender<ReceivedMessage>) {
    let mut parts = RecordParts::default();
    let mut packet = vec![0; 65536];
    loop {
        let length = (&*connection).read(&mut packet).unwrap_or(0);
        if length == 0 {
            let _ = tell.send(ReceivedMessage::End);
            return;
        }
        if manner == Manner::Slow {
            std::thread::sleep(Duration::from_millis(20));
        }
        let received = match Message::decode(&packet[..length])
            .expect("the library's messages are understood")
        {
            Message::Hello(hello) => {
                if hello.is_again {
                    answer(connection, Manner::Acknowledges, 0);
                }
                ReceivedMessage::Hello {
                    pid: hello.pid,
                    is_again: hello.is_again,
                    unseen_extensions: hello
                        .unseen_extensions
                        .iter()
                        .map(|it| string(it))
                        .collect(),
                }
            }
            Message::Write(write) => {
                let is_answered = match manner {
                    // Its announcement.
                    Manner::TellsNodes | Manner::LosesNodes => {
                        acknowledge(connection, write.number, HOLD_MILLISECONDS);
                        true
                    }
                    _ => answer(connection, manner, write.number),
                };
                if !is_answered {
                    let _ = tell.send(ReceivedMessage::End);
                    return;
                }
                ReceivedMessage::Write {
                    number: write.number,
                    fetch: write.fetch,
                    text: string(write.text),
                }
            }
            Message::Written(written) => {
                let goes_on = answer(connection, manner, written.number);
                if !goes_on && manner == Manner::LosesNodes {
                    let _ = tell.send(ReceivedMessage::End);
                    return;
                }
                ReceivedMessage::Written {
                    number: written.number,
                    error: written.error,
                }
            }
            Message::Doubt(doubt) => ReceivedMessage::Doubt(doubt.reason.word()),
            Message::RecordPart(part) => match parts.add(&part).expect("parts fit together") {
                Some(fetch) => ReceivedMessage::Record(received_record(fetch, &parts)),
                None => continue,
            },
        };
        let _ = tell.send(received);
    }
}

/// Answers a write; false: the caller closes the connection.
fn answer(mut connection: &Socket, manner: Manner, number: u64) -> bool {
    match manner {
        Manner::Acknowledges | Manner::Slow => acknowledge(connection, number, 0),
        Manner::TellsNodes => {
            std::thread::sleep(Duration::from_millis(1500));
            acknowledge(connection, number, HOLD_MILLISECONDS);
        }
        Manner::LosesNodes => return false,
        Manner::Silent | Manner::Deaf => {}
        Manner::Garbage => drop(connection.write(b"123456789012")),
        Manner::Flood => drop(connection.write(&[7; 60_000])),
        Manner::Closes => return false,
        Manner::Ends => {
            acknowledge(connection, number, 0);
            return false;
        }
    }
    true
}

fn acknowledge(mut connection: &Socket, number: u64, hold_milliseconds: u32) {
    let acknowledgement = Acknowledgement {
        number,
        hold_milliseconds,
    };
    let _ = connection.write(&acknowledgement.encode());
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn received_record(fetch: u64, parts: &RecordParts) -> ReceivedRecord {
    let record = parts.record().expect("the record is understood");
    let mut received = ReceivedRecord {
        fetch,
        is_complete: record.incomplete.is_none(),
        ..ReceivedRecord::default()
    };
    for session in &record.sessions {
        received.connections.push(session.identifier);
    }
    for statement in &record.statements {
        let session = &record.sessions[usize::from(statement.session)];
        received
            .statements
            .push(if statement.kind == StatementKind::Prepared {
                with_parameters(&string(statement.text), &statement.parameters)
            } else {
                string(statement.text)
            });
        received
            .rows
            .extend(statement.outcomes.iter().map(|outcome| match outcome {
                learn_record::Outcome::Rows { rows, .. } => *rows,
                learn_record::Outcome::Done { changed_rows } => 1000 + changed_rows,
                learn_record::Outcome::Failed { code } => 100_000 + u64::from(*code),
            }));
        received.databases.push(session.database.map(string));
        let settings = session.settings.iter().flatten().map(|it| string(it));
        received.settings.push(settings.collect());
    }
    let input = |it: &learn_record::Input<'_>| format!("{} {}", it.kind.word(), string(it.detail));
    received.inputs = record.inputs.iter().map(input).collect();
    let file = |it: &learn_record::FileLook<'_>| {
        let missing = if it.state.is_none() { "-" } else { "" };
        format!("{missing}{:?} {}", it.by, string(it.path))
    };
    received.files = record.files.iter().map(file).collect();
    let open = |it: &learn_record::SqliteFile<'_>| {
        let before = if it.is_from_before { " before" } else { "" };
        format!("{}{before}", string(it.path))
    };
    received.sqlite = record.sqlite_files.iter().map(open).collect();
    received
}

/// Returns an execution in the form of the server's log.
fn with_parameters(text: &str, parameters: &[Value<'_>]) -> String {
    let mut parameters = parameters.iter();
    let mut whole = String::new();
    for character in text.chars() {
        if character != '?' {
            whole.push(character);
            continue;
        }
        whole += &match parameters.next() {
            Some(Value::Null) => "NULL".into(),
            Some(Value::Integer(it)) => it.to_string(),
            Some(Value::Unsigned(it)) => it.to_string(),
            Some(Value::Double(it)) => it.to_string(),
            Some(Value::Bytes(it)) => format!("'{}'", string(it)),
            other => format!("{other:?}"),
        };
    }
    whole
}

/// The first php-fpm there is: Debian's has its version in its name.
fn php_fpm() -> PathBuf {
    let mut found: Vec<_> = ["/usr/sbin", "/usr/local/sbin"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|it| it.to_string_lossy().starts_with("php-fpm"))
        })
        .collect();
    found.sort();
    found.into_iter().next().expect("this test needs php-fpm")
}

/// One worker, with the library or without.
pub struct Php {
    pub folder: tempfile::TempDir,
    process: Process,
}

impl Php {
    pub fn with_library(mayfly: &Mayfly) -> Self {
        Self::start(Some(&mayfly.path()), &[])
    }

    pub fn without_library() -> Self {
        Self::start(None, &[])
    }

    pub fn start(channel: Option<&Path>, settings: &[&str]) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("preload-php-")
            .tempdir()
            .unwrap();
        let program = php_fpm();
        let at = |name: &str| folder.path().join(name);
        let conf = format!(
            "[global]\nerror_log = {}\ndaemonize = no\n[www]\nlisten = {}\npm = static\npm.max_children = 1\n\
             catch_workers_output = yes\n",
            at("log").display(),
            at("sock").display(),
        );
        std::fs::write(at("conf"), conf).unwrap();
        std::fs::create_dir(at("site")).unwrap();
        let log = std::fs::File::create(at("stderr")).unwrap();
        let mut command = Command::new(&program);
        if let Some(channel) = channel {
            let library = preload::library_for(&program).unwrap();
            let installed = preload::install(library, folder.path()).unwrap();
            // `scripts/unsafe.sh` has a library that was made to see errors of memory, with what it needs.
            let libraries = std::env::var_os("PRELOAD_SANITIZED");
            command
                .env("LD_PRELOAD", libraries.unwrap_or(installed.path.into()))
                .env("MAYFLY_LEARN", channel);
        }
        // Scripts are written anew within a second.
        for setting in ["opcache.enable=0"].iter().chain(settings) {
            command.args(["-d", setting]);
        }
        let process = command
            .args(["--allow-to-run-as-root", "--nodaemonize", "--fpm-config"])
            .arg(at("conf"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("this test needs php-fpm");
        let php = Self {
            folder,
            process: Process(process),
        };
        wait_for("php-fpm", || UnixStream::connect(php.path("sock")).is_ok());
        php
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a script, which begins with `<?php`.
    pub fn write(&self, name: &str, code: &str) {
        std::fs::write(self.path("site").join(name), format!("<?php\n{code}")).unwrap();
    }

    pub fn log(&self) -> String {
        let read = |name| std::fs::read_to_string(self.path(name)).unwrap_or_default();
        read("log") + &read("stderr")
    }

    /// The output of a script, with its head.
    pub fn get(&self, name: &str, parameters: &[(&str, &str)]) -> String {
        self.try_get(name, parameters)
            .unwrap_or_else(|| panic!("no whole answer: {}", self.log()))
    }

    /// `None` where the connection ends before the request does.
    pub fn try_get(&self, name: &str, parameters: &[(&str, &str)]) -> Option<String> {
        let mut connection = Connection::open(self);
        connection.get(self, name, parameters)
    }

    /// Runs code as a script of its own, with a number of the fetch.
    pub fn run(&self, fetch: u64, code: &str) -> String {
        let name = format!("{fetch}.php");
        self.write(&name, code);
        self.get(&name, &[("MAYFLY_FETCH", &fetch.to_string())])
    }

    /// The first that PHP-FPM has, once it has one.
    pub fn worker(&self) -> u32 {
        let master = self.process.0.id();
        let path = format!("/proc/{master}/task/{master}/children");
        loop {
            let children = std::fs::read_to_string(&path).unwrap();
            if let Some(first) = children.split_whitespace().next() {
                return first.parse().unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub struct Connection(UnixStream);

impl Connection {
    pub fn open(php: &Php) -> Self {
        let stream = UnixStream::connect(php.path("sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// Asks and reads the answer; the connection stays open.
    pub fn get(&mut self, php: &Php, name: &str, parameters: &[(&str, &str)]) -> Option<String> {
        let script = php.path("site").join(name).display().to_string();
        let mut encoded = Vec::new();
        let usual = [
            ("SCRIPT_FILENAME", &*script),
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", "/"),
        ];
        for (name, value) in usual.iter().chain(parameters) {
            encoded.extend([u8::try_from(name.len()).unwrap()]);
            encoded.extend((u32::try_from(value.len()).unwrap() | 0x8000_0000).to_be_bytes());
            encoded.extend_from_slice(name.as_bytes());
            encoded.extend_from_slice(value.as_bytes());
        }
        // Responder, and the connection is kept.
        let mut request = record(1, &[0, 1, 1, 0, 0, 0, 0, 0]);
        for (kind, content) in [(4, &encoded[..]), (4, b""), (5, b"")] {
            request.extend(record(kind, content));
        }
        self.0.write_all(&request).ok()?;
        let mut output = Vec::new();
        loop {
            let mut head = [0; 8];
            self.0.read_exact(&mut head).ok()?;
            let mut content = vec![0; usize::from(u16::from_be_bytes([head[4], head[5]]))];
            self.0.read_exact(&mut content).ok()?;
            self.0.read_exact(&mut vec![0; usize::from(head[6])]).ok()?;
            match head[1] {
                3 => return Some(String::from_utf8_lossy(&output).into_owned()),
                _ => output.extend(content),
            }
        }
    }
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let head = [1, kind, 0, 1, length[0], length[1], 0, 0];
    [&head[..], content].concat()
}

/// PHP code that connects by PDO with these options.
pub fn pdo(options: &str) -> String {
    format!(
        "$db = new PDO('mysql:unix_socket={};dbname=site;charset=utf8mb4', 'site', '{PASSWORD}', [{options}]);\n",
        database().socket()
    )
}

pub fn mysqli() -> String {
    format!(
        "$db = mysqli_connect('localhost', 'site', '{PASSWORD}', 'site', 0, '{}');\n",
        database().socket()
    )
}

/// Bytes that a process holds.
pub fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

/// Time that a process has had a processor.
pub fn processor_nanoseconds(pid: u32) -> u64 {
    let numbers = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    numbers.split_whitespace().next().unwrap().parse().unwrap()
}
