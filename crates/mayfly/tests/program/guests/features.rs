//! What guests see: pages from memory, forms that work, their own carts and names.

use std::sync::Arc;
use std::time::Duration;

use control::explain::SessionPart;
use tokio::task::JoinSet;

use super::application::{Binding, FormEncoding, FrontPage, Limiter, Look, Rules};
use super::{Browser, Form, GuestSite, HOST, Origin, Visitor, line};
use crate::visits::explained::explain;
use crate::visits::{Mark, ask_port, is_from_memory, settle};

const FORM: &str = "/page/1";

#[tokio::test]
async fn the_third_guest_gets_the_page_of_a_session_from_memory_without_the_session() {
    for limiter in [
        Limiter::NoCache,
        Limiter::Private,
        Limiter::PrivateNoExpire,
        Limiter::Nothing,
    ] {
        let guests = GuestSite::start(Rules {
            limiter,
            gives_currency: true,
            ..Rules::default()
        })
        .await;
        for nth in 0..2 {
            let mut visitor = Visitor::new(HOST, nth);
            let reply = visitor.get(&guests.site, FORM).await;
            assert!(!is_from_memory(&reply), "{limiter:?}");
            let form = Form::of(FORM, &reply).expect("a form");
            let (sid, bound) = (visitor.sid(), visitor.bound());
            let is_own = guests.sessions.is_token_of(HOST, sid, &bound, &form.token);
            assert!(is_own, "{limiter:?}: {}", reply.text());
        }
        let reply = guests.warm(FORM).await;
        assert!(!reply.has("set-cookie"), "{limiter:?}: {:?}", reply.fields);
        let form = Form::of(FORM, &reply).expect("a form");
        assert!(!guests.sessions.has_issued(&form.token), "{limiter:?}");
    }
}

#[tokio::test]
async fn explain_says_what_is_known_of_a_session() {
    let guests = GuestSite::start(Rules::default()).await;
    let session = async |path: &str| {
        let told = explain(&guests.site, path, "", false).await;
        told.evidence.and_then(|evidence| evidence.session)
    };
    assert_eq!(session(FORM).await, None, "nobody has asked yet");
    guests.warm(FORM).await;
    let told = session(FORM).await;
    let Some(SessionPart::Shared { tokens, .. }) = told else {
        panic!("{told:?}")
    };
    assert!(tokens > 0, "the form has a token");
    // An address that names an action is never tried.
    guests.tries("/vote?page=1").await;
    let told = session("/vote?page=1").await;
    assert!(
        matches!(told, None | Some(SessionPart::Refused { .. })),
        "{told:?}"
    );
    // It may have written into the session: the page depends on nothing else that is said.
    let mut visitor = Visitor::new(HOST, 1);
    visitor.get(&guests.site, "/vote?page=1").await;
    assert!(!visitor.jar.is_empty());
    let reply = visitor.get(&guests.site, FORM).await;
    let status = reply.field("cache-status");
    assert!(status.ends_with("detail=cookie"), "{status}");
}

/// Guests ask for five pages again and again: how often they come from memory.
async fn crawls(guests: &GuestSite) -> usize {
    let mut from_memory = 0;
    for page in ["/", "/page/1", "/page/2", "/page/3", "/page/4"] {
        from_memory += guests.tries(page).await;
    }
    from_memory
}

#[tokio::test]
async fn what_the_application_itself_calls_private_stays_personal() {
    let rules_of = |limiter| Rules {
        limiter,
        ..Rules::default()
    };
    for limiter in [
        Limiter::OwnPrivate,
        Limiter::OwnNoStore,
        Limiter::OwnDefault,
        Limiter::VaryStar,
    ] {
        let guests = match limiter {
            Limiter::OwnDefault | Limiter::VaryStar => GuestSite::strict(rules_of(limiter)).await,
            _ => GuestSite::start(rules_of(limiter)).await,
        };
        assert_eq!(crawls(&guests).await, 0, "{limiter:?}");
        let before = guests.sessions.count();
        guests.tries(FORM).await;
        let begun = guests.sessions.count() - before;
        assert_eq!(begun, 8, "{limiter:?}: one session for each guest");
    }
    // It says so of most pages, and not of each.
    let rules = Rules {
        is_mixed: true,
        ..rules_of(Limiter::OwnDefault)
    };
    let guests = GuestSite::start(rules).await;
    guests.warm("/page/2").await;
    for page in ["/", "/page/1", "/page/3", "/page/4", "/page/5"] {
        assert_eq!(guests.tries(page).await, 0, "{page}");
    }
}

