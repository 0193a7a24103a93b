//! Files that lie in a document root and are for no visitor: copies, databases, keys, logs,
//! archives, and folders that a `.htaccess` closes. Each application's folder is made from
//! a table; its private files contain SECRET, its public ones PUBLIC.

mod layouts;
mod probes;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use testkit::serving::FolderServer;

use layouts::{LAYOUTS, Layout};
use probes::{PROBES, is_for_static};

const DENIES: &str = "Order deny,allow\nDeny from all\n";

/// An index script.
const PAGE: &str = "<?php echo 'PAGE';";

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    // A table may name a file twice, and a probe may be another's folder.
    if !file.is_dir() {
        std::fs::write(file, text).expect("a file");
    }
}

fn folder_of(layout: &Layout) -> tempfile::TempDir {
    let folder = FolderServer::folder();
    for sign in layout.signs {
        let text = if sign.ends_with("index.php") || sign.ends_with("doku.php") {
            PAGE
        } else {
            ""
        };
        write(folder.path(), sign, text);
    }
    let root = folder.path().join(layout.root);
    for path in layout.secret {
        write(&root, path, "SECRET");
    }
    for path in layout.public {
        write(&root, path, "PUBLIC");
    }
    folder
}

async fn serve(folder: &Path) -> FolderServer {
    let shown = folder.to_str().expect("a name");
    FolderServer::start(crate::program(), shown, &["--ttl", "0"]).await
}

/// Spellings of the same path, and paths behind it.
fn spellings(path: &str) -> Vec<String> {
    let encoded: String = path
        .bytes()
        .map(|byte| match byte {
            b'/' => "/".to_owned(),
            other => format!("%{other:02X}"),
        })
        .collect();
    vec![
        path.to_owned(),
        path.replace('.', "%2e"),
        encoded,
        path.replace('/', "//"),
        format!("/x/..{path}"),
        format!("/./{}", path.trim_start_matches('/')),
        format!("{path}/x.css"),
        format!("{path}/.well-known/"),
        format!("{path}?x.css"),
    ]
}

