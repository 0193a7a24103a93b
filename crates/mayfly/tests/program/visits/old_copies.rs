//! Copies of a page that is not for all any more: they are shown to none after the visitor who is
//! answered while the page is refreshed, whatever the application does then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use testkit::client::Reply;
use testkit::fake_http::{FakeHttp, Script};
use testkit::serving::FolderServer;
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::{Application, Site, answer_text, chrome, is_from_memory, request, settle};
use crate::{has_php_fpm, start};

const HTML: &str = "Content-Type: text/html\r\n";

const PUBLIC: u8 = 0;
const ENDED: u8 = 1;
const FAILING: u8 = 2;
const UNAVAILABLE: u8 = 3;

/// Answers that may not be stored, or not in the place of the page.
const ENDS: [(&str, &str); 6] = [
    ("403 Forbidden", ""),
    ("302 Found", "Location: /elsewhere\r\n"),
    ("404 Not Found", ""),
    ("200 OK", "Cache-Control: private, no-store\r\n"),
    (
        "401 Unauthorized",
        "WWW-Authenticate: Basic realm=\"x\"\r\n",
    ),
    (
        "303 See Other",
        "Location: /elsewhere\r\nCache-Control: no-cache\r\n",
    ),
];

/// The state of an application, and its runs in that state.
#[derive(Default)]
struct CopyState {
    now: AtomicU8,
    runs: AtomicUsize,
}

impl CopyState {
    fn change(&self, to: u8) {
        self.now.store(to, SeqCst);
        self.runs.store(0, SeqCst);
    }

    fn runs(&self) -> usize {
        self.runs.load(SeqCst)
    }

    /// Counts a run, and gives the state that it is in.
    fn run(&self) -> u8 {
        self.runs.fetch_add(1, SeqCst);
        self.now.load(SeqCst)
    }
}

/// Visits after which a public page is shared.
const MAX_UNTIL_SHARED: u8 = 20;

/// Asks until the page is answered from memory.
async fn share(visit: impl AsyncFn(u8) -> Reply) {
    for nth in 0..MAX_UNTIL_SHARED {
        let reply = visit(nth).await;
        assert_eq!(reply.text(), "old page");
        if is_from_memory(&reply) {
            return;
        }
    }
    panic!("a public page is not shared");
}

fn is_old(reply: &Reply) -> bool {
    reply.text().contains("old page")
}

/// Visits while the first answer of the new kind is received and read.
const MAX_OLD: usize = 20;

/// Visits that get the new answer, until it is believed.
const ENOUGH_NEW: usize = 5;

/// Visits after the application has changed its answer. The first one may get the old copy while the
/// page is refreshed. A second run shows that the answer of the first has been read: the old copy
/// must be gone then.
async fn see_the_change(state: &CopyState, visit: impl AsyncFn(u8) -> Reply) {
    settle().await;
    let (mut old, mut new) = (0, 0);
    for nth in 0..u8::MAX {
        let runs = state.runs();
        let reply = visit(nth).await;
        if is_old(&reply) {
            old += 1;
            assert!(runs < 2, "visit {nth} gets the old page after {runs} runs");
            assert!(old < MAX_OLD, "{old} visits get the old page");
        }
        new += usize::from(runs >= 2);
        if new == ENOUGH_NEW {
            return;
        }
        settle().await;
    }
    panic!("{} runs since the change", state.runs());
}

#[tokio::test]
async fn an_answer_that_ends_sharing_ends_the_old_copy() {
    for cookie in ["Set-Cookie: session=1\r\n", ""] {
        for (line, fields) in ENDS {
            ends_the_old_copy(line, format!("{HTML}{fields}{cookie}")).await;
        }
    }
}

/// A public page whose answer becomes this one; then the application fails.
async fn ends_the_old_copy(line: &'static str, fields: String) {
    let state = Arc::new(CopyState::default());
    let known = Arc::clone(&state);
    let application = Application::start(move |_| {
        Script::new().raw(match known.run() {
            PUBLIC => answer_text("200 OK", HTML, "old page"),
            ENDED => answer_text(line, &fields, "new answer"),
            FAILING => answer_text("500 Internal Server Error", HTML, "failure"),
            _ => answer_text("503 Service Unavailable", HTML, "failure"),
        })
    })
    .await;
    let site = Site::before(&application, "20ms").await;
    let visit = async |nth: u8| site.get(1 + nth % 3, "/page", &chrome()).await;
    share(visit).await;
    state.change(ENDED);
    see_the_change(&state, visit).await;
    for failure in [FAILING, UNAVAILABLE] {
        state.change(failure);
        for nth in 0..5 {
            let reply = visit(nth).await;
            let cache = reply.x_cache();
            assert!(!is_old(&reply), "{line}: {cache}");
            settle().await;
        }
    }
}

