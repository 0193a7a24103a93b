use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::sqlite::SqliteDatabase;

/// A file system that never answers, as one of a server that is gone. It ends with its input.
const MOUNT: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
device = os.open('/dev/fuse', os.O_RDWR)
options = f'fd={device},rootmode=40000,user_id=0,group_id=0'.encode()
if libc.mount(b'mute', sys.argv[1].encode(), b'fuse', 0, options):
    print(os.strerror(ctypes.get_errno()), flush=True)
else:
    print('mounted', flush=True)
    sys.stdin.read()
    os.close(device)
    libc.umount2(sys.argv[1].encode(), 2)
";

struct DeadMount(Child);

impl DeadMount {
    /// `None` where this account cannot mount.
    fn at(path: &Path) -> Option<DeadMount> {
        let mut python = Command::new("python3");
        python.args(["-c", MOUNT]).arg(path);
        python.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = python.stderr(Stdio::null()).spawn().expect("python3");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let mount = DeadMount(child);
        let is_mounted = line.trim() == "mounted";
        if !is_mounted {
            eprintln!("skipped: nothing can be mounted here: {line}");
        }
        is_mounted.then_some(mount)
    }
}

impl Drop for DeadMount {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Returns the result of a look; it must not wait.
fn look(database: &Arc<SqliteDatabase>) -> Result<(), NoState> {
    let (sender, receiver) = mpsc::channel();
    let database = database.clone();
    std::thread::spawn(move || sender.send(database.look().state.map(|_| ())));
    let looked = receiver.recv_timeout(Duration::from_secs(20));
    looked.expect("the look waits")
}

#[test]
fn look_at_a_path_that_leads_to_a_dead_mount_does_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["data", "dead"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    let database = [
        b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20".as_slice(),
        &[0; 4072],
    ]
    .concat();
    std::fs::write(path("data/site.db"), database).unwrap();
    let Some(mount) = DeadMount::at(&path("dead")) else {
        return;
    };
    let database = |name: &str| Arc::new(SqliteDatabase::new(path(name)));
    let known = database("data/site.db");
    assert!(matches!(look(&known), Err(NoState::Unknown(_))), "not yet");
    known.look_and_wait();
    assert_eq!(look(&known), Ok(()));
    // A worker lets its folder lead there.
    std::fs::rename(path("data"), path("before")).unwrap();
    symlink(path("dead"), path("data")).unwrap();
    assert_eq!(look(&known), Err(NoState::Changing));
    std::fs::remove_file(path("data")).unwrap();
    symlink(path("dead/deeper"), path("data")).unwrap();
    assert_eq!(look(&known), Err(NoState::Changing));
    // A thread that may wait does, and others go on.
    let waiting = known.clone();
    let waits = std::thread::spawn(move || waiting.look_and_wait());
    for _ in 0..20 {
        assert_eq!(look(&known), Err(NoState::Changing));
    }
    assert!(!waits.is_finished());
    let never_seen = database("dead/site.db");
    assert!(matches!(look(&never_seen), Err(NoState::Unknown(_))));
    drop(mount);
    waits.join().unwrap();
    std::fs::remove_file(path("data")).unwrap();
    std::fs::rename(path("before"), path("data")).unwrap();
    known.look_and_wait();
    assert_eq!(look(&known), Ok(()));
}

#[test]
fn database_that_is_a_link_or_on_no_file_system_of_this_machine_has_no_state() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "SQLite format 3\0").unwrap();
    symlink(folder.path().join("a"), folder.path().join("link")).unwrap();
    for (path, expected) in [
        (folder.path().join("link"), "it is no regular file"),
        (folder.path().join("none/a"), "it is not there"),
        (
            "/proc/version".into(),
            "its file system is not one whose writes are seen at once",
        ),
    ] {
        let database = SqliteDatabase::new(path);
        let looked = database.look_and_wait();
        assert_eq!(looked.state, Err(NoState::Unknown(expected)));
        assert_eq!(database.look().state, looked.state);
    }
}
