//! Whole requests against a small tree of files.

use site::Content;

use super::*;
use crate::test_site::TestSite;

/// A site over a tree of files; `DIR` in `locations` is the tree's root.
fn tree(locations: &str) -> TestSite {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    for name in ["dir/sub", "idx"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in [
        "a.html",
        "dir/b.html",
        "idx/index.html",
        "z.txt",
        "z.txt.gz",
    ] {
        std::fs::write(root.join(name), name).unwrap();
    }
    let shown = root.display().to_string();
    let locations = locations.replace("DIR", &shown);
    let http =
        format!("server {{ listen 127.0.0.1:8080; root {shown}; access_log off; {locations} }}");
    TestSite::new(directory, &http)
}

/// Serves a request, and summarizes the result in one line.
fn served(site: &TestSite, line: &str) -> String {
    let mut request = site.request(line, "Accept-Encoding: gzip\r\n", 0);
    assert!(matches!(request.settings().content, Content::Files));
    let Ok(path) = tried(&request) else {
        return "fallback".into();
    };
    path.become_path_of(&mut request.route);
    match serve(&request) {
        StageEnd::Reply(reply) => {
            let path = request_path(&request);
            let file = path
                .strip_prefix(site.folder.path().as_os_str().as_bytes())
                .unwrap();
            let coding = reply.head.field("content-encoding").unwrap_or_default();
            let length = reply.head.content_length.unwrap();
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            format!(
                "{} {} {length}{}",
                reply.head.status,
                shown(file),
                shown(coding)
            )
        }
        StageEnd::Status(status) => status.to_string(),
        StageEnd::StatusWith(status, fields) => {
            let location = fields.get("location").unwrap_or_default();
            format!("{status} {}", String::from_utf8_lossy(location))
        }
        StageEnd::Redirect { path, args } => {
            format!(
                "-> {} {}",
                String::from_utf8_lossy(&path),
                String::from_utf8_lossy(&args)
            )
        }
        _ => "other".into(),
    }
}

#[test]
fn paths_lead_to_files_as_in_nginx() {
    let site = tree(
        "absolute_redirect off;
         location / { }
         location /none/ { root /nonexistent; }
         location /al/ { alias DIR/; }
         location /als { alias DIR/dir; }
         location = /exact { alias DIR/a.html; }
         location ~ ^/re/(.*)$ { alias DIR/$1; }
         location /gz/ { alias DIR/; gzip_static on; }
         location /sym/ { alias DIR/; disable_symlinks on; }
         location /own/ { alias DIR/; disable_symlinks if_not_owner; }
         location /from/ { alias DIR/; disable_symlinks on from=$request_filename; }",
    );
    std::os::unix::fs::symlink("a.html", site.folder.path().join("root/link.html")).unwrap();
    for (line, wanted) in [
        ("GET /a.html", "200 /root/a.html 6"),
        ("HEAD /a.html", "200 /root/a.html 6"),
        ("POST /a.html", "405"),
        ("PUT /a.html", "405"),
        ("POST /missing", "404"),
        ("GET /missing", "404"),
        ("GET /missing/", "404"),
        ("GET /a.html/", "404"),
        ("GET /a.html/x", "404"),
        ("GET /dir", "301 /dir/"),
        ("GET /dir?x=1", "301 /dir/?x=1"),
        ("POST /dir", "301 /dir/"),
        ("GET /dir/", "403"),
        ("GET /idx/?q=1", "-> /idx/index.html q=1"),
        ("POST /idx/", "-> /idx/index.html "),
        ("PUT /idx/", "405"),
        ("GET /none/", "404"),
        ("GET /al/a.html", "200 /root/a.html 6"),
        ("GET /al/dir", "301 /al/dir/"),
        ("GET /als/b.html", "200 /root/dir/b.html 10"),
        ("GET /exact", "200 /root/a.html 6"),
        ("GET /re/dir/b.html", "200 /root/dir/b.html 10"),
        ("GET /gz/z.txt", "200 /root/z.txt 8gzip"),
        ("GET /gz/a.html", "200 /root/a.html 6"),
        ("GET /link.html", "200 /root/link.html 6"),
        ("GET /sym/link.html", "403"),
        ("GET /sym/a.html", "200 /root/a.html 6"),
        ("GET /own/link.html", "200 /root/link.html 6"),
        ("GET /from/link.html", "200 /root/link.html 6"),
    ] {
        assert_eq!(served(&site, line), wanted, "{line}");
    }
    let log = std::fs::read_to_string(site.folder.path().join("error.log")).unwrap();
    let root = site.folder.path().join("root").display().to_string();
    for line in [
        format!(
            "open() \"{root}/missing\" failed (2: No such file or directory), client: 127.0.0.1, server: , request: \"GET /missing HTTP/1.1\", host: \"localhost\""
        ),
        format!("directory index of \"{root}/dir/\" is forbidden"),
        format!("\"{root}/missing/index.html\" is not found (2: No such file or directory)"),
    ] {
        assert!(log.contains(&line), "{line} in {log}");
    }
}

#[test]
fn try_files_takes_the_first_that_exists() {
    let site = tree(
        "absolute_redirect off;
         location / { try_files $uri $uri/ =404; }
         location /fixed/ { try_files /a.html =404; }
         location /al/ { alias DIR/; try_files $uri $uri/ =404; }
         location /alf/ { alias DIR/; try_files a.html =404; }
         location ~ ^/pat/ { alias DIR; try_files /dir /a.html =404; }",
    );
    for (line, wanted) in [
        ("GET /a.html", "200 /root/a.html 6"),
        ("GET /missing", "fallback"),
        ("GET /dir", "301 /dir/"),
        ("GET /idx/", "-> /idx/index.html "),
        ("GET /fixed/x", "200 /root/a.html 6"),
        ("GET /al/dir/b.html", "200 /root/dir/b.html 10"),
        ("GET /al/missing", "fallback"),
        ("GET /alf/x", "200 /root/a.html 6"),
        ("GET /pat/x", "200 /root/a.html 6"),
    ] {
        assert_eq!(served(&site, line), wanted, "{line}");
    }
}
