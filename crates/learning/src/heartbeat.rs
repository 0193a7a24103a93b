//! The time until which all messages of the processes of a pool are counted.
//!
//! A process waits for an acknowledgement, but not for ever: if this thread stands still, PHP goes on. So it notes
//! a time at which no earlier message was left to be read; pages are shown by what is known of them for
//! half of the time that a process waits. A page that was stored before that time and has no record gets none. Where there is no such page and no fetch, nothing is noted, and the thread
//! sleeps.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, recv};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::LearnedPool;
use crate::join::Join;
use crate::mark::Marks;

/// The library waits for a second (`WAITS_SECONDS`).
const HOLDS_MILLISECONDS: u64 = 500;

/// How often it is looked, and how often while something is left to be read.
const EVERY: Duration = Duration::from_millis(100);
const AGAIN: Duration = Duration::from_millis(1);

/// The connections of a pool's processes, until it is known what became of those that have ended.
#[derive(Clone, Default)]
pub struct ProcessConnections(Arc<Mutex<Vec<Weak<UnixStream>>>>);

impl ProcessConnections {
    pub fn add(&self, connection: &Arc<UnixStream>) {
        let mut all = self.0.lock();
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(connection));
    }

    fn all(&self) -> Vec<Weak<UnixStream>> {
        self.0.lock().clone()
    }
}

/// Runs as long as the pool is there. Who connects is given to `accepted`.
pub async fn run(
    pool: Weak<LearnedPool>,
    marks: Arc<Marks>,
    socket: Arc<UnixListener>,
    connections: ProcessConnections,
    join: Arc<Mutex<Join>>,
    accepted: mpsc::Sender<Arc<UnixStream>>,
) {
    loop {
        marks.until_awake().await;
        let (began, until) = (clock::now(), Instant::now());
        while !accept_all(&socket, &connections, &accepted).await {
            sleep(AGAIN).await;
        }
        // The connections that were accepted until now.
        for connection in connections.all() {
            while connection.upgrade().is_some_and(|it| has_something(&it)) {
                sleep(AGAIN).await;
            }
        }
        // A pool that ends has noted by itself that nothing is heard any more.
        let Some(pool) = pool.upgrade() else {
            return;
        };
        marks.note_heard(began + HOLDS_MILLISECONDS);
        let unreported = join.lock().heard(until);
        for (end, record) in unreported {
            pool.learn(end, record);
        }
        drop(pool);
        sleep(EVERY).await;
    }
}

/// Whether nothing is left to be accepted.
async fn accept_all(
    socket: &UnixListener,
    connections: &ProcessConnections,
    accepted: &mpsc::Sender<Arc<UnixStream>>,
) -> bool {
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let stream = match accept_with(socket, flags) {
            Ok(stream) => UnixStream::from_std(stream.into()),
            Err(error) => return error == Errno::AGAIN,
        };
        let Ok(stream) = stream.map(Arc::new) else {
            return false;
        };
        connections.add(&stream);
        if accepted.send(stream).await.is_err() {
            return false;
        }
    }
}

/// Is something to be read, or has the process gone?
fn has_something(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let peeked = recv(stream, &mut [0; 1], flags);
    !matches!(peeked, Err(Errno::AGAIN))
}
