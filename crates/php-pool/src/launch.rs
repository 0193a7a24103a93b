//! Starts one php-fpm master and hands over its process: the private folder
//! with the listening socket, the command line, and the wait until it is
//! ready.
//!
//! **The socket is ours.** We bind and listen; php-fpm inherits the descriptor
//! (its `FPM_SOCKETS` variable, meant for its own re-execution) under a path
//! that does not exist, so that it never unlinks the real one. Connections
//! made while no master lives wait in the queue, and two masters can share the
//! socket while one replaces the other.
//!
//! **php-fpm dies with us, or with our successor.** A shell starts the master and
//! then waits for the end of a socket, the lifeline, whose other end we have. A
//! program that takes our place gets the lifeline, so that the master goes on as
//! it is. Without anybody who has it, the shell ends, and the kernel sends the
//! master TERM (`PR_SET_PDEATHSIG`), on which it ends its workers. Setting that
//! from Rust between fork and exec takes unsafe code, so `setpriv --pdeathsig`
//! does it (util-linux, essential on Debian). The master is the shell's child:
//! we and our successor alike see its end through a descriptor of the process.
//!
//! **No php-fpm is root.** Started by root, `setpriv` changes to the pool's account before it becomes
//! php-fpm. A master with root's rights would share memory with its workers, read all that they can reach,
//! and choose the account of the next ones by its configuration; one without has nothing that a script does
//! not have. The work that needs root is done before: the socket is bound, limits and priority are set. The
//! configuration and the socket lie in a folder that only the account of this process may write.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use child_process::Child;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};
use trusted_path::OwnFolder;

use crate::error::StartError;
use crate::fpm_conf::{MasterAccount, PRIORITY};
use crate::handover::PoolEstate;
use crate::master::Master;
use crate::probe;
use crate::spec::{LogLevel, PoolSpec};
use crate::state::Event;

/// The receiver of events.
pub(crate) type Log = Arc<dyn Fn(Event) + Send + Sync>;

/// php-fpm is ready in about 50 ms; a machine that swaps may need seconds.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// A php-fpm that has closed its log is as good as gone.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Longer lines of php-fpm's log are cut into several events.
const MAX_LOG_LINE_BYTES: usize = 8 << 10;

/// Lines kept to explain a start that failed; php-fpm writes two or three.
const MAX_LINES_KEPT: usize = 8;

/// The descriptor under which php-fpm inherits the socket: the first that is
/// not stdin, stdout or stderr, which php-fpm replaces.
const SOCKET_DESCRIPTOR: u32 = 3;

/// Takes the limit of open files from its first argument if it may, moves the
/// socket from stdin, where [`Command`] can put it, to [`SOCKET_DESCRIPTOR`],
/// and starts the program named by the others. Writes the number of its process
/// to stdout, the lifeline, and waits for the lifeline's end.
const GUARD: &str = r#"if [ -n "$1" ] && (ulimit -n "$1") 2>/dev/null; then ulimit -n "$1"; fi
shift
exec 3<&0 0<&1
"$@" </dev/null >/dev/null &
echo $!
exec 3<&- >/dev/null 2>&1
read -r _"#;

/// The longest output of the shell: a number and a line end.
const MAX_PID_BYTES: usize = 16;

/// The program of util-linux that changes account and rights, and becomes another program.
const SETPRIV: &str = "/usr/bin/setpriv";

/// How the names of pools' folders begin; pool, process and a number follow.
const FOLDER_PREFIX: &str = "mayfly-php-";
/// The name of the pool's socket in its folder.
const SOCKET: &str = "php.sock";
const CONF: &str = "php-fpm.conf";
/// The name of the socket to which the library in PHP connects, in the folder of its pool.
pub const LEARNING_SOCKET_NAME: &str = "learn.sock";

/// Workers that may wait to be heard: each connects once in its life.
const LEARNING_BACKLOG: i32 = 128;

/// Puts variables into the environment of php-fpm alone: neither the shell nor `setpriv` loads the library.
const ENV: &str = "/usr/bin/env";

