//! Ways to have a visitor shown another one's page, or to keep pages from being shared: each by the public interface alone.

use super::*;
use crate::render::{Renderer, Rendering};
use crate::trial::TrialStep;

/// Addresses of four networks.
const VOTER: [u8; 4] = [203, 0, 113, 1];
const ONE: [u8; 4] = [81, 51, 100, 1];
const OTHER: [u8; 4] = [82, 51, 100, 1];
const ATTACKER: [u8; 4] = [66, 6, 6, 6];

/// The answers of a poll: its form, and its results for those who have voted.
const FORM: u64 = 9;
const RESULTS: u64 = 8;

const MINUTE: u64 = 60_000;

/// A visitor's own request that is made, and ends while there is this copy.
fn visit(
    evidence: &Evidence,
    (name, left_out): (PageName, LeftOut),
    (end, copy): (OwnEnd, Option<u64>),
    now: u64,
) -> Option<TrialOrder> {
    let who = (
        u64::from(left_out.value(Trait::Network)) + u64::from(left_out.value(Trait::Referer)),
        copy.is_some(),
    );
    let run = own(evidence.begin(name, &left_out, who, now));
    evidence.own_ended(&run, end, copy, now)
}

/// A visitor is shown the form, and so would all be.
fn share_form(evidence: &Evidence, name: PageName) {
    let shown = (OwnEnd::Storable(FORM), Some(FORM));
    visit(evidence, (name, from(OTHER, &[])), shown, 0);
}

/// The voter's answer differed from the copy, and no trial has said why: its upstream had no time. It is a minute later.
fn with_voter_in_doubt(name: PageName) -> (Evidence, LeftOut) {
    let (evidence, voter) = (Evidence::default(), from(VOTER, &[]));
    share_form(&evidence, name);
    let audit = evidence.takes_audit(name, &voter, MINUTE).unwrap();
    let end = OwnEnd::Storable(RESULTS);
    if let Some(order) = evidence.own_ended(&audit, end, Some(FORM), MINUTE) {
        evidence.trial_ended(&order, None, 1, MINUTE);
    }
    assert_eq!(evidence.standing(name, &voter, MINUTE), Standing::Unproven);
    (evidence, voter)
}

#[test]
fn links_that_are_invented_to_a_page_that_sets_cookies_end_no_doubt() {
    let (evidence, voter) = with_voter_in_doubt(page("/poll"));
    for path in 0..64 {
        let name = page(&format!("/login{path}"));
        for referer in 0..4200 {
            let who = from(ATTACKER, &[(Trait::Referer, 100 + referer)]);
            visit(&evidence, (name, who), (OwnEnd::NotStorable, None), MINUTE);
        }
    }
    assert_eq!(
        evidence.standing(page("/poll"), &voter, MINUTE),
        Standing::Unproven
    );
}

#[test]
fn a_visitor_who_was_refused_on_a_page_that_differs_each_time_is_in_doubt() {
    for end in [OwnEnd::NotStorable, OwnEnd::Personal] {
        let (evidence, name) = (Evidence::default(), page("/poll"));
        let (one, voter) = (from(ONE, &[]), from(VOTER, &[]));
        let differs = (OwnEnd::Storable(1), Some(2));
        let order = visit(&evidence, (name, one), differs, 0).unwrap();
        let agree = TrialVerdict::Agree { each_time: true };
        evidence.trial_ended(&order, Some(agree), 4, 0);
        assert_eq!(evidence.standing(name, &voter, 0), Standing::Shared);
        let audit = evidence.takes_audit(name, &voter, MINUTE).unwrap();
        if let Some(order) = evidence.own_ended(&audit, end, Some(3), MINUTE) {
            evidence.trial_ended(&order, None, 1, MINUTE);
        }
        assert_eq!(
            evidence.standing(name, &voter, MINUTE + 1),
            Standing::Unproven,
            "{end:?}"
        );
    }
}

#[test]
fn a_voter_is_in_doubt_by_another_link_and_with_another_browser_too() {
    let (evidence, name) = (Evidence::default(), page("/poll"));
    share_form(&evidence, name);
    let by_link = [(Trait::Referer, 1), (Trait::Agent, 1)];
    let shown = (OwnEnd::Storable(FORM), Some(FORM));
    visit(&evidence, (name, from(OTHER, &by_link)), shown, 0);
    let came_by_form = from(VOTER, &by_link);
    let audit = evidence.takes_audit(name, &came_by_form, MINUTE).unwrap();
    let end = OwnEnd::Storable(RESULTS);
    let order = evidence.own_ended(&audit, end, Some(FORM), MINUTE);
    assert!(order.is_some(), "its trial is under way");
    for values in [&by_link[..], &by_link[..1], &by_link[..0]] {
        let voter = from(VOTER, values);
        let standing = evidence.standing(name, &voter, MINUTE);
        assert_eq!(standing, Standing::Unproven, "{values:?}");
    }
}

