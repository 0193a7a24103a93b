//! The table obeyed by hand: one request after the other.

use super::*;

#[path = "attacks_tests.rs"]
mod attacks;

fn page(path: &str) -> PageName {
    PageName::new(b"site", path.as_bytes())
}

fn from(address: [u8; 4], values: &[(Trait, u32)]) -> LeftOut {
    let mut left_out = LeftOut::default().from(Some(address.into()));
    values
        .iter()
        .for_each(|(it, value)| left_out.set(*it, *value));
    left_out
}

const ONE: [u8; 4] = [203, 0, 113, 1];
const OTHER: [u8; 4] = [198, 51, 100, 1];

fn own(part: Part) -> OwnRun {
    match part {
        Part::Own {
            compared: Some(run),
            ..
        } => run,
        part => panic!("{part:?}"),
    }
}

#[test]
fn the_first_visitor_runs_the_second_waits_for_the_shared_answer_and_the_third_is_shown_it() {
    let evidence = Evidence::default();
    let visitor = from(ONE, &[(Trait::Language, 3)]);
    let second = from(OTHER, &[(Trait::Language, 3)]);
    let run = own(evidence.begin(page("/a"), &visitor, (1, false), 0));
    // Twice the same visitor: the shared request waits for the first answer.
    let again = evidence.begin(page("/a"), &visitor, (1, false), 1);
    assert!(matches!(again, Part::Wait { shared: false }), "{again:?}");
    let part = evidence.begin(page("/a"), &second, (2, false), 1);
    assert!(matches!(part, Part::Wait { shared: true }), "{part:?}");
    let part = evidence.begin(page("/a"), &second, (3, false), 1);
    assert!(matches!(part, Part::Wait { shared: false }), "{part:?}");
    assert_eq!(evidence.own_ended(&run, OwnEnd::Storable(9), None, 2), None);
    assert_eq!(
        evidence.standing(page("/a"), &visitor, 2),
        Standing::Unproven
    );
    assert!(!evidence.shared_ended(page("/a"), Some(9), 3));
    for visitor in [visitor, second] {
        assert_eq!(evidence.standing(page("/a"), &visitor, 3), Standing::Shared);
    }
    assert_eq!(evidence.counts().agreed, 1);
}

#[test]
fn the_answers_may_come_in_the_other_order() {
    let evidence = Evidence::default();
    let visitor = from(ONE, &[]);
    let run = own(evidence.begin(page("/a"), &visitor, (1, false), 0));
    let part = evidence.begin(page("/a"), &visitor, (2, false), 0);
    assert!(matches!(part, Part::Wait { shared: true }));
    evidence.shared_ended(page("/a"), Some(9), 1);
    assert_eq!(
        evidence.own_ended(&run, OwnEnd::Storable(9), Some(9), 2),
        None
    );
    assert_eq!(evidence.standing(page("/a"), &visitor, 3), Standing::Shared);
}

#[test]
fn a_shared_answer_that_differs_from_one_that_a_visitor_has_seen_is_named() {
    let evidence = Evidence::default();
    let visitor = from(ONE, &[]);
    let run = own(evidence.begin(page("/a"), &visitor, (1, false), 0));
    let part = evidence.begin(page("/a"), &visitor, (2, false), 0);
    assert!(matches!(part, Part::Wait { shared: true }));
    evidence.shared_began(page("/a"), 0);
    assert_eq!(evidence.own_ended(&run, OwnEnd::Storable(8), None, 1), None);
    assert!(evidence.shared_ended(page("/a"), Some(9), 2));
    assert!(!evidence.shared_ended(page("/a"), Some(9), 3), "once");
}

