//! Pages that are made of an SQLite database: kept while nothing writes it, and not shown from the moment at which
//! another program has written it, which sends no report.

use std::time::Instant;

use control::explain::LearnedState;
use testkit::process::is_root;
use testkit::wait::TIMEOUT;

use super::database_site::make_old;
use super::sqlite_site::{SqliteSite, set_mode};
use super::{explained, learned};

const READING: [&str; 5] = [
    "/pdo.php",
    "/sqlite3.php",
    "/attached.php",
    "/mapped.php",
    "/persistent.php",
];

/// With a log, pages of persistent connections are not kept.
const READING_LOGS: &[&str] = READING.split_at(4).0;

/// How often each is written and asked for.
const ROUNDS: usize = 3;

const UPDATE: &str = "db.execute('UPDATE post SET version = version + 1')";

/// Each page is kept over many hits, and shows each of these writes at once.
async fn shows_each_write_at_once(journal: &str, pages: &[&str], writes: &[&str]) {
    let Some(site) = SqliteSite::start(journal).await else {
        return;
    };
    for round in 0..ROUNDS {
        for write in writes {
            for page in pages {
                site.until_kept(page).await;
            }
            for _ in 0..20 {
                let reply = site.server.target().get("/pdo.php").await;
                assert_eq!(reply.x_cache(), "HIT", "{journal} {write}");
            }
            site.python(write);
            let when = format!("{journal}, round {round}, after {write}");
            site.are_current(pages, &when).await;
        }
    }
    let part = learned_of(&site, "/pdo.php").await;
    assert_eq!(part, [site.database().display().to_string()]);
}

async fn learned_of(site: &SqliteSite, page: &str) -> Vec<String> {
    site.until_kept(page).await;
    let part = learned(&site.server, page, LearnedState::Fresh).await;
    part.databases
}

#[tokio::test]
async fn a_write_by_another_program_shows_at_once_with_each_kind_of_rollback_journal() {
    for journal in ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF"] {
        let update = format!("db.execute('PRAGMA journal_mode={journal}'); {UPDATE}");
        shows_each_write_at_once(journal, &READING, &[&update]).await;
    }
}

#[tokio::test]
async fn a_write_by_another_program_shows_at_once_with_a_write_ahead_log() {
    let truncate = format!("{UPDATE}; db.execute('PRAGMA wal_checkpoint(TRUNCATE)')");
    let before = format!("db.execute('PRAGMA wal_checkpoint(RESTART)'); {UPDATE}");
    shows_each_write_at_once("WAL", READING_LOGS, &[UPDATE, &truncate, &before]).await;
}

/// Another program has the database open all the time, so that the log stays.
#[tokio::test]
async fn a_write_ahead_log_that_is_kept_open_shows_each_commit_and_no_transaction_before() {
    let Some(site) = SqliteSite::start("WAL").await else {
        return;
    };
    let mut writer = site.begin(
        "db.execute('PRAGMA wal_autocheckpoint=0')
for line in sys.stdin:
    db.execute(line) if line.strip() != 'CHECKPOINT' else db.execute('PRAGMA wal_checkpoint(RESTART)').fetchall()
    print('done', flush=True)",
    );
    for round in 0..ROUNDS {
        writer.tell("UPDATE post SET version = version + 1");
        for page in READING_LOGS {
            site.until_kept(page).await;
        }
        writer.tell("BEGIN IMMEDIATE");
        writer.tell("UPDATE post SET version = version + 1");
        let hits = site.are_current(READING_LOGS, "in a transaction").await;
        assert!(hits.iter().all(|is_hit| *is_hit), "{hits:?}");
        writer.tell("COMMIT");
        let hits = site
            .are_current(READING_LOGS, &format!("after COMMIT {round}"))
            .await;
        assert!(!hits.contains(&true), "{hits:?}");
        site.until_kept("/pdo.php").await;
        writer.tell("CHECKPOINT");
        site.are_current(&["/pdo.php"], "after a checkpoint").await;
    }
}

