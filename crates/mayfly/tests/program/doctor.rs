//! `mayfly doctor`: what it finds in a configuration and in a document root. Faults of machines are
//! tested where they are looked for, in `machine-check`.

use std::path::Path;
use std::process::{Command, Output};

use testkit::serving::write_files;

/// A configuration that has no fault, for the site in `/srv/site`.
const SOUND: &str = "php_pool site { workers 2; max_requests 1000; slow_log /tmp/slow.log 5s; }\n\
    events { }\n\
    http {\n\
    fastcgi_cache_path /dev/shm/pages keys_zone=pages:8m memory=16m;\n\
    server { listen 127.0.0.1:18080; root /srv/site;\n\
    location ~ /\\.(?!well-known/) { deny all; }\n\
    location ~* \\.(?:bak|sql|key|old)$ { return 404; }\n\
    location ~* ^/uploads/.*\\.php { deny all; }\n\
    location / { try_files $uri /index.php; }\n\
    location ~ \\.php$ { fastcgi_pass php:site; fastcgi_cache pages; cache_shared on;\n\
    fastcgi_cache_valid 200 1s; } } }\n";

/// What lies about in a document root.
const FILES: [(&str, &str); 7] = [
    ("srv/site/index.php", ""),
    ("srv/site/.env", "SECRET=1"),
    ("srv/site/.git/config", ""),
    ("srv/site/wp-config.php.bak", ""),
    ("srv/site/backup/dump.sql", ""),
    ("srv/site/server.key", ""),
    ("srv/site/uploads/a.jpg", ""),
];

fn doctor(conf: &str) -> (i32, String) {
    let root = tempfile::tempdir().expect("a folder");
    write_files(root.path(), &FILES);
    let file = root.path().join("mayfly.conf");
    std::fs::write(&file, conf).expect("a file");
    said(&run(&file, root.path()))
}

fn run(file: &Path, root: &Path) -> Output {
    let mut command = Command::new(crate::program());
    command
        .arg("doctor")
        .arg("-c")
        .arg(file)
        .arg("--root")
        .arg(root);
    command.output().expect("the program")
}

fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn a_sound_configuration_is_passed_in_silence() {
    assert_eq!(doctor(SOUND), (0, String::new()));
}

#[test]
fn each_hazard_of_a_configuration_is_found() {
    let cases = [
        (
            "location ~ /\\.(?!well-known/) { deny all; }\n",
            "",
            4,
            "secrets-served",
            "/.env, /.git/config",
        ),
        (
            "location ~* \\.(?:bak|sql|key|old)$ { return 404; }\n",
            "",
            4,
            "secrets-served",
            "/backup/dump.sql, /server.key, /wp-config.php.bak",
        ),
        (
            "location ~* ^/uploads/.*\\.php { deny all; }\n",
            "",
            4,
            "uploads-run",
            "uploads of /srv/site",
        ),
        (
            "cache_shared on;",
            "fastcgi_cache_key $request_uri;",
            4,
            "key-without-host",
            "the host",
        ),
        (
            "cache_shared on;",
            "fastcgi_cache_key $request_method$scheme$host$server_port$request_uri$request_body;",
            4,
            "cookies-ignored",
            "cookies",
        ),
        ("max_requests 1000;", "", 0, "max-requests", "live for ever"),
        (
            "slow_log /tmp/slow.log 5s;",
            "",
            0,
            "slow-log",
            "no slow log",
        ),
    ];
    for (from, to, code, name, words) in cases {
        let (exit, text) = doctor(&SOUND.replace(from, to));
        assert_eq!(exit, code, "{name}: {text}");
        assert!(
            text.contains(&format!("[{name}]")) && text.contains(words),
            "{name}: {text}"
        );
        assert_eq!(text.matches("  mend: ").count(), 1, "{name}: {text}");
    }
}

#[test]
fn what_workers_auto_would_choose_is_held_against_the_machine() {
    let root = tempfile::tempdir().expect("a folder");
    let meminfo = |total: u64| format!("MemTotal: {total} kB\nMemAvailable: {} kB\n", total / 2);
    let file = root.path().join("mayfly.conf");
    let conf = SOUND
        .replace("workers 2;", "workers auto;")
        .replace("memory=16m", "memory=128m");
    std::fs::write(&file, conf).expect("a file");
    // At least 2 workers are chosen, of 48 MB each.
    write_files(root.path(), &[("proc/meminfo", &meminfo(200 << 10))]);
    let (exit, text) = said(&run(&file, root.path()));
    assert_eq!(exit, 3, "{text}");
    assert!(
        text.contains("[memory]") && text.contains("2 PHP workers (workers auto chooses so many)"),
        "{text}"
    );
    write_files(root.path(), &[("proc/meminfo", &meminfo(4 << 20))]);
    assert_eq!(said(&run(&file, root.path())), (0, String::new()));
}

#[test]
fn what_is_found_is_told_as_json_too() {
    let root = tempfile::tempdir().expect("a folder");
    write_files(root.path(), &[("proc/sys/net/core/somaxconn", "128\n")]);
    let file = root.path().join("mayfly.conf");
    std::fs::write(&file, SOUND).expect("a file");
    let mut command = Command::new(crate::program());
    command
        .args(["doctor", "--json", "-c"])
        .arg(&file)
        .arg("--root")
        .arg(root.path());
    let output = command.output().expect("the program");
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(findings[0]["name"], "backlog");
    assert_eq!(findings[0]["severity"], "warning");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_configuration_that_is_refused_is_shown_and_nothing_else() {
    let (exit, text) = doctor("nonsense;");
    assert_eq!(exit, 1, "{text}");
    assert!(text.contains("nonsense"), "{text}");
}
