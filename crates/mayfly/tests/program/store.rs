//! Responses kept as files, in both spellings of the directives: which responses
//! are kept, where and with which rights, and which never are.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use testkit::origin::{Origin, OriginAnswer, Request, Spelling};
use testkit::running::RunningServer;
use testkit::wait::until;
use tokio::sync::Semaphore;

use crate::start;

/// An origin and a server with these directives.
struct Site {
    origin: Origin,
    server: RunningServer,
}

impl Site {
    async fn start(
        spelling: Spelling,
        directives: &str,
        handler: impl Fn(&Request) -> OriginAnswer + Send + Sync + 'static,
    ) -> Site {
        let origin = Origin::start(spelling, handler).await;
        let http = format!(
            "*_temp_path %%/temp;\n\
             server {{\n listen unix:%%/http;\n server_name site.test;\n{directives}\n}}"
        );
        let server = start(&spelling.spell(&http, &origin)).await;
        Site { origin, server }
    }

    fn kept(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.server.path(name)).ok()
    }

    /// The content of a file that is about to be there: a client has all that it
    /// waits for a moment before the protocol's own end comes.
    async fn kept_soon(&self, name: &str) -> String {
        until("the file", || self.kept(name).is_some()).await;
        self.kept(name).unwrap_or_default()
    }

    /// Files under way.
    fn temporary(&self) -> usize {
        std::fs::read_dir(self.server.path("temp")).map_or(0, Iterator::count)
    }
}

fn mode(path: &Path) -> u32 {
    let metadata = std::fs::metadata(path).expect("it is there");
    metadata.permissions().mode() & 0o777
}

#[tokio::test]
async fn a_response_is_kept_where_root_alias_or_a_path_says() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "location /a/ { PASS; *_store on; }\n\
             location /b/ { PASS; *_store on; alias %%/elsewhere/; }\n\
             location /c/ { PASS; *_store %%/made/$arg_name.html; *_store_access group:rw all:r; }\n\
             location /d/ { PASS; *_store relative$uri; *_store_access user:r; }\n\
             location /e/ { PASS; *_store off; }",
            |request| {
                let fields = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
                OriginAnswer::page(fields, format!("for {}", request.target))
            },
        )
        .await;
        for (target, file) in [
            ("/a/x%20y", "a/x y"),
            ("/b/deep/er", "elsewhere/deep/er"),
            ("/c/?name=n", "made/n.html"),
            ("/d/z", "relative/d/z"),
        ] {
            assert_eq!(site.kept(file), None, "{spelling:?} {file}");
            let reply = site.server.target().get(target).await;
            assert_eq!(reply.text(), format!("for {target}"), "{spelling:?}");
            let kept = site.kept_soon(file).await;
            assert_eq!(kept, reply.text(), "{spelling:?} {file}");
            let metadata = std::fs::metadata(site.server.path(file)).expect("a file");
            assert_eq!(metadata.mtime(), 784_111_777, "{spelling:?} {file}");
        }
        for (file, bits) in [
            ("a/x y", 0o600),
            ("made/n.html", 0o664),
            ("relative/d/z", 0o400),
        ] {
            let path = site.server.path(file);
            assert_eq!(mode(&path), bits, "{spelling:?} {file}");
        }
        assert_eq!(mode(&site.server.path("a")), 0o700);
        // The rest of 0775 is up to the process's mask.
        assert_eq!(mode(&site.server.path("made")) & 0o700, 0o700);
        assert_eq!(site.server.target().get("/e/x").await.text(), "for /e/x");
        assert!(!site.server.path("e").exists());
        assert_eq!(site.temporary(), 0);
    }
}

#[tokio::test]
async fn what_was_kept_is_served_without_asking_again() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "root %%/files;\n\
             location /missing/ { error_page 404 = /fetch$uri; log_not_found off; }\n\
             location /fetch/ { internal; PASS; *_store on; alias %%/files/; }\n\
             location /tried/ { try_files $uri @fetch; }\n\
             location @fetch { PASS; *_store on; }",
            |request| OriginAnswer::page("", format!("made {}", request.number)),
        )
        .await;
        for (number, target) in [(1, "/missing/a"), (2, "/tried/a")] {
            for _ in 0..3 {
                let reply = site.server.target().get(target).await;
                let wanted = (200, format!("made {number}"));
                assert_eq!(
                    (reply.status, reply.text()),
                    wanted,
                    "{spelling:?} {target}"
                );
                site.kept_soon(&format!("files{target}")).await;
            }
        }
        assert_eq!(site.origin.requests(), 2);
        assert_eq!(site.server.target().get("/fetch/a").await.status, 404);
    }
}

