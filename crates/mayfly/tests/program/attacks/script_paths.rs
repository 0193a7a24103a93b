//! Paths that lead through a script that may not run, dressed up as something else: a
//! style sheet behind it, another spelling, another case. The verdict depends on the
//! script that would run, and on every prefix of the path.

use std::path::Path;

use testkit::serving::FolderServer;

const RAN: &str = "<?php echo 'RAN ', $_SERVER['SCRIPT_NAME'];";

fn write(root: &Path, path: &str) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, RAN).expect("a file");
}

/// Text that may stand behind a script.
const TAILS: [&str; 12] = [
    "",
    "/",
    "/y.css",
    "/y.js",
    "/a/b/y.png",
    "/.well-known/",
    "/.well-known/acme-challenge/x",
    "/index.php",
    "/x.php/y.css",
    "/wp-includes/js/tinymce/wp-tinymce.php",
    "/robots.txt",
    "/%0Ay.css",
];

/// Other spellings of a path; the last part of the folder and the script change.
fn spellings(path: &str) -> Vec<String> {
    let (folders, script) = path.rsplit_once('/').expect("a slash");
    vec![
        path.to_owned(),
        format!("/{path}"),
        path.replace('/', "//"),
        path.replace(".php", "%2ephp"),
        path.replace(".php", ".%70hp"),
        path.replace(".php", ".ph%50"),
        path.replace(".php", ".PHP"),
        path.replace(".php", ".pHp"),
        path.replace(".php", ".php%20"),
        path.replace(".php", ".php."),
        path.replace(".php", ".php%0A"),
        path.replace('a', "%61"),
        format!("{folders}/./{script}"),
        format!("{folders}/x/../{script}"),
        format!("{folders}/%2e/{script}"),
        format!("{folders}/x/%2e%2e/{script}"),
        format!("{folders}%2f{script}"),
        format!("/index.php/..{path}"),
        format!("/a.css/..{path}"),
        format!("http://site.test{path}"),
    ]
}

/// Asks for every spelling of each path with every tail; gives those that ran one of
/// the refused scripts or showed its source.
async fn run_or_shown(server: &FolderServer, scripts: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    let target = server.target();
    for script in scripts {
        let spelled = spellings(&format!("/{script}"));
        for path in spelled
            .iter()
            .flat_map(|path| TAILS.map(|tail| format!("{path}{tail}")))
        {
            let text = target.get(&path).await.text();
            let is_run = text
                .strip_prefix("RAN /")
                .is_some_and(|ran| scripts.iter().any(|script| ran.starts_with(&**script)));
            if is_run || text.contains("<?php") {
                wrong.push(format!("{path}: {text}"));
            }
        }
    }
    wrong
}

async fn serve(folder: &Path) -> FolderServer {
    let shown = folder.to_str().expect("a name");
    FolderServer::start(crate::program(), shown, &["--ttl", "0"]).await
}

#[tokio::test]
async fn a_refused_script_does_not_run_whatever_stands_behind_it() {
    #[rustfmt::skip]
    let cases: [(&str, &[&str], &[&str]); 5] = [
        ("PHP scripts", &["index.php", "about.php"], &[
            "vendor/a/b.php", "uploads/evil.php", "cache/a.php",
            "lib/vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php", "uploads/upper.PHP", "old.phtml", "page.PHP",
        ]),
        ("WordPress", &["index.php", "wp-load.php", "wp-includes/version.php"], &[
            "wp-content/uploads/evil.php", "wp-content/uploads/2026/11/index.php", "wp-admin/includes/file.php",
            "wp-includes/post.php", "wp-config.php", "wp-content/plugins/a/vendor/b.php",
        ]),
        ("DokuWiki", &["index.php", "doku.php", "inc/init.php"], &[
            "data/a.php", "conf/local.php", "bin/dwpage.php", "lib/plugins/a/vendor/b.php",
        ]),
        ("Drupal", &["index.php", "core/lib/Drupal.php"], &[
            "sites/default/settings.php", "sites/default/files/evil.php", "core/a.php",
        ]),
        ("Laravel", &["index.php", "../artisan"], &["storage/evil.php", "adminer.php", "vendor/a/b.php"]),
    ];
    for (name, signs, scripts) in cases {
        let folder = FolderServer::folder();
        let root = folder.path().join("public");
        for path in signs.iter().chain(scripts) {
            write(&root, path);
        }
        let server = serve(&root).await;
        let wrong = run_or_shown(&server, scripts).await;
        assert_eq!(wrong, [""; 0], "{name}: {}", wrong.join("\n"));
        // The test sees scripts that do run.
        let ran = server.target().get("/index.php/about").await.text();
        assert_eq!(ran, "RAN /index.php", "{name}");
    }
}

/// An index file is looked up once more as a path of its own.
#[tokio::test]
async fn an_index_script_of_a_refused_folder_does_not_run() {
    let folder = FolderServer::folder();
    let refused = [
        "vendor/a/index.php",
        "uploads/index.php",
        "closed/index.php",
    ];
    for path in ["index.php", "about.php", "open/index.php"]
        .iter()
        .chain(&refused)
    {
        write(folder.path(), path);
    }
    std::fs::write(folder.path().join("closed/.htaccess"), "Require all denied").expect("a file");
    let server = serve(folder.path()).await;
    let target = server.target();
    for path in [
        "/vendor/a/",
        "/vendor/a",
        "/uploads/",
        "/uploads",
        "/closed/",
        "/closed",
    ] {
        let text = target.get(path).await.text();
        assert!(!text.contains("RAN"), "{path}: {text}");
    }
    assert_eq!(target.get("/open/").await.text(), "RAN /open/index.php");
}
