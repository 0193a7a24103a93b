//! `auth_request`, `auth_request_set` and `satisfy`: a subrequest decides who comes in.

use testkit::fake_php::{FakePhp, Script};

use crate::{site, start};

/// PHP whose answer is the result of `answer` for each request's URI.
async fn php(answer: fn(&str) -> &'static str) -> FakePhp {
    FakePhp::tcp(move |request| Script::page(answer(request.param("REQUEST_URI")), "INVISIBLE"))
        .await
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
    server.write("page", "page");
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
    server.write("page", "page");
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
    let server = start(&http).await;
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
    server.write("page", "page");
    server.write("users", "anna:{PLAIN}secret\n");
    let target = server.target();
    for (path, open, with_401, with_403) in [
        ("/all/rule", 403, 403, 403),
        ("/all/word", 401, 401, 401),
        ("/any/yes", 404, 404, 404),
        ("/any/rule", 404, 401, 403),
        ("/any/word", 404, 401, 401),
        // A rule for another client is no consent.
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
