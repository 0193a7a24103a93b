//! What stands around an answer: other methods' rules, a path that decides who
//! comes in, copies of requests for others.

use testkit::client::Target;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::Running;

use crate::program;

/// One server with these directives.
async fn site(directives: &str) -> Running {
    let server = format!("server {{ listen unix:%%/http; server_name site.test;\n{directives}\n}}");
    let running = Running::start(program(), "", &server).await;
    file(&running, "page", "page");
    running
}

fn file(server: &Running, name: &str, content: &str) {
    std::fs::write(server.path(name), content).expect("a file");
}

/// PHP that answers with what `answer` makes of each request's URI.
async fn php(answer: fn(&str) -> &'static str) -> FakePhp {
    FakePhp::tcp(move |request| Script::page(answer(request.param("REQUEST_URI")), "INVISIBLE"))
        .await
}

async fn statuses(target: &Target, path: &str, methods: &[&str]) -> Vec<u16> {
    let mut found = Vec::new();
    for method in methods {
        found.push(target.ask(method, path, "", "").await.status);
    }
    found
}

#[tokio::test]
async fn limit_except_holds_for_all_methods_but_those_named() {
    let server = site(
        "location / { try_files /page =404; limit_except GET { deny all; } }\n\
         location /named { try_files /page =404; limit_except PUT PATCH { deny all; } }\n\
         location /answered { try_files /page =404; limit_except GET POST { return 405 no; } }\n\
         location /asked { try_files /page =404; limit_except GET { auth_basic on; auth_basic_user_file %%/users; } }\n\
         location /opened { deny all; try_files /page =404; limit_except GET { allow all; } }\n\
         location /if { limit_except GET { deny all; } if ($args) { set $a b; } try_files /page =404; }",
    )
    .await;
    file(&server, "users", "anna:{PLAIN}secret\n");
    let target = server.target();
    let methods = ["GET", "HEAD", "OPTIONS", "PUT", "PURGE", "get"];
    for (path, wanted) in [
        ("/", [200, 200, 403, 403, 403, 400]),
        ("/named", [403, 403, 403, 405, 403, 400]),
        ("/answered", [200, 200, 405, 405, 405, 400]),
        ("/asked", [200, 200, 401, 401, 401, 400]),
        ("/opened", [403, 403, 405, 405, 405, 400]),
        // An `if` does not lead past it.
        ("/if?x", [404, 404, 403, 403, 403, 400]),
    ] {
        assert_eq!(statuses(&target, path, &methods).await, wanted, "{path}");
    }
}

#[tokio::test]
async fn a_named_path_decides_who_comes_in() {
    let php = php(|uri| match uri {
        "/a/challenge" => "Status: 401\r\nWWW-Authenticate: one\r\nWWW-Authenticate: two\r\n",
        "/a/open" => "Content-Type: text/html\r\n",
        _ => "Status: 503\r\n",
    })
    .await;
    let server = site(&format!(
        "location /open {{ auth_request /yes; try_files /page =404; }}\n\
         location /static {{ auth_request /page; try_files /page =404; }}\n\
         location /no {{ auth_request /401; }}\n\
         location /never {{ auth_request /403; }}\n\
         location /odd {{ auth_request /302; }}\n\
         location /nowhere {{ auth_request /missing; }}\n\
         location /closed {{ auth_request /444; }}\n\
         location /a/ {{ auth_request /php; try_files /page =404; location /a/off {{ auth_request off; try_files /page =404; }} }}\n\
         location = /yes {{ internal; return 204; }}\n\
         location = /401 {{ return 401; }}\n\
         location = /403 {{ return 403; }}\n\
         location = /302 {{ return 302 /; }}\n\
         location = /444 {{ return 444; }}\n\
         location = /php {{ fastcgi_pass {}; fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method; }}",
        php.address()
    ))
    .await;
    let target = server.target();
    for (path, status) in [
        ("/open", 200),
        ("/static", 200),
        ("/no", 401),
        ("/never", 403),
        ("/odd", 500),
        ("/nowhere", 500),
        ("/closed", 500),
        ("/a/open", 200),
        ("/a/challenge", 401),
        ("/a/broken", 500),
        ("/a/off", 200),
    ] {
        let reply = target.get(path).await;
        assert_eq!(reply.status, status, "{path}");
        assert!(!reply.text().contains("INVISIBLE"), "{path}");
    }
    let challenged = target.get("/a/challenge").await;
    let challenges: Vec<_> = challenged
        .fields
        .iter()
        .filter(|(name, _)| name == "www-authenticate")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(challenges, ["one", "two"]);
}

