//! Configurations that switch off the protection of sessions, in the ways that tutorials print: they start, warn, and
//! no visitor sees another's page or cookie.

use testkit::client::{Reply, Target};
use testkit::fake_php::{FakePhp, Request, Script};
use testkit::running::RunningServer;

use crate::start;

/// An application with PHP's sessions: a cookie for a visitor without one, `no-store` on every page, and the visitor's
/// own page for one with a cookie.
fn session(request: &Request) -> Script {
    let cookies = request.param("HTTP_COOKIE");
    let own = cookies
        .split("; ")
        .find_map(|it| it.strip_prefix("PHPSESSID="));
    let limiter = "Expires: Thu, 19 Nov 1981 08:52:00 GMT\r\n\
        Cache-Control: no-store, no-cache, must-revalidate\r\nPragma: no-cache\r\n";
    match own {
        Some(own) => Script::page(limiter, format!("account of {own}")),
        None => {
            let number = request.number;
            let fields = format!("{limiter}Set-Cookie: PHPSESSID=new-{number}\r\n");
            Script::page(&fields, format!("welcome, session new-{number}"))
        }
    }
}

/// Ignored fields, and the additions of tutorials that protect no visitor.
const WAYS: [(&str, &str); 6] = [
    (
        "all three",
        "fastcgi_ignore_headers Cache-Control Expires Set-Cookie;",
    ),
    (
        "conditions that never hold",
        "fastcgi_ignore_headers Cache-Control Expires Set-Cookie;\n\
         fastcgi_no_cache 0; fastcgi_cache_bypass 0;",
    ),
    (
        "a bypass for another cookie",
        "fastcgi_ignore_headers Cache-Control Expires Set-Cookie;\n\
         fastcgi_cache_bypass $cookie_nocache $arg_nocache; fastcgi_no_cache $cookie_nocache;",
    ),
    (
        "the cookie passed on",
        "fastcgi_ignore_headers Cache-Control Expires Set-Cookie;\n\
         fastcgi_pass_header Set-Cookie; fastcgi_pass_header Cookie;",
    ),
    (
        "the cookie hidden",
        "fastcgi_ignore_headers Cache-Control Expires Set-Cookie Vary;\n\
         fastcgi_hide_header Set-Cookie;",
    ),
    (
        "one line each, and any status",
        "fastcgi_ignore_headers Cache-Control; fastcgi_ignore_headers Expires;\n\
         fastcgi_ignore_headers Set-Cookie X-Accel-Expires; fastcgi_cache_valid any 1h;\n\
         fastcgi_cache_key \"$request_method$host$request_uri$cookie_theme\";",
    ),
];

async fn server(php: &FakePhp, lines: &str) -> RunningServer {
    start(&format!(
        "fastcgi_cache_path %%/pages keys_zone=pages:1m memory=8m;\n\
             server {{ listen unix:%%/http;\n{lines}\n\
             fastcgi_cache pages; fastcgi_cache_valid 200 1h;\n\
             fastcgi_param REQUEST_URI $request_uri; add_header X-Cache $upstream_cache_status;\n\
             location / {{ fastcgi_pass {}; }} }}",
        php.address()
    ))
    .await
}

async fn with_session(target: &Target, name: &str) -> Reply {
    let fields = format!("Cookie: theme=dark; PHPSESSID={name}\r\n");
    target.get_with("/", &fields).await
}

#[tokio::test]
async fn two_visitors_with_sessions_never_see_each_others_page_or_cookie() {
    for (way, lines) in WAYS {
        let php = FakePhp::tcp(session).await;
        let server = server(&php, lines).await;
        let target = server.target();
        for _ in 0..2 {
            let strangers = [target.get("/").await, target.get("/").await];
            for stranger in &strangers {
                assert!(
                    stranger.text().starts_with("welcome"),
                    "{way}: {}",
                    stranger.text()
                );
            }
            assert_ne!(
                strangers[0].text(),
                strangers[1].text(),
                "{way}: one session"
            );
            for name in ["alice", "bob"] {
                let reply = with_session(&target, name).await;
                assert_eq!(reply.text(), format!("account of {name}"), "{way}");
                assert!(!reply.has("set-cookie"), "{way}");
            }
            // A cookie that PHP does not know, in the same place of the key.
            let other = target.get_with("/", "Cookie: theme=dark\r\n").await;
            assert!(
                other.text().starts_with("welcome"),
                "{way}: {}",
                other.text()
            );
        }
    }
}

