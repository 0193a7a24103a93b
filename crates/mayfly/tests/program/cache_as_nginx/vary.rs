//! A stored response for each value of the fields that `Vary` names.

use super::*;

const BY_PATH: &str = "*_cache_key $uri;";

/// Asks with these field lines, and compares the cache status.
async fn expect(site: &Site, steps: &[(&str, &str, &str)]) {
    for (index, &(target, fields, wanted)) in steps.iter().enumerate() {
        let reply = site.get_with(target, fields).await;
        let spelling = site.spelling;
        assert_eq!(
            reply.x_cache(),
            wanted,
            "{spelling:?} step {index}: {target} {fields}"
        );
    }
}

fn varies(by: &str) -> String {
    format!("{FOR_HOURS}Vary: {by}\r\n")
}

#[tokio::test]
async fn each_value_has_a_stored_response_of_its_own() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, BY_PATH).await;
        site.page("/", &varies("Accept-Encoding"), "page");
        let steps = [
            ("gzip", "MISS"),
            ("gzip", "HIT"),
            ("deflate", "MISS"),
            ("deflate", "HIT"),
            ("foo", "MISS"),
            ("foo", "HIT"),
            ("gzip", "HIT"),
        ];
        for (coding, wanted) in steps {
            let field = format!("Accept-Encoding: {coding}\r\n");
            expect(&site, &[("/", &field, wanted)]).await;
        }
        assert_eq!(site.origin.requests(), 3);
    }
}

#[tokio::test]
async fn a_response_that_does_not_vary_takes_the_place_of_all_that_did() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_key $uri; *_cache_valid any 20ms;").await;
        site.page("/t", "Vary: Accept-Encoding\r\n", "one of many");
        for coding in ["gzip", "deflate"] {
            let field = format!("Accept-Encoding: {coding}\r\n");
            expect(&site, &[("/t", &field, "MISS")]).await;
        }
        site.page("/t", FOR_HOURS, "the only one");
        let reply = site
            .past_its_lifetime("/t?novary", "Accept-Encoding: deflate\r\n")
            .await;
        assert_eq!(reply.x_cache(), "EXPIRED", "{spelling:?}");
        expect(&site, &[("/t?any", "Accept-Encoding: gzip\r\n", "HIT")]).await;
    }
}

#[tokio::test]
async fn each_of_them_is_validated_for_itself() {
    for spelling in Spelling::BOTH {
        let rules = "*_cache_key $uri; *_cache_valid any 20ms; *_cache_revalidate on;";
        let site = Site::caching(spelling, rules).await;
        let says = |fields: &str| {
            let fields = format!("{fields}Vary: Accept-Encoding\r\n");
            move |request: &Request| {
                let coding = request.field("accept-encoding").to_owned();
                tagged(&fields, &format!("\"{coding}\""), &coding)(request)
            }
        };
        let codings = ["gzip", "deflate"].map(|coding| format!("Accept-Encoding: {coding}\r\n"));
        site.put("/t", says(""));
        for field in &codings {
            expect(&site, &[("/t", field, "MISS")]).await;
        }
        site.put("/t", says(FOR_HOURS));
        for field in &codings {
            let reply = site.past_its_lifetime("/t", field).await;
            assert_eq!(reply.x_cache(), "REVALIDATED", "{spelling:?} {field}");
        }
        for field in &codings {
            expect(&site, &[("/t", field, "HIT")]).await;
        }
    }
}

#[tokio::test]
async fn vary_that_is_ignored_makes_no_difference() {
    for spelling in Spelling::BOTH {
        let rules = "*_cache_key $uri; *_ignore_headers Vary;";
        let site = Site::caching(spelling, rules).await;
        site.page("/t", &varies("Accept-Encoding"), "page");
        let steps = [
            ("/t", "Accept-Encoding: gzip\r\n", "MISS"),
            ("/t", "Accept-Encoding: deflate\r\n", "HIT"),
        ];
        expect(&site, &steps).await;
    }
}

#[tokio::test]
async fn vary_is_read_in_every_way_it_may_be_written() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, BY_PATH).await;
        site.page("/complex", &varies(",, Accept-encoding , ,"), "page");
        let two_lines = format!("{FOR_HOURS}Vary: Accept-Encoding\r\nVary: Foo\r\n");
        site.page("/multi", &two_lines, "page");
        let steps = [
            ("/complex", "Accept-Encoding: gzip\r\n", "MISS"),
            ("/complex", "Accept-Encoding: deflate\r\n", "MISS"),
            ("/complex", "Accept-Encoding: gzip\r\n", "HIT"),
            ("/complex", "Accept-Encoding: deflate\r\n", "HIT"),
            ("/multi", "Accept-Encoding: foo\r\n", "MISS"),
            ("/multi", "Accept-Encoding: foo\r\n", "HIT"),
            ("/multi", "Accept-Encoding: bar\r\n", "MISS"),
            ("/multi", "Accept-Encoding: foo\r\nFoo: 1\r\n", "MISS"),
        ];
        expect(&site, &steps).await;
    }
}

#[tokio::test]
async fn what_varies_by_everything_is_never_found_again() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, BY_PATH).await;
        site.page("/t", &varies("*"), "page");
        let steps = [
            ("/t", "Accept-Encoding: gzip\r\n", "MISS"),
            ("/t", "Accept-Encoding: gzip\r\n", "MISS"),
        ];
        expect(&site, &steps).await;
    }
}

#[tokio::test]
async fn values_that_mean_the_same_are_the_same() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, BY_PATH).await;
        site.page("/", &varies("Accept-Encoding"), "page");
        let steps = [
            ("/", "Accept-Encoding: foo, bar\r\n", "MISS"),
            ("/", "Accept-Encoding: foo,bar\r\n", "HIT"),
            ("/", "Accept-Encoding: foo,,  ,bar , \r\n", "HIT"),
            ("/", "Accept-Encoding: foobar\r\n", "MISS"),
        ];
        expect(&site, &steps).await;
    }
}

#[tokio::test]
async fn a_page_may_come_to_vary_by_something_else() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, BY_PATH).await;
        site.put("/cold", |request| {
            let query = request.target.split('?').nth(1).unwrap_or_default();
            let by = query.split('&').next().unwrap_or_default();
            let extra = "X".repeat(query.len());
            OriginAnswer::page(
                format!("{FOR_HOURS}Vary: {by}\r\nXtra: {extra}\r\n"),
                "page",
            )
        });
        let steps = [
            ("/cold?z", "z: 1\r\n", "MISS"),
            ("/cold?x,y", "x: 1\r\n", "MISS"),
            ("/cold?x,y", "x: 1\r\n", "HIT"),
            ("/cold?x,y&more", "x: 2\r\n", "MISS"),
            ("/cold?x,y&more", "x: 2\r\n", "HIT"),
            ("/cold?x,y", "x: 1\r\n", "HIT"),
        ];
        expect(&site, &steps).await;
        assert!(!site.server.error_log().contains("[crit]"));
    }
}