/// A visitor who was not compared yet reads a page that has changed. The copy is fresh, and was shown to
/// others for as long as it was kept, and longer while it was refreshed.
#[tokio::test]
async fn what_a_visitor_has_read_is_not_followed_by_what_was_there_before() {
    let state = Arc::new(CopyState::default());
    let known = Arc::clone(&state);
    let application = Application::start(move |_| {
        let is_public = known.run() == PUBLIC;
        Script::page(HTML, if is_public { "old page" } else { "new page" })
    })
    .await;
    let site = Site::before(&application, "1h").await;
    let visit = async |nth: u8| site.get(1 + nth % 3, "/page", &chrome()).await;
    share(visit).await;
    state.change(ENDED);
    let other = chrome().replace("site.test/", "other.test/");
    assert_eq!(site.get(1, "/page", &other).await.text(), "new page");
    // A trial finds that the answers differ by the moment alone.
    for _ in 0..100 {
        if visit(0).await.text() == "new page" {
            break;
        }
        settle().await;
    }
    for nth in 0..5 {
        assert_eq!(visit(nth).await.text(), "new page", "{nth}");
    }
}

/// A visitor who was not compared yet reads a page that has changed, and the application hangs while it is compared: the
/// copy ends meanwhile, and the server does not show it while it is refreshed, as it shows other stale copies.
#[tokio::test]
async fn a_copy_that_ends_while_it_is_compared_is_not_shown_any_more() {
    let state = Arc::new(CopyState::default());
    let gate = Arc::new(Semaphore::new(0));
    let (known, held) = (Arc::clone(&state), Arc::clone(&gate));
    let application = Application::start(move |_| {
        let is_public = known.run() == PUBLIC;
        match (is_public, known.runs()) {
            (true, _) => Script::page(HTML, "old page"),
            // The visitor's own request, and one beside it.
            (false, 1 | 2) => Script::page(HTML, "new page"),
            (false, _) => Script::new()
                .wait_for(&held)
                .raw(answer_text("200 OK", HTML, "new page")),
        }
    })
    .await;
    let site = Site::before(&application, "2s").await;
    let visit = async |nth: u8| site.get(1 + nth % 3, "/page", &chrome()).await;
    share(visit).await;
    state.change(ENDED);
    let other = chrome().replace("site.test/", "other.test/");
    assert_eq!(site.get(1, "/page", &other).await.text(), "new page");
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let later = async {
        settle().await;
        gate.add_permits(1000);
    };
    let (reply, ()) = tokio::join!(visit(0), later);
    assert_eq!(reply.text(), "new page", "{}", reply.x_cache());
}

/// A trial of the page is under way, and hangs. Meanwhile the page changes, and a visitor reads it of whom the trial says
/// nothing, or one who has waited for the trial in vain. Their answer is compared all the same: the copy that was stored
/// before is not shown once it is stale.
#[tokio::test]
async fn what_is_read_beside_a_trial_is_not_followed_by_what_was_there_before() {
    for visitor in ["other.test/", "partner.test/"] {
        is_not_followed_by_what_was_there_before(visitor).await;
    }
}

async fn is_not_followed_by_what_was_there_before(visitor: &str) {
    let state = Arc::new(CopyState::default());
    let gate = Arc::new(Semaphore::new(0));
    let partners = Arc::new(AtomicUsize::new(0));
    let (known, held, asked) = (state.clone(), gate.clone(), partners.clone());
    let upstream = FakeHttp::start(move |request| {
        let is_public = known.run() == PUBLIC;
        let is_of_partner = request.head.contains("partner.test");
        match is_of_partner.then(|| asked.fetch_add(1, SeqCst)) {
            Some(0) => Script::page(HTML, "partner's page"),
            // The request of the trial.
            Some(1) => {
                Script::new()
                    .wait_for(&held)
                    .raw(answer_text("200 OK", HTML, "partner's page"))
            }
            _ => Script::page(HTML, if is_public { "old page" } else { "new page" }),
        }
    })
    .await;
    let server = start(&format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m;\n\
         server {{ listen unix:%%/http; location / {{ proxy_pass {}; proxy_set_header Host $host;\n\
         proxy_cache zone; proxy_cache_valid 200 1s; proxy_cache_lock on; proxy_cache_lock_timeout 200ms;\n\
         proxy_cache_use_stale updating; proxy_cache_background_update on; cache_shared on;\n\
         add_header X-Cache $upstream_cache_status always; }} }}",
        upstream.url()
    ))
    .await;
    let target = server.target();
    let from = async |host: &str| {
        let head = chrome().replace("site.test/", host);
        target.get_with("/page", &head).await
    };
    share(async |_| from("site.test/").await).await;
    assert_eq!(from("partner.test/").await.text(), "partner's page");
    until("a trial that hangs", || partners.load(SeqCst) == 2).await;
    // The copy that the partner's visitor has seen another page beside is replaced.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(from("site.test/").await.text(), "old page");
    state.change(ENDED);
    let reply = from(visitor).await;
    assert_eq!(reply.text(), "new page", "{visitor}");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let reply = from("site.test/").await;
    assert_eq!(reply.text(), "new page", "{visitor}: {}", reply.x_cache());
    gate.add_permits(1000);
}

