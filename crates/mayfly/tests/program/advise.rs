//! `mayfly advise`, and whether its predictions come true.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use testkit::fake_php::{FakePhp, Script};
use testkit::process::free_port;

use crate::commands::output;
use crate::start;

/// 23 November 2026.
const BEGIN_MS: u64 = 1_795_392_000_000;
/// The length of one replay.
const SECONDS: u64 = 4;

async fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(crate::program_with_tools());
    command.args(arguments);
    output(command).await
}

async fn json(arguments: &[&str]) -> serde_json::Value {
    let output = run(arguments).await;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"))
}

/// Independent visitors, 250 in a second, of twenty pages with different shares.
fn log() -> String {
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut log = String::new();
    let mut at = 0.0;
    loop {
        at -= next().max(1e-9).ln() * 4.0;
        if at >= (SECONDS * 1000) as f64 {
            return log;
        }
        let moment = BEGIN_MS + at as u64;
        let page = (next() * next() * 20.0) as u32;
        let (seconds, millis) = (moment / 1000, moment % 1000);
        let _ = writeln!(log, "{seconds}.{millis:03} \"GET /{page} HTTP/1.1\" 200");
    }
}

fn predicted(advice: &serde_json::Value, lifetime_ms: u64) -> f64 {
    let rows = advice["lifetimes"].as_array().expect("a table");
    let row = rows.iter().find(|row| row["lifetime_ms"] == lifetime_ms);
    row.expect("this lifetime")["hit_ratio"]
        .as_f64()
        .expect("a number")
}

/// The traffic is replayed against Mayfly by `mayfly bench`, and PHP counts how often it runs. Advice from
/// Mayfly's log of it predicts the same, also on a machine that is too busy to be on time.
#[tokio::test]
async fn the_predicted_hit_ratio_is_that_of_a_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let log = log();
    let requests = log.lines().count();
    std::fs::write(&path, log).expect("a log");
    let path = path.to_str().expect("a path");
    for lifetime_ms in [200, 1000] {
        let php = FakePhp::tcp(|_| Script::page("", "a page")).await;
        let port = free_port();
        let server = start(&format!(
            "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
             log_format timed '$msec \"$request\" $status $request_time $upstream_cache_status';\n\
             server {{ listen unix:%%/http; listen 127.0.0.1:{port}; access_log %%/access.log timed;\n\
             location / {{ fastcgi_pass {}; fastcgi_cache zone; fastcgi_cache_key $request_uri;\n\
             fastcgi_cache_lock on; fastcgi_cache_valid 200 {lifetime_ms}ms;\n\
             add_header X-Cache $upstream_cache_status; }} }}",
            php.address()
        ))
        .await;
        let url = format!("http://127.0.0.1:{port}");
        let duration = format!("{}s", SECONDS + 1);
        let asked = [
            "bench",
            &url,
            "--replay",
            path,
            "--duration",
            &duration,
            "--json",
        ];
        let report = json(&asked).await;
        assert_eq!(report["answers"], requests, "{report}");
        let measured = 1.0 - php.requests() as f64 / requests as f64;
        let told = report["hit_ratio"].as_f64().expect("a number");
        assert!((told - measured).abs() < 0.02, "{told} for {measured}");
        let logged = server.path("access.log");
        let logged = logged.to_str().expect("a path");
        let advice = json(&["advise", logged, "--plain-keys", "--json"]).await;
        assert_eq!(advice["requests"]["pages"], requests);
        let predicted = predicted(&advice, lifetime_ms);
        assert!(
            (predicted - measured).abs() < 0.02,
            "{lifetime_ms} ms: {predicted} for {measured}"
        );
    }
}

#[tokio::test]
async fn an_answer_names_bad_lines_and_has_directives_that_are_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log.gz");
    let mut log = flate2::write::GzEncoder::new(
        std::fs::File::create(&path).expect("a file"),
        flate2::Compression::fast(),
    );
    writeln!(log, "nonsense").expect("a line");
    for number in 0..2000 {
        let (minute, second) = (number / 600, number / 10 % 60);
        writeln!(
            log,
            "192.0.2.1 - - [23/Nov/2026:00:{minute:02}:{second:02} +0000] \
             \"GET /?utm_source={number}&fbclid={number} HTTP/1.1\" 200 9000 \"-\" \"Mozilla/5.0\""
        )
        .expect("a line");
    }
    log.finish().expect("a log");
    let path = path.to_str().expect("a path");
    let output = run(&["advise", path]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in [
        "1 lines without a time",
        "utm_source",
        "fbclid",
        "PHP runs/s",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The text for pasting is accepted.
    let directives: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.ends_with(';'))
        .collect();
    assert!(directives.len() >= 6, "{text}");
    let (path_line, others) = directives.split_first().expect("lines");
    let conf = format!(
        "events {{ }}\nhttp {{ {path_line}\nserver {{ listen 127.0.0.1:1;\nlocation / {{ fastcgi_pass 127.0.0.1:2;\n{}\n}} }} }}\n",
        others.join("\n")
    );
    let file = folder.path().join("conf");
    std::fs::write(&file, &conf).expect("a file");
    let checked = run(&["check", file.to_str().expect("a path")]).await;
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(0), "{said}{conf}");
}

#[tokio::test]
async fn logs_that_cannot_be_read_are_refused_by_name() {
    let nowhere = Path::new("/nowhere/access.log");
    let output = run(&["advise", nowhere.to_str().expect("a path")]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("/nowhere/access.log"), "{said}");
    let output = run(&["advise", "--format", "$status", "x"]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(1) && said.contains("no $time_local"),
        "{said}"
    );
}

#[tokio::test]
async fn a_log_may_be_an_open_file_of_the_shell() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    std::fs::write(&path, log()).expect("a log");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        r#"exec 5<"$1"; exec "$0" advise --json --format '$msec "$request" $status' /dev/fd/5"#,
    ]);
    command.arg(crate::program_with_tools()).arg(&path);
    let output = command.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[tokio::test]
async fn a_missing_program_of_tools_is_named_with_what_brings_it() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let alone = folder.path().join("mayfly");
    std::fs::hard_link(crate::program(), &alone).expect("a link");
    for arguments in [&["bench", "http://127.0.0.1:1/"], &["advise", "access.log"]] {
        let mut command = Command::new(&alone);
        let output = command.args(arguments).env("PATH", "").output();
        let output = output.expect("the program");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for part in [arguments[0], "needs the program mayfly-tools", "make build"] {
            assert!(said.contains(part), "{said}");
        }
    }
    let output = Command::new(&alone).args(["bench", "--help"]).output();
    assert!(output.expect("the program").status.success());
}
