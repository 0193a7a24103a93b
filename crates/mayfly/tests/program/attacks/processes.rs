//! Code of the site against the processes that serve it: a script that runs inside a pool
//! tries every process, file and socket of the server's that it can find. Root starts the
//! server here, with the real php-fpm.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::process::{
    Signal, children, descendants, is_alive, is_root, send_signal, state_and_parent, status_line,
    uid,
};
use testkit::serving::FolderServer;
use testkit::wait::TIMEOUT;

/// A stop that ends what is under way, PHP included, on a busy machine.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Tries everything; prints a line for each thing that succeeded. `parent` is the process
/// that was started, `folder` the one with its logs and the socket for visitors, `account`
/// what the run is expected to be.
const PROBE: &str = r#"<?php
header('Cache-Control: no-store');
error_reporting(0);
$gained = [];
function gain($what) { global $gained; $gained[] = $what; }
function run($command) {
    exec("timeout 5 $command 2>/dev/null </dev/null", $lines, $code);
    return $code === 0;
}
function first_line($command) {
    exec("timeout 5 $command 2>/dev/null </dev/null", $lines);
    return $lines[0] ?? '';
}

// Who is there: the process that was started, what it started, and what the shells of pools started.
$parent = (int) $_GET['parent'];
$processes = [$parent];
$pool = [];
$parents = [];
foreach (glob('/proc/[0-9]*/stat') as $file) {
    if (!preg_match('~^(\d+) .*\) \S (\d+) ~s', (string) file_get_contents($file), $found)) continue;
    $parents[(int) $found[1]] = (int) $found[2];
}
foreach ($parents as $pid => $of) {
    if ($of !== $parent && ($parents[$of] ?? 0) !== $parent) continue;
    $line = (string) file_get_contents("/proc/$pid/cmdline");
    if (str_contains($line, 'master process')) {
        // Its own pool is all a script's: one account, one site.
        $pool[$pid] = preg_replace('~.*\((.*)/php-fpm\.conf\).*~s', '$1', $line);
    } else {
        $processes[] = $pid;
    }
}
if (count($processes) < 3 || count($pool) < 1) gain('nothing was found to attack');

foreach ($processes as $pid) {
    foreach (['environ', 'maps', 'smaps_rollup', 'auxv', 'io', 'stack', 'syscall'] as $name) {
        if ((string) file_get_contents("/proc/$pid/$name", false, null, 0, 16) !== '') gain("read $name of a process");
    }
    foreach (['mem' => 'r', 'pagemap' => 'r'] as $name => $mode) {
        if (fopen("/proc/$pid/$name", $mode)) gain("open $name of a process");
    }
    foreach (['mem', 'comm', 'oom_score_adj', 'coredump_filter', 'clear_refs'] as $name) {
        if (fopen("/proc/$pid/$name", 'r+')) gain("write $name of a process");
    }
    foreach (['exe', 'cwd', 'root'] as $name) {
        if (readlink("/proc/$pid/$name") !== false) gain("follow $name of a process");
    }
    if (scandir("/proc/$pid/fd")) gain('list the descriptors of a process');
    // The channel between the two is one of these.
    for ($fd = 0; $fd < 64; $fd++) {
        foreach (['r', 'r+'] as $mode) {
            if (fopen("/proc/$pid/fd/$fd", $mode)) gain("open descriptor $fd of a process");
        }
    }
    foreach (["prlimit --pid $pid --nofile=1:1", "renice -n 5 -p $pid", "ionice -c 3 -p $pid"] as $command) {
        if (run($command)) gain("change a process: $command");
    }
    if (run("kill -0 $pid") || function_exists('posix_kill') && posix_kill($pid, 0)) gain('send signals to a process');
}

