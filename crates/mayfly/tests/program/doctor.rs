//! `mayfly doctor`: its findings in a configuration and in a document root. Faults of machines are
//! tested where they are looked for, in `machine-check`.

use std::path::Path;
use std::process::{Command, Output};

use testkit::serving::write_files;

use crate::commands::code_and_text;

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

/// Files that lie about in a document root.
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
    code_and_text(&run(&file, root.path()))
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

#[test]
fn a_sound_configuration_is_passed_in_silence() {
    assert_eq!(doctor(SOUND), (0, String::new()));
}

#[test]
fn each_hazard_of_a_configuration_is_found() {
    #[rustfmt::skip]
    let cases = [
        ("location ~ /\\.(?!well-known/) { deny all; }\n", "", 4, "secrets-served", "/.env, /.git/config"),
        (
            "location ~* \\.(?:bak|sql|key|old)$ { return 404; }\n", "", 4, "secrets-served",
            "/backup/dump.sql, /server.key, /wp-config.php.bak",
        ),
        ("location ~* ^/uploads/.*\\.php { deny all; }\n", "", 4, "uploads-run", "uploads of /srv/site"),
        ("cache_shared on;", "fastcgi_cache_key $request_uri;", 4, "key-without-host", "the host"),
        (
            "cache_shared on;",
            "fastcgi_cache_key $request_method$scheme$host$server_port$request_uri$request_body;", 4,
            "cookies-ignored", "cookies",
        ),
        ("max_requests 1000;", "", 0, "max-requests", "live for ever"),
        ("slow_log /tmp/slow.log 5s;", "", 0, "slow-log", "no slow log"),
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

/// A machine and a site with every fault that is looked for, and the same mended.
#[rustfmt::skip]
const FAULTS: [(&str, &str, &str); 16] = [
    (
        "proc/self/limits", "Max open files            1024                 1024                 files\n",
        "Max open files            1024                 524288               files\n",
    ),
    ("proc/sys/net/core/somaxconn", "128\n", "4096\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "50000 50999\n", "32768 60999\n"),
    // Port 18080.
    ("proc/net/tcp", "  sl  local\n   0: 00000000:46A0 00000000:0000 0A 0\n", "  sl  local\n"),
    (
        "proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 3000000 kB\nSwapTotal: 1048576 kB\nSwapFree: 4 kB\n",
        "MemTotal: 4194304 kB\nMemAvailable: 3000000 kB\nSwapTotal: 1048576 kB\nSwapFree: 1048576 kB\n",
    ),
    ("proc/self/cgroup", "0::/mayfly\n", "0::/mayfly\n"),
    ("sys/fs/cgroup/mayfly/memory.max", "100000000\n", "4000000000\n"),
    ("sys/fs/cgroup/mayfly/memory.events", "oom_kill 2\n", "oom_kill 0\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n", "always [madvise] never\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", "tsc\n"),
    ("run/systemd/system/x", "", ""),
    (
        "proc/self/mounts", "tmpfs /dev/shm tmpfs rw,size=16384k 0 0\ntmpfs /var/tmp tmpfs rw 0 0\n",
        "tmpfs /dev/shm tmpfs rw,size=2097152k 0 0\n/dev/vda1 / ext4 rw 0 0\n",
    ),
    ("etc/php/8.2/fpm/php.ini", "", ""),
    (
        "etc/php/8.2/fpm/conf.d/10-opcache.ini", "zend_extension=opcache\nopcache.enable=0\n",
        "zend_extension=opcache\n",
    ),
    ("run/mysqld/mysqld.sock", "", ""),
    ("srv/site/wp-config.php", "define('DB_HOST', '127.0.0.1');", "define('DB_HOST', 'localhost');"),
];
const FAULTY: &str = "php_pool site { workers auto; }\n\
    events { }\n\
    http {\n\
    fastcgi_cache_path /dev/shm/pages keys_zone=pages:8m memory=64m;\n\
    client_body_temp_path /var/tmp/body;\n\
    server { listen 127.0.0.1:18080; root /srv/site; fastcgi_cache pages; fastcgi_cache_valid 200 1s;\n\
    location / { try_files $uri /index.php; }\n\
    location = /old.php { fastcgi_pass php:site; fastcgi_cache_key $request_uri; }\n\
    location ~ \\.php$ { fastcgi_pass php:site;\n\
    fastcgi_cache_key $request_method$scheme$host$server_port$request_uri$request_body; } } }\n";

#[test]
fn every_fault_at_once_is_found_and_with_all_mended_nothing_is_said() {
    let root = tempfile::tempdir().expect("a folder");
    write_files(root.path(), &FILES);
    write_files(root.path(), &FAULTS.map(|(path, faulty, _)| (path, faulty)));
    let file = root.path().join("mayfly.conf");
    std::fs::write(&file, FAULTY).expect("a file");
    let (exit, text) = code_and_text(&run(&file, root.path()));
    assert_eq!(exit, 4, "{text}");
    let mut names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_suffix(']')?.rsplit_once(" ["))
        .map(|(_, name)| name)
        .collect();
    names.sort_unstable();
    #[rustfmt::skip]
    let expected = [
        "backlog", "clock", "clock-source", "cookies-ignored", "database-socket", "group-memory", "huge-pages",
        "key-without-host", "max-requests", "opcache", "open-files", "out-of-memory", "port-range", "port-taken",
        "secrets-served", "slow-log", "swap-used", "tmpfs-size", "tmpfs-temporary", "uploads-run",
    ];
    assert_eq!(names, expected, "{text}");
    assert_eq!(text.matches("  mend: ").count(), expected.len(), "{text}");
    write_files(root.path(), &FAULTS.map(|(path, _, mended)| (path, mended)));
    write_files(root.path(), &[("run/systemd/timesync/synchronized", "")]);
    std::fs::write(&file, SOUND).expect("a file");
    assert_eq!(code_and_text(&run(&file, root.path())), (0, String::new()));
}

#[test]
fn what_the_hardened_unit_denies_is_named_with_the_drop_in() {
    let root = tempfile::tempdir().expect("a folder");
    let unit = include_str!("../../../../packaging/debian/mayfly.service");
    write_files(
        root.path(),
        &[
            ("lib/systemd/system/mayfly.service", unit),
            ("usr/share/wordpress/index.php", ""),
            ("var/lib/wordpress/wp-content/uploads/a.jpg", ""),
        ],
    );
    let uploads = root.path().join("var/lib/wordpress/wp-content/uploads");
    let link = root.path().join("usr/share/wordpress/wp-content");
    std::os::unix::fs::symlink("../../../var/lib/wordpress/wp-content", link).expect("a link");
    let is_divided = testkit::process::is_root();
    if is_divided {
        let php = Command::new("chown").arg("www-data").arg(&uploads).status();
        assert!(php.expect("a program").success());
    }
    let conf = SOUND
        .replace("/srv/site", "/usr/share/wordpress")
        .replace("/dev/shm/pages", "/var/cache/nginx/pages")
        .replace("http {", "pid /run/mayfly/mayfly.pid; http { access_log /var/log/apache2/access.log; client_body_temp_path /var/cache/mayfly/body;\n\
            error_log /var/log/mayfly/error.log; fastcgi_temp_path /var/cache/mayfly/fastcgi;");
    let file = root.path().join("mayfly.conf");
    std::fs::write(&file, conf).expect("a file");
    let (exit, text) = code_and_text(&run(&file, root.path()));
    let begin = text
        .find("the unit mayfly.service may not write")
        .expect("the finding");
    let text = &text[begin..];
    assert!(exit >= 3, "{text}");
    for words in [
        "/var/log/apache2 (logs)",
        "/var/cache/nginx/pages (pages on disk)",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let of_php = "/var/lib/wordpress/wp-content/uploads (PHP)";
    assert_eq!(text.contains(of_php), is_divided, "{text}");
    let folders = text.split("ReadWritePaths=").nth(1).expect("a drop-in");
    let drop_in = format!(
        "[Service]\nReadWritePaths={}\n",
        folders.lines().next().unwrap_or_default()
    );
    write_files(
        root.path(),
        &[(
            "etc/systemd/system/mayfly.service.d/override.conf",
            &drop_in,
        )],
    );
    let (_, text) = code_and_text(&run(&file, root.path()));
    assert!(!text.contains("[unit-denies]"), "{text}");
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
    let (exit, text) = code_and_text(&run(&file, root.path()));
    assert_eq!(exit, 3, "{text}");
    assert!(
        text.contains("[memory]") && text.contains("2 PHP workers (workers auto chooses so many)"),
        "{text}"
    );
    write_files(root.path(), &[("proc/meminfo", &meminfo(4 << 20))]);
    assert_eq!(code_and_text(&run(&file, root.path())), (0, String::new()));
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
