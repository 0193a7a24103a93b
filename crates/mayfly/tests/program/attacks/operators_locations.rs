//! Locations for the operator are reached by clients that ask for them, and by no request that the
//! server makes itself or that an application names in the place of the client's.

use testkit::client::Target;
use testkit::fake_php::{FakePhp, Request, Script};
use testkit::running::RunningServer;

use crate::start;

/// Targets that show something for the operator, with a word in the answer.
const SHOWN: [(&str, &str); 4] = [
    ("/metrics", "mayfly_"),
    ("/status", "Active connections"),
    ("/dash", "<script"),
    ("/dash?numbers", "mayfly_"),
];

/// Targets that purge the page `/kept`: an API, and a location of `fastcgi_cache_purge ZONE KEY`.
const PURGES: [&str; 2] = ["/purge/kept", "/wipe/kept"];

/// PHP that a tenant writes: each address names the way, and what it is to lead to behind a `:`.
fn hostile(request: &Request) -> Script {
    let uri = request.param("REQUEST_URI");
    let (way, target) = uri.split_once(':').unwrap_or((uri, ""));
    match way {
        "/esi" => Script::page(
            "Surrogate-Control: content=\"ESI/1.0\"\r\n",
            format!("<esi:include src='{target}'/>"),
        ),
        "/ssi" => Script::page("", format!("<!--#include virtual=\"{target}\" -->")),
        "/accel" => Script::page(&format!("X-Accel-Redirect: {target}\r\n"), ""),
        "/within" => Script::page(
            "Surrogate-Control: content=\"ESI/1.0\"\r\n",
            format!("<esi:include src='/accel:{target}'/>"),
        ),
        "/sliced" if request.param("SLICE") == "bytes=0-9" => Script::page(
            "Status: 206\r\nContent-Range: bytes 0-9/20\r\n",
            "0123456789",
        ),
        "/sliced" => Script::page(&format!("X-Accel-Redirect: {target}\r\n"), ""),
        "/kept" => Script::page("X-Accel-Expires: 3600\r\n", "kept"),
        _ => Script::page("X-Accel-Expires: 0\r\n", "page"),
    }
}

/// A site whose operator's locations are for some address that no test has. `rules` stand in them.
async fn site(php: &FakePhp, rules: &str) -> RunningServer {
    let mut ways = String::new();
    for target in SHOWN.map(|(target, _)| target).into_iter().chain(PURGES) {
        ways.push_str(&format!(
            "location = /error:{target} {{ error_page 418 = {target}; return 418; }}\n\
             location = /added:{target} {{ add_before_body {target}; fastcgi_pass {php}; }}\n\
             location = /mirrored:{target} {{ mirror {target}; fastcgi_pass {php}; }}\n\
             location = /authorized:{target} {{ auth_request {target}; fastcgi_pass {php}; }}\n",
            php = php.address(),
        ));
    }
    start(&format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $request_uri;\n\
         fastcgi_param SLICE $slice_range; addition_types *; ssi_types *;\n\
         server {{ listen unix:%%/http; server_name site.test; esi on; ssi on;\n\
         location / {{ fastcgi_pass {php}; fastcgi_cache zone; fastcgi_cache_key $uri;\n\
           add_header X-Cache $upstream_cache_status always; }}\n\
         location /sliced {{ slice 10; fastcgi_pass {php}; }}\n\
         location = /metrics {{ metrics; {rules} }}\n\
         location = /status {{ stub_status; {rules} }}\n\
         location = /dash {{ dashboard; {rules} }}\n\
         location /purge/ {{ cache_purge_api; {rules} }}\n\
         location ~ ^/wipe(/.*)$ {{ fastcgi_cache_purge zone $1; {rules} }}\n{ways} }}",
        php = php.address(),
    ))
    .await
}

const WAYS: [&str; 9] = [
    "esi",
    "ssi",
    "accel",
    "within",
    "sliced",
    "error",
    "added",
    "mirrored",
    "authorized",
];

/// Returns the whole answer to a request; empty if the server closes the connection instead.
async fn ask(server: &RunningServer, target: &str) -> String {
    let mut client = server.connect().await;
    let request = format!("GET {target} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n");
    client.send(request).await;
    String::from_utf8_lossy(&client.receive_all().await).into_owned()
}

/// Whether the page is stored.
async fn is_kept(target: &Target) -> bool {
    target.get("/kept").await.x_cache() == "HIT"
}

#[tokio::test]
async fn nothing_but_a_client_that_asks_for_it_sees_what_is_for_the_operator() {
    // Rules that subrequests run past; those that let everybody in; and none, as this client is local.
    for rules in ["deny all;", "allow all;", ""] {
        let php = FakePhp::tcp(hostile).await;
        let server = site(&php, rules).await;
        let client = server.target();
        for (shown, word) in SHOWN {
            for way in WAYS {
                let reply = ask(&server, &format!("/{way}:{shown}")).await;
                assert!(!reply.contains(word), "{rules} {way} {shown}: {reply}");
            }
            let own = client.get(shown).await;
            assert_eq!(own.status, if rules == "deny all;" { 403 } else { 200 });
        }
    }
}

#[tokio::test]
async fn nothing_but_a_client_that_asks_for_it_purges() {
    for rules in ["deny all;", "allow all;", ""] {
        let php = FakePhp::tcp(hostile).await;
        let server = site(&php, rules).await;
        let client = server.target();
        client.get("/kept").await;
        assert!(is_kept(&client).await);
        for purge in PURGES {
            for way in WAYS {
                ask(&server, &format!("/{way}:{purge}")).await;
                assert!(is_kept(&client).await, "{rules} {way} {purge}");
            }
            client.get(purge).await;
            assert_eq!(
                is_kept(&client).await,
                rules == "deny all;",
                "{rules} {purge}"
            );
            is_kept(&client).await;
        }
    }
}

/// A purged page is fetched again by the same kind of request.
#[tokio::test]
async fn warming_purges_nothing() {
    let php = FakePhp::tcp(hostile).await;
    let server = site(&php, "allow all;").await;
    let client = server.target();
    client.get("/kept").await;
    for purge in PURGES {
        for way in ["", "/accel:", "/esi:"] {
            let mut command = std::process::Command::new(crate::program());
            command.arg("warm").arg("--socket");
            command.arg(server.path("pid.control"));
            command.arg(format!("http://site.test{way}{purge}"));
            let output = tokio::task::spawn_blocking(move || command.output());
            let output = output.await.expect("a thread").expect("the program");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("0 stored"), "{said} {output:?}");
            assert!(is_kept(&client).await, "{way}{purge}: {said}");
        }
    }
}