#[tokio::test]
async fn an_answer_of_auth_request_leaves_values_behind() {
    let php = php(|_| "X-User: anna\r\nStatus: 204\r\n").await;
    let server = site(&format!(
        "location / {{ auth_request /auth; auth_request_set $user $upstream_http_x_user; auth_request_set $code $upstream_status;\n\
           add_header X-User $user-$code-$kept always; try_files /page =404; }}\n\
         location /gone {{ auth_request /auth; auth_request_set $user $upstream_http_x_user; error_page 404 = @fallback; }}\n\
         location @fallback {{ return 200 $user; }}\n\
         location /args {{ auth_request /auth; auth_request_set $args a=$upstream_http_x_user; error_page 404 = @args; }}\n\
         location @args {{ return 200 $args; }}\n\
         location /unasked {{ return 200 \"[$user]\"; }}\n\
         location = /auth {{ set $kept here; fastcgi_pass {}; fastcgi_param REQUEST_URI $request_uri; }}",
        php.address()
    ))
    .await;
    let target = server.target();
    assert_eq!(target.get("/").await.field("x-user"), "anna-204-here");
    assert_eq!(target.get("/gone").await.text(), "anna");
    assert_eq!(target.get("/args").await.text(), "a=anna");
    assert_eq!(target.get("/unasked").await.text(), "[]");
}

#[tokio::test]
async fn the_answer_of_auth_request_may_come_from_the_cache() {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "Status: 401\r\nWWW-Authenticate: Basic realm=\"r\"\r\n",
            format!("{}", request.number),
        )
    })
    .await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http; location / {{ auth_request /auth; }}\n\
         location = /auth {{ fastcgi_pass {}; fastcgi_param A b; fastcgi_cache zone; fastcgi_cache_key $http_authorization; fastcgi_cache_valid any 1h; }} }}",
        php.address()
    );
    let server = Running::start(program(), "", &http).await;
    for _ in 0..3 {
        let reply = server.target().get("/").await;
        assert_eq!(
            (reply.status, reply.field("www-authenticate")),
            (401, "Basic realm=\"r\"")
        );
    }
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn one_check_is_enough_or_all_are_needed() {
    let server = site(
        "location /all/rule { satisfy all; deny all; auth_request /auth; }\n\
         location /all/word { satisfy all; auth_basic r; auth_basic_user_file %%/users; auth_request /auth; }\n\
         location /any/yes { satisfy any; allow all; auth_request /auth; }\n\
         location /any/rule { satisfy any; deny all; auth_request /auth; }\n\
         location /any/word { satisfy any; auth_basic r; auth_basic_user_file %%/users; auth_request /auth; }\n\
         location /any/other { satisfy any; allow 192.0.2.1; auth_request /auth; }\n\
         location = /auth { if ($request_uri ~ \"open$\") { return 204; } if ($request_uri ~ \"401$\") { return 401; } return 403; }",
    )
    .await;
    file(&server, "users", "anna:{PLAIN}secret\n");
    let target = server.target();
    for (path, open, with_401, with_403) in [
        ("/all/rule", 403, 403, 403),
        ("/all/word", 401, 401, 401),
        ("/any/yes", 404, 404, 404),
        ("/any/rule", 404, 401, 403),
        ("/any/word", 404, 401, 401),
        // A rule for somebody else is no consent.
        ("/any/other", 404, 401, 403),
    ] {
        for (end, wanted) in [("open", open), ("401", with_401), ("403", with_403)] {
            let reply = target.get(&format!("{path}+{end}")).await;
            assert_eq!(reply.status, wanted, "{path}+{end}");
        }
    }
    let anna = "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n";
    assert_eq!(target.get_with("/any/word+403", anna).await.status, 404);
    assert_eq!(target.get_with("/all/word+open", anna).await.status, 404);
    assert_eq!(target.get_with("/all/word+403", anna).await.status, 403);
}

