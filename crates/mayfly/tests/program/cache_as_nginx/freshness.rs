//! How long responses are fresh, and how stale ones become fresh again.

use testkit::wait::TIMEOUT;

use super::*;

const LATER: &str = "Expires: Thu, 31 Dec 2037 23:55:55 GMT\r\n";
const LONG_AGO: &str = "Expires: Thu, 01 Jan 1970 00:00:01 GMT\r\n";

/// Compares the cache status of the second request if the origin answers with these fields.
async fn expect_second_answer(site: &Site, name: &str, fields: String, wanted: &str) {
    site.put("/t", move |_| OriginAnswer::status(204, fields.clone()));
    let target = format!("/t?{}", name.replace(' ', "_"));
    for wanted in ["MISS", wanted] {
        let reply = site.get(&target).await;
        assert_eq!(reply.x_cache(), wanted, "{:?} {name}", site.spelling);
    }
}

#[tokio::test]
async fn fields_of_the_response_decide_whether_it_is_stored() {
    #[rustfmt::skip]
    let cases = [
        ("expires", LATER.to_owned(), "HIT"),
        ("max-age", "Cache-Control: max-age=60\r\n".to_owned(), "HIT"),
        ("more seconds than a number holds", "Cache-Control: max-age=9223372036854775808\r\n".to_owned(), "HIT"),
        ("x-accel-expires", "X-Accel-Expires: 60\r\n".to_owned(), "HIT"),
        ("the first of two x-accel-expires", "X-Accel-Expires: 60\r\nX-Accel-Expires: 0\r\n".to_owned(), "HIT"),
        ("max-age before expires", format!("Cache-Control: max-age=60\r\n{LONG_AGO}"), "HIT"),
        ("max-age behind expires", format!("{LONG_AGO}Cache-Control: max-age=60\r\n"), "HIT"),
        ("no-cache before expires", format!("Cache-Control: no-cache\r\n{LATER}"), "MISS"),
        ("no-cache behind expires", format!("{LATER}Cache-Control: no-cache\r\n"), "MISS"),
        (
            "x-accel-expires before the others",
            format!("X-Accel-Expires: 60\r\n{LONG_AGO}Cache-Control: no-cache\r\n"), "HIT",
        ),
        (
            "x-accel-expires behind the others",
            format!("{LONG_AGO}Cache-Control: no-cache\r\nX-Accel-Expires: 60\r\n"), "HIT",
        ),
        (
            "x-accel-expires: 0 before the others",
            format!("X-Accel-Expires: 0\r\nCache-Control: max-age=60\r\n{LATER}"), "MISS",
        ),
        (
            "x-accel-expires: 0 behind the others",
            format!("Cache-Control: max-age=60\r\n{LATER}X-Accel-Expires: 0\r\n"), "MISS",
        ),
        ("no-cache with max-age", "Cache-Control: no-cache, max-age=60\r\n".to_owned(), "MISS"),
        (
            "no-cache and max-age in two lines",
            "Cache-Control: no-cache\r\nCache-Control: max-age=60\r\n".to_owned(), "MISS",
        ),
        ("a cookie is set", format!("Set-Cookie: foo=bar\r\n{LONG_AGO}Cache-Control: max-age=60\r\n"), "MISS"),
    ];
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_background_update on;").await;
        for (name, fields, wanted) in cases.clone() {
            expect_second_answer(&site, name, fields, wanted).await;
        }
    }
}

#[tokio::test]
async fn a_time_in_the_past_is_stored_as_stale() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_background_update on;").await;
        let may_be_stale = "Cache-Control: stale-while-revalidate=2145902155\r\n";
        for (name, fields, wanted) in [
            ("alone", "X-Accel-Expires: @60\r\n".to_owned(), "EXPIRED"),
            (
                "behind",
                format!("{may_be_stale}X-Accel-Expires: @1\r\n"),
                "STALE",
            ),
            (
                "before",
                format!("X-Accel-Expires: @1\r\n{may_be_stale}"),
                "STALE",
            ),
        ] {
            expect_second_answer(&site, name, fields, wanted).await;
        }
    }
}

#[tokio::test]
async fn fields_that_are_ignored_do_not_count() {
    for spelling in Spelling::BOTH {
        let rules = "*_ignore_headers Cache-Control Expires; *_ignore_headers X-Accel-Expires;";
        let site = Site::caching(spelling, rules).await;
        site.put("/t", |_| {
            let fields = format!("{LATER}Cache-Control: max-age=60\r\nX-Accel-Expires: 60\r\n");
            OriginAnswer::status(204, fields)
        });
        for _ in 0..2 {
            assert_eq!(site.get("/t").await.x_cache(), "MISS", "{spelling:?}");
        }
    }
}

#[tokio::test]
async fn the_response_goes_before_the_directive() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 200 401 1h;").await;
        for (path, fields) in [
            ("/short", "Cache-Control: max-age=1\r\n"),
            ("/shared", "Cache-Control: max-age=0, s-maxage=36000\r\n"),
            ("/silent", ""),
        ] {
            site.page(path, fields, "before");
            site.expect(&[(path, "MISS", "before")]).await;
            site.page(path, fields, "after");
        }
        let reply = site.past_its_lifetime("/short", "").await;
        assert_eq!(
            (reply.x_cache(), reply.text().as_str()),
            ("EXPIRED", "after")
        );
        site.expect(&[("/shared", "HIT", "before"), ("/silent", "HIT", "before")])
            .await;
    }
}

