//! `rewrite`, `return` and where `try_files` leads.

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

/// The manual of Nextcloud has `rewrite ... /index.php$request_uri`: arguments came twice.
#[tokio::test]
async fn a_question_mark_begins_arguments_where_it_is_written_and_not_in_a_variable() {
    let server = site(
        "location /variable { rewrite ^ /said$request_uri last; }\n\
         location /written { rewrite ^ /said?to=$arg_to last; }\n\
         location /dropped { rewrite ^ /said$request_uri? last; }\n\
         location /said { return 200 \"$uri|$args\"; }",
    )
    .await;
    for (target, expected) in [
        ("/variable?a=1", "/said/variable?a=1|a=1"),
        ("/variable", "/said/variable|"),
        ("/written?to=x?y", "/said|to=x?y&to=x?y"),
        ("/dropped?a=1", "/said/dropped?a=1|"),
    ] {
        assert_eq!(
            server.target().get(target).await.text(),
            expected,
            "{target}"
        );
    }
}

#[tokio::test]
async fn the_last_uri_of_try_files_brings_its_own_arguments_alone() {
    let server = site(
        "location /plain { try_files $uri /said; }\n\
         location /own { try_files $uri /said?b=2; }\n\
         location /passed { try_files $uri /said$is_args$args; }\n\
         location /said { return 200 \"$uri|$args\"; }",
    )
    .await;
    for (target, expected) in [
        ("/plain?a=1", "/said|"),
        ("/own?a=1", "/said|b=2"),
        ("/passed?a=1", "/said|a=1"),
    ] {
        assert_eq!(
            server.target().get(target).await.text(),
            expected,
            "{target}"
        );
    }
}

/// In a condition nginx takes the rest of the word for the name: WooCommerce's `wc-ajax` in published configurations.
#[tokio::test]
async fn a_condition_may_look_at_arguments_and_cookies_with_a_dash_in_their_names() {
    let server = site(
        "location / { if ($arg_wc-ajax = \"get_refreshed_fragments\") { return 201; }\n\
         if ($cookie_wp-x) { return 202; } if ($http_x-y) { return 204; } return 200; }",
    )
    .await;
    for (path, fields, status) in [
        ("/?wc-ajax=get_refreshed_fragments", "", 201),
        ("/?wc=1", "", 200),
        ("/", "Cookie: a=1; wp-x=2\r\n", 202),
        ("/", "Cookie: wp_x=2\r\n", 200),
        // No field is called so: nginx writes - as _ in names of variables.
        ("/", "X-Y: 1\r\n", 200),
    ] {
        let reply = server.target().get_with(path, fields).await;
        assert_eq!(reply.status, status, "{path} {fields}");
    }
}