/// A folder with the pool's socket and configuration, which only this process's account can change;
/// removed with everything in it when dropped.
#[derive(Debug)]
pub(crate) struct PoolFolder {
    pub(crate) folder: PathBuf,
    pub(crate) own: OwnFolder,
    pub(crate) socket: Socket,
    /// The socket to which the library in PHP connects, once the pool has had one.
    pub(crate) learning: Arc<OnceLock<OwnedFd>>,
    /// Another process has the pool: the folder stays.
    pub(crate) is_anothers: bool,
}

impl PoolFolder {
    /// Makes the folder and listens.
    pub(crate) fn make(spec: &PoolSpec) -> Result<Self, StartError> {
        let parent = spec.runtime_parent.clone().unwrap_or_else(usual_parent);
        let (folder, own) = make_own_folder(&parent, &spec.name).map_err(|source| {
            StartError::io(format!("make a folder in {}", parent.display()), source)
        })?;
        let path = socket_path(&folder);
        match listen(&folder, &own, spec) {
            Ok(socket) => Ok(Self {
                folder,
                own,
                socket,
                learning: Arc::default(),
                is_anothers: false,
            }),
            Err(source) => {
                let _ = fs::remove_dir_all(&folder);
                Err(StartError::io(
                    format!("listen on {}", path.display()),
                    source,
                ))
            }
        }
    }

    /// The folder of a pool that another process has made, which goes on with it for a while.
    pub(crate) fn inherited(folder: PathBuf, own: OwnFolder, socket: Socket) -> Self {
        Self {
            folder,
            own,
            socket,
            learning: Arc::default(),
            is_anothers: true,
        }
    }

    /// Listens for the library, if the pool has one.
    pub(crate) fn listen_for_library(&self, spec: &PoolSpec) -> Result<(), StartError> {
        if spec.learning.is_none() || self.learning.get().is_some() {
            return Ok(());
        }
        let path = self.folder.join(LEARNING_SOCKET_NAME);
        let listen = || -> io::Result<OwnedFd> {
            let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
            socket.bind(&SockAddr::unix(&path)?)?;
            // The account of PHP alone may connect.
            let php = spec.run_as.as_ref().map(|run_as| (run_as.uid, run_as.gid));
            self.own.give(LEARNING_SOCKET_NAME, php, 0o600)?;
            socket.listen(LEARNING_BACKLOG)?;
            socket.set_nonblocking(true)?;
            Ok(socket.into())
        };
        let socket = listen()
            .map_err(|source| StartError::io(format!("listen on {}", path.display()), source))?;
        // The task that owns the pool is the only one that comes here.
        let _ = self.learning.set(socket);
        Ok(())
    }

    /// Returns the path to which clients of the pool connect.
    pub(crate) fn socket_path(&self) -> PathBuf {
        socket_path(&self.folder)
    }

    /// The path under which php-fpm knows the socket. Nothing is there.
    pub(crate) fn inherited_path(&self) -> PathBuf {
        self.folder.join("inherited.sock")
    }

    /// Adapts the socket to a new spec.
    pub(crate) fn adapt(&self, spec: &PoolSpec) -> io::Result<()> {
        self.socket.listen(backlog(spec))
    }
}

impl Drop for PoolFolder {
    fn drop(&mut self) {
        if self.is_anothers {
            return;
        }
        // A failure has no remedy, and no consequence.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn socket_path(folder: &Path) -> PathBuf {
    folder.join(SOCKET)
}

fn backlog(spec: &PoolSpec) -> i32 {
    i32::try_from(spec.listen_backlog).unwrap_or(i32::MAX)
}

fn usual_parent() -> PathBuf {
    // systemd's `RuntimeDirectory=` names the folder; with `ProtectSystem=strict`, /run itself is
    // read-only.
    match std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() && folder.is_dir() => return folder,
        _ => {}
    }
    let run = Path::new("/run");
    if rustix::process::geteuid().is_root() && run.is_dir() {
        return run.to_owned();
    }
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() && folder.is_dir() => folder,
        _ => std::env::temp_dir(),
    }
}

