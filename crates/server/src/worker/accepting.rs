//! Accepting: from each listening socket in force, until another configuration or the
//! graceful stop ends it. An accepted connection is served here or handed to the worker
//! that has the fewest. Packets of QUIC are all taken by one worker, see [`http3`].

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use site::ListenAddress;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use transport::connections::TrackedConnection;
use transport::facts::{ConnectionFacts, LocalAddress};
use transport::http3;
use transport::stream::ClientStream;

use super::WorkerContext;
use super::loads::{AcceptedConnection, ConnectionSlot};
use super::shared::{Listening, Registration, WorkersState};
use crate::log::error_log;

/// How long accepting pauses when the process has no more file descriptors: at first just long
/// enough for ended connections to be closed, then longer each time.
const ACCEPT_PAUSE_FIRST: Duration = Duration::from_millis(10);
const ACCEPT_PAUSE_LAST: Duration = Duration::from_millis(500);
/// The worker that takes the packets of QUIC.
const QUIC_WORKER: usize = 0;

/// Accepts from all sockets in force until the graceful stop.
pub async fn accept_all(context: &WorkerContext) {
    let (shared, index) = (&context.shared, context.index);
    let mut sockets = shared.changes();
    let mut stop = shared.stop_signal();
    // By address and place in its group.
    let mut accepting: HashMap<(ListenAddress, usize), (Arc<Listening>, JoinHandle<()>)> =
        HashMap::new();
    loop {
        let current = sockets.borrow_and_update().clone();
        let workers = context.loads.accepting();
        accepting.retain(|(address, place), (listening, task)| {
            // A socket of QUIC has connections, which a reload does not end: it stays the same
            // one as long as its address does, however often it is handed over.
            let stays = current.get(address).is_some_and(|group| {
                is_quic(address)
                    || takes(index, workers, *place, group.len())
                        && Arc::ptr_eq(&group[*place], listening)
            });
            if !stays {
                task.abort();
            }
            stays
        });
        let sockets_of_all = current.iter().flat_map(|(address, group)| {
            let places = group.iter().enumerate();
            places.map(move |(place, listening)| (address, place, group.len(), listening))
        });
        for (address, place, count, listening) in sockets_of_all {
            let is_own = match is_quic(address) {
                true => index == QUIC_WORKER && place == 0,
                false => takes(index, workers, place, count),
            };
            if !is_own || accepting.contains_key(&(address.clone(), place)) {
                continue;
            }
            match listening.try_clone() {
                Ok(own) => {
                    let task = tokio::spawn(accept(context.clone(), own, address.clone()));
                    accepting.insert((address.clone(), place), (listening.clone(), task));
                }
                Err(error) => {
                    error_log::emergency(
                        &shared.configuration(),
                        format_args!("{address:?}: {error}"),
                    );
                }
            }
        }
        tokio::select! {
            changed = sockets.changed() => if changed.is_err() { break },
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    let of_quic = accepting.extract_if(|(address, _), _| is_quic(address));
    let of_quic: Vec<_> = of_quic.map(|(_, (_, task))| task).collect();
    for (_, task) in accepting.into_values() {
        task.abort();
    }
    if !of_quic.is_empty() {
        http3::until_other_reads().await;
    }
    of_quic.iter().for_each(JoinHandle::abort);
}

/// Does this one of `workers` that accept take connections from this one of the `count` sockets of
/// an address? Each socket has a worker, and each worker a socket, however many there are of both:
/// a reload changes the number of workers, but connections may wait in any socket.
fn takes(worker: usize, workers: usize, socket: usize, count: usize) -> bool {
    worker < workers
        && match count > workers {
            true => socket % workers == worker,
            false => worker % count == socket,
        }
}

async fn accept(context: WorkerContext, listening: Listening, address: ListenAddress) {
    let failed = |error: io::Error| {
        let configuration = context.shared.configuration();
        // Clients cause these as often as they like.
        if error_log::may_tell_refusal(&configuration) {
            let message = format_args!("accept() on {address:?} failed: {error}");
            error_log::emergency(&configuration, message);
        }
    };
    let mut wait = ACCEPT_PAUSE_FIRST;
    match listening {
        Listening::Tcp(listener) => match TcpListener::from_std(listener) {
            Ok(listener) => loop {
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        wait = ACCEPT_PAUSE_FIRST;
                        let _ = stream.set_nodelay(true);
                        context.take(stream.into(), Some(peer), &address);
                    }
                    Err(error) => pause(error, &failed, &mut wait).await,
                }
            },
            Err(error) => failed(error),
        },
        Listening::Unix(listener) => match UnixListener::from_std(listener) {
            Ok(listener) => loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        wait = ACCEPT_PAUSE_FIRST;
                        context.take(stream.into(), None, &address);
                    }
                    Err(error) => pause(error, &failed, &mut wait).await,
                }
            },
            Err(error) => failed(error),
        },
        Listening::Udp(socket) => {
            let key = {
                let configuration = context.shared.configuration();
                configuration.quic_keys.of(&configuration.site, &address)
            };
            let service = context.shared.clone();
            let admit = |connection: &Arc<dyn TrackedConnection>| context.admit(connection);
            if let Err(error) = http3::listen(service, socket, address.clone(), key, admit).await {
                failed(error);
            }
        }
    }
}

