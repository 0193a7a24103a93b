//! `secure_link` and its older form; `valid_referers` with names of servers that are patterns.

use crate::site;

#[tokio::test]
async fn secure_link_tells_valid_links_from_others() {
    let server = site(
        "location / { secure_link $arg_md5,$arg_end; secure_link_md5 \"$secure_link_expires$uri secret\";\n\
         return 200 [$secure_link]; location /inner { return 200 [$secure_link]; } }\n\
         location /old/ { secure_link_secret secret; return 200 [$secure_link]; }\n\
         location /half { secure_link_md5 none; secure_link $arg_none; return 200 [$secure_link]; }",
    )
    .await;
    for (path, expected) in [
        // printf '4000000000/a secret' | openssl md5 -binary | openssl base64 | tr +/ -_
        ("/a?md5=DSuPQx3w32OWDEjdUKwDww&end=4000000000", "[1]"),
        ("/a?md5=DSuPQx3w32OWDEjdUKwDww&end=4000000001", "[]"),
        ("/b?md5=DSuPQx3w32OWDEjdUKwDww&end=4000000000", "[]"),
        ("/inner?md5=dpluuiIjLPwbYK0cTBDaeQ&end=1000000000", "[0]"),
        ("/a", "[]"),
        ("/old/c0640c1e91de82e703d65415ab52ef8b/file", "[file]"),
        ("/old/c0640c1e91de82e703d65415ab52ef8b/other", "[]"),
        ("/half", "[]"),
    ] {
        assert_eq!(server.target().get(path).await.text(), expected, "{path}");
    }
}

#[tokio::test]
async fn valid_referers_has_the_patterns_of_server_names() {
    let server = site(
        "server_name ~^shop[0-9]+\\.test$;\n\
         location / { valid_referers server_names; return 200 [$invalid_referer]; }",
    )
    .await;
    for (referer, expected) in [
        ("http://shop7.test/page", "[]"),
        ("http://SHOP7.test:8080", "[]"),
        ("http://shop.test/", "[1]"),
        ("http://other.test/shop7.test", "[1]"),
    ] {
        let fields = format!("Referer: {referer}\r\n");
        let reply = server.target().get_with("/", &fields).await;
        assert_eq!(reply.text(), expected, "{referer}");
    }
}
