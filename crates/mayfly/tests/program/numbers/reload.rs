//! A reload keeps all numbers.

use testkit::process::Signal;

use super::*;

#[tokio::test]
async fn a_reload_keeps_counters_and_the_last_hour() {
    let php = slow_pages().await;
    let http = configuration(&php, "");
    let server = start(&http).await;
    let target = server.target();
    for path in ["/a", "/a", "/plain"] {
        target.get(path).await;
    }
    let socket = server.path("pid.control");
    let before = client::history(&socket, 0).await.expect("a history");
    assert!(!before.points.is_empty(), "who asks gets a look");
    let column = before
        .columns
        .iter()
        .position(|column| column == "requests{HIT}");
    let column = column.expect("a column for hits") + 1;

    server.rewrite("", &http.replace("return 204;", "return 205;"));
    server.signal(Signal::HUP);
    let changed = async {
        while target.get("/plain").await.status != 205 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let changed = tokio::time::timeout(testkit::wait::TIMEOUT, changed).await;
    changed.expect("the reload in time");
    let numbers = numbers_of(&server).await;
    assert_eq!(numbers.sum(Number::Requests, &[("cache", "HIT")]), 1.0);
    assert_eq!(numbers.sum(Number::Requests, &[("cache", "MISS")]), 1.0);
    assert_eq!(
        numbers.sum(Number::UpstreamRequests, &[]),
        1.0,
        "the group stays the same"
    );
    let after = client::history(&socket, 0).await.expect("a history");
    assert_eq!(after.points[0], before.points[0]);
    assert!(before.points[0][column] <= 1.0);
}