fn is_quic(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Udp(_))
}

/// Serves connections that other workers hand over.
pub async fn receive(shared: Arc<WorkersState>, mut inbox: mpsc::Receiver<AcceptedConnection>) {
    while let Some(accepted) = inbox.recv().await {
        begin_handed_over(&shared, accepted);
    }
}

impl WorkerContext {
    /// Counts a connection of QUIC, which is served here.
    fn admit(&self, connection: &Arc<dyn TrackedConnection>) -> Registration {
        count(&self.shared);
        let slot = self.loads.own_slot(self.index);
        self.shared.register(Arc::downgrade(connection), slot)
    }

    /// Serves a connection that was accepted here, or leaves it to another worker.
    fn take(&self, stream: ClientStream, peer: Option<SocketAddr>, address: &ListenAddress) {
        let slot = self.loads.slot(self.index);
        if slot.is_with(self.index) {
            return begin(&self.shared, stream, peer, address.clone(), slot);
        }
        let socket = match stream.unregister() {
            Ok(socket) => socket,
            Err(error) => return lost(&self.shared, address, &error),
        };
        let accepted = AcceptedConnection {
            socket,
            peer,
            address: address.clone(),
            slot,
        };
        if let Some(refused) = self.loads.hand_over(accepted, self.index) {
            begin_handed_over(&self.shared, refused);
        }
    }
}

fn begin_handed_over(shared: &Arc<WorkersState>, accepted: AcceptedConnection) {
    match accepted.socket.try_into() {
        Ok(stream) => begin(
            shared,
            stream,
            accepted.peer,
            accepted.address,
            accepted.slot,
        ),
        Err(error) => lost(shared, &accepted.address, &error),
    }
}

fn lost(shared: &WorkersState, address: &ListenAddress, error: &io::Error) {
    let message = format_args!("a connection to {address:?} cannot be served: {error}");
    error_log::emergency(&shared.configuration(), message);
}

fn begin(
    shared: &Arc<WorkersState>,
    stream: ClientStream,
    peer: Option<SocketAddr>,
    address: ListenAddress,
    slot: ConnectionSlot,
) {
    count(shared);
    let local = match (stream.local_address(), &address) {
        (Some(address), _) => LocalAddress::Ip(address),
        (None, ListenAddress::Tcp(address) | ListenAddress::Udp(address)) => {
            LocalAddress::Ip(*address)
        }
        (None, ListenAddress::Unix(path)) => LocalAddress::Unix(path.clone()),
    };
    let stream = Arc::new(stream);
    let registration =
        shared.register(Arc::downgrade(&stream) as Weak<dyn TrackedConnection>, slot);
    let facts = ConnectionFacts::new(peer, local, clock::now());
    let shared = shared.clone();
    transport::spawn(shared, stream, facts, address, registration);
}

/// A connection was accepted, and will be served.
fn count(shared: &WorkersState) {
    let stats = &shared.glance().live.stats;
    stats.accepted.fetch_add(1, Ordering::Relaxed);
    shared.end_long_pause();
    stats.handled.fetch_add(1, Ordering::Relaxed);
}

/// A connection that broke before it was accepted is nothing; running out of
/// descriptors needs a pause, or the thread would spin.
async fn pause(error: io::Error, failed: &impl Fn(io::Error), wait: &mut Duration) {
    if !matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
    ) {
        failed(error);
        tokio::time::sleep(*wait).await;
        *wait = (*wait * 2).min(ACCEPT_PAUSE_LAST);
    }
}

#[cfg(test)]
mod tests {
    use super::takes;

    #[test]
    fn each_socket_has_a_worker_and_each_worker_a_socket() {
        for workers in 1..6 {
            for count in 1..6 {
                let of =
                    |socket: usize| (0..9).filter(move |&it| takes(it, workers, socket, count));
                let mut taken: Vec<usize> = (0..count).flat_map(of).collect();
                assert!((0..count).all(|socket| of(socket).next().is_some()));
                assert_eq!(taken.len(), workers.max(count));
                taken.sort_unstable();
                taken.dedup();
                assert_eq!(taken, (0..workers).collect::<Vec<_>>());
            }
        }
    }
}
