//! The library's state of this process: the descriptors that it follows, and the request that runs.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use learn_record::{
    DoubtReason, FileState, FileUse, InputKind, MAX_HASHED_SESSION_BYTES, SqliteFile,
};

use cache_wire::CacheConversation;

use crate::cache_connection::CacheConnection;
use crate::channel::Channel;
use crate::channels::Channels;
use crate::connection::Connection;
use crate::entry::{self, MAX_DESCRIPTOR};
use crate::extensions::{Extension, extension};
use crate::fastcgi::{FastCgi, RequestEvent};
use crate::plain_files::PlainFiles;
use crate::postgres_connection::PostgresConnection;
use crate::reporter::Reporter;
use crate::system::{self, OpenedFile};

/// Descriptors that are followed at a time.
const MAX_FOLLOWED: usize = 64;

enum Role {
    FastCgi(FastCgi),
    Connection(Box<Connection>),
    Cache(Box<CacheConnection>),
    Postgres(Box<PostgresConnection>),
    File(OpenFile),
    /// Opened before a fork: the bytes of its other owner are not seen.
    Inherited,
}

/// A file that is, or may become, an SQLite database.
struct OpenFile {
    path: Box<[u8]>,
    /// The number of the request that opened it.
    request: u64,
    /// A session of PHP: its content when it was locked.
    session: Option<Vec<u8>>,
}

/// A file that was opened to be read. Most programs ask next what it is, as PHP does, and their answer is used; whatever
/// else comes next, the library asks.
struct Opening {
    fd: i32,
    path: Vec<u8>,
}

pub(crate) struct Library {
    reporter: Reporter,
    followed: Vec<(i32, Role)>,
    plain_files: PlainFiles,
    opening: Option<Opening>,
    /// Room for the next one.
    path_room: Vec<u8>,
    connections: u32,
    /// The seed of the hashes of results.
    seed: u64,
    has_request: bool,
    /// Requests so far.
    requests: u64,
    /// A command, which answers no request of a server.
    is_command: bool,
}

/// The use of a file that was not opened: a page may show that it could not be.
fn unopened(by: FileUse) -> FileUse {
    match by {
        FileUse::WrittenOnly => FileUse::Written,
        by => by,
    }
}

impl Library {
    /// Tells the servers at these sockets.
    pub(crate) fn new(paths: Vec<Vec<u8>>, is_command: bool) -> Self {
        // With another seed than Mayfly's, no result is the same: pages are made anew.
        let socket: Option<&OsStr> = paths.first().map(|path| OsStrExt::from_bytes(path));
        let facts = socket.and_then(|socket| std::fs::metadata(socket).ok());
        let seed = facts.map_or(0, |facts| learn_record::result_seed(&facts));
        let channels = paths.into_iter().map(|path| Channel::new(path, is_command));
        let channels = Channels::new(channels.collect());
        Self {
            seed,
            reporter: Reporter::new(channels, is_command, seed),
            is_command,
            followed: Vec::new(),
            plain_files: PlainFiles::default(),
            opening: None,
            path_room: Vec::new(),
            connections: 0,
            has_request: false,
            requests: 0,
        }
    }

    /// A connection was accepted: of the server, or by a script.
    pub(crate) fn accepted(&mut self, fd: i32) {
        if self.has_request {
            self.reporter.add_input(InputKind::Connection, b"accepted");
        } else if !self.is_command {
            self.follow(fd, Role::FastCgi(FastCgi::default()));
        }
    }

    /// A connection was opened, or begun to be.
    pub(crate) fn connected(&mut self, fd: i32, address: &[u8]) {
        self.connections = self.connections.wrapping_add(1);
        let connection = Connection::new(self.connections, address.to_vec(), self.seed);
        self.follow(fd, Role::Connection(Box::new(connection)));
    }

    fn follow(&mut self, fd: i32, role: Role) {
        // It was closed in a way that is not seen.
        match self.leave(fd) {
            Some(Role::Connection(mut before)) => before.end_of_request(&mut self.reporter),
            Some(Role::Cache(mut before)) => before.close(&mut self.reporter),
            Some(Role::Postgres(mut before)) => before.end_of_request(&mut self.reporter),
            _ => {}
        }
        let is_possible = (0..MAX_DESCRIPTOR).contains(&fd) && self.followed.len() < MAX_FOLLOWED;
        if is_possible {
            entry::set_followed(fd, true);
            self.followed.push((fd, role));
        } else {
            self.reporter.miss();
            self.reporter.channels.let_go(DoubtReason::Missed);
        }
    }

