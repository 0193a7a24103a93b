//! `limit_rate`, `limit_rate_after` and `fastcgi_limit_rate`.

use testkit::fake_php::{FakePhp, Script};

use crate::site;

#[tokio::test]
async fn the_rate_of_a_redirecting_response_holds_for_the_one_in_its_place() {
    let php = FakePhp::tcp(|_| {
        Script::page(
            "X-Accel-Redirect: /file\r\nX-Accel-Limit-Rate: 1234\r\n",
            "",
        )
    })
    .await;
    let server = site(&format!(
        "location / {{ fastcgi_pass {}; fastcgi_param A b; }}\n\
         location = /file {{ internal; limit_rate 0; add_header X-Rate $limit_rate; try_files /page =404; }}",
        php.address()
    ))
    .await;
    server.write("page", "page");
    let reply = server.target().get("/").await;
    assert_eq!(
        (reply.text().as_str(), reply.field("x-rate")),
        ("page", "1234")
    );
}

#[tokio::test]
async fn limit_rate_holds_back_what_comes_after_the_free_part() {
    let server = site(
        "location / { limit_rate 1k; limit_rate_after 500; try_files /page =404; }\n\
         location /free { limit_rate 1; limit_rate_after 1m; try_files /page =404; }\n\
         location /set { limit_rate 1; set $limit_rate 1m; try_files /page =404; }",
    )
    .await;
    server.write("page", "page");
    server.write("page", "x".repeat(3000));
    let took = async |path: &str| {
        let begun = std::time::Instant::now();
        assert_eq!(server.target().get(path).await.body.len(), 3000, "{path}");
        begun.elapsed().as_millis()
    };
    // The second that has begun is paid for, as in nginx: some 1500 bytes are not.
    let held_back = took("/").await;
    assert!(held_back >= 500, "{held_back} ms");
    // At a byte a second they would take fifty minutes.
    took("/free").await;
    took("/set").await;
}

#[tokio::test]
async fn php_is_read_no_faster_than_the_limit() {
    // The first second's share comes at once; 2,500 bytes at 1,000 a second
    // take another second and a half.
    let php = FakePhp::tcp(|_| {
        let mut script = Script::new().stdout("Content-Type: text/html\r\n\r\n");
        for _ in 0..5 {
            script = script.stdout("x".repeat(500));
        }
        script
    })
    .await;
    let server = site(&format!(
        "location / {{ fastcgi_limit_rate 1000; fastcgi_pass {}; }}",
        php.address()
    ))
    .await;
    server.write("page", "page");
    let begun = std::time::Instant::now();
    let reply = server.target().get("/").await;
    assert_eq!(reply.body.len(), 2500);
    assert!(begun.elapsed().as_millis() >= 900, "{:?}", begun.elapsed());
}
