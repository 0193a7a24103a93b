//! How connections are shared among the workers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use testkit::client::Client;
use testkit::process::Signal;
use testkit::running::RunningServer;
use testkit::wait::until_or;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::program;

/// Returns the descriptors that a process waits for, of each of its epoll
/// instances, from `/proc`. Workers have one each.
fn awaited(process: &Path) -> BTreeSet<Vec<String>> {
    let descriptors = std::fs::read_dir(process.join("fd")).unwrap();
    let polls = descriptors.filter_map(|entry| {
        let entry = entry.ok()?;
        let target = std::fs::read_link(entry.path()).ok()?;
        (target == Path::new("anon_inode:[eventpoll]")).then(|| entry.file_name())
    });
    let lines_of = |descriptor| {
        let text = std::fs::read_to_string(process.join("fdinfo").join(descriptor)).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("tfd:"));
        let mut of: Vec<String> = lines
            .filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned))
            .collect();
        of.sort();
        of
    };
    // A descriptor and its duplicates wait for the same.
    polls.map(lines_of).collect()
}

/// The inodes of all sockets of a process, by descriptor.
fn open(process: &Path) -> BTreeMap<String, PathBuf> {
    let descriptors = std::fs::read_dir(process.join("fd")).unwrap();
    let open = descriptors.filter_map(|entry| {
        let entry = entry.ok()?;
        let target = std::fs::read_link(entry.path()).ok()?;
        Some((entry.file_name().into_string().ok()?, target))
    });
    open.collect()
}

/// A server, its open files before its clients came, and its clients.
struct Scene {
    server: RunningServer,
    before: BTreeSet<PathBuf>,
    clients: Vec<Client>,
    reloads: usize,
}

impl Scene {
    async fn start(workers: usize, listen: &str) -> Scene {
        let main = format!("worker_processes {workers};");
        let server = RunningServer::start(program(), &main, &http(listen)).await;
        let process = PathBuf::from(format!("/proc/{}", server.pid()));
        Scene {
            before: open(&process).into_values().collect(),
            server,
            clients: Vec::new(),
            reloads: 0,
        }
    }

    /// A client whose first request is answered, so that it has its worker.
    async fn connect(&mut self) {
        let mut client = self.server.connect().await;
        ask(&mut client).await;
        self.clients.push(client);
    }

    async fn reload(&mut self, workers: usize, listen: &str) {
        let main = format!("worker_processes {workers};");
        self.server.rewrite(&main, &http(listen));
        self.server.signal(Signal::HUP);
        self.reloads += 1;
        let server = &self.server;
        let is_so = || server.error_log().matches("reloaded").count() == self.reloads;
        until_or(is_so, || server.error_log()).await;
    }

    /// How many connections each worker has that has some, the fewest first.
    fn shares(&self) -> Vec<usize> {
        let process = PathBuf::from(format!("/proc/{}", self.server.pid()));
        let now = open(&process);
        let is_client = |descriptor: &String| {
            now.get(descriptor).is_some_and(|target| {
                target.to_string_lossy().starts_with("socket:") && !self.before.contains(target)
            })
        };
        let mut shares: Vec<usize> = awaited(&process)
            .iter()
            .map(|of| of.iter().filter(|descriptor| is_client(descriptor)).count())
            .filter(|&share| share > 0)
            .collect();
        shares.sort_unstable();
        shares
    }
}

fn http(listen: &str) -> String {
    format!("server {{ listen unix:%%/http; {listen} location / {{ return 200 ok; }} }}")
}

async fn ask(client: &mut Client) {
    client
        .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    assert_eq!(client.receive(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn each_worker_has_as_many_connections_as_the_others() {
    let mut scene = Scene::start(3, "").await;
    for count in 1..=45 {
        scene.connect().await;
        let shares = scene.shares();
        assert_eq!(shares.iter().sum::<usize>(), count, "{shares:?}");
        assert_eq!(shares.len(), count.min(3), "{shares:?}");
        let (least, most) = (shares[0], shares[shares.len() - 1]);
        assert!(most - least <= 1, "{shares:?} of {count}");
    }
}

#[tokio::test]
async fn a_reload_changes_how_many_workers_take_connections() {
    let mut scene = Scene::start(3, "").await;
    for _ in 0..3 {
        scene.connect().await;
    }
    assert_eq!(scene.shares(), [1, 1, 1]);
    scene.reload(1, "").await;
    for _ in 0..6 {
        scene.connect().await;
    }
    assert_eq!(scene.shares(), [1, 1, 7]);
    scene.reload(4, "").await;
    for _ in 0..3 {
        scene.connect().await;
    }
    assert_eq!(scene.shares(), [1, 2, 2, 7]);
    // The connections that were there before have stayed with their workers.
    for client in &mut scene.clients {
        ask(client).await;
    }
    assert!(!scene.server.error_log().contains("takes effect"));
}

#[tokio::test]
async fn connections_wait_in_no_socket_without_a_worker() {
    let port = testkit::process::free_port();
    let listen = format!("listen 127.0.0.1:{port} reuseport;");
    let mut scene = Scene::start(4, &listen).await;
    for workers in [1, 3, 5] {
        scene.reload(workers, &listen).await;
        // The kernel spreads them over the sockets, of which there are four.
        for _ in 0..24 {
            let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let request = b"GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
            client.write_all(request).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("ok"), "{answer}");
        }
    }
}
