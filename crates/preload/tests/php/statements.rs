//! The reported statements are those that the server writes into its general log.

use crate::peers::{Manner, Mayfly, Php, ReceivedMessage, ReceivedRecord, database, mysqli, pdo};

/// Runs the code and compares both lists.
fn reported_as_logged(name: &str, code: &str) -> (ReceivedRecord, Vec<ReceivedMessage>) {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let output = php.run(7, code);
    assert!(
        !output.contains("Warning") && !output.contains("Fatal"),
        "{name}: {output}"
    );
    let (before, record) = mayfly.until_record();
    assert_eq!((record.fetch, record.is_complete), (7, true), "{name}");
    let mut connections = record.connections.clone();
    connections.dedup();
    let logged = database().log_of(&connections);
    assert!(!logged.is_empty(), "{name}");
    // The server writes a statement without the blanks around it and the semicolon at its end.
    let received: Vec<_> = record
        .statements
        .iter()
        .map(|it| it.trim().trim_end_matches(';'))
        .collect();
    assert_eq!(received, logged, "{name}");
    (record, before)
}

fn writes(received: &[ReceivedMessage]) -> Vec<&str> {
    received
        .iter()
        .filter_map(|it| match it {
            ReceivedMessage::Write { text, fetch: 7, .. } => Some(text.trim_end()),
            _ => None,
        })
        .collect()
}

#[test]
fn emulated_prepares_are_told_as_the_texts_that_they_become() {
    let code = pdo("")
        + "$q = $db->prepare('SELECT * FROM t WHERE name = ? AND n > ?'); $q->execute(['two', 1]); print_r($q->fetchAll());";
    let (record, _) = reported_as_logged("emulated", &code);
    assert_eq!(
        record.statements,
        ["SELECT * FROM t WHERE name = 'two' AND n > '1'"]
    );
    assert_eq!(record.rows, [1]);
    assert_eq!(record.databases, [Some("site".into())]);
}

#[test]
fn native_prepares_are_told_with_their_parameters() {
    let code = pdo("PDO::ATTR_EMULATE_PREPARES => false")
        + "$q = $db->prepare('SELECT * FROM t WHERE name = ? AND n > ? AND ? IS NULL');
           foreach ([['one', 0], ['two', 5]] as [$name, $n]) {
               $q->bindValue(1, $name); $q->bindValue(2, $n, PDO::PARAM_INT); $q->bindValue(3, null); $q->execute();
               print_r($q->fetchAll());
           }";
    let (record, _) = reported_as_logged("native", &code);
    assert_eq!(record.rows, [1, 0]);
}

#[test]
fn several_statements_in_one_text_have_a_result_each() {
    let code = mysqli()
        + "$db->multi_query('SELECT 1; SELECT * FROM t WHERE n < 0; SELECT 2');
           do { if ($r = $db->store_result()) { print_r($r->fetch_all()); } } while ($db->more_results() && $db->next_result());";
    let (record, _) = reported_as_logged("multi", &code);
    assert_eq!((record.statements.len(), record.rows), (1, vec![1, 0, 1]));
}

#[test]
fn asynchronous_queries_of_two_connections_are_told() {
    let code = mysqli() + "$a = $db;" + &mysqli()
        + "$a->query('SELECT 10', MYSQLI_ASYNC); $db->query('SELECT 20', MYSQLI_ASYNC); $left = 2;
           while ($left > 0) { $read = $error = $reject = [$a, $db]; if (mysqli_poll($read, $error, $reject, 1) < 1) continue;
               foreach ($read as $link) { print_r($link->reap_async_query()->fetch_row()); $left--; } if ($left == 1) { $c = $read[0] === $a ? $db : $a; print_r($c->reap_async_query()->fetch_row()); $left--; } }";
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let output = php.run(7, &code);
    let record = mayfly.record();
    let mut statements = record.statements.clone();
    statements.sort();
    assert_eq!(statements, ["SELECT 10", "SELECT 20"], "{output}");
    let mut logged = database().log_of(&record.connections);
    logged.sort();
    assert_eq!(statements, logged);
}

