//! Each named reason: the answer of `explain`, then the request itself, whose `$cache_reason` and
//! `Cache-Status` have the same word.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use control::explain::{KnownBy, Outcome};
use control::{ExplainRequest, PurgeRequest};
use http_cache::{DecidedBy, Reason};
use testkit::fake_http::{self, FakeHttp};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use testkit::wait::{TIMEOUT, until};
use tokio::sync::Semaphore;

use super::{explain, get, get_with};
use crate::start;

/// A request that has this reason.
struct Case {
    why: Reason,
    /// The place of the location.
    location: &'static str,
    method: &'static str,
    fields: &'static str,
    body: &'static str,
    /// The answer of PHP.
    answer: fn() -> Script,
}

const PLAIN: Case = Case {
    why: Reason::Off,
    location: "plain",
    method: "GET",
    fields: "",
    body: "",
    answer: || Script::page("X-Accel-Expires: 3600\r\n", "page"),
};

const fn asked_with(why: Reason, location: &'static str, fields: &'static str) -> Case {
    Case {
        why,
        location,
        fields,
        ..PLAIN
    }
}

const fn answered(why: Reason, answer: fn() -> Script) -> Case {
    Case {
        why,
        answer,
        ..PLAIN
    }
}

/// All reasons, but for those that have tests of their own below.
const CASES: [Case; 38] = [
    asked_with(Reason::Off, "off", ""),
    Case {
        why: Reason::Method,
        method: "POST",
        ..PLAIN
    },
    Case {
        why: Reason::Body,
        body: "x",
        ..PLAIN
    },
    asked_with(
        Reason::Upgrade,
        "http",
        "Upgrade: websocket\r\nConnection: upgrade\r\n",
    ),
    asked_with(Reason::Range, "plain", "Range: bytes=1000-\r\n"),
    asked_with(Reason::Bypass, "plain", "X-Bypass: 1\r\n"),
    asked_with(Reason::OwnWrite, "plain", "Cookie: mayfly_writer=UNTIL\r\n"),
    asked_with(Reason::Accept, "shared", "Accept: application/json\r\n"),
    asked_with(Reason::Argument, "shared/argument?preview=1", ""),
    asked_with(Reason::Cookie, "shared", "Cookie: session=1\r\n"),
    asked_with(
        Reason::Credentials,
        "shared",
        "Authorization: Basic YTpi\r\n",
    ),
    asked_with(Reason::Field, "shared", "X-Tenant: acme\r\n"),
    asked_with(Reason::Unproven, "shared", "Accept-Language: de\r\n"),
    asked_with(
        Reason::Override,
        "shared",
        "X-HTTP-Method-Override: PUT\r\n",
    ),
    asked_with(
        Reason::Fragment,
        "shared",
        "X-Requested-With: XMLHttpRequest\r\n",
    ),
    asked_with(Reason::Path, "shared/account", ""),
    asked_with(Reason::TooLong, "shared", "Cookie: lang=LONG\r\n"),
    asked_with(Reason::Purge, "plain", "X-Purge: 1\r\n"),
    asked_with(Reason::MinUses, "often", ""),
    answered(Reason::Failed, || Script::new().close()),
    answered(Reason::AccelRedirect, || {
        Script::page("X-Accel-Redirect: /file\r\n", "")
    }),
    asked_with(Reason::Condition, "plain", "X-No-Cache: 1\r\n"),
    answered(Reason::Status, || {
        Script::page("Status: 304 Not Modified\r\n", "")
    }),
    answered(Reason::Partial, || {
        let head =
            "Status: 206 Partial Content\r\nX-Accel-Expires: 60\r\nContent-Range: bytes 0-3/9\r\n";
        Script::page(head, "page")
    }),
    Case {
        why: Reason::CookieOutsideKey,
        location: "ignoring",
        fields: "Cookie: a=b\r\n",
        answer: || Script::page("Cache-Control: private\r\nX-Accel-Expires: 60\r\n", "page"),
        ..PLAIN
    },
    asked_with(
        Reason::Authorization,
        "plain",
        "Authorization: Basic YTpi\r\n",
    ),
    answered(Reason::SetCookie, || {
        Script::page("Set-Cookie: a=b\r\nX-Accel-Expires: 60\r\n", "page")
    }),
    answered(Reason::NoStoreDirective, || {
        Script::page("Cache-Control: no-store\r\n", "page")
    }),
    answered(Reason::NoCache, || {
        Script::page("Cache-Control: no-cache\r\n", "page")
    }),
    answered(Reason::Private, || {
        Script::page("Cache-Control: private, max-age=9\r\n", "page")
    }),
    answered(Reason::VaryStar, || {
        Script::page("Vary: *\r\nX-Accel-Expires: 60\r\n", "page")
    }),
    answered(Reason::VaryTooLong, || {
        let names: Vec<String> = (0..100).map(|number| format!("X-Name-{number}")).collect();
        Script::page(
            &format!("Vary: {}\r\nX-Accel-Expires: 60\r\n", names.join(",")),
            "page",
        )
    }),
    answered(Reason::ZeroLifetime, || {
        Script::page("Cache-Control: max-age=0\r\n", "page")
    }),
    answered(Reason::UnknownLifetime, || {
        Script::page("Cache-Control: max-age=an hour\r\n", "page")
    }),
    answered(Reason::NoLifetime, || {
        Script::page("X-Plain: 1\r\n", "page")
    }),
    Case {
        why: Reason::TooLarge,
        location: "large",
        answer: || Script::page("X-Accel-Expires: 60\r\n", vec![b'x'; (16 << 20) + 1]),
        ..PLAIN
    },
    answered(Reason::NoRoom, || {
        Script::page("X-Accel-Expires: 60\r\n", vec![b'x'; 9 << 20])
    }),
    answered(Reason::ExcessData, || {
        Script::page("X-Accel-Expires: 60\r\nContent-Length: 2\r\n", "page")
    }),
];