/// A poll showed who had voted the form of the others, whose answers agreed at the same moment.
#[test]
fn what_agrees_for_others_says_nothing_of_a_visitor_whose_answer_differed() {
    let (voter, other) = (from(ONE, &[]), from(OTHER, &[]));
    for is_shared_first in [false, true] {
        let evidence = Evidence::default();
        let standing = |visitor| evidence.standing(page("/a"), visitor, 5);
        let voted = own(evidence.begin(page("/a"), &voter, (1, false), 0));
        evidence.begin(page("/a"), &other, (2, false), 0);
        let beside = own(evidence.begin(
            page("/a"),
            &from(OTHER, &[(Trait::Agent, 3)]),
            (3, false),
            0,
        ));
        let (results, form) = (OwnEnd::Storable(8), OwnEnd::Storable(9));
        let order = match is_shared_first {
            true => {
                evidence.shared_ended(page("/a"), Some(9), 1);
                evidence.own_ended(&beside, form, Some(9), 2);
                evidence.own_ended(&voted, results, Some(9), 3)
            }
            false => {
                evidence.own_ended(&voted, results, None, 1);
                evidence.own_ended(&beside, form, None, 2);
                assert!(evidence.shared_ended(page("/a"), Some(9), 3));
                assert_eq!(standing(&voter), Standing::Unproven);
                // Others may not wait for the voter's next answer, nor the voter for theirs.
                let again = own(evidence.begin(page("/a"), &voter, (1, true), 4));
                evidence.own_ended(&again, results, Some(9), 4)
            }
        };
        assert_eq!(standing(&other), Standing::Shared);
        assert_eq!(standing(&voter), Standing::Unproven);
        let part = evidence.begin(page("/a"), &voter, (1, true), 5);
        assert!(matches!(part, Part::Wait { shared: false }), "{part:?}");
        let found = TrialVerdict::Depends(TraitSet::of(Trait::Network));
        evidence.trial_ended(&order.unwrap(), Some(found), 4, 5);
        assert_eq!(standing(&voter), Standing::Depends(Trait::Network));
        assert_eq!(standing(&other), Standing::Shared);
    }
}

/// Its copy was stale, or other answers wait already.
#[test]
fn a_visitor_whose_answer_was_compared_with_nothing_is_compared_again() {
    let (voter, other) = (from(ONE, &[]), from(OTHER, &[]));
    let begin = |evidence: &Evidence, visitor: &LeftOut, who| {
        own(evidence.begin(page("/a"), visitor, (who, true), 60_000))
    };
    // The page is shared.
    let evidence = Evidence::default();
    let run = begin(&evidence, &other, 1);
    evidence.own_ended(&run, OwnEnd::Storable(9), Some(9), 0);
    let audit = evidence.takes_audit(page("/a"), &voter, 60_000).unwrap();
    evidence.own_ended(&audit, OwnEnd::Storable(8), None, 60_000);
    let standing = |visitor| evidence.standing(page("/a"), visitor, 60_000);
    assert_eq!(standing(&voter), Standing::Unproven);
    assert_eq!(standing(&other), Standing::Shared);
    evidence.shared_ended(page("/a"), Some(8), 60_000);
    assert_eq!(standing(&voter), Standing::Shared);
    // It is not yet.
    let evidence = Evidence::default();
    for number in 0..=MAX_OWN_RUNS as u32 {
        let agent = from(OTHER, &[(Trait::Agent, number + 1)]);
        let visitor = if number < MAX_OWN_RUNS as u32 {
            agent
        } else {
            voter
        };
        let run = begin(&evidence, &visitor, u64::from(number));
        let answer = if visitor == voter { 8 } else { 9 };
        evidence.own_ended(&run, OwnEnd::Storable(answer), None, 60_000);
    }
    let standing = |visitor| evidence.standing(page("/a"), visitor, 60_000);
    evidence.shared_ended(page("/a"), Some(9), 60_000);
    assert_eq!(standing(&other), Standing::Shared);
    assert_eq!(standing(&voter), Standing::Unproven);
    // It was the first to have what all are shown now.
    evidence.shared_ended(page("/a"), Some(8), 60_000);
    assert_eq!(standing(&voter), Standing::Shared);
}

