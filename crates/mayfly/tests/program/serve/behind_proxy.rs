//! A site behind a proxy: redirects leave scheme and port as the visitor has them, and a proxy that is not named is
//! found out.

use testkit::fake_php::{FakePhp, Script};
use testkit::serving::FolderServer;

use crate::{program, start};

#[tokio::test]
async fn a_redirect_to_a_folder_names_neither_scheme_nor_port() {
    let files = [("wp-admin/index.html", "admin"), ("index.html", "page")];
    for arguments in [&[][..], &["--behind", "127.0.0.1"]] {
        let server = FolderServer::start_site(program(), &files, arguments).await;
        let fields = "X-Forwarded-Host: shop.example\r\nX-Forwarded-Proto: https\r\n";
        let reply = server.target().get_with("/wp-admin?a", fields).await;
        assert_eq!(
            (reply.status, reply.field("location")),
            (301, "/wp-admin/?a"),
            "{arguments:?}"
        );
    }
}

/// WordPress with an https home, behind a proxy for TLS that is not believed.
#[tokio::test]
async fn redirects_in_a_circle_are_named_in_the_log_once() {
    let php = FakePhp::tcp(|request| match request.param("HTTPS") {
        "on" => Script::page("", "page"),
        _ => {
            let uri = request.param("REQUEST_URI");
            let fields = format!("Status: 301\r\nLocation: https://site.test{uri}\r\n");
            Script::page(&fields, "")
        }
    })
    .await;
    let http = |trust: &str| {
        format!(
            "server {{ listen unix:%%/http; server_name site.test; {trust}\n\
             fastcgi_param HTTPS $https if_not_empty; fastcgi_param REQUEST_URI $request_uri;\n\
             location / {{ fastcgi_pass {}; }} }}",
            php.address()
        )
    };
    let server = start(&http("")).await;
    let fields = "X-Forwarded-Proto: https\r\n";
    server.target().get("/a").await;
    server
        .target()
        .get_with("/b?x", "X-Forwarded-Proto: http\r\n")
        .await;
    assert!(!server.error_log().contains("serve --behind"));
    for path in ["/a", "/b?x"] {
        assert_eq!(server.target().get_with(path, fields).await.status, 301);
    }
    let log = server.error_log();
    assert_eq!(log.matches("serve --behind ADDRESS").count(), 1, "{log}");
    let output = std::process::Command::new(program())
        .args([
            "explain",
            "-H",
            "X-Forwarded-Proto: https",
            "http://site.test/a",
            "--socket",
        ])
        .arg(server.path("pid.control"))
        .output()
        .expect("the program");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("X-Forwarded-Proto is not believed"), "{said}");

    let server = start(&http("trusted_proxy unix:;")).await;
    assert_eq!(server.target().get_with("/a", fields).await.status, 200);
}
