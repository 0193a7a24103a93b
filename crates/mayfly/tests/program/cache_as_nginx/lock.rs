//! One request for many: `*_cache_lock`, `_timeout`, `_age`.

use tokio::sync::Semaphore;

use super::*;

/// The origin numbers its answers at `path`; the first `held` of them wait for
/// gates of their own.
fn numbered(site: &Site, path: &str, held: usize) -> Vec<Arc<Semaphore>> {
    let gates: Vec<_> = (0..held).map(|_| Arc::new(Semaphore::new(0))).collect();
    let of_answers = gates.clone();
    let count = std::sync::atomic::AtomicUsize::new(0);
    site.put(path, move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let answer = OriginAnswer::status(200, FOR_HOURS);
        let answer = match of_answers.get(number) {
            Some(gate) => answer.wait_for(gate),
            None => answer,
        };
        answer.then(format!("answer {}", number + 1))
    });
    gates
}

#[tokio::test]
async fn one_after_the_other_and_all_at_once_ask_once() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_lock on;").await;
        numbered(&site, "/in_turn", 0);
        for _ in 0..5 {
            assert_eq!(site.get("/in_turn").await.text(), "answer 1");
        }
        assert_eq!(site.origin.requests(), 1);
        let gates = numbered(&site, "/at_once", 1);
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(site.begin("/at_once").await);
        }
        site.until_asked(2).await;
        gates[0].add_permits(1);
        for client in &mut clients {
            assert_eq!(response(client).await.text(), "answer 1", "{spelling:?}");
        }
        site.expect(&[("/at_once", "HIT", "answer 1")]).await;
        assert_eq!(site.origin.requests(), 2);
    }
}

#[tokio::test]
async fn who_waited_long_enough_asks_without_storing() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_lock on; *_cache_lock_timeout 20ms;").await;
        let gates = numbered(&site, "/t", 3);
        let mut first = site.begin("/t").await;
        site.until_asked(1).await;
        let mut others = [site.begin("/t").await, site.begin("/t").await];
        site.until_asked(3).await;
        gates[1].add_permits(1);
        gates[2].add_permits(1);
        let mut seen = Vec::new();
        for client in &mut others {
            seen.push(response(client).await.text());
        }
        seen.sort();
        assert_eq!(seen, ["answer 2", "answer 3"], "{spelling:?}");
        gates[0].add_permits(1);
        assert_eq!(response(&mut first).await.text(), "answer 1");
        site.expect(&[("/t", "HIT", "answer 1")]).await;
    }
}

#[tokio::test]
async fn without_a_lock_everybody_asks_and_the_last_is_stored() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_lock off;").await;
        let gates = numbered(&site, "/t", 3);
        let mut clients = Vec::new();
        for number in 1..=3 {
            clients.push(site.begin("/t").await);
            site.until_asked(number).await;
        }
        for (number, (client, gate)) in clients.iter_mut().zip(&gates).enumerate() {
            gate.add_permits(1);
            let text = response(client).await.text();
            assert_eq!(text, format!("answer {}", number + 1), "{spelling:?}");
        }
        site.expect(&[("/t", "HIT", "answer 3")]).await;
    }
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_not_waited_for() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_lock on; *_cache_lock_age 20ms;").await;
        let gates = numbered(&site, "/t", 1);
        let mut slow = site.begin("/t").await;
        site.until_asked(1).await;
        assert_eq!(site.get("/t").await.text(), "answer 2", "{spelling:?}");
        site.expect(&[("/t", "HIT", "answer 2")]).await;
        gates[0].add_permits(1);
        assert_eq!(response(&mut slow).await.text(), "answer 1");
        // It was asked for earlier than what is stored.
        site.expect(&[("/t", "HIT", "answer 2")]).await;
    }
}

#[tokio::test]
async fn a_part_of_a_page_does_not_wait_for_the_lock_of_another() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "",
            "location / { PASS; *_cache zone; *_cache_key $uri;\n\
             *_cache_lock on; *_cache_lock_timeout 20ms; }\n\
             location = /ssi.html { ssi on; root %%; }",
        )
        .await;
        let parts = "<!--#include virtual=\"/active\" --> <!--#include virtual=\"/locked\" --> end";
        std::fs::write(site.server.path("ssi.html"), parts).expect("a file");
        site.page("/active", FOR_HOURS, "active");
        let gates = numbered(&site, "/locked", 1);
        let mut other = site.begin("/locked").await;
        site.until_asked(1).await;
        assert_eq!(
            site.get("/ssi.html").await.text(),
            "active answer 2 end",
            "{spelling:?}"
        );
        gates[0].add_permits(1);
        assert_eq!(response(&mut other).await.text(), "answer 1");
    }
}
