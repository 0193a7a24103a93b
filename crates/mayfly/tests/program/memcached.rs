//! Pages that an application put into memcached, served without it; through
//! Debian's memcached, and through peers that answer as they should not.

use std::process::{Command, Stdio};

use testkit::fake_php::{FakePhp, Script};
use testkit::process::KilledOnDrop;
use testkit::running::RunningServer;
use testkit::wait::until;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::start;

const MEMCACHED: &str = "/usr/bin/memcached";

/// memcached on a socket in a server's folder; stopped when dropped.
pub struct Memcached {
    _process: KilledOnDrop,
    socket: std::path::PathBuf,
}

impl Memcached {
    /// `None` if there is no memcached on this machine.
    async fn start(server: &RunningServer, name: &str) -> Option<Memcached> {
        Memcached::start_at(server.path(name)).await
    }

    /// It listens at this path, which anybody may connect to.
    pub async fn start_at(socket: std::path::PathBuf) -> Option<Memcached> {
        if !std::path::Path::new(MEMCACHED).exists() {
            eprintln!("skipped: no {MEMCACHED}");
            return None;
        }
        let child = Command::new(MEMCACHED)
            .args(["-u", "root", "-t", "1", "-a", "777", "-s"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .expect("memcached starts");
        let listens = || std::os::unix::net::UnixStream::connect(&socket).is_ok();
        until("memcached listens", listens).await;
        Some(Memcached {
            _process: KilledOnDrop(child),
            socket,
        })
    }

    pub async fn say(&self, command: &[u8]) -> String {
        let stream = UnixStream::connect(&self.socket).await;
        let mut stream = BufReader::new(stream.expect("memcached listens"));
        stream.write_all(command).await.expect("memcached reads");
        let mut line = String::new();
        stream.read_line(&mut line).await.expect("an answer");
        line
    }

    async fn set(&self, key: &str, flags: u32, value: &[u8]) {
        let command = format!("set {key} {flags} 0 {}\r\n", value.len());
        let line = self
            .say(&[command.as_bytes(), value, b"\r\n"].concat())
            .await;
        assert_eq!(line, "STORED\r\n");
    }

    /// Connections that were ever made.
    async fn connections(&self) -> usize {
        let stream = UnixStream::connect(&self.socket).await;
        let mut stream = BufReader::new(stream.expect("memcached listens"));
        stream
            .write_all(b"stats\r\n")
            .await
            .expect("memcached reads");
        let mut line = String::new();
        loop {
            line.clear();
            stream.read_line(&mut line).await.expect("an answer");
            assert_ne!(line, "END\r\n");
            if let Some(number) = line.strip_prefix("STAT total_connections ") {
                return number.trim().parse().expect("a number");
            }
        }
    }
}

async fn site(http: &str, directives: &str) -> RunningServer {
    let server = format!("{http}\nserver {{ listen unix:%%/http; {directives} }}");
    start(&server).await
}

/// A peer that answers each command with `answer` and closes.
fn invalid(server: &RunningServer, name: &str, answer: &'static [u8]) {
    let listener = UnixListener::bind(server.path(name)).expect("a socket");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut command = [0; 256];
            let _ = stream.read(&mut command).await;
            let _ = stream.write_all(answer).await;
        }
    });
}

#[tokio::test]
async fn pages_come_from_memcached_and_what_it_lacks_from_php() {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "Content-Type: text/html\r\n",
            format!("php {}", request.param("URI")),
        )
    })
    .await;
    let server = site(
        "",
        &format!(
            "types {{ text/css css; }} default_type text/html;\n\
             location / {{ set $memcached_key \"$uri?$args\"; memcached_pass unix:%%/memd; error_page 404 502 504 = @php; }}\n\
             location /bare {{ set $memcached_key $uri; memcached_pass unix:%%/memd; }}\n\
             location /unset {{ memcached_pass unix:%%/memd; }}\n\
             location @php {{ fastcgi_pass {}; fastcgi_param URI $uri; }}",
            php.address()
        ),
    )
    .await;
    // No server listens there yet: PHP stands in for that, too.
    assert_eq!(server.target().get("/page?a=b").await.text(), "php /page");
    assert_eq!(server.target().get("/bare").await.status, 502);
    let Some(memcached) = Memcached::start(&server, "memd").await else {
        return;
    };
    let long = vec![b'x'; 900_000];
    memcached.set("/page?a=b", 0, b"stored").await;
    memcached.set("/style.css?", 0, b"a {}").await;
    memcached.set("/with%20space%25?", 0, b"escaped").await;
    memcached.set("/empty?", 0, b"").await;
    memcached.set("/long?", 0, &long).await;
    let target = server.target();
    for (path, content_type, body) in [
        ("/page?a=b", "text/html", &b"stored"[..]),
        ("/style.css", "text/css", b"a {}"),
        ("/with%20space%25", "text/html", b"escaped"),
        ("/empty", "text/html", b""),
        ("/long", "text/html", &long),
        ("/page?a=c", "text/html", b"php /page"),
    ] {
        let reply = target.get(path).await;
        assert_eq!(
            (reply.status, reply.field("content-type")),
            (200, content_type),
            "{path}"
        );
        assert!(reply.is_complete && reply.body == body, "{path}");
    }
    let head = target.ask("HEAD", "/page?a=b", "", "").await;
    assert_eq!((head.status, head.field("content-length")), (200, "6"));
    assert_eq!(target.get("/bare").await.status, 404);
    assert_eq!(target.get("/unset").await.status, 500);
    assert!(
        server
            .error_log()
            .contains("the \"$memcached_key\" variable is not set")
    );
    assert!(
        server
            .error_log()
            .contains("key: \"/bare\" was not found by memcached")
    );
    assert_eq!(target.ask("POST", "/bare", "", "body").await.status, 405);
}

