//! A flood of writes that anybody may send, each of which removes its own page.

use testkit::fake_http::{FakeHttp, Script};
use testkit::serving::Serving;

#[tokio::test]
async fn a_flood_of_writes_does_not_keep_a_page_out_of_the_cache() {
    let upstream = FakeHttp::start(|_| Script::page("Content-Type: text/html\r\n", "page")).await;
    let url = format!("http://{}", upstream.address());
    let server = Serving::start(crate::program(), &url, &["--ttl", "1h"]).await;
    let target = server.target();
    target.get("/guestbook").await;
    let mut made = 0;
    for number in 0..40 {
        let posted = target.ask("POST", "/guestbook", "", "spam").await;
        assert_eq!(posted.status, 200);
        let seen = target.get("/guestbook").await;
        // The first write is seen at once.
        assert!(number > 0 || seen.field("x-cache") == "MISS");
        made += usize::from(seen.field("x-cache") != "HIT");
    }
    // Once in ten seconds at most; forty writes may take two of these on a busy machine.
    assert!(made <= 3, "made {made} times");
}