/// Makes a folder that only this account can write, under a name not yet taken.
fn make_own_folder(parent: &Path, pool: &str) -> io::Result<(PathBuf, OwnFolder)> {
    let is_root = rustix::process::geteuid().is_root();
    if is_root && !trusted_path::keeps_roots_files(parent) {
        return Err(io::Error::other(
            "other accounts than root may replace what is in it",
        ));
    }
    // Started by root, other accounts find the socket and the configuration in it, but
    // cannot list it.
    let mode = if is_root { 0o711 } else { 0o700 };
    remove_abandoned(parent);
    let pid = std::process::id();
    // A name is taken when the same process starts a pool of that name again
    // or an earlier process of that id was killed; this many never are.
    let names_tried_max = 1000;
    for number in 0..names_tried_max {
        let folder = parent.join(format!("{FOLDER_PREFIX}{pool}-{pid}-{number}"));
        match OwnFolder::make(&folder, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|own| (folder, own)),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Entries of the parent that are looked at: other programs have theirs there as well.
const MAX_ENTRIES: usize = 10_000;

/// Removes the remains of killed processes of this account: folders with our name whose process is gone,
/// that no process has open, and that hold nothing but what we put there.
fn remove_abandoned(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().take(MAX_ENTRIES);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(pid_of_folder) else {
            continue;
        };
        // In a container, each process may have the same number.
        let is_another_alive = pid != std::process::id() && probe::is_alive(pid);
        let path = entry.path();
        if !is_another_alive && let Some(folder) = OwnFolder::abandoned(&path) {
            // A folder that cannot be removed does no harm.
            let _ = folder.remove(&path, &[SOCKET, CONF, LEARNING_SOCKET_NAME]);
        }
    }
}

/// The process that started the pool whose folder has this name.
#[must_use]
pub fn pid_of_folder(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix(FOLDER_PREFIX)?.rsplit('-');
    let _number: u32 = parts.next()?.parse().ok()?;
    let pid = parts.next()?.parse().ok()?;
    // The pool's name.
    parts.next().map(|_| pid)
}

fn listen(folder: &Path, own: &OwnFolder, spec: &PoolSpec) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(socket_path(folder))?)?;
    own.give(SOCKET, spec.socket_owner, 0o600)?;
    socket.listen(backlog(spec))?;
    Ok(socket)
}

/// With whose rights php-fpm's master runs: root's only where they cannot be
/// given up before, or where the pool itself shall be root.
pub(crate) fn master_account(spec: &PoolSpec) -> MasterAccount {
    let may_change = Path::new(SETPRIV).exists();
    let is_root_wanted = spec.run_as.as_ref().is_none_or(|run_as| run_as.uid == 0);
    if rustix::process::geteuid().is_root() && (is_root_wanted || !may_change) {
        MasterAccount::Root
    } else {
        MasterAccount::Ordinary
    }
}

/// Starts a master on the socket of `pool_folder` with configuration `conf` and waits
/// until its workers answer.
pub(crate) async fn start_master(
    pool_folder: &PoolFolder,
    binary: &Path,
    conf: &str,
    generation: u64,
    spec: &PoolSpec,
    (log, is_relayed): (&Log, watch::Receiver<bool>),
) -> Result<Master, StartError> {
    let file = pool_folder.folder.join(CONF);
    write_conf(pool_folder, conf, spec)
        .map_err(|source| StartError::io(format!("write {}", file.display()), source))?;
    make_slow_log(spec);
    let (lifeline, theirs) =
        UnixStream::pair().map_err(|source| StartError::io("make a lifeline", source))?;
    let mut guard = spawn(pool_folder, binary, &file, spec, log, theirs)?;
    let since = Instant::now();
    let stderr = guard
        .take_stderr()
        .map_err(|source| StartError::io("read php-fpm's log", source))?
        .ok_or_else(|| StartError::io("start php-fpm", io::ErrorKind::BrokenPipe.into()))?;
    let kept = copy(&stderr).map_err(|source| StartError::io("read php-fpm's log", source))?;
    let group = guard.id().unwrap_or_default();
    let (lifeline, pid) = tokio::time::timeout(READY_WITHIN, first_line(lifeline))
        .await
        .map_err(|_| StartError::Silent {
            waited: READY_WITHIN,
        })?
        .map_err(|source| StartError::io(format!("start {}", binary.display()), source))?;
    let mut master = Master::started(pid, group, generation, guard, lifeline, kept)
        .map_err(|source| StartError::io("watch php-fpm", source))?;
    let (ready, first_word) = oneshot::channel();
    tokio::spawn(relay(
        stderr,
        spec.log_level,
        log.clone(),
        Some(ready),
        is_relayed,
    ));
    match tokio::time::timeout(READY_WITHIN, first_word).await {
        Ok(Ok(FirstWord::Ready)) => {
            master.is_ready = true;
            Ok(master)
        }
        Ok(Ok(FirstWord::Ended(said))) => {
            // A master that closes the log without ending is not waited for.
            let ended = tokio::time::timeout(ENDS_WITHIN, master.exited()).await;
            let status = ended.unwrap_or_default();
            Err(StartError::Refused { status, said })
        }
        Ok(Err(_)) => Err(StartError::Silent {
            waited: since.elapsed(),
        }),
        Err(_) => Err(StartError::Silent {
            waited: READY_WITHIN,
        }),
    }
}

