//! Each fault is planted alone in a machine that has none, and has to be found, alone.

use std::path::{Path, PathBuf};

use machine_check::{Finding, Pool, Severity, Subject, Workers, Zone, check};

/// A machine without a fault.
const SOUND: &[(&str, &str)] = &[
    (
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n\
         Max cpu time              unlimited            unlimited            seconds\n\
         Max open files            1024                 524288               files\n",
    ),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/sys/net/ipv4/ip_unprivileged_port_start", "1024\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    (
        "proc/net/tcp",
        "  sl  local_address rem_address   st tx_queue rx_queue\n\
         \x20  0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000\n\
         \x20  1: 0100007F:0050 0100007F:9C40 01 00000000:00000000 00:00000000\n",
    ),
    (
        "proc/meminfo",
        "MemTotal:        4194304 kB\nMemFree: 1 kB\nSwapTotal:       1048576 kB\nSwapFree:        1000000 kB\n",
    ),
    ("proc/self/cgroup", "0::/system.slice/mayfly.service\n"),
    (
        "sys/fs/cgroup/system.slice/mayfly.service/memory.max",
        "max\n",
    ),
    ("sys/fs/cgroup/system.slice/memory.max", "4000000000\n"),
    (
        "sys/fs/cgroup/system.slice/mayfly.service/memory.events",
        "low 0\nhigh 0\noom 0\noom_kill 0\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    ("run/systemd/system/x", ""),
    ("run/systemd/timesync/synchronized", ""),
    (
        "proc/self/mounts",
        "/dev/vda1 / ext4 rw,relatime 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,size=2097152k 0 0\n\
         tmpfs /tmp tmpfs rw,size=65536k 0 0\n",
    ),
    ("etc/php/7.4/fpm/php.ini", "opcache.enable=0\n"),
    (
        "etc/php/8.2/fpm/php.ini",
        "; opcache.enable=0\nmemory_limit = 128M\n",
    ),
    (
        "etc/php/8.2/fpm/conf.d/10-opcache.ini",
        "zend_extension=opcache.so\nopcache.memory_consumption=128\n",
    ),
    ("run/mysqld/mysqld.sock", ""),
    (
        "srv/site/wp-config.php",
        "<?php\ndefine( 'DB_PASSWORD', 'x' );\ndefine( 'DB_HOST', 'localhost' );\n",
    ),
];

fn subject() -> Subject {
    Subject {
        is_root: true,
        is_running: false,
        open_files: None,
        ports: vec!["0.0.0.0:80".parse().unwrap(), "[::]:443".parse().unwrap()],
        backlog: 511,
        zones: vec![Zone {
            name: "pages".to_owned(),
            path: "/dev/shm/pages".into(),
            memory_bytes: Some(256 << 20),
        }],
        temporary_folders: vec!["/var/lib/mayfly/body".into()],
        pools: vec![Pool {
            name: "site".to_owned(),
            workers: Workers::Count(8),
            max_requests: Some(1000),
            has_slow_log: true,
            settings: Vec::new(),
        }],
        has_php: true,
        document_roots: vec!["/srv/site".into()],
    }
}

fn plant(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Returns the findings with these files in the place of sound ones; an empty name
/// removes one.
fn found(changed: &[(&str, Option<&str>)], subject: &Subject) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path(), SOUND);
    for (path, text) in changed {
        match text {
            Some(text) => plant(folder.path(), &[(path, text)]),
            None => std::fs::remove_file(folder.path().join(path)).unwrap(),
        }
    }
    check(folder.path(), subject)
}

#[test]
fn a_sound_machine_is_passed_in_silence() {
    assert_eq!(found(&[], &subject()), []);
}

