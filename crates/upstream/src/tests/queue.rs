//! Waiting in line: order, deadline, length, going away.

use std::sync::Arc;
use std::time::Duration;

use fair_queue::{AssetMarks, Clients, CrawlerName, NameEvidence, Turn, Visit};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{group, group_with_turns, in_flight, try_now};
use crate::{AcquireError, Admission, Class, Group, Lease, Outcome, PickKey, SpecError, TriedSet};

type AcquireTask = JoinHandle<Result<Lease, AcquireError>>;

/// Starts an acquire in a task and lets it run until it waits.
async fn join(group: &Arc<Group>) -> AcquireTask {
    join_having_tried(group, TriedSet::new()).await
}

async fn join_having_tried(group: &Arc<Group>, tried: TriedSet) -> AcquireTask {
    let group = Arc::clone(group);
    let waiting = tokio::spawn(async move {
        group
            .acquire(PickKey::default(), &tried, Class::Visitor, 0)
            .await
    });
    tokio::task::yield_now().await;
    waiting
}

#[tokio::test(start_paused = true)]
async fn a_freed_slot_goes_to_the_first_in_line() {
    let group = group(&[1], 8);
    let mut holder = try_now(&group).unwrap();
    let line = [join(&group).await, join(&group).await, join(&group).await];
    assert_eq!(group.queue_length(), 3);
    for (index, waiting) in line.into_iter().enumerate() {
        holder.report(Outcome::Success, 0);
        assert_eq!(group.queue_length(), 2 - index);
        assert!(
            try_now(&group).is_err(),
            "the slot is never free in between"
        );
        holder = waiting.await.unwrap().unwrap();
    }
    drop(holder);
    assert_eq!(in_flight(&group), 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_line_refuses_and_the_deadline_ends_the_wait() {
    let group = group(&[1], 1);
    let holder = try_now(&group).unwrap();
    let began = Instant::now();
    let waiting = join(&group).await;
    let refused = join(&group).await.await.unwrap();
    assert_eq!(refused.unwrap_err(), AcquireError::QueueFull);
    let timed_out = waiting.await.unwrap();
    assert_eq!(timed_out.unwrap_err(), AcquireError::QueueTimeout);
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    assert_eq!(group.queue_length(), 0);
    drop(holder);
    assert!(try_now(&group).is_ok());
}

/// The waiter is woken with a lease in its hands, and goes away before it runs.
#[tokio::test(start_paused = true)]
async fn a_slot_handed_to_a_waiter_that_left_goes_to_the_next() {
    let group = group(&[1], 8);
    let holder = try_now(&group).unwrap();
    let leaving = join(&group).await;
    let staying = join(&group).await;
    drop(holder);
    leaving.abort();
    let lease = staying.await.unwrap().unwrap();
    assert_eq!(in_flight(&group), 1);
    drop(lease);
    assert_eq!(in_flight(&group), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_goes_away_leaves_its_place() {
    let group = group(&[1], 8);
    let holder = try_now(&group).unwrap();
    let leaving = join(&group).await;
    let staying = join(&group).await;
    leaving.abort();
    assert!(leaving.await.is_err());
    assert_eq!(group.queue_length(), 1);
    drop(holder);
    assert!(staying.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_one_server_does_not_keep_others_from_another() {
    let group = group(&[1, 1], 8);
    let first = try_now(&group).unwrap();
    let second = try_now(&group).unwrap();
    let mut tried = TriedSet::new();
    tried.insert(second.server());
    let picky = join_having_tried(&group, tried).await;
    let any = join(&group).await;
    drop(second);
    assert_eq!(any.await.unwrap().unwrap().server(), 1);
    assert!(!picky.is_finished());
    drop(first);
    assert_eq!(picky.await.unwrap().unwrap().server(), 0);
}

#[tokio::test(start_paused = true)]
async fn raising_the_limit_lets_the_line_in_and_zero_holds_everybody() {
    let group = group(&[1], 8);
    group.set_max_conns(0, Some(0));
    let first = join(&group).await;
    let second = join(&group).await;
    assert_eq!(group.queue_length(), 2);
    group.set_max_conns(0, Some(2));
    let leases = (
        first.await.unwrap().unwrap(),
        second.await.unwrap().unwrap(),
    );
    assert_eq!(in_flight(&group), 2);
    assert!(try_now(&group).is_err());
    drop(leases);
}

/// One server holds a request forever; the other failed and comes back by the passing of time,
/// which wakes no waiter.
#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_serves_those_in_line() {
    let group = group(&[1, 1], 8);
    let held = try_now(&group).unwrap();
    let fails = try_now(&group).unwrap();
    let waiting = {
        fails.report(Outcome::Failure, 0);
        join(&group).await
    };
    assert_eq!(group.queue_length(), 1);
    let began = Instant::now();
    let lease = waiting.await.unwrap().unwrap();
    assert_eq!(lease.server(), 1);
    assert!(
        began.elapsed() <= Duration::from_secs(12),
        "fail_timeout is 10 s"
    );
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_tried_all_servers_is_told_so() {
    let group = group(&[1, 1], 8);
    let mut tried = TriedSet::new();
    tried.insert(0);
    tried.insert(1);
    let error = group
        .acquire(PickKey::default(), &tried, Class::Visitor, 0)
        .await;
    assert_eq!(error.unwrap_err(), AcquireError::Exhausted);
}

#[test]
fn a_group_without_servers_is_refused() {
    let mut spec = crate::GroupSpec::single("u", crate::Endpoint::Unix("/a".into()));
    spec.servers[0].backup = true;
    let only_backups = Group::new(spec.clone()).unwrap_err();
    assert_eq!(only_backups, SpecError::NoPrimaryServers);
    spec.servers.clear();
    assert_eq!(Group::new(spec).unwrap_err(), SpecError::NoServers);
}

/// Other crawlers leave a quarter of the line of crawlers to search engines.
#[tokio::test(start_paused = true)]
async fn a_line_that_is_full_of_crawlers_has_a_place_for_a_search_engine() {
    let group = group_with_turns(1, 8);
    let (mut clients, assets) = (Clients::default(), AssetMarks::default());
    let mut turn_with = |name, evidence| {
        let visit = Visit {
            address: Some([192, 0, 2, 1].into()),
            crawler: Some(CrawlerName { name, evidence }),
            ..Visit::default()
        };
        clients.assess(&visit, &assets, 0).turn
    };
    let mut turn_of = |name| turn_with(name, NameEvidence::NoSearchEngine);
    let names = [
        "gptbot",
        "claudebot",
        "ccbot",
        "amazonbot",
        "bytespider",
        "petalbot",
    ];
    let turns: Vec<Turn> = names.into_iter().map(&mut turn_of).collect();
    let enter = |turn: &Turn| {
        let key = PickKey {
            turn: Some(turn),
            ..PickKey::default()
        };
        group.enter(key, &TriedSet::new(), Class::Crawler, 0)
    };
    let _held = enter(&turns[0]).unwrap();
    let _line: Vec<_> = turns.iter().map(|turn| enter(turn).unwrap()).collect();
    for (name, evidence) in [
        ("dotbot", NameEvidence::NoSearchEngine),
        ("googlebot", NameEvidence::Unverified),
    ] {
        let error = enter(&turn_with(name, evidence)).unwrap_err();
        assert_eq!(error, AcquireError::QueueFull);
    }
    let engine = enter(&turn_with("googlebot", NameEvidence::Verified));
    assert!(matches!(engine, Ok(Admission::InLine(_))), "{engine:?}");
}
