//! The other inputs of a page are named.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::peers::{Manner, Mayfly, Php};

/// Code, and how the input that it has begins.
const INPUTS: &[(&str, &str)] = &[
    ("shell_exec('true');", "program true"),
    ("exec('true');", "program true"),
    ("pclose(popen('true', 'r'));", "program true"),
    ("proc_close(proc_open(['true'], [], $pipes));", "program "),
    ("gethostbyname('name.invalid');", "name-lookup name.invalid"),
    (
        "file_get_contents('/dev/urandom', false, null, 0, 5);",
        "random",
    ),
    (
        "@stream_socket_client('unix:///nonexistent');",
        "connection unix:/nonexistent",
    ),
    (
        "stream_socket_client('udp://127.0.0.1:9');",
        "connection 127.0.0.1:9",
    ),
];

#[test]
fn each_input_is_named() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    php.run(1, "echo 1;");
    let plain = mayfly.record();
    assert_eq!(
        plain.inputs,
        [] as [&str; 0],
        "nothing is named without a reason"
    );
    for (code, expected) in INPUTS {
        let output = php.run(7, code);
        let record = mayfly.record();
        assert!(
            record.has_input(expected),
            "{code}: {:?} {output}",
            record.inputs
        );
    }
}

#[test]
fn other_servers_are_named_by_their_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello");
        }
    });
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let codes = [
        format!("echo file_get_contents('http://{address}/');"),
        format!("$c = curl_init('http://{address}/'); echo curl_exec($c);"),
        format!(
            "$s = pfsockopen('{}', {}); fwrite($s, 'x'); echo fread($s, 100);",
            address.ip(),
            address.port()
        ),
        // The connection that was opened by the request before.
        format!(
            "$s = pfsockopen('{}', {}); fwrite($s, 'x'); echo fread($s, 100);",
            address.ip(),
            address.port()
        ),
    ];
    for code in codes {
        let output = php.run(7, &code);
        assert!(!output.contains("Fatal"), "{output}");
        let record = mayfly.record();
        assert!(
            record.has_input(&format!("connection {address}")),
            "{code}: {record:?}"
        );
    }
}

#[test]
fn shared_memory_is_named_where_its_extension_is_there() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::start(Some(&mayfly.path()), &["apc.enabled=1"]);
    for (extension, code, expected) in [
        ("apcu", "apcu_fetch('a');", "shared-cache"),
        ("apcu", "apcu_exists('a');", "shared-cache"),
        ("shmop", "shmop_open(5, 'c', 0600, 100);", "shared-memory"),
        ("sysvshm", "shm_attach(6);", "shared-memory"),
    ] {
        let output = php.run(
            7,
            &format!("if (!extension_loaded('{extension}')) {{ echo 'missing'; exit; }} {code}"),
        );
        let record = mayfly.record();
        if output.contains("missing") {
            println!("left out, PHP has no {extension}");
            continue;
        }
        assert!(record.has_input(expected), "{code}: {record:?} {output}");
    }
    php.run(8, "echo 1;");
    assert!(
        !mayfly.record().has_input("shared-cache"),
        "a request that does not read it"
    );
}

#[test]
fn files_are_named_with_what_was_done_and_whether_they_are_there() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let site = php
        .path("site")
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    std::fs::write(php.path("site").join("theme.json"), "{}").unwrap();
    std::fs::create_dir(php.path("site").join("folder")).unwrap();
    // A link is reported as its target.
    std::os::unix::fs::symlink("folder", php.path("site").join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", php.path("site").join("lost")).unwrap();
    let code = "file_get_contents('theme.json'); file_exists(__DIR__ . '/missing'); scandir(__DIR__ . '/folder');
                filemtime(__DIR__ . '/folder'); file_put_contents(__DIR__ . '/made', 'x'); @unlink(__DIR__ . '/made');
                fopen(__DIR__ . '/both', 'w+');
                is_link(__DIR__ . '/link'); is_link(__DIR__ . '/lost');";
    php.run(7, code);
    let record = mayfly.record();
    for expected in [
        format!("Opened {site}/theme.json"),
        format!("-Looked {site}/missing"),
        format!("Listed {site}/folder"),
        format!("Looked {site}/folder"),
        format!("WrittenOnly {site}/made"),
        format!("Removed {site}/made"),
        format!("Written {site}/both"),
        format!("Looked {site}/link"),
        format!("-Looked {site}/lost"),
    ] {
        assert!(
            record.files.contains(&expected),
            "{expected}: {:#?}",
            record.files
        );
    }
}