/// Too many requests wait for an application that hangs: the last copy would stand in, but it is one
/// that visitors may not see any more.
#[tokio::test]
async fn the_old_copy_does_not_stand_in_while_a_line_of_requests_waits() {
    for (line, fields) in ENDS {
        let state = Arc::new(CopyState::default());
        let gate = Arc::new(Semaphore::new(0));
        let (known, held) = (Arc::clone(&state), Arc::clone(&gate));
        let upstream = FakeHttp::start(move |_| {
            let ended = format!("{HTML}{fields}Set-Cookie: session=1\r\n");
            match known.run() {
                PUBLIC => Script::page(HTML, "old page"),
                ENDED => Script::new().raw(answer_text(line, &ended, "new answer")),
                _ => Script::new()
                    .wait_for(&held)
                    .raw(answer_text("200 OK", &ended, "new answer")),
            }
        })
        .await;
        let server = start(&format!(
            "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
             upstream site {{ server {} max_conns=2; queue 100; }}\n\
             server {{ listen unix:%%/http; location / {{ proxy_pass http://site;\n\
             proxy_set_header Host $host; proxy_cache zone; proxy_cache_valid 200 20ms;\n\
             proxy_cache_use_stale error timeout http_500 updating; proxy_cache_background_update on;\n\
             cache_shared on; cache_stale 1h 1h; cache_queue_stale 10;\n\
             add_header X-Cache $upstream_cache_status always; }} }}",
            upstream.address()
        ))
        .await;
        let target = server.target();
        let visit = async |_| target.get_with("/page", &chrome()).await;
        share(visit).await;
        state.change(ENDED);
        see_the_change(&state, visit).await;
        state.change(FAILING);
        let mut clients = Vec::new();
        for _ in 0..40 {
            let mut client = server.connect().await;
            let request = request("GET /page", "site.test", &chrome());
            client.send(request).await;
            clients.push(client);
        }
        until("a run that hangs", || state.runs() >= 1).await;
        settle().await;
        gate.add_permits(1000);
        for mut client in clients {
            let reply = client.receive(false).await.expect("a response");
            assert!(!is_old(&reply), "{line}: the old page, {}", reply.x_cache());
        }
    }
}

/// A page of PHP that becomes its visitor's own: the copy that stands in for failures is gone as well.
#[tokio::test]
async fn the_old_page_of_php_does_not_come_back_when_php_fails() {
    if !has_php_fpm() {
        return;
    }
    let flags = FolderServer::folder();
    let place = flags.path().to_str().expect("a plain path");
    let page = format!(
        "<?php clearstatcache();
        if (file_exists('{place}/failing')) {{ http_response_code(503); exit; }}
        if (file_exists('{place}/ended')) {{ session_start(); http_response_code(403); echo 'new answer'; exit; }}
        echo 'old page';"
    );
    let site = Site::with_php(&[("index.php", &*page)], "20ms").await;
    let visit = async |nth: u8| site.get(1 + nth % 3, "/", &chrome()).await;
    share(visit).await;
    std::fs::write(flags.path().join("ended"), "").expect("a file");
    settle().await;
    for nth in 0..MAX_OLD {
        let reply = visit(u8::try_from(nth).expect("small")).await;
        if !is_old(&reply) {
            break;
        }
        assert!(nth + 1 < MAX_OLD, "{MAX_OLD} visits get the old page");
        settle().await;
    }
    std::fs::write(flags.path().join("failing"), "").expect("a file");
    for nth in 0..12 {
        let reply = visit(nth).await;
        assert!(!is_old(&reply), "the old page: {}", reply.x_cache());
        settle().await;
    }
}