#[test]
fn each_fault_of_the_machine_is_found() {
    use Severity::{Error, Note, Warning};
    let limits = "Max open files            1024                 1024               files\n";
    let few = "Max open files            1024                 4096               files\n";
    let listens = "  sl  local\n   0: 00000000:0050 00000000:0000 0A 0\n";
    let listens6 = "  sl  local\n   0: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 0\n";
    let swapped = "MemTotal: 4194304 kB\nSwapTotal: 1048576 kB\nSwapFree: 4 kB\n";
    let small = "MemTotal: 1000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n";
    let ini = "etc/php/8.2/fpm/conf.d/10-opcache.ini";
    let wordpress = "srv/site/wp-config.php";
    let cases: [(&str, Option<&str>, &str, Severity); 21] = [
        ("proc/self/limits", Some(limits), "open-files", Error),
        ("proc/self/limits", Some(few), "open-files", Warning),
        (
            "proc/sys/net/core/somaxconn",
            Some("128\n"),
            "backlog",
            Warning,
        ),
        ("proc/net/tcp", Some(listens), "port-taken", Error),
        ("proc/net/tcp6", Some(listens6), "port-taken", Error),
        (
            "proc/sys/net/ipv4/ip_local_port_range",
            Some("50000 50999"),
            "port-range",
            Warning,
        ),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            Some("hpet\n"),
            "clock-source",
            Warning,
        ),
        ("run/systemd/timesync/synchronized", None, "clock", Warning),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            Some("always madvise [never]\n"),
            "huge-pages",
            Note,
        ),
        ("proc/meminfo", Some(swapped), "swap-used", Warning),
        ("proc/meminfo", Some(small), "no-swap", Note),
        (
            "sys/fs/cgroup/system.slice/memory.max",
            Some("500000000\n"),
            "group-memory",
            Error,
        ),
        (
            "sys/fs/cgroup/system.slice/mayfly.service/memory.events",
            Some("oom 3\noom_kill 2\n"),
            "out-of-memory",
            Error,
        ),
        (
            "proc/self/mounts",
            Some("tmpfs /dev/shm tmpfs rw,size=65536k 0 0\n"),
            "tmpfs-size",
            Warning,
        ),
        (
            "proc/self/mounts",
            Some("tmpfs /var/lib/mayfly tmpfs rw 0 0\n"),
            "tmpfs-temporary",
            Note,
        ),
        (ini, None, "opcache", Error),
        (
            ini,
            Some("zend_extension=opcache\nopcache.enable = Off\n"),
            "opcache",
            Error,
        ),
        (
            ini,
            Some("zend_extension=opcache\nopcache.memory_consumption=32\n"),
            "opcache-memory",
            Warning,
        ),
        (
            wordpress,
            Some("define(\"DB_HOST\", \"127.0.0.1:3306\");"),
            "database-socket",
            Note,
        ),
        ("run/mysqld/mysqld.sock", None, "database-socket", Warning),
        ("srv/.env", Some("DB_HOST=127.0.0.1\n"), "", Note),
    ];
    for (path, text, name, severity) in cases {
        let all = found(&[(path, text)], &subject());
        // A small machine cannot hold the configured memory either.
        let all: Vec<Finding> = all.into_iter().filter(|it| it.name != "memory").collect();
        let Some(finding) = all.first() else {
            assert_eq!(name, "", "{path}: nothing was found");
            continue;
        };
        assert_eq!((all.len(), finding.name), (1, name), "{path}: {all:?}");
        assert_eq!(finding.severity, severity, "{path}");
        assert!(
            !finding.what.is_empty() && !finding.mend.is_empty(),
            "{finding:?}"
        );
        let has_number = |text: &str| text.bytes().any(|it| it.is_ascii_digit());
        let says = format!("{} {}", finding.what, finding.why);
        assert!(
            has_number(&says) || name == "database-socket" || name == "swap-used",
            "{finding:?}"
        );
    }
}

#[test]
fn each_fault_of_the_configuration_is_found() {
    type Change = fn(&mut Subject);
    let cases: [(Change, &str); 9] = [
        (
            |it| it.pools[0].workers = Workers::Count(100),
            "group-memory",
        ),
        (|it| it.pools[0].max_requests = None, "max-requests"),
        (|it| it.pools[0].max_requests = Some(0), "max-requests"),
        (|it| it.pools[0].has_slow_log = false, "slow-log"),
        (
            |it| {
                it.pools[0]
                    .settings
                    .push(("opcache.enable".to_owned(), "0".to_owned()))
            },
            "opcache",
        ),
        (|it| it.backlog = 8192, "backlog"),
        (
            |it| {
                it.is_root = false;
                it.ports.truncate(1);
            },
            "privileged-port",
        ),
        (
            |it| {
                it.is_root = false;
                it.open_files = Some(1_000_000);
                it.ports.clear();
            },
            "open-files",
        ),
        (
            |it| it.temporary_folders = vec![PathBuf::from("/tmp/body")],
            "tmpfs-temporary",
        ),
    ];
    for (change, name) in cases {
        let mut subject = subject();
        change(&mut subject);
        let all = found(&[], &subject);
        let names: Vec<&str> = all.iter().map(|it| it.name).collect();
        assert_eq!(names, [name], "{all:?}");
    }
}