#[tokio::test]
async fn copies_of_requests_go_elsewhere_and_nobody_waits_for_them() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let held = gate.clone();
    let php = FakePhp::tcp(move |request| {
        let line = format!(
            "{} {} {}",
            request.param("REQUEST_METHOD"),
            request.param("URI"),
            String::from_utf8_lossy(&request.body)
        );
        let _ = told.send(line);
        Script::new()
            .wait_for(&held)
            .stdout("X-A: b\r\n\r\nINVISIBLE")
    })
    .await;
    let params = "fastcgi_param REQUEST_METHOD $request_method; fastcgi_param URI $uri?$args;";
    let server = site(&format!(
        "location / {{ mirror /copy; mirror /other?own; return 200; }}\n\
         location /page {{ mirror /copy; mirror /other?own; try_files $uri =404; error_page 405 =200 @ok; location /page/off {{ mirror off; try_files /page =404; }} }}\n\
         location /bare {{ mirror /copy; mirror_request_body off; error_page 405 =200 @ok; try_files /page =404; }}\n\
         location @ok {{ mirror off; return 200 ok; }}\n\
         location = /copy {{ internal; fastcgi_pass {0}; {params} }}\n\
         location = /other {{ internal; fastcgi_pass {0}; {params} }}",
        php.address()
    ))
    .await;
    let target = server.target();
    let mut next = async || {
        let wait = tokio::time::timeout(testkit::client::PATIENCE, heard.recv()).await;
        wait.expect("a copy in time").expect("a copy")
    };
    // On one connection: the copies under way keep nothing waiting.
    let mut client = server.connect().await;
    client.send("GET /page?a=b HTTP/1.1\r\nHost: site.test\r\n\r\nPOST /page HTTP/1.1\r\nHost: site.test\r\nContent-Length: 4\r\n\r\nbody").await;
    for wanted in ["page", "ok"] {
        assert_eq!(
            client.receive(false).await.expect("an answer").text(),
            wanted
        );
    }
    let mut copies = vec![next().await, next().await, next().await, next().await];
    copies.sort();
    assert_eq!(
        copies,
        [
            "GET /copy?a=b ",
            "GET /other?own ",
            "POST /copy? body",
            "POST /other?own body"
        ]
    );
    assert_eq!(target.ask("PUT", "/bare", "", "body").await.status, 200);
    assert_eq!(next().await, "PUT /copy? ");
    // What answers before the content is not copied, nor what says `off`.
    assert_eq!(target.get("/").await.status, 200);
    assert_eq!(target.get("/page/off").await.status, 200);
    assert_eq!(target.get("/page/off").await.status, 200);
    assert_eq!(target.get("/bare").await.status, 200);
    assert_eq!(next().await, "GET /copy? ");
    gate.add_permits(100);
}

#[tokio::test]
async fn a_graceful_stop_waits_for_copies_under_way() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |_| Script::new().wait_for(&held).stdout("X-A: b\r\n\r\n")).await;
    let mut server = site(&format!(
        "location / {{ mirror /copy; try_files /page =404; }}\n\
         location = /copy {{ log_subrequest on; access_log %%/copies; fastcgi_pass {}; fastcgi_param A b; }}",
        php.address()
    ))
    .await;
    assert_eq!(server.target().get("/").await.text(), "page");
    while php.requests() == 0 {
        tokio::task::yield_now().await;
    }
    server.signal("QUIT");
    gate.add_permits(1);
    assert!(server.ended().await.success());
    let log = std::fs::read_to_string(server.path("copies")).unwrap_or_default();
    assert!(log.contains("GET / HTTP/1.1\" 200"), "{log:?}");
}

