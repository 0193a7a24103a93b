//! Writes that no page of the site has sent: the application refuses them as it does without a cache.

use super::application::{FormEncoding, Look, Rules};
use super::{FORGED, Form, GuestSite, HOST, Visitor};
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