/// A worker that `workers auto` has not measured yet.
const AUTO: u64 = 48 << 20;

fn auto(chosen: u64) -> Workers {
    let bytes_each = AUTO;
    Workers::Auto { chosen, bytes_each }
}

#[test]
fn workers_that_the_machine_chooses_are_held_against_its_memory() {
    let mut subject = subject();
    subject.pools[0].workers = auto(60);
    assert_eq!(found(&[], &subject), []);
    // Each of two pools takes the memory for its own.
    subject.pools.push(subject.pools[0].clone());
    let all = found(&[], &subject);
    assert_eq!(
        (all.len(), all[0].name, all[0].severity),
        (1, "group-memory", Severity::Warning)
    );
    assert!(
        all[0]
            .what
            .contains("120 PHP workers (workers auto chooses so many)"),
        "{all:?}"
    );
    assert!(all[0].mend.contains("in all pools together"), "{all:?}");
    // Zones alone are too large: that is no choice of the machine's.
    subject.zones[0].memory_bytes = Some(8 << 30);
    assert_eq!(found(&[], &subject)[0].severity, Severity::Error);
}

#[test]
fn a_small_group_is_no_room_for_what_is_chosen_at_least() {
    let mut subject = subject();
    subject.zones[0].memory_bytes = Some(16 << 20);
    subject.pools[0].workers = auto(2);
    let group = "sys/fs/cgroup/system.slice/mayfly.service/memory.max";
    assert_eq!(found(&[(group, Some("134217728\n"))], &subject), []);
    let all = found(&[(group, Some("100000000\n"))], &subject);
    assert_eq!((all.len(), all[0].name), (1, "group-memory"));
    // A zone without a size takes a quarter of the memory.
    subject.zones[0].memory_bytes = None;
    subject.pools[0].workers = auto(50);
    assert_eq!(found(&[], &subject), []);
    subject.pools[0].workers = auto(55);
    assert_eq!(found(&[], &subject)[0].name, "group-memory");
}

#[test]
fn control_groups_of_the_first_version_have_limits_too() {
    let all = found(
        &[
            ("proc/self/cgroup", Some("5:cpu,memory:/docker/x\n")),
            (
                "sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                Some("500000000\n"),
            ),
            (
                "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes",
                Some("9223372036854771712\n"),
            ),
        ],
        &subject(),
    );
    assert_eq!((all.len(), all[0].name), (1, "group-memory"), "{all:?}");
}

