//! The promises of the group with real threads, each with its own runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{group, in_flight};
use crate::{Class, Outcome, PickKey, TriedSet};

const THREADS: usize = 4;
const TASKS: usize = 16;
const REQUESTS: usize = 100;
const LIMITS: [usize; 2] = [2, 3];

/// Sixty-four clients on four threads share five slots; every third request
/// is cancelled, some of them with a lease on its way. If a wake-up were lost,
/// a client would wait out the minute and the test fail.
#[test]
fn no_bound_is_passed_and_no_wake_up_lost_between_threads() {
    let group = group(&LIMITS, THREADS * TASKS);
    let gauges: Arc<[AtomicUsize; 2]> = Arc::default();
    let client = |number: usize| {
        let (group, gauges) = (Arc::clone(&group), Arc::clone(&gauges));
        async move {
            for request in number..number + REQUESTS {
                let tried = TriedSet::new();
                let acquiring = group.acquire(PickKey::default(), &tried, Class::Visitor, 0);
                let lease = if request % 3 == 0 {
                    tokio::select! {
                        lease = acquiring => lease.unwrap(),
                        () = pause(request % 5) => continue,
                    }
                } else {
                    acquiring.await.unwrap()
                };
                let gauge = &gauges[lease.server()];
                let now_here = gauge.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(now_here <= LIMITS[lease.server()], "{now_here} at once");
                pause(request % 4).await;
                gauge.fetch_sub(1, Ordering::SeqCst);
                lease.report(Outcome::Success, 0);
            }
        }
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let clients: Vec<_> = (0..TASKS)
                .map(|task| client(thread * TASKS + task))
                .collect();
            std::thread::spawn(move || run(clients))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(in_flight(&group), 0);
    assert_eq!(group.queue_length(), 0);
}

fn run(clients: Vec<impl Future<Output = ()> + Send + 'static>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let clients: Vec<_> = clients.into_iter().map(tokio::spawn).collect();
        let all = async {
            for client in clients {
                client.await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(50), all)
            .await
            .expect("a client was forgotten");
    });
}

async fn pause(turns: usize) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}