/// A page that has changed meanwhile is shared again once the answers are the same.
#[test]
fn a_visitor_whose_answer_differed_shares_the_page_once_it_is_the_same() {
    let evidence = Evidence::default();
    let (visitor, other) = (from(ONE, &[]), from(OTHER, &[]));
    let run = own(evidence.begin(page("/a"), &other, (1, true), 0));
    evidence.own_ended(&run, OwnEnd::Storable(1), Some(1), 0);
    let standing = |visitor| evidence.standing(page("/a"), visitor, 90_000);
    assert_eq!(standing(&visitor), Standing::Shared);
    let audit = evidence.takes_audit(page("/a"), &visitor, 60_000).unwrap();
    let epoch = evidence.epoch();
    let order = evidence.own_ended(&audit, OwnEnd::Storable(2), Some(1), 60_000);
    assert!(order.is_some() && evidence.epoch() > epoch);
    assert_eq!(standing(&visitor), Standing::Unproven);
    assert_eq!(standing(&other), Standing::Shared);
    // The trial comes to no end.
    evidence.trial_ended(&order.unwrap(), None, 1, 60_000);
    assert_eq!(standing(&visitor), Standing::Unproven);
    let run = own(evidence.begin(page("/a"), &visitor, (1, true), 61_000));
    evidence.own_ended(&run, OwnEnd::Storable(2), Some(2), 61_000);
    assert_eq!(standing(&visitor), Standing::Shared);
}

/// On pages that vary on the language, an answer that waits for a copy in one language held up visitors of others,
/// for whom there is a copy: nothing was under way that they could wait for.
#[test]
fn nobody_waits_where_nothing_is_under_way() {
    let evidence = Evidence::default();
    let visitor = from(ONE, &[(Trait::Agent, 3)]);
    let run = own(evidence.begin(page("/a"), &visitor, (1, false), 0));
    // There is no copy in this visitor's language.
    assert_eq!(evidence.own_ended(&run, OwnEnd::Storable(9), None, 1), None);
    // There is one in the language of the next.
    let run = own(evidence.begin(page("/a"), &visitor, (2, true), 2));
    let part = evidence.begin(page("/a"), &visitor, (3, true), 2);
    assert!(matches!(part, Part::Wait { shared: false }), "{part:?}");
    assert_eq!(
        evidence.own_ended(&run, OwnEnd::Storable(8), Some(8), 3),
        None
    );
    assert_eq!(evidence.standing(page("/a"), &visitor, 3), Standing::Shared);
}

#[test]
fn a_page_that_gives_each_a_cookie_is_each_visitors_own() {
    let evidence = Evidence::default();
    for number in 0..3 {
        let run = own(evidence.begin(page("/a"), &from(ONE, &[]), (number, false), number));
        assert_eq!(
            evidence.own_ended(&run, OwnEnd::NotStorable, None, number),
            None
        );
    }
    // Side by side, too.
    let first = own(evidence.begin(page("/a"), &from(ONE, &[]), (7, false), 9));
    own(evidence.begin(page("/a"), &from(OTHER, &[]), (8, false), 9));
    // One that could be stored begins anew.
    evidence.own_ended(&first, OwnEnd::Storable(1), None, 10);
    let part = evidence.begin(page("/a"), &from(ONE, &[]), (9, false), 11);
    assert!(matches!(part, Part::Wait { shared: true }), "{part:?}");
}

