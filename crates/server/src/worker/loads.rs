//! Who serves a connection. Workers accept from the same sockets, and the one that wakes first gets
//! the connection: with few connections that is often the same worker, while the others have
//! nothing to do. So the worker that accepted looks at how many connections each has, and hands the
//! socket to the one with the fewest if that is clearly fewer than its own. It then stays there:
//! requests cost nothing for it.
//!
//! ```text
//! accept ─► as few as any other's ─────────────► serve
//!      └──► another has fewer ─► its inbox ────► serve there
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use site::ListenAddress;
use tokio::sync::mpsc;
use transport::stream::UnregisteredSocket;

/// A worker keeps a connection that it accepted while it has at most this part more than the one with
/// the fewest: handing over wakes another thread, and a few more do not matter where there are many.
const SLACK: usize = 16;
/// Connections on their way to one worker. A worker that leaves this number of them waiting is no
/// help: the accepting worker then keeps its connections.
const INBOX: usize = 256;

/// An accepted connection, on its way to the worker that serves it.
pub struct AcceptedConnection {
    pub socket: UnregisteredSocket,
    pub peer: Option<SocketAddr>,
    /// The address of the listener that accepted it.
    pub address: ListenAddress,
    pub slot: ConnectionSlot,
}

/// All workers, as those see it who accept.
pub struct WorkerLoads {
    workers: ArcSwap<Vec<Arc<WorkerLoad>>>,
    /// The first of them accept. The others serve the connections they have.
    accepting: AtomicUsize,
}

struct WorkerLoad {
    index: usize,
    /// It changes with connections and never with requests.
    connections: AtomicUsize,
    inbox: mpsc::Sender<AcceptedConnection>,
}

/// One connection in the count of its worker, while it lives.
pub struct ConnectionSlot(Arc<WorkerLoad>);

impl ConnectionSlot {
    fn new(worker: &Arc<WorkerLoad>) -> ConnectionSlot {
        worker.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionSlot(worker.clone())
    }

