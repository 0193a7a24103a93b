//! Wake-ups with a real runtime and threads: none is lost, and one fetch serves all.

use super::*;

/// The wake-ups themselves, with a real runtime: a thousand sleepers and one leader.
#[tokio::test]
async fn a_thousand_followers_are_woken_by_one_leader() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let mut follower = client.follow();
            tokio::spawn(async move {
                let mut reader = match follower.wait(&Vec::<Field>::new()).await {
                    FollowerOutcome::Streaming(reader) => reader,
                    FollowerOutcome::Complete(response) => return response.body.len(),
                    other => panic!("{other:?}"),
                };
                let mut len = 0;
                while let Some(bytes) = reader.next_chunk().await.expect("whole") {
                    len += bytes.len() as u64;
                }
                len
            })
        })
        .collect();
    tokio::task::yield_now().await;
    let mut filling = publish(leader, SECOND, &[], Some(100));
    for _ in 0..10 {
        filling.push(part("0123456789"), T0);
        tokio::task::yield_now().await;
    }
    filling.complete(T0).expect("stored");
    for task in tasks {
        assert_eq!(task.await.expect("no panic"), 100);
    }
}

/// The length of the body a follower is given, whole or while it arrives.
async fn followed_len(client: &Client<'_>, mut follower: Follower) -> u64 {
    let mut reader = match follower.wait(&client.fields).await {
        FollowerOutcome::Complete(response) => return response.body.len(),
        FollowerOutcome::Streaming(reader) => reader,
        other => panic!("{other:?}"),
    };
    let mut len = 0;
    while let Ok(Some(bytes)) = reader.next_chunk().await {
        len += bytes.len() as u64;
    }
    len
}

/// Leads or follows to the end. True: it led, and so has fetched.
fn fetch_or_follow(client: &Client<'_>, runtime: &tokio::runtime::Runtime) -> bool {
    match client.join() {
        Join::Lead(leader) => {
            let mut filling = publish(leader, SECOND, &[], None);
            filling.push(part("body"), T0);
            filling.complete(T0).expect("stored");
            true
        }
        Join::Follow(follower) => {
            // Only a lost wake-up would ever take so long.
            let bound = Duration::from_secs(20);
            let len = runtime.block_on(async {
                tokio::time::timeout(bound, followed_len(client, follower)).await
            });
            assert_eq!(len, Ok(4));
            false
        }
        Join::Fresh(_) => false,
        other @ (Join::Alone(_) | Join::After(_) | Join::Pending) => panic!("{other:?}"),
    }
}

/// Threads meet at a barrier for each key and ask at once: one of them fetches, whichever way the
/// lookup, the collapse and the ending of the flight interleave.
#[test]
fn threads_that_ask_at_once_cause_one_fetch() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let (threads, rounds) = (3, 2000);
    let zone = zone();
    let barrier = std::sync::Barrier::new(threads);
    let fetches: Vec<AtomicUsize> = (0..rounds).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build();
                let runtime = runtime.expect("a runtime");
                for (round, fetches) in fetches.iter().enumerate() {
                    let client = Client {
                        key: key(&format!("/{round}")),
                        ..Client::new(&zone, &[])
                    };
                    barrier.wait();
                    let has_fetched = fetch_or_follow(&client, &runtime);
                    fetches.fetch_add(usize::from(has_fetched), SeqCst);
                }
            });
        }
    });
    for (round, fetches) in fetches.iter().enumerate() {
        assert_eq!(fetches.load(SeqCst), 1, "round {round}");
    }
}
