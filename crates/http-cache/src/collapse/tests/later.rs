//! Requests that nothing may answer which began before they came: their node has no lease.

use super::*;

/// Asks at a time, for a request that came at another one.
fn join(zone: &Arc<Zone>, now_millis: u64, came_millis: u64) -> LaterJoin {
    let at = |millis| T0.plus(Duration::from_millis(millis));
    let client = Client {
        now: at(now_millis),
        lock_age: Some(Duration::from_secs(5)),
        ..Client::new(zone, &[])
    };
    zone.collapse_later(&client.request(), at(came_millis))
}

fn lead(zone: &Arc<Zone>, now_millis: u64) -> Leader {
    match join(zone, now_millis, now_millis) {
        LaterJoin::Lead(leader) => leader,
        other => panic!("leads, not {other:?}"),
    }
}

#[test]
fn the_first_to_wake_leads_for_all_who_came_while_a_fetch_was_under_way() {
    let zone = zone();
    let first = lead(&zone, 0);
    let LaterJoin::After(earlier) = join(&zone, 5, 5) else {
        panic!("it began before");
    };
    assert_eq!(now(earlier.ended()), None);
    publish(first, SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    assert_eq!(now(earlier.ended()), Some(FlightEnd::Over));
    // Stored responses are not looked at.
    let LaterJoin::Lead(_second) = join(&zone, 20, 5) else {
        panic!("it leads");
    };
    for came in [6, 19] {
        assert!(
            matches!(join(&zone, 21, came), LaterJoin::Follow(_)),
            "{came}"
        );
    }
    // Within the same millisecond it is not known which was first.
    for came in [20, 30] {
        assert!(
            matches!(join(&zone, 31, came), LaterJoin::After(_)),
            "{came}"
        );
    }
}

#[test]
fn a_fetch_that_was_not_sent_yet_begins_later_than_all_who_ask() {
    let zone = zone();
    let leader = lead(&zone, 0);
    leader.progress().in_line();
    assert!(matches!(join(&zone, 10, 10), LaterJoin::Follow(_)));
    leader
        .progress()
        .under_way(T0.plus(Duration::from_millis(40)));
    assert!(matches!(join(&zone, 41, 39), LaterJoin::Follow(_)));
    assert!(matches!(join(&zone, 41, 41), LaterJoin::After(_)));
}

#[test]
fn those_who_waited_for_a_response_that_is_not_shared_go_alone() {
    let zone = zone();
    let leader = lead(&zone, 0);
    let LaterJoin::After(earlier) = join(&zone, 1, 1) else {
        panic!("it began before");
    };
    leader.not_shareable(Reason::SetCookie, Duration::from_secs(5), T0);
    let ended = now(earlier.ended());
    assert_eq!(ended, Some(FlightEnd::Refused(Reason::SetCookie)));
    assert!(matches!(
        join(&zone, 2, 2),
        LaterJoin::Alone(AloneReason::NotShareable(Reason::SetCookie))
    ));
}

#[test]
fn a_fetch_without_progress_is_waited_for_no_longer_than_others_wait() {
    let zone = zone();
    let _stuck = lead(&zone, 0);
    assert!(matches!(join(&zone, 4999, 1), LaterJoin::After(_)));
    assert!(matches!(join(&zone, 5000, 1), LaterJoin::Lead(_)));
}
