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
