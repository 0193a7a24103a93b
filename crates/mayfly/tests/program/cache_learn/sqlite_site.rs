//! A site whose pages are a row of an SQLite database, which another program writes as well.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;
use testkit::process::is_root;
use testkit::running::RunningServer;
use testkit::serving::{open_to_all, write_files};

use super::database_site::{make_old, until_kept};
use crate::{has_php_fpm, program};

/// Each shows the version, by another way to the database.
const PAGES: [(&str, &str); 5] = [
    (
        "pdo.php",
        "$db = new PDO('sqlite:' . FILE); echo $db->query('SELECT version FROM post')->fetchColumn();",
    ),
    (
        "persistent.php",
        "$db = new PDO('sqlite:' . FILE, null, null, [PDO::ATTR_PERSISTENT => true]);\n\
         echo $db->query('SELECT version FROM post')->fetchColumn();",
    ),
    (
        "sqlite3.php",
        "$db = new SQLite3(FILE, SQLITE3_OPEN_READONLY); echo $db->querySingle('SELECT version FROM post');",
    ),
    (
        "attached.php",
        "$db = new PDO('sqlite::memory:'); $db->exec(\"ATTACH '\" . FILE . \"' AS site\");\n\
         echo $db->query('SELECT version FROM site.post')->fetchColumn();",
    ),
    (
        "mapped.php",
        "$db = new PDO('sqlite:' . FILE); $db->exec('PRAGMA mmap_size = 1000000');\n\
         echo $db->query('SELECT version FROM post')->fetchColumn();",
    ),
];

/// A page that writes the row it reads, one that writes nothing in its transaction, one that does not wait for a lock,
/// one that shows the file, and one that leaves its transaction open.
const OTHER_PAGES: [(&str, &str); 5] = [
    (
        "impatient.php",
        "$db = new PDO('sqlite:' . FILE, null, null, [PDO::ATTR_TIMEOUT => 0]);\n\
         try { echo $db->query('SELECT version FROM post')->fetchColumn(); } catch (PDOException $e) { echo 'locked'; }",
    ),
    ("file.php", "readfile(FILE);"),
    (
        "begin.php",
        "$db = new PDO('sqlite:' . FILE, null, null, [PDO::ATTR_PERSISTENT => true]); $db->exec('BEGIN');\n\
         echo $db->query('SELECT version FROM post')->fetchColumn();",
    ),
    (
        "count.php",
        "$db = new PDO('sqlite:' . FILE); $db->exec('UPDATE post SET version = version + 1');\n\
         echo $db->query('SELECT version FROM post')->fetchColumn();",
    ),
    (
        "idle.php",
        "$db = new PDO('sqlite:' . FILE); $db->exec('BEGIN IMMEDIATE'); $db->exec('ROLLBACK');\n\
         echo $db->query('SELECT version FROM post')->fetchColumn();",
    ),
];

pub struct SqliteSite {
    folder: TempDir,
    pub server: RunningServer,
}

impl SqliteSite {
    /// `None` without PHP and its extension. The database has this journal.
    pub async fn start(journal: &str) -> Option<SqliteSite> {
        SqliteSite::start_in(journal, false).await
    }

    /// The process that serves runs as `nobody`.
    pub async fn start_divided(journal: &str) -> Option<SqliteSite> {
        SqliteSite::start_in(journal, true).await
    }

