//! `*_cache_methods POST`: an answer is kept only under a key that distinguishes
//! bodies.

use crate::published::pages;
use crate::start;

#[tokio::test]
async fn who_posts_another_body_never_gets_the_answer_to_the_first() {
    let php = pages("Content-Type: text/html\r\n").await;
    let rules = "fastcgi_cache_valid 200 1h; fastcgi_cache_methods GET HEAD POST;";
    let server = start(&php.cached_site(rules)).await;
    let target = server.target();
    for body in ["a=1", "a=2", "a=1"] {
        let reply = target.ask("POST", "/ask", "", body).await;
        assert!(
            reply.text().starts_with(&format!("POST /ask {body}")),
            "{body}: {reply:?}"
        );
        assert_ne!(reply.x_cache(), "HIT", "{body}");
    }
    assert!(
        server
            .error_log()
            .contains("responses to POST are not stored"),
        "{}",
        server.error_log()
    );
}
