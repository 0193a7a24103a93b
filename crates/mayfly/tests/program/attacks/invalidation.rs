//! A flood of writes that anybody may send, each of which removes its own page.

use testkit::fake_http::{FakeHttp, Script};

use super::start_before;

#[tokio::test]
async fn a_flood_of_writes_does_not_keep_a_page_out_of_the_cache() {
    let upstream = FakeHttp::start(|_| Script::page("Content-Type: text/html\r\n", "page")).await;
    let server = start_before(&upstream).await;
    let target = server.target();
    target.get("/guestbook").await;
    let mut made = 0;
    for number in 0..40 {
        let posted = target.ask("POST", "/guestbook", "", "spam").await;
        assert_eq!(posted.status, 200);
        let seen = target.get("/guestbook").await;
        // The first write is seen at once.
        assert!(number > 0 || seen.x_cache() == "MISS");
        made += usize::from(seen.x_cache() != "HIT");
    }
    // Once in ten seconds at most; forty writes may take two of these on a busy machine.
    assert!(made <= 3, "made {made} times");
}
