//! The access log, line by line as nginx writes it, in three formats: for pages, for what
//! is refused, and for what is hardly a request. Where nginx is installed, it serves the
//! same requests beside; elsewhere its lines are those of `nginx.expected`, which
//! `MAYFLY_BLESS=1` writes anew where nginx is there.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program;

const NGINX: &str = "/usr/sbin/nginx";
const PATIENCE: Duration = Duration::from_secs(20);
const EXPECTED: &str = include_str!("nginx.expected");

/// Variables of the second format. Of those behind `?` only this counts: whether there is a
/// value, `-` or nothing.
const COLUMNS: &[&str] = &[
    "remote_addr",
    "remote_user",
    "request",
    "status",
    "?body_bytes_sent",
    "http_referer",
    "http_user_agent",
    "http_x_forwarded_for",
    "?request_length",
    "?request_time",
    "host",
    "server_name",
    "server_port",
    "server_protocol",
    "request_method",
    "uri",
    "document_uri",
    "args",
    "query_string",
    "is_args",
    "request_uri",
    "scheme",
    "https",
    "content_type",
    "content_length",
    "?upstream_addr",
    "upstream_status",
    "?upstream_response_time",
    "upstream_cache_status",
    "?upstream_response_length",
    "?gzip_ratio",
    "limit_req_status",
    "limit_conn_status",
    "sent_http_location",
    "sent_http_x_none",
    "http_none",
    "sent_http_allow",
    "sent_http_content_range",
    "cookie_a",
    "arg_a",
    "arg_none",
    "request_completion",
    "pipe",
    "connection_requests",
    "document_root",
    "request_filename",
    "request_body",
    "request_body_file",
    "proxy_host",
    "proxy_port",
    "proxy_add_x_forwarded_for",
    "fastcgi_script_name",
    "fastcgi_path_info",
    "realip_remote_addr",
    "realip_remote_port",
    "proxy_protocol_addr",
    "?msec",
    "?bytes_sent",
    "?request_id",
    "?time_local",
    "?time_iso8601",
    "remote_port",
    "server_addr",
    "slice_range",
    "ssl_protocol",
    "ssl_cipher",
    "http2",
    "made",
    "written",
    "limit_rate",
    "?hostname",
    "upstream_http_x_none",
    "sent_trailer_none",
    "http_host",
];

fn configuration(folder: &str, files: &str, closed: u16) -> String {
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|name| format!("{0}=${0}", name.trim_start_matches('?')))
        .collect();
    let json: Vec<String> = [
        "request",
        "status",
        "http_user_agent",
        "args",
        "remote_user",
        "http_none",
    ]
    .iter()
    .map(|name| format!("\"{name}\":\"${name}\""))
    .collect();
    format!(
        "map $arg_a $made {{ default \"\"; 1 one; }}\n\
         log_format columns '{}';\n\
         log_format as_json escape=json '{{{}}}';\n\
         log_format as_it_is escape=none '$request|$http_user_agent|$http_none';\n\
         access_log {folder}/combined.log;\n\
         access_log {folder}/columns.log columns;\n\
         access_log {folder}/json.log as_json;\n\
         access_log {folder}/raw.log as_it_is;\n\
         limit_req_zone $server_name zone=slow:1m rate=1r/m;\n\
         server_tokens off; lingering_timeout 100ms; client_max_body_size 10; large_client_header_buffers 2 1k;\n\
         server {{\n listen unix:{folder}/http; server_name site.test;\n root {files};\n\
           set $written $arg_a;\n\
           location = /mark {{ return 204; }}\n\
           location /text {{ return 200 text; }}\n\
           location /moved {{ return 301 /text; }}\n\
           location /gone {{ return 410; }}\n\
           location /closed {{ return 444; }}\n\
           location /rewritten {{ rewrite ^ /a.txt?b=c last; }}\n\
           location /redirect {{ rewrite ^ /a.txt permanent; }}\n\
           location /denied {{ deny all; }}\n\
           location /asked {{ auth_basic site; auth_basic_user_file {files}/users; }}\n\
           location /page {{ error_page 404 = /a.txt; }}\n\
           location /slow {{ limit_req zone=slow; return 200; }}\n\
           location /down {{ proxy_pass http://127.0.0.1:{closed}; }}\n\
           location /internal {{ internal; }}\n\
         }}\n",
        columns.join("|"),
        json.join(",")
    )
}

