//! Copies for one visitor (`cache_private` with `cache_learn`): shown again while nothing that the page was made of, and
//! nothing of the visitor's session, has changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::client::{Reply, Target};
use testkit::process::{Signal, is_root};
use testkit::running::RunningServer;
use testkit::serving::{open_to_all, write_files};
use testkit::wait::{TIMEOUT, until};
use tokio::task::JoinSet;

use super::PAUSE;
use super::database_site::make_old;
use super::sqlite_site::{has_extension, set_mode};
use crate::attacks::random::Random;
use crate::visits::property::from_environment;
use crate::{has_php_fpm, program};

const ALICE: &str = "PHPSESSID=aaaaaaaaaaaaaaaaaaaaaaaaaa";
const BOB: &str = "PHPSESSID=bbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A page is compared with one of another second: so long apart, six requests are of two.
const PART_OF_SECOND: Duration = Duration::from_millis(250);

const START: &str = "<?php
ini_set('session.save_path', __DIR__ . '/sessions');
ini_set('session.gc_probability', '0');
if (isset($handler)) ini_set('session.serialize_handler', $handler);
session_start();
$user = $_SESSION['user'] ?? 'nobody';
$text = trim(file_get_contents(__DIR__ . '/data/text'));
";

/// Shows the cart, and a number of the database.
const CART: &str = "<?php
$database = new PDO('sqlite:' . __DIR__ . '/base/site.db');
$version = $database->query('SELECT version FROM post')->fetchColumn();
echo $version, ': ', $user, ' has ', $_SESSION['cart'] ?? 0;
";

/// Each shows who is logged in, and a text of a file.
#[rustfmt::skip]
const PAGES: [(&str, &str); 26] = [
    ("page.php", "echo \"$user: $text\";"),
    ("other.php", "echo \"$user: $text\";"),
    ("early.php", "session_write_close(); echo \"$user: $text\";"),
    ("timed.php", "$_SESSION['seen'] = time() - rand(0, 20); echo \"$user: $text\";"),
    ("counting.php", "$_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1; echo \"$user: $text\";"),
    ("private.php", "header('Cache-Control: no-store'); echo \"$user: $text\";"),
    ("cookie.php", "setcookie('seen', 'yes'); echo \"$user: $text\";"),
    ("finished.php", "echo \"$user: $text\"; fastcgi_finish_request();"),
    ("login.php", "$_SESSION['user'] = $_GET['as']; echo 'welcome';"),
    ("logout.php", "session_destroy(); echo 'bye';"),
    ("post.php", "echo 'posted';"),
    (
        "order.php",
        "$key = bin2hex(random_bytes(12)); echo \"<form method=post><input type=hidden name=key value='$key'></form>\";",
    ),
    ("drawn.php", "echo mt_rand();"),
    ("unique.php", "echo uniqid();"),
    ("clock.php", "$took = 1 + hrtime(true) % 1000; echo \"$user: $text<!-- \", time(), \" $took ms -->\";"),
    ("inbox.php", "echo \"$user: \", ($_SESSION['read_at'] ?? 0) > time() - 600 ? 'read' : 'new';"),
    ("unread.php", "$_SESSION['read_at'] = time() - 3600; echo 'unread';"),
    ("read.php", "$_SESSION['read_at'] = time(); header('Location: /inbox.php');"),
    ("set.php", "setcookie('theme', 'dark'); echo 'set';"),
    // Opened below, and once more when it may end.
    (
        "late.php",
        "session_write_close(); touch(__DIR__ . '/sessions/late');
         while (!file_exists(__DIR__ . '/sessions/late-go')) { clearstatcache(); usleep(2000); } echo 'late';",
    ),
    // The visitor has the answer before the session is written.
    (
        "slow.php",
        "header('Content-Length: 2'); echo 'ok'; while (ob_get_level()) ob_end_flush(); flush();
         touch(__DIR__ . '/sessions/held');
         while (!file_exists(__DIR__ . '/sessions/go')) { clearstatcache(); usleep(2000); }
         $_SESSION['user'] = 'mallory';",
    ),
    ("cart.php", "require __DIR__ . '/cart.inc';"),
    ("timed_cart.php", "$_SESSION['seen'] = time(); require __DIR__ . '/cart.inc';"),
    ("early_cart.php", "session_write_close(); require __DIR__ . '/cart.inc';"),
    ("add.php", "echo 'added'; $_SESSION['cart'] = ($_SESSION['cart'] ?? 0) + 1;"),
    // A visitor's own write, by a link: of the session nothing is changed.
    (
        "publish.php",
        "$database = new PDO('sqlite:' . __DIR__ . '/base/site.db');
         $database->exec('UPDATE post SET version = version + 1'); echo 'published';",
    ),
];