/// The configuration may hold passwords, as environment of the workers. The
/// master reads it as the pool's account, and cannot change it.
fn write_conf(pool_folder: &PoolFolder, conf: &str, spec: &PoolSpec) -> io::Result<()> {
    let is_other =
        rustix::process::geteuid().is_root() && master_account(spec) == MasterAccount::Ordinary;
    let reader = spec.run_as.as_ref().filter(|_| is_other);
    pool_folder
        .own
        .write(CONF, conf.as_bytes(), reader.map(|run_as| run_as.gid))
}

/// php-fpm opens the file by its name with the pool's account, which may have no right to make one in a
/// folder of logs. If it cannot be made, php-fpm reports it.
fn make_slow_log(spec: &PoolSpec) {
    if let (true, Some(slow_log), Some(run_as)) = (
        rustix::process::geteuid().is_root(),
        &spec.slow_log,
        &spec.run_as,
    ) {
        let _ = trusted_path::make_for(&slow_log.file, run_as.uid, run_as.gid);
    }
}

/// Another descriptor for php-fpm's log.
fn copy(stderr: &pipe::Receiver) -> io::Result<OwnedFd> {
    std::os::fd::AsFd::as_fd(stderr).try_clone_to_owned()
}

/// The number of the master's process, which the shell writes.
async fn first_line(lifeline: UnixStream) -> io::Result<(UnixStream, u32)> {
    lifeline.set_nonblocking(true)?;
    let mut lifeline = tokio::net::UnixStream::from_std(lifeline)?;
    let mut line = Vec::new();
    while line.len() < MAX_PID_BYTES && line.last() != Some(&b'\n') {
        line.push(lifeline.read_u8().await?);
    }
    let pid = std::str::from_utf8(&line).ok();
    let pid = pid.and_then(|line| line.trim().parse().ok());
    let pid =
        pid.ok_or_else(|| io::Error::other("the shell does not say which process it started"))?;
    Ok((lifeline.into_std()?, pid))
}