// The folder with php-fpm's configuration and the pool's socket.
foreach ($pool as $folder) {
    $conf = "$folder/php-fpm.conf";
    $socket = "$folder/php.sock";
    if (!is_dir($folder)) gain("no such folder: $folder");
    if (scandir($folder)) gain('list the run folder');
    foreach ([$folder, dirname($folder)] as $where) {
        if (file_put_contents("$where/mayfly-attack", '') !== false) gain("make a file in $where");
        if (mkdir("$where/mayfly-attack-d")) gain("make a folder in $where");
        if (symlink('/etc/passwd', "$where/mayfly-attack-l")) gain("make a link in $where");
        if (run("mkfifo $where/mayfly-attack-f")) gain("make a FIFO in $where");
    }
    foreach ([$conf, $socket] as $file) {
        if (chmod($file, 0777)) gain("chmod $file");
        if (fopen($file, 'r+')) gain("write $file");
        if (link($file, $_GET['theirs'] . '/mayfly-attack')) gain("link $file");
        if (rename($file, "$file.old")) gain("rename $file");
        if (unlink($file)) gain("remove $file");
    }
    if (chmod($folder, 0777)) gain('chmod the run folder');
    if (rename($folder, "$folder-old")) gain('rename the run folder');
    // With a connection, a script could claim to be the server.
    if (stream_socket_client("unix://$socket", $code, $message, 2)) gain("connect to $socket");
}

// Whatever else listens with a name of the server's.
foreach (file('/proc/net/unix') as $line) {
    $path = trim(substr(strrchr($line, ' '), 1));
    if (!str_contains($path, 'mayfly') || $path === $_GET['folder'] . '/http') continue;
    if (!str_starts_with($path, $_GET['folder']) && !in_array(dirname($path), $pool, true)) continue;
    if (stream_socket_client("unix://$path", $code, $message, 2)) gain("connect to $path");
}

// Logs, and the socket for visitors.
foreach (['stdout', 'stderr', 'http'] as $name) {
    $file = $_GET['folder'] . "/$name";
    if (chmod($file, 0777)) gain("chmod $name");
    if (rename($file, "$file.old")) gain("rename $name");
    if (unlink($file)) gain("remove $name");
    if ($name !== 'http' && fopen($file, 'r+')) gain("write $name");
}

// More rights by the programs of others.
$status = file_get_contents('/proc/self/status');
if (!preg_match('~^NoNewPrivs:\s*1$~m', $status)) gain('new rights are to be had');
if (!preg_match('~^CapBnd:\s*0+$~m', $status)) gain('capabilities are to be had');
if (!preg_match('~^CapEff:\s*0+$~m', $status)) gain('capabilities');
if (first_line($_GET['folder_of_site'] . '/set-id -u') !== (string) posix_getuid()) gain('a set-id program works');

// Last, since it may end this request.
if (!$gained) {
    foreach ($processes as $pid) {
        foreach (['STOP', 'TERM', 'KILL'] as $signal) {
            if (run("kill -$signal $pid")) gain("send $signal to a process");
        }
    }
}
echo implode("\n", $gained);
"#;

/// The beginning of each of the following scripts: finds the pool's master, and the folder with its
/// configuration.
const FIND_MASTER: &str = r#"<?php
header('Cache-Control: no-store');
error_reporting(0);
$master = posix_getppid();
$line = (string) file_get_contents("/proc/$master/cmdline");
$folder = preg_replace('~.*\((.*)/php-fpm\.conf\).*~s', '$1', $line);
$conf = "$folder/php-fpm.conf";
"#;

/// Puts a FIFO in the place of the configuration. What is written to it is swallowed, and
/// a reader afterwards gets a configuration that runs PHP as root.
const SWAP_FOR_FIFO_WITH_READER: &str = r#"
$text = str_replace('www-data', 'root', (string) file_get_contents($conf));
if ($text === '') $text = "[global]\ndaemonize = no\nerror_log = /proc/self/fd/2\n[site]\nlisten = $folder/inherited.sock\nuser = root\ngroup = root\npm = static\npm.max_children = 2\n";
$mine = $_GET['theirs'];
file_put_contents("$mine/conf", $text);
unlink($conf);
exec("mkfifo $conf");
exec("(timeout 20 sh -c 'cat $conf > $mine/taken; cat $mine/conf > $conf') >/dev/null 2>&1 &");
echo 'done';
"#;