/// The reasons with tests of their own.
const OTHERS: [Reason; 12] = [
    Reason::Depends,
    Reason::NoLease,
    Reason::LostLease,
    Reason::LockTimeout,
    Reason::TooManyVariants,
    Reason::NoAnswer,
    Reason::Truncated,
    Reason::AddressDatabase,
    Reason::Purged,
    Reason::Superseded,
    Reason::OwnCopy,
    Reason::NotShareable,
];

#[test]
fn each_reason_has_a_test() {
    let tested = CASES.iter().map(|case| case.why).chain(OTHERS);
    let tested: BTreeSet<&str> = tested.map(Reason::word).collect();
    let all: BTreeSet<&str> = Reason::ALL.iter().map(|why| why.word()).collect();
    assert_eq!(tested, all);
}

#[test]
fn the_page_of_reasons_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cache-reasons.md");
    testkit::golden::assert_file(&path, &server::explain::reference());
}

impl Case {
    fn path(&self) -> String {
        let separator = if self.location.contains('?') {
            "&"
        } else {
            "?"
        };
        format!("/{}{separator}{}", self.location, self.why.word())
    }

    fn fields(&self) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        let until = (now.as_millis() + 50_000).to_string();
        let long = "x".repeat(2000);
        self.fields.replace("UNTIL", &until).replace("LONG", &long)
    }

    fn request(&self) -> ExplainRequest {
        let mut request = get_with(&self.path(), &self.fields());
        request.method = Some(self.method.to_owned());
        if !self.body.is_empty() {
            request
                .fields
                .push(("Content-Length".to_owned(), "1".to_owned()));
        }
        request
    }

    /// The part of the server that knows the reason before the response is there.
    fn known_by(&self) -> KnownBy {
        match self.why.decided_by() {
            _ if matches!(self.why, Reason::Condition | Reason::Unproven) => KnownBy::Request,
            DecidedBy::Request => KnownBy::Request,
            DecidedBy::Moment => KnownBy::Moment,
            DecidedBy::Response | DecidedBy::Body => KnownBy::LastResponse,
        }
    }
}

/// PHP that answers by the case whose word is the last of the arguments.
async fn php() -> FakePhp {
    FakePhp::tcp(|request| {
        let target = request.param("REQUEST_URI");
        let word = target.rsplit(['?', '&']).next().unwrap_or_default();
        let word = word.strip_suffix("-asked").unwrap_or(word);
        let case = CASES.iter().find(|case| case.why.word() == word);
        case.map_or_else(PLAIN.answer, |case| (case.answer)())
    })
    .await
}

