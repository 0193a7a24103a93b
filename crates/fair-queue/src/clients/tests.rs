//! Tests of the turns that clients get.

use super::*;
use crate::queue::{FairQueue, Search};
use crate::slots::Slots;

const BROWSER: &[u8] = b"Mozilla/5.0 (X11; Linux x86_64)";

struct Site {
    clients: Clients,
    assets: AssetMarks,
    pages: u32,
}

impl Site {
    fn new() -> Self {
        Self {
            clients: Clients::default(),
            assets: AssetMarks::default(),
            pages: 0,
        }
    }

    fn ask(&mut self, address: [u8; 4], path: &str, cookies: &str) -> Assessment {
        let visit = Visit {
            address: Some(address.into()),
            agent: BROWSER,
            cookies: cookies.as_bytes(),
            page: (b"site", path.as_bytes()),
            ..Visit::default()
        };
        self.clients.assess(&visit, &self.assets, 1000)
    }

    /// Asks for a page that is asked for once.
    fn ask_cold(&mut self, address: [u8; 4]) -> Assessment {
        self.pages += 1;
        let path = format!("/cold/{}", self.pages);
        self.ask(address, &path, "")
    }

    fn load_asset(&self, address: [u8; 4]) {
        let client = self.clients.client(Some(address.into()), BROWSER);
        self.assets.mark(client, 1000);
    }
}

#[test]
fn a_newcomer_has_the_turn_of_the_address() {
    let mut site = Site::new();
    let first = site.ask_cold([192, 0, 2, 1]);
    assert_eq!(first.class, Class::Visitor);
    assert_eq!(first.turn.kind.to_string(), "192.0.2.1");
    assert_eq!(site.ask_cold([192, 0, 2, 1]).turn, first.turn);
    assert_ne!(site.ask_cold([192, 0, 2, 2]).turn, first.turn);
}

#[test]
fn ipv6_clients_have_the_turn_of_their_64() {
    let mut clients = Clients::default();
    let mut of = |address: &str| {
        let visit = Visit {
            address: Some(address.parse().unwrap()),
            ..Visit::default()
        };
        clients.assess(&visit, &AssetMarks::default(), 0).turn
    };
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
}

#[test]
fn who_names_itself_a_crawler_is_one() {
    let mut site = Site::new();
    site.load_asset([192, 0, 2, 1]);
    let mut turn_of = |name, evidence| {
        let name = CrawlerName { name, evidence };
        let visit = Visit {
            address: Some([192, 0, 2, 1].into()),
            agent: BROWSER,
            crawler: Some(name),
            ..Visit::default()
        };
        let assessed = site.clients.assess(&visit, &site.assets, 1000);
        assert_eq!(assessed.class, Class::Crawler);
        assert_eq!(assessed.turn.kind, TurnKind::Crawler(name));
        assessed.turn
    };
    let genuine = turn_of("googlebot", NameEvidence::Verified);
    let claimant = turn_of("googlebot", NameEvidence::Unverified);
    assert_ne!(
        genuine.id, claimant.id,
        "false ones take nothing of its turn"
    );
    assert!(genuine.is_search_engine() && !claimant.is_search_engine());
    assert!(turn_of("googlebot", NameEvidence::Unchecked).is_search_engine());
    assert!(!turn_of("gptbot", NameEvidence::NoSearchEngine).is_search_engine());
}

#[test]
fn many_cold_pages_without_an_asset_make_a_crawler_and_assets_none() {
    let mut site = Site::new();
    for _ in 0..39 {
        assert_eq!(site.ask_cold([192, 0, 2, 1]).class, Class::Visitor);
    }
    assert_eq!(site.ask_cold([192, 0, 2, 1]).class, Class::Crawler);
    for _ in 0..200 {
        site.load_asset([198, 51, 100, 1]);
        assert_eq!(site.ask_cold([198, 51, 100, 1]).class, Class::Visitor);
    }
}

#[test]
fn pages_that_others_ask_for_make_no_crawler() {
    let mut site = Site::new();
    for page in 0..100 {
        let path = format!("/{page}");
        site.ask([192, 0, 2, 1], &path, "");
        site.load_asset([192, 0, 2, 1]);
        let reader = site.ask([198, 51, 100, 1], &path, "");
        assert_eq!(reader.class, Class::Visitor);
    }
}

#[test]
fn addresses_that_behave_alike_share_a_turn_until_they_load_an_asset() {
    let mut site = Site::new();
    for host in 1..=30 {
        site.ask_cold([192, 0, 2, host]);
    }
    let (one, other) = (
        site.ask_cold([192, 0, 2, 31]),
        site.ask_cold([192, 0, 2, 32]),
    );
    assert_eq!(one.class, Class::Visitor, "nobody new is a crawler");
    assert_eq!(one.turn.kind.to_string(), "192.0.2.0/24 without assets");
    assert_eq!(one.turn.id, other.turn.id);
    site.load_asset([192, 0, 2, 32]);
    let visitor = site.ask_cold([192, 0, 2, 32]);
    assert_eq!(visitor.turn.kind.to_string(), "192.0.2.32");
    let elsewhere = site.ask_cold([203, 0, 113, 1]);
    assert_eq!(elsewhere.turn.kind.to_string(), "203.0.113.1");
}

