//! Commands and a server over a control socket, and callers that do not keep to the rules.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use control::command::FAILED;
use control::socket::ControlSocket;
use control::{
    Caller, ClientError, Command, CommandReport, Entry, EntryRequest, ExplainRequest, Explanation,
    FoundEntries, Handler, PurgeReport, PurgeRequest, Refusal, SearchRequest, TargetKind,
    TargetReport, Version, WarmReport, WarmRequest, WarmResult,
};
use numbers::{History, HistoryReport, Number, Pages, Snapshot};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Remembers its requests, and purges 3 responses of each tag.
#[derive(Default)]
struct Recorder {
    asked: Mutex<Vec<(PurgeRequest, Caller)>>,
}

impl Handler for Recorder {
    fn version(&self) -> Version {
        Version {
            version: "1.2.3".to_owned(),
            pid: 7,
        }
    }

    async fn command(&self, command: Command, _: Caller) -> Result<CommandReport, Refusal> {
        match command {
            Command::Reload => Err(Refusal::new(FAILED, "one reason\nand another")),
            done => Ok(CommandReport { done }),
        }
    }

    fn numbers(&self) -> Result<Snapshot, Refusal> {
        let mut snapshot = Snapshot::default();
        snapshot.put(Number::Requests, &["HIT"], 5.0);
        Ok(snapshot)
    }

    fn pages(&self) -> Result<Pages, Refusal> {
        Ok(Pages::default())
    }

    fn history(&self, since: u64) -> Result<HistoryReport, Refusal> {
        let mut history = History::default();
        for at in [1000, 20_000] {
            history.note(&Snapshot {
                at,
                ..Snapshot::default()
            });
        }
        Ok(history.report(since))
    }

    async fn purge(&self, request: PurgeRequest, caller: Caller) -> Result<PurgeReport, Refusal> {
        if request.tags == ["busy"] {
            return Err(Refusal {
                retry_after: Some(2),
                ..Refusal::new(429, "too many purges")
            });
        }
        let targets = request.tags.iter().map(|tag| TargetReport {
            kind: TargetKind::Tag,
            text: tag.clone(),
            responses: 3,
        });
        let report = PurgeReport {
            soft: request.soft,
            dry_run: request.dry_run,
            targets: targets.collect(),
            zones: Vec::new(),
            milliseconds: 0.25,
        };
        self.asked.lock().unwrap().push((request, caller));
        Ok(report)
    }

    async fn warm(&self, request: WarmRequest) -> Result<WarmReport, Refusal> {
        Ok(WarmReport {
            url: request.url,
            result: WarmResult::Stored,
            status: Some(200),
            reason: None,
            milliseconds: 0.5,
        })
    }

    async fn explain(&self, request: ExplainRequest) -> Result<Explanation, Refusal> {
        Err(Refusal::field("url", format!("no site {}", request.url)))
    }

    async fn search(&self, request: SearchRequest) -> Result<FoundEntries, Refusal> {
        let entry = Entry {
            address: request.text.unwrap_or_default(),
            ..Entry::default()
        };
        Ok(FoundEntries {
            entries: vec![entry],
            next: request.after,
            looked_at: 1,
        })
    }

    fn entry(&self, request: EntryRequest) -> Result<Entry, Refusal> {
        match request.id.as_str() {
            "1" => Ok(Entry {
                id: request.id,
                ..Entry::default()
            }),
            _ => Err(Refusal::new(404, "gone")),
        }
    }

    async fn page(&self, request: WarmRequest) -> Result<Bytes, Refusal> {
        match request.url.ends_with("/") {
            true => Ok(format!("page {}", request.url).into()),
            false => Err(Refusal::field("url", "expected a slash")),
        }
    }
}

struct RunningControl {
    _folder: tempfile::TempDir,
    path: PathBuf,
    handler: Arc<Recorder>,
    _socket: ControlSocket,
}

fn start() -> RunningControl {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    let socket = ControlSocket::bind(&path).unwrap();
    let handler = Arc::new(Recorder::default());
    let listener = socket.listener().try_clone().unwrap();
    tokio::spawn(control::server::serve(listener, handler.clone()));
    RunningControl {
        _folder: folder,
        path,
        handler,
        _socket: socket,
    }
}