/// What a PHP script does that serves `whole` in parts; `/odd/...` does it wrong
/// from its second slice on.
fn part_of(whole: &str, request: &testkit::fake_php::Request) -> Script {
    let range = request.param("HTTP_RANGE").to_owned();
    let (uri, total) = (request.param("URI"), whole.len());
    let Some((start, end)) = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
        .and_then(|(start, end)| Some((start.parse().ok()?, end.parse::<usize>().ok()? + 1)))
    else {
        return Script::page("Content-Type: text/plain\r\n", whole);
    };
    if start >= total {
        return Script::page("Status: 416\r\n", "");
    }
    let end = end.min(total);
    let is_later = start > 0;
    let etag = if uri == "/odd/etag" && is_later {
        "\"b\""
    } else {
        "\"a\""
    };
    let complete = if uri == "/odd/length" && is_later {
        total + 1
    } else {
        total
    };
    let shown = if uri == "/odd/range" && is_later {
        start - 1
    } else {
        start
    };
    let status = if uri == "/odd/status" && is_later {
        200
    } else {
        206
    };
    let body = match uri {
        "/odd/short" if is_later => &whole[start..end - 1],
        "/odd/long" if is_later => &whole[start - 1..end],
        _ => &whole[start..end],
    };
    Script::page(
        &format!(
            "Status: {status}\r\nETag: {etag}\r\nAccept-Ranges: bytes\r\nContent-Range: bytes {shown}-{}/{complete}\r\n",
            end - 1
        ),
        body,
    )
}

const WHOLE: &str = "0123456789abcdef";

/// Slices of four bytes, and the ranges that PHP was asked for.
async fn sliced(
    directives: &str,
) -> (
    Running,
    FakePhp,
    std::sync::Arc<std::sync::Mutex<Vec<String>>>,
) {
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = asked.clone();
    let php = FakePhp::tcp(move |request| {
        let mut noted = noted.lock().expect("nobody panicked");
        noted.push(request.param("HTTP_RANGE").to_owned());
        part_of(WHOLE, request)
    })
    .await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http;\n location / {{ slice 4; fastcgi_pass {};\n\
         fastcgi_param HTTP_RANGE $slice_range; fastcgi_param URI $uri; fastcgi_param REQUEST_METHOD $request_method;\n\
         add_header X-Cache $upstream_cache_status; {directives} }} }}",
        php.address()
    );
    (Running::start(program(), "", &http).await, php, asked)
}

const STORED: &str =
    "fastcgi_cache zone; fastcgi_cache_key $uri$slice_range; fastcgi_cache_valid 200 206 1h;";

#[tokio::test]
async fn ranges_are_put_together_from_slices_that_are_stored_one_by_one() {
    let (server, _php, asked) = sliced(STORED).await;
    let target = server.target();
    let cases: [(&str, u16, &str, &[&str]); 11] = [
        ("Range: bytes=5-6\r\n", 206, "56", &["bytes=4-7"]),
        ("Range: bytes=4-4\r\n", 206, "4", &[]),
        ("Range: bytes=6-9\r\n", 206, "6789", &["bytes=8-11"]),
        ("Range: bytes=10-\r\n", 206, "abcdef", &["bytes=12-15"]),
        ("Range: bytes=-3\r\n", 206, "def", &["bytes=0-3"]),
        ("", 200, WHOLE, &[]),
        ("Range: bytes=1-1,3-3\r\n", 200, WHOLE, &[]),
        ("Range: bytes=9-9\r\nIf-Range: \"a\"\r\n", 206, "9", &[]),
        ("Range: bytes=9-9\r\nIf-Range: \"x\"\r\n", 200, WHOLE, &[]),
        ("If-None-Match: \"a\"\r\n", 304, "", &[]),
        ("Range: bytes=16-\r\n", 416, "", &["bytes=16-19"]),
    ];
    for (fields, status, body, ranges) in cases {
        let reply = target.get_with("/page", fields).await;
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (status, body),
            "{fields}"
        );
        let asked = std::mem::take(&mut *asked.lock().expect("nobody panicked"));
        assert_eq!(asked, ranges, "{fields}");
    }
    let reply = target.get_with("/page", "Range: bytes=2-13\r\n").await;
    assert_eq!(reply.text(), "23456789abcd");
    assert_eq!(reply.field("content-range"), "bytes 2-13/16");
    assert_eq!(reply.field("content-length"), "12");
    assert_eq!(reply.field("x-cache"), "HIT");
    assert!(!reply.has("accept-ranges"));
    let head = target.ask("HEAD", "/page", "", "").await;
    assert_eq!((head.status, head.field("content-length")), (200, "16"));
}