#[tokio::test]
async fn a_body_of_any_framing_is_kept_whole() {
    let long = "0123456789abcdef".repeat(64 * 1024);
    for spelling in Spelling::BOTH {
        let body = long.clone();
        let site = Site::start(
            spelling,
            "location / { PASS; *_store on; *_max_temp_file_size 0; gzip on; gzip_types *; }",
            move |request| match request.target.as_str() {
                "/empty" => OriginAnswer::status(200, ""),
                "/open" => OriginAnswer::page("", "one, ").then("two").of_open_length(),
                _ => OriginAnswer::page("", &body),
            },
        )
        .await;
        for (target, wanted) in [("/empty", ""), ("/open", "one, two"), ("/long", &long)] {
            let zipped = "Accept-Encoding: gzip\r\n";
            let reply = site.server.target().get_with(target, zipped).await;
            assert!(reply.is_complete, "{spelling:?} {target}");
            let kept = site.kept_soon(&target[1..]).await;
            assert!(kept == wanted, "{spelling:?} {target}");
        }
        assert_eq!(site.temporary(), 0);
    }
}

#[tokio::test]
async fn only_complete_answers_with_status_200_are_kept() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "location / { PASS; *_store on; }\n\
             location /unbuffered { PASS; *_store on; *_buffering off; }\n\
             location /intercepted { PASS; *_store on; *_intercept_errors on; error_page 404 /other; }\n\
             location /other { return 200 other; }",
            |request| match request.target.as_str() {
                "/missing" | "/intercepted" => OriginAnswer::status(404, "").then("no"),
                "/part" => OriginAnswer::status(206, "Content-Range: bytes 0-1/9\r\n").then("ab"),
                "/unchanged" => OriginAnswer::status(304, ""),
                "/moved" => OriginAnswer::status(302, "Location: /x\r\n").then("there"),
                "/elsewhere" => OriginAnswer::page("X-Accel-Redirect: /other\r\n", "no"),
                "/unasked" => OriginAnswer::page("X-Accel-Buffering: no\r\n", "mine"),
                "/headless" => OriginAnswer::status(200, "").of_open_length(),
                _ => OriginAnswer::page("", "body"),
            },
        )
        .await;
        for (method, target, status) in [
            ("GET", "/missing", 404),
            ("GET", "/part", 206),
            ("GET", "/unchanged", 304),
            ("GET", "/moved", 302),
            ("GET", "/intercepted", 404),
            ("GET", "/elsewhere", 200),
            ("GET", "/unasked", 200),
            ("GET", "/unbuffered", 200),
            ("HEAD", "/head", 200),
            ("HEAD", "/headless", 200),
        ] {
            let reply = site.server.target().ask(method, target, "", "").await;
            assert_eq!(reply.status, status, "{spelling:?} {target}");
            assert_eq!(site.kept(&target[1..]), None, "{spelling:?} {target}");
        }
        assert_eq!(site.temporary(), 0);
    }
}

#[tokio::test]
async fn a_truncated_or_invalid_response_is_not_kept() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "location / { PASS; *_store on; }",
            |request| match request.target.as_str() {
                "/cut" => OriginAnswer::page("", "begun").claiming(100).cut(),
                "/short" => OriginAnswer::page("", "begun").claiming(100),
                "/open" => OriginAnswer::page("", "begun").of_open_length().cut(),
                "/nothing" => OriginAnswer::status(200, "").claiming(100).cut(),
                _ => OriginAnswer::page("", "more than it says").claiming(4),
            },
        )
        .await;
        let targets = match spelling {
            Spelling::FastCgi => &["/cut", "/short", "/open", "/nothing", "/more"][..],
            // Over a kept connection the missing bytes would still have to come.
            Spelling::Proxy => &["/cut", "/open", "/nothing", "/more"][..],
        };
        for target in targets {
            let mut client = site.server.connect().await;
            client
                .send(format!("GET {target} HTTP/1.1\r\nHost: site.test\r\n\r\n"))
                .await;
            if let Some(reply) = client.receive(false).await
                && *target != "/more"
            {
                assert!(!reply.is_complete || reply.status == 502, "{target}");
            }
            until("no temporary file", || site.temporary() == 0).await;
            assert_eq!(site.kept(&target[1..]), None, "{spelling:?} {target}");
        }
    }
}

#[tokio::test]
async fn a_broken_chunk_is_not_kept() {
    use testkit::fake_http::{FakeHttp, Script};
    let upstream = FakeHttp::start(|_| {
        Script::new()
            .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\nzz\r\n")
            .close()
    })
    .await;
    let http = format!(
        "server {{ listen unix:%%/http; proxy_temp_path %%/temp;\n\
         location / {{ proxy_pass http://{}; proxy_store on; }} }}",
        upstream.address()
    );
    let server = start(&http).await;
    let reply = server.target().get("/chunks").await;
    assert!(!reply.is_complete);
    assert!(!server.path("chunks").exists());
}