#[test]
fn transactions_and_errors_are_told_and_writes_are_announced() {
    let code = pdo("PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT")
        + "$db->beginTransaction(); $db->exec(\"UPDATE t SET n = 3 WHERE name = 'three'\"); $db->query('SELECT n FROM t')->fetchAll(); $db->commit();
           $db->beginTransaction(); $db->exec('DELETE FROM t WHERE id = 99'); $db->rollBack();
           $db->query('SELECT * FROM missing'); $db->exec('INSERT INTO missing VALUES (1)');";
    let (record, before) = reported_as_logged("transactions", &code);
    let expected = [
        "START TRANSACTION",
        "UPDATE t SET n = 3 WHERE name = 'three'",
        "SELECT n FROM t",
        "COMMIT",
        "START TRANSACTION",
        "DELETE FROM t WHERE id = 99",
        "ROLLBACK",
        "SELECT * FROM missing",
        "INSERT INTO missing VALUES (1)",
    ];
    let received: Vec<_> = record.statements.iter().map(|it| it.trim_end()).collect();
    assert_eq!(received, expected);
    assert_eq!(
        writes(&before),
        [
            expected[1],
            expected[3],
            expected[5],
            expected[6],
            expected[8]
        ]
    );
    let ends: Vec<_> = before
        .iter()
        .filter_map(|it| {
            if let ReceivedMessage::Written { error, .. } = it {
                Some(*error)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(ends, [None, None, None, None, Some(1146)]);
    assert_eq!(record.rows[7], 101_146);
}

#[test]
fn persistent_connection_is_followed_through_requests() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let code = pdo("PDO::ATTR_PERSISTENT => true")
        + "$db->exec(\"SET SESSION sql_mode = 'ANSI_QUOTES'\"); $db->exec('USE mysql'); print_r($db->query('SELECT 1')->fetchAll()); $db->exec('USE site');";
    for fetch in 1..4 {
        php.run(fetch, &code);
        let record = mayfly.record();
        assert_eq!(
            record.statements,
            [
                "SET SESSION sql_mode = 'ANSI_QUOTES'",
                "USE mysql",
                "SELECT 1",
                "USE site"
            ]
        );
        assert_eq!(record.databases[2].as_deref(), Some("mysql"));
        let settings = &record.settings[2];
        assert_eq!(
            settings[settings.len() - 2..],
            ["SET SESSION sql_mode = 'ANSI_QUOTES'", "USE mysql"],
            "{fetch}"
        );
        assert!(
            settings.len() <= 4,
            "repeated settings stand once: {settings:?}"
        );
    }
}

#[test]
fn statements_after_the_response_are_not_in_the_record_and_their_writes_are_told() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let code = pdo("")
        + "$db->query('SELECT 1')->fetchAll(); echo 'page'; fastcgi_finish_request();
           $db->query('SELECT 2')->fetchAll(); $db->exec('UPDATE t SET n = n WHERE id = 99');";
    php.run(7, &code);
    assert_eq!(mayfly.record().statements, ["SELECT 1"]);
    let text = "UPDATE t SET n = n WHERE id = 99".to_owned();
    let received = mayfly.next();
    assert!(
        matches!(&received, ReceivedMessage::Write { fetch: 7, text: it, .. } if *it == text),
        "{received:?}"
    );
}

#[test]
fn request_without_a_number_has_no_statements_and_its_writes_are_told() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    php.write(
        "a.php",
        &(pdo("")
            + "$db->query('SELECT 1')->fetchAll(); $db->exec('UPDATE t SET n = n WHERE id = 98');"),
    );
    php.get("a.php", &[]);
    let (before, record) = mayfly.until_record();
    assert!(
        matches!(&before[1], ReceivedMessage::Write { fetch: 0, .. }),
        "{before:?}"
    );
    assert_eq!(
        (record.fetch, record.statements.len()),
        (0, 0),
        "files alone"
    );
}

/// Short answers are read together, when a long one or another kind of statement comes.
#[test]
fn answers_of_each_length_are_told_as_logged() {
    let code = mysqli()
        + "foreach ([1, 100, 9000, 1, 60000, 2, ...array_fill(0, 20, 5000), 3] as $n) print_r($db->query(\"SELECT LPAD('', $n, 'x')\")->fetch_all());
           $db->query('UPDATE t SET n = n WHERE id = 95'); print_r($db->query('SHOW TABLES')->fetch_all());
           $db->query('SET @a = 1'); print_r($db->query('SELECT n FROM t')->fetch_all());";
    let (record, before) = reported_as_logged("lengths", &code);
    assert_eq!(record.rows[..27], [1; 27]);
    assert_eq!(
        writes(&before),
        ["UPDATE t SET n = n WHERE id = 95"],
        "no plain read is announced"
    );
    let settings = |nth: usize| record.settings[record.settings.len() - nth].clone();
    assert_eq!(
        (settings(3), settings(1)),
        (settings(2), vec!["SET @a = 1".to_owned()])
    );
}