#[test]
fn different_answers_lead_to_a_trial_within_the_budget() {
    let evidence = Evidence::default();
    let german = from(ONE, &[(Trait::Language, 3)]);
    let run = own(evidence.begin(page("/a"), &german, (1, true), 0));
    let order = evidence
        .own_ended(&run, OwnEnd::Storable(1), Some(2), 1)
        .unwrap();
    assert_eq!(order.traits.iter().count(), 2);
    // A visitor like that of the trial waits for it, and others have their own answers.
    let part = evidence.begin(page("/a"), &german, (1, true), 2);
    assert!(matches!(part, Part::Wait { shared: false }), "{part:?}");
    let french = from(ONE, &[(Trait::Language, 4)]);
    let beside = own(evidence.begin(page("/a"), &french, (1, true), 2));
    assert!(beside.is_beside_trial);
    let found = TrialVerdict::Depends(TraitSet::of(Trait::Language));
    evidence.trial_ended(&order, Some(found), 4, 3);
    assert_eq!(evidence.keyed(page("/a")), TraitSet::of(Trait::Language));
    let standing = evidence.standing(page("/a"), &german, 4);
    assert_eq!(standing, Standing::Depends(Trait::Language));
    // A second page of the shape makes it a rule for new ones.
    assert_eq!(evidence.keyed(page("/c")), TraitSet::NONE);
    let run = own(evidence.begin(page("/b"), &german, (1, true), 5));
    let order = evidence
        .own_ended(&run, OwnEnd::Storable(1), Some(2), 5)
        .unwrap();
    evidence.trial_ended(&order, Some(found), 4, 6);
    assert_eq!(evidence.keyed(page("/c")), TraitSet::of(Trait::Language));
    assert_eq!(evidence.counts().trial_requests, 8);
    // Hostile visitors do not make more requests of trials than they make themselves, and the budget has.
    let mut requests = 0;
    for number in 0..1000 {
        let odd = from(ONE, &[(Trait::Referer, 100 + number)]);
        let path = format!("/x{number}");
        let run = own(evidence.begin(page(&path), &odd, (1, true), 7));
        let order = evidence.own_ended(&run, OwnEnd::Storable(1), Some(2), 7);
        requests += order.map_or(0, |order| Trial::usual_requests(order.traits));
    }
    assert!(requests <= 1000 + 64, "{requests}");
}

/// Each page of such an application is tried. With a request of a trial in two seconds, the pages of a wiki
/// were made for each visitor for hours.
#[test]
fn trials_keep_up_with_visitors_where_each_page_differs_each_time() {
    let evidence = Evidence::default();
    let visitor = from(ONE, &[(Trait::Language, 3)]);
    let pages: Vec<PageName> = (0..100).map(|number| page(&format!("/{number}"))).collect();
    let mut chance = 0;
    let mut view = |name: PageName, now: u64| {
        let part = evidence.begin(name, &visitor, (1, true), now);
        let Part::Own {
            compared: Some(run),
            ..
        } = part
        else {
            return;
        };
        chance += 1;
        let order = evidence.own_ended(&run, OwnEnd::Storable(chance), Some(0), now);
        if let Some(order) = order {
            let verdict = TrialVerdict::Agree { each_time: true };
            evidence.trial_ended(&order, Some(verdict), 4, now);
        }
    };
    // A trial of four requests for every fourth answer, whichever page it is of.
    for second in 0..20 {
        pages.iter().for_each(|name| view(*name, second * 1000));
    }
    let is_shared =
        |name: &PageName| evidence.standing(*name, &visitor, 20_000) == Standing::Shared;
    assert!(pages.iter().all(is_shared));
}

#[test]
fn what_two_pages_and_two_networks_have_seen_counts_for_their_like() {
    let evidence = Evidence::default();
    let german = |address| from(address, &[(Trait::Language, 3)]);
    for (path, address) in [("/a", ONE), ("/b", OTHER)] {
        let run = own(evidence.begin(page(path), &german(address), (1, true), 0));
        evidence.own_ended(&run, OwnEnd::Storable(5), Some(5), 1);
    }
    // An own answer is compared on each page all the same.
    assert_eq!(
        evidence.standing(page("/c"), &german(ONE), 2),
        Standing::Unproven
    );
    let agree = |values: &[(Trait, u32)]| {
        let run = own(evidence.begin(page("/c"), &from(ONE, values), (1, true), 2));
        evidence.own_ended(&run, OwnEnd::Storable(5), Some(5), 2);
    };
    // Nor does another page say anything of a trait that was never compared here.
    agree(&[]);
    assert_eq!(
        evidence.standing(page("/c"), &german(ONE), 3),
        Standing::Unproven
    );
    agree(&[(Trait::Language, 9)]);
    assert_eq!(
        evidence.standing(page("/c"), &german(ONE), 3),
        Standing::Shared
    );
    let french = from(ONE, &[(Trait::Language, 4)]);
    assert_eq!(
        evidence.standing(page("/c"), &french, 3),
        Standing::Unproven
    );
}