const WITH_FALLBACK: &str = "location / { PASS; *_cache zone; *_cache_valid 200 401 1h;\n\
     *_intercept_errors on; error_page 404 401 = @fallback; }\n\
     location @fallback { return 403; }";

#[tokio::test]
async fn an_intercepted_error_is_stored_by_its_own_lifetime() {
    for spelling in Spelling::BOTH {
        let site = Site::start(spelling, "", WITH_FALLBACK).await;
        site.put("/t", |_| OriginAnswer::status(404, FOR_HOURS).then("gone"));
        assert_eq!(site.get("/t").await.status, 403);
        site.page("/t", "", "here again");
        assert_eq!(site.get("/t").await.status, 403, "{spelling:?}");
        assert_eq!(site.origin.requests(), 1);
    }
}

#[tokio::test]
async fn an_intercepted_error_that_may_not_be_stored_is_asked_for_again() {
    for spelling in Spelling::BOTH {
        let site = Site::start(spelling, "", WITH_FALLBACK).await;
        site.put("/", |_| {
            OriginAnswer::status(401, "Cache-Control: no-cache\r\n")
        });
        assert_eq!(site.get("/").await.status, 403);
        site.page("/", "", "welcome");
        assert_eq!(site.get("/").await.text(), "welcome", "{spelling:?}");
    }
}

/// A page with this time, and 304 to a client that has it already.
fn dated(fields: &str, time: &str, body: &str) -> impl Fn(&Request) -> OriginAnswer + use<> {
    let fields = format!("{fields}Last-Modified: {time}\r\n");
    let (time, body) = (time.to_owned(), body.to_owned());
    move |request| match request.field("if-modified-since") == time {
        true => OriginAnswer::status(304, fields.clone()),
        false => OriginAnswer::page(fields.clone(), &body),
    }
}

const MONDAY: &str = "Mon, 02 Mar 2015 17:20:58 GMT";
const TUESDAY: &str = "Tue, 03 Mar 2015 17:20:58 GMT";
const REVALIDATING: &str = "*_cache_revalidate on; *_cache_valid any 20ms;";

#[tokio::test]
async fn a_validator_makes_a_stale_page_fresh_again() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, REVALIDATING).await;
        site.put("/dated", dated("", MONDAY, "kept"));
        site.put("/tagged", tagged("", "\"1\"", "kept"));
        for path in ["/dated", "/tagged"] {
            site.expect(&[(path, "MISS", "kept")]).await;
        }
        site.put("/dated", dated(FOR_HOURS, MONDAY, "other"));
        site.put("/tagged", tagged(FOR_HOURS, "\"1\"", "other"));
        for path in ["/dated", "/tagged"] {
            let reply = site.past_its_lifetime(path, "").await;
            let seen = (reply.status, reply.x_cache().to_owned(), reply.text());
            let wanted = (200, "REVALIDATED".to_owned(), "kept".to_owned());
            assert_eq!(seen, wanted, "{spelling:?} {path}");
            site.expect(&[(path, "HIT", "kept")]).await;
        }
    }
}

#[tokio::test]
async fn a_page_that_changed_takes_the_place_of_the_old_one() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, REVALIDATING).await;
        site.put("/dated", dated("", MONDAY, "old"));
        site.put("/tagged", tagged("", "\"1\"", "old"));
        for path in ["/dated", "/tagged"] {
            site.expect(&[(path, "MISS", "old")]).await;
        }
        site.put("/dated", dated(FOR_HOURS, TUESDAY, "new"));
        site.put("/tagged", tagged(FOR_HOURS, "\"2\"", "new"));
        for path in ["/dated", "/tagged"] {
            let reply = site.past_its_lifetime(path, "").await;
            assert_eq!((reply.x_cache(), reply.text().as_str()), ("EXPIRED", "new"));
            site.expect(&[(path, "HIT", "new")]).await;
        }
    }
}

#[tokio::test]
async fn only_pages_are_validated() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, REVALIDATING).await;
        let fields = format!("Last-Modified: {MONDAY}\r\nETag: \"1\"\r\n");
        site.put("/made", move |_| {
            OriginAnswer::status(201, fields.clone()).then("made")
        });
        assert_eq!(site.get("/made").await.x_cache(), "MISS");
        let reply = site.past_its_lifetime("/made", "").await;
        assert_eq!((reply.status, reply.x_cache()), (201, "EXPIRED"));
        let asked = site.last_asked();
        let conditions = [
            asked.field("if-modified-since"),
            asked.field("if-none-match"),
        ];
        assert_eq!(conditions, ["", ""], "{spelling:?}");
    }
}

#[tokio::test]
async fn a_page_that_was_gone_comes_back_whole() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, REVALIDATING).await;
        site.put("/t", tagged("", "\"1\"", "here"));
        site.expect(&[("/t", "MISS", "here")]).await;
        site.remove("/t");
        let reply = site.past_its_lifetime("/t", "").await;
        assert_eq!(reply.status, 404);
        site.put("/t", tagged("", "\"1\"", "here"));
        let back = async { while site.get("/t").await.text() != "here" {} };
        tokio::time::timeout(TIMEOUT, back)
            .await
            .expect("an end of the 404");
        // Between the two it never asked whether the 404 still held.
        let asked = site.asked();
        let conditional = asked
            .iter()
            .filter(|it| !it.field("if-none-match").is_empty());
        assert_eq!(conditional.count(), 1, "{spelling:?}");
    }
}