/// Sends bytes and gives the whole answer.
async fn raw(running: &RunningControl, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(&running.path).await.unwrap();
    // The server may answer before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn numbers_and_their_history_come_as_they_were_put() {
    let running = start();
    let snapshot = control::client::numbers(&running.path).await.unwrap();
    assert_eq!(snapshot.sum(Number::Requests, &[("cache", "HIT")]), 5.0);
    let pages = control::client::pages(&running.path).await.unwrap();
    assert!(pages.costly.is_empty());
    let whole = control::client::history(&running.path, 0).await.unwrap();
    assert_eq!(whole.points.len(), 2);
    let later = control::client::history(&running.path, 1000).await.unwrap();
    assert_eq!((later.points.len(), later.points[0][0]), (1, 20_000.0));
    for (request, status) in [
        ("GET /1/history?since=-1 HTTP/1.1", "400"),
        ("GET /1/history?since= HTTP/1.1", "400"),
        ("GET /1/history?until=5 HTTP/1.1", "400"),
        ("POST /1/numbers HTTP/1.1", "405"),
        ("DELETE /1/history HTTP/1.1", "405"),
    ] {
        let answer = raw(&running, format!("{request}\r\nHost: a\r\n\r\n").as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {answer}"
        );
    }
}

#[tokio::test]
async fn the_server_itself_is_told_and_says_what_came_of_it() {
    let running = start();
    for command in Command::ALL {
        assert_eq!(Command::of_path(command.path()), Some(command));
        match control::client::command(&running.path, command).await {
            Ok(report) => assert_eq!(report.done, command),
            Err(ClientError::Refused(refusal)) => {
                assert_eq!((command, refusal.status), (Command::Reload, FAILED));
                assert_eq!(refusal.message, "one reason\nand another");
            }
            Err(error) => panic!("{error}"),
        }
        let asked = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", command.path());
        let answer = raw(&running, asked.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    }
}

#[tokio::test]
async fn a_caller_whose_server_ends_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        let (mut caller, _) = listener.accept().await.unwrap();
        assert!(caller.read(&mut [0; 4096]).await.unwrap() > 0);
    });
    let ended = control::client::command(&path, Command::Stop).await;
    assert!(matches!(ended, Err(ClientError::Ended(_))), "{ended:?}");
}

#[tokio::test]
async fn a_purge_goes_there_and_its_report_comes_back() {
    let running = start();
    let request = PurgeRequest {
        tags: vec!["post-5".to_owned(), "\u{1}ü\"".to_owned()],
        soft: true,
        ..PurgeRequest::default()
    };
    let report = control::client::purge(&running.path, &request)
        .await
        .unwrap();
    assert_eq!((report.soft, report.responses()), (true, 6));
    assert_eq!(report.targets[1].text, "\u{1}ü\"");
    let asked = std::mem::take(&mut *running.handler.asked.lock().unwrap());
    assert_eq!(asked[0].0, request);
    assert_eq!(asked[0].1.pid, Some(std::process::id().cast_signed()));
    let version = control::client::version(&running.path).await.unwrap();
    assert_eq!(version.version, "1.2.3");
}