#[tokio::test]
async fn what_the_application_says_of_all_pages_alike_says_nothing_of_one() {
    for limiter in [Limiter::OwnDefault, Limiter::VaryStar] {
        let rules = Rules {
            limiter,
            ..Rules::default()
        };
        let guests = GuestSite::start(rules).await;
        assert_eq!(guests.tries(FORM).await, 0, "of one page");
        crawls(&guests).await;
        let (mut visitor, _) = guests.arrive(0, FORM).await;
        assert!(visitor.jar.is_empty());
        let reply = visitor.write(&guests.site, &rules, ("cart", "rose")).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
    }
}

#[tokio::test]
async fn who_is_led_to_the_log_in_form_is_a_guest_still() {
    let guests = GuestSite::start(Rules::default()).await;
    for page in ["/", "/page/1", "/page/2"] {
        guests.warm(page).await;
    }
    let settled = async |guests: &GuestSite, target: &str, nth| {
        let mut visitor = Visitor::new(HOST, nth);
        visitor.get(&guests.site, target).await;
        assert!(!visitor.jar.is_empty(), "{target}");
        tokio::time::sleep(Duration::from_millis(60)).await;
        let reply = visitor.get(&guests.site, "/page/2").await;
        (is_from_memory(&reply), line(&reply, "name"))
    };
    for nth in 0.. {
        if settled(&guests, "/account", nth).await.0 {
            break;
        }
        if nth == 50 {
            let told = explain(&guests.site, "/account", "", false).await;
            panic!("the redirect leaves the session as it was: {told:?}");
        }
    }
    // A link that logs in leads elsewhere than one that does not, or shows in another page.
    for (target, name) in [("/enter?name=rose", "rose"), ("/once?word=lily", "lily")] {
        for nth in 0..8 {
            let name = if nth > 0 && name == "lily" { "" } else { name };
            let found = settled(&guests, target, nth).await;
            assert_eq!(found, (false, name.to_owned()), "{target} {nth}");
        }
    }
}

/// Nothing in these addresses says that they write into the session; each shows what it writes, or the same to all. The first page
/// says what is in the session, and others do so or do not.
#[tokio::test]
async fn a_page_that_changes_another_one_is_not_shared() {
    let mut at_once = JoinSet::new();
    for is_discreet in [false, true] {
        at_once.spawn(changes_another_page(Rules {
            is_discreet,
            notes_reading: true,
            ..Rules::default()
        }));
    }
    at_once.join_all().await;
}

/// The first page says at times nothing of what another page does to a session: it cannot be made, or has another text than a
/// moment ago. `is_known`: guests share it until then.
#[tokio::test]
async fn a_page_is_not_shared_while_the_page_that_shows_what_it_does_says_nothing() {
    let mut at_once = JoinSet::new();
    for (front_page, is_known) in [
        (FrontPage::Busy, true),
        (FrontPage::Busy, false),
        (FrontPage::UnlikeOnce, true),
        (FrontPage::UnlikeOnce, false),
    ] {
        at_once.spawn(async move {
            let guests = reading_shows().await;
            if is_known {
                guests.warm("/").await;
            }
            guests.sessions.set_front_page(front_page);
            for nth in 0..20 {
                Visitor::new(HOST, nth).get(&guests.site, "/page/3").await;
                settle().await;
            }
            guests.sessions.set_front_page(FrontPage::AsUsual);
            for nth in 0..8 {
                let read = reads(&guests, nth).await;
                assert_eq!(read, "true", "{front_page:?}, {is_known}, {nth}");
            }
        });
    }
    at_once.join_all().await;
}

/// A first page that differs each time says nothing, and guests share a page of which it alone could say something. Once guests
/// share the first page, the other one is tried anew.
#[tokio::test]
async fn a_page_is_tried_anew_once_the_page_that_shows_what_it_does_is_shared() {
    let guests = reading_shows().await;
    guests.sessions.set_front_page(FrontPage::Unlike);
    guests.warm("/page/3").await;
    guests.sessions.set_front_page(FrontPage::AsUsual);
    guests.warm("/").await;
    for nth in 0..8 {
        assert_eq!(reads(&guests, nth).await, "true", "{nth}");
    }
}

