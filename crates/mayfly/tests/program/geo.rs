//! `geo`.

use crate::site_with;

#[tokio::test]
async fn geo_is_looked_up_once_for_a_request_unless_volatile() {
    let server = site_with(
        "geo $arg_ip $kept { 192.0.2.1 /kept; 192.0.2.2 later; }\n\
         geo $arg_ip $anew { volatile; 192.0.2.1 /anew; 192.0.2.2 later; }",
        "location /1/ { index $kept; } location /2/ { index $anew; }\n\
         location /kept { set $args ip=192.0.2.2; add_header X $kept always; return 200; }\n\
         location /anew { set $args ip=192.0.2.2; add_header X $anew always; return 200; }",
    )
    .await;
    std::fs::create_dir(server.path("1")).expect("a folder");
    std::fs::create_dir(server.path("2")).expect("a folder");
    assert_eq!(
        server.target().get("/1/?ip=192.0.2.1").await.field("x"),
        "/kept"
    );
    assert_eq!(
        server.target().get("/2/?ip=192.0.2.1").await.field("x"),
        "later"
    );
}

#[tokio::test]
async fn an_address_between_the_ranges_of_geo_has_the_default() {
    let server = site_with(
        "geo $arg_ip $found { ranges; default none; 10.0.0.0-10.0.0.5 low; 10.0.0.7-10.0.0.7 one; 192.0.2.0-192.0.2.255 high; }",
        "location / { return 200 $found; }",
    )
    .await;
    for (ip, wanted) in [
        ("9.255.255.255", "none"),
        ("10.0.0.0", "low"),
        ("10.0.0.5", "low"),
        ("10.0.0.6", "none"),
        ("10.0.0.7", "one"),
        ("192.0.2.255", "high"),
        ("192.0.3.0", "none"),
    ] {
        assert_eq!(
            server.target().get(&format!("/?ip={ip}")).await.text(),
            wanted,
            "{ip}"
        );
    }
}

#[tokio::test]
async fn a_client_of_a_unix_socket_has_the_value_of_the_last_address_in_geo() {
    let server = site_with(
        "geo $nets { default none; 10.0.0.0/8 ten; 255.255.255.255 last; }\n\
         geo $ranges { ranges; default none; 10.0.0.0-10.255.255.255 ten; }",
        "location / { return 200 $nets:$ranges; }",
    )
    .await;
    assert_eq!(server.target().get("/").await.text(), "last:none");
}
