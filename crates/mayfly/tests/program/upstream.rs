//! Groups of upstream servers as a whole: names looked up at run time, servers
//! that come and go, health checks. Name servers, PHP and origins are scripted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use testkit::fake_dns::{DnsRecord, DnsReply, FakeDns};
use testkit::fake_php::{FakePhp, Script};
use testkit::process::Signal;
use testkit::running::RunningServer;
use testkit::wait::{TIMEOUT, until};

use crate::{one_server, site_with};

/// Waits until `path` is answered with `status`.
async fn until_status(server: &RunningServer, path: &str, status: u16) {
    let begun = Instant::now();
    loop {
        let reply = server.target().get(path).await;
        if reply.status == status {
            return;
        }
        assert!(begun.elapsed() < TIMEOUT, "{path} stays {}", reply.status);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn port(php: &FakePhp) -> u16 {
    php.address()
        .parse::<SocketAddr>()
        .expect("over TCP")
        .port()
}

fn here(ttl: u32) -> DnsReply {
    DnsReply::Records(vec![DnsRecord::address(ttl, "127.0.0.1")])
}

#[tokio::test]
async fn a_name_that_a_variable_makes_is_looked_up_by_the_resolver_of_its_location() {
    let dns = FakeDns::start(|question| match question.name.as_str() {
        "php.test" => here(60),
        "broken.test" => DnsReply::Code(2),
        _ => DnsReply::Code(3),
    });
    let php = FakePhp::tcp(|_| Script::page("", "hello")).await;
    let (dns_at, port) = (dns.address(), port(&php));
    let server = site_with(
        "",
        &format!(
            "location /named {{ resolver {dns_at} ipv6=off; fastcgi_pass $arg_h:{port}; add_header X-Addr $upstream_addr always; }}\n\
             location /unnamed {{ fastcgi_pass $arg_h:{port}; }}"
        ),
    )
    .await;
    let target = server.target();
    for name in ["php.test", "PHP.test", "php.test."] {
        let reply = target.get(&format!("/named?h={name}")).await;
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, "hello"),
            "{name}"
        );
        assert_eq!(reply.field("x-addr"), format!("127.0.0.1:{port}"));
    }
    assert_eq!(dns.asked_for("php.test"), 1, "and remembered");
    let cases = [
        (
            "/named?h=absent.test",
            502,
            "absent.test could not be resolved (3: Host not found)",
        ),
        (
            "/named?h=broken.test",
            502,
            "broken.test could not be resolved (2: Server failure)",
        ),
        (
            "/unnamed?h=php.test",
            502,
            "no resolver defined to resolve php.test",
        ),
        ("/unnamed?h=", 500, "no host in upstream"),
    ];
    for (path, status, line) in cases {
        let reply = target.get(path).await;
        assert_eq!(reply.status, status, "{path}");
        let log = server.error_log();
        assert!(log.contains(line), "{path}: {log}");
        assert!(!reply.has("x-addr"), "nobody was asked: {reply:?}");
    }
    // An address needs no resolver.
    assert_eq!(target.get("/unnamed?h=127.0.0.1").await.status, 200);
}

#[tokio::test]
async fn servers_marked_resolve_follow_the_name_servers_and_survive_their_failure() {
    let says = Arc::new(Mutex::new(DnsReply::Code(2)));
    let script = says.clone();
    let dns = FakeDns::start(move |_| script.lock().unwrap().clone());
    let php = FakePhp::tcp(|_| Script::page("", "hello")).await;
    let (dns_at, port) = (dns.address(), port(&php));
    let group = format!(
        "upstream u {{ server php.test:{port} resolve; resolver {dns_at} valid=1s ipv6=off; resolver_timeout 1s; }}"
    );
    let server = site_with(&group, "location / { fastcgi_pass u; }").await;
    assert_eq!(
        server.target().get("/").await.status,
        502,
        "nothing is known yet"
    );
    *says.lock().unwrap() = here(1);
    until_status(&server, "/", 200).await;

    *says.lock().unwrap() = DnsReply::Code(2);
    let before = dns.asked().len();
    until("it is asked again", || dns.asked().len() >= before + 2).await;
    assert_eq!(
        server.target().get("/").await.status,
        200,
        "a failure changes nothing"
    );

    let group = group.replace("server php", "least_conn; server php");
    let locations = "location / { fastcgi_pass u; } location /new { return 204; }";
    server.rewrite("", &one_server(&group, locations));
    server.signal(Signal::HUP);
    until_status(&server, "/new", 204).await;
    assert_eq!(
        server.target().get("/").await.status,
        200,
        "nor does a reload"
    );

    *says.lock().unwrap() = DnsReply::Code(3);
    until_status(&server, "/", 502).await;
    *says.lock().unwrap() = here(1);
    until_status(&server, "/", 200).await;
}