/// Names and bytes of the requests; each is the first of its connection.
fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&'static str, Vec<u8>)> = Vec::new();
    let plain = |line: &str, fields: &str| {
        format!("{line} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n{fields}\r\n")
            .into_bytes()
    };
    for (name, line, fields) in [
        ("file", "GET /a.txt", ""),
        ("head", "HEAD /a.txt", ""),
        (
            "fields",
            "GET /a.txt?a=1&b",
            "Referer: http://x.test/\r\nUser-Agent: me \"quoted\" \\ \u{e9}\r\nX-Forwarded-For: 192.0.2.1\r\nCookie: a=b\r\n",
        ),
        (
            "empty fields",
            "GET /a.txt?a=&",
            "Referer:\r\nUser-Agent: \r\nCookie: a=\r\nX-Forwarded-For:\r\n",
        ),
        ("question mark", "GET /a.txt?", ""),
        ("range", "GET /a.txt", "Range: bytes=1-2\r\n"),
        ("bad range", "GET /a.txt", "Range: bytes=90-\r\n"),
        ("not modified", "GET /a.txt", "If-None-Match: *\r\n"),
        ("failed condition", "GET /a.txt", "If-Match: \"x\"\r\n"),
        ("missing", "GET /none", ""),
        ("missing page", "GET /page/none", ""),
        ("folder", "GET /folder", ""),
        ("folder without index", "GET /folder/", ""),
        ("text", "GET /text", ""),
        ("moved", "GET /moved", ""),
        ("gone", "GET /gone", ""),
        ("closed", "GET /closed", ""),
        ("rewritten", "GET /rewritten?x=y", ""),
        ("redirect", "GET /redirect", ""),
        ("denied", "GET /denied", ""),
        ("asked", "GET /asked", ""),
        (
            "wrong password",
            "GET /asked",
            "Authorization: Basic YW5uYTp3cm9uZw==\r\n",
        ),
        (
            "odd credentials",
            "GET /asked",
            "Authorization: Basic !!!\r\n",
        ),
        (
            "name without password",
            "GET /a.txt",
            "Authorization: Basic YW5uYTo=\r\n",
        ),
        ("slow, first", "GET /slow", ""),
        ("slow, second", "GET /slow", ""),
        ("upstream is down", "GET /down", ""),
        ("internal", "GET /internal", ""),
        ("post to a file", "POST /a.txt", "Content-Length: 2\r\n"),
        ("large body", "POST /text", "Content-Length: 100\r\n"),
        ("put", "PUT /text", ""),
        ("unknown method", "BREW /text", ""),
        ("escapes", "GET /%61.txt%3fx?%22", ""),
        ("bad escape", "GET /%zz", ""),
        ("out of the root", "GET /../../x", ""),
        ("double slash", "GET //a.txt//", ""),
        ("absolute", "GET http://other.test:81/a.txt", ""),
        ("fragment", "GET /a.txt#x?y", ""),
        ("asterisk", "OPTIONS *", ""),
        ("trace", "TRACE /text", ""),
        ("connect", "CONNECT site.test:80", ""),
        (
            "two lengths",
            "POST /text",
            "Content-Length: 1\r\nContent-Length: 2\r\n",
        ),
        (
            "length and coding",
            "POST /text",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        ),
        ("unknown coding", "POST /text", "Transfer-Encoding: odd\r\n"),
        ("bad length", "POST /text", "Content-Length: -1\r\n"),
        ("two hosts", "GET /text", "Host: b.test\r\n"),
        ("space before a colon", "GET /text", "A : b\r\n"),
        ("field without a colon", "GET /text", "odd\r\n"),
        ("folded field", "GET /text", "A: b\r\n c\r\n"),
        (
            "expectation",
            "POST /text",
            "Expect: nothing\r\nContent-Length: 0\r\n",
        ),
    ] {
        all.push((name, plain(line, fields)));
    }
    let long = "x".repeat(1500);
    for (name, text) in [
        ("no host", "GET /text HTTP/1.1\r\n\r\n".to_owned()),
        (
            "bad host",
            "GET /text HTTP/1.1\r\nHost: a/b\r\n\r\n".to_owned(),
        ),
        ("http/1.0", "GET /text HTTP/1.0\r\n\r\n".to_owned()),
        ("http/0.9", "GET /text\r\n".to_owned()),
        (
            "http/2 without tls",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ),
        ("http/9.9", "GET /text HTTP/9.9\r\n\r\n".to_owned()),
        ("no version", "GET /text HTTP\r\n\r\n".to_owned()),
        (
            "lower case method",
            "get /text HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        ),
        ("nonsense", "nonsense\r\n\r\n".to_owned()),
        ("one word", "x\r\n\r\n".to_owned()),
        (
            "long target",
            format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
        ),
        (
            "long field",
            format!("GET /text HTTP/1.1\r\nHost: a\r\nA: {long}\r\n\r\n"),
        ),
        ("half a line", "GET /te".to_owned()),
        (
            "half a head",
            "GET /text HTTP/1.1\r\nHost: a\r\nA:".to_owned(),
        ),
        (
            "half a body",
            "POST /down HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab".to_owned(),
        ),
        (
            "bad chunk",
            "POST /down HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
        ),
        ("nothing", String::new()),
        ("line ends", "\r\n\r\n".to_owned()),
        (
            "line ends first",
            "\r\n\r\nGET /text HTTP/1.0\r\n\r\n".to_owned(),
        ),
        (
            "two requests",
            "GET /text?1 HTTP/1.1\r\nHost: a\r\n\r\nGET /text?2 HTTP/1.0\r\n\r\n".to_owned(),
        ),
    ] {
        all.push((name, text.into_bytes()));
    }
    all.push((
        "tls",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(),
    ));
    all.push((
        "nul",
        b"GET /text\0x HTTP/1.0\r\nUser-Agent: a\0b\r\n\r\n".to_vec(),
    ));
    all.push((
        "bytes",
        b"GET /\xff\xfe\"x HTTP/1.0\r\nUser-Agent: \xff\x01\r\n\r\n".to_vec(),
    ));
    all
}