async fn reading_shows() -> GuestSite {
    GuestSite::start(Rules {
        notes_reading: true,
        ..Rules::default()
    })
    .await
}

/// What the first page says to a guest who has seen `/page/3`.
async fn reads(guests: &GuestSite, nth: usize) -> String {
    let mut visitor = Visitor::new(HOST, nth);
    visitor.get(&guests.site, "/page/3").await;
    let reply = visitor.get(&guests.site, "/").await;
    line(&reply, "read")
}

async fn changes_another_page(rules: Rules) {
    let guests = GuestSite::start(rules).await;
    for page in ["/", FORM, "/page/2"] {
        guests.warm(page).await;
    }
    for (page, name, value) in [
        ("/set?language=fr", "language", "fr"),
        ("/choose/es", "language", "es"),
        ("/page/3", "read", "true"),
    ] {
        let verdict = guests.tried(page).await;
        let is_shared = matches!(verdict, SessionPart::Shared { .. });
        assert!(!is_shared, "{page}, {rules:?}: {verdict:?}");
        for nth in 0..4 {
            let mut visitor = Visitor::new(HOST, nth);
            let reply = visitor.get(&guests.site, page).await;
            assert!(!is_from_memory(&reply), "{page}, {rules:?}, {nth}");
            let reply = visitor.get(&guests.site, "/").await;
            assert_eq!(line(&reply, name), value, "{page}, {rules:?}, {nth}");
        }
    }
}

/// A guest's first write, from a page that came from memory.
async fn first_writes_work(rules: Rules, visitors: usize) {
    first_writes_from(FORM, rules, visitors).await;
}

#[tokio::test]
async fn the_form_of_a_page_that_is_not_found_works() {
    first_writes_from("/missing", Rules::default(), 3).await;
}

async fn first_writes_from(page: &str, rules: Rules, visitors: usize) {
    let guests = GuestSite::start(rules).await;
    let mut shown = guests.warm(page).await;
    // What is made of the second is found a second later.
    while Form::of(page, &shown).is_some_and(|form| form.token.contains(':')) {
        settle().await;
        shown = guests.warm(page).await;
    }
    for nth in 0..visitors {
        let (mut visitor, _) = guests.arrive(nth, page).await;
        assert!(visitor.jar.is_empty(), "{rules:?}");
        let mark = Mark::next();
        let item = format!("item{nth}");
        let origin = Origin::Own(visitor.browser);
        let text = visitor.write_text(&rules, ("cart", &item), origin, mark);
        let reply = ask_port(guests.site.port, visitor.from, &text).await;
        let browser = visitor.browser;
        assert_eq!(
            reply.status,
            303,
            "{rules:?}, {browser:?}: {}",
            reply.text()
        );
        assert_eq!(guests.sessions.own_runs(mark), 1, "{rules:?}");
        visitor.note("", &reply);
        let state = guests.sessions.state(HOST, visitor.sid());
        let cart = state.map(|state| state.cart);
        assert_eq!(cart, Some(vec![item]), "{rules:?}, {browser:?}");
        let reply = visitor.get(&guests.site, "/").await;
        assert_eq!(line(&reply, "cart"), "1", "{rules:?}");
        assert!(!is_from_memory(&reply), "{rules:?}");
    }
}

#[tokio::test]
async fn tokens_in_each_kind_of_write_are_exchanged() {
    let mut at_once = JoinSet::new();
    for sending in [
        FormEncoding::Form,
        FormEncoding::Multipart,
        FormEncoding::Header,
        FormEncoding::Json,
    ] {
        for look in [Look::Hex, Look::Base64, Look::Named] {
            let rules = Rules {
                sending,
                look,
                ..Rules::default()
            };
            at_once.spawn(first_writes_work(rules, 6));
        }
    }
    at_once.join_all().await;
}

#[tokio::test]
async fn tokens_that_are_bound_to_browser_or_address_are_exchanged() {
    for binding in [Binding::Agent, Binding::Address] {
        let rules = Rules {
            binding,
            ..Rules::default()
        };
        first_writes_work(rules, 6).await;
    }
}

#[tokio::test]
async fn a_token_that_is_refused_at_first_is_sent_later() {
    let rules = Rules {
        binding: Binding::Time,
        ..Rules::default()
    };
    first_writes_work(rules, 1).await;
}

