//! Pages that PHP makes while a database, an object cache or a lock does not answer: the record names that.

use cache_wire::CacheConversation;

use crate::cache_connection::CacheConnection;
use crate::connection::Connection;
use crate::reporter::Reporter;
use crate::reporter::tests::{inputs, recording};

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

/// A connection to a database whose greeting is over, as PHP has it.
fn connected(reporter: &mut Reporter) -> Connection {
    let capabilities = (1_u32 | 1 << 9 | 1 << 15).to_le_bytes();
    let [a, b, c, d] = capabilities;
    let greeting = [
        &b"\x0a10.11.6-MariaDB\0\x07\0\0\0saltsalt\0"[..],
        &[a, b, 33, 2, 0, c, d, 21],
        &[0; 10],
        b"saltsaltsalt\0mysql_native_password\0",
    ]
    .concat();
    let response = [
        &capabilities[..],
        &[0, 0, 0, 1, 45],
        &[0; 23],
        b"wp\0\x03abc",
    ]
    .concat();
    let mut connection = Connection::new(1, b"127.0.0.1:3306".to_vec(), 7);
    connection.received(&packet(0, &greeting), reporter);
    sends(&mut connection, &packet(1, &response), reporter);
    let welcome = packet(2, b"\x00\x00\x00\x02\x00\x00\x00");
    connection.received(&welcome, reporter);
    connection
}

fn sends(connection: &mut Connection, bytes: &[u8], reporter: &mut Reporter) {
    connection.will_send(bytes, reporter);
    connection.has_sent(bytes.len());
}

/// The inputs of a page that sends a command and gets this answer.
fn asked(command: &[u8], answer: &[u8]) -> Vec<String> {
    let mut reporter = recording();
    let mut connection = connected(&mut reporter);
    sends(&mut connection, &packet(0, command), &mut reporter);
    if !answer.is_empty() {
        connection.received(answer, &mut reporter);
    }
    connection.end_of_request(&mut reporter);
    inputs(&mut reporter)
}

fn error(code: u16) -> Vec<u8> {
    let payload = [&[0xff][..], &code.to_le_bytes(), b"#HY000why"].concat();
    packet(1, &payload)
}

const QUERY: &[u8] = b"\x03SELECT a FROM t";

#[test]
fn error_that_the_statement_does_not_cause_is_named_and_one_that_it_causes_is_not() {
    let unanswered = ["unanswered: SELECT a FROM t"];
    // A lock, a deadlock, KILL, a limit of time, too little memory, and one that is not known.
    for code in [1205, 1213, 1317, 1927, 1969, 3024, 1041, 1290, 4999] {
        assert_eq!(asked(QUERY, &error(code)), unanswered, "{code}");
    }
    // No such column or table, syntax, an unknown function.
    for code in [1054, 1146, 1064, 1305] {
        assert_eq!(asked(QUERY, &error(code)), [""; 0], "{code}");
    }
}

#[test]
fn error_of_a_statement_that_could_not_be_prepared_and_of_other_commands_is_named_as_well() {
    for (command, detail) in [
        (&b"\x16SELECT ?"[..], "SELECT ?"),
        (b"\x02shop", "shop"),
        (b"\x0e", ""),
    ] {
        let expected = [format!("unanswered: {detail}")];
        assert_eq!(asked(command, &error(1205)), expected, "{command:?}");
    }
}

#[test]
fn statement_without_an_answer_before_the_end_is_named() {
    let unanswered = ["unanswered: SELECT a FROM t"];
    assert_eq!(asked(QUERY, b""), unanswered);
    // The first of several packets of an answer: then the connection was lost.
    assert_eq!(asked(QUERY, &packet(1, &[1])), unanswered);
    assert_eq!(asked(b"\x0e", b""), ["unanswered: "], "a ping");
}

#[test]
fn statement_that_is_answered_and_the_end_of_a_connection_are_no_inputs() {
    let done = packet(1, b"\x00\x01\x00\x02\x00\x00\x00");
    assert_eq!(asked(b"\x03SET NAMES utf8mb4", &done), [""; 0]);
    assert_eq!(asked(b"\x01", b""), [""; 0]);
    // A prepared statement is closed, which has no answer.
    assert_eq!(asked(b"\x19\x01\0\0\0", b""), [""; 0]);
}

fn to_cache(first: &[u8]) -> CacheConnection {
    let conversation = CacheConversation::begin(first).expect("commands of an object cache");
    CacheConnection::new(1, b"127.0.0.1:6379".to_vec(), conversation)
}

/// The inputs of a page that sends these commands to an object cache, gets these answers, and closes the connection.
fn asked_of_cache(commands: &[u8], answers: &[u8]) -> Vec<String> {
    let mut reporter = recording();
    let mut connection = to_cache(commands);
    connection.will_send(commands, &mut reporter);
    connection.has_sent(commands.len());
    connection.received(answers, &mut reporter);
    connection.close(&mut reporter);
    inputs(&mut reporter)
}

const GET: &str = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
const PING: &str = "*1\r\n$4\r\nPING\r\n";
const QUIT: &str = "*1\r\n$4\r\nQUIT\r\n";

#[test]
fn command_of_an_object_cache_without_an_answer_before_the_end_is_named() {
    let of_get = ["cache-state: GET"];
    assert_eq!(asked_of_cache(GET.as_bytes(), b""), of_get);
    assert_eq!(asked_of_cache(GET.as_bytes(), b"$5\r\nval"), of_get);
    let two = [PING, GET].concat();
    assert_eq!(asked_of_cache(two.as_bytes(), b"+PONG\r\n"), of_get);
    assert_eq!(asked_of_cache(PING.as_bytes(), b""), ["cache-state: PING"]);
    assert_eq!(asked_of_cache(b"get k\r\n", b"VALUE k 0 5\r\nval"), of_get);
}

#[test]
fn page_ends_with_a_pending_command_on_a_connection_that_stays_open() {
    let mut reporter = recording();
    let mut connection = to_cache(GET.as_bytes());
    connection.will_send(GET.as_bytes(), &mut reporter);
    connection.end_of_request(&mut reporter);
    assert_eq!(inputs(&mut reporter), ["cache-state: GET"]);
}

#[test]
fn error_of_an_object_cache_is_named_but_where_a_client_asks_what_the_server_can_do() {
    let loading = b"-LOADING Redis is loading the dataset in memory\r\n";
    assert_eq!(
        asked_of_cache(PING.as_bytes(), loading),
        ["cache-state: PING"]
    );
    assert_eq!(
        asked_of_cache(GET.as_bytes(), loading),
        ["cache-state: GET"]
    );
    let hello = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    let unknown = b"-ERR unknown command\r\n";
    assert_eq!(asked_of_cache(hello, unknown), [""; 0]);
}

#[test]
fn answered_commands_of_an_object_cache_and_its_end_are_no_inputs() {
    let both = [GET, QUIT].concat();
    assert_eq!(asked_of_cache(both.as_bytes(), b"$5\r\nvalue\r\n"), [""; 0]);
    assert_eq!(asked_of_cache(GET.as_bytes(), b"$-1\r\n"), [""; 0]);
    assert_eq!(asked_of_cache(b"get k\r\nquit\r\n", b"END\r\n"), [""; 0]);
}