/// Starts the shell that starts php-fpm.
fn spawn(
    pool_folder: &PoolFolder,
    binary: &Path,
    conf: &Path,
    spec: &PoolSpec,
    log: &Log,
    lifeline: UnixStream,
) -> Result<Child, StartError> {
    let socket = pool_folder
        .socket
        .try_clone()
        .map_err(|source| StartError::io("share the socket", source))?;
    let account = master_account(spec);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", GUARD, "mayfly-php"]);
    command.arg(
        spec.rlimit_files
            .map_or_else(String::new, |files| files.to_string()),
    );
    if account == MasterAccount::Ordinary
        && let Some((_, priority)) = spec.extra.iter().find(|(name, _)| name == PRIORITY)
    {
        command.args(["nice", "-n", priority]);
    }
    if Path::new(SETPRIV).exists() {
        command.arg(SETPRIV).args(["--pdeathsig", "TERM"]);
        command.args(rights(spec, account)).arg("--");
    } else {
        let reason = "no /usr/bin/setpriv (package util-linux): php-fpm keeps the rights it is started with, and stays behind if this process is killed";
        log(Event::Degraded {
            reason: reason.to_owned(),
        });
    }
    if let Some(learning) = &spec.learning {
        let socket = pool_folder.folder.join(LEARNING_SOCKET_NAME);
        command.arg(ENV);
        let library = learning.library.as_ref();
        command.args(library.map(|library| assignment("LD_PRELOAD", library)));
        command.arg(assignment(PoolSpec::LEARNING_SOCKET, &socket));
    }
    command
        .arg(binary)
        .args(["--nodaemonize", "--force-stderr"])
        .arg("--fpm-config")
        .arg(conf);
    if spec.run_as.as_ref().is_some_and(|run_as| run_as.uid == 0) {
        command.arg("--allow-to-run-as-root");
    }
    let inherited = format!(
        "{}={SOCKET_DESCRIPTOR}",
        pool_folder.inherited_path().display()
    );
    command.env("FPM_SOCKETS", inherited);
    // These speak to us; php-fpm would answer the service manager in our name.
    for name in [
        "NOTIFY_SOCKET",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
        "LISTEN_PID",
        "LISTEN_FDS",
    ] {
        command.env_remove(name);
    }
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(socket)));
    command.stdout(Stdio::from(std::os::fd::OwnedFd::from(lifeline)));
    command.stderr(Stdio::piped());
    // A group of its own: a Ctrl-C in the terminal is ours to handle, and the remains of a dead master can
    // be ended together.
    command.process_group(0);
    let spawned = huge_pages::as_given(|| Child::spawn(&mut command));
    spawned.map_err(|source| StartError::io(format!("start {}", binary.display()), source))
}

/// `NAME=PATH`
fn assignment(name: &str, path: &Path) -> OsString {
    let mut text = OsString::from(name);
    text.push("=");
    text.push(path);
    text
}

/// Returns the arguments of `setpriv`: the rights that it changes before it becomes php-fpm.
fn rights(spec: &PoolSpec, account: MasterAccount) -> Vec<String> {
    let mut arguments = Vec::new();
    let is_root = rustix::process::geteuid().is_root();
    if let (true, MasterAccount::Ordinary, Some(run_as)) = (is_root, account, &spec.run_as) {
        arguments.push(format!("--reuid={}", run_as.uid));
        arguments.push(format!("--regid={}", run_as.gid));
        arguments.push("--init-groups".to_owned());
    }
    if spec.no_new_privs {
        arguments.push("--no-new-privs".to_owned());
        // Capabilities that a master of root's needs are left to it.
        if account == MasterAccount::Ordinary && may_drop_capabilities() {
            arguments.push("--inh-caps=-all".to_owned());
            arguments.push("--bounding-set=-all".to_owned());
        }
    }
    arguments
}

/// In a container, root may lack the right to take away capabilities.
fn may_drop_capabilities() -> bool {
    use rustix::thread::CapabilitySet;
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SETPCAP))
}

/// The first thing known of a new master.
enum FirstWord {
    Ready,
    /// It closed its log without being ready; its last lines.
    Ended(Vec<String>),
}

/// Goes on with the log of a master that another process has started, from where that one leaves off.
pub(crate) fn relay_inherited(
    estate: &PoolEstate,
    level: LogLevel,
    log: &Log,
    is_relayed: watch::Receiver<bool>,
) -> io::Result<()> {
    let stderr = pipe::Receiver::from_owned_fd(estate.stderr.try_clone()?)?;
    tokio::spawn(relay(stderr, level, log.clone(), None, is_relayed));
    Ok(())
}

/// Turns php-fpm's log into events until it is closed. While it is not relayed, another process reads it.
async fn relay(
    mut stderr: pipe::Receiver,
    level: LogLevel,
    log: Log,
    mut ready: Option<oneshot::Sender<FirstWord>>,
    mut is_relayed: watch::Receiver<bool>,
) {
    let mut said = VecDeque::new();
    let mut lines = Lines::default();
    let mut buffer = vec![0; MAX_LOG_LINE_BYTES];
    loop {
        // Without its sender the pool has ended.
        if is_relayed.wait_for(|is_relayed| *is_relayed).await.is_err() {
            return;
        }
        let read = tokio::select! {
            read = stderr.read(&mut buffer) => read.unwrap_or(0),
            _ = is_relayed.wait_for(|is_relayed| !is_relayed) => continue,
        };
        lines.push(buffer.get(..read).unwrap_or_default());
        let is_end = read == 0;
        while let Some(line) = lines.next(is_end) {
            let (line_level, message) = parse_line(&line);
            if message.ends_with("ready to handle connections")
                && let Some(ready) = ready.take()
            {
                let _ = ready.send(FirstWord::Ready);
            }
            if ready.is_some() {
                if said.len() == MAX_LINES_KEPT {
                    said.pop_front();
                }
                said.push_back(message.to_owned());
            }
            if line_level >= level {
                log(Event::Log {
                    level: line_level,
                    message: message.to_owned(),
                });
            }
        }
        if is_end {
            break;
        }
    }
    if let Some(ready) = ready {
        let _ = ready.send(FirstWord::Ended(said.into()));
    }
}