async fn site(php: &FakePhp, http: &FakeHttp) -> RunningServer {
    let pass = format!(
        "fastcgi_pass {}; fastcgi_param REQUEST_URI $request_uri; fastcgi_cache_key $host$request_uri;",
        php.address()
    );
    start(&format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         fastcgi_cache_path %%/large keys_zone=large:1m memory=64m;\n\
         log_format reasons '$request_uri $http_via reason=$cache_reason.';\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
         access_log %%/access.log reasons; fastcgi_cache zone;\n\
         location /plain {{ {pass} fastcgi_cache_bypass $http_x_bypass; fastcgi_no_cache $http_x_no_cache;\n\
         fastcgi_cache_max_range_offset 10; cache_read_your_writes 60s;\n\
         fastcgi_cache_purge $http_x_purge; }}\n\
         location /off {{ {pass} fastcgi_cache off; }}\n\
         location /often {{ {pass} fastcgi_cache_min_uses 9; }}\n\
         location /ignoring {{ {pass} fastcgi_ignore_headers Cache-Control; }}\n\
         location /large {{ {pass} fastcgi_cache large; }}\n\
         location /shared {{ fastcgi_pass {}; fastcgi_param REQUEST_URI $request_uri;\n\
         cache_shared on; cache_personal_args preview; cache_key_cookies lang;\n\
         cache_personal_paths /shared/account; }}\n\
         location /http {{ proxy_pass {}; proxy_cache zone; proxy_http_version 1.1;\n\
         proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection; }}\n\
         location = /file {{ internal; return 200 file; }}\n\
         location = /silent {{ return 444; }} }}",
        php.address(),
        http.url()
    ))
    .await
}

async fn servers() -> (FakePhp, FakeHttp, RunningServer) {
    let php = php().await;
    let http =
        FakeHttp::start(|_| fake_http::Script::page("X-Accel-Expires: 60\r\n", "page")).await;
    let server = site(&php, &http).await;
    (php, http, server)
}

/// Makes the request: returns the head of the response, and the reason in the log.
async fn ask(server: &RunningServer, case: &Case, step: &str) -> (String, String) {
    let mut client = server.connect().await;
    let (path, fields) = (case.path(), case.fields());
    let length = match case.body {
        "" => String::new(),
        body => format!("Content-Length: {}\r\n", body.len()),
    };
    // The fields of `explain`: it asks for HTML, unless the case has its own.
    let connection = if fields.contains("Connection:") {
        ""
    } else {
        "Connection: close\r\n"
    };
    client
        .send(format!(
            "{} {path} HTTP/1.1\r\nHost: site.test\r\n{connection}Via: 1.1 {step}\r\n{fields}{length}\r\n{}",
            case.method, case.body
        ))
        .await;
    let head = client.receive_until("\r\n\r\n").await;
    if connection.is_empty() {
        drop(client);
    } else {
        client.receive_all().await;
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    (head, logged(server, &format!("{path} 1.1 {step}")).await)
}

/// The reason in the line of the log that begins so.
async fn logged(server: &RunningServer, start: &str) -> String {
    let log = server.path("access.log");
    let line = || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(start))?;
        Some(line.split_once("reason=")?.1.strip_suffix('.')?.to_owned())
    };
    until("the log has the line", || line().is_some()).await;
    line().expect("it was there")
}

fn detail(head: &str) -> Option<&str> {
    let line = head
        .lines()
        .find(|line| line.starts_with("Cache-Status:"))?;
    Some(line.split_once("detail=")?.1.split(';').next()?.trim())
}

