//! With all rules no history breaks the promise; with one left out, one does.

use crate::search::{all_states, at_random, play, run};
use crate::world::{Bounds, Event};
use cache_nodes::Rule;

/// Three nodes and all that can happen.
const WIDE: Bounds = Bounds {
    nodes: 3,
    ticks: 16,
    purges: 2,
    crashes: 2,
    failovers: 2,
    trims: 2,
    other_purges: 2,
    flushes: 1,
    odd_ticks: 1,
    losses: 3,
    fetches: 8,
    has_disk: true,
    calls: 20,
};

fn steps(default: u64) -> u64 {
    let by_hand = std::env::var("MODEL_STEPS").ok();
    by_hand
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn no_history_at_random_breaks_the_promise() {
    let wanted = steps(2_000_000);
    for bounds in [WIDE, Bounds { nodes: 2, ..WIDE }] {
        match at_random(bounds, None, 1, wanted) {
            Ok(done) => println!("{done} steps, {} nodes: nothing found", bounds.nodes),
            Err((_, found)) => panic!("{found:#?}"),
        }
    }
}

/// Two nodes, one purge, and no fault.
const CALM: Bounds = Bounds {
    nodes: 2,
    ticks: 12,
    purges: 1,
    other_purges: 0,
    crashes: 0,
    failovers: 0,
    trims: 0,
    flushes: 0,
    odd_ticks: 0,
    losses: 0,
    fetches: 3,
    has_disk: false,
    calls: 14,
};

/// Returns the least bounds within which the absence of a rule shows.
fn bounds_for(rule: Rule) -> Bounds {
    match rule {
        Rule::LeaseRequired
        | Rule::LeaseFromSending
        | Rule::LeaseAfterCatchingUp
        | Rule::FreshReading
        | Rule::BeatCompared
        | Rule::FetchOutdated => CALM,
        Rule::WaitLongerThanLease => Bounds {
            odd_ticks: 1,
            ..CALM
        },
        Rule::WaitInNewEpoch
        | Rule::NewEpochVoids
        | Rule::MajorityAtJoin
        | Rule::MajorityAfterConfirm
        | Rule::MajorityAfterRenew => Bounds {
            failovers: 1,
            ..CALM
        },
        Rule::GapVoids => Bounds {
            trims: 1,
            other_purges: 1,
            ..CALM
        },
        Rule::PurgesBeforePosition => Bounds {
            crashes: 1,
            has_disk: true,
            ..CALM
        },
        Rule::ConfirmByMembers => Bounds { flushes: 1, ..CALM },
    }
}

/// Histories at random that miss a rule, by their seed. The two rules that are not here are too seldom
/// missed at random: their histories are written below.
const SEEDS: [(Rule, u64); 13] = [
    (Rule::LeaseRequired, 9),
    (Rule::LeaseFromSending, 4_883),
    (Rule::LeaseAfterCatchingUp, 14_385),
    (Rule::FreshReading, 4_883),
    (Rule::BeatCompared, 37_284),
    (Rule::WaitInNewEpoch, 14_897),
    (Rule::NewEpochVoids, 926_781),
    (Rule::GapVoids, 80_613),
    (Rule::FetchOutdated, 278),
    (Rule::PurgesBeforePosition, 148_731),
    (Rule::MajorityAtJoin, 131_167),
    (Rule::MajorityAfterRenew, 337_056),
    (Rule::ConfirmByMembers, 92_389),
];

#[test]
fn each_rule_left_out_is_missed() {
    for (rule, seed) in SEEDS {
        let bounds = bounds_for(rule);
        let missed = run(bounds, Some(rule), seed).is_err();
        assert!(
            missed,
            "{rule:?} is left out, and seed {seed} finds nothing"
        );
        if let Err(found) = run(bounds, None, seed) {
            panic!("all rules hold: {found:#?}");
        }
    }
}

/// Prints for [`SEEDS`] which seed misses each rule, and after how many steps of a search.
#[test]
#[ignore = "takes minutes: for new seeds, after the model has changed"]
fn search_for_seeds() {
    for rule in Rule::ALL {
        match at_random(bounds_for(rule), Some(rule), 1, steps(100_000_000)) {
            Ok(done) => println!("{rule:?}: not missed in {done} steps"),
            Err((done, found)) => println!("{rule:?}: seed {} after {done} steps", found.seed),
        }
    }
}

#[test]
fn a_closed_search_of_small_worlds_finds_no_old_answer() {
    let small = Bounds {
        ticks: 3,
        calls: 1,
        fetches: 0,
        ..CALM
    };
    let with_failover = Bounds {
        failovers: 1,
        ..small
    };
    let with_crash_and_failover = Bounds {
        crashes: 1,
        ..with_failover
    };
    let with_two_purges_and_crash = Bounds {
        purges: 2,
        crashes: 1,
        ..small
    };
    for bounds in [with_crash_and_failover, with_two_purges_and_crash] {
        let done = all_states(bounds, None, 6_000_000);
        println!("{bounds:?}: {done:?}");
        let done = done.expect("no old answer, and the search closed");
        assert!(done.with_returned_purge > 1_000 && done.with_answer > 1_000);
    }
    // The search is not blind: it meets rules that are left out.
    for (rule, bounds) in [
        (Rule::LeaseRequired, small),
        (Rule::NewEpochVoids, with_failover),
    ] {
        let missed = all_states(bounds, Some(rule), 3_000_000);
        assert!(matches!(missed, Err(Some(_))), "{rule:?}: {missed:?}");
    }
}

/// The second node has not applied the purge, and the publisher has seen its beat.
const PURGE_WAITS: [Event; 8] = [
    Event::Write(0),
    Event::Publish(0),
    Event::Read(0),
    Event::SendRenew(0),
    Event::Execute(0),
    Event::Receive(0),
    Event::Confirm(0),
    Event::Judge(0),
];

#[test]
fn written_histories_miss_what_is_found_too_seldom_at_random() {
    let slow_clock = [
        Event::SlowTick(1),
        Event::Tick,
        Event::Confirm(0),
        Event::Judge(0),
    ];
    let other_engine = [
        Event::FailOver(0, true),
        Event::Disconnect(1),
        Event::Connect(1, 1),
        Event::SendJoin(1),
        Event::Execute(1),
        Event::Receive(1),
        Event::Tick,
        Event::Tick,
        Event::SendRenew(1),
        Event::Execute(1),
        Event::Receive(1),
        Event::Tick,
        Event::Confirm(0),
        Event::Judge(0),
    ];
    let cases = [
        (Rule::WaitLongerThanLease, slow_clock.as_slice()),
        (Rule::MajorityAfterConfirm, &other_engine),
    ];
    for (rule, rest) in cases {
        let history = [&PURGE_WAITS, rest].concat();
        let bounds = bounds_for(rule);
        let missed = play(bounds, Some(rule), &history);
        assert!(matches!(missed, Ok(Some(_))), "{rule:?}: {missed:?}");
        let kept = play(bounds, None, &history[..history.len() - 2]);
        assert_eq!(kept, Ok(None), "{rule:?}");
    }
}