/// Bytes in, lines out; a line longer than [`MAX_LOG_LINE_BYTES`] comes out in
/// pieces.
#[derive(Default)]
struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next line; the unfinished rest too if it `is_end` or too long.
    fn next(&mut self, is_end: bool) -> Option<String> {
        let newline = self.pending.iter().position(|byte| *byte == b'\n');
        let (length, ending) = match newline {
            Some(length) => (length, 1),
            None if self.pending.len() >= MAX_LOG_LINE_BYTES => (MAX_LOG_LINE_BYTES, 0),
            None if is_end && !self.pending.is_empty() => (self.pending.len(), 0),
            None => return None,
        };
        let taken: Vec<u8> = self.pending.drain(..length + ending).collect();
        let line = taken.get(..length).unwrap_or_default();
        Some(
            String::from_utf8_lossy(line)
                .trim_end_matches('\r')
                .to_owned(),
        )
    }
}

/// `[20-Nov-2026 18:52:02] NOTICE: text` into level and text; lines without
/// this form are notices as they stand.
fn parse_line(line: &str) -> (LogLevel, &str) {
    let after_time = match line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    {
        Some((_, rest)) => rest,
        None => line,
    };
    let level = after_time.split_once(": ").and_then(|(word, text)| {
        let level = match word {
            "DEBUG" => LogLevel::Debug,
            "NOTICE" => LogLevel::Notice,
            "WARNING" => LogLevel::Warning,
            "ERROR" => LogLevel::Error,
            "ALERT" => LogLevel::Alert,
            _ => return None,
        };
        Some((level, text))
    });
    level.unwrap_or((LogLevel::Notice, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_give_level_and_message() {
        #[rustfmt::skip]
        let cases = [
            ("[20-Nov-2026 18:52:02] NOTICE: fpm is running, pid 7", LogLevel::Notice, "fpm is running, pid 7"),
            ("[20-Nov-2026 18:52:02.123] WARNING: [pool a] x: y", LogLevel::Warning, "[pool a] x: y"),
            ("[20-Nov-2026 18:52:02] ALERT: [pool a] no user", LogLevel::Alert, "[pool a] no user"),
            ("ERROR: cannot", LogLevel::Error, "cannot"),
            ("PHP Warning: module missing", LogLevel::Notice, "PHP Warning: module missing"),
            ("[broken", LogLevel::Notice, "[broken"),
            ("", LogLevel::Notice, ""),
        ];
        for (line, level, message) in cases {
            assert_eq!(parse_line(line), (level, message), "{line}");
        }
    }

    #[test]
    fn lines_are_whole_however_the_bytes_arrive_and_bounded() {
        let mut lines = Lines::default();
        lines.push(b"one\ntw");
        assert_eq!(lines.next(false).as_deref(), Some("one"));
        assert_eq!(lines.next(false), None);
        lines.push(b"o\r\n\nrest");
        assert_eq!(lines.next(false).as_deref(), Some("two"));
        assert_eq!(lines.next(false).as_deref(), Some(""));
        assert_eq!(lines.next(false), None);
        assert_eq!(lines.next(true).as_deref(), Some("rest"));
        assert_eq!(lines.next(true), None);
        lines.push(&vec![b'x'; MAX_LOG_LINE_BYTES + 1]);
        assert_eq!(
            lines.next(false).map(|line| line.len()),
            Some(MAX_LOG_LINE_BYTES)
        );
        assert_eq!(lines.next(false), None);
    }
}