#[test]
fn an_answer_that_ends_sharing_ends_it_for_all() {
    let evidence = Evidence::default();
    let run = own(evidence.begin(page("/a"), &from(ONE, &[]), (1, true), 0));
    evidence.own_ended(&run, OwnEnd::Storable(5), Some(5), 1);
    assert_eq!(
        evidence.standing(page("/a"), &from(OTHER, &[]), 1),
        Standing::Shared
    );
    let epoch = evidence.epoch();
    evidence.shared_ended(page("/a"), None, 2);
    assert!(evidence.epoch() > epoch);
    assert_eq!(
        evidence.standing(page("/a"), &from(OTHER, &[]), 2),
        Standing::Unproven
    );
}

#[test]
fn memory_is_bounded_in_pages_and_in_requests_under_way() {
    let evidence = Evidence::default();
    for number in 0..80_000 {
        let path = format!("/{number}?a{number}");
        evidence.begin(page(&path), &from(ONE, &[]), (1, false), 0);
    }
    for shard in &evidence.shards {
        let shard = shard.lock();
        assert!(shard.records.len() <= 2 * MAX_PAGES);
        assert!(shard.active.len() <= MAX_ACTIVE);
    }
    assert!(
        size_of::<PageRecord>() <= 256,
        "{}",
        size_of::<PageRecord>()
    );
}

/// Two visitors with new addresses each paid for a trial of any length.
#[test]
fn trials_of_sessions_make_no_more_requests_than_a_bucket_and_the_visitors() {
    let evidence = Evidence::default();
    let (mut own_runs, mut requests) = (0, 0);
    for number in 0..2000 {
        let name = page(&format!("/x{number}"));
        for who in [1, 2] {
            let Part::Own {
                compared: Some(run),
                ..
            } = evidence.begin(name, &from(ONE, &[]), (who, false), 0)
            else {
                continue;
            };
            own_runs += 1;
            if let Some(order) = evidence.own_ended(&run, OwnEnd::OfSession(1), None, 0) {
                assert!(order.of_session);
                requests += 40;
                let verdict = TrialVerdict::Agree { each_time: false };
                evidence.trial_ended(&order, Some(verdict), 40, 0);
            }
        }
    }
    assert!(requests >= 256, "{requests}");
    assert!(requests <= own_runs + 256 + 40, "{requests} for {own_runs}");
    // A page of another kind is tried all the same.
    let german = from(ONE, &[(Trait::Language, 3)]);
    let run = own(evidence.begin(page("/y"), &german, (1, true), 0));
    assert!(
        evidence
            .own_ended(&run, OwnEnd::Storable(1), Some(2), 0)
            .is_some()
    );
}

#[test]
fn the_shared_answer_waits_for_a_trial_of_the_session_that_visitors_wait_for() {
    let evidence = Evidence::default();
    let (name, guest, second) = (page("/a"), from(ONE, &[]), from(OTHER, &[]));
    let run = own(evidence.begin(name, &guest, (1, false), 0));
    assert!(!evidence.awaits_session_trial(name), "alone");
    evidence.begin(name, &second, (2, false), 0);
    assert!(evidence.awaits_session_trial(name), "the first answer");
    let order = evidence.own_ended(&run, OwnEnd::OfSession(1), None, 1);
    let order = order.unwrap();
    assert!(order.is_awaited && evidence.awaits_session_trial(name));
    evidence.trial_ended(&order, Some(TrialVerdict::NotShareable), 5, 2);
    assert!(!evidence.awaits_session_trial(name), "after it");
    // Of a page without a session no trial follows.
    let run = own(evidence.begin(page("/b"), &guest, (1, false), 0));
    evidence.begin(page("/b"), &second, (2, false), 0);
    evidence.own_ended(&run, OwnEnd::Storable(1), None, 1);
    assert!(!evidence.awaits_session_trial(page("/b")));
}

