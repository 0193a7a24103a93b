//! `limit_except`: which methods a location takes.

use testkit::client::Target;

use crate::site;

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
    server.write("page", "page");
    server.write("users", "anna:{PLAIN}secret\n");
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