#[test]
fn six_hundred_networks_of_one_agent_share_a_turn_as_well() {
    let mut site = Site::new();
    for number in 0..600_u16 {
        let [high, low] = number.to_be_bytes();
        site.ask_cold([10, high, low, 1]);
    }
    let (one, other) = (
        site.ask_cold([10, 100, 0, 1]),
        site.ask_cold([10, 200, 0, 1]),
    );
    assert_eq!(one.turn.kind, TurnKind::Agent);
    assert_eq!(one.turn.id, other.turn.id);
}

#[test]
fn a_crowd_of_browsers_leaves_newcomers_their_turns() {
    let mut site = Site::new();
    for host in 1..=200 {
        site.ask_cold([192, 0, 2, host]);
        site.load_asset([192, 0, 2, host]);
        site.ask_cold([192, 0, 2, host]);
    }
    let newcomer = site.ask_cold([192, 0, 2, 201]);
    assert_eq!(newcomer.turn.kind.to_string(), "192.0.2.201");
}

#[test]
fn a_session_is_a_turn_once_the_site_has_given_it() {
    let mut site = Site::new();
    let address = [192, 0, 2, 1];
    let made_up = site.ask(address, "/", "PHPSESSID=0123456789abcdef0123");
    assert_eq!(made_up.turn.kind.to_string(), "192.0.2.1");
    let given = b"PHPSESSID=0123456789abcdef0123; path=/; HttpOnly";
    site.clients
        .note_set_cookie(Some(address.into()), given, 1000);
    let session = site.ask(address, "/", "a=b; PHPSESSID=0123456789abcdef0123");
    assert_eq!(session.turn.kind.to_string(), "session of 192.0.2.1");
    let other = site.ask(address, "/", "PHPSESSID=0123456789abcdef0124");
    assert_ne!(other.turn, session.turn);
    let visit = Visit {
        address: Some(address.into()),
        cookies: b"PHPSESSID=0123456789abcdef0123",
        writes: true,
        ..Visit::default()
    };
    let write = site.clients.assess(&visit, &site.assets, 1000);
    assert_eq!((write.class, write.turn), (Class::Writer, session.turn));
}

#[test]
fn a_choice_that_many_share_is_no_session() {
    let mut site = Site::new();
    let address = Some([192, 0, 2, 1].into());
    site.clients.note_set_cookie(address, b"lang=de; path=/", 0);
    let visitor = site.ask([192, 0, 2, 1], "/", "lang=de");
    assert_eq!(visitor.turn.kind.to_string(), "192.0.2.1");
}

#[test]
fn a_thousand_sessions_of_one_address_are_turns_and_ten_thousand_are_not() {
    let mut site = Site::new();
    let address = [192, 0, 2, 1];
    let cookie = |number: usize| format!("PHPSESSID={number:032}");
    for number in 0..10_000 {
        let value = cookie(number);
        site.clients
            .note_set_cookie(Some(address.into()), value.as_bytes(), 1000);
    }
    let mut turns = std::collections::HashSet::new();
    for number in 0..10_000 {
        turns.insert(site.ask(address, "/", &cookie(number)).turn.id);
    }
    assert!((1000..=1026).contains(&turns.len()), "{}", turns.len());
}

/// A client that takes a session with each request and loads no asset stays a crawler.
#[test]
fn sessions_do_not_help_a_crawler() {
    let mut site = Site::new();
    let address = [192, 0, 2, 1];
    for number in 0..200 {
        site.ask_cold(address);
        let value = format!("PHPSESSID={number:032}");
        site.clients
            .note_set_cookie(Some(address.into()), value.as_bytes(), 1000);
    }
    let path = "/another";
    let crawler = site.ask(address, path, &format!("PHPSESSID={:032}", 7));
    assert_eq!(crawler.class, Class::Crawler);
}

#[test]
fn a_refused_client_is_logged_once_a_minute() {
    let mut clients = Clients::default();
    let (one, other) = (Turn::numbered(1), Turn::numbered(2));
    assert!(clients.may_log(&one, 0));
    assert!(!clients.may_log(&one, 59_999));
    assert!(clients.may_log(&other, 59_999));
    assert!(clients.may_log(&one, 60_000));
    assert!(!clients.may_log(&one, 60_001));
}

/// Somebody new with the browser that a storm from many addresses names.
#[test]
fn a_newcomer_goes_first_within_a_turn_that_is_shared() {
    let mut site = Site::new();
    for host in 1..=30 {
        site.ask_cold([192, 0, 2, host]);
    }
    let bot = site.ask_cold([192, 0, 2, 1]).turn;
    let visitor = site.ask_cold([192, 0, 2, 200]).turn;
    assert_eq!(bot.id, visitor.id);
    let mut queue: FairQueue<&str> = FairQueue::new(true);
    for _ in 0..60 {
        queue.join(Class::Visitor, &bot, "bot", 1000);
    }
    queue.join(Class::Visitor, &visitor, "visitor", 1000);
    let (_, first) = queue
        .next(Slots::default(), &mut Search::default(), 1000)
        .unwrap();
    assert_eq!(*first, "visitor");
}