#[tokio::test]
async fn each_application_hands_out_what_pages_load_and_nothing_else() {
    let mut wrong = Vec::new();
    for layout in LAYOUTS {
        let folder = folder_of(layout);
        let server = serve(folder.path()).await;
        let target = server.target();
        for path in layout.secret.iter().flat_map(|path| spellings(path)) {
            let reply = target.get(&path).await;
            if reply.text().contains("SECRET") {
                wrong.push(format!("{}: {path} is handed out", layout.name));
            }
        }
        for path in layout.public {
            let reply = target.get(path).await;
            if (reply.status, &*reply.text()) != (200, "PUBLIC") {
                wrong.push(format!("{}: {path} is not: {}", layout.name, reply.status));
            }
        }
        let page = target.get("/").await;
        if page.text() != "PAGE" {
            wrong.push(format!("{}: no page: {}", layout.name, page.status));
        }
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}

#[tokio::test]
async fn nothing_that_scanners_look_for_is_handed_out() {
    assert!(PROBES.len() >= 150);
    let mut wrong = Vec::new();
    let static_files = Layout {
        name: "static files",
        signs: &["index.html"],
        root: "",
        secret: &[],
        public: &[],
    };
    for layout in LAYOUTS.iter().chain([&static_files]) {
        let folder = folder_of(layout);
        let root = folder.path().join(layout.root);
        let probes = PROBES
            .iter()
            .filter(|probe| layout.name != static_files.name || is_for_static(probe));
        let probes: Vec<&&str> = probes.collect();
        for probe in &probes {
            write(&root, probe, "SECRET");
        }
        let server = serve(folder.path()).await;
        for probe in probes {
            let path = format!("/{}", probe.replace('#', "%23"));
            let reply = server.target().get(&path).await;
            if reply.text().contains("SECRET") {
                wrong.push(format!("{}: {path}", layout.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}

/// A folder's name is a site's own and may hold anything but a slash.
#[tokio::test]
async fn a_folder_that_its_htaccess_closes_is_closed() {
    let folder = FolderServer::folder();
    let root = folder.path();
    write(root, "index.php", PAGE);
    write(root, "about.php", PAGE);
    let names: [(&[u8], &str); 8] = [
        (b"private", "private"),
        (b"two words", "two%20words"),
        (b"quote\"d", "quote%22d"),
        (b"back\\slash", "back%5Cslash"),
        (b"${money};{}", "$%7Bmoney%7D;%7B%7D"),
        (b"line\nbreak", "line%0Abreak"),
        (b"caf\xe9(.*)", "caf%E9(.*)"),
        ("caf\u{e9}".as_bytes(), "caf%C3%A9"),
    ];
    for (name, _) in names {
        let inner = root.join(std::ffi::OsStr::from_bytes(name)).join("a/b");
        std::fs::create_dir_all(&inner).expect("a folder");
        let closed = inner.parent().and_then(Path::parent).expect("the folder");
        std::fs::write(closed.join(".htaccess"), DENIES).expect("a file");
        for file in ["a.css", "index.html", "x.php"] {
            std::fs::write(inner.join(file), "SECRET").expect("a file");
            std::fs::write(closed.join(file), "SECRET").expect("a file");
        }
    }
    write(
        root,
        "akismet/.htaccess",
        "Require all denied\n<FilesMatch \"^a\\.css$\">\nRequire all granted\n</FilesMatch>\n",
    );
    write(root, "akismet/a.css", "PUBLIC");
    write(root, "akismet/notes.txt", "SECRET");
    write(root, "akismet/x.php", "SECRET");
    write(root, "privateer/a.css", "PUBLIC");
    let server = serve(root).await;
    let target = server.target();
    for (_, name) in names {
        for file in [
            "a.css",
            "x.php",
            "x.php/y.css",
            "",
            "a/b/a.css",
            "a/b/",
            "a/../a.css",
        ] {
            let reply = target.get(&format!("/{name}/{file}")).await;
            assert_eq!(reply.status, 403, "/{name}/{file}: {}", reply.text());
        }
        let reply = target.get(&format!("/{name}")).await;
        assert!(!reply.text().contains("SECRET"), "/{name}");
    }
    for path in [
        "/akismet/notes.txt",
        "/akismet/x.php",
        "/akismet/x.php/a.css",
    ] {
        assert_eq!(target.get(path).await.status, 403, "{path}");
    }
    for path in ["/akismet/a.css", "/privateer/a.css"] {
        assert_eq!(target.get(path).await.text(), "PUBLIC", "{path}");
    }
}

#[tokio::test]
async fn a_refusal_is_logged_with_its_reason_and_a_flood_of_them_is_bounded() {
    let folder = FolderServer::folder();
    write(folder.path(), "index.php", PAGE);
    write(folder.path(), "dump.sql", "SECRET");
    write(folder.path(), "core", "SECRET");
    let server = serve(folder.path()).await;
    let target = server.target();
    for (path, line) in [
        (
            "/dump.sql",
            "access forbidden by rule: A database or a dump of one., client:",
        ),
        (
            "/core",
            "access forbidden by rule: Not a file that is handed out., client:",
        ),
        (
            "/.env",
            "access forbidden by rule: A name that begins with a dot., client:",
        ),
    ] {
        assert_eq!(target.get(path).await.status, 403, "{path}");
        let log = server.error_log();
        let lines: Vec<&str> = log.lines().filter(|logged| logged.contains(path)).collect();
        assert!(lines.len() == 1 && lines[0].contains(line), "{path}: {log}");
    }
    let begun = std::time::Instant::now();
    for _ in 0..1000 {
        assert_eq!(target.get("/dump.sql").await.status, 403);
    }
    // A hundred at once, then one a second.
    let bound = 102 + usize::try_from(begun.elapsed().as_secs()).expect("a few seconds");
    let lines = server.error_log().lines().count();
    assert!(lines <= bound, "{lines} lines, {bound} may be");
    // The next line that may be written has the number of those that were not.
    while !server
        .error_log()
        .contains("more refusals were not logged)")
    {
        assert!(begun.elapsed().as_secs() < 20, "{}", server.error_log());
        target.get("/dump.sql").await;
    }
}

#[tokio::test]
async fn no_browser_guesses_what_a_response_is() {
    let folder = FolderServer::folder();
    let says = "<?php header('X-Content-Type-Options: nosniff'); echo 'PAGE';";
    write(folder.path(), "index.php", PAGE);
    write(folder.path(), "says.php", says);
    write(folder.path(), "a.css", "PUBLIC");
    let server = serve(folder.path()).await;
    for path in ["/", "/says.php", "/a.css", "/none", "/.env"] {
        let reply = server.target().get(path).await;
        let sent = reply
            .fields
            .iter()
            .filter(|(name, value)| name == "x-content-type-options" && value == "nosniff");
        assert_eq!(sent.count(), 1, "{path}");
    }
}
