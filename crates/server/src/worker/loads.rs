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

use site::ListenAddress;
use tokio::sync::mpsc;
use transport::stream::UnregisteredSocket;

/// A worker keeps what it accepted while it has at most this part more than the one
/// with the fewest: handing over wakes another thread, and a few more do not matter
/// where there are many.
const SLACK: usize = 16;
/// Connections on their way to one worker. A worker that leaves this number of them waiting is no
/// help: the accepting worker then keeps its connections.
const INBOX: usize = 256;

/// An accepted connection, on its way to the worker that serves it.
pub struct AcceptedConnection {
    pub socket: UnregisteredSocket,
    pub peer: Option<SocketAddr>,
    /// Where it came in.
    pub address: ListenAddress,
    pub slot: ConnectionSlot,
}

/// All workers, as those see it who accept.
pub struct WorkerLoads {
    /// Connections of each. They change with connections and never with requests,
    /// so they lie close together, to be read in one go.
    connections: Box<[AtomicUsize]>,
    inboxes: Box<[mpsc::Sender<AcceptedConnection>]>,
}

/// One connection in the count of its worker, while it lives.
pub struct ConnectionSlot {
    loads: Arc<WorkerLoads>,
    worker: usize,
}

impl ConnectionSlot {
    pub fn is_with(&self, worker: usize) -> bool {
        self.worker == worker
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.loads.connections[self.worker].fetch_sub(1, Ordering::Relaxed);
    }
}

impl WorkerLoads {
    /// The loads of this number of workers, and what each of them takes its connections from.
    pub fn new(workers: usize) -> (Arc<WorkerLoads>, Vec<mpsc::Receiver<AcceptedConnection>>) {
        let (inboxes, receivers): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| mpsc::channel(INBOX)).unzip();
        let loads = WorkerLoads {
            connections: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            inboxes: inboxes.into(),
        };
        (Arc::new(loads), receivers)
    }

    /// Are there connections, the handed over ones included?
    pub fn is_busy(&self) -> bool {
        let mut counts = self.connections.iter();
        counts.any(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// A slot with the worker that should serve what worker `own` has accepted.
    pub fn slot(self: &Arc<Self>, own: usize) -> ConnectionSlot {
        self.slot_with(self.choose(own))
    }

    /// A slot with a worker that serves what it has accepted whatever it has already.
    pub fn own_slot(self: &Arc<Self>, own: usize) -> ConnectionSlot {
        self.slot_with(own)
    }

    /// Sends a connection to the worker of its slot. Where that one takes
    /// none, it comes back with a slot of `own`.
    pub fn hand_over(
        self: &Arc<Self>,
        accepted: AcceptedConnection,
        own: usize,
    ) -> Option<AcceptedConnection> {
        let worker = accepted.slot.worker;
        let refused = self.inboxes[worker].try_send(accepted).err()?;
        Some(AcceptedConnection {
            slot: self.slot_with(own),
            ..refused.into_inner()
        })
    }

    fn slot_with(self: &Arc<Self>, worker: usize) -> ConnectionSlot {
        self.connections[worker].fetch_add(1, Ordering::Relaxed);
        ConnectionSlot {
            loads: self.clone(),
            worker,
        }
    }

    /// Counts that change meanwhile make a choice a little worse, nothing else.
    fn choose(&self, own: usize) -> usize {
        let count = |worker: usize| self.connections[worker].load(Ordering::Relaxed);
        let workers = 0..self.connections.len();
        let Some((least, worker)) = workers.map(|worker| (count(worker), worker)).min() else {
            return own;
        };
        match count(own) <= least + least / SLACK {
            true => own,
            false => worker,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// What worker `own` has of a connection that it accepted.
    fn accept(loads: &Arc<WorkerLoads>, own: usize) -> Option<AcceptedConnection> {
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
        let counts = loads.connections.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn one_that_accepts_everything_serves_its_share() {
        for (workers, connections, wanted) in [
            (1, 3, vec![3]),
            (2, 2, vec![1, 1]),
            (2, 5, vec![3, 2]),
            (2, 32, vec![16, 16]),
            // From here on it may have a sixteenth more.
            (2, 100, vec![52, 48]),
            (4, 3, vec![1, 1, 1, 0]),
            (4, 10, vec![3, 3, 2, 2]),
        ] {
            let (loads, mut inboxes) = WorkerLoads::new(workers);
            let mut served = Vec::new();
            for _ in 0..connections {
                served.extend(accept(&loads, 0));
                for inbox in &mut inboxes {
                    served.extend(inbox.try_recv().ok());
                }
            }
            assert_eq!(counts(&loads), wanted, "{connections} among {workers}");
            assert_eq!(served.len(), connections);
            assert!(loads.is_busy());
            drop(served);
            assert!(!loads.is_busy());
        }
    }

    #[test]
    fn what_has_ended_counts_no_more() {
        let (loads, mut inboxes) = WorkerLoads::new(2);
        let kept = accept(&loads, 0);
        assert!(kept.is_some());
        assert!(accept(&loads, 0).is_none());
        drop(kept);
        assert_eq!(counts(&loads), [0, 1]);
        let kept = accept(&loads, 0);
        assert!(kept.is_some_and(|accepted| accepted.slot.worker == 0));
        drop(inboxes.remove(1).try_recv());
        assert!(!loads.is_busy());
    }

    #[test]
    fn a_worker_that_takes_nothing_is_not_waited_for() {
        let (loads, mut inboxes) = WorkerLoads::new(2);
        inboxes[0].close();
        let accepted: Vec<_> = (0..3).map(|_| accept(&loads, 1)).collect();
        assert!(accepted.iter().all(Option::is_some));
        assert_eq!(counts(&loads), [0, 3]);
        drop(accepted);

        let (loads, inboxes) = WorkerLoads::new(2);
        let accepted: Vec<_> = (0..2 * INBOX + 100)
            .filter_map(|_| accept(&loads, 0))
            .collect();
        assert_eq!(counts(&loads), [accepted.len(), INBOX]);
        drop(inboxes);
        assert_eq!(counts(&loads), [accepted.len(), 0]);
    }
}