#[test]
fn guests_without_a_session_share_a_page_while_its_trial_goes_on() {
    for is_confirmed in [true, false] {
        let evidence = Evidence::default();
        let (name, guest, second) = (page("/a"), from(ONE, &[]), from(OTHER, &[]));
        let returning = from(OTHER, &[(Trait::Session, 1)]);
        let run = own(evidence.begin(name, &guest, (1, false), 0));
        evidence.begin(name, &second, (2, false), 0);
        let order = evidence.own_ended(&run, OwnEnd::OfSession(1), None, 1);
        let order = order.unwrap();
        let standing = |visitor| evidence.standing(name, visitor, 3);
        assert_eq!(standing(&second), Standing::Unproven);
        evidence.share_with_new_guests(&order, 2);
        assert_eq!(standing(&second), Standing::Shared);
        assert_eq!(standing(&returning), Standing::Unproven);
        let part = evidence.begin(name, &returning, (3, true), 3);
        assert!(!matches!(part, Part::Shared), "{part:?}");
        let epoch = evidence.epoch();
        let verdict = is_confirmed.then_some(TrialVerdict::Agree { each_time: false });
        evidence.trial_ended(&order, verdict, 9, 3);
        let (wanted, withdrawn) = match is_confirmed {
            true => (Standing::Shared, 0),
            false => (Standing::Unproven, 1),
        };
        for visitor in [&second, &returning] {
            assert_eq!(standing(visitor), wanted);
        }
        assert_eq!(evidence.epoch(), epoch + withdrawn);
    }
}

/// An upstream that has no time for one trial has none for the next.
#[test]
fn an_answer_beside_a_trial_begins_none_when_that_has_ended() {
    let evidence = Evidence::default();
    let visitor = |language| from(ONE, &[(Trait::Language, language)]);
    let begin = |language, now| {
        let part = evidence.begin(page("/a"), &visitor(language), (1, true), now);
        own(part)
    };
    let differs = |run, now| evidence.own_ended(&run, OwnEnd::Storable(1), Some(2), now);
    let order = differs(begin(3, 0), 1).unwrap();
    let (during, later) = (begin(4, 2), begin(5, 2));
    assert_eq!(differs(during, 3), None);
    evidence.trial_ended(&order, None, 1, 4);
    assert_eq!(differs(begin(6, 5), 5), None);
    let again = 4 + UNTRIED_MILLIS;
    assert_eq!(differs(later, again), None);
    assert!(differs(begin(7, again), again).is_some());
    assert_eq!(evidence.counts().trials, 2);
}

#[test]
fn a_second_answer_that_nothing_explains_ends_sharing() {
    let evidence = Evidence::default();
    let visitor = from(ONE, &[(Trait::Language, 3)]);
    for (who, wanted) in [(1, Standing::Unproven), (2, Standing::Unexplained)] {
        let run = own(evidence.begin(page("/a"), &visitor, (who, true), 0));
        let order = evidence.own_ended(&run, OwnEnd::Storable(1), Some(2), 1);
        let order = order.unwrap();
        assert_eq!(order.own, Some(1));
        evidence.trial_ended(&order, Some(TrialVerdict::Unexplained), 5, 2);
        assert_eq!(evidence.standing(page("/a"), &visitor, 3), wanted);
    }
    let part = evidence.begin(page("/a"), &visitor, (3, true), 4);
    assert!(matches!(part, Part::Own { compared: None, .. }), "{part:?}");
    let found = evidence.findings(page("/a"), 4).unwrap();
    assert!(found.is_unexplained);
}

/// A page that begins a session for each guest, and the trial that the second one has it made.
fn with_trial_of_session() -> (Evidence, PageName, TrialOrder) {
    let (evidence, name) = (Evidence::default(), page("/a"));
    let mut orders = [(ONE, 1), (OTHER, 2)].map(|(address, who)| {
        let run = own(evidence.begin(name, &from(address, &[]), (who, false), 0));
        evidence.own_ended(&run, OwnEnd::OfSession(1), None, 0)
    });
    (evidence, name, orders[1].take().expect("a trial"))
}

