//! Demands of RFC 9110 and RFC 9111 on a cache for which nginx has no rule or another one
//! (`docs/nginx-differences.md`), by their sections.

use super::*;

const VALIDATED: &str = "Cache-Control: no-cache\r\n";

/// RFC 9111 §5.2.2.4
#[tokio::test]
async fn no_cache_is_stored_and_validated_on_each_use() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "").await;
        site.put("/t", tagged(VALIDATED, "\"1\"", "page"));
        site.expect(&[("/t", "MISS", "page")]).await;
        for times in 2..4 {
            let reply = site.get("/t").await;
            assert_eq!(
                (reply.x_cache(), reply.text()),
                ("REVALIDATED", "page".to_owned())
            );
            assert_eq!(site.asked().len(), times, "{spelling:?}");
            assert_eq!(site.last_asked().field("if-none-match"), "\"1\"");
        }
        site.page("/t", "", "new");
        assert_eq!(site.get("/t").await.text(), "new", "{spelling:?}");
        // A visitor with a cookie may get another page.
        site.put("/t", tagged(VALIDATED, "\"2\"", "page"));
        site.get("/t").await;
        site.get_with("/t", "Cookie: a=b\r\n").await;
        assert_eq!(site.last_asked().field("if-none-match"), "");
    }
}

/// RFC 9111 §5.2.2.4: waiting for another's answer is no validation.
#[tokio::test]
async fn no_cache_is_not_shared_with_those_who_wait() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "").await;
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let held = gate.clone();
        site.put("/t", move |_| {
            OriginAnswer::status(200, "Cache-Control: no-cache\r\nETag: \"1\"\r\n")
                .wait_for(&held)
                .then("page")
        });
        let mut first = site.begin("/t").await;
        site.until_asked(1).await;
        let mut second = site.begin("/t").await;
        gate.add_permits(2);
        let mut cache = Vec::new();
        for client in [&mut first, &mut second] {
            let reply = client.receive(false).await.expect("an answer");
            assert_eq!(reply.text(), "page", "{spelling:?}");
            cache.push(reply.field("x-cache").to_owned());
        }
        assert_eq!(site.asked().len(), 2, "{spelling:?}: {cache:?}");
    }
}

/// RFC 9110 §8.8.2.2: a page may change twice in one second.
#[tokio::test]
async fn a_date_that_may_stand_for_two_contents_validates_nothing_unless_told_to() {
    const MODIFIED: &str = "Mon, 02 Mar 2015 17:20:58 GMT";
    for spelling in Spelling::BOTH {
        for (rules, date, is_validated) in [
            ("", "Mon, 02 Mar 2015 17:21:57 GMT", false),
            ("", "Mon, 02 Mar 2015 17:21:58 GMT", true),
            (
                "*_cache_revalidate on;",
                "Mon, 02 Mar 2015 17:20:58 GMT",
                true,
            ),
            (
                "*_cache_revalidate off;",
                "Mon, 02 Mar 2015 17:21:58 GMT",
                false,
            ),
        ] {
            let rules = format!("*_cache_valid any 20ms; {rules}");
            let site = Site::caching(spelling, &rules).await;
            let fields = format!("Date: {date}\r\nLast-Modified: {MODIFIED}\r\n");
            site.page("/t", &fields, "page");
            site.get("/t").await;
            site.past_its_lifetime("/t", "").await;
            let condition = match is_validated {
                true => MODIFIED,
                false => "",
            };
            let asked = site.last_asked();
            assert_eq!(
                asked.field("if-modified-since"),
                condition,
                "{spelling:?} {rules} {date}"
            );
        }
    }
}

/// RFC 9111 §4.2.4
#[tokio::test]
async fn a_stale_page_is_shown_when_the_origin_is_gone_unless_it_says_otherwise() {
    for spelling in Spelling::BOTH {
        for (rules, fields, status) in [
            ("", "", 200),
            ("", "Cache-Control: must-revalidate\r\n", 502),
            ("", "Cache-Control: proxy-revalidate\r\n", 502),
            ("*_cache_use_stale off;", "", 502),
        ] {
            let rules = format!("*_cache_valid 200 20ms; {rules}");
            let mut site = Site::caching(spelling, &rules).await;
            site.page("/t", fields, "page");
            site.get("/t").await;
            // The old one ends with this.
            site.origin = Origin::start(spelling, |_| OriginAnswer::status(404, "")).await;
            let reply = site.past_its_lifetime("/t", "").await;
            assert_eq!(reply.status, status, "{spelling:?} {rules} {fields}");
        }
    }
}

