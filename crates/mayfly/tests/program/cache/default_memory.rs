//! A zone without `memory=` takes a quarter of the memory that the process's control group
//! allows, and junk does not take more.

use std::path::{Path, PathBuf};

use testkit::fake_php::{FakePhp, Script};
use testkit::process::{descendants, is_root, memory_bytes};
use testkit::running::RunningServer;
use testkit::wait::until_or;

use crate::command_line::{code, stderr, words};
use crate::program;

/// A control group with a limit, gone when dropped.
struct Group(PathBuf);

const LIMIT: u64 = 256 << 20;
/// Bytes of a page.
const PAGE: usize = 20_000;

impl Group {
    /// `None` if there is no right to make one.
    fn make() -> Option<Group> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let name = format!("mayfly-test-{}", std::process::id());
        for line in own.lines() {
            let parts: Vec<&str> = line.splitn(3, ':').collect();
            let [number, controllers, path] = parts[..] else {
                continue;
            };
            let (root, file) = match (number, controllers) {
                ("0", "") => ("/sys/fs/cgroup", "memory.max"),
                (_, "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                _ => continue,
            };
            let folder = Path::new(root)
                .join(path.trim_start_matches('/'))
                .join(&name);
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Group(folder);
            let limit = group.0.join(file);
            if limit.exists() && std::fs::write(&limit, LIMIT.to_string()).is_ok() {
                return Some(group);
            }
        }
        eprintln!("skipped: no right to make a control group");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once the last process in it has ended.
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn resident(pid: u32) -> u64 {
    memory_bytes(pid, "VmRSS")
}

#[tokio::test]
async fn without_a_size_a_zone_stays_within_a_quarter_of_the_groups_limit() {
    if !is_root() {
        eprintln!("skipped: only root makes control groups");
        return;
    }
    let Some(group) = Group::make() else { return };
    let php =
        FakePhp::tcp(|_| Script::page("Content-Type: text/html\r\n", "x".repeat(PAGE)).at_once())
            .await;
    let site = php
        .cached_site("fastcgi_cache_valid 1h; keepalive_requests 1000000;")
        .replace("memory=8m", "");
    // A shell joins the group and becomes the program.
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("mayfly");
    let text = format!(
        "#!/bin/sh\necho $$ > {}/cgroup.procs\nexec {} \"$@\"\n",
        group.0.display(),
        program()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let server = RunningServer::start(script.to_str().unwrap(), "", &site).await;
    let quarter = LIMIT / 4;
    let said = format!(
        "stored responses may take {} MB, a quarter of the {} MB that",
        quarter >> 20,
        LIMIT >> 20
    );
    let is_said = || server.error_log().contains(&said);
    until_or(is_said, || server.error_log()).await;

    // More than twice the bytes that may be kept, in junk keys.
    let pages = 2 * quarter / PAGE as u64;
    let mut askers = tokio::task::JoinSet::new();
    const ASKERS: u64 = 8;
    for asker in 0..ASKERS {
        let mut client = server.connect().await;
        askers.spawn(async move {
            for page in (asker..pages).step_by(usize::try_from(ASKERS).unwrap()) {
                let request = format!("GET /?junk={page} HTTP/1.1\r\nHost: site.test\r\n\r\n");
                client.send(request).await;
                let reply = client.receive(false).await.expect("a response");
                assert_eq!(reply.status, 200);
            }
        });
    }
    while let Some(done) = askers.join_next().await {
        done.unwrap();
    }
    let resident: u64 = descendants(server.pid()).into_iter().map(resident).sum();
    eprintln!("{} MB resident after {pages} junk keys", resident >> 20);
    assert!(resident > quarter / 2, "the zone is in use: {resident}");
    assert!(resident < quarter * 2, "{} MB", resident >> 20);
    drop(server);
}

/// More than any machine has. The message about a group's limit is the same.
#[tokio::test]
async fn a_zone_that_the_memory_has_no_room_for_is_told() {
    let http = "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=100000g;\n\
        server { listen unix:%%/http; return 204; }";
    let server = RunningServer::start(program(), "", http).await;
    let told = "stored responses may take 102400000 MB of the ";
    let log = server.error_log();
    let line = log.lines().find(|line| line.contains(told));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("[warn]"), "{line}");
    assert!(line.contains("write \"memory=\" with at most "), "{line}");

    let conf = server.path("test.conf");
    let conf = conf.to_str().expect("a plain path");
    let output = words(&["check", conf]);
    // The log of tests is below their root, which the report calls an error.
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains(told), "{}", stderr(&output));
}
