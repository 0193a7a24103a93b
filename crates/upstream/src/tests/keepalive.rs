//! Idle connections over real unix sockets, between runtimes.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{Class, Connection, Endpoint, Group, GroupSpec, Keepalive, Millis, PickKey, TriedSet};

/// A server that answers each byte with the number of its connection, and
/// closes the connection on an `x`. Its socket is removed in the end.
struct Numbering {
    directory: std::path::PathBuf,
}

impl Numbering {
    fn start(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("upstream-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let listener = UnixListener::bind(directory.join("socket")).unwrap();
        std::thread::spawn(move || {
            for (number, stream) in (0u8..).zip(listener.incoming()) {
                let stream = stream.unwrap();
                std::thread::spawn(move || serve_numbered(stream, number));
            }
        });
        Self { directory }
    }

    fn group(&self, keepalive: Option<Keepalive>) -> Arc<Group> {
        let endpoint = Endpoint::Unix(self.directory.join("socket"));
        Group::new(GroupSpec {
            keepalive,
            ..GroupSpec::single("u", endpoint)
        })
        .unwrap()
    }
}

fn serve_numbered(mut stream: UnixStream, number: u8) {
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() {
        stream.write_all(&[number]).unwrap();
        if byte == *b"x" {
            break;
        }
    }
}

impl Drop for Numbering {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

async fn send(connection: &mut Connection, byte: u8) -> u8 {
    connection.stream.write_all(&[byte]).await.unwrap();
    connection.stream.read_u8().await.unwrap()
}

/// One request in a thread and runtime of its own; the number of the connection it had.
fn request(group: &Arc<Group>, byte: u8, now: Millis) -> u8 {
    request_from(0, group, byte, now)
}

fn request_from(location: u64, group: &Arc<Group>, byte: u8, now: Millis) -> u8 {
    let key = PickKey {
        location,
        ..PickKey::default()
    };
    let serve = async {
        let tried = TriedSet::new();
        let mut lease = group
            .acquire(key, &tried, Class::Visitor, now)
            .await
            .unwrap();
        let mut connection = lease.connect(Duration::from_secs(5), now).await.unwrap();
        let number = send(&mut connection, byte).await;
        if byte == b'x' {
            // The close must have arrived before the connection is looked at.
            assert_eq!(connection.stream.read(&mut [0]).await.unwrap(), 0);
        }
        lease.keep(connection, now);
        number
    };
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(serve)
        });
        worker.join().unwrap()
    })
}

#[test]
fn a_connection_moves_between_the_runtimes_of_two_threads() {
    let server = Numbering::start("move");
    let group = server.group(Some(Keepalive::new(4)));
    for turn in 0..4 {
        let other = Arc::clone(&group);
        let number = std::thread::spawn(move || request(&other, b'a', turn))
            .join()
            .unwrap();
        assert_eq!(number, 0, "turn {turn}");
    }
    assert_eq!(group.snapshot(0)[0].idle, 1);
}

/// upstream_keepalive.t: three requests a connection, two seconds idle.
#[test]
fn requests_idle_time_and_age_end_a_connection() {
    let limits = Keepalive {
        requests: 3,
        timeout: Duration::from_secs(2),
        ..Keepalive::new(1)
    };
    let server = Numbering::start("requests");
    let group = server.group(Some(limits));
    let numbers = [0, 1, 2, 3, 4].map(|now| request(&group, b'a', now));
    assert_eq!(numbers, [0, 0, 0, 1, 1]);
    assert_eq!(request(&group, b'a', 2_003), 1, "just in time");
    assert_eq!(request(&group, b'a', 2_004), 2, "three requests again");
    assert_eq!(request(&group, b'a', 4_004), 3, "idle for two seconds");

    let limits = Keepalive {
        time: Duration::from_secs(2),
        ..Keepalive::new(1)
    };
    let server = Numbering::start("time");
    let group = server.group(Some(limits));
    let numbers = [0, 2_500, 2_501].map(|now| request(&group, b'a', now));
    assert_eq!(numbers, [0, 0, 1], "the request after the age is the last");
}

#[test]
fn a_connection_that_the_server_closed_is_not_used() {
    let server = Numbering::start("closed");
    let group = server.group(Some(Keepalive::new(4)));
    assert_eq!(request(&group, b'x', 0), 0);
    assert_eq!(group.snapshot(0)[0].idle, 1);
    assert_eq!(request(&group, b'a', 1), 1);
}

#[test]
fn without_keepalive_nothing_is_kept() {
    let server = Numbering::start("none");
    let group = server.group(None);
    assert_eq!([0, 1].map(|now| request(&group, b'a', now)), [0, 1]);
    assert_eq!(group.snapshot(0)[0].idle, 0);
}

#[test]
fn a_lease_that_needs_no_connection_gives_the_idle_one_back() {
    let server = Numbering::start("back");
    let group = server.group(Some(Keepalive::new(4)));
    request(&group, b'a', 0);
    let lease = super::try_now(&group).unwrap();
    assert_eq!(group.snapshot(0)[0].idle, 0, "with the lease");
    drop(lease);
    assert_eq!(group.snapshot(0)[0].idle, 1);
    assert_eq!(request(&group, b'a', 1), 0);
}

#[test]
fn a_lowered_limit_closes_idle_connections_that_occupy_workers() {
    let server = Numbering::start("lowered");
    let group = server.group(Some(Keepalive {
        idle_counts: true,
        ..Keepalive::new(4)
    }));
    group.set_max_conns(0, Some(1));
    request(&group, b'a', 0);
    group.set_max_conns(0, Some(0));
    assert_eq!(group.snapshot(0)[0].idle, 0);
}

#[test]
fn local_connections_stay_with_the_location_that_made_them() {
    let server = Numbering::start("local");
    for (local, expected) in [(false, [0, 0, 0, 0]), (true, [1, 2, 1, 2])] {
        let group = server.group(Some(Keepalive {
            local,
            ..Keepalive::new(4)
        }));
        let locations = [7, 8, 7, 8];
        let numbers = locations.map(|location| request_from(location, &group, b'a', 0));
        assert_eq!(numbers, expected, "local: {local}");
    }
}
