//! Visits of pages that visitors may share: the runs of the application that each visit costs, and whether each
//! visitor gets the application's answer to their own request.
//!
//! An *own run* is a run of the application for a visitor's own request. A *shared run* is one for a
//! request that the server writes for many visitors. Each visit has a mark, a number within its
//! Referer or User-Agent; own runs carry the mark, shared runs do not.

mod crowd;
mod evidence;
pub mod explained;
mod old_copies;
mod one_run;
pub mod property;
mod random_applications;
mod seven_faults;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use control::PurgeRequest;
use testkit::client::{Client, Reply};
use testkit::fake_http::{FakeHttp, Request, Script};
use testkit::process::free_port;
use testkit::serving::FolderServer;
use tokio::net::TcpSocket;

use crate::program;
use crate::serve::expanded;

/// The number of one visit. Seven digits that begin with a 9 stand in no other field. After a million visits the numbers
/// begin again: by then the application of the first ones has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(pub u32);

impl Mark {
    pub fn next() -> Mark {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Mark(9_000_000 + COUNT.fetch_add(1, Relaxed) % 1_000_000)
    }

    /// The mark in the head of a request, if it has one.
    pub fn of(head: &str) -> Option<Mark> {
        let mut numbers = head.split(|letter: char| !letter.is_ascii_digit());
        let number = numbers.find(|digits| digits.len() == 7 && digits.starts_with('9'))?;
        number.parse().ok().map(Mark)
    }
}

/// A run of the application.
pub struct Run {
    host: String,
    mark: Option<Mark>,
    head: String,
}

/// An application that records its runs.
pub struct Application {
    upstream: FakeHttp,
    runs: Arc<Mutex<Vec<Run>>>,
}

impl Application {
    pub async fn start(answer: impl Fn(&Request) -> Script + Send + Sync + 'static) -> Application {
        let runs = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&runs);
        let upstream = FakeHttp::start(move |request| {
            record.lock().expect("no panic").push(Run {
                host: request.field("host").to_owned(),
                mark: Mark::of(&request.head),
                head: request.head.clone(),
            });
            answer(request)
        })
        .await;
        Application { upstream, runs }
    }

    fn count(&self, is_counted: impl Fn(&Run) -> bool) -> usize {
        let runs = self.runs.lock().expect("no panic");
        runs.iter().filter(|run| is_counted(run)).count()
    }

    pub fn runs(&self) -> usize {
        self.count(|_| true)
    }

    fn own_runs(&self, mark: Mark) -> usize {
        self.count(|run| run.mark == Some(mark))
    }

    /// Shared runs for a host.
    fn shared_runs(&self, host: &str) -> usize {
        self.count(|run| run.mark.is_none() && run.host == host)
    }

    /// The head of the request of the last run.
    fn last_head(&self) -> String {
        let runs = self.runs.lock().expect("no panic");
        runs.last().map(|run| run.head.clone()).unwrap_or_default()
    }
}

/// An answer with a length; `line` is status and reason.
pub fn answer_text(line: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {line}\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
}

/// A visitor who is given a session has pages of their own: pages shared in spite of a session are tested in
/// `guests`.
const OWN_SESSIONS: &str = "--guest-sessions=off";
const SHARED_SESSIONS: &str = "--guest-sessions=on";

/// `mayfly serve` that listens on a port as well.
pub struct Site {
    server: FolderServer,
    pub port: u16,
}

impl Site {
    /// In front of an application; pages are kept for `ttl`.
    pub async fn before(application: &Application, ttl: &str) -> Site {
        Site::with_sessions(application, ttl, OWN_SESSIONS).await
    }

    /// Like [`Self::before`], with guests who share pages in spite of their sessions.
    pub async fn of_guests(application: &Application, ttl: &str) -> Site {
        Site::with_sessions(application, ttl, SHARED_SESSIONS).await
    }

    /// Like [`Self::of_guests`], with the application's `Cache-Control` counted in any case.
    pub async fn of_guests_strictly(application: &Application, ttl: &str) -> Site {
        Site::with_sessions(application, ttl, "--guest-sessions=strict").await
    }

    async fn with_sessions(application: &Application, ttl: &str, sessions: &str) -> Site {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let url = application.upstream.url();
        let arguments = ["--ttl", ttl, "--listen", &listen, sessions];
        let server = FolderServer::start(program(), &url, &arguments).await;
        Site { server, port }
    }

    /// With a PHP of its own, for a site with these files.
    pub async fn with_php(files: &[(&str, &str)], ttl: &str) -> Site {
        Site::with_php_and_sessions(files, ttl, OWN_SESSIONS).await
    }

    /// Like [`Self::with_php`], with guests who share pages in spite of their sessions.
    pub async fn of_guests_with_php(files: &[(&str, &str)], ttl: &str) -> Site {
        Site::with_php_and_sessions(files, ttl, SHARED_SESSIONS).await
    }

