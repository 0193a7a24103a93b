//! `gunzip on` in parts of a page: compressed bytes must not land in the page as
//! they are.

use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use crate::{gzip, start};

const ZIPPED: &str = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";

async fn serve(directives: &str) -> (FakePhp, RunningServer) {
    let php = FakePhp::tcp(|request| match request.param("DOCUMENT_URI") {
        "/part" => Script::page(ZIPPED, gzip("[a part]")),
        "/nested" => Script::page(ZIPPED, gzip("(<!--# include virtual=\"/part\" -->)")),
        "/large" => Script::page(ZIPPED, gzip("large ".repeat(100_000))),
        "/plain" => Script::page("Content-Type: text/html\r\n", "<p></p>"),
        uri => Script::page(
            "Content-Type: text/html\r\n",
            format!(
                "<p><!--# include virtual=\"/{}\" --></p>",
                uri.trim_start_matches("/with-")
            ),
        ),
    })
    .await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http; location / {{ fastcgi_pass {}; fastcgi_cache zone;\n\
         fastcgi_param REQUEST_METHOD $request_method; fastcgi_param DOCUMENT_URI $document_uri;\n\
         fastcgi_cache_key $document_uri; {directives} }} }}",
        php.address()
    );
    let server = start(&http).await;
    (php, server)
}

#[tokio::test]
async fn compressed_parts_are_expanded_whatever_the_client_accepts() {
    for caching in [
        "fastcgi_cache_valid 1h;",
        "fastcgi_cache_bypass 1; fastcgi_no_cache 1;",
    ] {
        let (_php, server) = serve(&format!("gunzip on; ssi on; {caching}")).await;
        let target = server.target();
        for accepts in ["", "Accept-Encoding: gzip\r\n"] {
            for _ in 0..2 {
                let page = target.get_with("/with-part", accepts).await;
                assert_eq!(page.text(), "<p>[a part]</p>", "{caching} {accepts}");
            }
            let page = target.get_with("/with-nested", accepts).await;
            assert_eq!(page.text(), "<p>([a part])</p>", "{caching} {accepts}");
            let page = target.get_with("/with-large", accepts).await;
            assert_eq!(
                page.body.len(),
                600_000 + "<p></p>".len(),
                "{caching} {accepts}"
            );
        }
    }
}

#[tokio::test]
async fn compressed_additions_are_expanded() {
    let (_php, server) = serve("gunzip on; add_before_body /part; add_after_body /part;").await;
    let page = server
        .target()
        .get_with("/plain", "Accept-Encoding: gzip\r\n")
        .await;
    let text = page.text();
    assert!(
        text.starts_with("[a part]<p>") && text.ends_with("</p>[a part]"),
        "{text}"
    );
}
