//! The log of a MariaDB is followed, and nothing polls: what is seen is seen by the log.

use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

use socket2::{Domain, SockAddr, Socket, Type};
use testkit::mariadb::MariaDb;
use testkit::wait::TIMEOUT;

use super::*;
use crate::book::tests::{end, reads};
use crate::book::{Confirmation, LearnedEnd};
use crate::record::RunRecord;
use crate::schema_reader;

const TABLES: &str = "CREATE DATABASE blog; USE blog;
    CREATE TABLE post (id INT PRIMARY KEY, title VARCHAR(100)) ENGINE=InnoDB;
    CREATE TABLE comment (id INT PRIMARY KEY, post INT,
      FOREIGN KEY (post) REFERENCES post (id) ON DELETE CASCADE) ENGINE=InnoDB;
    CREATE TABLE other (id INT PRIMARY KEY) ENGINE=InnoDB;
    INSERT INTO post VALUES (2, 'a'), (3, 'a'); INSERT INTO comment VALUES (1, 3);
    CREATE USER blog@localhost; GRANT ALL ON blog.* TO blog@localhost;";
const RIGHT: &str = "GRANT REPLICATION SLAVE ON *.* TO blog@localhost";

const SECOND_POST: &str = "SELECT title FROM post WHERE id = 2";
const THIRD_POST: &str = "SELECT title FROM post WHERE id = 3";
const COMMENT: &str = "SELECT id FROM comment WHERE post = 3";

/// A pool whose thread sleeps, and a database.
struct Scene {
    database: MariaDb,
    pool: Arc<LearnedPool>,
    account: DatabaseAccount,
    server: ServerName,
    _folder: tempfile::TempDir,
}

/// The log of a scene is followed for as long as this is there.
struct LogThread(Option<JoinHandle<FollowEnd>>);

impl Scene {
    fn make(options: &[&str]) -> Scene {
        let options: Vec<_> = options.iter().map(ToString::to_string).collect();
        let database = MariaDb::start_with(&options);
        database.run(TABLES);
        let folder = tempfile::tempdir().unwrap();
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        let path = folder.path().join("learn.sock");
        socket.bind(&SockAddr::unix(path).unwrap()).unwrap();
        socket.listen(1).unwrap();
        socket.set_nonblocking(true).unwrap();
        let socket = OwnedFd::from(socket);
        let identity = crate::identity(&socket).unwrap();
        let pool = crate::begin_pool("site", socket, identity, &Arc::default()).unwrap();
        let account = DatabaseAccount {
            server: format!("unix:{}", database.socket().display()),
            user: "blog".to_owned(),
            password: String::new(),
        };
        let server: ServerName = account.server.as_str().into();
        *pool.accounts.lock() = vec![account.clone()];
        pool.keeps.store(true, std::sync::atomic::Ordering::Release);
        pool.follows
            .store(true, std::sync::atomic::Ordering::Release);
        Scene {
            database,
            pool,
            account,
            server,
            _folder: folder,
        }
    }

    fn with_log() -> Scene {
        let scene = Scene::make(&["--log-bin=log", "--server-id=1"]);
        scene.database.run(RIGHT);
        scene
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(future)
    }

    /// Why the log is not followed.
    fn failure(&self) -> String {
        match Self::run(follow(
            &Arc::downgrade(&self.pool),
            &self.server,
            &self.account,
        )) {
            FollowEnd::Failed(why) => why,
            FollowEnd::NotWanted => panic!("it is not wanted"),
        }
    }

    fn follow(&self) -> LogThread {
        self.pool.change(|book| book.database(&self.server));
        let (pool, server, account) = (
            Arc::downgrade(&self.pool),
            self.server.clone(),
            self.account.clone(),
        );
        let thread =
            std::thread::spawn(move || Self::run(async { follow(&pool, &server, &account).await }));
        until("the log is followed", || self.pool.counts().followed == 1);
        self.read_schema();
        LogThread(Some(thread))
    }

    /// Reads the schema like the thread of the pool, which does so once definitions are seen or may have been missed.
    fn read_schema(&self) {
        let definitions = self.pool.change(|book| book.servers()).first().unwrap().2;
        let schema = Self::run(schema_reader::read(&self.account)).unwrap();
        self.pool.change(|book| {
            book.set_schema(&self.server, Ok(schema), definitions, Instant::now());
        });
    }

    /// Makes the record of a page that runs this statement.
    fn record(&self, statement: &str) -> RunRecord {
        let mut record = reads(&[statement]);
        record
            .statements
            .iter_mut()
            .for_each(|it| it.server = self.server.clone());
        record
    }

