//! The control socket: its place, its maker, and the answers on it. It is made by the process that was started, with
//! its rights, and answered on by the one that serves.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use ::numbers::{HistoryReport, Pages, Snapshot};
use bytes::Bytes;
use control::socket::ControlSocket;
use control::warm::MAX_PAGE_BYTES;
use control::{
    Caller, Command, CommandReport, Entry, EntryRequest, ExplainRequest, Explanation, FoundEntries,
    Handler, PurgeReport, PurgeRequest, Refusal, SearchRequest, Version, WarmReport, WarmRequest,
};
use server::content::purging::{self, PurgeCall, Scope};
use server::exchange::numbers;
use server::explain;
use server::log::purge_log::{PurgeInterface, Source};
use server::warming;
use server::worker::WorkersState;
use site::Process;
use tokio::task::JoinHandle;

use crate::processes::account;
use crate::processes::journal::Journal;
use crate::processes::orders::Orders;

/// Returns the path of a configuration's control socket; `None`: it has none. `unnamed` is the path if the
/// configuration sets none, `None`: beside the pid file.
pub fn path(process: &Process, unnamed: Option<&Path>) -> Option<PathBuf> {
    match &process.control_socket {
        site::ControlSocket::Off => None,
        site::ControlSocket::Path(path) => Some(path.clone()),
        site::ControlSocket::BesidePidFile => Some(match unnamed {
            Some(path) => path.to_owned(),
            None => process.pid_file.with_extension("control"),
        }),
    }
}

/// The folder of the sockets of `mayfly serve`, which has no pid file.
///
/// # Errors
/// The account has no home.
pub fn serve_folder() -> Result<PathBuf, String> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    // systemd's `RuntimeDirectory=` names the folder.
    if let Some(folder) = absolute("RUNTIME_DIRECTORY") {
        return Ok(folder);
    }
    if account::is_root() {
        return Ok("/run/mayfly".into());
    }
    match absolute("XDG_RUNTIME_DIR") {
        Some(folder) => Ok(folder.join("mayfly")),
        None => Ok(crate::paths::state()?.join("run")),
    }
}

/// The socket of a server that listens there first: `serve-127.0.0.1-8080.control`.
///
/// # Errors
/// The account has no home.
pub fn serve_path(listen: &str) -> Result<PathBuf, String> {
    Ok(serve_folder()?.join(format!("serve-{}.control", plain(listen))))
}

/// An address as a part of a file's name.
pub fn plain(address: &str) -> String {
    let plain = |letter: char| match letter.is_ascii_alphanumeric() || letter == '.' {
        true => letter,
        false => '-',
    };
    address.chars().map(plain).take(60).collect()
}

/// The socket of a configuration that is not in force yet.
pub enum NewControl {
    /// The one that there is.
    Same,
    /// Another, or none.
    Other(Option<ControlSocket>),
}

/// Makes the socket of a configuration, unless it is the one that is `held`.
///
/// # Errors
/// It was asked for by name and cannot be made. If a default one cannot be made, the log has a line about it, and
/// the server does without.
pub fn bind(
    process: &Process,
    unnamed: Option<&Path>,
    held: Option<&ControlSocket>,
    journal: &Journal,
) -> Result<NewControl, String> {
    let Some(path) = path(process, unnamed) else {
        return Ok(NewControl::Other(None));
    };
    if held.is_some_and(|held| held.path() == path) {
        return Ok(NewControl::Same);
    }
    let is_named = matches!(process.control_socket, site::ControlSocket::Path(_));
    if unnamed.is_some() && !is_named {
        make_folder(&path);
    }
    match ControlSocket::bind(&path) {
        Ok(socket) => Ok(NewControl::Other(Some(socket))),
        Err(error) if is_named => Err(error.to_string()),
        Err(message) => {
            journal.notice(format_args!("commands cannot reach this server: {message}"));
            Ok(NewControl::Other(None))
        }
    }
}

/// The folder of the socket of `mayfly serve` and of its other files, for this account alone. In root's, the account
/// that serves finds files that it knows by name, and cannot list it.
pub fn make_folder(path: &Path) {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    let Some(folder) = path.parent() else {
        return;
    };
    let mode = if account::is_root() { 0o711 } else { 0o700 };
    let mut builder = std::fs::DirBuilder::new();
    // If the folder cannot be made, the socket cannot, which is then reported.
    let _ = builder.recursive(true).mode(mode).create(folder);
    let is_closed = |facts: std::fs::Metadata| facts.uid() == 0 && facts.mode() & 0o777 == 0o700;
    if account::is_root() && folder.symlink_metadata().is_ok_and(is_closed) {
        let _ = std::fs::set_permissions(folder, PermissionsExt::from_mode(mode));
    }
}