#[tokio::test]
async fn a_file_that_is_replaced_or_made_anew_shows_at_once() {
    let Some(site) = SqliteSite::start("DELETE").await else {
        return;
    };
    for (what, code) in [
        ("VACUUM", format!("{UPDATE}; db.execute('VACUUM')")),
        (
            "rename",
            "shutil.copy(file, file + '.new'); os.chmod(file + '.new', 0o666)\n\
             new = sqlite3.connect(file + '.new')\n\
             new.execute('UPDATE post SET version = version + 1'); new.commit(); new.close()\n\
             os.rename(file + '.new', file)"
                .to_owned(),
        ),
        (
            "a copy that has the counter and the time of the one before",
            "before = os.stat(file)\n\
             shutil.copy(file, '/tmp/%d.db' % os.getpid()); copy = '/tmp/%d.db' % os.getpid()\n\
             new = sqlite3.connect(copy); new.execute('UPDATE post SET version = version + 1')\n\
             new.commit(); new.close()\n\
             counter = open(file, 'rb').read()[24:28]; text = bytearray(open(copy, 'rb').read())\n\
             text[24:28] = counter; open(file, 'r+b').write(text); os.remove(copy)\n\
             os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))"
                .to_owned(),
        ),
        (
            "other journals",
            format!(
                "db.execute('PRAGMA journal_mode=WAL'); {UPDATE}; db.execute('PRAGMA journal_mode=DELETE')"
            ),
        ),
    ] {
        site.until_kept("/pdo.php").await;
        site.until_kept("/sqlite3.php").await;
        site.python(&code);
        let hits = site.are_current(&["/pdo.php", "/sqlite3.php"], what).await;
        assert!(!hits.contains(&true), "{hits:?} after {what}");
    }
}

/// PHP 8.2 leaves such a transaction open, and reads its snapshot on the connection's next page: none of them is kept.
#[tokio::test]
async fn pages_of_a_persistent_connection_to_a_log_are_not_kept_for_it_may_have_a_transaction_open()
{
    let Some(site) = SqliteSite::start("WAL").await else {
        return;
    };
    let target = site.server.target();
    let started = Instant::now();
    let part = loop {
        target.get("/begin.php").await;
        // One that opens the connection may be kept, and one that is made beside a write is not learned for that.
        site.python(UPDATE);
        target.get("/persistent.php").await;
        let part = explained(&site.server, "/persistent.php").await.learned;
        let part = part.expect("a part");
        if part.reason == "database-file" {
            break part;
        }
        assert!(started.elapsed() < TIMEOUT, "{part:?}");
    };
    assert!(part.detail.contains("persistent"), "{part:?}");
    let reply = target.get("/persistent.php").await;
    assert_ne!(reply.x_cache(), "HIT");
}

/// PHP goes on with the file that has gone, and its page is not kept.
#[tokio::test]
async fn a_persistent_connection_to_a_file_that_was_replaced_is_named() {
    let Some(site) = SqliteSite::start("DELETE").await else {
        return;
    };
    site.until_kept("/persistent.php").await;
    site.python("shutil.copy(file, file + '.new'); os.rename(file + '.new', file)");
    let target = site.server.target();
    let mut part = None;
    for _ in 0..20 {
        target.get("/persistent.php").await;
        part = explained(&site.server, "/persistent.php").await.learned;
        if part.as_ref().is_some_and(|it| it.reason == "database-file") {
            break;
        }
        tokio::time::sleep(super::PAUSE).await;
    }
    let part = part.expect("a part");
    assert!(part.detail.contains("another file open"), "{part:?}");
}

