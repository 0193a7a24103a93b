//! `userid`

use crate::site_with;

#[tokio::test]
async fn userid_gives_a_cookie_once_unless_it_is_reset() {
    let server = site_with(
        "map $arg_r $uid_reset { default 0; yes 1; }",
        "userid on; userid_service 258; add_header X-Got $uid_got; add_header X-Set $uid_set;\n\
         location / { return 200 page; }\n\
         location /marked { userid_name v; userid_mark m; userid_expires max; userid_domain a.test;\n\
         userid_path /x; userid_flags httponly secure; userid_p3p policy; return 200 page; }\n\
         location /log { userid log; return 200 page; }\n\
         location /off { userid off; return 200 page; }",
    )
    .await;
    let first = server.target().get("/").await;
    let cookie = first.field("set-cookie").to_owned();
    let value = cookie
        .strip_prefix("uid=")
        .and_then(|rest| rest.strip_suffix("; path=/"));
    let value = value.expect("a cookie for the session").to_owned();
    assert!(
        value.starts_with("AAABA") && value.ends_with("=="),
        "{cookie}"
    );
    assert!(
        first.field("x-set").starts_with("uid="),
        "{}",
        first.field("x-set")
    );
    let fields = format!("Cookie: uid={value}\r\n");
    for (path, is_given, is_known) in [
        ("/", false, true),
        ("/?r=yes", true, true),
        ("/log", false, true),
        ("/off", false, false),
    ] {
        let reply = server.target().get_with(path, &fields).await;
        assert_eq!(reply.has("set-cookie"), is_given, "{path}");
        let known = if is_known { first.field("x-set") } else { "" };
        assert_eq!(reply.field("x-got"), known, "{path}");
    }
    assert!(server.target().get("/").await.field("set-cookie") != cookie);
    let marked = server.target().get("/marked").await;
    let rest = marked
        .field("set-cookie")
        .split_once("m=")
        .expect("a mark")
        .1;
    assert_eq!(
        rest,
        "; expires=Thu, 31-Dec-37 23:55:55 GMT; domain=a.test; path=/x; secure; httponly"
    );
    assert_eq!(marked.field("p3p"), "policy");
    // A cookie without the mark is sent again, and one with it is not.
    for (end, is_given) in [("==", true), ("m=", false)] {
        let start = value.trim_end_matches('=');
        let fields = format!("Cookie: v={start}{end}\r\n");
        let reply = server.target().get_with("/marked", &fields).await;
        assert_eq!(reply.has("set-cookie"), is_given, "{end}");
    }
}