    async fn start_in(journal: &str, is_divided: bool) -> Option<SqliteSite> {
        if !has_php_fpm() || !has_extension() {
            return None;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        open_to_all(folder.path());
        for (name, text) in PAGES.into_iter().chain(OTHER_PAGES) {
            let text = format!("<?php const FILE = __DIR__ . '/data/site.db';\n{text}");
            write_files(folder.path(), &[(name, &text)]);
            make_old(&folder.path().join(name));
        }
        let data = folder.path().join("data");
        std::fs::create_dir(&data).expect("a folder");
        set_mode(&data, 0o777);
        make_old(folder.path());
        let server = serve(folder.path(), is_divided).await;
        let site = SqliteSite { folder, server };
        site.python(&format!(
            "db.execute('PRAGMA journal_mode={journal}')\n\
             db.execute('CREATE TABLE post (version INT)'); db.execute('INSERT INTO post VALUES (1)')"
        ));
        set_mode(&site.database(), 0o666);
        Some(site)
    }

    pub fn database(&self) -> PathBuf {
        self.folder.path().join("data/site.db")
    }

    pub fn beside(&self, end: &str) -> PathBuf {
        PathBuf::from(format!("{}{end}", self.database().display()))
    }

    /// Runs this in another program, which has `db` open without a transaction, and returns its output.
    pub fn python(&self, code: &str) -> String {
        let run = self.command(code).output().expect("python3");
        let output = String::from_utf8_lossy(&run.stdout).trim().to_owned();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(errors.is_empty(), "{code}: {errors}");
        output
    }

    /// Begins the code in a program that goes on beside the test.
    pub fn begin(&self, code: &str) -> BesideProgram {
        let mut command = self.command(code);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("python3");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        BesideProgram { process, output }
    }

    fn command(&self, code: &str) -> Command {
        let begin = "import os, shutil, sqlite3, sys\nfile = sys.argv[1]\n\
                     db = sqlite3.connect(file, isolation_level=None, timeout=20)\n";
        let mut command = Command::new("python3");
        command.args(["-c", &format!("{begin}{code}")]);
        command.arg(self.database());
        command
    }

    pub fn version(&self) -> String {
        self.python("print(db.execute('SELECT version FROM post').fetchone()[0])")
    }

    /// Asks until the page comes from memory because it is known to be current.
    pub async fn until_kept(&self, page: &str) {
        let control = self.server.path("pid.control");
        until_kept(&self.server.target(), &control, page).await;
    }

    /// Asserts that the very next answers have the version that another program finds there; returns which came from
    /// memory.
    pub async fn are_current(&self, pages: &[&str], when: &str) -> Vec<bool> {
        let version = self.version();
        let mut hits = Vec::new();
        for page in pages {
            let reply = self.server.target().get(page).await;
            assert_eq!(reply.text(), version, "{page} {when}");
            hits.push(reply.x_cache() == "HIT");
        }
        hits
    }
}

/// A program that writes the database on demand.
pub struct BesideProgram {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl BesideProgram {
    /// Returns once it has done it.
    pub fn tell(&mut self, line: &str) {
        let input = self.process.stdin.as_mut().expect("its input");
        writeln!(input, "{line}").expect("a line");
        self.hears("done");
    }

    pub fn hears(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert_eq!(line.trim(), expected);
    }

    pub fn kill(&mut self) {
        self.process.kill().expect("a process");
        self.process.wait().expect("its end");
    }
}

impl Drop for BesideProgram {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

pub fn has_extension() -> bool {
    let php = php_pool::find_php_fpm(None).expect("php-fpm");
    let modules = Command::new(php).arg("-m").output().expect("php-fpm");
    let modules = String::from_utf8_lossy(&modules.stdout).into_owned();
    let has = modules.contains("pdo_sqlite");
    if !has {
        eprintln!("skipped: PHP has no pdo_sqlite");
    }
    has
}

async fn serve(folder: &Path, is_divided: bool) -> RunningServer {
    let user = if is_root() { "user www-data;" } else { "" };
    let main = format!("php_pool site {{ workers 2; {user} }}");
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
         server {{ listen unix:%%/http; server_name site.test; location / {{ fastcgi_pass php:site;\n\
         fastcgi_cache pages; fastcgi_cache_key $uri$args; fastcgi_cache_valid 1ms; cache_learn on;\n\
         fastcgi_param SCRIPT_FILENAME {}$uri; fastcgi_param QUERY_STRING $query_string;\n\
         fastcgi_param REQUEST_METHOD $request_method; add_header X-Cache $upstream_cache_status; }} }}",
        folder.display()
    );
    match is_divided {
        true => RunningServer::start_divided(program(), &main, &http).await,
        false => RunningServer::start(program(), &main, &http).await,
    }
}