#[tokio::test]
async fn a_response_that_changed_is_broken_off_once_and_then_the_new_one_comes() {
    let version = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let current = version.clone();
    let php = FakePhp::tcp(move |request| {
        let whole = ["0123456789abcdef", "FEDCBA9876543210"];
        let version = current.load(std::sync::atomic::Ordering::SeqCst);
        let (start, end) = request.param("HTTP_RANGE")[6..]
            .split_once('-')
            .expect("a range");
        let (start, end): (usize, usize) = (
            start.parse().expect("a number"),
            end.parse().expect("a number"),
        );
        Script::page(
            &format!(
                "Status: 206\r\nETag: \"{version}\"\r\nContent-Range: bytes {start}-{end}/16\r\n"
            ),
            &whole[version][start..=end],
        )
    })
    .await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http; location / {{ slice 4; fastcgi_pass {};\n\
         fastcgi_param HTTP_RANGE $slice_range; {STORED} }} }}",
        php.address()
    );
    let server = Running::start(program(), "", &http).await;
    let target = server.target();
    // Of the first version all but the third slice.
    assert_eq!(
        target.get_with("/", "Range: bytes=0-7\r\n").await.text(),
        "01234567"
    );
    assert_eq!(
        target.get_with("/", "Range: bytes=12-\r\n").await.text(),
        "cdef"
    );
    version.store(1, std::sync::atomic::Ordering::SeqCst);
    let mut client = server.connect().await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
    assert!(
        !received.contains("cdef") && !received.contains("7654"),
        "{received:?}"
    );
    for _ in 0..2 {
        assert_eq!(target.get("/").await.text(), "FEDCBA9876543210");
    }
    assert_eq!(php.requests(), 8);
}

#[tokio::test]
async fn slices_need_no_cache() {
    let (server, _php, asked) = sliced("").await;
    let target = server.target();
    assert_eq!(target.get("/page").await.text(), WHOLE);
    assert_eq!(
        target
            .get_with("/page", "Range: bytes=7-8\r\n")
            .await
            .text(),
        "78"
    );
    let asked = asked.lock().expect("nobody panicked").clone();
    assert_eq!(
        asked,
        [
            "bytes=0-3",
            "bytes=4-7",
            "bytes=8-11",
            "bytes=12-15",
            "bytes=4-7",
            "bytes=8-11"
        ]
    );
}

#[tokio::test]
async fn slices_that_do_not_fit_together_never_look_whole() {
    for directives in ["", STORED] {
        let (server, _php, _) = sliced(directives).await;
        for (uri, why) in [
            ("/odd/etag", "etag mismatch in slice response"),
            (
                "/odd/length",
                "the response has 17 bytes in this slice and 16 in the first",
            ),
            ("/odd/range", "unexpected range in slice response: 3-8"),
            (
                "/odd/status",
                "unexpected status code 200 in slice response",
            ),
            ("/odd/short", "a slice that is too short"),
            ("/odd/long", "a slice that is too long"),
        ] {
            let mut client = server.connect().await;
            client
                .send(format!("GET {uri} HTTP/1.1\r\nHost: site.test\r\n\r\n"))
                .await;
            let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
            assert!(!received.contains("4567"), "{uri}: {received:?}");
            let log = server.error_log();
            let is_refused = uri == "/odd/short" && directives == STORED;
            assert!(is_refused || log.contains(why), "{uri}: {log}");
        }
    }
}

#[tokio::test]
async fn the_slices_of_a_response_that_is_no_part_are_not_looked_for() {
    let php = FakePhp::tcp(|_| Script::page("Content-Type: text/plain\r\n", WHOLE)).await;
    let server = site(&format!(
        "location / {{ slice 4; fastcgi_pass {0}; fastcgi_param HTTP_RANGE $slice_range; }}\n\
         location /off {{ fastcgi_pass {0}; fastcgi_param HTTP_RANGE \"[$slice_range]\"; }}",
        php.address()
    ))
    .await;
    for path in ["/", "/off"] {
        let reply = server.target().get_with(path, "Range: bytes=5-6\r\n").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, WHOLE));
    }
    assert_eq!(php.requests(), 2);
}

