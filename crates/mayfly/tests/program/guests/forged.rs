//! Writes that no page of the site has sent: the application refuses them as it does without a cache.

use super::application::{FormEncoding, Look, Rules};
use super::{Browser, FORGED, Form, GuestSite, HOST, Origin, Visitor};
use crate::visits::{Mark, ask_port};

#[tokio::test]
async fn forged_writes_are_refused_as_the_application_refuses_them() {
    for sending in [FormEncoding::Form, FormEncoding::Header] {
        let rules = Rules {
            sending,
            look: Look::Base64,
            ..Rules::default()
        };
        let guests = GuestSite::start(rules).await;
        let site = &guests.site;
        guests.warm("/page/1").await;
        // The attacker has the same page from memory.
        let (attacker, _) = guests.arrive(40, "/page/1").await;
        let form = attacker.form.clone();
        for (nth, origin) in FORGED.into_iter().enumerate() {
            let mut guest = Visitor::new(HOST, nth);
            let mut user = guest.clone();
            user.get(site, "/page/1").await;
            user.write(site, &rules, ("name", "user")).await;
            guest.form = form.clone();
            user.form = form.clone();
            let before = guests.sessions.state(HOST, user.sid());
            assert!(before.is_some());
            for (name, victim) in [("guest", &mut guest), ("user", &mut user)] {
                let reply = victim.write_from(site, &rules, ("cart", "x"), origin).await;
                let seen = (reply.status, reply.text());
                assert_eq!(seen, (403, "refused".to_owned()), "{origin:?}, {name}");
            }
            assert_eq!(
                guests.sessions.state(HOST, user.sid()),
                before,
                "{origin:?}"
            );
        }
        // The same from the page itself is none.
        let mut guest = Visitor::new(HOST, 1);
        guest.form = form;
        let reply = guest.write(site, &rules, ("cart", "x")).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
    }
}

#[tokio::test]
async fn a_forged_link_with_a_token_is_refused() {
    let guests = GuestSite::start(Rules::default()).await;
    let reply = guests.warm("/page/1").await;
    let link = Form::link(&reply);
    for origin in FORGED {
        let victim = Visitor::new(HOST, 2);
        let text = victim.link_text(&link, Mark::next(), origin);
        let reply = ask_port(guests.site.port, victim.from, &text).await;
        assert_eq!(
            (reply.status, reply.text()),
            (403, "refused".to_owned()),
            "{origin:?}"
        );
    }
    let reply = Visitor::new(HOST, 2).follow(&guests.site, &link).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
}

/// The server's token is known to anybody: a link may put it into a field that the visitor writes, or others read.
#[tokio::test]
async fn a_token_in_what_a_visitor_writes_is_not_exchanged() {
    for sending in FormEncoding::ALL {
        let rules = Rules {
            sending,
            ..Rules::default()
        };
        let guests = GuestSite::start(rules).await;
        let site = &guests.site;
        guests.warm("/page/1").await;
        let (mut guest, _) = guests.arrive(40, "/page/1").await;
        let form = guest.form.clone().expect("a form");
        let value = form.token.as_str();
        let written = |visitor: &Visitor| guests.sessions.state(HOST, visitor.sid());
        let reply = guest.write(site, &rules, ("name", value)).await;
        assert_eq!(reply.status, 303, "{sending:?}: {}", reply.text());
        assert_eq!(written(&guest).expect("a session").name, value);
        // A member with a form of before the log-in.
        guest.form = Some(form.clone());
        let reply = guest.write(site, &rules, ("language", value)).await;
        assert_eq!(reply.status, 303, "{sending:?}: {}", reply.text());
        assert_eq!(written(&guest).expect("a session").language, value);
        // A link that somebody has written on the site.
        let mut other = Visitor::new(HOST, 41);
        other.form = Some(form.clone());
        other.follow(site, &format!("/enter?name={value}")).await;
        assert_eq!(written(&other).expect("a session").name, value);
    }
}

/// A proxy that nobody has named has taken TLS off.
#[tokio::test]
async fn a_form_works_where_tls_ends_in_front_of_the_server() {
    let rules = Rules::default();
    let guests = GuestSite::start(rules).await;
    guests.warm("/page/1").await;
    let (guest, _) = guests.arrive(40, "/page/1").await;
    let text = guest.write_text(
        &rules,
        ("name", "rose"),
        Origin::Own(Browser::WithOrigin),
        Mark::next(),
    );
    let text = text
        .replace("Origin: http://", "Origin: https://")
        .replace("Referer: http://", "Referer: https://");
    assert!(text.contains("Origin: https://"), "{text}");
    let reply = ask_port(guests.site.port, guest.from, &text).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
}