    /// Like [`Site::of_guests_with_php`], where PHP reports its reads and what it writes into sessions.
    pub async fn of_reported_guests(files: &[(&str, &str)], ttl: &str) -> Site {
        Site::with_php_options(files, ttl, &[SHARED_SESSIONS, "--learn=watch"]).await
    }

    async fn with_php_and_sessions(files: &[(&str, &str)], ttl: &str, sessions: &str) -> Site {
        Site::with_php_options(files, ttl, &[sessions]).await
    }

    async fn with_php_options(files: &[(&str, &str)], ttl: &str, options: &[&str]) -> Site {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let arguments = ["--ttl", ttl, "--workers", "2", "--listen", &listen];
        let arguments = [&arguments[..], options].concat();
        let server = FolderServer::start_site(program(), files, &arguments).await;
        Site { server, port }
    }

    /// A GET for `site.test` from 127.0.0.`from`.
    async fn get(&self, from: u8, path: &str, fields: &str) -> Reply {
        self.ask(from, &format!("GET {path}"), "site.test", fields)
            .await
    }

    /// `line` is method and path.
    async fn ask(&self, from: u8, line: &str, host: &str, fields: &str) -> Reply {
        let request = request(line, host, fields);
        ask_port(self.port, from, &request).await
    }

    /// Removes all stored pages.
    pub async fn purge(&self) {
        let everything = PurgeRequest {
            everything: true,
            ..PurgeRequest::default()
        };
        let purged = control::client::purge(&self.server.control(), &everything).await;
        purged.expect("purged");
    }
}

fn request(line: &str, host: &str, fields: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n")
}

/// One request to a port of this machine from 127.0.0.`from`. The body of the reply is expanded.
pub async fn ask_port(port: u16, from: u8, request: &str) -> Reply {
    let socket = TcpSocket::new_v4().expect("a socket");
    let source = SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0));
    socket.bind(source).expect("an address of this machine");
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = socket.connect(server).await.expect("the server listens");
    let mut client = Client::over(stream);
    client.send(request).await;
    let is_head = request.starts_with("HEAD ");
    let mut reply = client.receive(is_head).await.expect("a response");
    if reply.has("content-encoding") && reply.is_complete && !reply.body.is_empty() {
        reply.body = expanded(&reply).into_bytes();
    }
    reply
}

/// Whether no run of the application was needed for an answer.
pub fn is_from_memory(reply: &Reply) -> bool {
    ["HIT", "STALE", "UPDATING", "REVALIDATED"].contains(&reply.x_cache())
}

/// Lets the server work in the background. No test relies on its end: later checks are bounds from above.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(30)).await;
}

/// The fields of a browser that comes from a page of the site.
fn chrome() -> String {
    BROWSERS[0].fields(Mark::next(), "site.test")
}

/// A program that visitors use. `@` in its fields stands for the mark of a visit, `%` for the host.
struct Browser {
    name: &'static str,
    fields: &'static str,
}

impl Browser {
    fn fields(&self, mark: Mark, host: &str) -> String {
        let fields = self.fields.replace('@', &mark.0.to_string());
        fields.replace('%', host)
    }
}

#[rustfmt::skip]
const BROWSERS: [Browser; 8] = [
    Browser {
        name: "Chrome, from a page of the site",
        fields: "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8\r\nAccept-Language: de-AT,de;q=0.9,en;q=0.7\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nSec-CH-UA: \"Chromium\";v=\"140\"\r\nSec-CH-UA-Mobile: ?0\r\nSec-CH-UA-Platform: \"Linux\"\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\nUpgrade-Insecure-Requests: 1\r\nReferer: http://%/from/@\r\n",
    },
    Browser {
        name: "Chrome, with cookies of statistics",
        fields: "User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.@.0 Safari/537.36\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.9\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\nCookie: _ga=GA1.1.12345.67890; _gid=GA1.1.5.6\r\n",
    },
    Browser {
        name: "Firefox, from a search engine",
        fields: "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: fr,fr-FR;q=0.8,en-US;q=0.5,en;q=0.3\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nDNT: 1\r\nSec-GPC: 1\r\nPriority: u=0, i\r\nReferer: https://search.example/?q=@\r\n",
    },
    Browser {
        name: "Safari on a phone",
        fields: "User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-GB,en;q=0.9\r\nAccept-Encoding: gzip, deflate, br\r\nReferer: http://%/from/@\r\n",
    },
    Browser {
        name: "Chrome on a phone",
        fields: "User-Agent: Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.@.0 Mobile Safari/537.36\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: de\r\nAccept-Encoding: gzip, deflate, br\r\nSave-Data: on\r\nCookie: cookie_consent=1\r\n",
    },
    Browser {
        name: "Googlebot",
        fields: "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html; @)\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Encoding: gzip, deflate, br\r\nFrom: googlebot(at)googlebot.com\r\n",
    },
    Browser { name: "curl", fields: "User-Agent: curl/8.5.@\r\nAccept: */*\r\n" },
    Browser { name: "a client with a Referer alone", fields: "Referer: http://%/from/@\r\n" },
];