#[tokio::test]
async fn what_is_explained_is_what_happens() {
    let (php, _http, server) = servers().await;
    for case in &CASES {
        let word = case.why.word();
        if case.known_by() == KnownBy::LastResponse {
            let told = explain(&server, &case.request()).await;
            assert_eq!(told.reason, None, "{word}: nobody can know it yet");
            assert!(told.advice.iter().any(|it| it.contains("--ask")), "{word}");
            ask(&server, case, "first").await;
        }
        let before = php.requests();
        let told = explain(&server, &case.request()).await;
        assert_eq!(php.requests(), before, "{word}: nobody is asked");
        let reason = told
            .reason
            .clone()
            .unwrap_or_else(|| panic!("{word}: {told:?}"));
        assert_eq!(
            (reason.word.as_str(), reason.known_by),
            (word, case.known_by()),
            "{told:?}"
        );
        assert_eq!(reason.sentence, case.why.sentence());
        assert!(!told.is_stored && !told.advice.is_empty(), "{word}");
        assert_ne!(told.outcome, Outcome::Hit, "{word}");

        let (head, logged) = ask(&server, case, "second").await;
        assert_eq!(logged, word, "{head}");
        let is_told_early = case.why.decided_by() != DecidedBy::Body || head.contains("fwd=miss");
        let has_cache = !matches!(case.why, Reason::Off | Reason::Purge);
        if is_told_early && has_cache {
            assert_eq!(detail(&head), Some(word), "{head}");
        }
    }
}

#[tokio::test]
async fn asking_says_what_only_the_application_knows() {
    let (php, _http, server) = servers().await;
    let known_by_answer = |case: &&Case| case.known_by() == KnownBy::LastResponse;
    for case in CASES.iter().filter(known_by_answer) {
        let word = case.why.word();
        let before = php.requests();
        let told = explain(
            &server,
            &ExplainRequest {
                url: format!("http://site.test{}-asked", case.path()),
                ask: true,
                ..case.request()
            },
        )
        .await;
        assert!(php.requests() > before, "{word}");
        let reason = told.reason.unwrap_or_else(|| panic!("{word}"));
        assert_eq!(
            (reason.word.as_str(), reason.known_by),
            (word, KnownBy::Response)
        );
        assert!(
            told.asked.is_some_and(|asked| asked.status >= 200),
            "{word}"
        );
    }
    let told = explain(
        &server,
        &ExplainRequest {
            ask: true,
            ..get("/silent")
        },
    )
    .await;
    assert_eq!(told.reason.expect("a reason").word, "no-answer");
}

#[tokio::test]
async fn what_would_change_something_is_not_asked() {
    let (php, _http, server) = servers().await;
    let socket = server.path("pid.control");
    for (request, words) in [
        (
            ExplainRequest {
                method: Some("POST".to_owned()),
                ask: true,
                ..get("/plain")
            },
            "only GET and HEAD",
        ),
        (
            ExplainRequest {
                ask: true,
                ..get_with("/plain", "X-Purge: 1\r\n")
            },
            "would purge",
        ),
        (get("/a b\r\nX: y"), ""),
        (get_with("/plain", "Bad Name: x\r\n"), "not valid"),
    ] {
        match control::client::explain(&socket, &request).await {
            Ok(told) if words.is_empty() => assert!(!told.url.is_empty()),
            Ok(told) => panic!("{told:?}"),
            Err(error) => assert!(error.to_string().contains(words), "{error}"),
        }
    }
    assert_eq!(php.requests(), 0);
}

#[tokio::test]
async fn a_page_that_depends_on_what_a_visitor_says_is_told_as_such() {
    let php = FakePhp::tcp(|request| {
        let page = format!("from {}", request.param("HTTP_REFERER"));
        Script::page("X-Accel-Expires: 3600\r\n", page)
    })
    .await;
    let server =
        start(&php.cached_site("cache_shared on; add_header X-Reason $cache_reason;")).await;
    let target = server.target();
    target.get("/").await;
    let fields = "Referer: http://other.test/\r\n";
    let reply = target.get_with("/", fields).await;
    assert_eq!(
        (&*reply.text(), reply.field("x-reason")),
        ("from http://other.test/", "unproven")
    );
    // Its answer is another than the stored one. Why is tried out in the background.
    until_depends(&server, fields).await;
    let reply = target.get_with("/", fields).await;
    assert_eq!(
        (&*reply.text(), reply.field("x-reason")),
        ("from http://other.test/", "depends")
    );
    assert_eq!(target.get("/").await.x_cache(), "HIT");
}

async fn until_depends(server: &RunningServer, fields: &str) {
    let begun = Instant::now();
    loop {
        let told = explain(server, &get_with("/", fields)).await;
        let reason = told.reason.expect("a reason");
        if reason.word == "depends" {
            assert_eq!(reason.known_by, KnownBy::Request);
            return;
        }
        assert_eq!(reason.word, "unproven");
        assert!(begun.elapsed() < TIMEOUT, "{reason:?}");
    }
}

