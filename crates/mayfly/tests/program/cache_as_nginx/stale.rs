//! Stale responses: when they are shown, and who fetches new ones meanwhile. (That a
//! refresh comes first in spite of `stale-while-revalidate` where there is no
//! background update: see `docs/nginx-differences.md`.)

use testkit::wait::TIMEOUT;
use tokio::sync::Semaphore;

use super::*;

const RULES: &str = "*_cache zone; *_cache_key $uri; *_cache_valid 200 20ms;\n\
     *_cache_revalidate on; *_cache_background_update on;";

const WHILE_REVALIDATE: &str = "Cache-Control: stale-while-revalidate=36000\r\n";

async fn site(spelling: Spelling, location: &str) -> Site {
    Site::start(spelling, RULES, location).await
}

/// The first answer that is not from a fresh stored response.
async fn expect_stale(site: &Site, target: &str, text: &str) {
    let reply = site.past_its_lifetime(target, "").await;
    let seen = (reply.x_cache(), reply.text());
    assert_eq!(seen, ("STALE", text.to_owned()), "{:?}", site.spelling);
}

async fn expect_new_page(site: &Site, target: &str) {
    let reply = site.comes_to(target, "HIT").await;
    assert_eq!(reply.text(), "new", "{:?}", site.spelling);
}

/// Visitors ask for `target`, and the origin has the page at `path`.
async fn expect_refresh_behind(site: &Site, path: &str, target: &str) {
    site.page(path, WHILE_REVALIDATE, "old");
    site.get(target).await;
    site.page(path, FOR_HOURS, "new");
    expect_stale(site, target, "old").await;
    expect_new_page(site, target).await;
}

/// The origin has a new page at `/t`, and sends it when the gate is opened.
fn hold_new_page(site: &Site) -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    site.put("/t", move |_| {
        OriginAnswer::status(200, FOR_HOURS)
            .wait_for(&held)
            .then("new")
    });
    gate
}

fn fails(site: &Site, path: &str) {
    site.put(path, |_| OriginAnswer::status(500, "").then("broken"));
}

#[tokio::test]
async fn an_answer_of_500_counts_in_spite_of_stale_if_error() {
    for spelling in Spelling::BOTH {
        let rules = "*_cache_revalidate on; *_cache_background_update on;";
        let site = Site::caching(spelling, rules).await;
        let fields = "Cache-Control: max-age=1, stale-if-error=36000\r\n";
        site.put("/t", tagged(fields, "\"1\"", "page"));
        site.expect(&[("/t", "MISS", "page")]).await;
        fails(&site, "/t");
        site.expect(&[("/t", "HIT", "page")]).await;
        assert_eq!(
            site.past_its_lifetime("/t", "").await.status,
            500,
            "{spelling:?}"
        );
        site.put("/t", tagged(FOR_HOURS, "\"1\"", "page"));
        site.comes_to("/t", "REVALIDATED").await;
    }
}

#[tokio::test]
async fn use_stale_updating_shows_a_page_that_fails_meanwhile() {
    for spelling in Spelling::BOTH {
        let site = site(spelling, "location / { PASS; *_cache_use_stale updating; }").await;
        site.page("/t", "Cache-Control: stale-if-error=5\r\n", "page");
        site.expect(&[("/t", "MISS", "page")]).await;
        fails(&site, "/t");
        expect_stale(&site, "/t", "page").await;
    }
}

#[tokio::test]
async fn stale_while_revalidate_bridges_errors_and_refreshes_behind() {
    for spelling in Spelling::BOTH {
        let site = site(spelling, "location / { PASS; }").await;
        site.put("/t", tagged(WHILE_REVALIDATE, "\"1\"", "page"));
        site.expect(&[("/t", "MISS", "page")]).await;
        fails(&site, "/t");
        expect_stale(&site, "/t", "page").await;
        // Its next answer only confirms that the page still holds, and for how long.
        site.put("/t", tagged(FOR_HOURS, "\"1\"", "another"));
        assert_eq!(site.comes_to("/t", "HIT").await.text(), "page");
        assert_eq!(site.last_asked().field("if-none-match"), "\"1\"");
    }
}

#[tokio::test]
async fn what_was_refreshed_may_be_stale_again() {
    for spelling in Spelling::BOTH {
        let site = site(spelling, "location / { PASS; }").await;
        site.put("/t", tagged(WHILE_REVALIDATE, "\"1\"", "page"));
        site.get("/t").await;
        let validated = || {
            site.asked()
                .iter()
                .any(|it| !it.field("if-none-match").is_empty())
        };
        let refreshed = async {
            while !validated() {
                site.get("/t").await;
            }
        };
        tokio::time::timeout(TIMEOUT, refreshed)
            .await
            .expect("a refresh");
        fails(&site, "/t");
        let reply = site.past_its_lifetime("/t", "").await;
        assert_eq!(reply.text(), "page", "{spelling:?}");
    }
}

