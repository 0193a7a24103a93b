//! `rewrite`.

use crate::site;

#[tokio::test]
async fn a_redirect_may_come_whole_from_an_argument() {
    let server = site("location / { rewrite ^ $arg_to? redirect; }").await;
    for (to, location) in [
        ("http%3A%2F%2Fa.test%2F%3Fx", "http://a.test/?x"),
        (
            "http%3A%2F%2Fa.test%0D%0ASet-Cookie:x",
            "http://a.test%0D%0ASet-Cookie:x",
        ),
    ] {
        let reply = server.target().get(&format!("/?to={to}")).await;
        assert_eq!((reply.status, reply.field("location")), (302, location));
    }
}

#[tokio::test]
async fn a_return_without_text_has_the_type_of_its_path_and_204_none() {
    let server = site(
        "location /a.html { return 200; } location /b { return 202; } location /c { return 204; }",
    )
    .await;
    for (path, status, content_type) in [
        ("/a.html", 200, "text/html"),
        ("/b", 202, "text/plain"),
        ("/c", 204, ""),
    ] {
        let reply = server.target().get(path).await;
        assert_eq!((reply.status, &*reply.text()), (status, ""));
        assert_eq!(reply.field("content-type"), content_type, "{path}");
    }
}
