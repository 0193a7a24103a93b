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
