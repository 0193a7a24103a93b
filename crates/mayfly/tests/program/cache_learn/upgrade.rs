//! Kept pages if one program, or one process that serves, follows another: after a restart, in an upgrade, and after a
//! crash, in which PHP goes on and its reports to the process before are not lost.

use testkit::client::{Client, Target};
use testkit::process::{Signal, children, is_root, send_signal};
use testkit::running::RunningServer;
use testkit::wait::until;

use super::database_site::{DatabaseSite, PASSWORD, until_kept, until_one_is_kept};
use crate::program;
use crate::upgrade::ReplacedServer;

/// The main part of a configuration and its http part; pages have this lifetime where nothing is known of them.
pub fn configuration(site: &DatabaseSite, lifetime: &str) -> (String, String) {
    let user = if is_root() { "user www-data;" } else { "" };
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
         server {{ listen unix:%%/http; server_name site.test; location / {{ fastcgi_pass php:site;\n\
         fastcgi_cache pages; fastcgi_cache_key $uri$args; fastcgi_cache_valid {lifetime}; cache_learn on;\n\
         cache_learn_database unix:{} blog \"{}\";\n\
         fastcgi_param SCRIPT_FILENAME {}$uri; fastcgi_param QUERY_STRING $query_string;\n\
         fastcgi_param REQUEST_METHOD $request_method; add_header X-Cache $upstream_cache_status; }} }}\n\
         server {{ listen unix:%%/metrics; server_name site.test; location / {{ metrics; }} }}",
        site.database.socket().display(),
        PASSWORD.replace('\\', "\\\\").replace('"', "\\\""),
        site.path().display()
    );
    (format!("php_pool site {{ workers 6; {user} }}"), http)
}

async fn start(site: &DatabaseSite) -> ReplacedServer {
    let (main, http) = configuration(site, "1ms");
    ReplacedServer::start(&main, &http).await
}

/// Asks without waiting for the answer: the process that would give it ends.
pub fn begin(target: &Target, path: &'static str) {
    let socket = target.0.clone();
    tokio::spawn(async move {
        let mut client = Client::connect(&socket).await;
        let request =
            format!("POST {path} HTTP/1.1\r\nHost: site.test\r\nContent-Length: 0\r\n\r\n");
        let _ = client.try_send(request).await;
        client.receive(false).await
    });
}

async fn is_shown(server: &ReplacedServer, site: &DatabaseSite, when: &str) {
    let reply = server.server.target().get("/index.php").await;
    assert_eq!(
        reply.text(),
        site.version(),
        "{when}: {}",
        server.server.error_log()
    );
}

/// The process that serves is another than the one that has PHP.
async fn start_divided(site: &DatabaseSite) -> RunningServer {
    let (main, http) = configuration(site, "1ms");
    RunningServer::start_divided(program(), &main, &http).await
}

/// Returns the child with the name of a serving process.
fn serving_process(server: &RunningServer) -> Option<u32> {
    let is_it = |pid: &u32| {
        let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !String::from_utf8_lossy(&text).contains("php-fpm")
    };
    let mut children = children(server.pid()).into_iter();
    children.rfind(is_it)
}

#[tokio::test]
async fn a_write_that_was_told_to_a_process_that_has_ended_ends_pages_of_the_next_one() {
    if !is_root() {
        eprintln!("skipped: only root can give up root's rights");
        return;
    }
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    let server = start_divided(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    for way in ["later", "transaction", "waits for a lock"] {
        until_kept(&target, &control, "/index.php").await;
        site.lower_all();
        match way {
            "later" => begin(&target, "/write.php?way=later"),
            "transaction" => begin(&target, "/write.php?way=transaction"),
            _ => begin(&target, "/lock.php"),
        }
        until("PHP at work", || site.is_raised("held")).await;
        if way == "waits for a lock" {
            begin(&target, "/write.php");
            let listed =
                "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'UPDATE%'";
            until("an UPDATE", || site.database.run(listed).trim() == "1").await;
        }
        let before = site.version();
        let serving = serving_process(&server).expect("a process that serves");
        send_signal(serving, Signal::KILL);
        let is_another = |next: u32| next != serving;
        until("another one", || {
            serving_process(&server).is_some_and(is_another)
        })
        .await;
        until_kept(&target, &control, "/index.php").await;
        site.raise("go");
        until(&format!("a write: {way}"), || site.is_raised("done")).await;
        assert_ne!(site.version(), before);
        let reply = target.get("/index.php").await;
        assert_eq!(
            reply.text(),
            site.version(),
            "{way}: {}",
            server.error_log()
        );
    }
}

#[tokio::test]
async fn no_page_is_kept_while_the_php_of_the_program_before_may_write() {
    if !is_root() {
        eprintln!("skipped: only root can give up root's rights");
        return;
    }
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    let server = start_divided(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    let old = server.pid();
    let answer = target.ask("POST", "/write.php?way=answered", "", "").await;
    assert_eq!(answer.text(), "answered");
    send_signal(old, Signal::USR2);
    until("another program", || {
        server
            .error_log()
            .contains(&format!("in the place of process {old} "))
    })
    .await;
    let new = KilledProcess(server.read("pid").trim().parse().expect("a number"));
    send_signal(old, Signal::QUIT);
    // The process that served has ended, and PHP is asked to.
    until("the end of PHP's work", || {
        server.error_log().contains("php-fpm: Finishing")
    })
    .await;
    // The longest time until a page is kept.
    for _ in 0..300 {
        target.get("/index.php").await;
        tokio::time::sleep(super::PAUSE).await;
    }
    let before = site.version();
    site.raise("go");
    until("a write", || site.is_raised("done")).await;
    assert_ne!(site.version(), before);
    assert_eq!(
        target.get("/index.php").await.text(),
        site.version(),
        "{}",
        server.error_log()
    );
    until_kept(&target, &control, "/index.php").await;
    drop(new);
}

/// A program that is no child of the test.
struct KilledProcess(u32);

impl Drop for KilledProcess {
    fn drop(&mut self) {
        send_signal(self.0, Signal::KILL);
    }
}

#[tokio::test]
async fn neither_program_keeps_pages_while_both_are_there() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    let mut server = start(&site).await;
    let (target, control) = (server.server.target(), server.server.path("pid.control"));
    until_kept(&target, &control, "/index.php").await;
    let (old, _) = server.usr2().await;
    for _ in 0..20 {
        let written = target.ask("POST", "/write.php", "", "").await;
        assert_eq!(written.text(), "written");
        is_shown(&server, &site, "both are there").await;
    }
    send_signal(old, Signal::QUIT);
    server.gone(old).await;
    until_kept(&target, &control, "/index.php").await;
    let written = target.ask("POST", "/write.php", "", "").await;
    assert_eq!(written.text(), "written");
    is_shown(&server, &site, "alone again").await;
}

#[tokio::test]
async fn a_page_that_was_kept_before_a_restart_is_made_anew_and_not_read_from_disk() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    let (main, http) = configuration(&site, "1h");
    let http = http.replace("cache_learn on;", "cache_learn on; cache_learn_replay off;");
    let mut server = RunningServer::start(program(), &main, &http).await;
    let control = server.path("pid.control");
    // Each is another one: those of which too little is known have the lifetime of an hour.
    let numbered = |number| format!("/index.php?{number}");
    let path = until_one_is_kept(&server.target(), &control, numbered).await;
    let told = super::explained(&server, &path).await;
    let disk = told.cache.expect("a cache").disk;
    assert!(disk.contains("without cache_learn_replay"), "{disk}");
    server.signal(Signal::QUIT);
    server.ended().await;
    site.write();
    server.start_again(program()).await;
    let reply = server.target().get(&path).await;
    assert_eq!((reply.x_cache(), reply.text()), ("MISS", site.version()));
}
