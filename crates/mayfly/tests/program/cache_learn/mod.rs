//! `cache_learn`: the pool reports the parts of which a page was made, and `mayfly explain` shows them.

mod address_database;
mod address_lookup;
mod after_restart;
mod auto;
mod binary_log;
mod command;
pub mod database_site;
mod fails_closed;
mod memcached;
mod nodes;
mod object_cache;
mod own_copies;
mod postgres;
mod replay;
mod sqlite;
mod sqlite_site;
mod upgrade;

use std::path::{Path, PathBuf};
use std::time::Duration;

use control::explain::{LearnedPart, LearnedState};
use control::{ExplainRequest, Explanation};
use learn_record::{Hello, Message, Session, StatementKind, Write, WriteOutcome};
use socket2::{Domain, SockAddr, Socket, Type};
use testkit::client::Target;
use testkit::process::{Signal, is_root};
use testkit::running::RunningServer;
use testkit::wait::until;

use crate::{has_php_fpm, program};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The page names the number of its fetch.
const PAGE: &str = "<?php header('X-Fetch: ' . ($_SERVER['MAYFLY_FETCH'] ?? 'none')); echo 'page';";

/// The page is another each time, and PHP confirms it all the same.
const CONFIRMED_PAGE: &str = "<?php header('Last-Modified: Thu, 26 Nov 2026 10:00:00 GMT');
    if (isset($_SERVER['HTTP_IF_MODIFIED_SINCE'])) { http_response_code(304); exit; }
    echo uniqid();";

async fn start(folder: &Path, learn: &str) -> Option<RunningServer> {
    start_with(folder, PAGE, learn).await
}

/// A site of this script.
async fn start_with(folder: &Path, page: &str, learn: &str) -> Option<RunningServer> {
    if !has_php_fpm() {
        return None;
    }
    let script = folder.join("page.php");
    std::fs::write(&script, page).unwrap();
    let user = if is_root() { "user www-data;" } else { "" };
    let main = format!("php_pool learned {{ workers 1; {user} }}");
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
         server {{ listen unix:%%/http; server_name site.test; location / {{ fastcgi_pass php:learned;\n\
         fastcgi_cache pages; fastcgi_cache_key $request_uri; fastcgi_cache_valid 1ms; {learn}\n\
         fastcgi_param SCRIPT_FILENAME {}; fastcgi_param REQUEST_METHOD $request_method; }} }}",
        script.display()
    );
    Some(RunningServer::start(program(), &main, &http).await)
}

/// Writes scripts and other files that have not changed for long, where pages of them are learned.
fn write_scripts(files: &[(&str, &str)]) -> tempfile::TempDir {
    // Pages of temporary files are not.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    testkit::serving::open_to_all(folder.path());
    testkit::serving::write_files(folder.path(), files);
    for (name, _) in files {
        database_site::make_old(&folder.path().join(name));
    }
    database_site::make_old(folder.path());
    folder
}

/// Serves the scripts of a folder by two workers.
async fn serve_scripts(folder: &Path, learn: &str) -> RunningServer {
    let user = if is_root() { "user www-data;" } else { "" };
    let main = format!("php_pool site {{ workers 2; {user} }}");
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
         server {{ listen unix:%%/http; server_name site.test; location / {{ fastcgi_pass php:site;\n\
         fastcgi_cache pages; fastcgi_cache_key $uri$args; fastcgi_cache_valid 1ms; {learn}\n\
         fastcgi_param SCRIPT_FILENAME {}$uri; fastcgi_param QUERY_STRING $query_string;\n\
         fastcgi_param REQUEST_METHOD $request_method; add_header X-Cache $upstream_cache_status; }} }}",
        folder.display()
    );
    RunningServer::start(program(), &main, &http).await
}

/// The number of the fetch by which the page was made.
async fn make(server: &RunningServer, path: &str) -> String {
    let reply = server.target().get(path).await;
    assert_eq!(reply.status, 200, "{}", server.error_log());
    reply.field("x-fetch").to_owned()
}

/// The socket of the pool.
fn socket(server: &RunningServer) -> PathBuf {
    let parents = [PathBuf::from("/run"), std::env::temp_dir()];
    let entries = parents.iter().flat_map(std::fs::read_dir).flatten();
    let number = format!("-{}-", server.pid());
    let mut paths = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.to_string_lossy();
        name.contains("mayfly-php-learned-") && name.contains(&number)
    });
    paths.next().expect("the pool's folder").join("learn.sock")
}

/// Speaks as the library in PHP does.
struct Library(Socket);