struct SessionSite {
    folder: TempDir,
    server: RunningServer,
}

impl SessionSite {
    /// `None` without PHP.
    async fn start(lines: &str) -> Option<SessionSite> {
        if !has_php_fpm() {
            return None;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        open_to_all(folder.path());
        write_files(
            folder.path(),
            &[
                ("start.php", START),
                ("cart.inc", CART),
                ("data/text", "first"),
                ("sessions/.keep", ""),
            ],
        );
        for (name, text) in PAGES {
            let text = format!("<?php require __DIR__ . '/start.php'; {text}");
            write_files(folder.path(), &[(name, &text)]);
        }
        for path in ["start.php", "cart.inc", "data/text", "data"] {
            make_old(&folder.path().join(path));
        }
        for (name, _) in PAGES {
            make_old(&folder.path().join(name));
        }
        make_old(folder.path());
        set_mode(&folder.path().join("sessions"), 0o777);
        let server = serve(folder.path(), lines).await;
        Some(SessionSite { folder, server })
    }

    fn target(&self) -> Target {
        self.server.target()
    }

    fn session(&self, cookie: &str) -> PathBuf {
        let id = cookie.split('=').nth(1).expect("a value");
        self.folder.path().join(format!("sessions/sess_{id}"))
    }

    async fn get(&self, path: &str, cookie: &str) -> Reply {
        let fields = format!("Cookie: {cookie}\r\n");
        self.target().get_with(path, &fields).await
    }

    /// Asks until the visitor's own copy is shown; PHP has not run for the last answer.
    async fn until_own(&self, path: &str, cookie: &str) -> Reply {
        let began = Instant::now();
        loop {
            let made = self.get(path, cookie).await;
            tokio::time::sleep(PAUSE).await;
            let reply = self.get(path, cookie).await;
            if reply.x_cache() == "HIT" {
                assert_eq!(reply.field("x-reason"), "own-copy");
                assert_eq!(reply.text(), made.text());
                return reply;
            }
            assert!(
                began.elapsed() < TIMEOUT,
                "{path} is not kept: {}",
                self.server.error_log()
            );
            tokio::time::sleep(10 * PAUSE).await;
        }
    }

    /// Asserts that PHP makes the very next answer, and that it is this one.
    async fn is_made(&self, path: &str, cookie: &str, expected: &str, when: &str) {
        let reply = self.get(path, cookie).await;
        assert_eq!(reply.text(), expected, "{when}");
        assert_ne!(reply.x_cache(), "HIT", "{when}");
    }

    /// Asserts that PHP makes this page each time.
    async fn is_never_kept(&self, path: &str, cookie: &str) {
        for _ in 0..6 {
            let reply = self.get(path, cookie).await;
            assert_ne!(reply.x_cache(), "HIT", "{path}");
            tokio::time::sleep(PART_OF_SECOND).await;
        }
    }

    /// Makes the database, of version 1. False without the extension.
    fn make_database(&self) -> bool {
        if !has_extension() {
            return false;
        }
        let folder = self.folder.path().join("base");
        std::fs::create_dir(&folder).expect("a folder");
        set_mode(&folder, 0o777);
        let database = folder.join("site.db");
        let code = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
            db.execute('CREATE TABLE post (version INT)'); db.execute('INSERT INTO post VALUES (1)')";
        let mut python = std::process::Command::new("python3");
        let made = python.args(["-c", code]).arg(&database).status();
        assert!(made.expect("python3").success());
        set_mode(&database, 0o666);
        true
    }

    fn write_text(&self, text: &str) {
        std::fs::write(self.folder.path().join("data/text"), text).expect("a file");
        make_old(&self.folder.path().join("data/text"));
    }
}

async fn serve(folder: &Path, lines: &str) -> RunningServer {
    let user = if is_root() { "user www-data;" } else { "" };
    let main = format!("php_pool site {{ workers 2; {user} }}");
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
         server {{ listen unix:%%/http; server_name site.test; location / {{ fastcgi_pass php:site;\n\
         fastcgi_cache pages; fastcgi_cache_key $uri$args; fastcgi_cache_valid 1ms; cache_learn on;\n\
         {lines}\n\
         fastcgi_param SCRIPT_FILENAME {}$uri; fastcgi_param QUERY_STRING $query_string;\n\
         fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_LENGTH $content_length;\n\
         fastcgi_param CONTENT_TYPE $content_type;\n\
         add_header X-Cache $upstream_cache_status; add_header X-Reason $cache_reason; }} }}",
        folder.display()
    );
    RunningServer::start(program(), &main, &http).await
}

