//! The exchange against a real PHP-FPM, started for each test on a unix
//! socket in a folder of its own. Fails when PHP-FPM is not installed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastcgi::{
    BodySource, Error, Event, Exchange, NoBody, ParamsEncoder, RequestSpec, ResponseHead,
    Truncation,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;

/// Debian's names, newest first, then the one without a version.
const PROGRAMS: [&str; 4] = [
    "/usr/sbin/php-fpm8.4",
    "/usr/sbin/php-fpm8.2",
    "/usr/sbin/php-fpm8.1",
    "/usr/sbin/php-fpm",
];
/// Far longer than any of these takes; for machines under load.
const TIMEOUT: Duration = Duration::from_secs(30);

struct Fpm {
    master: Child,
    folder: PathBuf,
}

impl Fpm {
    /// One worker, so that every request meets the same process.
    fn start() -> Fpm {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let program = PROGRAMS
            .iter()
            .find(|path| Path::new(path).exists())
            .expect("php-fpm is missing; these tests need it: apt install php-fpm");
        let folder = std::env::temp_dir().join(format!(
            "fastcgi-test-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        fs::create_dir_all(&folder).expect("a folder");
        let is_root = fs::metadata(&folder).expect("the folder").uid() == 0;
        let user = if is_root {
            "user = root\ngroup = root\n"
        } else {
            ""
        };
        let config = format!(
            "[global]\nerror_log = /proc/self/fd/2\n\
             [www]\n{user}listen = {}\npm = static\npm.max_children = 1\n",
            folder.join("fpm.sock").display()
        );
        fs::write(folder.join("fpm.conf"), config).expect("a configuration");
        let mut command = Command::new(program);
        command
            .arg("-n")
            .arg("-F")
            .arg("-y")
            .arg(folder.join("fpm.conf"));
        if is_root {
            command.arg("-R");
        }
        let mut master = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("php-fpm starts");
        let log = BufReader::new(master.stderr.take().expect("piped"));
        // From here on a panic stops the master.
        let fpm = Fpm { master, folder };
        let mut lines = log.lines();
        let ready = lines.any(|line| line.expect("text").contains("ready to handle connections"));
        assert!(ready, "php-fpm ended before it was ready");
        // Keeps the pipe open and empty.
        std::thread::spawn(move || lines.count());
        fpm
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("fpm.sock"))
            .await
            .expect("php-fpm listens")
    }

    fn spec(&self, code: &str, body_bytes: usize) -> RequestSpec {
        let script = self.folder.join("index.php");
        fs::write(&script, format!("<?php {code}")).expect("a script");
        let length = body_bytes.to_string();
        let script = script.to_str().expect("text");
        let method = if body_bytes == 0 { "GET" } else { "POST" };
        let mut params = ParamsEncoder::new();
        for (name, value) in [
            ("SCRIPT_FILENAME", script),
            ("REQUEST_METHOD", method),
            ("CONTENT_LENGTH", &length),
            ("CONTENT_TYPE", "application/octet-stream"),
        ] {
            params.push(name.as_bytes(), value.as_bytes());
        }
        params.push_http_field(b"X-Seen", b"by PHP");
        params.push_http_field(b"Proxy", b"http://evil/");
        RequestSpec {
            params: params.finish().expect("small params"),
            keep_conn: true,
            head_request: false,
            head_limit_bytes: 8192,
        }
    }

    /// Runs `code`; the answer, and the connection if it may be reused.
    async fn run<B: BodySource>(
        &self,
        stream: UnixStream,
        code: &str,
        body_bytes: usize,
        body: B,
    ) -> Result<(PhpResponse, Option<UnixStream>), Error> {
        let mut exchange = Exchange::start(stream, self.spec(code, body_bytes), body);
        let mut answer = PhpResponse::default();
        loop {
            let event = tokio::time::timeout(TIMEOUT, exchange.next())
                .await
                .expect("an answer in time")?;
            match event.expect("an end") {
                Event::Head(head) => answer.head = Some(head),
                Event::Data(data) => answer.body.extend_from_slice(&data),
                Event::Stderr(text) => answer.stderr.extend_from_slice(&text),
                Event::End { app_status, .. } => {
                    assert!(app_status.is_some(), "PHP sends END_REQUEST");
                    return Ok((answer, exchange.into_stream()));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

impl Drop for Fpm {
    /// By TERM: a killed master would leave its workers behind.
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.master.id().cast_signed()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.master.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[derive(Debug, Default)]
struct PhpResponse {
    head: Option<ResponseHead>,
    body: Vec<u8>,
    stderr: Vec<u8>,
}

impl PhpResponse {
    fn status(&self) -> u16 {
        self.head.as_ref().expect("a head").status
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

#[tokio::test]
async fn php_answers_many_requests_over_one_connection() {
    let fpm = Fpm::start();
    let mut stream = fpm.connect().await;
    for (code, status, text) in [
        ("echo 'hello';", 200, "hello"),
        ("http_response_code(404); echo 'gone';", 404, "gone"),
        ("header('Location: /there');", 302, ""),
        ("echo $_SERVER['HTTP_X_SEEN'];", 200, "by PHP"),
        ("var_export(isset($_SERVER['HTTP_PROXY']));", 200, "false"),
        ("header('Content-Length: 3'); echo 'longer';", 200, "lon"),
    ] {
        let (answer, kept) = fpm.run(stream, code, 0, NoBody).await.expect(code);
        assert_eq!(answer.status(), status, "{code}");
        assert_eq!(answer.text(), text, "{code}");
        stream = kept.expect("PHP keeps the connection");
    }
}

#[tokio::test]
async fn large_bodies_travel_both_ways() {
    const BODY_BYTES: usize = 5 << 20;
    let fpm = Fpm::start();
    let body: Vec<u8> = (0..BODY_BYTES).map(|i| (i % 253) as u8).collect();
    let stream = fpm.connect().await;
    let code = "fpassthru(fopen('php://input', 'r'));";
    let (answer, kept) = fpm
        .run(stream, code, BODY_BYTES, Bytes::from(body.clone()))
        .await
        .expect("an echo");
    assert!(answer.body == body, "the body came back as it went");
    assert!(kept.is_some());
}

#[tokio::test]
async fn answer_before_the_body_is_read_does_not_deadlock() {
    const BODY_BYTES: usize = 5 << 20;
    let fpm = Fpm::start();
    let stream = fpm.connect().await;
    // Larger than any socket buffer, and never a look at the input.
    let code = "echo str_repeat('p', 5 << 20);";
    let body = Bytes::from(vec![b'u'; BODY_BYTES]);
    let (answer, _) = fpm
        .run(stream, code, BODY_BYTES, body)
        .await
        .expect("an answer");
    assert_eq!(answer.body.len(), 5 << 20);
}

#[tokio::test]
async fn error_log_arrives_as_stderr() {
    let fpm = Fpm::start();
    let stream = fpm.connect().await;
    let code = "error_log('careful'); echo 'page'; error_log('again');";
    let (answer, kept) = fpm.run(stream, code, 0, NoBody).await.expect("a page");
    assert_eq!(answer.text(), "page");
    let stderr = String::from_utf8_lossy(&answer.stderr).into_owned();
    assert!(
        stderr.contains("careful") && stderr.contains("again"),
        "{stderr}"
    );
    assert!(kept.is_some());
}

#[tokio::test]
async fn worker_killed_within_the_body_truncates_and_before_it_closes() {
    let fpm = Fpm::start();
    let stream = fpm.connect().await;
    let code = "echo 'half'; flush(); exec('kill -9 ' . getmypid());";
    let error = fpm.run(stream, code, 0, NoBody).await.expect_err("killed");
    assert!(
        matches!(
            error,
            Error::Truncated {
                how: Truncation::ConnectionClosed,
                received_bytes: 4,
                ..
            }
        ),
        "{error:?}"
    );
    let stream = fpm.connect().await;
    let code = "exec('kill -9 ' . getmypid());";
    let error = fpm.run(stream, code, 0, NoBody).await.expect_err("killed");
    assert!(error.before_first_byte(), "{error:?}");
}

#[tokio::test]
async fn short_body_is_truncated_and_large_head_refused() {
    let fpm = Fpm::start();
    let code = "header('Content-Length: 10'); echo 'short';";
    let stream = fpm.connect().await;
    let error = fpm.run(stream, code, 0, NoBody).await.expect_err("short");
    assert!(
        matches!(
            error,
            Error::Truncated {
                how: Truncation::RequestEnded,
                received_bytes: 5,
                expected_bytes: Some(10),
            }
        ),
        "{error:?}"
    );
    let code = "header('X: ' . str_repeat('x', 9000));";
    let stream = fpm.connect().await;
    let error = fpm.run(stream, code, 0, NoBody).await.expect_err("large");
    assert!(matches!(error, Error::HeadTooLarge { .. }), "{error:?}");
}
