//! A variable of `map` or `geo` that `set` also writes: which value holds where.

use crate::start;

#[tokio::test]
async fn set_overrides_a_map_or_geo_variable_from_its_line_on() {
    let server = start(
        "map $arg_a $made { default unknown; 1 one; volatile; }\n\
         map $made $of_made { default \"of other\"; one \"of one\"; two \"of two\"; }\n\
         geo $near { default far; }\n\
         server { listen unix:%%/http;\n\
           location /set { set $before $made; if ($arg_b) { set $made two; } set $near \"$near, set\";\n\
             return 200 \"$before/$made/$of_made/$near\"; }\n\
           location / { return 200 \"$made/$of_made/$near\"; } }",
    )
    .await;
    let target = server.target();
    for (path, expected) in [
        ("/?a=1", "one/of one/far"),
        ("/set?a=1", "one/one/of one/far, set"),
        ("/set?a=1&b=1", "one/two/of two/far, set"),
        ("/?b=1", "unknown/of other/far"),
    ] {
        assert_eq!(target.get(path).await.text(), expected, "{path}");
    }
}

/// `set` in one location leaves the variable of a field as it is in others, like in nginx.
#[tokio::test]
async fn set_overrides_a_variable_of_a_field_from_its_line_on() {
    let server = start(
        "server { listen unix:%%/http; ssi on; default_type text/html;\n\
           location /set { set $http_x \"$http_x, set\"; return 200 '$http_x <!--#echo var=\"http_x\" -->'; }\n\
           location / { return 200 '$http_x$arg_y <!--#echo var=\"http_x\" -->'; } }",
    )
    .await;
    let target = server.target();
    for (path, expected) in [("/set", "a, set a, set"), ("/?y=b", "ab a")] {
        let reply = target.get_with(path, "X: a\r\n").await;
        assert_eq!(reply.text(), expected, "{path}");
    }
}

/// No pattern matches an empty value, like in nginx. Friendica's sample gives a request
/// without a field an identifier in this way.
#[tokio::test]
async fn no_pattern_of_a_map_matches_an_empty_value() {
    let server = start(
        "map $arg_a $found { default none; ~*  $arg_a; }\n\
         map $arg_a $anchored { default none; ~^$ empty; }\n\
         map $arg_a $exact { default none; '' empty; }\n\
         server { listen unix:%%/http; location / { return 200 \"$found/$anchored/$exact\"; } }",
    )
    .await;
    for (target, expected) in [("/", "none/none/empty"), ("/?a=x", "x/none/none")] {
        assert_eq!(
            server.target().get(target).await.text(),
            expected,
            "{target}"
        );
    }
}
