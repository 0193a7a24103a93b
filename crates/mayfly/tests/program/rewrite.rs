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
