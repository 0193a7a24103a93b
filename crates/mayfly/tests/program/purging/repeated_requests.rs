//! `X-Cache-Repeat`: requests that an application wants made again and again.

use std::sync::{Arc, Mutex};

use testkit::fake_php::{FakePhp, Script};

use super::site;

/// The paths that the server has asked for itself, with host and client.
type OwnRequests = Arc<Mutex<Vec<String>>>;

/// Pages are kept, and the first of each path names requests.
async fn php(own: &OwnRequests) -> FakePhp {
    let own = own.clone();
    FakePhp::tcp(move |request| {
        let path = request.param("REQUEST_URI").to_owned();
        if path.starts_with("/again") {
            let (host, client) = (request.param("HTTP_HOST"), request.param("REMOTE_ADDR"));
            let mut own = own.lock().unwrap();
            own.push(format!(
                "{path} {} {client}",
                host.split(':').next().unwrap()
            ));
            return Script::page(
                "Cache-Control: no-store\r\nX-Cache-Purge-Tags: changed\r\n",
                "",
            );
        }
        Script::page(
            &format!(
                "xkey: changed\r\nX-Cache-Repeat: /again{path} 1, nonsense, /again/other x\r\n"
            ),
            path,
        )
    })
    .await
}

fn times(own: &OwnRequests, wanted: &str) -> usize {
    let own = own.lock().unwrap();
    own.iter().filter(|it| it.as_str() == wanted).count()
}

#[tokio::test]
async fn a_path_that_a_response_names_is_asked_for_again_and_again_and_may_purge() {
    let own = OwnRequests::default();
    let php = php(&own).await;
    let server = site(
        &php,
        "",
        "cache_purge_fields on; fastcgi_param HTTP_HOST $host; fastcgi_param REMOTE_ADDR $remote_addr;",
    )
    .await;
    let target = server.target();
    let page = target.get("/page").await;
    assert!(!page.has("x-cache-repeat"), "the field is for the server");
    // The address of no client (RFC 7600), and the host of the page.
    let wanted = "/again/page site.test 192.0.0.8";
    testkit::wait::until("a third request", || times(&own, wanted) >= 3).await;
    assert!(own.lock().unwrap().iter().all(|it| it == wanted));
    assert_ne!(
        target.get("/page").await.x_cache(),
        "HIT",
        "its purge is done"
    );
}

#[tokio::test]
async fn an_upstream_that_may_not_purge_has_nothing_repeated() {
    let own = OwnRequests::default();
    let php = php(&own).await;
    let trusted = format!(
        "location /trusted {{ fastcgi_pass {}; fastcgi_param REQUEST_METHOD $request_method;\n\
         fastcgi_param REQUEST_URI $request_uri; fastcgi_param HTTP_HOST $host; cache_purge_fields on; }}",
        php.address()
    );
    let server = site(&php, &trusted, "fastcgi_param HTTP_HOST $host;").await;
    let target = server.target();
    for path in ["/other", "/trusted"] {
        let page = target.get(path).await;
        assert!(!page.has("x-cache-repeat"), "the field is for the server");
    }
    let wanted = "/again/trusted site.test ";
    testkit::wait::until("a third request", || times(&own, wanted) >= 3).await;
    assert_eq!(times(&own, wanted), own.lock().unwrap().len());
}

#[tokio::test]
async fn cache_repeat_names_a_path_for_an_upstream_that_may_name_none() {
    let own = OwnRequests::default();
    let php = php(&own).await;
    let server = site(
        &php,
        "",
        "cache_repeat /again/jobs?a=b 1s; cache_purge_fields off; fastcgi_param HTTP_HOST $host;",
    )
    .await;
    assert_eq!(server.target().get("/page").await.status, 200);
    let wanted = "/again/jobs?a=b site.test ";
    testkit::wait::until("a third request", || times(&own, wanted) >= 3).await;
    assert_eq!(times(&own, wanted), own.lock().unwrap().len());
}

#[tokio::test]
async fn visitors_who_invent_ports_and_hosts_have_nothing_more_repeated() {
    let own = OwnRequests::default();
    let php = php(&own).await;
    let server = site(
        &php,
        "",
        "cache_purge_fields on; fastcgi_param HTTP_HOST $http_host; fastcgi_param REMOTE_ADDR $remote_addr;",
    )
    .await;
    let target = server.target();
    target.get("/page").await;
    for number in 1..300 {
        for host in [format!("site.test:{number}"), format!("h{number}.test")] {
            let mut client = server.connect().await;
            // A POST reaches PHP each time.
            let head = format!("POST /page HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n");
            client.send(head).await;
            client.receive(false).await.expect("a response");
        }
    }
    let wanted = "/again/page site.test 192.0.0.8";
    testkit::wait::until("two more requests", || times(&own, wanted) >= 3).await;
    let own = own.lock().unwrap();
    let invented: std::collections::HashSet<&String> =
        own.iter().filter(|it| *it != wanted).collect();
    assert!(invented.len() <= 1, "{invented:?}");
}