const SWAP_FOR_FIFO: &str = r#"
unlink($conf);
exec("mkfifo $conf");
echo 'done';
"#;

const SWAP_FOR_LINK: &str = r#"
unlink($conf);
symlink($_GET['victim'], $conf);
echo 'done';
"#;

/// Stops every process of its own pool, itself last.
const STOP_ALL: &str = r#"
foreach (glob('/proc/[0-9]*/stat') as $file) {
    preg_match('~^(\d+) .*\) \S (\d+) ~s', (string) file_get_contents($file), $found);
    if ((int) $found[2] === $master && (int) $found[1] !== getmypid()) posix_kill((int) $found[1], SIGSTOP_);
}
posix_kill($master, SIGSTOP_);
posix_kill(getmypid(), SIGSTOP_);
"#;

const WHO: &str =
    "<?php header('Cache-Control: no-store'); echo posix_getuid(), ' ', posix_getppid();";

/// A site with these scripts, a folder that PHP may write, and a program that becomes root.
struct AttackedSite {
    site: TempDir,
    theirs: TempDir,
    server: FolderServer,
}

impl AttackedSite {
    async fn start(scripts: &[(&str, &str)]) -> Option<AttackedSite> {
        if !is_root() {
            eprintln!("skipped: only root starts the server with other accounts");
            return None;
        }
        let site = FolderServer::folder();
        std::fs::write(site.path().join("index.php"), WHO).unwrap();
        for (name, text) in scripts {
            std::fs::write(site.path().join(name), text).unwrap();
        }
        let program = site.path().join("set-id");
        testkit::process::copy_program("/usr/bin/id".as_ref(), &program);
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
        let theirs = FolderServer::folder();
        std::fs::set_permissions(theirs.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let arguments = ["--workers", "2"];
        let what = site.path().to_str().unwrap();
        let server = FolderServer::start(crate::program(), what, &arguments).await;
        Some(AttackedSite {
            site,
            theirs,
            server,
        })
    }

    async fn ask(&self, path: &str) -> String {
        let reply = self.server.target().get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.text()
    }

    /// The account of PHP and the process of its master.
    async fn who(&self) -> (u32, u32) {
        let text = self.ask("/").await;
        let (uid, master) = text.split_once(' ').unwrap();
        (uid.parse().unwrap(), master.parse().unwrap())
    }

    /// Ends the master; waits until another one answers, if it does.
    async fn restart_master(&self) -> Option<(u32, u32)> {
        let (_, master) = self.who().await;
        send_signal(master, Signal::KILL);
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            let asked = self.server.target();
            let answer = tokio::time::timeout(Duration::from_secs(5), asked.get("/")).await;
            let text = answer.map(|reply| reply.text()).unwrap_or_default();
            let answer = text
                .split_once(' ')
                .and_then(|(uid, master)| Some((uid.parse().ok()?, master.parse().ok()?)));
            // A worker that the old master left behind has another parent by now.
            if let Some((uid, other)) = answer
                && other != master
                && descendants(self.server.pid()).contains(&other)
            {
                return Some((uid, other));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        None
    }

    async fn ends_in_time(&self) {
        send_signal(self.server.pid(), Signal::TERM);
        let begun = Instant::now();
        while is_alive(self.server.pid()) {
            if begun.elapsed() > STOP_TIMEOUT {
                // The test fails by the next line; nothing may be left behind.
                send_signal(self.server.pid(), Signal::KILL);
                panic!("TERM did not end the server within {STOP_TIMEOUT:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn query(pairs: &[(&str, &Path)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(name, path)| format!("{name}={}", path.display()));
    pairs.collect::<Vec<_>>().join("&")
}

#[tokio::test]
async fn a_script_gains_nothing_from_processes_files_and_sockets_of_the_server() {
    let Some(attacked) = AttackedSite::start(&[("probe.php", PROBE)]).await else {
        return;
    };
    let parent = attacked.server.pid();
    let mut before = children(parent);
    before.sort_unstable();
    let folder = attacked.server.path("");
    let folder: PathBuf = folder.components().collect();
    let paths = query(&[
        ("folder", &folder),
        ("folder_of_site", attacked.site.path()),
        ("theirs", attacked.theirs.path()),
    ]);
    let gained = attacked
        .ask(&format!("/probe.php?parent={parent}&{paths}"))
        .await;
    assert_eq!(gained, "", "what the script gained");
    let mut after = children(parent);
    after.sort_unstable();
    assert_eq!(after, before, "no process has ended");

    // Three accounts, and none of the lesser two can become more.
    let (php, master) = attacked.who().await;
    // The shell that ends with the server, and PHP with it.
    let shell = state_and_parent(master).unwrap().1;
    assert_eq!(uid(shell), Some(0));
    let mut others = before.into_iter().filter(|&pid| pid != shell);
    let server = others.next().unwrap();
    assert_eq!(others.next(), None);
    assert_eq!(uid(parent), Some(0));
    assert_eq!(uid(master), Some(php));
    assert!(![Some(0), Some(php)].contains(&uid(server)));
    for pid in [server, master] {
        assert_eq!(status_line(pid, "NoNewPrivs"), "1");
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status_line(pid, set).trim_matches('0'), "", "{set}");
        }
    }
    attacked.ends_in_time().await;
}

#[tokio::test]
async fn a_fifo_in_the_place_of_the_configuration_does_not_make_php_root() {
    let script = format!("{FIND_MASTER}{SWAP_FOR_FIFO_WITH_READER}");
    let Some(attacked) = AttackedSite::start(&[("swap.php", &script)]).await else {
        return;
    };
    let (php, _) = attacked.who().await;
    let paths = query(&[("theirs", attacked.theirs.path())]);
    assert_eq!(attacked.ask(&format!("/swap.php?{paths}")).await, "done");
    let (uid, _) = attacked.restart_master().await.expect("PHP is back");
    assert_eq!(uid, php);
    attacked.ends_in_time().await;
}

#[tokio::test]
async fn a_fifo_without_a_reader_does_not_hang_the_parent() {
    let script = format!("{FIND_MASTER}{SWAP_FOR_FIFO}");
    let Some(attacked) = AttackedSite::start(&[("swap.php", &script)]).await else {
        return;
    };
    assert_eq!(attacked.ask("/swap.php").await, "done");
    let (_, master) = attacked.who().await;
    send_signal(master, Signal::KILL);
    while is_alive(master) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The parent gets the order to end while it starts another.
    attacked.ends_in_time().await;
}

#[tokio::test]
async fn a_link_in_the_place_of_the_configuration_overwrites_nothing() {
    let script = format!("{FIND_MASTER}{SWAP_FOR_LINK}");
    let Some(attacked) = AttackedSite::start(&[("swap.php", &script)]).await else {
        return;
    };
    let victim = attacked.site.path().join("victim");
    std::fs::write(&victim, "kept").unwrap();
    let paths = query(&[("victim", &victim)]);
    assert_eq!(attacked.ask(&format!("/swap.php?{paths}")).await, "done");
    assert!(attacked.restart_master().await.is_some());
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
    attacked.ends_in_time().await;
}

#[tokio::test]
async fn a_pool_that_has_stopped_itself_does_not_hold_up_the_end() {
    let script = format!("{FIND_MASTER}{STOP_ALL}").replace("SIGSTOP_", "19");
    let Some(attacked) = AttackedSite::start(&[("stop.php", &script)]).await else {
        return;
    };
    let (_, master) = attacked.who().await;
    let workers = children(master);
    let mut client = attacked.server.connect().await;
    client
        .send("GET /stop.php HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    let begun = Instant::now();
    while !workers
        .iter()
        .all(|&pid| state_and_parent(pid).is_none_or(|(state, _)| state == "T"))
    {
        assert!(begun.elapsed() < TIMEOUT, "the script stops its pool");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    attacked.ends_in_time().await;
    for pid in workers.into_iter().chain([master]) {
        assert!(!is_alive(pid), "process {pid} is left behind");
    }
}
