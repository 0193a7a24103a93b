//! Conversations as PHP's extensions and servers have them, in pieces of any size.

use postgres_wire::{
    Conversation, Event, MAX_PREPARED, Parameter, Unreadable, fuzz_conversation, put_message,
    startup_message,
};
use proptest::prelude::*;

/// What was said, and by whom: `true` is the client.
type Dialogue = Vec<(bool, Vec<u8>)>;

fn message(letter: u8, fields: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_message(letter, fields, &mut bytes);
    bytes
}

fn client(letter: u8, fields: &[u8]) -> (bool, Vec<u8>) {
    (true, message(letter, fields))
}

fn server(letter: u8, fields: &[u8]) -> (bool, Vec<u8>) {
    (false, message(letter, fields))
}

fn query(text: &str) -> (bool, Vec<u8>) {
    client(b'Q', &[text.as_bytes(), b"\0"].concat())
}

fn parse(name: &str, text: &str) -> (bool, Vec<u8>) {
    let fields = [name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat();
    client(b'P', &fields)
}

/// Binds the unnamed portal to a statement, with one parameter of text.
fn bind(name: &str, value: &str) -> (bool, Vec<u8>) {
    let length = u32::try_from(value.len()).unwrap().to_be_bytes();
    let head = [b"\0", name.as_bytes(), b"\0\0\0\0\x01"].concat();
    client(
        b'B',
        &[&head, &length[..], value.as_bytes(), b"\0\0"].concat(),
    )
}

fn execute() -> (bool, Vec<u8>) {
    client(b'E', b"\0\0\0\0\0")
}

fn sync() -> (bool, Vec<u8>) {
    client(b'S', b"")
}

fn ready(status: u8) -> (bool, Vec<u8>) {
    server(b'Z', &[status])
}

fn opened() -> Dialogue {
    vec![
        (
            true,
            startup_message(&[("user", "ada"), ("database", "blog")]),
        ),
        server(b'R', &[0, 0, 0, 10]),
        client(b'p', b"SCRAM-SHA-256\0"),
        server(b'R', &[0, 0, 0, 0]),
        server(b'S', b"server_version\x0015.3\0"),
        server(b'S', b"client_encoding\0UTF8\0"),
        server(b'S', b"standard_conforming_strings\0on\0"),
        server(b'K', &[0, 0, 1, 2, 9, 9, 9, 9]),
        ready(b'I'),
    ]
}

/// The events, and the conversation after them.
fn heard(said: &[(bool, Vec<u8>)], piece: usize) -> (Vec<String>, Conversation) {
    let mut conversation = Conversation::default();
    let mut events = Vec::new();
    for (is_client, bytes) in said {
        for part in bytes.chunks(piece) {
            let mut see = |event: Event<'_>| {
                events.push(match event {
                    Event::Asked(command) => {
                        let values = command.parameters.iter().map(|value| match value {
                            Parameter::Text(text) => String::from_utf8_lossy(text).into_owned(),
                            other => format!("{other:?}"),
                        });
                        let values: Vec<_> = values.collect();
                        let text = String::from_utf8_lossy(command.text());
                        let doubt = ["?", ""][usize::from(command.is_complete)];
                        format!("{text}{doubt} {}", values.join(","))
                    }
                    Event::Answered(answer) => format!(
                        "= {}{}{}",
                        answer.commands,
                        if answer.has_failed { " failed" } else { "" },
                        if answer.is_in_transaction {
                            " within"
                        } else {
                            ""
                        },
                    ),
                });
            };
            match is_client {
                true => conversation.sent(part, &mut see),
                false => conversation.received(part, &mut see),
            }
        }
    }
    (events, conversation)
}

/// The same in pieces of every size.
fn events(said: &[(bool, Vec<u8>)]) -> Vec<String> {
    let (whole, _) = heard(said, usize::MAX);
    for piece in [1, 2, 3, 7, 64] {
        assert_eq!(heard(said, piece).0, whole, "in pieces of {piece}");
    }
    whole
}

fn after(more: Dialogue) -> Vec<String> {
    events(&[opened(), more].concat())
}

#[test]
fn the_session_is_known_once_the_server_is_ready() {
    let mut said = vec![
        (true, [0, 0, 0, 8, 4, 210, 22, 47].to_vec()),
        (false, b"N".to_vec()),
    ];
    said.extend(opened());
    let (events, conversation) = heard(&said, usize::MAX);
    assert!(events.is_empty() && conversation.is_ready());
    let session = conversation.session().unwrap();
    assert_eq!(
        (&session.account[..], &session.database[..]),
        (&b"ada"[..], &b"blog"[..])
    );
    assert_eq!(
        (session.process, &session.server_version[..]),
        (258, &b"15.3"[..])
    );
    assert!(session.reads_plainly);
}

#[test]
fn a_session_that_reads_texts_otherwise_says_so() {
    for parameter in [
        &b"client_encoding\0SJIS\0"[..],
        b"standard_conforming_strings\0off\0",
    ] {
        let said = [opened(), vec![server(b'S', parameter)]].concat();
        let (_, conversation) = heard(&said, usize::MAX);
        assert!(!conversation.session().unwrap().reads_plainly);
    }
}

