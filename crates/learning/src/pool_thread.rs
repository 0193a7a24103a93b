//! The thread of a pool: accepts its workers, takes the server's reports of fetches, and looks about once a second for
//! changes without a message: files, pages that have been known for long enough, workers that are gone. It sleeps while
//! no page may be shown by what is known, and none is fetched.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};

use crate::LearnedPool;
use crate::address_lookups::{self, Question};
use crate::binary_log::Followers;
use crate::channel::Worker;
use crate::client::{self, DatabaseAccount};
use crate::doubts::{AskedServer, POSTGRES_QUESTIONS, QUESTIONS};
use crate::files;
use crate::heartbeat::{self, ProcessConnections};
use crate::join::{End, Join};
use crate::mark::Marks;
use crate::poll::{self, Poller};
use crate::postgres;
use crate::process;
use crate::read_back::{self, PageToReadBack};
use crate::record::ServerName;
use crate::replay;
use crate::schema_reader;
use crate::sqlite::SqliteSeen;
use crate::tracker::Trackers;

/// Processes of one pool that are heard.
const MAX_WORKERS: usize = 512;

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often a server is asked for its tables: while they are in doubt, and otherwise, for programs that
/// are not heard may change them.
const ASK_AGAIN: Duration = Duration::from_secs(1);
const ASK_EVERY: Duration = Duration::from_secs(60);