#[tokio::test]
async fn the_file_is_completed_when_its_client_leaves() {
    for spelling in Spelling::BOTH {
        let gate = Arc::new(Semaphore::new(0));
        let held = gate.clone();
        let site = Site::start(
            spelling,
            "location / { PASS; *_store on; }",
            move |request| match request.target.as_str() {
                "/early" => OriginAnswer::status(200, "")
                    .wait_for(&held)
                    .then("begun, done"),
                "/broken" => OriginAnswer::page("", "begun,")
                    .wait_for(&held)
                    .claiming(99)
                    .cut(),
                _ => OriginAnswer::page("", "begun,")
                    .wait_for(&held)
                    .then(" done"),
            },
        )
        .await;
        for (target, seen) in [("/early", ""), ("/late", "begun,"), ("/broken", "begun,")] {
            let asked = site.origin.requests();
            let mut client = site.server.connect().await;
            client.send(format!("GET {target} HTTP/1.0\r\n\r\n")).await;
            until("a request", || site.origin.requests() > asked).await;
            if !seen.is_empty() {
                client.receive_until(seen).await;
            }
            drop(client);
            gate.add_permits(1);
            match target {
                "/broken" => until("no temporary file", || site.temporary() == 0).await,
                _ => until("the file", || site.kept(&target[1..]).is_some()).await,
            }
            let whole = (target != "/broken").then(|| "begun, done".to_owned());
            assert_eq!(site.kept(&target[1..]), whole, "{spelling:?} {target}");
        }
        until("no temporary file", || site.temporary() == 0).await;
    }
}

#[tokio::test]
async fn readers_see_the_file_before_or_the_file_after() {
    for spelling in Spelling::BOTH {
        let gate = Arc::new(Semaphore::new(0));
        let held = gate.clone();
        let site = Site::start(
            spelling,
            "location / { PASS; *_store on; }",
            move |request| match request.number {
                1 => OriginAnswer::page("", "the first"),
                _ => OriginAnswer::page("", "the")
                    .wait_for(&held)
                    .then(" second"),
            },
        )
        .await;
        site.server.target().get("/page").await;
        site.kept_soon("page").await;
        let mut client = site.server.connect().await;
        client.send("GET /page HTTP/1.0\r\n\r\n").await;
        client.receive_until("the").await;
        assert_eq!(site.kept("page").as_deref(), Some("the first"));
        gate.add_permits(1);
        assert_eq!(client.receive_all().await, b" second");
        until("the file", || {
            site.kept("page").as_deref() == Some("the second")
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_does_not_choose_the_folder() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "location / { PASS; *_store on; root %%/files; }\n\
             location /named { PASS; *_store %%/files/$arg_name; }\n\
             location /rewritten { rewrite ^ /x break; PASS; *_store on; alias %%/files; }",
            |_| OriginAnswer::page("", "body"),
        )
        .await;
        // The path is normal by the time it is mapped.
        site.server.target().get("/a/%2e%2e/../b").await;
        assert_eq!(site.server.target().get("/../b").await.status, 400);
        for target in ["/named?name=../c", "/named?name=d/../../c", "/rewritten"] {
            let reply = site.server.target().get(target).await;
            assert_eq!((reply.status, reply.text().as_str()), (200, "body"));
        }
        assert!(!site.server.path("c").exists() && !site.server.path("x").exists());
        assert!(site.server.error_log().contains("invalid path"));
        assert!(site.server.error_log().contains("\"alias\" cannot be used"));
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_written_costs_the_client_nothing() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "location / { PASS; *_store %%/error.log/x; }\n\
             location /folder { PASS; *_store %%; }\n\
             location /temp { PASS; *_store %%/kept; *_temp_path %%/error.log; }",
            |_| OriginAnswer::page("", "body"),
        )
        .await;
        for target in ["/", "/folder", "/temp"] {
            let reply = site.server.target().get(target).await;
            assert_eq!((reply.status, reply.text().as_str()), (200, "body"));
        }
        let refused = || {
            site.server
                .error_log()
                .matches("could not be stored")
                .count()
        };
        until("three refusals", || refused() == 3).await;
        assert_eq!(site.temporary(), 0);
    }
}

#[tokio::test]
async fn the_temporary_folder_may_be_on_another_file_system() {
    let Ok(temp) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    for spelling in Spelling::BOTH {
        let directives = format!(
            "location / {{ PASS; *_store on; *_store_access all:r; *_temp_path {}/temp; }}",
            temp.path().display()
        );
        let site = Site::start(spelling, &directives, |_| {
            let fields = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
            OriginAnswer::page(fields, "from afar")
        })
        .await;
        site.server.target().get("/deep/page").await;
        assert_eq!(site.kept_soon("deep/page").await, "from afar");
        let path = site.server.path("deep/page");
        let metadata = std::fs::metadata(&path).expect("a file");
        assert_eq!((metadata.mtime(), mode(&path)), (784_111_777, 0o604));
        let left = || std::fs::read_dir(temp.path().join("temp")).map_or(1, Iterator::count);
        until("nothing is left", || left() == 0).await;
        let beside = std::fs::read_dir(site.server.path("deep")).expect("a folder");
        assert_eq!(beside.count(), 1);
    }
}