#[test]
fn statements_and_their_answers_are_seen_in_their_order() {
    let said = vec![
        query("SELECT 1"),
        server(b'T', b"\0\0"),
        server(b'D', b"\0\0"),
        server(b'C', b"SELECT 1\0"),
        ready(b'I'),
        query("BEGIN; UPDATE t SET a = 1"),
        server(b'C', b"BEGIN\0"),
        server(b'C', b"UPDATE 1\0"),
        ready(b'T'),
        query("nonsense"),
        server(b'E', b"SERROR\0C42601\0\0"),
        ready(b'E'),
        query("COPY t FROM STDIN"),
        server(b'G', b"\0\0\0"),
        client(b'd', b"1\n"),
        client(b'c', b""),
        server(b'C', b"COPY 1\0"),
        ready(b'I'),
    ];
    assert_eq!(
        after(said),
        [
            "SELECT 1 ",
            "= 1",
            "BEGIN; UPDATE t SET a = 1 ",
            "= 1 within",
            "nonsense ",
            "= 1 failed within",
            "COPY t FROM STDIN ",
            "= 1"
        ]
    );
}

#[test]
fn prepared_statements_are_known_by_their_names_until_they_are_closed() {
    let said = vec![
        parse("one", "SELECT $1"),
        sync(),
        server(b'1', b""),
        ready(b'I'),
        bind("one", "a"),
        execute(),
        bind("one", "b"),
        execute(),
        sync(),
        server(b'2', b""),
        ready(b'I'),
        // Taken: the one before stays.
        parse("one", "DELETE FROM t"),
        bind("one", "c"),
        execute(),
        sync(),
        server(b'E', b"SERROR\0\0"),
        ready(b'I'),
        query("DEALLOCATE one"),
        ready(b'I'),
        bind("one", "d"),
        execute(),
        sync(),
        ready(b'I'),
        parse("one", "SELECT 2"),
        bind("one", "e"),
        execute(),
        query("DEALLOCATE one; PREPARE one AS DELETE FROM t"),
        ready(b'I'),
        bind("one", "f"),
        execute(),
        sync(),
    ];
    assert_eq!(
        after(said),
        [
            "= 0",
            "SELECT $1 a",
            "SELECT $1 b",
            "= 2",
            "? c",
            "= 1 failed",
            "DEALLOCATE one ",
            "= 1",
            "an unknown prepared statement? ",
            "= 1",
            "SELECT 2 e",
            "DEALLOCATE one; PREPARE one AS DELETE FROM t ",
            "= 2",
            "an unknown prepared statement? ",
        ]
    );
}

#[test]
fn what_is_too_much_is_not_complete() {
    let mut said = opened();
    for number in 0..=MAX_PREPARED {
        said.push(parse(&format!("s{number}"), "SELECT 1"));
    }
    said.extend([bind(&format!("s{MAX_PREPARED}"), "a"), execute()]);
    said.push(query(&"x".repeat(100_000)));
    let (events, _) = heard(&said, usize::MAX);
    assert_eq!(events[0], "an unknown prepared statement? ");
    assert!(events[1].ends_with("x? "), "cut");
}

#[test]
fn a_connection_that_cannot_be_read_says_why() {
    let tls = [0, 0, 0, 8, 4, 210, 22, 47].to_vec();
    for (said, reason) in [
        (
            vec![(true, tls.clone()), (false, b"S".to_vec())],
            Unreadable::Tls,
        ),
        (
            vec![(true, tls.clone()), (true, opened()[0].1.clone())],
            Unreadable::Tls,
        ),
        (vec![(true, tls), (false, b"G".to_vec())], Unreadable::Gss),
        (
            vec![(true, startup_message(&[("replication", "database")]))],
            Unreadable::Replication,
        ),
        ([opened(), vec![ready(b'I')]].concat(), Unreadable::Unasked),
        (
            [opened(), vec![client(b'?', b"")]].concat(),
            Unreadable::Malformed,
        ),
        (
            [opened(), vec![(false, b"Z\0\0\0\x01".to_vec())]].concat(),
            Unreadable::Malformed,
        ),
        (
            [opened(), vec![query("COPY"), server(b'W', b"")]].concat(),
            Unreadable::Replication,
        ),
    ] {
        let (_, conversation) = heard(&said, usize::MAX);
        assert_eq!(conversation.session().unwrap_err(), reason);
        assert!(conversation.is_over());
    }
}

#[test]
fn only_the_first_bytes_of_a_client_of_postgres_begin_a_conversation() {
    assert!(Conversation::begin(&opened()[0].1).is_some());
    for bytes in [
        &b"*1\r\n$4\r\nPING\r\n"[..],
        b"get a\r\n",
        b"GET / HTTP/1.1\r\n",
        b"\0\0\0",
        b"",
    ] {
        assert!(Conversation::begin(bytes).is_none());
    }
}

proptest! {
    #[test]
    fn bytes_without_sense_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        fuzz_conversation(&bytes);
        let mut conversation = heard(&opened(), usize::MAX).1;
        conversation.sent(&bytes, &mut |_| {});
        let mut conversation = heard(&opened(), usize::MAX).1;
        conversation.received(&bytes, &mut |_| {});
    }
}