#[test]
fn a_trial_of_a_session_says_what_guests_share() {
    let guest = from(OTHER, &[(Trait::Session, 1)]);
    let language = TraitSet::of(Trait::Language);
    for (verdict, session, standing) in [
        (
            TrialVerdict::Agree { each_time: true },
            SessionStanding::Indifferent,
            Standing::Shared,
        ),
        (
            TrialVerdict::Depends(language),
            SessionStanding::Indifferent,
            Standing::Unproven,
        ),
        (
            TrialVerdict::NotShareable,
            SessionStanding::Begun,
            Standing::Unproven,
        ),
    ] {
        let (evidence, name, order) = with_trial_of_session();
        evidence.trial_ended(&order, Some(verdict), 1, 1);
        assert_eq!(evidence.session(name), session, "{verdict:?}");
        assert_eq!(evidence.standing(name, &guest, 2), standing, "{verdict:?}");
        let findings = evidence.findings(name, 2).unwrap();
        let is_shared = standing == Standing::Shared;
        assert_eq!(findings.differs_each_time, is_shared);
        assert_eq!(
            evidence.is_refused(name),
            verdict == TrialVerdict::NotShareable
        );
    }
}

#[test]
fn a_trial_that_found_nothing_to_share_is_made_again_ten_seconds_later() {
    let (evidence, name, order) = with_trial_of_session();
    evidence.trial_ended(&order, Some(TrialVerdict::NotShareable), 1, 0);
    // The clock begins at its first second.
    for (now, is_made) in [(10_000, false), (11_000, true)] {
        let run = own(evidence.begin(name, &from(ONE, &[]), (3, false), now));
        let order = evidence.own_ended(&run, OwnEnd::OfSession(1), None, now);
        assert_eq!(order.is_some(), is_made, "{now}");
    }
}

#[test]
fn a_page_leaves_a_session_as_it_was_where_its_answer_shows_what_was_seen() {
    let (evidence, name, order) = with_trial_of_session();
    let answer = AnswerOutline {
        digest: 7,
        cookies: 0b11,
        is_page: true,
    };
    let verdict = TrialVerdict::LeavesSession {
        answer,
        is_storable: false,
    };
    evidence.trial_ended(&order, Some(verdict), 1, 0);
    assert!(evidence.is_refused(name));
    for (digest, cookies, leaves) in [
        (7, 0b11, true),
        (7, 0b01, true),
        (7, 0b111, false),
        (8, 0b11, false),
    ] {
        let shown = AnswerOutline {
            digest,
            cookies,
            is_page: true,
        };
        let found = evidence.leaves_session(name, Some(shown), 1);
        assert_eq!(found, leaves, "{digest} {cookies:b}");
    }
}

#[test]
fn a_shared_answer_with_a_session_ends_what_threads_remember() {
    let evidence = Evidence::default();
    let epoch = evidence.epoch();
    evidence.shared_begins_session(page("/a"), 0);
    assert_eq!(evidence.session(page("/a")), SessionStanding::Begun);
    assert!(evidence.epoch() > epoch);
}

/// Audits are seldom where nothing was found for long.
#[test]
fn after_a_finding_the_next_audit_is_soon() {
    let (evidence, name) = (Evidence::default(), page("/a"));
    let (one, other) = (from(ONE, &[]), from(OTHER, &[]));
    let mut now = 0;
    for _ in 0..6 {
        let part = evidence.begin(name, &one, (1, true), now);
        let run = match part {
            Part::Shared => evidence.takes_audit(name, &one, now).unwrap(),
            part => own(part),
        };
        evidence.own_ended(&run, OwnEnd::Storable(9), Some(9), now);
        now += 3_600_000;
    }
    let run = evidence.takes_audit(name, &other, now).unwrap();
    let order = evidence.own_ended(&run, OwnEnd::Storable(8), Some(9), now);
    let found = TrialVerdict::Depends(TraitSet::of(Trait::Network));
    evidence.trial_ended(&order.unwrap(), Some(found), 4, now);
    let third = from([192, 0, 2, 1], &[(Trait::Language, 3)]);
    let run = own(evidence.begin(name, &third, (3, true), now));
    evidence.own_ended(&run, OwnEnd::Storable(9), Some(9), now);
    let fourth = from([81, 2, 2, 1], &[]);
    assert!(evidence.takes_audit(name, &fourth, now + 9_000).is_none());
    assert!(evidence.takes_audit(name, &fourth, now + 10_000).is_some());
}
