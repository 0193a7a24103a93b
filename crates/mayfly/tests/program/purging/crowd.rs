//! After a purge: the answers to a crowd, and the work of the application.
//!
//! `MAYFLY_PAGES` and `MAYFLY_READERS` ask for more pages and readers than the test takes otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use tokio::sync::Barrier;

use crate::start;

const WORKERS: usize = 4;

fn from_environment(name: &str, otherwise: usize) -> usize {
    let given = std::env::var(name).ok();
    given
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

/// The pages that PHP has made, in their order.
type MadePages = Arc<Mutex<Vec<String>>>;

/// PHP with four workers, and the pages that it makes.
async fn site(location: &str) -> (MadePages, FakePhp, RunningServer) {
    let made = MadePages::default();
    let noted = made.clone();
    let php = FakePhp::tcp(move |request| {
        let path = request.param("REQUEST_URI").to_owned();
        noted.lock().push(path.clone());
        Script::page("X-Accel-Expires: 3600\r\nSurrogate-Key: every\r\n", path)
    })
    .await;
    let server = start(&format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=32m;\n\
         upstream php {{ server {} max_conns={WORKERS}; queue 2000 timeout=60s; }}\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
         location / {{ fastcgi_pass php; fastcgi_param REQUEST_URI $request_uri;\n\
         fastcgi_cache zone; fastcgi_cache_key $uri;\n\
         add_header X-Cache $upstream_cache_status always; {location} }}\n\
         location = /purge {{ cache_purge_api; }} }}",
        php.address()
    ))
    .await;
    (made, php, server)
}

/// The answers that a crowd has got.
struct CrowdResult {
    /// The number of answers with each cache status.
    said: HashMap<String, usize>,
    /// The pages that were made again, in their order.
    made: Vec<String>,
    most_at_once: usize,
}

/// Stores all pages, purges them with `json`, and lets a crowd ask for all of them at the same time.
async fn crowd_after(json: &str, location: &str) -> CrowdResult {
    let (made, php, server) = site(location).await;
    let pages = from_environment("MAYFLY_PAGES", 60);
    let readers = from_environment("MAYFLY_READERS", 40);
    let target = server.target();
    for page in 0..pages {
        target.get(&format!("/{page}")).await;
    }
    assert_eq!(php.requests(), pages);
    made.lock().clear();
    assert_eq!(super::ask(&target, json).await.status, 200);
    let begin = Arc::new(Barrier::new(readers));
    let server = Arc::new(server);
    let crowd: Vec<_> = (0..readers)
        .map(|reader| {
            let (begin, server) = (begin.clone(), server.clone());
            tokio::spawn(async move {
                let mut client = server.connect().await;
                begin.wait().await;
                let mut said = Vec::new();
                for number in 0..pages {
                    let page = (number + reader) % pages;
                    client
                        .send(format!("GET /{page} HTTP/1.1\r\nHost: site.test\r\n\r\n"))
                        .await;
                    let reply = client.receive(false).await.expect("an answer");
                    assert_eq!((reply.status, reply.text()), (200, format!("/{page}")));
                    said.push(reply.x_cache().to_owned());
                }
                said
            })
        })
        .collect();
    let mut said: HashMap<String, usize> = HashMap::new();
    for reader in crowd {
        for word in reader.await.expect("no error") {
            *said.entry(word).or_default() += 1;
        }
    }
    // Refreshes go on when the crowd has gone.
    let begun = std::time::Instant::now();
    while made.lock().len() < pages {
        assert!(
            begun.elapsed() < testkit::wait::TIMEOUT,
            "all pages are made again"
        );
        for page in 0..pages {
            target.get(&format!("/{page}")).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let made = made.lock().clone();
    CrowdResult {
        said,
        made,
        most_at_once: php.most_at_once(),
    }
}

fn assert_each_once(made: &[String]) {
    let mut each: Vec<&String> = made.iter().collect();
    each.sort();
    each.dedup();
    assert_eq!(each.len(), made.len(), "{made:?}");
}

#[tokio::test]
async fn each_page_is_made_once_for_all_who_ask_after_a_purge() {
    for location in ["", "cache_refill on;"] {
        let met = crowd_after("{\"tags\":[\"every\"]}", location).await;
        assert_each_once(&met.made);
        assert!(met.said.contains_key("MISS"), "{:?}", met.said);
        assert!(met.most_at_once <= WORKERS, "{} at once", met.most_at_once);
    }
}

#[tokio::test]
async fn nobody_waits_after_a_soft_purge() {
    for location in ["", "cache_refill on;"] {
        let met = crowd_after("{\"tags\":[\"every\"],\"soft\":true}", location).await;
        assert_each_once(&met.made);
        let has_waited = |word: &&String| !["HIT", "STALE", "UPDATING"].contains(&word.as_str());
        let said = &met.said;
        assert_eq!(said.keys().find(has_waited), None, "{said:?}");
        assert!(met.most_at_once <= WORKERS, "{} at once", met.most_at_once);
    }
}

/// A second after they were stored, every fourth page is asked for again. These are made again first,
/// though no visitor asks after the purge.
#[tokio::test]
async fn the_most_wanted_pages_are_made_again_first() {
    let (made, php, server) = site("cache_refill on;").await;
    let pages = from_environment("MAYFLY_PAGES", 60);
    let target = server.target();
    for page in 0..pages {
        target.get(&format!("/{page}")).await;
    }
    // Uses count by the second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let wanted: Vec<String> = (0..pages)
        .step_by(4)
        .map(|page| format!("/{page}"))
        .collect();
    for page in &wanted {
        assert_eq!(target.get(page).await.x_cache(), "HIT");
    }
    made.lock().clear();
    let reply = super::ask(&target, "{\"tags\":[\"every\"]}").await;
    assert_eq!(reply.status, 200);
    testkit::wait::until("all pages are made again", || made.lock().len() >= pages).await;
    let made = made.lock().clone();
    assert_each_once(&made);
    // Pages that are asked for at the same time may change places.
    let first = &made[..wanted.len() + WORKERS];
    for page in &wanted {
        assert!(first.contains(page), "{page} is not among {first:?}");
    }
    let most = php.most_at_once();
    assert!(
        most < WORKERS,
        "a worker is left to visitors: {most} at once"
    );
}
