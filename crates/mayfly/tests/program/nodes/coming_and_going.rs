//! Nodes whose program is replaced or that come back with pages on disk, and owners behind an outer layer: a purge
//! that returned at another node holds on them as well.

use testkit::process::{Signal, is_alive};
use testkit::running::RunningServer;

use super::{Cluster, number, until_hit, until_numbers};
use crate::upgrade::ReplacedServer;
use crate::{program, start};

/// Purges at the first server; the next page of the other one is younger.
async fn purge_and_compare(cluster: &Cluster, other: &RunningServer) {
    let old = number(&other.target().get("/warm").await);
    let purged = cluster.purge(0).await;
    assert_eq!(purged.status, 200, "{}", purged.text());
    let page = other.target().get("/warm").await;
    assert_eq!(page.status, 200);
    assert!(number(&page) > old, "a page from before the purge");
}

#[tokio::test]
async fn purges_hold_while_the_program_of_another_node_is_replaced() {
    let cluster = Cluster::start(1).await;
    let node = ReplacedServer::start("", &cluster.http).await;
    until_hit(&node.server, "/untagged").await;
    // It has no tag that is purged.
    let made = number(&node.server.target().get("/untagged").await);
    for _ in 0..3 {
        let old = node.pid();
        let upgrade = node.begin_upgrade();
        let mut purges = 0;
        while !upgrade.is_finished() || is_alive(old) {
            purge_and_compare(&cluster, &node.server).await;
            purges += 1;
        }
        let output = upgrade.await.expect("a thread");
        assert!(output.status.success(), "{output:?}");
        assert_ne!(node.pid(), old);
        // On a busy machine it may be renewed too late, and nothing stored is shown without it.
        until_numbers(&node.server, &[("lease_held", Some(1.0))]).await;
        let kept = node.server.target().get("/untagged").await;
        assert_eq!((number(&kept), kept.x_cache()), (made, "HIT"), "{kept:?}");
        assert!(purges > 0, "none while it was replaced");
        purge_and_compare(&cluster, &node.server).await;
    }
}

#[tokio::test]
async fn a_node_that_comes_back_with_its_pages_on_disk_uses_those_that_no_other_node_has_purged() {
    let mut cluster = Cluster::start(2).await;
    let kept = number(&cluster.get(1, "/kept").await);
    let purged = number(&cluster.get(1, "/purged").await);
    cluster.until_hit(1, "/kept").await;
    cluster.until_hit(1, "/purged").await;
    // A stop writes pages that memory alone has to the disk.
    cluster.servers[1].signal(Signal::QUIT);
    cluster.servers[1].ended().await;
    let answer = cluster.at(0).ask("PURGE", "/purged", "", "").await;
    assert_eq!(answer.status, 404, "this node has not got it");
    cluster.servers[1].start_again(program()).await;
    cluster.until_numbers(1, &[("lease_held", Some(1.0))]).await;
    let page = cluster.get(1, "/purged").await;
    assert!(number(&page) > purged, "{page:?}");
    let page = cluster.get(1, "/kept").await;
    assert_eq!((number(&page), page.x_cache()), (kept, "HIT"), "{page:?}");
}

#[tokio::test]
async fn an_outer_layer_leads_each_page_to_its_owner_and_shows_nothing_that_was_purged() {
    let cluster = Cluster::start(3).await;
    let owners: String = (cluster.servers.iter())
        .map(|owner| format!("server unix:{};\n", owner.path("http").display()))
        .collect();
    let outer = start(&format!(
        "upstream owners {{\nhash $host$request_uri consistent;\n{owners}keepalive 8;\n}}\n\
         server {{\nlisten unix:%%/http;\nlocation / {{ proxy_pass http://owners; proxy_set_header Host $host; }}\n}}"
    ))
    .await;
    let paths: Vec<String> = (0..20).map(|page| format!("/page/{page}")).collect();
    for from in 0..3 {
        let mut made = Vec::new();
        for path in &paths {
            let page = outer.target().get(path).await;
            assert_eq!(page.x_cache(), "MISS", "{path}");
            let again = outer.target().get(path).await;
            assert_eq!(again.x_cache(), "HIT", "{path} has one owner");
            made.push(number(&page));
        }
        assert_eq!(cluster.purge(from).await.status, 200);
        for (path, made) in paths.iter().zip(made) {
            let page = outer.target().get(path).await;
            assert!(number(&page) > made, "{path}");
        }
        assert_eq!(cluster.get(from, "/edit").await.status, 200);
    }
    // Each owner has a part of them.
    for owner in 0..3 {
        let mut hits = 0;
        for path in &paths {
            outer.target().get(path).await;
            let page = cluster.get(owner, path).await;
            hits += usize::from(page.x_cache() == "HIT");
        }
        assert!(hits > 0 && hits < paths.len(), "{hits} at owner {owner}");
    }
}