/// RFC 9110 §6.6.1 and §7.6.1, RFC 9111 §3.1 and §5.1
#[tokio::test]
async fn a_hit_has_the_date_of_its_response_and_no_field_of_the_connection() {
    const FIELDS: &str = "Cache-Control: max-age=36000\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Connection: x-hop\r\nX-Hop: 1\r\nX-End: 2\r\n";
    for spelling in Spelling::BOTH {
        let site = Site::caching(
            spelling,
            "*_ignore_headers Cache-Control; *_cache_valid 1h;",
        )
        .await;
        site.page("/t", FIELDS, "page");
        for _ in 0..2 {
            let reply = site.get("/t").await;
            let date = reply.field("date");
            assert_eq!(date, "Sun, 06 Nov 1994 08:49:37 GMT", "{spelling:?}");
            assert_eq!((reply.has("x-hop"), reply.field("x-end")), (false, "2"));
        }
        site.page("/undated", "", "page");
        let first = site.get("/undated").await;
        let hit = site.get("/undated").await;
        assert_eq!(hit.x_cache(), "HIT", "{spelling:?}");
        assert_eq!(first.field("date"), hit.field("date"), "{spelling:?}");
        site.page(
            "/old",
            "Cache-Control: max-age=36000\r\nAge: 30\r\n",
            "page",
        );
        let other = Site::caching(spelling, "").await;
        other.page(
            "/old",
            "Cache-Control: max-age=36000\r\nAge: 30\r\n",
            "page",
        );
        let reply = other.get("/old").await;
        assert_eq!((reply.x_cache(), reply.field("age")), ("MISS", "30"));
    }
}

/// RFC 9111 §4.4
#[tokio::test]
async fn a_method_that_is_not_known_removes_the_page_once_it_succeeds() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "").await;
        for (status, cache) in [(500, "HIT"), (200, "MISS")] {
            site.page("/t", FOR_HOURS, "page");
            site.get("/t").await;
            site.put("/t", move |_| OriginAnswer::status(status, "").then("done"));
            site.server.target().ask("LOCK", "/t", "", "").await;
            site.page("/t", FOR_HOURS, "page");
            let reply = site.get("/t").await;
            assert_eq!(reply.x_cache(), cache, "{spelling:?} {status}");
        }
    }
}

/// RFC 9111 §4.3.4: the fields of a 304 are for the visitor who asked, as far as they may not be
/// stored.
#[tokio::test]
async fn a_cookie_of_a_304_is_for_the_visitor_who_asked() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 200 20ms;").await;
        site.page("/t", "ETag: \"1\"\r\n", "page");
        site.get("/t").await;
        site.put("/t", |_| OriginAnswer::status(304, "Set-Cookie: a=1\r\n"));
        let reply = site.past_its_lifetime("/t", "").await;
        let seen = (reply.status, reply.text(), reply.field("set-cookie"));
        assert_eq!(seen, (200, "page".to_owned(), "a=1"), "{spelling:?}");
        site.put("/t", |_| OriginAnswer::status(304, ""));
        let reply = site.past_its_lifetime("/t", "").await;
        assert!(!reply.has("set-cookie"), "{spelling:?}");
    }
}

/// RFC 9111 §4.2.3: the age that a 304 has gathered on its way counts.
#[tokio::test]
async fn a_page_is_as_old_as_the_304_that_validated_it() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "").await;
        site.put("/t", tagged(VALIDATED, "\"1\"", "page"));
        site.get("/t").await;
        let fields = "Cache-Control: max-age=36000\r\nAge: 30\r\n";
        site.put("/t", move |_| OriginAnswer::status(304, fields));
        site.expect(&[("/t", "REVALIDATED", "page")]).await;
        let reply = site.get("/t").await;
        assert_eq!(reply.x_cache(), "HIT", "{spelling:?}");
        let age: u64 = reply.field("age").parse().expect("an age");
        assert!(age >= 30, "{spelling:?} {age}");
    }
}

/// RFC 9111 §4.2.2
#[tokio::test]
async fn a_heuristic_lifetime_is_for_requests_without_cookies() {
    const MODIFIED: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "cache_heuristic on;").await;
        site.page("/t", MODIFIED, "page");
        site.get_with("/t", "Cookie: a=b\r\n").await;
        assert_eq!(site.get("/t").await.x_cache(), "MISS", "{spelling:?}");
        assert_eq!(site.get("/t").await.x_cache(), "HIT", "{spelling:?}");
    }
}