    fn leave(&mut self, fd: i32) -> Option<Role> {
        let at = self
            .followed
            .iter()
            .position(|(followed, _)| *followed == fd)?;
        entry::set_followed(fd, false);
        Some(self.followed.swap_remove(at).1)
    }

    fn role(&mut self, fd: i32) -> (Option<&mut Role>, &mut Reporter) {
        let role = self
            .followed
            .iter_mut()
            .find(|(followed, _)| *followed == fd);
        (role.map(|(_, role)| role), &mut self.reporter)
    }

    /// The program closes a descriptor of the library's own.
    pub(crate) fn closes_channel(&mut self, fd: i32) {
        self.reporter.channels.closes(fd);
    }

    /// A descriptor is about to be closed.
    pub(crate) fn closes(&mut self, fd: i32) {
        match self.leave(fd) {
            Some(Role::FastCgi(_)) => self.request_is_over(),
            Some(Role::Connection(mut connection)) => connection.end_of_request(&mut self.reporter),
            Some(Role::File(file)) => {
                file.name(fd, self.requests, &mut self.reporter);
                if file.request == self.requests {
                    file.name_session(fd, &mut self.reporter);
                }
            }
            Some(Role::Cache(mut connection)) => connection.close(&mut self.reporter),
            Some(Role::Postgres(mut connection)) => connection.end_of_request(&mut self.reporter),
            Some(Role::Inherited) | None => {}
        }
    }

    /// A file was opened by that descriptor, or was not, where it is negative; then `look` has its state. A file that PHP may
    /// write is followed, for it may become a database.
    pub(crate) fn opened(
        &mut self,
        fd: i32,
        path: &[u8],
        by: FileUse,
        look: impl FnOnce() -> Option<FileState>,
    ) {
        if !self.has_request {
            return;
        }
        if fd >= 0 && by == FileUse::Opened {
            let mut room = std::mem::take(&mut self.path_room);
            room.clear();
            room.extend_from_slice(path);
            self.opening = Some(Opening { fd, path: room });
            entry::set_opening(fd);
            return;
        }
        match (fd >= 0).then(|| system::opened_file(fd)).flatten() {
            Some(file) => self.has_opened(fd, path, by, &file),
            None => self.reporter.add_file(path, unopened(by), look()),
        }
    }

    /// The program has locked an open file for itself alone.
    pub(crate) fn locked(&mut self, fd: i32) {
        if let (Some(Role::File(file)), _) = self.role(fd)
            && file.session.is_none()
            && is_session(&file.path)
        {
            file.session = system::content(fd, MAX_HASHED_SESSION_BYTES);
        }
    }

    /// The program did not get a lock of an open file: the page may lack what another program held at that moment.
    pub(crate) fn did_not_lock(&mut self, fd: i32, is_by_writer: bool) {
        if is_by_writer && system::has_write_ahead_log(fd) {
            // By this lock SQLite finds out whether it is the last to close the database. It does not get the lock while
            // another process has the database open, and the page is the same.
            return;
        }
        let (role, reporter) = self.role(fd);
        let path = match role {
            Some(Role::File(file)) => &file.path[..],
            _ => &b"the lock of a file"[..],
        };
        reporter.add_input(InputKind::Unanswered, path);
    }

    /// The file that was opened last is known, or is asked for.
    pub(crate) fn opening_is(&mut self, file: impl FnOnce(i32) -> Option<OpenedFile>) {
        let Some(Opening { fd, path }) = self.opening.take() else {
            return;
        };
        entry::set_opening(-1);
        match file(fd) {
            Some(file) => self.has_opened(fd, &path, FileUse::Opened, &file),
            // It was closed in a way that is not seen.
            None => self.reporter.miss(),
        }
        self.path_room = path;
    }

    pub(crate) fn settle_opening(&mut self) {
        if self.opening.is_some() {
            self.opening_is(system::opened_file);
        }
    }

    fn has_opened(&mut self, fd: i32, path: &[u8], by: FileUse, file: &OpenedFile) {
        self.reporter.add_file(path, by, Some(file.state));
        let is_one = file.is_regular && !self.is_command;
        let is_written = matches!(by, FileUse::Written | FileUse::WrittenOnly);
        if is_one && (is_written || file.state.size == 0 || self.is_sqlite(fd, file)) {
            let (path, request) = (path.into(), self.requests);
            let session = None;
            self.follow(
                fd,
                Role::File(OpenFile {
                    path,
                    request,
                    session,
                }),
            );
        }
    }