    pub fn is_with(&self, worker: usize) -> bool {
        self.0.index == worker
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WorkerLoads {
    /// No worker yet.
    pub fn new() -> WorkerLoads {
        WorkerLoads {
            workers: ArcSwap::default(),
            accepting: AtomicUsize::new(0),
        }
    }

    /// Adds a worker, which does not accept yet. Returns its index, and the receiver of its
    /// connections.
    pub fn add(&self) -> (usize, mpsc::Receiver<AcceptedConnection>) {
        let (inbox, receiver) = mpsc::channel(INBOX);
        let mut workers = self.workers.load().to_vec();
        let index = workers.len();
        workers.push(Arc::new(WorkerLoad {
            index,
            connections: AtomicUsize::new(0),
            inbox,
        }));
        self.workers.store(Arc::new(workers));
        (index, receiver)
    }

    /// The last one that was added has no thread after all.
    pub fn remove_last(&self) {
        let mut workers = self.workers.load().to_vec();
        workers.pop();
        self.workers.store(Arc::new(workers));
    }

    /// Returns how many there are, those included that do not accept.
    pub fn count(&self) -> usize {
        self.workers.load().len()
    }

    /// Returns how many accept.
    pub fn accepting(&self) -> usize {
        self.accepting.load(Ordering::Relaxed)
    }

    /// Lets the first `count` workers accept from now on.
    pub fn set_accepting(&self, count: usize) {
        self.accepting.store(count, Ordering::Relaxed);
    }

    /// Are there connections, the handed over ones included?
    pub fn is_busy(&self) -> bool {
        let workers = self.workers.load();
        let mut counts = workers.iter().map(|worker| &worker.connections);
        counts.any(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Returns a slot of the worker that should serve a connection accepted by worker `own`.
    pub fn slot(&self, own: usize) -> ConnectionSlot {
        let workers = self.workers.load();
        ConnectionSlot::new(&workers[self.choose(&workers, own)])
    }

    /// Returns a slot of worker `own`, however many connections it has.
    pub fn own_slot(&self, own: usize) -> ConnectionSlot {
        ConnectionSlot::new(&self.workers.load()[own])
    }

    /// Sends a connection to the worker of its slot. If that worker takes none, the connection comes
    /// back with a slot of `own`.
    pub fn hand_over(
        &self,
        accepted: AcceptedConnection,
        own: usize,
    ) -> Option<AcceptedConnection> {
        let worker = accepted.slot.0.clone();
        let refused = worker.inbox.try_send(accepted).err()?;
        Some(AcceptedConnection {
            slot: self.own_slot(own),
            ..refused.into_inner()
        })
    }

    /// Counts that change meanwhile make a choice a little worse, nothing else.
    fn choose(&self, workers: &[Arc<WorkerLoad>], own: usize) -> usize {
        let count = |worker: usize| workers[worker].connections.load(Ordering::Relaxed);
        let accepting = self.accepting().min(workers.len());
        let loads = (0..accepting).map(|worker| (count(worker), worker));
        let Some((least, worker)) = loads.min() else {
            return own;
        };
        match own < accepting && count(own) <= least + least / SLACK {
            true => own,
            false => worker,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn workers(count: usize) -> (WorkerLoads, Vec<mpsc::Receiver<AcceptedConnection>>) {
        let loads = WorkerLoads::new();
        let inboxes = (0..count).map(|_| loads.add().1).collect();
        loads.set_accepting(count);
        (loads, inboxes)
    }

    #[test]
    fn a_worker_whose_thread_did_not_start_is_missing_again() {
        let (loads, _inboxes) = workers(2);
        assert_eq!(loads.add().0, 2);
        loads.remove_last();
        assert_eq!((loads.count(), loads.add().0), (2, 2));
    }

    /// Creates a connection that worker `own` has accepted; returns it if the worker keeps it.
    fn accept(loads: &WorkerLoads, own: usize) -> Option<AcceptedConnection> {
        let accepted = AcceptedConnection {
            socket: UnregisteredSocket::Unix(UnixStream::pair().unwrap().0),
            peer: None,
            address: ListenAddress::Unix("/socket".into()),
            slot: loads.slot(own),
        };
        match accepted.slot.is_with(own) {
            true => Some(accepted),
            false => loads.hand_over(accepted, own),
        }
    }

    fn counts(loads: &WorkerLoads) -> Vec<usize> {
        let workers = loads.workers.load();
        let counts = workers.iter().map(|worker| &worker.connections);
        counts.map(|count| count.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn one_that_accepts_everything_serves_its_share() {
        for (count, connections, wanted) in [
            (1, 3, vec![3]),
            (2, 2, vec![1, 1]),
            (2, 5, vec![3, 2]),
            (2, 32, vec![16, 16]),
            // From here on it may have a sixteenth more.
            (2, 100, vec![52, 48]),
            (4, 3, vec![1, 1, 1, 0]),
            (4, 10, vec![3, 3, 2, 2]),
        ] {
            let (loads, mut inboxes) = workers(count);
            let mut served = Vec::new();
            for _ in 0..connections {
                served.extend(accept(&loads, 0));
                for inbox in &mut inboxes {
                    served.extend(inbox.try_recv().ok());
                }
            }
            assert_eq!(counts(&loads), wanted, "{connections} among {count}");
            assert_eq!(served.len(), connections);
            assert!(loads.is_busy());
            drop(served);
            assert!(!loads.is_busy());
        }
    }

    #[test]
    fn a_worker_that_no_longer_accepts_keeps_what_it_has() {
        let (loads, mut inboxes) = workers(3);
        let _kept: Vec<_> = (0..3).map(|own| accept(&loads, own)).collect();
        loads.set_accepting(1);
        // It had accepted this one before it saw the change.
        assert!(accept(&loads, 2).is_none());
        let _handed_over = inboxes[0].try_recv().unwrap();
        assert!(accept(&loads, 0).is_some());
        assert_eq!(counts(&loads), [2, 1, 1]);
        loads.set_accepting(3);
        assert!(accept(&loads, 0).is_none());
        assert!(loads.is_busy());
    }

    #[test]
    fn what_has_ended_counts_no_more() {
        let (loads, mut inboxes) = workers(2);
        let kept = accept(&loads, 0);
        assert!(kept.is_some());
        assert!(accept(&loads, 0).is_none());
        drop(kept);
        assert_eq!(counts(&loads), [0, 1]);
        let kept = accept(&loads, 0);
        assert!(kept.is_some_and(|accepted| accepted.slot.is_with(0)));
        drop(inboxes.remove(1).try_recv());
        assert!(!loads.is_busy());
    }

    #[test]
    fn a_worker_that_takes_nothing_is_not_waited_for() {
        let (loads, mut inboxes) = workers(2);
        inboxes[0].close();
        let accepted: Vec<_> = (0..3).map(|_| accept(&loads, 1)).collect();
        assert!(accepted.iter().all(Option::is_some));
        assert_eq!(counts(&loads), [0, 3]);
        drop(accepted);

        let (loads, inboxes) = workers(2);
        let accepted: Vec<_> = (0..2 * INBOX + 100)
            .filter_map(|_| accept(&loads, 0))
            .collect();
        assert_eq!(counts(&loads), [accepted.len(), INBOX]);
        drop(inboxes);
        assert_eq!(counts(&loads), [accepted.len(), 0]);
    }
}