#[tokio::test]
async fn a_token_in_a_link_is_exchanged() {
    for look in [Look::Hex, Look::Base64, Look::Named] {
        let rules = Rules {
            look,
            ..Rules::default()
        };
        let guests = GuestSite::start(rules).await;
        guests.warm(FORM).await;
        for nth in 0..6 {
            let (mut visitor, reply) = guests.arrive(nth, FORM).await;
            let reply = visitor.follow(&guests.site, &Form::link(&reply)).await;
            assert_eq!(reply.status, 303, "{look:?}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn twenty_guests_at_once_get_twenty_carts() {
    let rules = Rules::default();
    let guests = Arc::new(GuestSite::start(rules).await);
    guests.warm(FORM).await;
    let visits = (0..20).map(|nth| {
        let guests = Arc::clone(&guests);
        tokio::spawn(async move {
            let (mut visitor, _) = guests.arrive(nth, FORM).await;
            let item = format!("item{nth}");
            let what = ("cart", &*item);
            let reply = visitor.write(&guests.site, &rules, what).await;
            assert_eq!(reply.status, 303, "{}", reply.text());
            let state = guests.sessions.state(HOST, visitor.sid());
            assert_eq!(state.map(|state| state.cart), Some(vec![item]));
            visitor.sid().to_owned()
        })
    });
    let visits: Vec<_> = visits.collect();
    let mut sids = Vec::new();
    for visit in visits {
        sids.push(visit.await.expect("no panic"));
    }
    sids.sort_unstable();
    sids.dedup();
    assert_eq!(sids.len(), 20);
}

#[tokio::test]
async fn a_guest_with_a_session_gets_pages_from_memory_until_the_first_write_and_never_after() {
    let rules = Rules::default();
    let guests = GuestSite::start(rules).await;
    // The first guest is given a session.
    let mut visitor = Visitor::new(HOST, 0);
    visitor.get(&guests.site, FORM).await;
    assert!(!visitor.jar.is_empty());
    let sid = visitor.sid().to_owned();
    for page in [FORM, "/page/2", "/"] {
        let mut tries = 0;
        while !is_from_memory(&visitor.get(&guests.site, page).await) {
            guests.warm(page).await;
            tries += 1;
            assert!(tries < 20, "{page}");
        }
    }
    assert_eq!(visitor.sid(), sid);
    let reply = visitor.write(&guests.site, &rules, ("cart", "rose")).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    assert_eq!(visitor.sid(), sid, "the guest's own session");
    for _ in 0..3 {
        for page in ["/", FORM, "/page/2"] {
            let reply = visitor.get(&guests.site, page).await;
            assert!(!is_from_memory(&reply), "{page}");
            assert_eq!(line(&reply, "cart"), "1", "{page}");
        }
        settle().await;
    }
}

#[tokio::test]
async fn links_that_write_into_the_session_reach_the_application() {
    let mut at_once = JoinSet::new();
    for (is_discreet, redirects) in [(false, false), (true, false), (false, true)] {
        at_once.spawn(links_write(Rules {
            is_discreet,
            redirects,
            ..Rules::default()
        }));
    }
    at_once.join_all().await;
}

async fn links_write(rules: Rules) {
    let guests = GuestSite::start(rules).await;
    for page in ["/", FORM, "/page/2"] {
        guests.warm(page).await;
    }
    for (link, name, value) in [
        ("/set?language=fr", "language", "fr"),
        ("/add?item=rose", "cart", "1"),
    ] {
        for nth in 0..8 {
            let mut visitor = Visitor::new(HOST, nth);
            let reply = visitor.get(&guests.site, link).await;
            assert!(!is_from_memory(&reply), "{link}, {rules:?}, {nth}");
            let reply = visitor.get(&guests.site, "/").await;
            assert_eq!(line(&reply, name), value, "{link}, {rules:?}, {nth}");
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    }
    // A partner's argument shows nothing.
    for nth in 0..8 {
        let mut visitor = Visitor::new(HOST, nth);
        visitor.get(&guests.site, "/page/2?ref=partner").await;
        let state = guests.sessions.state(HOST, visitor.sid());
        let partner = state.map(|state| state.partner);
        assert_eq!(partner.as_deref(), Some("partner"), "{rules:?}, {nth}");
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

#[tokio::test]
async fn who_logs_in_gets_pages_of_their_own_until_they_log_out() {
    let rules = Rules::default();
    let guests = GuestSite::start(rules).await;
    for page in ["/", FORM] {
        guests.warm(page).await;
    }
    let mut users = Vec::new();
    for nth in 0..6 {
        let (mut user, _) = guests.arrive(nth, FORM).await;
        let name = format!("user{nth}");
        let reply = user.write(&guests.site, &rules, ("name", &name)).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        users.push((name, user));
    }
    for _ in 0..3 {
        for (name, user) in &mut users {
            for page in ["/", FORM] {
                let reply = user.get(&guests.site, page).await;
                assert_eq!(line(&reply, "name"), *name);
                assert!(!is_from_memory(&reply));
            }
            let (_, reply) = guests.arrive(50, FORM).await;
            assert_eq!(line(&reply, "name"), "");
        }
    }
    for (_, user) in &mut users {
        let reply = user.get(&guests.site, FORM).await;
        let reply = user.follow(&guests.site, &Form::link(&reply)).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        assert_eq!(user.sid(), "");
        let reply = user.get(&guests.site, FORM).await;
        assert_eq!(line(&reply, "name"), "");
    }
}

#[tokio::test]
async fn a_message_is_shown_once_to_who_has_written() {
    let rules = Rules::default();
    let guests = GuestSite::start(rules).await;
    for page in ["/", FORM] {
        guests.warm(page).await;
    }
    for nth in 0..6 {
        let (mut visitor, _) = guests.arrive(nth, FORM).await;
        let value = format!("note{nth}");
        visitor.write(&guests.site, &rules, ("note", &value)).await;
        let flash = line(&visitor.get(&guests.site, FORM).await, "flash");
        assert_eq!(flash.trim_end(), format!("note {value}"));
        assert_eq!(line(&visitor.get(&guests.site, FORM).await, "flash"), "");
        let other = Visitor::new(HOST, 60 + nth).get(&guests.site, FORM).await;
        assert_eq!(line(&other, "flash"), "");
    }
}

#[tokio::test]
async fn a_page_that_changes_is_shown_new_with_tokens_that_work() {
    let rules = Rules::default();
    let guests = GuestSite::start(rules).await;
    guests.warm(FORM).await;
    let (mut early, _) = guests.arrive(1, FORM).await;
    for edition in ["summer, and what grows there", "autumn"] {
        guests.sessions.edit(edition);
        guests.site.purge().await;
        let reply = guests.warm(FORM).await;
        assert_eq!(line(&reply, "edition"), edition);
        let (mut visitor, _) = guests.arrive(2, FORM).await;
        let reply = visitor.write(&guests.site, &rules, ("cart", "rose")).await;
        assert_eq!(reply.status, 303, "{edition}: {}", reply.text());
    }
    // The page that this guest has is two editions old.
    let reply = early.write(&guests.site, &rules, ("cart", "rose")).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
}

#[tokio::test]
async fn parts_and_heads_of_pages_come_from_memory_without_a_session() {
    let guests = GuestSite::start(Rules::default()).await;
    guests.warm(FORM).await;
    let mut visitor = Visitor::new(HOST, 3);
    visitor.browser = Browser::WithReferer;
    for (line, fields, status) in [
        (format!("HEAD {FORM}"), "", 200),
        (format!("GET {FORM}"), "Range: bytes=0-9\r\n", 206),
        (format!("GET {FORM}"), "Accept-Encoding: gzip\r\n", 200),
    ] {
        let text = visitor.get_text(&line, Mark::next(), fields);
        let mut tries = 0;
        let reply = loop {
            let reply = ask_port(guests.site.port, visitor.from, &text).await;
            assert_eq!(reply.status, status, "{line} {fields}");
            if is_from_memory(&reply) {
                break reply;
            }
            guests.warm(FORM).await;
            tries += 1;
            assert!(tries < 20, "{line} {fields}: {}", reply.x_cache());
        };
        assert!(!reply.has("set-cookie"), "{line} {fields}");
        let is_part = "page=/page/1\nedition=spring".starts_with(&reply.text());
        assert!(
            is_part || fields.contains("gzip"),
            "{line} {fields}: {}",
            reply.text()
        );
    }
}