/// A link that matters says nothing of the person who came by it.
#[test]
fn a_visitor_who_came_by_a_link_that_matters_shares_the_page_without_it() {
    let (evidence, name) = (Evidence::default(), page("/"));
    share_form(&evidence, name);
    let by_link = from(VOTER, &[(Trait::Referer, 1)]);
    let differs = (OwnEnd::Storable(RESULTS), Some(FORM));
    let order = visit(&evidence, (name, by_link), differs, 1).unwrap();
    let standing = |left_out: LeftOut| evidence.standing(name, &left_out, 2);
    assert_eq!(standing(from(VOTER, &[])), Standing::Unproven);
    let found = TrialVerdict::Depends(TraitSet::of(Trait::Referer));
    evidence.trial_ended(&order, Some(found), 4, 2);
    assert_eq!(standing(from(VOTER, &[])), Standing::Shared);
    assert_eq!(standing(by_link), Standing::Depends(Trait::Referer));
}

#[test]
fn a_finding_is_not_forgotten_with_the_record_of_its_page() {
    let (evidence, name) = (Evidence::default(), page("/poll"));
    let voter = from(VOTER, &[]);
    let differs = (OwnEnd::Storable(RESULTS), Some(FORM));
    let order = visit(&evidence, (name, voter), differs, 0).unwrap();
    let found = TrialVerdict::Depends(TraitSet::of(Trait::Network));
    evidence.trial_ended(&order, Some(found), 4, 0);
    for number in 0..80_000 {
        let invented = page(&format!("/?p={number}"));
        evidence.begin(invented, &from(ATTACKER, &[]), (1, false), 1);
    }
    let shown = (OwnEnd::Storable(FORM), Some(FORM));
    let later = MINUTE + 10_000;
    visit(&evidence, (name, from(ONE, &[])), shown, later);
    assert_eq!(evidence.standing(name, &voter, later), Standing::Unproven);
}

/// A burst of first visits to other pages: no second visitor asks for them, so that their answers wait.
#[test]
fn a_new_page_is_compared_though_many_others_wait() {
    let evidence = Evidence::default();
    let attacker = from(ATTACKER, &[]);
    let first = (OwnEnd::Storable(1), None);
    for number in 0..8_000 {
        let name = page(&format!("/?p={number}"));
        visit(&evidence, (name, attacker), first, number * 7);
    }
    for number in 0..100 {
        let name = page(&format!("/news/{number}"));
        own(evidence.begin(name, &from(ONE, &[]), (1, false), 8_000 * 7));
    }
}

#[test]
fn invented_values_of_one_trait_push_out_none_of_another() {
    let evidence = Evidence::default();
    let shown = (OwnEnd::Storable(1), Some(1));
    for referer in 0..96 {
        for (path, address) in [("/a", ATTACKER), ("/b", [77, 7, 7, 7])] {
            let who = from(address, &[(Trait::Referer, 1000 + referer)]);
            visit(&evidence, (page(path), who), shown, 0);
        }
    }
    let later = 24 * 60 * MINUTE;
    let german = |address| from(address, &[(Trait::Language, 3)]);
    for (number, address) in [ONE, OTHER].into_iter().cycle().take(200).enumerate() {
        let name = page(&format!("/{number}"));
        visit(&evidence, (name, german(address)), shown, later);
    }
    let french = from(ONE, &[(Trait::Language, 9)]);
    visit(&evidence, (page("/c"), french), shown, later);
    assert_eq!(
        evidence.standing(page("/c"), &german(OTHER), later),
        Standing::Shared
    );
}

#[test]
fn one_address_that_matters_does_not_stand_for_all() {
    let (evidence, name) = (Evidence::default(), page("/poll"));
    share_form(&evidence, name);
    // One client, three requests at once, by three links.
    let begin = |link: u32| {
        let voter = from(VOTER, &[(Trait::Referer, 50 + link)]);
        own(evidence.begin(name, &voter, (u64::from(link), true), 0))
    };
    let runs: Vec<OwnRun> = (0u32..3).map(begin).collect();
    for (run, now) in runs.iter().zip(10..) {
        // Each is slower than the trial of the one before.
        let order = evidence.own_ended(run, OwnEnd::Storable(RESULTS), Some(FORM), now);
        let found = TrialVerdict::Depends(TraitSet::of(Trait::Network));
        evidence.trial_ended(&order.expect("a trial"), Some(found), 1, now);
    }
    let other = from(OTHER, &[]);
    assert_eq!(evidence.standing(name, &other, 20), Standing::Shared);
}

