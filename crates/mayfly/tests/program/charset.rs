//! `charset`, `source_charset` and `charset_map`.

use crate::site_with;

#[tokio::test]
async fn texts_are_converted_and_their_ranges_too() {
    let server = site_with(
        "charset_map one two { 58 59; } charset_map one utf-8 { A4 E282AC; }",
        "default_type text/plain; location /two { source_charset one; charset two; }\n\
         location /utf-8 { source_charset one; charset utf-8; }",
    )
    .await;
    server.write("two", "aXbXc");
    server.write("utf-8", b"5 \xa4");
    let target = server.target();
    let whole = target.get("/two").await;
    assert_eq!(
        (whole.text().as_str(), whole.field("content-type")),
        ("aYbYc", "text/plain; charset=two")
    );
    let parts = target
        .get_with("/two", "Range: bytes=1-1,3-3\r\n")
        .await
        .text();
    assert!(
        parts.contains("\r\n\r\nY\r\n--") && parts.contains("charset=two"),
        "{parts}"
    );
    let euro = target.get("/utf-8").await;
    assert_eq!(
        (euro.text().as_str(), euro.field("content-length")),
        ("5 €", "5")
    );
}

#[tokio::test]
async fn x_accel_charset_holds_for_stored_pages_and_against_the_type_itself() {
    use testkit::fake_http;
    let upstream = fake_http::FakeHttp::start(|request| {
        let own = match &*request.target {
            "/named" | "/stored/named" => "; charset=one",
            // Without a table it keeps its own.
            "/stored/other" => "; charset=other",
            _ => "",
        };
        fake_http::Script::new().raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html{own}\r\nX-Accel-Charset: two\r\n\
             Cache-Control: max-age=60\r\nContent-Length: 3\r\n\r\naXb"
        ))
    })
    .await;
    let address = upstream.address();
    let server = site_with(
        "proxy_cache_path %%/cache keys_zone=z:1m; charset_map one two { 58 59; }",
        &format!(
            "location /stored {{ proxy_pass http://{address}; proxy_cache z; }}\n\
             location /named {{ proxy_pass http://{address}; }}\n\
             location /ignored {{ proxy_pass http://{address}; proxy_cache z; proxy_ignore_headers X-Accel-Charset; }}"
        ),
    )
    .await;
    for (path, body, media_type) in [
        ("/stored", "aXb", "text/html; charset=two"),
        ("/stored", "aXb", "text/html; charset=two"),
        ("/named", "aYb", "text/html; charset=two"),
        ("/stored/named", "aYb", "text/html; charset=two"),
        ("/stored/named", "aYb", "text/html; charset=two"),
        ("/stored/other", "aXb", "text/html; charset=other"),
        ("/ignored", "aXb", "text/html"),
    ] {
        let reply = server.target().get(path).await;
        assert_eq!(reply.field("content-type"), media_type, "{path}");
        assert_eq!(reply.text(), body, "{path}");
        assert!(!reply.has("x-accel-charset"), "{path}");
    }
    assert_eq!(upstream.requests(), 5);
}

#[tokio::test]
async fn a_compressed_file_in_another_charset_does_not_claim_the_charset() {
    let server = site_with(
        "charset_map one two { 58 59; }",
        "default_type text/html; gzip_static on; source_charset one; charset two;",
    )
    .await;
    server.write("page", "aXb");
    server.write("page.gz", crate::gzip("aXb"));
    let target = server.target();
    for (fields, media_type) in [
        ("", "text/html; charset=two"),
        ("Accept-Encoding: gzip\r\n", "text/html"),
    ] {
        let reply = target.get_with("/page", fields).await;
        assert_eq!(reply.field("content-type"), media_type, "{fields}");
    }
}