/// PHP that answers `/ping` with `status`, and counts all else.
async fn checked_php(status: &Arc<AtomicU16>, asked: &Arc<AtomicUsize>) -> FakePhp {
    let (status, asked) = (status.clone(), asked.clone());
    FakePhp::tcp(move |request| {
        if request.param("SCRIPT_NAME") == "/ping" {
            let status = status.load(Ordering::SeqCst);
            return Script::page(&format!("Status: {status}\r\n"), "pong");
        }
        asked.fetch_add(1, Ordering::SeqCst);
        Script::page("", "page")
    })
    .await
}

#[tokio::test]
async fn a_server_that_fails_its_check_gets_no_requests_until_it_passes() {
    let status = [(); 2].map(|()| Arc::new(AtomicU16::new(200)));
    let asked = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let one = checked_php(&status[0], &asked[0]).await;
    let two = checked_php(&status[1], &asked[1]).await;
    let server = site_with(
        &format!(
            "upstream u {{ server {}; server {}; }}",
            one.address(),
            two.address()
        ),
        "location / { fastcgi_pass u; health_check interval=20ms uri=/ping; }",
    )
    .await;
    let shares = async || {
        asked
            .iter()
            .for_each(|count| count.store(0, Ordering::SeqCst));
        for _ in 0..6 {
            assert_eq!(server.target().get("/").await.status, 200);
        }
        [0, 1].map(|place| asked[place].load(Ordering::SeqCst))
    };
    let logged = |state: &str| {
        let line = format!("health check \"/ping\" of peer {} in", one.address());
        let log = server.error_log();
        log.lines()
            .filter(|it| it.contains(state) && it.contains(&line))
            .count()
    };
    assert_eq!(shares().await, [3, 3]);
    status[0].store(503, Ordering::SeqCst);
    until("it is found ill", || {
        logged("peer is unhealthy: status 503") == 1
    })
    .await;
    assert_eq!(shares().await, [0, 6]);
    let well = logged("peer is healthy");
    status[0].store(204, Ordering::SeqCst);
    until("it is found well", || logged("peer is healthy") > well).await;
    assert_eq!(shares().await, [3, 3]);
}

#[tokio::test]
async fn mandatory_servers_are_checked_before_they_are_asked() {
    let status = Arc::new(AtomicU16::new(500));
    let asked = Arc::new(AtomicUsize::new(0));
    let php = checked_php(&status, &asked).await;
    let server = site_with(
        &format!("upstream u {{ server {}; }}", php.address()),
        "location / { fastcgi_pass u; health_check interval=20ms uri=/ping mandatory; }",
    )
    .await;
    assert_eq!(server.target().get("/").await.status, 502);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    status.store(200, Ordering::SeqCst);
    until_status(&server, "/", 200).await;
}

/// An HTTP origin: its requests so far, and its answer to all of them.
fn origin(answer: Arc<Mutex<String>>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    let heads = Arc::new(Mutex::new(Vec::new()));
    let noted = heads.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|it| it == 1) {
                head.push(byte[0]);
            }
            noted
                .lock()
                .unwrap()
                .push(String::from_utf8_lossy(&head).into_owned());
            let answer = answer.lock().unwrap().clone();
            // A client that hangs up early does not want it.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, heads)
}

#[tokio::test]
async fn checks_over_http_send_what_the_location_sets_and_read_what_match_says() {
    let page = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nX-Well: yes\r\nConnection: close\r\n\r\n{body}")
    };
    let answer = Arc::new(Mutex::new(page("200 OK", "all fine")));
    let (address, heads) = origin(answer.clone());
    let server = site_with(
        &format!(
            "map $upstream_status $good {{ 200 1; 404 1; default 0; }}\n\
             match well {{ status 200 404; header X-Well = yes; body ~ fine; require $good; }}\n\
             upstream u {{ server {address}; }}"
        ),
        "location / { proxy_pass http://u; proxy_set_header X-Check 1; \
         health_check interval=20ms uri=/well?now match=well mandatory; }",
    )
    .await;
    until_status(&server, "/", 200).await;
    let first = heads.lock().unwrap()[0].clone();
    for part in [
        "GET /well?now HTTP/1.1\r\n",
        "\r\nHost: u\r\n",
        "\r\nConnection: close\r\n",
        "\r\nX-Check: 1\r\n",
    ] {
        assert!(first.contains(part), "{first}");
    }
    for (said, passes) in [
        (page("200 OK", "out of order"), false),
        (page("404 Not Found", "fine"), true),
        (page("500 Broken", "fine"), false),
        ("nonsense\r\n\r\n".to_owned(), false),
        (page("200 OK", "fine"), true),
    ] {
        *answer.lock().unwrap() = said.clone();
        let begun = Instant::now();
        // Not asked means 502 without a word from the origin.
        loop {
            let reply = server.target().get("/page").await;
            let is_asked = reply.has("x-well") || reply.status != 502;
            if is_asked == passes {
                break;
            }
            assert!(begun.elapsed() < TIMEOUT, "{said}: {reply:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let log = server.error_log();
    for reason in ["body does not match", "status 500 does not match"] {
        assert!(log.contains(reason), "{log}");
    }
}
