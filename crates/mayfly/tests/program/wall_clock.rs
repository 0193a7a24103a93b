//! The wall clock is set while the server runs: shown times follow, in both directions, and
//! stored pages neither become stale nor stay fresh by it. The program sees a clock of the
//! test's (`scripts/faults/wall_clock.c`); the machine's stays as it is.

use std::time::{SystemTime, UNIX_EPOCH};

use http_semantics::date;
use numbers::Number;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use crate::counts::counted;
use crate::lent_library::LentLibrary;

const HOUR: i64 = 3600;

fn make_clock() -> Option<LentLibrary> {
    LentLibrary::make("wall_clock.c", "WALL_CLOCK_FILE")
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

/// By how many hours a date is ahead, to the nearest.
fn hours_ahead(text: &str) -> i64 {
    let seconds = date::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text:?}"));
    (seconds - now() + HOUR / 2).div_euclid(HOUR)
}

#[tokio::test]
async fn what_is_shown_follows_the_wall_clock_and_stored_pages_live_as_long_as_they_were_to() {
    let Some(clock) = make_clock() else { return };
    let php = FakePhp::tcp(|request| {
        let head = match request.param("REQUEST_URI") {
            // Dated by the right clock, without a Date to compare with.
            "/expires" => format!(
                "Expires: {}\r\n",
                String::from_utf8_lossy(&date::format(now() + 2 * HOUR))
            ),
            _ => "X-Accel-Expires: 1800\r\n".to_owned(),
        };
        Script::page(&format!("Content-Type: text/html\r\n{head}"), "page").at_once()
    })
    .await;
    let site = php.cached_site("expires 24h; ssi on; } location /msec { return 200 $msec; ");
    let main = "env LD_PRELOAD; env WALL_CLOCK_FILE;";
    // An hour late from the start, as after a boot without a battery.
    clock.set(-HOUR);
    let server = RunningServer::start(&clock.program(), main, &site).await;
    let target = server.target();
    let first = target.get("/page").await;
    assert_eq!(first.x_cache(), "MISS");
    assert_eq!(
        hours_ahead(first.field("date")),
        -1,
        "the clock of the test is used"
    );
    for (ahead, hours) in [(0, 0), (5 * HOUR, 5), (-3 * HOUR, -3), (0, 0)] {
        clock.set(ahead);
        // The server looks at the wall clock a few times a second.
        let begun = std::time::Instant::now();
        let made = loop {
            let made = target.get("/msec").await;
            let is_followed = hours_ahead(made.field("date")) == hours;
            if is_followed || begun.elapsed() > std::time::Duration::from_secs(5) {
                break made;
            }
        };
        assert_eq!(hours_ahead(made.field("date")), hours);
        let page = target.get("/page").await;
        assert_eq!(page.x_cache(), "HIT", "a step makes nothing stale");
        assert_eq!(hours_ahead(page.field("date")), -1, "when it was made");
        assert_eq!(hours_ahead(page.field("expires")), hours + 24);
        let age: u64 = page.field("age").parse().unwrap();
        assert!(age < 60, "{age}");
        let msec = target.get("/msec").await.text();
        let seconds: i64 = msec.split('.').next().unwrap().parse().unwrap();
        assert!((seconds - now() - ahead).abs() < 60, "{msec}");
    }
    // Read once the clock is right: two hours, not three.
    let dated = target.get("/expires").await;
    assert_eq!(dated.x_cache(), "MISS");
    let ttl = target
        .get("/expires")
        .await
        .field("cache-status")
        .to_owned();
    let seconds: i64 = ttl.split("ttl=").nth(1).unwrap().parse().unwrap();
    assert!((7000..=7200).contains(&seconds), "{ttl}");
}

#[tokio::test]
async fn pages_on_disk_keep_their_age_when_the_wall_clock_is_set_between_two_starts() {
    let Some(clock) = make_clock() else { return };
    let php = FakePhp::tcp(|_| Script::page("Cache-Control: max-age=36000\r\n", "page")).await;
    let http = php.cached_site("");
    let mut server = RunningServer::start(&clock.program(), "", &http).await;
    assert_eq!(server.target().get("/").await.x_cache(), "MISS");
    for hours in [-24, 24, 0] {
        server.end().await;
        clock.set(hours * HOUR);
        server.start_again(&clock.program()).await;
        counted(&server, Number::ZoneDiskResponses, 1.0).await;
        let reply = server.target().get("/").await;
        assert_eq!(
            (reply.text().as_str(), reply.x_cache()),
            ("page", "HIT"),
            "{hours}"
        );
        let age: u64 = reply.field("age").parse().expect("an age");
        assert!(age < 3600, "{hours}: {age}");
    }
    assert_eq!(php.requests(), 1);
}