impl NewControl {
    /// The socket, for those who will answer on it.
    pub fn listener<'a>(&'a self, held: Option<&'a ControlSocket>) -> Option<&'a UnixListener> {
        match self {
            NewControl::Same => held.map(ControlSocket::listener),
            NewControl::Other(socket) => socket.as_ref().map(ControlSocket::listener),
        }
    }

    /// Its configuration is in force: it takes the place of the one before.
    pub fn replace(self, held: &mut Option<ControlSocket>) {
        if let NewControl::Other(socket) = self {
            *held = socket;
        }
    }
}

/// Answers in the place of the workers.
struct ControlHandler {
    shared: Weak<WorkersState>,
    orders: Orders,
}

impl ControlHandler {
    /// Returns the state that the workers share, to be held for a moment only.
    fn shared(&self) -> Result<Arc<WorkersState>, Refusal> {
        let ends = || Refusal::new(503, "the server is about to end");
        let shared = self.shared.upgrade().ok_or_else(ends)?;
        if shared.is_stopping() {
            return Err(ends());
        }
        // The command may have pages stored.
        shared.end_long_pause();
        Ok(shared)
    }
}

impl Handler for ControlHandler {
    fn version(&self) -> Version {
        Version {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
        }
    }

    async fn command(&self, command: Command, caller: Caller) -> Result<CommandReport, Refusal> {
        self.orders.give(command, caller).await?;
        Ok(CommandReport { done: command })
    }

    fn numbers(&self) -> Result<Snapshot, Refusal> {
        Ok(numbers::snapshot(&self.shared()?.configuration()))
    }

    fn pages(&self) -> Result<Pages, Refusal> {
        Ok(numbers::pages(&self.shared()?.configuration()))
    }

    fn history(&self, since: u64) -> Result<HistoryReport, Refusal> {
        Ok(numbers::history(&self.shared()?.configuration(), since))
    }

    async fn purge(&self, request: PurgeRequest, caller: Caller) -> Result<PurgeReport, Refusal> {
        let Some(shared) = self.shared.upgrade() else {
            return Err(Refusal::new(503, "the server is about to end"));
        };
        let who = match caller.pid {
            Some(pid) => format!("uid={} pid={pid}", caller.uid),
            None => format!("uid={}", caller.uid),
        };
        let source = Source {
            door: PurgeInterface::Socket,
            who,
            is_own_visit: false,
        };
        let asked = PurgeCall::Program(request);
        let configuration = shared.configuration();
        let purged = purging::purge(configuration.clone(), asked, Scope::All, source).await;
        configuration.live.sibling.settled().await;
        purged
    }

    async fn warm(&self, request: WarmRequest) -> Result<WarmReport, Refusal> {
        let configuration = self.shared()?.configuration();
        Ok(warming::warm(configuration, &request.url).await)
    }

    async fn explain(&self, request: ExplainRequest) -> Result<Explanation, Refusal> {
        let configuration = self.shared()?.configuration();
        explain::explain(configuration, &request).await
    }

    async fn search(&self, request: SearchRequest) -> Result<FoundEntries, Refusal> {
        let configuration = self.shared()?.configuration();
        explain::search(configuration, &request).await
    }

    fn entry(&self, request: EntryRequest) -> Result<Entry, Refusal> {
        let configuration = self.shared()?.configuration();
        explain::entry(&configuration, &request)
    }

    async fn page(&self, request: WarmRequest) -> Result<Bytes, Refusal> {
        let configuration = self.shared()?.configuration();
        warming::read(configuration, &request.url, MAX_PAGE_BYTES).await
    }
}

/// Answers until it is dropped; callers that were accepted are answered to the end.
pub struct ControlTask(JoinHandle<()>);

impl ControlTask {
    pub fn begin(
        listener: UnixListener,
        shared: &Arc<WorkersState>,
        orders: Orders,
    ) -> ControlTask {
        let shared = Arc::downgrade(shared);
        let handler = Arc::new(ControlHandler { shared, orders });
        ControlTask(tokio::spawn(async move {
            // A socket that cannot be waited for is one without answers.
            let _ = control::server::serve(listener, handler).await;
        }))
    }
}

impl Drop for ControlTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
