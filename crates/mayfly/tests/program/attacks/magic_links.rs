//! Links in a document root to what the server has open: uploads, responses and stored pages of other
//! sites. A tenant who puts such a link into one site would read them.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use testkit::fake_http::{FakeHttp, Script};
use testkit::running::RunningServer;
use testkit::wait::until;

use crate::start;

/// Much more than is kept in memory, and than the sockets between hold.
const UPLOAD_BYTES: usize = 8 << 20;
/// Large enough for a memory file.
const PAGE_BYTES: usize = 64 << 10;
const SECRET: &str = "secret of another site ";

async fn serve(upstream: &FakeHttp) -> RunningServer {
    let http = format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m; client_body_temp_path %%/bodies;\n\
         server {{ listen unix:%%/http; client_max_body_size 0; root %%/site;\n\
         location /t/ {{ autoindex on; }}\n\
         location /kept/ {{ open_file_cache max=100; alias %%/site/t/; }}\n\
         location /tried/ {{ try_files /t/$arg_file =404; }}\n\
         location /tested {{ if (-f %%/site/t/$arg_file) {{ return 200 found; }} return 404; }}\n\
         location / {{ proxy_pass http://{}; proxy_cache zone; proxy_cache_valid 200 1h; }} }}",
        upstream.address()
    );
    start(&http).await
}

/// The server's open files whose name begins so, as `/proc` shows it.
fn open_files(server: &RunningServer, begin: &str) -> Vec<(String, Metadata)> {
    let folder = format!("/proc/{}/fd", server.pid());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let link = std::fs::read_link(entry.path()).ok()?;
        let is_it = link.to_string_lossy().starts_with(begin);
        let number = entry.file_name().to_string_lossy().into_owned();
        is_it.then(|| Some((number, std::fs::metadata(entry.path()).ok()?)))?
    });
    named.collect()
}

#[tokio::test]
async fn no_link_leads_to_what_the_server_has_open() {
    let upstream = FakeHttp::start(|request| match &*request.target {
        "/page" => Script::page("", SECRET.repeat(PAGE_BYTES / SECRET.len())),
        _ => Script::page("", "done"),
    })
    .await;
    let server = serve(&upstream).await;
    let site = server.path("site/t");
    std::fs::create_dir_all(&site).unwrap();
    std::fs::write(site.join("plain"), "plain").unwrap();
    let target = server.target();
    let bodies = server.path("bodies").display().to_string();
    let mut client = server.connect().await;
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {UPLOAD_BYTES}\r\n\r\n");
    client.send(head).await;
    client
        .send(SECRET.repeat(UPLOAD_BYTES / 2 / SECRET.len()))
        .await;
    until("a file of the upload", || {
        let open = open_files(&server, &bodies);
        open.iter().any(|(_, facts)| facts.size() > 0)
    })
    .await;
    // Asked for so often, a page gets a file in memory.
    for _ in 0..40 {
        assert_eq!(target.get("/page").await.status, 200);
    }
    let mut open = open_files(&server, "/memfd:");
    assert!(!open.is_empty(), "there is a memory file");
    open.extend(open_files(&server, &bodies));
    let pid = server.pid();
    for (name, to) in [
        ("fd", "/proc/self/fd".to_owned()),
        ("other", format!("/proc/{pid}/fd")),
        ("proc", "/proc".to_owned()),
        ("environ", "/proc/self/environ".to_owned()),
        ("good", site.join("plain").display().to_string()),
    ] {
        symlink(to, site.join(name)).unwrap();
    }
    let mut paths = vec!["environ".to_owned(), "proc/self/maps".to_owned()];
    for (number, facts) in &open {
        assert_eq!(facts.mode() & 0o7777, 0o600, "descriptor {number}");
        let link = format!("one-{number}");
        symlink(format!("/proc/self/fd/{number}"), site.join(&link)).unwrap();
        for folder in ["fd", "other", "proc/self/fd", &format!("proc/{pid}/fd")] {
            paths.push(format!("{folder}/{number}"));
        }
        paths.push(link);
    }
    for path in &paths {
        for asked in [
            format!("/t/{path}"),
            format!("/kept/{path}"),
            format!("/tried/?file={path}"),
        ] {
            let reply = target.get(&asked).await;
            let text = reply.text();
            assert!(
                [403, 404].contains(&reply.status),
                "{asked}: {} {text}",
                reply.status
            );
            assert!(!text.contains(SECRET), "{asked}");
        }
        if path.starts_with("one-") {
            let tested = target.get(&format!("/tested?file={path}")).await;
            assert_eq!(tested.status, 404, "{path}");
        }
    }
    for folder in ["/t/fd/", "/t/other/", "/t/proc/", "/t/proc/self/fd/"] {
        let reply = target.get(folder).await;
        assert_eq!(reply.status, 403, "{folder}: {}", reply.text());
    }
    // A file that belongs to no process is served as before.
    for asked in ["/t/plain", "/t/good", "/kept/good", "/tried/?file=good"] {
        assert_eq!(target.get(asked).await.text(), "plain", "{asked}");
    }
    let listing = target.get("/t/").await.text();
    assert!(
        listing.contains("good") && Path::new(&bodies).exists(),
        "{listing}"
    );
}
