//! Every request that asks the cache is counted once, whatever becomes of it.

use std::sync::Arc;

use http_cache::{Stats, Zone};
use site::{Content, Pass};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use transport::client::ClientSide;

use crate::content::pass::ask::ask;
use crate::content::pass::{PassDecision, decide};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;
use crate::test_site::TestSite;

/// A server whose one location is passed on to an upstream of the test's own.
struct Site {
    made: TestSite,
    /// One permit for each response that the upstream may still send.
    permits: Arc<Semaphore>,
    /// One permit for each request that has reached the upstream.
    arrived: Arc<Semaphore>,
}

impl Site {
    async fn with_fields(fields: &'static str) -> Site {
        let (permits, arrived) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let address = upstream(fields, permits.clone(), arrived.clone()).await;
        let http = format!(
            "proxy_cache_path zone keys_zone=pages:1m; access_log off;
             server {{ listen 127.0.0.1:8080; location / {{
             proxy_pass http://{address}; proxy_cache pages; proxy_cache_valid 200 1s;
             proxy_cache_lock on; proxy_cache_use_stale updating;
             proxy_cache_background_update on; proxy_cache_bypass $arg_bypass; }} }}"
        );
        Site {
            made: TestSite::new(tempfile::tempdir().unwrap(), &http),
            permits,
            arrived,
        }
    }

    fn zone(&self) -> &Arc<Zone> {
        &self.made.configuration.live.zones[0]
    }

    /// Hits, stale hits, misses.
    fn counts(&self) -> [u64; 3] {
        let Stats {
            hits,
            stale_hits,
            misses,
            ..
        } = self.zone().stats();
        [hits, stale_hits, misses]
    }

    /// A request for `target` that comes `later` milliseconds from now.
    fn request(&self, target: &str, later: u64) -> Box<Request> {
        let line = format!("GET {target}");
        self.made.request(&line, "", clock::now() + later)
    }

    /// Serves a request to its end, in a task of its own.
    fn begin(&self, request: Box<Request>) -> tokio::task::JoinHandle<Box<Request>> {
        tokio::spawn(serve_whole(self.made.configuration.clone(), request))
    }

    async fn serve(&self, request: Box<Request>) -> Box<Request> {
        serve_whole(self.made.configuration.clone(), request).await
    }
}

async fn serve_whole(
    configuration: Arc<ActiveConfiguration>,
    mut request: Box<Request>,
) -> Box<Request> {
    let settings = request.settings_held();
    let Content::Pass(pass) = &settings.content else {
        panic!("the location has no upstream");
    };
    let pass: &Arc<Pass> = pass;
    let handled = match decide(&mut request, &configuration, pass) {
        PassDecision::Handled(handled) => handled,
        PassDecision::UpstreamNeeded(plan) => {
            let mut client = ClientSide::none();
            ask(&mut request, pass, plan, &mut client).await
        }
        PassDecision::PurgeNeeded(_) => panic!("nothing is to be purged"),
    };
    let StageEnd::Reply(reply) = handled else {
        panic!("no reply");
    };
    assert_eq!(reply.head.status, 200);
    let mut body = reply.body.into_arriving();
    while body.next(&request).await.unwrap().is_some() {}
    request
}

/// An upstream that answers each request once it has a permit.
async fn upstream(
    fields: &'static str,
    permits: Arc<Semaphore>,
    arrived: Arc<Semaphore>,
) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            arrived.add_permits(1);
            permits.acquire().await.unwrap().forget();
            let response = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nhi");
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn leader_follower_hit_and_stale_page_are_counted_once_each() {
    let site = Site::with_fields("").await;
    let leader = site.begin(site.request("/", 0));
    site.arrived.acquire().await.unwrap().forget();
    assert_eq!(site.counts(), [0, 0, 1], "the leader");
    let follower = site.begin(site.request("/", 0));
    while site.counts() != [0, 0, 2] {
        tokio::task::yield_now().await;
    }
    site.permits.add_permits(1);
    let (leader, follower) = (leader.await.unwrap(), follower.await.unwrap());
    let is_collapsed = |request: &Request| {
        request
            .cache
            .read(|notes| notes.outcome.as_ref().unwrap().collapsed)
    };
    assert_eq!(
        [is_collapsed(&leader), is_collapsed(&follower)],
        [false, true]
    );
    assert_eq!(site.counts(), [0, 0, 2], "leader and follower");

    site.serve(site.request("/", 0)).await;
    assert_eq!(site.counts(), [1, 0, 2], "a hit");

    let mut stale = site.serve(site.request("/", 2_000)).await;
    assert_eq!(site.counts(), [1, 1, 2], "a stale page that is refreshed");
    site.permits.add_permits(1);
    let refresh = stale
        .values
        .get_mut()
        .later
        .refresh
        .take()
        .expect("a refresh");
    refresh.await.unwrap();
    assert_eq!(site.zone().stats().stored, 2);
    assert_eq!(site.counts(), [1, 1, 2], "the refresh itself asks nothing");
}

#[tokio::test]
async fn a_bypass_is_no_lookup_and_a_private_page_is_one() {
    let site = Site::with_fields("Cache-Control: private\r\n").await;
    site.permits.add_permits(4);
    site.serve(site.request("/?bypass=1", 0)).await;
    assert_eq!(site.counts(), [0, 0, 0], "a bypass");
    site.serve(site.request("/", 0)).await;
    assert_eq!(site.counts(), [0, 0, 1], "a page that may not be stored");
    site.serve(site.request("/", 0)).await;
    assert_eq!(site.counts(), [0, 0, 2], "the same, while that is known");
}