    /// A page that is made now.
    fn page(&self, statement: &str) -> Page<'_> {
        let learn = || {
            self.pool.change(|book| {
                let mut end = end(book, 1);
                end.page.name = statement.as_bytes().into();
                book.learn(&end, Some(self.record(statement)), Instant::now())
            })
        };
        let started = Instant::now();
        loop {
            match learn() {
                LearnedEnd::Known(number, _) => return Page(self, number),
                // An event is looked into.
                other => assert!(started.elapsed() < TIMEOUT, "{other:?}"),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Until all is read that was written.
    fn settle(&self) {
        let page = self.page("SELECT id FROM other");
        let write =
            "SET binlog_format = ROW; INSERT INTO blog.other SELECT COUNT(*) FROM blog.other";
        self.database.run(write);
        page.until_ended("the last write");
    }
}

struct Page<'a>(&'a Scene, u32);

impl Page<'_> {
    fn is_good(&self) -> bool {
        matches!(self.0.pool.confirm(self.1, 1), Confirmation::Good(_))
    }

    fn until_ended(&self, why: &str) {
        until(why, || !self.is_good());
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl LogThread {
    fn end(mut self, scene: &Scene) -> String {
        let ended = self.0.take().unwrap().join().unwrap();
        let FollowEnd::Failed(why) = ended else {
            panic!("it is not wanted");
        };
        let state = LogState::NotFollowed(why.as_str().into());
        scene
            .pool
            .change(|book| book.note_log(&scene.server, state));
        why
    }
}

#[test]
fn writes_in_each_format_end_the_pages_that_read_what_they_write() {
    let scene = Scene::with_log();
    let _followed = scene.follow();
    for format in ["ROW", "STATEMENT", "MIXED"] {
        let set = format!("SET binlog_format = {format}; USE blog");
        let page = scene.page(SECOND_POST);
        scene.database.run(&format!(
            "{set}; UPDATE post SET title = CONCAT(title, 'b') WHERE id = 2"
        ));
        page.until_ended(format);
        scene.settle();
        let (page, comment) = (scene.page(SECOND_POST), scene.page(COMMENT));
        scene.database.run(&format!(
            "{set}; BEGIN; INSERT INTO comment VALUES (7, 2); UPDATE comment SET post = 3 WHERE id = 7;
             UPDATE post SET title = 'c' WHERE id = 2; COMMIT; DELETE FROM comment WHERE id = 7;"
        ));
        page.until_ended("one table of a transaction");
        comment.until_ended("the other table");
        scene.settle();
    }
}

#[test]
fn page_stays_if_another_table_or_row_is_written_or_a_transaction_is_rolled_back() {
    let scene = Scene::with_log();
    let _followed = scene.follow();
    let (third, other) = (scene.page(THIRD_POST), scene.page("SELECT id FROM other"));
    scene.database.run(
        "USE blog; SET binlog_format = ROW; INSERT INTO comment VALUES (4, 2);
         BEGIN; DELETE FROM other; UPDATE post SET title = 'd'; ROLLBACK;
         CREATE DATABASE foreign_site; CREATE TABLE foreign_site.a (b INT) ENGINE=InnoDB;",
    );
    other.until_ended("a definition ends all pages");
    third.until_ended("a definition ends all pages");
    until("both definitions", || scene.pool.counts().logged == 3);
    scene.read_schema();
    let (second, third, other) = (
        scene.page(SECOND_POST),
        scene.page(THIRD_POST),
        scene.page("SELECT id FROM other"),
    );
    scene.database.run(
        "USE blog; SET binlog_format = ROW; INSERT INTO comment VALUES (5, 2); INSERT INTO foreign_site.a VALUES (1);
         BEGIN; DELETE FROM other; UPDATE post SET title = 'd'; ROLLBACK;
         SET binlog_format = STATEMENT; UPDATE post SET title = 'e' WHERE id = 2;",
    );
    second.until_ended("its row is written last");
    assert!(third.is_good() && other.is_good());
}

#[test]
fn rows_that_a_foreign_key_deletes_count_though_they_are_in_no_event() {
    let scene = Scene::with_log();
    let _followed = scene.follow();
    let page = scene.page(COMMENT);
    scene
        .database
        .run("SET binlog_format = ROW; DELETE FROM blog.post WHERE id = 3");
    page.until_ended("the comment went with its post");
}

#[test]
fn page_that_is_fetched_between_an_event_and_its_commit_is_not_kept() {
    let scene = Scene::with_log();
    let _followed = scene.follow();
    // A primary that waits for a replica, behind the log and before the commit.
    scene.database.run(
        "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC, GLOBAL rpl_semi_sync_master_timeout = 600000,
         GLOBAL rpl_semi_sync_master_wait_no_slave = 1, GLOBAL rpl_semi_sync_master_enabled = 1",
    );
    let page = scene.page(SECOND_POST);
    let title = || {
        scene
            .database
            .run("SELECT title FROM blog.post WHERE id = 2")
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            scene
                .database
                .run("UPDATE blog.post SET title = 'new' WHERE id = 2")
        });
        page.until_ended("the event is read");
        assert_eq!(title(), "a\n", "others do not see it");
        // The follower takes as many meanwhile.
        Scene::run(async {
            let client = Client::open(&scene.account, COLLATION).await.unwrap();
            let mut snapshots = Snapshots(client);
            for _ in 0..20 {
                snapshots.next().await.unwrap();
            }
        });
        assert_eq!(scene.pool.change(|book| book.count_under_way()), 1);
        let (begun_before, learned) = scene.pool.change(|book| {
            let (begun_before, now) = (end(book, 1), end(book, 1));
            (
                begun_before,
                book.learn(&now, Some(scene.record(SECOND_POST)), Instant::now()),
            )
        });
        assert_eq!(learned, LearnedEnd::Gone, "it has the old title");
        scene
            .database
            .run("SET GLOBAL rpl_semi_sync_master_enabled = 0");
        until("the commit is seen", || {
            scene.pool.change(|book| book.count_under_way()) == 0
        });
        assert_eq!(title(), "new\n");
        let learned = scene.pool.change(|book| {
            book.learn(
                &begun_before,
                Some(scene.record(SECOND_POST)),
                Instant::now(),
            )
        });
        assert_eq!(learned, LearnedEnd::Gone, "it may have the old title");
        assert!(scene.page(SECOND_POST).is_good());
    });
}