#[tokio::test]
async fn a_key_with_too_many_variants_says_so() {
    let php = FakePhp::tcp(|_| {
        Script::page("Vary: Accept-Language\r\nX-Accel-Expires: 3600\r\n", "page")
    })
    .await;
    let server = start(&php.cached_site("add_header X-Reason $cache_reason;")).await;
    let language = |number: usize| format!("Accept-Language: x-{number}\r\n");
    for number in 0..16 {
        let reply = server.target().get_with("/", &language(number)).await;
        assert_eq!(reply.field("x-reason"), "", "{number}");
    }
    let told = explain(&server, &get_with("/", &language(16))).await;
    assert_eq!(told.outcome, Outcome::VaryMiss);
    let reason = told.reason.expect("a reason");
    assert_eq!(
        (&*reason.word, reason.known_by),
        ("too-many-variants", KnownBy::Moment)
    );
    let variants = told.variants.expect("variants");
    assert_eq!((variants.stored, variants.most), (16, 16));
    assert_eq!(variants.fields, ["accept-language"]);
    let reply = server.target().get_with("/", &language(16)).await;
    assert_eq!(reply.field("x-reason"), "too-many-variants");
    assert!(
        reply
            .field("cache-status")
            .contains("detail=too-many-variants")
    );
    let reply = server.target().get_with("/", &language(16)).await;
    assert_eq!((reply.x_cache(), reply.field("x-reason")), ("HIT", ""));
}

#[tokio::test]
async fn who_waits_too_long_for_another_is_told_so() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php =
        FakePhp::tcp(move |_| Script::new().wait_for(&held).stdout("\r\npage").end(0, 0)).await;
    let server = start(&php.cached_site(
        "fastcgi_cache_valid any 1h; fastcgi_cache_lock_timeout 50ms; add_header X-Reason $cache_reason;",
    ))
    .await;
    let target = server.target();
    let leader = tokio::spawn(async move { target.get("/").await });
    until("the leader asks", || php.requests() == 1).await;
    let target = server.target();
    let follower = tokio::spawn(async move { target.get("/").await });
    until("the follower asks for itself", || php.requests() == 2).await;
    gate.add_permits(2);
    let reply = follower.await.expect("a reply");
    assert_eq!(reply.field("x-reason"), "lock-timeout");
    assert!(reply.field("cache-status").contains("detail=lock-timeout"));
    assert_eq!(leader.await.expect("a reply").field("x-reason"), "");
}

#[tokio::test]
async fn a_body_that_breaks_off_and_a_purge_meanwhile_are_in_the_log() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/cut" => Script::page("X-Accel-Expires: 60\r\nContent-Length: 100\r\n", "page"),
        _ => Script::new()
            .stdout("X-Accel-Expires: 60\r\n\r\nhalf")
            .wait_for(&held)
            .stdout("half")
            .end(0, 0),
    })
    .await;
    let server = start(&format!(
        "log_format reasons '$request_uri $http_via reason=$cache_reason.';\n{}",
        php.cached_site("access_log %%/access.log reasons;")
    ))
    .await;
    let mut client = server.connect().await;
    let get = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: site.test\r\nVia: 1.1 first\r\nConnection: close\r\n\r\n"
        )
    };
    client.send(get("/cut")).await;
    client.receive_all().await;
    assert_eq!(logged(&server, "/cut 1.1 first").await, "truncated");
    let told = explain(&server, &super::get("/cut")).await;
    assert_eq!(told.reason.expect("a reason").word, "truncated");

    let mut client = server.connect().await;
    client.send(get("/held")).await;
    client.receive_until("half").await;
    let purge = PurgeRequest {
        urls: vec!["http://site.test/held".to_owned()],
        ..PurgeRequest::default()
    };
    let purged = control::client::purge(&server.path("pid.control"), &purge).await;
    assert!(purged.is_ok());
    gate.add_permits(1);
    client.receive_all().await;
    assert_eq!(logged(&server, "/held 1.1 first").await, "purged");
    let told = explain(&server, &super::get("/held")).await;
    assert_eq!(told.reason.expect("a reason").word, "purged");
}