#[tokio::test]
async fn a_refresh_asks_for_the_whole_page_where_nothing_is_validated() {
    for spelling in Spelling::BOTH {
        let site = site(spelling, "location / { PASS; *_cache_revalidate off; }").await;
        site.put("/t", tagged(WHILE_REVALIDATE, "\"1\"", "old"));
        site.get("/t").await;
        site.put("/t", tagged(FOR_HOURS, "\"1\"", "new"));
        assert_eq!(site.past_its_lifetime("/t", "").await.x_cache(), "STALE");
        expect_new_page(&site, "/t").await;
        assert_eq!(site.last_asked().field("if-none-match"), "");
    }
}

#[tokio::test]
async fn a_refresh_knows_what_a_pattern_captured() {
    for spelling in Spelling::BOTH {
        let location = "location ~ ^/(reg)(?P<name>exp) { PASS; *_cache_key $1$name; }";
        let site = site(spelling, location).await;
        expect_refresh_behind(&site, "/regexp", "/regexp").await;
    }
}

#[tokio::test]
async fn while_a_refresh_is_under_way_others_are_told_so() {
    for spelling in Spelling::BOTH {
        let site = site(spelling, "location / { PASS; }").await;
        site.page("/t", WHILE_REVALIDATE, "old");
        site.get("/t").await;
        let gate = hold_new_page(&site);
        expect_stale(&site, "/t", "old").await;
        site.until_asked(2).await;
        site.expect(&[("/t", "UPDATING", "old")]).await;
        gate.add_permits(1);
        expect_new_page(&site, "/t").await;
        assert_eq!(site.origin.requests(), 2);
    }
}

#[tokio::test]
async fn use_stale_updating_refreshes_behind_as_well() {
    for spelling in Spelling::BOTH {
        let site = site(spelling, "location / { PASS; *_cache_use_stale updating; }").await;
        site.page("/t", "", "old");
        site.get("/t").await;
        site.page("/t", FOR_HOURS, "new");
        expect_stale(&site, "/t", "old").await;
        expect_new_page(&site, "/t").await;
    }
}

#[tokio::test]
async fn stale_while_revalidate_ends_but_not_where_use_stale_says_otherwise() {
    for spelling in Spelling::BOTH {
        let site = site(
            spelling,
            "location / { PASS; } location /updating { PASS; *_cache_use_stale updating; }",
        )
        .await;
        // The second is stored later: when its time is over, so is the first's.
        for path in ["/updating", "/t"] {
            site.page(path, "Cache-Control: stale-while-revalidate=1\r\n", "page");
            site.get(path).await;
            fails(&site, path);
        }
        let ended = async {
            while site.get("/t").await.status != 500 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, ended).await.expect("an end");
        let reply = site.get("/updating").await;
        assert_eq!(
            (reply.x_cache(), reply.text().as_str()),
            ("STALE", "page"),
            "{spelling:?}"
        );
    }
}

#[tokio::test]
async fn stale_if_error_ends() {
    for spelling in Spelling::BOTH {
        let site = site(spelling, "location / { PASS; }").await;
        site.page("/t", "Cache-Control: stale-if-error=1\r\n", "page");
        site.get("/t").await;
        site.put("/t", |_| OriginAnswer::status(200, "").claiming(9).cut());
        let ended = async {
            while site.get("/t").await.text() == "page" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, ended).await.expect("an end");
    }
}

#[tokio::test]
async fn a_stale_page_does_not_wait_for_its_refresh() {
    for spelling in Spelling::BOTH {
        let site = site(
            spelling,
            "location / { PASS; } location = /ssi.html { ssi on; root %%; }",
        )
        .await;
        let page = "xxx <!--#include virtual=\"/t\" --> xxx";
        std::fs::write(site.server.path("ssi.html"), page).expect("a file");
        let long = "SEE-THIS".repeat(16 * 1024);
        site.page("/t", WHILE_REVALIDATE, &long);
        site.get("/t").await;
        let gate = hold_new_page(&site);
        let reply = site.past_its_lifetime("/t", "").await;
        assert!(reply.is_complete && reply.text() == long, "{spelling:?}");
        let reply = site.get("/ssi.html").await;
        assert!(reply.text() == format!("xxx {long} xxx"), "{spelling:?}");
        gate.add_permits(1);
        expect_new_page(&site, "/t").await;
    }
}

#[tokio::test]
async fn a_refresh_within_an_if_goes_where_the_request_went() {
    for spelling in Spelling::BOTH {
        let site = site(spelling, "location / { PASS; if ($arg_if) { } }").await;
        expect_refresh_behind(&site, "/t", "/t?if=1").await;
    }
}

#[tokio::test]
async fn a_refresh_asks_for_the_path_as_it_was_written() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(
            spelling,
            "*_cache_valid any 20ms; *_cache_background_update on;",
        )
        .await;
        expect_refresh_behind(&site, "/escape.html", "/escape.htm%6C").await;
        assert_eq!(site.last_asked().target, "/escape.htm%6C");
        site.expect(&[("/escape.html", "MISS", "new")]).await;
    }
}
