//! How connections are shared among the workers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use testkit::running::RunningServer;

use crate::program;

/// What a process waits for: the descriptors of each of its epoll instances, as
/// `/proc` tells them. Workers have one each.
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

#[tokio::test]
async fn each_worker_has_as_many_connections_as_the_others() {
    let server = RunningServer::start(
        program(),
        "worker_processes 3;",
        "server { listen unix:%%/http; location / { return 200 ok; } }",
    )
    .await;
    let process = PathBuf::from(format!("/proc/{}", server.pid()));
    let before: BTreeSet<PathBuf> = open(&process).into_values().collect();
    let mut clients = Vec::new();
    for count in 1..=45 {
        let mut client = server.connect().await;
        client
            .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        assert_eq!(client.receive(false).await.unwrap().status, 200);
        clients.push(client);
        let now = open(&process);
        let is_client = |descriptor: &String| {
            now.get(descriptor).is_some_and(|target| {
                target.to_string_lossy().starts_with("socket:") && !before.contains(target)
            })
        };
        let mut shares: Vec<usize> = awaited(&process)
            .iter()
            .map(|of| of.iter().filter(|descriptor| is_client(descriptor)).count())
            .filter(|&share| share > 0)
            .collect();
        shares.sort_unstable();
        assert_eq!(shares.iter().sum::<usize>(), count, "{shares:?}");
        assert_eq!(shares.len(), count.min(3), "{shares:?}");
        let (least, most) = (shares[0], shares[shares.len() - 1]);
        assert!(most - least <= 1, "{shares:?} of {count}");
    }
}