#[test]
fn databases_of_the_same_machine_are_asked_over_their_socket() {
    use Severity::{Note, Warning};
    let wordpress = "srv/site/wp-config.php";
    let own = "        |-- 10.0.0.5\n           /32 host LOCAL\n        |-- 10.0.0.255\n           /32 link BROADCAST\n";
    let own6 = "20010db8000000000000000000000005 02 40 00 80 eth0\n";
    let postgresql = ("run/postgresql/.s.PGSQL.5432", Some(""));
    let pgsql = |host: &'static str| ("srv/.env", Some(host));
    type ChangedFiles = [(&'static str, Option<&'static str>)];
    let cases: [(&ChangedFiles, Option<(Severity, &str)>); 13] = [
        // MySQL, by an address of this machine.
        (
            &[
                ("proc/net/fib_trie", Some(own)),
                (wordpress, Some("define('DB_HOST', '10.0.0.5');")),
            ],
            Some((Note, "/run/mysqld/mysqld.sock")),
        ),
        (
            &[
                ("proc/net/fib_trie", Some(own)),
                (wordpress, Some("define('DB_HOST', '10.0.0.255');")),
            ],
            None,
        ),
        (
            &[
                ("proc/net/if_inet6", Some(own6)),
                (wordpress, Some("define('DB_HOST', '[2001:db8::5]:3306');")),
            ],
            Some((Note, "localhost")),
        ),
        (
            &[(wordpress, Some("define('DB_HOST', 'db.example.org');"))],
            None,
        ),
        (
            &[(
                wordpress,
                Some("define('DB_HOST', 'localhost:/run/mysqld/mysqld.sock');"),
            )],
            None,
        ),
        (
            &[(
                wordpress,
                Some("define('DB_HOST', 'localhost:/run/other.sock');"),
            )],
            Some((Warning, "mariadb")),
        ),
        // PostgreSQL, to which localhost is an address.
        (
            &[
                (wordpress, None),
                postgresql,
                pgsql("DATABASE_URL=postgresql://a:b@127.0.0.1:5432/c"),
            ],
            Some((Note, "/run/postgresql as the host")),
        ),
        (
            &[
                (wordpress, None),
                postgresql,
                pgsql("DB_CONNECTION=pgsql\nDB_HOST=localhost"),
            ],
            Some((Note, "/run/postgresql as the host")),
        ),
        (
            &[
                (wordpress, None),
                postgresql,
                pgsql("DB_CONNECTION=pgsql\nDB_HOST=/run/postgresql"),
            ],
            None,
        ),
        (
            &[
                (wordpress, None),
                postgresql,
                pgsql("DB_CONNECTION=pgsql\nDB_HOST=/var/run/other"),
            ],
            Some((Warning, "postgresql")),
        ),
        (
            &[
                (wordpress, None),
                postgresql,
                pgsql("DB_CONNECTION=pgsql\nDB_HOST=10.1.1.1"),
            ],
            None,
        ),
        // It runs in a container, whose socket is not here.
        (
            &[
                (wordpress, None),
                pgsql("DB_CONNECTION=pgsql\nDB_HOST=127.0.0.1"),
            ],
            None,
        ),
        (
            &[
                (wordpress, None),
                pgsql("DB_CONNECTION=sqlite\nDB_HOST=127.0.0.1"),
            ],
            None,
        ),
    ];
    for (changed, expected) in cases {
        let all = found(changed, &subject());
        let Some((severity, mend)) = expected else {
            assert_eq!(all, [], "{changed:?}");
            continue;
        };
        assert_eq!(all.len(), 1, "{changed:?}: {all:?}");
        assert_eq!(
            (all[0].name, all[0].severity),
            ("database-socket", severity),
            "{changed:?}"
        );
        assert!(all[0].mend.contains(mend), "{:?}", all[0]);
        // Other settings, which may hold passwords, are not shown.
        assert!(!format!("{all:?}").contains("a:b"), "{all:?}");
    }
}

#[test]
fn a_running_server_does_not_stand_in_its_own_way() {
    let listens = "  sl  local\n   0: 00000000:0050 00000000:0000 0A 0\n";
    let subject = Subject {
        is_running: true,
        ..subject()
    };
    assert_eq!(found(&[("proc/net/tcp", Some(listens))], &subject), []);
}

#[test]
fn the_worst_comes_first() {
    let mut subject = subject();
    subject.pools[0].has_slow_log = false;
    let all = found(
        &[
            ("proc/sys/net/core/somaxconn", Some("128\n")),
            ("etc/php/8.2/fpm/conf.d/10-opcache.ini", None),
        ],
        &subject,
    );
    let names: Vec<&str> = all.iter().map(|it| it.name).collect();
    assert_eq!(names, ["opcache", "backlog", "slow-log"]);
}

#[test]
fn a_machine_that_says_nothing_has_no_faults() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        check(
            folder.path(),
            &Subject {
                has_php: false,
                ..subject()
            }
        ),
        []
    );
}

/// The remedy names the mount that is too small, whatever that is.
#[test]
fn a_small_tmpfs_is_named_by_its_mount() {
    let mut subject = subject();
    subject.zones[0].path = "/var/cache/pages/site".into();
    let mounts = "tmpfs /var/cache/pages tmpfs rw,size=65536k 0 0\n";
    let found = found(&[("proc/self/mounts", Some(mounts))], &subject);
    let mends: Vec<&str> = found.iter().map(|it| &*it.mend).collect();
    assert_eq!(mends, ["mount -o remount,size=256m /var/cache/pages"]);
}