#[test]
fn long_pages_say_that_they_are_too_long() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let code = pdo("") + "for ($i = 0; $i < 500; $i++) $db->query(\"SELECT $i\")->fetchAll();";
    php.run(7, &code);
    assert!(!mayfly.record().is_complete);
    php.run(8, "echo 1;");
    assert!(mayfly.record().is_complete);
}

#[test]
fn encrypted_and_compressed_connections_are_named_and_not_read() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let code = |flags: &str| {
        format!(
            "$db = mysqli_init(); $db->options(MYSQLI_OPT_SSL_VERIFY_SERVER_CERT, 0);
             $db->real_connect('localhost', 'site', '{}', 'site', 0, '{}', {flags}); print_r($db->query('SELECT 1')->fetch_all());",
            crate::peers::PASSWORD,
            database().socket()
        )
    };
    // It may have written anything, which is reported before the answer.
    let is_told = |before: &[ReceivedMessage]| {
        let all = before.iter().map(|it| match it {
            ReceivedMessage::Write { text, .. } => text == "a connection that is not read",
            ReceivedMessage::Written { error, .. } => error.is_none(),
            _ => false,
        });
        all.filter(|it| *it).count() == 2
    };
    let compressed = php.run(7, &code("MYSQLI_CLIENT_COMPRESS"));
    let (before, record) = mayfly.until_record();
    assert!(is_told(&before), "{before:?}");
    assert!(
        record.has_input("unread-database compression"),
        "{compressed} {record:?}"
    );
    let encrypted = php.run(
        8,
        &code("MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT"),
    );
    let (before, record) = mayfly.until_record();
    assert!(is_told(&before), "{before:?}");
    assert!(
        record.has_input("unread-database tls"),
        "{encrypted} {record:?}"
    );
    assert_eq!(record.statements, [] as [&str; 0]);
}

/// The session and the statements as Laravel's `MySqlConnector` and its query builder make them.
#[test]
fn pages_of_an_application_like_laravel_are_told_as_logged() {
    let options = "PDO::ATTR_EMULATE_PREPARES => false, PDO::ATTR_STRINGIFY_FETCHES => false, PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION";
    let code = pdo(options)
        + "$db->exec('use `site`;'); $db->prepare(\"set names 'utf8mb4' collate 'utf8mb4_unicode_ci'\")->execute();
           $db->prepare(\"set session sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_DATE'\")->execute();
           function rows($db, $text, $values) {
               $q = $db->prepare($text);
               foreach ($values as $i => $it) $q->bindValue($i + 1, $it, is_int($it) ? PDO::PARAM_INT : PDO::PARAM_STR);
               $q->execute();
               return $q->columnCount() ? $q->fetchAll(PDO::FETCH_OBJ) : $q->rowCount();
           }
           rows($db, 'select count(*) as aggregate from `t` where `n` >= ?', [1]);
           $all = rows($db, 'select * from `t` where `n` >= ? order by `id` asc limit 15 offset 0', [1]);
           foreach ($all as $row) rows($db, 'select * from `t` where `t`.`id` = ? limit 1', [$row->id]);
           rows($db, 'select * from `t` where `name` in (?, ?)', ['one', 'two']);
           $db->beginTransaction();
           rows($db, 'insert into `t` (`name`, `n`) values (?, ?)', ['like laravel', -7]); $db->lastInsertId();
           rows($db, 'delete from `t` where `name` = ?', ['like laravel']);
           $db->commit();";
    let (record, before) = reported_as_logged("like Laravel", &code);
    assert!(record.statements.len() >= 11, "{:?}", record.statements);
    assert_eq!(
        writes(&before),
        [
            // Not of the few texts that pass without an announcement.
            "use `site`;",
            "insert into `t` (`name`, `n`) values (?, ?)",
            "delete from `t` where `name` = ?",
            "COMMIT"
        ]
    );
}