impl Library {
    fn connect(server: &RunningServer) -> Library {
        let connection = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        let address = SockAddr::unix(socket(server)).unwrap();
        connection.connect(&address).unwrap();
        let library = Library(connection);
        library.say(&Message::Hello(Hello {
            version: learn_record::VERSION,
            pid: std::process::id(),
            is_again: false,
            is_command: false,
            wants_acknowledgement: false,
            unseen_extensions: Vec::new(),
        }));
        library
    }

    fn say(&self, message: &Message<'_>) {
        let mut packet = Vec::new();
        message.encode(&mut packet);
        self.0.send(&packet).unwrap();
    }

    fn is_answered(&self, number: u64) {
        let mut answer = [0; 16];
        let read = std::io::Read::read(&mut &self.0, &mut answer).unwrap();
        let answer = learn_record::Acknowledgement::decode(&answer[..read]).unwrap();
        assert_eq!(answer.number, number);
    }
}

async fn explained(server: &RunningServer, path: &str) -> Explanation {
    explained_by(&server.path("pid.control"), path).await
}

/// Returns the explanation of the server with this control socket.
async fn explained_by(control: &Path, path: &str) -> Explanation {
    let request = ExplainRequest {
        url: format!("http://site.test{path}"),
        ..ExplainRequest::default()
    };
    let told = control::client::explain(control, &request).await;
    told.unwrap_or_else(|error| panic!("{error}"))
}

async fn learned(server: &RunningServer, path: &str, state: LearnedState) -> LearnedPart {
    for _ in 0..2000 {
        let part = explained(server, path).await.learned.expect("a part");
        if part.state == state {
            return part;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("{:?}", explained(server, path).await.learned);
}

/// Returns one of the pool's metrics.
async fn number(server: &RunningServer, name: &str) -> u64 {
    let text = Target(server.path("metrics")).get("/").await.text();
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = values.next().and_then(|rest| rest.rsplit(' ').next());
    let whole = value.and_then(|it| it.split('.').next());
    whole.and_then(|it| it.parse().ok()).expect(name)
}

#[tokio::test]
async fn explain_names_why_a_page_is_not_learned_and_writes_are_acknowledged() {
    let folder = testkit::serving::FolderServer::folder();
    let Some(server) = start(folder.path(), "cache_learn watch;").await else {
        return;
    };
    assert_ne!(make(&server, "/plain").await, "none");
    let part = learned(&server, "/plain", LearnedState::NotLearned).await;
    // The script lies among temporary files, whose times prove nothing; a PHP without the library reports
    // nothing.
    let is_named = part.reason == "file-outside" && part.detail.ends_with("/page.php");
    assert!(is_named || part.reason == "no-record", "{part:?}");
    // A reload that changes nothing of the pool forgets nothing.
    server.signal(Signal::HUP);
    until("a reload", || server.error_log().contains(" reloaded")).await;
    learned(&server, "/plain", LearnedState::NotLearned).await;
    write_is_acknowledged(&Library::connect(&server));
}

/// WordPress confirms a feed by the time of its last post, which knows nothing of the site's name.
#[tokio::test]
async fn a_page_whose_data_is_not_known_is_made_again_and_not_confirmed() {
    let folder = testkit::serving::FolderServer::folder();
    for (learn, is_confirmed) in [("on", false), ("watch", true)] {
        let lines = format!("cache_learn {learn}; fastcgi_cache_revalidate on;");
        let Some(server) = start_with(folder.path(), CONFIRMED_PAGE, &lines).await else {
            return;
        };
        let first = server.target().get("/feed").await.text();
        let part = learned(&server, "/feed", LearnedState::NotLearned).await;
        tokio::time::sleep(PAUSE).await;
        let again = server.target().get("/feed").await.text();
        assert_eq!(first == again, is_confirmed, "{learn}: {part:?}");
    }
}

fn write_is_acknowledged(library: &Library) {
    library.say(&Message::Write(Write {
        number: 7,
        fetch: 0,
        session: Session {
            connection: 1,
            server: b"unix:/run/mysqld/mysqld.sock",
            server_version: b"10.11",
            identifier: 1,
            account: b"blog",
            collation: 45,
            database: Some(b"blog"),
            settings: Some(Vec::new()),
        },
        kind: StatementKind::Text,
        text: b"DELETE FROM post",
        is_complete: true,
        parameters: Vec::new(),
        status_before: 2,
    }));
    library.is_answered(7);
    library.say(&Message::Written(WriteOutcome {
        number: 7,
        error: None,
        status_after: 2,
    }));
    library.is_answered(7);
}

#[tokio::test]
async fn without_the_directive_php_is_told_nothing_and_explain_has_no_word_of_it() {
    let folder = testkit::serving::FolderServer::folder();
    let Some(server) = start(folder.path(), "").await else {
        return;
    };
    assert_eq!(make(&server, "/plain").await, "none");
    assert_eq!(explained(&server, "/plain").await.learned, None);
    assert!(!socket(&server).exists());
}