    fn is_sqlite(&mut self, fd: i32, file: &OpenedFile) -> bool {
        if self.plain_files.holds(file) {
            return false;
        }
        let is_sqlite = system::is_sqlite(fd);
        if is_sqlite == Some(false) {
            self.plain_files.add(file, system::wall_clock_nanoseconds());
        }
        is_sqlite == Some(true)
    }

    pub(crate) fn received(&mut self, fd: i32, bytes: &[u8]) {
        let mut events = [None; 4];
        let mut count = 0;
        match self.role(fd) {
            (Some(Role::Connection(connection)), reporter) => connection.received(bytes, reporter),
            (Some(Role::Cache(connection)), reporter) => connection.received(bytes, reporter),
            (Some(Role::Postgres(connection)), reporter) => connection.received(bytes, reporter),
            (Some(Role::FastCgi(connection)), _) => connection.received(bytes, |event| {
                if let Some(place) = events.get_mut(count) {
                    *place = Some(event);
                }
                count += 1;
            }),
            (Some(Role::Inherited), _) => self.misses(fd),
            (Some(Role::File(_)) | None, _) => {}
        }
        for event in events.into_iter().flatten() {
            self.request_event(event);
        }
    }

    fn request_event(&mut self, event: RequestEvent) {
        match event {
            RequestEvent::Begins => {
                self.request_is_over();
                self.has_request = true;
                self.requests += 1;
            }
            RequestEvent::Parameters { fetch } => self.reporter.begin(fetch),
        }
    }

    fn request_is_over(&mut self) {
        self.catch_up();
        self.has_request = false;
        entry::take_random();
        self.reporter.forget_request();
    }

    pub(crate) fn will_send(&mut self, fd: i32, bytes: &[u8]) {
        let ends = match self.role(fd) {
            (Some(role @ Role::Connection(_)), reporter) => {
                role.become_other_by(bytes);
                match role {
                    Role::Connection(connection) => connection.will_send(bytes, reporter),
                    Role::Cache(connection) => connection.will_send(bytes, reporter),
                    Role::Postgres(connection) => connection.will_send(bytes, reporter),
                    _ => {}
                }
                false
            }
            (Some(Role::Cache(connection)), reporter) => {
                connection.will_send(bytes, reporter);
                false
            }
            (Some(Role::Postgres(connection)), reporter) => {
                connection.will_send(bytes, reporter);
                false
            }
            (Some(Role::FastCgi(connection)), _) => connection.ends_request(bytes),
            (Some(Role::Inherited), _) => {
                self.misses(fd);
                false
            }
            (Some(Role::File(_)) | None, _) => false,
        };
        if ends {
            self.request_ends();
        }
    }

    fn request_ends(&mut self) {
        for (fd, role) in &mut self.followed {
            match role {
                Role::Connection(connection) => connection.end_of_request(&mut self.reporter),
                Role::Cache(connection) => connection.end_of_request(&mut self.reporter),
                Role::Postgres(connection) => connection.end_of_request(&mut self.reporter),
                // Also one that an earlier request opened.
                Role::File(file) => file.name(*fd, self.requests, &mut self.reporter),
                Role::FastCgi(_) | Role::Inherited => {}
            }
        }
        if entry::take_random() {
            self.reporter.add_input(InputKind::Random, b"");
        }
        self.reporter.end();
    }

    /// Bytes that wait belong to the request in which they were sent.
    fn catch_up(&mut self) {
        for (_, role) in &mut self.followed {
            if let Role::Connection(connection) = role {
                connection.catch_up(&mut self.reporter);
            }
        }
    }

    /// The kernel took the first `count` of `bytes`.
    pub(crate) fn has_sent(&mut self, fd: i32, bytes: &[u8], count: usize) {
        match self.role(fd) {
            (Some(Role::Connection(connection)), _) => connection.has_sent(count),
            (Some(Role::Cache(connection)), _) => connection.has_sent(count),
            (Some(Role::Postgres(connection)), _) => connection.has_sent(count),
            (Some(Role::FastCgi(connection)), _) => {
                connection.sent(&bytes[..count.min(bytes.len())])
            }
            _ => {}
        }
    }