/// After an error of `accept`, such as a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Begins to hear the workers of a pool. The thread ends with the pool.
pub fn begin(
    pool: &Arc<LearnedPool>,
    socket: OwnedFd,
    (ends, to_read_back, questions): (
        mpsc::Receiver<End>,
        mpsc::Receiver<PageToReadBack>,
        mpsc::Receiver<Question>,
    ),
) -> io::Result<()> {
    let (weak, marks) = (Arc::downgrade(pool), pool.marks.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .build()?;
    // Names of threads are cut.
    let name = format!("learn-{}", pool.name());
    let run = move || {
        runtime.spawn(read_back::run(weak.clone(), to_read_back));
        let pool = weak.clone();
        let account_of = move |server: &str| {
            let pool = pool.upgrade()?;
            Some((pool.account_of(server)?, pool.seed))
        };
        runtime.spawn(address_lookups::run(account_of, questions));
        runtime.block_on(run(weak, marks, socket, ends));
    };
    std::thread::Builder::new()
        .name(name)
        .stack_size(learned::STACK_BYTES)
        .spawn(run)?;
    Ok(())
}

async fn run(
    pool: Weak<LearnedPool>,
    marks: Arc<Marks>,
    socket: OwnedFd,
    mut ends: mpsc::Receiver<End>,
) {
    // It keeps the bounds of packets, which makes no difference to who accepts.
    let Ok(socket) = UnixListener::from_std(socket.into()) else {
        return;
    };
    let socket = Arc::new(socket);
    let connections = ProcessConnections::default();
    let join: Arc<Mutex<Join>> = Arc::default();
    let (by_heartbeat, mut accepted) = mpsc::channel(1);
    tokio::spawn(heartbeat::run(
        pool.clone(),
        marks.clone(),
        socket.clone(),
        connections.clone(),
        join.clone(),
        by_heartbeat,
    ));
    let alive = pool.upgrade();
    if let Some((wanted, awaited)) = alive.map(|it| (it.wanted.clone(), it.awaited.clone())) {
        tokio::spawn(replay::run(pool.clone(), wanted, awaited));
    }
    let (polls, followers) = (Polls::default(), Followers::default());
    let trackers = Trackers::default();
    let mut workers = JoinSet::new();
    // When each server was asked for its tables. A pool has few.
    let mut readings = HashMap::new();
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            accepted = socket.accept() => {
                let Some(pool) = pool.upgrade() else {
                    return;
                };
                match accepted {
                    Ok((worker, _)) => {
                        let worker = Arc::new(worker);
                        connections.add(&worker);
                        if let Some(worker) = admit(&pool, &join, worker, workers.len()) {
                            workers.spawn(worker.run());
                        }
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
            Some(worker) = accepted.recv() => {
                let Some(pool) = pool.upgrade() else {
                    return;
                };
                if let Some(worker) = admit(&pool, &join, worker, workers.len()) {
                    workers.spawn(worker.run());
                }
            }
            end = ends.recv() => {
                // Without its sender the pool has ended.
                let (Some(end), Some(pool)) = (end, pool.upgrade()) else {
                    return;
                };
                marks.wake();
                let joined = join.lock().end(end, Instant::now());
                if let Some((end, record)) = joined {
                    pool.learn(end, record);
                }
            }
            Some(_) = workers.join_next() => {}
            () = next_look(&marks, &mut looks) => {
                let Some(pool) = pool.upgrade() else {
                    return;
                };
                read_schemas(&pool, &mut readings);
                polls.begin(&pool);
                followers.begin(&pool);
                trackers.begin(&pool);
                ask_for_connections(&pool);
                look(&pool, &join).await;
                let has_nothing = pool.book.lock().has_nothing_to_show(Instant::now());
                if has_nothing && join.lock().is_empty() {
                    marks.rest();
                    if !marks.is_awake() {
                        polls.close_all_but(&[]);
                    }
                }
            }
        }
    }
}

/// At rest, the next look comes with the next fetch: what changes until then is in its page.
async fn next_look(marks: &Marks, looks: &mut Interval) {
    marks.until_awake().await;
    looks.tick().await;
}

/// Hears a process of the account that runs PHP, or of root, and no other.
fn admit(
    pool: &Arc<LearnedPool>,
    join: &Arc<Mutex<Join>>,
    worker: Arc<UnixStream>,
    count: usize,
) -> Option<Worker> {
    let peer = worker.peer_cred().ok()?;
    // Root may do anything, and runs cron jobs.
    let is_of_account = [pool.account, 0].contains(&peer.uid());
    let pid = u32::try_from(peer.pid()?).ok()?;
    if !is_of_account || count >= MAX_WORKERS {
        pool.change(|book| {
            book.counts().refused += 1;
            if is_of_account {
                // It writes, and is not heard.
                book.suspect_all("a worker is not heard", Instant::now(), |_| true);
                book.note_unheard(pid, "there are too many processes");
            }
        });
        return None;
    }
    let who = (pid, peer.uid());
    Some(Worker::new(pool.clone(), join.clone(), worker, who))
}

/// Asks for the tables of the servers where that is due.
fn read_schemas(pool: &Arc<LearnedPool>, readings: &mut HashMap<ServerName, Instant>) {
    let servers = pool.change(|book| book.servers());
    for (server, is_in_doubt, definitions) in servers {
        let account = pool.account_of(&server);
        let pause = if is_in_doubt { ASK_AGAIN } else { ASK_EVERY };
        let is_due = readings
            .get(&server)
            .is_none_or(|asked| asked.elapsed() >= pause);
        let Some(account) = account.filter(|_| is_due) else {
            continue;
        };
        readings.insert(server.clone(), Instant::now());
        let pool = Arc::downgrade(pool);
        tokio::spawn(async move {
            let read = schema_reader::read(&account).await;
            if let Some(pool) = pool.upgrade() {
                pool.change(|book| book.set_schema(&server, read, definitions, Instant::now()));
            }
        });
    }
}

/// Servers that are asked what other programs have written; `None`: one is being asked.
#[derive(Clone, Default)]
struct Polls(Arc<Mutex<HashMap<ServerName, Option<Poller>>>>);

impl Polls {
    fn take(&self, server: &ServerName) -> Option<Poller> {
        let mut all = self.0.lock();
        let known = all.insert(server.clone(), None);
        known.unwrap_or_else(|| Some(Poller::default()))
    }

    /// Keeps the poller for the next poll, unless the thread sleeps until pages are kept again.
    fn put_back(&self, server: &ServerName, poller: Poller, is_awake: impl Fn() -> bool) {
        let mut all = self.0.lock();
        match is_awake() {
            true => all.insert(server.clone(), Some(poller)),
            false => all.remove(server),
        };
    }

    /// Closes the connections that are kept for the next poll of other servers.
    fn close_all_but(&self, servers: &[ServerName]) {
        let is_used = |server: &ServerName| servers.contains(server);
        let mut all = self.0.lock();
        all.retain(|server, poller| poller.is_none() || is_used(server));
    }

    /// Asks each server, where pages are kept, and none twice at a time.
    fn begin(&self, pool: &Arc<LearnedPool>) {
        if !pool.keeps() {
            self.close_all_but(&[]);
            return;
        }
        let (began, now) = (Instant::now(), clock::now());
        let servers = pool.change(|book| book.to_poll(began));
        let names: Vec<_> = servers.iter().map(|(server, ..)| server.clone()).collect();
        self.close_all_but(&names);
        if servers.is_empty() {
            pool.marks.note_polled(now + poll::holds());
        }
        for (server, tables, window) in servers {
            let Some(account) = pool.account_of(&server) else {
                continue;
            };
            let Some(mut poller) = self.take(&server) else {
                continue;
            };
            let (pool, polls) = (Arc::downgrade(pool), self.clone());
            tokio::spawn(async move {
                let answer = poller.ask(&account, &tables, window).await;
                let Some(pool) = pool.upgrade() else {
                    return;
                };
                polls.put_back(&server, poller, || pool.marks.is_awake());
                match answer {
                    Ok(answer) => {
                        pool.change(|book| book.polled(&server, answer, (&tables[..], began)));
                        pool.marks.note_polled(now + poll::holds());
                        pool.want_replays();
                    }
                    Err(error) => {
                        pool.change(|book| book.poll_failed(&server, error.to_string()));
                    }
                }
            });
        }
    }
}

/// Asks the servers whose connections decide whether a write is still to come.
fn ask_for_connections(pool: &Arc<LearnedPool>) {
    let (servers, asked) = pool.change(|book| (book.servers_in_doubt(), book.last_doubt()));
    for server in servers {
        let Some(account) = pool.account_of(&server) else {
            continue;
        };
        let pool = Arc::downgrade(pool);
        tokio::spawn(async move {
            // Without an answer, the doubt stays.
            let Some((listed, pool)) = connections(&account).await.zip(pool.upgrade()) else {
                return;
            };
            let listed = AskedServer {
                server: &server,
                identifiers: &listed.identifiers,
                account: &listed.account,
                shows_all: listed.shows_all,
            };
            pool.change(|book| book.connections_listed(asked, &listed, Instant::now()));
            pool.want_replays();
        });
    }
}

struct Connections {
    identifiers: Vec<u32>,
    account: Vec<u8>,
    shows_all: bool,
}

async fn connections(account: &DatabaseAccount) -> Option<Connections> {
    let questions = match postgres::parts(&account.server) {
        Some(_) => &POSTGRES_QUESTIONS,
        None => &QUESTIONS,
    };
    let answers = client::ask(account, questions).await.ok()?;
    let [identifiers, own, process] = answers.try_into().ok()?;
    let identifiers = identifiers.into_iter().flatten();
    let identifiers = identifiers.map(|it| str::from_utf8(&it?).ok()?.parse().ok());
    Some(Connections {
        // One that is not understood may be any.
        identifiers: identifiers.collect::<Option<_>>()?,
        account: own.into_iter().flatten().next()??,
        shows_all: !process.is_empty(),
    })
}

/// Looks for changes of which there is no message.
async fn look(pool: &Arc<LearnedPool>, join: &Mutex<Join>) {
    let now = Instant::now();
    let late = join.lock().sweep(now);
    for (end, record) in late {
        pool.learn(end, record);
    }
    let to_check = pool.change(|book| {
        book.forget_unheard(process::is_alive);
        book.note_suspects(now);
        book.forget_ended(now);
        book.files_to_check()
    });
    let databases = pool.sqlite.lock().all();
    let sessions = pool.sessions.clone();
    // A disk may take its time.
    let checked = tokio::task::spawn_blocking(move || {
        sessions.look();
        let seen = databases.into_iter().map(|database| SqliteSeen {
            look: database.look_and_wait(),
            database,
        });
        (files::check(to_check), seen.collect::<Vec<_>>())
    });
    let Ok((changed, sqlite)) = checked.await else {
        return;
    };
    if !changed.is_empty() || !sqlite.is_empty() {
        pool.change(|book| {
            book.files_changed(&changed, Instant::now());
            book.sqlite_looked_at(&sqlite, Instant::now());
        });
    }
}
