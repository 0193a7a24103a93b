//! Files that root opens in folders where another account may write: links and FIFOs in their
//! place neither lead root elsewhere nor make it wait.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;
use testkit::client::Target;
use testkit::process::{KilledOnDrop, Signal, children, is_root, send_signal};
use testkit::serving::FolderServer;
use testkit::wait::TIMEOUT;

/// A server with a configuration of its administrator's, in a folder of root's that has a
/// folder of another account's in it.
struct ConfiguredServer {
    folder: TempDir,
    child: KilledOnDrop,
}

/// A stop that ends requests under way, PHP included, on a busy machine.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The owner of the folder `theirs`: the account of Debian's sites.
const SITE_ACCOUNT: &str = "www-data";

impl ConfiguredServer {
    /// `prepare` gets the folder; `%%` stands for it in the configuration.
    fn start(main: &str, http: &str, prepare: impl FnOnce(&Path)) -> Option<ConfiguredServer> {
        if !is_root() {
            eprintln!("skipped: only root starts the server with other accounts");
            return None;
        }
        let folder = FolderServer::folder();
        let path = folder.path();
        std::fs::create_dir(path.join("theirs")).unwrap();
        std::fs::write(path.join("victim"), "kept").unwrap();
        std::fs::create_dir(path.join("precious")).unwrap();
        prepare(path);
        give_to_site(&path.join("theirs"));
        let text = format!(
            "daemon off;\nerror_log %%/error.log info;\n{main}\nevents {{}}\n\
             http {{\nroot %%;\n{http}\n}}\n"
        );
        let text = text.replace("%%", path.to_str().unwrap());
        std::fs::write(path.join("test.conf"), text).unwrap();
        let child = Command::new(crate::program())
            .arg("-p")
            .arg(path)
            .args(["-c", "test.conf", "-e", "error.log"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(ConfiguredServer {
            folder,
            child: KilledOnDrop(child),
        })
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }

    /// Waits until the log has a line with that in it.
    async fn says(&self, what: &str) {
        let begun = Instant::now();
        while !self.log().contains(what) {
            assert!(begun.elapsed() < TIMEOUT, "no {what:?} in: {}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until it listens or has ended.
    async fn settles(&mut self) {
        let begun = Instant::now();
        // PHP-FPM logs "ready to handle connections" before.
        while !self.log().contains(": ready\n") && self.child.0.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < TIMEOUT, "it hangs: {}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn ends_in_time(&mut self) {
        if self.child.0.try_wait().unwrap().is_some() {
            return;
        }
        send_signal(self.child.0.id(), Signal::TERM);
        let begun = Instant::now();
        while self.child.0.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < STOP_TIMEOUT, "TERM did not end it");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn target(&self) -> Target {
        Target(self.folder.path().join("http"))
    }
}

/// Changes the file itself, not the target of a link.
fn give_to_site(path: &Path) {
    let done = Command::new("chown")
        .args(["-h", SITE_ACCOUNT])
        .arg(path)
        .status();
    assert!(done.unwrap().success());
}

fn fifo(path: &Path) {
    let done = Command::new("mkfifo").arg(path).status();
    assert!(done.unwrap().success());
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
    give_to_site(path);
}

fn link(target: &Path, path: &Path) {
    std::os::unix::fs::symlink(target, path).unwrap();
    give_to_site(path);
}

const PLAIN: &str =
    "access_log off; server { listen unix:%%/http; location / { return 200 one; } }";

/// Files that root opens in a folder of the site's, each with something in its place.
#[tokio::test]
async fn root_is_not_led_elsewhere_by_what_lies_in_a_folder_of_the_site() {
    type Prepare = fn(&Path);
    let victim: Prepare = |folder| link(&folder.join("victim"), &folder.join("theirs/it"));
    let precious: Prepare = |folder| link(&folder.join("precious"), &folder.join("theirs/it"));
    let second: Prepare = |folder| {
        std::fs::hard_link(folder.join("victim"), folder.join("theirs/it")).unwrap();
    };
    let waits: Prepare = |folder| fifo(&folder.join("theirs/it"));
    let logged = PLAIN.replace("access_log off;", "access_log %%/theirs/it;");
    let temp = format!("client_body_temp_path %%/theirs/it; {PLAIN}");
    let cases = [
        ("pid file, link", "pid %%/theirs/it;", PLAIN, victim),
        ("pid file, second name", "pid %%/theirs/it;", PLAIN, second),
        ("pid file, FIFO", "pid %%/theirs/it;", PLAIN, waits),
        ("log, link", "pid %%/pid;", &*logged, victim),
        ("log, FIFO", "pid %%/pid;", &*logged, waits),
        (
            "log, below a link",
            "pid %%/pid;",
            "access_log %%/theirs/it/log; server { listen unix:%%/http; }",
            precious,
        ),
        ("temporary files, link", "pid %%/pid;", &*temp, precious),
    ];
    for (name, main, http, prepare) in cases {
        let main = format!("user {SITE_ACCOUNT};\n{main}");
        let Some(mut server) = ConfiguredServer::start(&main, http, prepare) else {
            return;
        };
        server.settles().await;
        server.ends_in_time().await;
        let folder = server.folder.path();
        let victim = std::fs::read_to_string(folder.join("victim")).unwrap();
        assert_eq!(victim, "kept", "{name}");
        let precious = folder.join("precious");
        assert_eq!(std::fs::metadata(&precious).unwrap().uid(), 0, "{name}");
        assert_eq!(std::fs::read_dir(&precious).unwrap().count(), 0, "{name}");
    }
}

#[tokio::test]
async fn reopening_a_log_that_a_script_has_exchanged_neither_hangs_nor_leads_elsewhere() {
    let main = "pid %%/pid;";
    let http = PLAIN.replace("access_log off;", "access_log %%/theirs/log;");
    for trap in ["link", "FIFO"] {
        let Some(mut server) = ConfiguredServer::start(main, &http, |_| ()) else {
            return;
        };
        server.settles().await;
        assert_eq!(server.target().get("/").await.text(), "one");
        let folder = server.folder.path();
        let log = folder.join("theirs/log");
        std::fs::remove_file(&log).unwrap();
        if trap == "link" {
            link(&folder.join("victim"), &log);
        } else {
            fifo(&log);
        }
        send_signal(server.child.0.id(), Signal::USR1);
        server.says("signal USR1 received").await;
        assert_eq!(server.target().get("/").await.text(), "one");
        server.ends_in_time().await;
        let victim = std::fs::read_to_string(server.folder.path().join("victim")).unwrap();
        assert_eq!(victim, "kept", "{trap}");
    }
}

/// The setup of an administrator stays: links and FIFOs of root's.
#[tokio::test]
async fn links_and_fifos_of_roots_are_logs_as_before() {
    let mut fifo_reader = None;
    let prepare = |folder: &Path| {
        std::os::unix::fs::symlink(folder.join("victim"), folder.join("log")).unwrap();
        let done = Command::new("mkfifo").arg(folder.join("fifo")).status();
        assert!(done.unwrap().success());
        // Open before the server starts: without a reader it could not open the FIFO.
        let options = OFlags::RDONLY | OFlags::NONBLOCK;
        let opened = rustix::fs::open(folder.join("fifo"), options, Mode::empty());
        fifo_reader = Some(File::from(opened.unwrap()));
    };
    let http = PLAIN.replace("access_log off;", "access_log %%/log; access_log %%/fifo;");
    let Some(mut server) = ConfiguredServer::start("pid %%/pid;", &http, prepare) else {
        return;
    };
    server.settles().await;
    assert_eq!(server.target().get("/").await.text(), "one");
    let mut fifo_reader = fifo_reader.unwrap();
    let (begun, mut from_fifo) = (Instant::now(), Vec::new());
    loop {
        // If nothing has been written yet, there is nothing to read.
        let _ = fifo_reader.read_to_end(&mut from_fifo);
        let from_link = std::fs::read(server.folder.path().join("victim")).unwrap();
        let logs = [&from_fifo, &from_link].map(|bytes| String::from_utf8_lossy(bytes));
        if logs.iter().all(|log| log.contains("GET / HTTP")) {
            break;
        }
        assert!(begun.elapsed() < TIMEOUT, "{logs:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.ends_in_time().await;
    let end = fifo_reader.read_to_end(&mut from_fifo);
    assert!(end.is_ok(), "the server has closed it");
}

#[tokio::test]
async fn a_reload_that_a_script_holds_up_does_not_hold_up_the_end() {
    let main = "pid %%/pid; user nobody; php_pool site { workers 1; }";
    let prepare = |folder: &Path| fifo(&folder.join("theirs/slow"));
    let Some(mut server) = ConfiguredServer::start(main, PLAIN, prepare) else {
        return;
    };
    server.settles().await;
    let master = children(server.child.0.id());
    let conf = server.folder.path().join("test.conf");
    let text = std::fs::read_to_string(&conf).unwrap();
    let fifo = server.folder.path().join("theirs/slow");
    let more = format!("workers 1; slow_log {} 1s;", fifo.display());
    std::fs::write(&conf, text.replace("workers 1;", &more)).unwrap();
    send_signal(server.child.0.id(), Signal::HUP);
    // php-fpm waits for a reader of the FIFO.
    let begun = Instant::now();
    while children(server.child.0.id()).len() <= master.len() {
        assert!(begun.elapsed() < TIMEOUT, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.ends_in_time().await;
}

/// If there is one account only, a script can end the server, and no more than that.
#[tokio::test]
async fn the_servers_memory_is_closed_even_to_its_own_account() {
    let script = r#"<?php error_reporting(0);
        $pid = (int) $_GET['server'];
        foreach (['environ', 'maps', 'mem', 'auxv'] as $name) {
            if (fopen("/proc/$pid/$name", 'r') && (string) file_get_contents("/proc/$pid/$name", false, null, 0, 9) !== '') echo "$name ";
            if (fopen("/proc/$pid/mem", 'r')) echo 'mem ';
        }
        if (scandir("/proc/$pid/fd")) echo 'descriptors ';
        echo posix_getuid() === stat("/proc/$pid")['uid'] ? 'same' : 'other';"#;
    let main = format!("pid %%/pid; user {SITE_ACCOUNT}; php_pool site {{ workers 1; }}");
    let http = "access_log off; server { listen unix:%%/http; location / {
        fastcgi_pass php:site; fastcgi_param SCRIPT_FILENAME %%/probe.php;
        fastcgi_param REQUEST_METHOD GET; fastcgi_param QUERY_STRING $query_string; } }";
    let prepare = |folder: &Path| std::fs::write(folder.join("probe.php"), script).unwrap();
    let Some(mut server) = ConfiguredServer::start(&main, http, prepare) else {
        return;
    };
    server.settles().await;
    let is_server = |&pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        name.starts_with("mayfly")
    };
    let worker = children(server.child.0.id()).into_iter().find(is_server);
    let path = format!("/?server={}", worker.unwrap());
    assert_eq!(server.target().get(&path).await.text(), "same");
    assert!(
        server
            .log()
            .contains("runs PHP as www-data, and so does the server")
    );
    server.ends_in_time().await;
}