#[tokio::test]
async fn an_unchanged_page_is_the_visitors_own_copy_until_data_or_session_changes() {
    let Some(site) = SessionSite::start("cache_private PHPSESSID;").await else {
        return;
    };
    for cookie in [ALICE, BOB] {
        let who = if cookie == ALICE { "alice" } else { "bob" };
        let logged_in = site.get(&format!("/login.php?as={who}"), cookie).await;
        assert_eq!(logged_in.text(), "welcome");
    }
    let page = "/page.php";
    assert_eq!(site.until_own(page, ALICE).await.text(), "alice: first");
    // Nobody else has it: without a cookie, with another one, with one more, with another language.
    assert_eq!(site.target().get(page).await.text(), "nobody: first");
    assert_eq!(site.until_own(page, BOB).await.text(), "bob: first");
    for cookie in [format!("{ALICE}; theme=dark"), format!("{ALICE}x")] {
        assert_ne!(site.get(page, &cookie).await.x_cache(), "HIT", "{cookie}");
    }
    let fields = format!("Cookie: {ALICE}\r\nAccept-Language: de\r\n");
    let other = site.target().get_with(page, &fields).await;
    assert_ne!(other.x_cache(), "HIT");
    // Another page is made, and leaves the session as it was.
    site.until_own(page, ALICE).await;
    site.until_own("/other.php", ALICE).await;
    assert_eq!(site.get(page, ALICE).await.x_cache(), "HIT");
    site.until_own("/early.php", ALICE).await;
    // The session's own reads and times are no change.
    site.until_own("/timed.php", ALICE).await;
    // Data changes without a word: it shows within two seconds.
    site.until_own(page, ALICE).await;
    site.write_text("second");
    let began = Instant::now();
    while site.get(page, ALICE).await.text() != "alice: second" {
        assert!(began.elapsed() < TIMEOUT);
        tokio::time::sleep(PAUSE).await;
    }
    // What the visitor does shows at once.
    for (what, path) in [
        ("a link that writes the session", "/counting.php"),
        ("an answer with a cookie", "/set.php"),
    ] {
        site.until_own(page, ALICE).await;
        site.until_own(page, BOB).await;
        site.get(path, ALICE).await;
        site.is_made(page, ALICE, "alice: second", what).await;
        assert_eq!(site.get(page, BOB).await.x_cache(), "HIT", "{what}");
    }
    site.until_own(page, ALICE).await;
    let fields = format!("Cookie: {ALICE}; other=1\r\n");
    let posted = site.target().ask("POST", "/post.php", &fields, "a=b").await;
    assert_eq!(posted.text(), "posted");
    site.is_made(page, ALICE, "alice: second", "a POST").await;
    site.until_own(page, ALICE).await;
    site.get("/logout.php", ALICE).await;
    site.is_made(page, ALICE, "nobody: second", "log-out").await;
}