#[test]
fn log_that_cannot_be_followed_is_named() {
    let scene = Scene::make(&[]);
    scene.database.run(RIGHT);
    assert!(
        scene.failure().contains("log_bin is off"),
        "{}",
        scene.failure()
    );
    let scene = Scene::make(&["--log-bin=log", "--server-id=1"]);
    let why = scene.failure();
    assert!(why.contains("REPLICATION SLAVE"), "{why}");
}

#[test]
fn killed_connection_ends_following_and_the_next_one_ends_all_pages() {
    let scene = Scene::with_log();
    let followed = scene.follow();
    scene.database.run(
        "SET @id = (SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'); KILL @id",
    );
    let why = followed.end(&scene);
    assert_eq!(scene.pool.counts().followed, 0, "{why}");
    let page = scene.page(SECOND_POST);
    let notice = format!("the binary log of {} is not followed: {why}", scene.server);
    assert_eq!(scene.pool.take_notices(), [notice]);
    let _followed = scene.follow();
    assert!(!page.is_good(), "what was written meanwhile is not known");
    let notice = format!("the binary log of {} is followed again", scene.server);
    assert_eq!(scene.pool.take_notices(), [notice]);
    // Following goes on in the next file of the log.
    let page = scene.page(SECOND_POST);
    scene
        .database
        .run("FLUSH BINARY LOGS; UPDATE blog.post SET title = 'f' WHERE id = 2");
    page.until_ended("a write in the next file");
}

#[test]
fn places_go_on_and_a_log_that_begins_anew_or_is_too_long_ends() {
    let event = |end, content| LogEvent { end, content };
    let at = |file, bytes| LogPosition { file, bytes };
    let next = |before, event: LogEvent<'_>| behind(before, &event).ok();
    assert_eq!(
        next(at(1, 4), event(300, LogContent::Nothing)),
        Some(at(1, 300))
    );
    assert_eq!(
        next(at(1, 300), event(0, LogContent::Nothing)),
        Some(at(1, 300))
    );
    assert_eq!(next(at(1, 300), event(200, LogContent::Nothing)), None);
    assert_eq!(
        next(at(1, 300), event(0, LogContent::File(b"log.000001"))),
        Some(at(1, 300))
    );
    assert_eq!(
        next(at(1, 300), event(0, LogContent::File(b"log.000002"))),
        Some(at(2, 0))
    );
    assert_eq!(
        next(at(2, 300), event(0, LogContent::File(b"log.000001"))),
        None
    );
    assert_eq!(next(at(2, 300), event(0, LogContent::File(b"log"))), None);
    assert!(at(2, 4) > at(1, 300) && at(999_999, 4) < at(1_000_000, 4));
}

#[test]
fn more_writes_at_a_time_than_are_kept_count_as_anything() {
    let server: ServerName = "unix:/sock".into();
    let mut list = WriteList::default();
    for number in 0..3 * MAX_WRITES {
        let table = format!("t{}", number % (MAX_WRITES + 1));
        let rows = LogContent::Rows {
            database: b"blog",
            table: table.as_bytes(),
        };
        assert!(list.add(&server, &rows));
        if number == MAX_WRITES - 1 {
            assert_eq!(list.all.len(), MAX_WRITES);
        }
    }
    let writes = list.finish(&server);
    assert!(matches!(&*writes, [write] if !write.is_complete && write.rows_of.is_none()));
}
