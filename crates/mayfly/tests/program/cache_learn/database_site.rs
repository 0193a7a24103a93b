//! A site whose page is a row of a MariaDB, in a folder whose files may be learned: not among temporary ones.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use testkit::client::Target;
use testkit::mariadb::MariaDb;
use testkit::serving::{open_to_all, write_files};
use testkit::wait::TIMEOUT;

use super::{PAUSE, explained_by};
use crate::has_php_fpm;

/// A password with characters that mean something in a configuration.
pub const PASSWORD: &str = "se$cret \"x\\y;";

const CONNECT: &str = "<?php
require __DIR__ . '/wp-config.php';
$database = new mysqli('localhost', DB_USER, DB_PASSWORD, DB_NAME, null, explode(':', DB_HOST)[1]);
function wait_for_flag($name) {
    while (!file_exists(__DIR__ . '/flags/' . $name)) { clearstatcache(); usleep(2000); }
}
";

/// It shows the version.
const PAGE: &str = "<?php
require __DIR__ . '/connect.php';
echo $database->query('SELECT version FROM post WHERE id = 1')->fetch_row()[0];
";

/// Writes the next version, at once or on demand, in a transaction or without, or after its answer.
const WRITE: &str = "<?php
ignore_user_abort(true);
require __DIR__ . '/connect.php';
$way = $_GET['way'] ?? '';
if ($way === 'transaction') {
    $database->begin_transaction();
    $database->query('UPDATE post SET version = version + 1 WHERE id = 1');
}
if ($way === 'answered') {
    echo 'answered';
    fastcgi_finish_request();
}
if ($way !== '') {
    touch(__DIR__ . '/flags/held');
    wait_for_flag('go');
}
if ($way === 'transaction') {
    $database->commit();
} else {
    $database->query('UPDATE post SET version = version + 1 WHERE id = 1');
}
touch(__DIR__ . '/flags/done');
echo 'written';
";

/// Locks the row until a request asks for its release.
const LOCK: &str = "<?php
ignore_user_abort(true);
require __DIR__ . '/connect.php';
$database->begin_transaction();
$database->query('SELECT version FROM post WHERE id = 1 FOR UPDATE');
touch(__DIR__ . '/flags/held');
wait_for_flag('go');
$database->rollback();
";

/// Runs the given statement.
const STATEMENT: &str = "<?php
require __DIR__ . '/connect.php';
$database->query(file_get_contents(__DIR__ . '/flags/statement'));
echo 'done';
";

pub struct DatabaseSite {
    folder: TempDir,
    pub database: MariaDb,
}

impl DatabaseSite {
    /// `None` without PHP.
    pub fn make() -> Option<DatabaseSite> {
        DatabaseSite::make_with(&[])
    }

    /// Like [`DatabaseSite::make`], with more options of `mariadbd`.
    pub fn make_with(options: &[&str]) -> Option<DatabaseSite> {
        if !has_php_fpm() {
            return None;
        }
        let place = env!("CARGO_TARGET_TMPDIR");
        let folder = tempfile::tempdir_in(place).expect("a folder");
        open_to_all(folder.path());
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let database = MariaDb::start_with(&options);
        open_to_all(database.socket().parent().expect("its folder"));
        let quoted = PASSWORD.replace('\\', "\\\\").replace('\'', "\\'");
        database.run(&format!(
            "CREATE DATABASE blog; CREATE TABLE blog.post (id INT PRIMARY KEY, version INT) ENGINE=InnoDB;
             INSERT INTO blog.post VALUES (1, 1);
             CREATE USER blog@localhost IDENTIFIED BY '{quoted}'; GRANT ALL ON blog.* TO blog@localhost;"
        ));
        let settings = format!(
            "<?php\ndefine('DB_NAME', 'blog');\ndefine('DB_USER', 'blog');\ndefine('DB_PASSWORD', '{quoted}');\n\
             define('DB_HOST', 'localhost:{}');\n",
            database.socket().display()
        );
        write_files(
            folder.path(),
            &[
                ("wp-config.php", &settings),
                ("connect.php", CONNECT),
                ("index.php", PAGE),
                ("write.php", WRITE),
                ("lock.php", LOCK),
                ("statement.php", STATEMENT),
                ("flags/.keep", ""),
            ],
        );
        for entry in std::fs::read_dir(folder.path())
            .expect("a folder")
            .flatten()
        {
            make_old(&entry.path());
        }
        let everybody_writes = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path().join("flags"), everybody_writes).expect("a mode");
        Some(DatabaseSite { folder, database })
    }

    /// Adds a script.
    pub fn add(&self, name: &str, text: &str) {
        write_files(self.path(), &[(name, text)]);
        make_old(&self.path().join(name));
        make_old(self.path());
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn flag(&self, name: &str) -> PathBuf {
        self.path().join("flags").join(name)
    }

    pub fn raise(&self, name: &str) {
        std::fs::write(self.flag(name), "").expect("a flag");
    }

    pub fn is_raised(&self, name: &str) -> bool {
        self.flag(name).exists()
    }

    pub fn lower_all(&self) {
        for name in ["held", "go", "done"] {
            let _ = std::fs::remove_file(self.flag(name));
        }
    }

    /// Writes as another program.
    pub fn write(&self) {
        let update = "UPDATE blog.post SET version = version + 1 WHERE id = 1";
        self.database.run(update);
    }

    /// Lets PHP run this.
    pub async fn run_by_php(&self, target: &Target, statement: &str) {
        std::fs::write(self.flag("statement"), statement).expect("a statement");
        let answer = target.ask("POST", "/statement.php", "", "").await;
        assert_eq!(answer.text(), "done", "{statement}");
    }

    pub fn version(&self) -> String {
        let select = "SELECT version FROM blog.post WHERE id = 1";
        self.database.run(select).trim().to_owned()
    }
}

/// A file that is younger than a second when a page is made cannot show that it is unchanged.
pub fn make_old(path: &Path) {
    let file = std::fs::File::open(path).expect("a file");
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    file.set_modified(long_ago).expect("a time");
}

/// Asks for the page until it comes from memory because it is known to be current.
pub async fn until_kept(target: &Target, control: &Path, path: &str) {
    until_one_is_kept(target, control, |_| path.to_owned()).await;
}

/// Asks for one page after the other until one is kept; which one.
pub async fn until_one_is_kept(
    target: &Target,
    control: &Path,
    path: impl Fn(u32) -> String,
) -> String {
    let started = std::time::Instant::now();
    for number in 0.. {
        let path = path(number);
        target.get(&path).await;
        tokio::time::sleep(PAUSE).await;
        let reply = target.get(&path).await;
        let part = explained_by(control, &path).await.learned.expect("a part");
        if reply.x_cache() == "HIT" && part.sentence.contains("it is kept for") {
            return path;
        }
        assert!(started.elapsed() < TIMEOUT, "{part:?}");
    }
    unreachable!("the numbers do not end")
}