#[tokio::test]
async fn the_rate_of_a_redirecting_response_holds_for_the_one_in_its_place() {
    let php = FakePhp::tcp(|_| {
        Script::page(
            "X-Accel-Redirect: /file\r\nX-Accel-Limit-Rate: 1234\r\n",
            "",
        )
    })
    .await;
    let server = site(&format!(
        "location / {{ fastcgi_pass {}; fastcgi_param A b; }}\n\
         location = /file {{ internal; limit_rate 0; add_header X-Rate $limit_rate; try_files /page =404; }}",
        php.address()
    ))
    .await;
    let reply = server.target().get("/").await;
    assert_eq!(
        (reply.text().as_str(), reply.field("x-rate")),
        ("page", "1234")
    );
}

#[tokio::test]
async fn limit_rate_holds_back_what_comes_after_the_free_part() {
    let server = site(
        "location / { limit_rate 1k; limit_rate_after 500; try_files /page =404; }\n\
         location /free { limit_rate 1; limit_rate_after 1m; try_files /page =404; }\n\
         location /set { limit_rate 1; set $limit_rate 1m; try_files /page =404; }",
    )
    .await;
    file(&server, "page", &"x".repeat(3000));
    let took = async |path: &str| {
        let begun = std::time::Instant::now();
        assert_eq!(server.target().get(path).await.body.len(), 3000, "{path}");
        begun.elapsed().as_millis()
    };
    // As in nginx, the second that has begun is paid for: some 1500 bytes are not.
    let held_back = took("/").await;
    assert!((500..10_000).contains(&held_back), "{held_back} ms");
    assert!(took("/free").await < 500);
    assert!(took("/set").await < 500);
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// `mayfly serve URL`; stopped when dropped.
struct Served(std::process::Child);

impl Drop for Served {
    fn drop(&mut self) {
        // The parent of the serving process takes its child along.
        let _ = std::process::Command::new("kill")
            .arg(self.0.id().to_string())
            .status();
        let _ = self.0.wait();
    }
}

/// One GET over TCP: the whole response as a text.
fn get_tcp(port: u16, fields: &str) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request =
        format!("GET /page HTTP/1.1\r\nHost: site.test:81\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[tokio::test]
async fn serve_stands_in_front_of_an_http_server_without_a_configuration() {
    let (origin_port, port) = (free_port(), free_port());
    let origin = Running::start(
        program(),
        "",
        &format!(
            "server {{ listen 127.0.0.1:{origin_port}; listen unix:%%/http; location /page {{\n\
             add_header X-Number $request_id; add_header X-Seen \"$http_host $http_x_forwarded_proto $http_x_real_ip\";\n\
             return 200 page; }} }}"
        ),
    )
    .await;
    let child = std::process::Command::new(program())
        .args([
            "serve",
            &format!("http://127.0.0.1:{origin_port}/"),
            "--ttl",
            "1h",
        ])
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut served = Served(child);
    let said = {
        use std::io::BufRead;
        let stdout = served.0.stdout.take().expect("its words");
        let lines = std::io::BufReader::new(stdout).lines();
        let lines = lines.map_while(Result::ok);
        let mut said = Vec::new();
        for line in lines {
            said.push(line);
            if said.last().is_some_and(|line| line.contains("Ctrl-C")) {
                break;
            }
        }
        said.join("\n")
    };
    assert!(
        said.contains(&format!("Serving what http://127.0.0.1:{origin_port} says")),
        "{said}"
    );
    assert!(
        said.contains(&format!("http://127.0.0.1:{port}/")),
        "{said}"
    );
    let first = get_tcp(port, "").expect("an answer");
    assert!(
        first.contains("X-Cache: MISS") && first.ends_with("page"),
        "{first}"
    );
    assert!(
        first.contains("X-Seen: site.test:81 http 127.0.0.1"),
        "{first}"
    );
    let number = |text: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("X-Number: "))
            .map(str::to_owned)
    };
    let second = get_tcp(port, "").expect("an answer");
    assert!(second.contains("X-Cache: HIT"), "{second}");
    assert_eq!(number(&first), number(&second));
    let own = get_tcp(port, "Cookie: session=1\r\n").expect("an answer");
    assert!(own.contains("X-Cache: BYPASS"), "{own}");
    assert_ne!(number(&own), number(&first));
    // What is in memory outlives the upstream.
    drop(origin);
    let after = get_tcp(port, "").expect("an answer");
    assert!(
        after.contains("X-Cache: HIT") && after.ends_with("page"),
        "{after}"
    );
}