#[tokio::test]
async fn a_refusal_arrives_as_one() {
    let running = start();
    let request = PurgeRequest {
        tags: vec!["busy".to_owned()],
        ..PurgeRequest::default()
    };
    match control::client::purge(&running.path, &request).await {
        Err(ClientError::Refused(refusal)) => {
            assert_eq!(
                (refusal.status, &*refusal.message),
                (429, "too many purges")
            );
        }
        other => panic!("{other:?}"),
    }
    let body = r#"{"tags":["busy"]}"#;
    let answer = raw(
        &running,
        format!(
            "POST /1/purge HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .as_bytes(),
    )
    .await;
    assert!(answer.to_lowercase().contains("retry-after: 2"), "{answer}");
    let nowhere = running.path.with_extension("gone");
    assert!(matches!(
        control::client::version(&nowhere).await,
        Err(ClientError::NoServer(_))
    ));
}

#[tokio::test]
async fn callers_that_do_not_keep_to_the_rules_are_told_so() {
    let running = start();
    let huge = control::server::MAX_BODY_BYTES + 1;
    #[rustfmt::skip]
    let cases = [
        ("GET /1/purge HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "405"),
        ("POST /1/version HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".to_owned(), "405"),
        ("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "404"),
        ("GET /2/version HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "different releases"),
        ("POST /1/purge HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}".to_owned(), "nothing to purge"),
        (format!("POST /1/purge HTTP/1.1\r\nHost: x\r\nContent-Length: {huge}\r\n\r\n{}", " ".repeat(huge)), "413"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20)), "HTTP/1.1 4"),
        ("nonsense\r\n\r\n".to_owned(), "HTTP/1.1 400"),
    ];
    for (bytes, expected) in cases {
        let answer = raw(&running, bytes.as_bytes()).await;
        let start = &bytes[..bytes.len().min(60)];
        assert!(answer.contains(expected), "{start}: {answer}");
    }
    assert!(running.handler.asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn callers_that_say_nothing_do_not_keep_others_out() {
    let running = start();
    let mut silent = Vec::new();
    // More than are answered at the same time, and fewer than may wait beside those.
    for _ in 0..24 {
        silent.push(UnixStream::connect(&running.path).await.unwrap());
    }
    // The paused clock goes on as soon as everybody waits: silent connections are closed.
    let version = tokio::time::timeout(
        Duration::from_secs(100),
        control::client::version(&running.path),
    );
    assert!(version.await.unwrap().is_ok());
    drop(silent);
}

#[tokio::test]
async fn what_is_stored_is_searched_and_opened_and_requests_are_explained() {
    let running = start();
    let search = SearchRequest {
        text: Some("/news/".to_owned()),
        after: Some("0.1.2".to_owned()),
        ..SearchRequest::default()
    };
    let found = control::client::search(&running.path, &search).await;
    let found = found.unwrap();
    assert_eq!(found.entries[0].address, "/news/");
    assert_eq!(found.next.as_deref(), Some("0.1.2"));
    let open = |id: &str| EntryRequest { id: id.to_owned() };
    let entry = control::client::entry(&running.path, &open("1")).await;
    assert_eq!(entry.unwrap().id, "1");
    let gone = control::client::entry(&running.path, &open("2")).await;
    assert_eq!(gone.unwrap_err().to_string(), "gone");
    let request = ExplainRequest {
        url: "http://a/".to_owned(),
        ..ExplainRequest::default()
    };
    let told = control::client::explain(&running.path, &request).await;
    assert_eq!(told.unwrap_err().to_string(), "url: no site http://a/");
    for path in ["explain", "search", "entry"] {
        let get = format!("GET /1/{path} HTTP/1.1\r\nHost: x\r\n\r\n");
        let answer = raw(&running, get.as_bytes()).await;
        assert!(answer.contains("405"), "{answer}");
        let body = "{\"unknown\":1}";
        let post = format!(
            "POST /1/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = raw(&running, post.as_bytes()).await;
        assert!(answer.contains("unknown field"), "{answer}");
    }
}

#[tokio::test]
async fn pages_are_warmed_and_read() {
    let running = start();
    let asked = |url: &str| WarmRequest {
        url: url.to_owned(),
    };
    let report = control::client::warm(&running.path, &asked("https://a/")).await;
    let report = report.unwrap();
    assert_eq!(
        (report.result, report.status),
        (WarmResult::Stored, Some(200))
    );
    let page = control::client::page(&running.path, &asked("https://a/")).await;
    assert_eq!(page.unwrap(), "page https://a/");
    let refused = control::client::page(&running.path, &asked("https://a")).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.to_string(), "url: expected a slash");
    for (body, words) in [
        ("{}", "missing field `url`"),
        ("{\"url\":\"a\",\"x\":1}", "unknown field `x`"),
        ("", "expected a JSON object"),
    ] {
        let length = body.len();
        let request =
            format!("POST /1/warm HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}");
        let answer = raw(&running, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains(words), "{answer}");
    }
}
