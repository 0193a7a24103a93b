//! Debian's MediaWiki, unchanged, seen by the library and by the server's general log.

use std::path::Path;
use std::process::Command;

use crate::peers::{Manner, Mayfly, PASSWORD, Php, database};

const ROOT: &str = "/var/lib/mediawiki";
const MAINTENANCE: &str = "/usr/share/mediawiki/maintenance";
/// It keeps nothing in caches of its own, as docs/learned.md has it.
const SETTINGS: &str = "
$wgMainCacheType = $wgParserCacheType = $wgMessageCacheType = $wgLanguageConverterCacheType = CACHE_NONE;
$wgSessionCacheType = CACHE_DB;
$wgJobRunRate = 0;
";
const ARTICLES: usize = 12;

fn maintain(script: &str, arguments: &[&str]) {
    let done = Command::new("php")
        .arg(format!("{MAINTENANCE}/{script}"))
        .args(arguments)
        .output()
        .expect("this test needs php-cli");
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{script}: {said}");
}

/// Returns the path of the settings of a wiki with some pages.
fn install(folder: &Path) -> String {
    database().run("CREATE DATABASE wiki CHARACTER SET utf8mb4");
    let settings = folder.join("LocalSettings.php").display().to_string();
    maintain(
        "install.php",
        &[
            "--quiet",
            "--dbtype=mysql",
            &format!("--dbserver=localhost:{}", database().socket()),
            "--dbname=wiki",
            "--dbuser=site",
            &format!("--dbpass={PASSWORD}"),
            &format!("--confpath={}", folder.display()),
            "--server=http://localhost",
            "--scriptpath=",
            "--pass=a long password of 1 wiki",
            "Wiki",
            "Admin",
        ],
    );
    let written = std::fs::read_to_string(&settings).unwrap();
    // Without one, texts of the interface are read out of a thousand files for each page.
    let cache = folder.join("cache");
    std::fs::create_dir(&cache).unwrap();
    let cache = format!("$wgCacheDirectory = '{}';\n", cache.display());
    std::fs::write(&settings, written + SETTINGS + &cache).unwrap();
    let text = |prefix: &str, names: Vec<(String, String)>| {
        let paths: Vec<_> = names
            .into_iter()
            .map(|(name, text)| {
                let path = folder.join(format!("{name}.txt"));
                std::fs::write(&path, text).unwrap();
                path.display().to_string()
            })
            .collect();
        let options = ["--conf", &settings, "--overwrite", "--prefix", prefix];
        let all: Vec<_> = options
            .into_iter()
            .chain(paths.iter().map(|it| &it[..]))
            .collect();
        maintain("importTextFiles.php", &all);
    };
    text("Template:", vec![("Notice".into(), "a notice".into())]);
    let article = |number: usize| {
        let near = (number + 1) % ARTICLES;
        format!(
            "Text. {{{{Notice}}}} [[Article {near}]] [[Nowhere]] [[Category:Kind {}]]",
            number % 3
        )
    };
    text(
        "",
        (0..ARTICLES)
            .map(|it| (format!("Article {it}"), article(it)))
            .collect(),
    );
    text(
        "Category:",
        (0..3)
            .map(|it| (format!("Kind {it}"), "A kind.".into()))
            .collect(),
    );
    settings
}

/// Each with the script that makes it.
fn addresses() -> Vec<(&'static str, String)> {
    let index = |query: &str| ("index.php", query.to_owned());
    let mut all: Vec<_> = (0..ARTICLES)
        .map(|it| index(&format!("title=Article_{it}")))
        .collect();
    all.extend((0..3).map(|it| index(&format!("title=Category:Kind_{it}"))));
    all.extend(
        [
            "title=Main_Page",
            "title=Template:Notice",
            "title=Nowhere",
            "title=Article_1&action=history",
            "title=Article_1&action=raw",
            "title=Special:AllPages",
            "title=Special:WhatLinksHere/Article_1",
            "title=Special:RecentChanges",
        ]
        .map(index),
    );
    all.push((
        "api.php",
        "action=query&titles=Article_1&prop=revisions&rvprop=content&format=json".into(),
    ));
    all.push((
        "load.php",
        "lang=en&modules=startup&only=scripts&skin=vector".into(),
    ));
    all
}

#[test]
fn statements_of_mediawiki_are_those_of_the_general_log() {
    if !Path::new(ROOT).join("index.php").is_file() {
        println!("left out, MediaWiki is not here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = install(folder.path());
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::start(Some(&mayfly.path()), &["opcache.enable=1", "apc.enabled=0"]);
    for script in ["index.php", "api.php", "load.php"] {
        php.write(
            script,
            &format!("define('MW_CONFIG_FILE', '{settings}'); require '{ROOT}/{script}';"),
        );
    }
    let mut told = 0;
    let pages = addresses();
    for (fetch, (script, query)) in pages.iter().enumerate() {
        let get = |more: &[(&str, &str)]| {
            let uri = format!("/{script}?{query}");
            let name = format!("/{script}");
            let parameters = [
                ("QUERY_STRING", &query[..]),
                ("REQUEST_URI", &uri),
                ("SCRIPT_NAME", &name),
                ("SERVER_NAME", "localhost"),
                ("HTTP_HOST", "localhost"),
                ("SERVER_PORT", "80"),
                ("REMOTE_ADDR", "127.0.0.1"),
                ("SERVER_PROTOCOL", "HTTP/1.1"),
            ];
            php.get(script, &[&parameters[..], more].concat())
        };
        // The first one compiles scripts, and opens more files than a record has.
        get(&[]);
        let number = fetch as u64 + 1;
        let page = get(&[("MAYFLY_FETCH", &number.to_string())]);
        assert!(!page.contains("Fatal error"), "{query}: {page}");
        let record = std::iter::repeat_with(|| mayfly.record()).find(|it| it.fetch == number);
        let record = record.expect("its record");
        assert!(record.is_complete, "{query}");
        assert_eq!(record.inputs, [] as [&str; 0], "{query}");
        assert!(
            record.statements.len() > 5,
            "{query}: {:?} {page}",
            record.statements
        );
        // Work that MediaWiki leaves until it has answered is in no page. It has two connections, and the library
        // reads the parts that it may read later for both together.
        let logged = database().log_of(&record.connections);
        let is_later = |it: &&str| *it == "COMMIT /* MediaWiki::restInPeace  */";
        let sorted = |texts: &[String]| {
            let texts = texts.iter().map(|it| it.trim());
            let mut texts: Vec<_> = texts
                .filter(|it| !is_later(it))
                .map(str::to_owned)
                .collect();
            texts.sort();
            texts
        };
        assert_eq!(sorted(&record.statements), sorted(&logged), "{query}");
        told += record.statements.len();
    }
    println!(
        "MediaWiki: {} statements of {} pages, as in the general log",
        told,
        pages.len()
    );
}