#[test]
fn sqlite_databases_that_are_open_are_named_by_what_is_in_them() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let has_extension = php.run(
        1,
        "echo extension_loaded('pdo_sqlite') ? 'there' : 'missing';",
    );
    mayfly.record();
    if has_extension.contains("missing") {
        println!("left out, PHP has no pdo_sqlite");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(
        folder.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    let file = folder.path().join("a.name").display().to_string();
    let open = |options: &str| format!("$db = new PDO('sqlite:{file}', null, null, [{options}]);");
    let create = open("") + "$db->exec('CREATE TABLE t (a)');";
    let select = "$db->query('SELECT * FROM t')->fetchAll();";
    let persistent = "PDO::ATTR_PERSISTENT => true";
    let begins_empty = format!("{}unlink('{file}'); {}", open(""), open(persistent));
    let before = [format!("{file} before")];
    let now = [file.clone()];
    let text = "file_put_contents(__DIR__ . '/text.db', 'SQLite format 4'); fopen(__DIR__ . '/text.db', 'r+');";
    for (code, expected) in [
        (create.clone(), &now[..]),
        (open("") + select, &now),
        (
            format!("$db = new SQLite3('{file}', SQLITE3_OPEN_READONLY);"),
            &now,
        ),
        (format!("file_get_contents('{file}');"), &now),
        (
            "$db = new PDO('sqlite::memory:'); $db->exec('CREATE TABLE t (a)');".to_owned(),
            &[],
        ),
        (text.to_owned(), &[]),
        ("echo 1;".to_owned(), &[]),
        // An empty file becomes a database while it is open, and stays open.
        (begins_empty, &now),
        ("echo 1;".to_owned(), &[]),
        (
            open(persistent) + "$db->exec('CREATE TABLE t (a)');",
            &before,
        ),
        ("echo 1;".to_owned(), &before),
    ] {
        let output = php.run(7, &code);
        let record = mayfly.record();
        assert_eq!(record.sqlite, expected, "{code}: {output}");
    }
}

#[test]
fn each_of_many_files_is_told_once_as_it_was_first() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let code = "
        for ($round = 0; $round < 2; $round++) {
            for ($i = 0; $i < 700; $i++) { clearstatcache(); file_exists(__DIR__ . \"/f$i\"); }
            touch(__DIR__ . '/f5');
        }
        chdir(__DIR__); file_exists('f5'); file_exists('./f700');";
    php.run(7, code);
    let record = mayfly.record();
    assert!(record.is_complete);
    let site = php.path("site").display().to_string();
    for i in 0..700 {
        let told = record
            .files
            .iter()
            .filter(|it| it.ends_with(&format!("/f{i}")) && it.contains("Looked"));
        assert_eq!(told.collect::<Vec<_>>(), [&format!("-Looked {site}/f{i}")]);
    }
    assert!(
        record.files.contains(&format!("-Looked {site}/./f700")),
        "{record:?}"
    );
}

/// PHP asks next about the file it has opened, and the library takes its answer. This program
/// does not ask.
#[test]
fn file_that_is_opened_and_not_looked_at_is_told() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::start(Some(&mayfly.path()), &["ffi.enable=1"]);
    let has_extension = php.run(1, "echo extension_loaded('ffi') ? 'there' : 'missing';");
    mayfly.record();
    if has_extension.contains("missing") {
        println!("left out, PHP has no FFI");
        return;
    }
    let site = php.path("site").display().to_string();
    for (name, content) in [
        ("a", "SQLite format 3\0"),
        ("b", "SQLite format 3\0"),
        ("c", "text"),
    ] {
        std::fs::write(format!("{site}/{name}"), content).unwrap();
    }
    let code = "
        $c = FFI::cdef('int open(const char *, int); int close(int); int dup2(int, int);');
        $c->close($c->open(__DIR__ . '/a', 0));
        $c->dup2(0, $b = $c->open(__DIR__ . '/b', 0));
        $c->close($b);
        $c->open(__DIR__ . '/c', 0);";
    let output = php.run(7, code);
    let record = mayfly.record();
    assert!(record.is_complete, "{output}");
    for name in ["a", "b", "c"] {
        assert!(
            record.files.contains(&format!("Opened {site}/{name}")),
            "{record:?} {output}"
        );
    }
    assert_eq!(record.sqlite, [format!("{site}/a"), format!("{site}/b")]);
}

/// A file that is known to be no database is not looked into again, but when it changes.
#[test]
fn file_that_becomes_a_database_in_its_place_is_named() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let path = php.path("site").join("a.name");
    std::fs::write(&path, [b'x'; 4096]).unwrap();
    // Younger files are looked into each time.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let code = "file_get_contents(__DIR__ . '/a.name');";
    for _ in 0..2 {
        php.run(7, code);
        let record = mayfly.record();
        assert_eq!(record.sqlite, [] as [&str; 0]);
        assert!(record.files.contains(&format!("Opened {}", path.display())));
    }
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"SQLite format 3\0", 0).unwrap();
    php.run(7, code);
    assert_eq!(mayfly.record().sqlite, [path.display().to_string()]);
}

#[test]
fn folders_that_a_pattern_looks_into_are_named() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let site = php.path("site").canonicalize().unwrap();
    for folder in ["plugins/one/deep", "plugins/two"] {
        std::fs::create_dir_all(site.join(folder)).unwrap();
    }
    std::fs::write(site.join("plugins/one/about.json"), "{}").unwrap();
    let site = site.display();
    for (pattern, folders, is_whole) in [
        (
            "__DIR__ . '/plugins/*/about.json'",
            vec!["plugins", "plugins/one", "plugins/two"],
            true,
        ),
        (
            "__DIR__ . '/plugins/*/d*/*.php'",
            vec!["plugins", "plugins/one", "plugins/two", "plugins/one/deep"],
            true,
        ),
        ("'plugins/*.json'", vec!["plugins"], true),
        ("__DIR__ . '/plugins/*'", vec!["plugins"], true),
        // Within braces a slash may end no folder.
        (
            "__DIR__ . '/plugins/{one/x,two}/*.php', GLOB_BRACE",
            vec![],
            false,
        ),
    ] {
        php.run(7, &format!("chdir(__DIR__); echo count(glob({pattern}));"));
        let record = mayfly.record();
        for folder in folders {
            let expected = format!("Listed {site}/{folder}");
            assert!(
                record.files.contains(&expected),
                "{pattern}: {expected}: {:?}",
                record.files
            );
        }
        assert_eq!(record.is_complete, is_whole, "{pattern}");
    }
}