#[tokio::test]
async fn pages_that_write_more_than_times_and_what_is_not_known_are_not_kept() {
    let Some(site) = SessionSite::start("cache_private PHPSESSID;").await else {
        return;
    };
    site.get("/login.php?as=alice", ALICE).await;
    site.until_own("/page.php", ALICE).await;
    for path in [
        "/counting.php",
        "/private.php",
        "/cookie.php",
        "/finished.php",
    ] {
        site.is_never_kept(path, ALICE).await;
    }
    // A value that anybody could have.
    site.is_never_kept("/page.php", "PHPSESSID=short").await;
    // The session is written and removed by other programs.
    site.until_own("/page.php", ALICE).await;
    let session = site.session(ALICE);
    std::fs::write(&session, "user|s:5:\"carol\";").expect("a session");
    let began = Instant::now();
    while site.get("/page.php", ALICE).await.text() != "carol: first" {
        assert!(began.elapsed() < TIMEOUT);
        tokio::time::sleep(PAUSE).await;
    }
    site.until_own("/page.php", ALICE).await;
    std::fs::remove_file(&session).expect("a session");
    while site.get("/page.php", ALICE).await.text() != "nobody: first" {
        assert!(began.elapsed() < TIMEOUT);
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn a_page_that_draws_anything_is_made_each_time_and_numbers_and_times_may_differ() {
    let Some(site) = SessionSite::start("cache_private PHPSESSID;").await else {
        return;
    };
    site.get("/login.php?as=alice", ALICE).await;
    let drawing = async |path: &str| {
        let (one, other) = tokio::join!(site.get(path, ALICE), site.get(path, ALICE));
        let mut seen = vec![one.text(), other.text()];
        for _ in 0..6 {
            tokio::time::sleep(PART_OF_SECOND).await;
            seen.push(site.get(path, ALICE).await.text());
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count, "{path} is shown twice");
    };
    let kept = async {
        let began = Instant::now();
        while site.get("/clock.php", ALICE).await.x_cache() != "HIT" {
            assert!(began.elapsed() < TIMEOUT, "times may differ");
            tokio::time::sleep(10 * PAUSE).await;
        }
    };
    tokio::join!(
        drawing("/order.php"),
        drawing("/drawn.php"),
        drawing("/unique.php")
    );
    kept.await;
}

#[tokio::test]
async fn a_time_that_another_page_sets_is_a_change_and_a_page_is_kept_after_each_change() {
    let Some(site) = SessionSite::start("cache_private PHPSESSID;").await else {
        return;
    };
    for who in ["alice", "bea", "cleo"] {
        site.get(&format!("/login.php?as={who}"), ALICE).await;
        site.get("/unread.php", ALICE).await;
        let expected = format!("{who}: new");
        assert_eq!(site.until_own("/inbox.php", ALICE).await.text(), expected);
        site.get("/read.php", ALICE).await;
        let expected = format!("{who}: read");
        site.is_made("/inbox.php", ALICE, &expected, "read.php")
            .await;
    }
    // The same session in other bytes.
    site.until_own("/page.php", ALICE).await;
    let encoded = ALICE.replacen("=a", "=%61", 1);
    site.get("/login.php?as=dora", &encoded).await;
    site.is_made("/page.php", ALICE, "dora: first", "%61").await;
}

#[tokio::test]
async fn copies_are_bounded_for_each_visitor_and_the_one_used_last_stays() {
    let Some(site) = SessionSite::start("cache_private PHPSESSID copies=3;").await else {
        return;
    };
    site.get("/login.php?as=alice", ALICE).await;
    let page = |number: u32| format!("/page.php?n={number}");
    for number in 0..3 {
        site.until_own(&page(number), ALICE).await;
    }
    assert_eq!(site.get(&page(0), ALICE).await.x_cache(), "HIT");
    // Uses are noted by the second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    // Files are looked at each second: where a look is late, the copy is made once more.
    site.until_own(&page(0), ALICE).await;
    site.until_own(&page(3), ALICE).await;
    assert_eq!(site.get(&page(0), ALICE).await.x_cache(), "HIT");
    assert_eq!(site.get(&page(3), ALICE).await.x_cache(), "HIT");
    let kept = [1, 2].map(page);
    let mut hits = 0;
    for path in &kept {
        hits += u32::from(site.get(path, ALICE).await.x_cache() == "HIT");
    }
    assert!(hits <= 1, "{hits}");
}

#[tokio::test]
async fn with_shared_pages_a_visitor_with_a_session_has_own_copies_and_a_restart_forgets_them() {
    let lines = "cache_private PHPSESSID; cache_shared on; cache_personal_cookies PHPSESSID;";
    let Some(mut site) = SessionSite::start(lines).await else {
        return;
    };
    site.get("/login.php?as=alice", ALICE).await;
    assert_eq!(
        site.until_own("/page.php", ALICE).await.text(),
        "alice: first"
    );
    assert_eq!(site.target().get("/page.php").await.text(), "nobody: first");
    site.server.signal(Signal::HUP);
    until("a reload", || site.server.error_log().contains(" reloaded")).await;
    site.until_own("/page.php", ALICE).await;
    site.server = serve(site.folder.path(), lines).await;
    site.is_made("/page.php", ALICE, "alice: first", "a restart")
        .await;
}

#[tokio::test]
async fn no_copy_is_shown_while_a_request_of_the_session_is_under_way() {
    let Some(site) = SessionSite::start("cache_private PHPSESSID;").await else {
        return;
    };
    let flag = |name: &str| site.folder.path().join("sessions").join(name);
    site.get("/login.php?as=alice", ALICE).await;
    // One that began before there was a copy, and has not opened the session yet.
    let early = async {
        let fields = format!("Cookie: {ALICE}\r\n");
        site.target().ask("POST", "/late.php", &fields, "a=b").await
    };
    let meanwhile = async {
        until("the request is under way", || flag("late").exists()).await;
        site.is_never_kept("/page.php", ALICE).await;
        std::fs::write(flag("late-go"), "").expect("a flag");
    };
    let (early, ()) = tokio::join!(early, meanwhile);
    assert_eq!(early.text(), "late");
    site.until_own("/page.php", ALICE).await;
    let slow = site.get("/slow.php", ALICE);
    let next = async {
        until("the request has the lock", || flag("held").exists()).await;
        let next = site.get("/page.php", ALICE);
        let go = async {
            tokio::time::sleep(4 * PAUSE).await;
            std::fs::write(flag("go"), "").expect("a flag");
        };
        tokio::join!(next, go).0
    };
    let (slow, next) = tokio::join!(slow, next);
    assert_eq!(slow.text(), "ok");
    assert_eq!(next.text(), "mallory: first");
    assert_ne!(next.x_cache(), "HIT");
}

#[tokio::test]
async fn a_copy_made_of_a_database_ends_with_the_visitors_own_write() {
    let Some(site) = SessionSite::start("cache_private PHPSESSID;").await else {
        return;
    };
    if !site.make_database() {
        return;
    }
    for (cookie, who) in [(ALICE, "alice"), (BOB, "bob")] {
        site.get(&format!("/login.php?as={who}"), cookie).await;
    }
    for version in 1..4 {
        for (cookie, who) in [(ALICE, "alice"), (BOB, "bob")] {
            let shown = site.until_own("/cart.php", cookie).await;
            assert_eq!(shown.text(), format!("{version}: {who} has 0"));
        }
        assert_eq!(site.get("/publish.php", ALICE).await.text(), "published");
        let next = format!("{}: bob has 0", version + 1);
        site.is_made("/cart.php", BOB, &next, "another visitor's write")
            .await;
        let next = format!("{}: alice has 0", version + 1);
        site.is_made("/cart.php", ALICE, &next, "their own write")
            .await;
    }
}

/// Requests of each visitor, unless `MAYFLY_OWN_COPIES` says otherwise.
const STEPS: u64 = 60;
const VISITORS: u8 = 4;

/// Pages that show the session and the database.
const CARTS: [&str; 4] = [
    "/cart.php",
    "/cart.php?again",
    "/timed_cart.php",
    "/early_cart.php",
];

/// Versions of the database: of which the writes have been answered, and of which they have begun.
struct Versions {
    written: AtomicU64,
    begun: AtomicU64,
}

/// What a visitor's session holds.
struct Session {
    cookie: String,
    user: String,
    cart: u64,
}

impl Session {
    /// Takes random steps, and returns how many pages came from memory.
    async fn visit(mut self, site: &SessionSite, versions: &Versions, mut random: Random) -> u64 {
        let mut hits = 0;
        for step in 0..from_environment("MAYFLY_OWN_COPIES", STEPS) {
            match random.below(24) {
                0 => {
                    self.user = format!("user{step}");
                    let login = format!("/login.php?as={}", self.user);
                    site.get(&login, &self.cookie).await;
                }
                1 => {
                    site.get("/logout.php", &self.cookie).await;
                    (self.user, self.cart) = ("nobody".to_owned(), 0);
                }
                2 => {
                    let fields = format!("Cookie: {}\r\n", self.cookie);
                    site.target().ask("POST", "/add.php", &fields, "a=b").await;
                    self.cart += 1;
                }
                3 => {
                    site.get("/add.php", &self.cookie).await;
                    self.cart += 1;
                }
                4 => {
                    versions.begun.fetch_add(1, SeqCst);
                    let reply = site.get("/publish.php", &self.cookie).await;
                    assert_eq!(reply.text(), "published");
                    versions.written.fetch_add(1, SeqCst);
                }
                // A page is kept once it was made in two seconds.
                5 => {
                    let page = random.one_of(&CARTS);
                    for _ in 0..6 {
                        hits += u64::from(self.is_shown(page, site, versions).await);
                        tokio::time::sleep(PART_OF_SECOND).await;
                    }
                }
                _ => {
                    let page = random.one_of(&CARTS);
                    hits += u64::from(self.is_shown(page, site, versions).await);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        hits
    }

    /// Asks for a page, which has to be right. True: it came from memory.
    async fn is_shown(&self, page: &str, site: &SessionSite, versions: &Versions) -> bool {
        let least = versions.written.load(SeqCst);
        let reply = site.get(page, &self.cookie).await;
        let most = versions.begun.load(SeqCst);
        let text = reply.text();
        let (version, rest) = text.split_once(": ").expect("a page");
        let wanted = format!("{} has {}", self.user, self.cart);
        assert_eq!(rest, wanted, "{page} of {}", self.cookie);
        let version: u64 = version.parse().expect("a version");
        assert!(
            (least..=most).contains(&version),
            "{least} {version} {most}"
        );
        reply.x_cache() == "HIT"
    }
}

/// Random visitors at the same time: each is shown what PHP would show to their session, and the present data.
#[tokio::test]
async fn random_visitors_are_shown_their_session_and_the_present_data() {
    // Nothing says that the cookie makes pages personal.
    let Some(site) = SessionSite::start("cache_private PHPSESSID; cache_shared on;").await else {
        return;
    };
    if !site.make_database() {
        return;
    }
    let seed = from_environment("MAYFLY_SEED", u64::from(std::process::id()) + 1);
    let mut random = Random::new(seed);
    let (site, versions) = (
        Arc::new(site),
        Arc::new(Versions {
            written: AtomicU64::new(1),
            begun: AtomicU64::new(1),
        }),
    );
    let mut visits = JoinSet::new();
    for letter in (b'k'..).take(VISITORS.into()) {
        let session = Session {
            cookie: format!("PHPSESSID={}", char::from(letter).to_string().repeat(26)),
            user: "nobody".to_owned(),
            cart: 0,
        };
        let (site, versions) = (Arc::clone(&site), Arc::clone(&versions));
        let random = Random::new(random.below(1 << 30) as u64);
        visits.spawn(async move { session.visit(&site, &versions, random).await });
    }
    println!("seed {seed}");
    let hits: u64 = visits.join_all().await.into_iter().sum();
    println!("{hits} pages from memory");
    // At rest, each is kept.
    for page in CARTS {
        site.until_own(page, "PHPSESSID=kkkkkkkkkkkkkkkkkkkkkkkkkk")
            .await;
    }
}