#[test]
fn findings_about_one_page_are_of_one_page_of_its_folder() {
    let (evidence, name) = (Evidence::default(), page("/a"));
    let begin = |cookie: u32| {
        let attacker = from(ATTACKER, &[(Trait::Cookies, 50 + cookie)]);
        own(evidence.begin(name, &attacker, (u64::from(cookie), true), 0))
    };
    let runs: Vec<OwnRun> = (0u32..2).map(begin).collect();
    for run in &runs {
        let order = evidence.own_ended(run, OwnEnd::Storable(RESULTS), Some(FORM), 1);
        let found = TrialVerdict::Depends(TraitSet::of(Trait::Cookies));
        evidence.trial_ended(&order.expect("a trial"), Some(found), 4, 2);
    }
    assert!(!evidence.keyed(page("/other")).has(Trait::Cookies));
}

/// A partner's link that shows in one browser alone.
#[test]
fn an_agreement_that_was_under_way_does_not_undo_a_finding() {
    let (evidence, name) = (Evidence::default(), page("/"));
    let shown = (OwnEnd::Storable(FORM), Some(FORM));
    visit(
        &evidence,
        (name, from(OTHER, &[(Trait::Agent, 2)])),
        shown,
        0,
    );
    let with_app = from(ONE, &[(Trait::Referer, 5), (Trait::Agent, 2)]);
    let with_another = from(VOTER, &[(Trait::Referer, 5), (Trait::Agent, 3)]);
    let run = own(evidence.begin(name, &with_app, (1, true), 0));
    let late = own(evidence.begin(name, &with_another, (2, true), 0));
    let order = evidence.own_ended(&run, OwnEnd::Storable(RESULTS), Some(FORM), 1);
    let found = TrialVerdict::Depends(TraitSet::of(Trait::Referer));
    evidence.trial_ended(&order.expect("a trial"), Some(found), 4, 2);
    evidence.own_ended(&late, OwnEnd::Storable(FORM), Some(FORM), 4);
    assert_eq!(
        evidence.standing(name, &with_app, 5),
        Standing::Depends(Trait::Referer)
    );
}

fn rendered(text: &str) -> Rendering {
    let mut renderer = Renderer::new(200, std::iter::empty(), true);
    renderer.read(text.as_bytes());
    renderer.finish()
}

/// A comment is written after some request of a trial. A page that differs each time would put nobody in doubt.
#[test]
fn a_page_that_changed_once_during_a_trial_does_not_differ_each_time() {
    let traits = TraitSet::of(Trait::Network).with(Trait::Referer);
    for at in 1..5 {
        let mut trial = Trial::new(traits).of_answer(Some(rendered("<p>older").digest));
        let mut requests = 0;
        let verdict = loop {
            match trial.next() {
                TrialStep::Done(verdict) => break verdict,
                TrialStep::Fetch(with) | TrialStep::FetchLater(with) => {
                    let text = match requests < at {
                        true => "<p>old",
                        false => "<p>old<p>comment",
                    };
                    trial.note(with, Some(rendered(text)));
                    requests += 1;
                }
            }
        };
        let each_time = TrialVerdict::Agree { each_time: true };
        assert_ne!(verdict, each_time, "after {at}");
    }
}

/// Else all threads look closely at each hit again.
#[test]
fn answers_of_one_person_end_what_is_remembered_of_all_once() {
    let (evidence, name) = (Evidence::default(), page("/a"));
    share_form(&evidence, name);
    let before = evidence.epoch();
    for number in 0..1000 {
        let who = from(ATTACKER, &[(Trait::Referer, 50 + number)]);
        let part = evidence.begin(name, &who, (u64::from(number), true), 10);
        if let Part::Own {
            compared: Some(run),
            ..
        } = part
            && let Some(order) = evidence.own_ended(&run, OwnEnd::NotStorable, Some(FORM), 10)
        {
            evidence.trial_ended(&order, None, 1, 10);
        }
    }
    let times = evidence.epoch() - before;
    assert!(times < 10, "{times} times");
}

#[test]
fn an_audit_that_cannot_be_paid_stays_due() {
    let (evidence, name) = (Evidence::default(), page("/poll"));
    share_form(&evidence, name);
    // Trials on other pages, which make more requests than were set aside, leave nothing.
    for number in 0..3 {
        let odd = from(ATTACKER, &[(Trait::Referer, 50 + number)]);
        let differs = (OwnEnd::Storable(1), Some(2));
        let other = page(&format!("/x{number}"));
        if let Some(order) = visit(&evidence, (other, odd), differs, 10_000) {
            evidence.trial_ended(&order, None, 24, 10_000);
        }
    }
    let voter = from(VOTER, &[]);
    assert!(evidence.takes_audit(name, &voter, 11_000).is_none());
    assert!(evidence.takes_audit(name, &voter, 30_000).is_some());
}