#[tokio::test]
async fn a_journal_that_has_to_be_rolled_back_ends_the_page() {
    let Some(site) = SqliteSite::start("DELETE").await else {
        return;
    };
    site.until_kept("/pdo.php").await;
    let version = site.version();
    // It has written into the database already when it is killed.
    let mut killed = site.begin(
        "db.execute('PRAGMA cache_size=1'); db.execute('BEGIN')
db.execute('UPDATE post SET version = version + 1')
db.execute('CREATE TABLE much (text)')
for number in range(2000): db.execute('INSERT INTO much VALUES (zeroblob(1000))')
print('ready', flush=True)
sys.stdin.readline()",
    );
    killed.hears("ready");
    killed.kill();
    let journal = site.beside("-journal");
    assert!(journal.exists(), "the writer has left a journal");
    let reply = site.server.target().get("/pdo.php").await;
    assert_eq!(reply.text(), version);
    assert_ne!(reply.x_cache(), "HIT");
    assert!(!journal.exists(), "PHP has taken the transaction back");
    site.until_kept("/pdo.php").await;
}

#[tokio::test]
async fn a_database_that_mayfly_may_not_read_is_named() {
    if !is_root() {
        eprintln!("skipped: only root can give up root's rights");
        return;
    }
    let Some(site) = SqliteSite::start_divided("DELETE").await else {
        return;
    };
    site.until_kept("/pdo.php").await;
    site.python("shutil.chown(file, 'www-data')");
    set_mode(&site.database(), 0o600);
    // The descriptor that Mayfly has is not asked whether it still may.
    site.python("shutil.copy(file, file + '.new'); shutil.chown(file + '.new', 'www-data'); os.rename(file + '.new', file)");
    let part = learned(&site.server, "/pdo.php", LearnedState::Suspect).await;
    assert!(part.detail.contains("has changed"), "{part:?}");
    site.server.target().get("/pdo.php").await;
    let part = learned(&site.server, "/pdo.php", LearnedState::NotLearned).await;
    assert_eq!(part.reason, "database-file", "{part:?}");
    assert!(part.detail.contains("may not read it"), "{part:?}");
    set_mode(&site.database(), 0o666);
    site.until_kept("/pdo.php").await;
}

#[tokio::test]
async fn a_file_of_that_name_that_is_no_database_is_a_file() {
    let Some(site) = SqliteSite::start("DELETE").await else {
        return;
    };
    std::fs::write(site.database(), "no database").expect("a file");
    make_old(&site.database());
    site.until_kept("/file.php").await;
    let part = learned(&site.server, "/file.php", LearnedState::Fresh).await;
    assert_eq!(part.databases, [] as [&str; 0]);
    assert_eq!(part.files.len(), 1, "{part:?}");
}

#[tokio::test]
async fn a_page_that_writes_what_it_reads_is_not_kept_and_one_that_only_locks_is() {
    let Some(site) = SqliteSite::start("DELETE").await else {
        return;
    };
    site.until_kept("/idle.php").await;
    let target = site.server.target();
    let mut last = 0;
    for _ in 0..10 {
        let count: u32 = target.get("/count.php").await.text().parse().unwrap();
        assert!(count > last, "{count} after {last}");
        last = count;
        site.are_current(&["/idle.php"], "after a page that writes")
            .await;
    }
}

#[tokio::test]
async fn a_log_that_another_connection_has_for_itself_is_not_learned() {
    let Some(site) = SqliteSite::start("WAL").await else {
        return;
    };
    site.until_kept("/pdo.php").await;
    let mut owner = site.begin(
        "db.execute('PRAGMA locking_mode=EXCLUSIVE'); db.execute('UPDATE post SET version = version + 1')
print('ready', flush=True)
for line in sys.stdin: print('done', flush=True)",
    );
    owner.hears("ready");
    // PHP gets no lock.
    let reply = site.server.target().get("/impatient.php").await;
    assert_eq!(
        (reply.text(), reply.x_cache()),
        ("locked".to_owned(), "MISS")
    );
    let reply = site.server.target().get("/impatient.php?again").await;
    assert_eq!(reply.text(), "locked");
    owner.kill();
    site.are_current(&["/pdo.php"], "after it has gone").await;
    site.until_kept("/pdo.php").await;
}