    /// Something happened on a descriptor that cannot be followed.
    pub(crate) fn misses(&mut self, fd: i32) {
        match self.role(fd) {
            (Some(Role::Connection(connection)), reporter) => connection.miss(reporter),
            (Some(Role::Cache(connection)), reporter) => connection.miss(reporter),
            (Some(Role::Postgres(connection)), reporter) => connection.miss(reporter),
            (Some(Role::FastCgi(_)), _) => {
                self.leave(fd);
                self.request_is_over();
            }
            (Some(Role::Inherited), reporter) => {
                reporter.miss();
                reporter.channels.let_go(DoubtReason::Missed);
            }
            // Another descriptor of the file is not followed.
            (Some(Role::File(_)), reporter) => reporter.miss(),
            (None, _) => {}
        }
    }

    /// A hook could not come in: another thread was within the library.
    pub(crate) fn misses_all(&mut self) {
        self.reporter.channels.let_go(DoubtReason::Missed);
        for (fd, role) in &mut self.followed {
            match role {
                Role::Connection(connection) => connection.miss(&mut self.reporter),
                Role::Cache(connection) => connection.miss(&mut self.reporter),
                Role::Postgres(connection) => connection.miss(&mut self.reporter),
                Role::FastCgi(_) => entry::set_followed(*fd, false),
                Role::File(_) | Role::Inherited => {}
            }
        }
        self.followed
            .retain(|(_, role)| !matches!(role, Role::FastCgi(_)));
        self.request_is_over();
    }

    /// This is a child of the process: nothing here is its own.
    pub(crate) fn is_child_now(&mut self) {
        self.reporter.channels.leave_to_parent();
        self.request_is_over();
        for (_, role) in &mut self.followed {
            *role = Role::Inherited;
        }
    }

    /// The request has an input that is not known.
    pub(crate) fn misses_input(&mut self) {
        self.reporter.miss();
    }

    pub(crate) fn add_input(&mut self, kind: InputKind, detail: &[u8]) {
        self.reporter.add_input(kind, detail);
    }

    pub(crate) fn add_file(
        &mut self,
        path: &[u8],
        by: FileUse,
        state: impl FnOnce() -> Option<FileState>,
    ) {
        if self.has_request {
            self.reporter.add_file(path, by, state());
        }
    }

    #[cfg(test)]
    pub(crate) fn reporter(&mut self) -> &mut Reporter {
        &mut self.reporter
    }

    pub(crate) fn loaded(&mut self, path: &[u8]) {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        // Within a request, FFI may load any library, and call what is in it.
        self.reporter.add_input(InputKind::Extension, name);
        if path.starts_with(b"/") && extension(path) == Some(Extension::Unseen) {
            self.reporter.channels.add_unseen_extension(name);
        }
    }
}

/// Has the file the name that PHP gives to sessions (`session.save_handler=files`)?
fn is_session(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| name.starts_with(b"sess_"))
}

impl Role {
    /// A connection whose client speaks first, and sends a command of an object cache or greets a PostgreSQL, is one to
    /// such.
    fn become_other_by(&mut self, sent: &[u8]) {
        if !matches!(self, Self::Connection(it) if it.is_untouched()) {
            return;
        }
        let cache = CacheConversation::begin(sent);
        let postgres = postgres_wire::Conversation::begin(sent);
        if cache.is_none() && postgres.is_none() {
            return;
        }
        let Self::Connection(connection) = std::mem::replace(self, Self::Inherited) else {
            return;
        };
        let (number, address) = connection.into_address();
        *self = match cache {
            Some(cache) => Self::Cache(Box::new(CacheConnection::new(number, address, cache))),
            None => Self::Postgres(Box::new(PostgresConnection::new(
                number,
                address,
                postgres.unwrap_or_default(),
            ))),
        };
    }
}

impl OpenFile {
    /// Names the session before its file is closed: until then, no other request writes it.
    fn name_session(&self, fd: i32, reporter: &mut Reporter) {
        let after = system::content(fd, MAX_HASHED_SESSION_BYTES);
        if let (Some(before), Some(after)) = (&self.session, after)
            && let Some(file) = system::opened_file(fd)
        {
            reporter.add_session_file(&self.path, (before, &after), file.state);
        }
    }

    /// Names the file of this descriptor where it is a database by now.
    fn name(&self, fd: i32, request: u64, reporter: &mut Reporter) {
        let found = system::opened_file(fd)
            .filter(|it| it.is_regular && system::is_sqlite(fd) == Some(true));
        if let Some(file) = found {
            reporter.add_sqlite_file(&SqliteFile {
                path: &self.path,
                device: file.device,
                inode: file.state.inode,
                is_from_before: self.request != request,
            });
        }
    }
}