/// Whose client says nothing more and waits; the others wait for an answer.
const ENDING: [&str; 5] = [
    "half a line",
    "half a head",
    "half a body",
    "nothing",
    "line ends",
];

/// A server on `folder/http` that is stopped when dropped.
struct Server {
    child: Child,
    folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(folder: &Path, command: &mut Command) -> Server {
        let said = std::fs::File::create(folder.join("stderr")).expect("a file");
        let child = command.stdin(Stdio::null()).stderr(said).spawn();
        let mut server = Server {
            child: child.expect("a server"),
            folder: folder.to_owned(),
        };
        let begun = Instant::now();
        while UnixStream::connect(folder.join("http")).is_err() {
            let said = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
            assert!(!matches!(server.child.try_wait(), Ok(Some(_))), "{said}");
            assert!(begun.elapsed() < PATIENCE, "no start: {said}");
            std::thread::sleep(Duration::from_millis(5));
        }
        // Those that only knocked leave no line.
        server.lines_of(&[], true);
        server
    }

    fn log(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).unwrap_or_default()
    }

    fn send(&self, bytes: &[u8], ends: bool) {
        let mut stream = UnixStream::connect(self.folder.join("http")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        // It may have heard enough.
        let _ = stream.write_all(bytes);
        if ends {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let _ = stream.read_to_end(&mut Vec::new());
    }

    /// The lines that a request leaves in each log: those before the line of another that
    /// is sent when the first is over.
    fn lines_of(&self, bytes: &[u8], ends: bool) -> Vec<(&'static str, String)> {
        const LOGS: [&str; 4] = ["combined.log", "columns.log", "json.log", "raw.log"];
        let before: Vec<usize> = LOGS.map(|name| self.log(name).len()).to_vec();
        self.send(bytes, ends);
        self.send(b"GET /mark HTTP/1.0\r\n\r\n", false);
        let begun = Instant::now();
        let mut found = Vec::new();
        for (name, before) in LOGS.into_iter().zip(before) {
            loop {
                let log = self.log(name);
                let new = String::from_utf8_lossy(&log[before..]).into_owned();
                let lines: Vec<&str> = new.lines().collect();
                if let Some(mark) = lines
                    .iter()
                    .position(|line| line.contains("GET /mark HTTP/1.0"))
                {
                    found.extend(lines[..mark].iter().map(|line| (name, (*line).to_owned())));
                    break;
                }
                assert!(begun.elapsed() < PATIENCE, "no line in {name}: {new}");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        found
    }

    /// What all requests leave, as the expected file has it.
    fn transcript(&self, files: &str, closed: u16) -> String {
        let mut text = String::new();
        for (name, bytes) in requests() {
            let _ = writeln!(text, "== {name}");
            let ends = ENDING.contains(&name);
            for (log, line) in self.lines_of(&bytes, ends) {
                let own = self.folder.display().to_string();
                let line = line.replace(files, "%%").replace(&own, "%%");
                let line = visible(&line).replace(&format!("{closed}"), "PORT");
                match log {
                    "columns.log" => columns(&mut text, &line),
                    "combined.log" => {
                        let _ = writeln!(text, "{log}: {}", combined(&line));
                    }
                    _ => {
                        let _ = writeln!(text, "{log}: {line}");
                    }
                }
            }
        }
        text
    }
}

/// Without control characters: the expected file is a text.
fn visible(line: &str) -> String {
    let shown = |char: char| match char.is_control() {
        true => char.escape_default().to_string(),
        false => char.to_string(),
    };
    line.chars().map(shown).collect()
}

/// One line for each column that says something.
fn columns(text: &mut String, line: &str) {
    let mut rest = line;
    for (at, name) in COLUMNS.iter().enumerate() {
        let start = format!("{}=", name.trim_start_matches('?'));
        rest = rest.strip_prefix(&start).unwrap_or(rest);
        let end = COLUMNS
            .get(at + 1)
            .and_then(|next| rest.find(&format!("|{}=", next.trim_start_matches('?'))));
        let (value, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind.strip_prefix('|').unwrap_or(behind);
        let shown = match (name.starts_with('?'), value) {
            (true, value) if !["", "-"].contains(&value) => "VALUE",
            (_, value) => value,
        };
        if shown != "-" {
            let _ = writeln!(text, "  {name} [{shown}]");
        }
    }
}

/// Without the time and, where a page of the server's own is sent, its length.
fn combined(line: &str) -> String {
    let start = line.find('[').unwrap_or(0);
    let end = line.find(']').unwrap_or(0);
    let (head, tail) = (&line[..start], &line[end.min(line.len())..]);
    let mut parts: Vec<String> = tail.split("\" ").map(str::to_owned).collect();
    if let Some(numbers) = parts.iter_mut().find(|part| {
        let mut words = part.split(' ');
        words
            .next()
            .is_some_and(|word| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit()))
    }) {
        let status = numbers[..3].to_owned();
        let rest: Vec<&str> = numbers.split(' ').skip(2).collect();
        let has_page = status.as_str() >= "300" && !numbers.starts_with("304 0");
        let length = if has_page {
            "N"
        } else {
            numbers.split(' ').nth(1).unwrap_or("")
        };
        *numbers = format!("{status} {length} {}", rest.join(" "));
    }
    format!("{head}{}", parts.join("\" "))
}

#[test]
fn lines_are_those_of_nginx_for_pages_and_for_what_is_refused() {
    let folder = testkit::serving::Serving::folder();
    let place = folder.path().canonicalize().expect("a folder");
    let files = place.join("files");
    std::fs::create_dir_all(files.join("folder")).expect("a folder");
    std::fs::write(files.join("a.txt"), "0123456789").expect("a file");
    std::fs::write(files.join("users"), "anna:{PLAIN}secret\n").expect("a file");
    let files = files.to_str().expect("a plain path");
    // Nobody listens on a port that was given back a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = listener.local_addr().expect("an address").port();
    drop(listener);
    let prepare = |name: &str, main: &str| {
        let own = place.join(name);
        std::fs::create_dir(&own).expect("a folder");
        let shown = own.to_str().expect("a plain path").to_owned();
        let text = format!(
            "daemon off; pid {shown}/pid; error_log {shown}/error.log; {main}\nevents {{}}\nhttp {{\n{}}}\n",
            configuration(&shown, files, closed)
        );
        std::fs::write(own.join("test.conf"), text).expect("a file");
        own
    };
    let root = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let expected = if Path::new(NGINX).exists() {
        let own = prepare(
            "nginx",
            &format!("{root} worker_processes 1; master_process off;"),
        );
        let temp = own.join("temp");
        std::fs::create_dir(&temp).expect("a folder");
        let mut command = Command::new(NGINX);
        command
            .arg("-p")
            .arg(&own)
            .arg("-c")
            .arg(own.join("test.conf"));
        let server = Server::start(&own, &mut command);
        let text = server.transcript(files, closed);
        if std::env::var_os("MAYFLY_BLESS").is_some_and(|value| value == "1") {
            let file = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/program/access_log/nginx.expected");
            std::fs::write(file, &text).expect("the expected file");
        }
        text
    } else {
        eprintln!("no {NGINX}: what it wrote when this was recorded is expected");
        EXPECTED.to_owned()
    };
    let own = prepare("mayfly", root);
    let mut command = Command::new(program());
    command
        .arg("-p")
        .arg(&own)
        .arg("-c")
        .arg(own.join("test.conf"));
    let server = Server::start(&own, &mut command);
    let found = server.transcript(files, closed);
    let differences = differences(&expected, &found);
    assert!(differences.is_empty(), "nginx - and ours +\n{differences}");
}

/// Where we mean to differ: request, columns or logs, and why.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (
        "failed condition",
        &["request_completion"],
        "a response that was sent whole is complete",
    ),
    (
        "absolute",
        &["http_host"],
        "the host of the target is what counts (RFC 9112 section 3.2.2)",
    ),
    (
        "connect",
        &["combined.log", "json.log", "status"],
        "405, as newer nginx",
    ),
    (
        "field without a colon",
        &["*"],
        "refused: it may be read as a field elsewhere",
    ),
    (
        "line ends",
        &["*"],
        "what may stand between requests is none (RFC 9112 section 2.2)",
    ),
    ("space before a colon", FIELDS, NOT_WHOLE),
    ("folded field", FIELDS, NOT_WHOLE),
    ("long field", FIELDS, NOT_WHOLE),
    ("half a head", FIELDS, NOT_WHOLE),
    ("half a line", FIELDS, NOT_WHOLE),
    ("http/9.9", &["server_protocol"], NOT_WHOLE),
    ("no version", &["server_protocol"], NOT_WHOLE),
    (
        "long target",
        &["combined.log", "json.log", "raw.log", "request"],
        "nginx cuts the line at its buffer",
    ),
    (
        "half a body",
        &["request_completion", "request_body"],
        "the refusal was sent whole, and what came of the body is let go",
    ),
    (
        "bad chunk",
        &["content_length"],
        "what came of the body is let go",
    ),
];

const FIELDS: &[&str] = &["host", "http_host", "connection_requests"];
const NOT_WHOLE: &str = "of a head that was not read whole no more than the line is known";

/// Where a path is not known, an error page is looked for below `/`.
const PATHS_WHERE_REFUSED: &[&str] = &["request_filename", "fastcgi_script_name"];

/// Of what nginx refuses unread, we have read the line and may say more.
const MORE_WHERE_REFUSED: &[&str] = &[
    "server_protocol",
    "request_method",
    "uri",
    "document_uri",
    "request_uri",
    "args",
    "query_string",
    "http_host",
    "request_filename",
    "fastcgi_script_name",
];

/// What one request's lines differ by, for all requests.
fn differences(expected: &str, found: &str) -> String {
    let parts = |text: &str| -> Vec<String> { text.split("== ").map(str::to_owned).collect() };
    let mut shown = String::new();
    let (expected, found) = (parts(expected), parts(found));
    assert_eq!(expected.len(), found.len(), "the same requests");
    for (expected, found) in expected.iter().zip(&found) {
        let name = expected.lines().next().unwrap_or_default();
        let label = |line: &str| -> String {
            let end = line.trim_start().find([':', ' ']).unwrap_or(line.len());
            line.trim_start()[..end].to_owned()
        };
        let is_known = |line: &str| {
            let label = label(line);
            let known = |columns: &&[&str]| columns.contains(&"*") || columns.contains(&&*label);
            KNOWN
                .iter()
                .any(|(request, columns, _)| *request == name && known(columns))
        };
        let is_refused = ["400", "405", "414", "505"]
            .iter()
            .any(|status| expected.contains(&format!("  status [{status}]")));
        let says_more = |line: &str| {
            let label = label(line);
            let start = format!("\n  {label} [");
            let has_no_path = !expected.contains("\n  uri [");
            is_refused && has_no_path && PATHS_WHERE_REFUSED.contains(&&*label)
                || is_refused && MORE_WHERE_REFUSED.contains(&&*label) && !expected.contains(&start)
        };
        let own = |one: &str, other: &str, sign: char| -> String {
            let other: Vec<&str> = other.lines().collect();
            let lines = one
                .lines()
                .filter(|line| !other.contains(line) && !is_known(line))
                .filter(|line| !says_more(line));
            lines.map(|line| format!("  {sign}{line:.200}\n")).collect()
        };
        let lines = own(expected, found, '-') + &own(found, expected, '+');
        if !lines.is_empty() {
            let _ = write!(shown, "{name}\n{lines}");
        }
    }
    shown
}
