//! Changes between a lookup and the collapse that follows it, and facts that the lookup already knows.

use super::*;

#[test]
fn a_response_complete_between_lookup_and_collapse_is_found() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let filling = publish(client.lead(), SECOND, &[], None);
    let found = client.not_fresh();
    filling.complete(T0).expect("stored");
    assert!(matches!(client.collapse(&found), Join::Fresh(_)));
}

#[test]
fn a_refusal_between_lookup_and_collapse_is_heeded() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let leader = client.lead();
    let found = client.not_fresh();
    leader.not_shareable(Reason::Private, Duration::from_secs(5), T0);
    assert!(matches!(
        client.collapse(&found),
        Join::Alone(AloneReason::NotShareable(Reason::Private))
    ));
}

#[test]
fn a_stale_response_that_was_purged_after_the_lookup_is_not_used() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    publish(client.lead(), SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    let late = Client {
        now: T0.plus(Duration::from_secs(3)),
        ..Client::new(&zone, &[])
    };
    let found = late.not_fresh();
    assert!(matches!(found.kind, NotFreshKind::Stale(..)));
    zone.purge(
        PurgeTarget::Key(late.key.as_ref()),
        PurgeMode::Hard,
        late.now,
    );
    let leader = zone.refresh(&late.request(), &found).expect("leads");
    assert!(leader.stale().is_none());
}

#[test]
fn a_variant_that_is_missing_is_fetched_as_one_without_another_look() {
    let zone = zone();
    let (de, en) = (
        Client::new(&zone, &["L: de"]),
        Client::new(&zone, &["L: en"]),
    );
    let lines = &["Cache-Control: max-age=1", "Vary: L"];
    publish(de.lead(), lines, &de.fields, None)
        .complete(T0)
        .expect("stored");
    let found = en.not_fresh();
    assert!(matches!(found.kind, NotFreshKind::VaryMiss));
    let Join::Lead(leader) = en.collapse(&found) else {
        panic!("leads");
    };
    let names = leader.varies_on().map(|spec| spec.names().to_vec());
    assert_eq!(names, Some(vec!["l".to_owned()]));
    en.follow();
}

#[test]
fn what_is_known_of_the_site_tells_the_first_visitors_of_a_key_apart() {
    let zone = zone();
    let (de, en) = (
        Client::new(&zone, &["L: de"]),
        Client::new(&zone, &["L: en"]),
    );
    let site = key("site");
    zone.note_page_of_site(&site.as_ref(), &["l".to_owned()]);
    let expected = zone.site_varies_on(&site.as_ref());
    let expects = expected.as_ref();
    let join = |client: &Client| {
        let request = JoinRequest {
            expects,
            ..client.request()
        };
        zone.collapse(&request, &client.not_fresh())
    };
    let Join::Lead(german) = join(&de) else {
        panic!("leads");
    };
    assert_eq!(german.varies_on(), expected);
    let Join::Lead(_english) = join(&en) else {
        panic!("does not wait for the page in German");
    };
    assert!(matches!(join(&de), Join::Follow(_)));
}

#[test]
fn a_request_is_counted_once_however_often_it_looks_again() {
    let zone = zone();
    let client = Client::new(&zone, &[]);
    let counts = || {
        let stats = zone.stats();
        (stats.hits, stats.stale_hits, stats.misses)
    };
    let Join::Lead(leader) = client.collapse(&client.not_fresh()) else {
        panic!("leads");
    };
    assert_eq!(counts(), (0, 0, 1));
    publish(leader, SECOND, &[], None)
        .complete(T0)
        .expect("stored");
    let (key, fields) = (client.key.as_ref(), &client.fields);
    assert!(matches!(
        zone.find_again(&key, fields, T0),
        FoundResponse::Fresh(_)
    ));
    assert_eq!(counts(), (0, 0, 1));
    assert!(matches!(client.find(), FoundResponse::Fresh(_)));
    assert_eq!(counts(), (1, 0, 1));
    let late = Client {
        now: T0.plus(Duration::from_secs(3)),
        ..Client::new(&zone, &[])
    };
    assert!(late.refresh().is_some());
    assert_eq!(counts(), (1, 1, 1));
}