#[test]
fn such_a_configuration_is_accepted_with_a_warning() {
    for (way, lines) in WAYS {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "events {{}} http {{ fastcgi_cache_path /c keys_zone=pages:1m; server {{ listen 8080;\n\
             {lines}\nfastcgi_cache pages; fastcgi_cache_valid 200 1h;\n\
             location / {{ fastcgi_pass 127.0.0.1:9000; }} }} }}"
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, text).expect("a file");
        let checked = std::process::Command::new(crate::program())
            .arg("check")
            .arg(&file)
            .output()
            .expect("the program");
        let said = String::from_utf8_lossy(&checked.stderr).into_owned()
            + &String::from_utf8_lossy(&checked.stdout);
        // 3: the report has warnings.
        let is_accepted = matches!(checked.status.code(), Some(0 | 3));
        assert!(is_accepted, "{way}: {said}");
        assert!(
            said.contains("responses that set a cookie are not stored"),
            "{way}: {said}"
        );
        assert!(
            said.contains("private and no-store still count"),
            "{way}: {said}"
        );
    }
}

/// With a session's identity in the key its pages may be kept, as published set-ups do.
#[tokio::test]
async fn a_page_whose_session_is_in_the_key_is_kept_for_that_session() {
    for key in [
        "$request_uri$http_cookie",
        "$request_uri$session",
        "$request_uri$cookie_phpsessid",
    ] {
        let php = FakePhp::tcp(session).await;
        let lines =
            format!("fastcgi_ignore_headers Cache-Control Expires; fastcgi_cache_key \"{key}\";");
        let server = start(&format!(
            "fastcgi_cache_path %%/pages keys_zone=pages:1m memory=8m;\n\
                 map $http_cookie $session {{ default ''; \"~PHPSESSID=(?<own>[a-z]+)\" $own; }}\n\
                 server {{ listen unix:%%/http;\n{lines}\n\
                 fastcgi_cache pages; fastcgi_cache_valid 200 1h;\n\
                 add_header X-Cache $upstream_cache_status;\n\
                 location / {{ fastcgi_pass {}; }} }}",
            php.address()
        ))
        .await;
        let target = server.target();
        for wanted in ["MISS", "HIT"] {
            for name in ["alice", "bob"] {
                let reply = target
                    .get_with("/", &format!("Cookie: PHPSESSID={name}\r\n"))
                    .await;
                assert_eq!(reply.text(), format!("account of {name}"), "{key}");
                assert_eq!(reply.x_cache(), wanted, "{key}");
            }
        }
    }
}

/// The answer of WordPress 6.1 to a visitor who is logged in: none of it forbids storing once `Cache-Control` and
/// `Expires` are ignored.
fn word_press(request: &Request) -> Script {
    let limiter = "Expires: Wed, 11 Jan 1984 05:00:00 GMT\r\nCache-Control: no-cache, must-revalidate, max-age=0\r\n";
    let is_admin = request.param("HTTP_COOKIE").contains("wordpress_logged_in")
        || request.param("HTTP_AUTHORIZATION") == "Basic YTpi";
    match is_admin {
        true => Script::page(limiter, "page with the bar of the administrator"),
        false => Script::page("", format!("page {}", request.number)),
    }
}

/// Tutorials have a bypass for visitors who are logged in and forget `fastcgi_no_cache`.
#[tokio::test]
async fn what_a_bypass_let_through_for_one_visitor_is_not_stored_for_others() {
    let ways = [
        "set $skip_cache 0; if ($http_cookie ~* \"wordpress_logged_in\") { set $skip_cache 1; } fastcgi_cache_bypass $skip_cache;",
        "fastcgi_cache_bypass $cookie_wordpress_logged_in $arg_renew;",
        "fastcgi_cache_bypass $logged_in; fastcgi_no_cache $arg_preview;",
        "cache_store_authorized on; fastcgi_cache_bypass $http_authorization;",
    ];
    for way in ways {
        let php = FakePhp::tcp(word_press).await;
        let server = start(&format!(
            "fastcgi_cache_path %%/pages keys_zone=pages:1m memory=8m;\n\
             map $http_cookie $logged_in {{ default 0; ~wordpress_logged_in 1; }}\n\
             server {{ listen unix:%%/http; fastcgi_cache pages; fastcgi_cache_valid 200 1h;\n\
             fastcgi_ignore_headers Cache-Control Expires Set-Cookie;\n{way}\n\
             fastcgi_param HTTP_AUTHORIZATION $http_authorization if_not_empty;\n\
             add_header X-Cache $upstream_cache_status; location / {{ fastcgi_pass {}; }} }}",
            php.address()
        ))
        .await;
        let target = server.target();
        let admin = match way.contains("authorized") {
            true => "Authorization: Basic YTpi\r\n",
            false => "Cookie: wordpress_logged_in=x\r\n",
        };
        for path in ["/a", "/b?renew=1"] {
            for round in 0..2 {
                let own = target.get_with(path, admin).await;
                assert!(own.text().contains("administrator"), "{way}");
                let reply = target.get(path).await;
                assert!(!reply.text().contains("administrator"), "{way}");
                // A condition on arguments alone still renews.
                let is_hit = round == 1 && path == "/a";
                assert_eq!(reply.x_cache() == "HIT", is_hit, "{way}: {reply:?}");
            }
            if !way.contains("arg_renew") {
                break;
            }
        }
    }
}