#[tokio::test]
async fn values_marked_as_compressed_are_sent_so_or_expanded() {
    use std::io::Write;
    let server = site(
        "",
        "gunzip on; location / { set $memcached_key $uri; memcached_gzip_flag 2; memcached_pass unix:%%/memd; }",
    )
    .await;
    let Some(memcached) = Memcached::start(&server, "memd").await else {
        return;
    };
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"plain text").expect("memory");
    let compressed = encoder.finish().expect("memory");
    memcached.set("/page", 3, &compressed).await;
    memcached.set("/other", 1, b"as it is").await;
    let gzip = "Accept-Encoding: gzip\r\n";
    let reply = server.target().get_with("/page", gzip).await;
    assert_eq!(
        (reply.field("content-encoding"), &reply.body),
        ("gzip", &compressed)
    );
    assert_eq!(server.target().get("/page").await.text(), "plain text");
    let reply = server.target().get_with("/other", gzip).await;
    assert_eq!(
        (reply.has("content-encoding"), reply.text().as_str()),
        (false, "as it is")
    );
}

#[tokio::test]
async fn connections_are_kept_where_an_answer_was_read_to_its_end() {
    let server = site(
        "upstream memd { server unix:%%/memd; keepalive 1; }",
        "location / { set $memcached_key $uri; memcached_pass memd; }",
    )
    .await;
    let Some(memcached) = Memcached::start(&server, "memd").await else {
        return;
    };
    memcached.set("/page", 0, b"stored").await;
    let before = memcached.connections().await;
    let target = server.target();
    for path in ["/page", "/missing", "/page", "/missing", "/page"] {
        target.get(path).await;
    }
    // One of them asks for the number.
    assert_eq!(memcached.connections().await, before + 2);
    target.ask("HEAD", "/page", "", "").await;
    assert_eq!(target.get("/page").await.text(), "stored");
    assert_eq!(memcached.connections().await, before + 4);
}

#[tokio::test]
async fn another_server_is_asked_as_the_configuration_says() {
    let server = site(
        "upstream memd { server unix:%%/one; server unix:%%/two; }\n\
         upstream invalid { server unix:%%/odd; server unix:%%/two; }",
        "set $memcached_key $uri;\n\
         location /any { memcached_pass memd; memcached_next_upstream not_found; }\n\
         location /invalid { memcached_pass invalid; memcached_next_upstream invalid_response; }\n\
         location /one { memcached_pass invalid; memcached_next_upstream off; }",
    )
    .await;
    let (Some(_one), Some(two)) = (
        Memcached::start(&server, "one").await,
        Memcached::start(&server, "two").await,
    ) else {
        return;
    };
    invalid(&server, "odd", b"SERVER_ERROR no\r\n");
    two.set("/any", 0, b"second").await;
    two.set("/invalid", 0, b"second").await;
    let target = server.target();
    for _ in 0..4 {
        assert_eq!(target.get("/any").await.text(), "second");
        assert_eq!(target.get("/invalid").await.text(), "second");
    }
    assert_eq!(target.get("/any/missing").await.status, 404);
}

#[tokio::test]
async fn invalid_answers_are_an_error_or_truncated() {
    let server = site(
        "",
        "location / { set $memcached_key k; memcached_pass unix:%%/$arg_peer; memcached_read_timeout 10s; }",
    )
    .await;
    for (name, answer, why) in [
        (
            "error",
            &b"ERROR\r\n"[..],
            "memcached sent invalid response: \"ERROR\"",
        ),
        (
            "other",
            b"VALUE other 0 1\r\na\r\nEND\r\n",
            "memcached sent invalid key in response \"VALUE other 0 1\"",
        ),
        (
            "number",
            b"VALUE k 0 x\r\na\r\nEND\r\n",
            "memcached sent invalid flags or length",
        ),
        ("silent", b"", "memcached prematurely closed connection"),
    ] {
        invalid(&server, name, answer);
        let reply = server.target().get(&format!("/?peer={name}")).await;
        assert_eq!(reply.status, 502, "{name}");
        assert!(
            server.error_log().contains(why),
            "{name}: {}",
            server.error_log()
        );
    }
    invalid(&server, "short", b"VALUE k 0 8\r\nSEE");
    let reply = server.target().get("/?peer=short").await;
    assert_eq!((reply.status, reply.is_complete), (200, false));
    assert!(server.error_log().contains("after 3 of 8 bytes"));
    // All of the value is there: bytes behind it concern the connection.
    invalid(
        &server,
        "extra",
        b"VALUE k 0 8\r\nSEE-THIS\r\nEND\r\n\0and more",
    );
    assert_eq!(server.target().get("/?peer=extra").await.text(), "SEE-THIS");
}
