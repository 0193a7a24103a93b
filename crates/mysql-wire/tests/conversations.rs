//! Conversations as PHP has them with a server, written down as packets.

use std::fmt::Write as _;

use mysql_wire::{
    CommandKind, Conversation, Event, MAX_PREPARED, MAX_STATEMENT_BYTES, Outcome, Parameter,
    StatementAnswer, Unreadable,
};

const PROTOCOL_41: u32 = 1 << 9;
const SECURE: u32 = 1 << 15;
const WITH_DATABASE: u32 = 1 << 3;
const DEPRECATE_EOF: u32 = 1 << 24;
/// What mysqlnd asks for, as far as it matters to a reader.
const MYSQLND: u32 = 1 | PROTOCOL_41 | SECURE | WITH_DATABASE;

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

/// A connection, with a line for each event.
#[derive(Default)]
struct Connection {
    conversation: Conversation,
    lines: Vec<String>,
    /// Pieces in which bytes are passed on; zero for all at once.
    piece: usize,
}

impl Connection {
    fn open(capabilities: u32) -> Self {
        Self::in_pieces(capabilities, 0)
    }

    fn in_pieces(capabilities: u32, piece: usize) -> Self {
        let mut connection = Self {
            piece,
            ..Self::default()
        };
        connection.server(0, &greeting(u32::MAX));
        connection.client(1, &response(capabilities));
        connection.server(2, b"\x00\x00\x00\x02\x00\x00\x00");
        connection
    }

    fn client(&mut self, sequence: u8, payload: &[u8]) {
        self.sent(&packet(sequence, payload));
    }

    fn server(&mut self, sequence: u8, payload: &[u8]) {
        self.received(&packet(sequence, payload));
    }

    fn sent(&mut self, bytes: &[u8]) {
        let lines = &mut self.lines;
        for piece in pieces(bytes, self.piece) {
            self.conversation
                .sent(piece, &mut |event| lines.push(line(&event)));
        }
    }

    fn received(&mut self, bytes: &[u8]) {
        let lines = &mut self.lines;
        for piece in pieces(bytes, self.piece) {
            self.conversation
                .received(piece, &mut |event| lines.push(line(&event)));
        }
    }

    fn reason(&self) -> Option<Unreadable> {
        self.conversation.session().err()
    }
}

fn pieces(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(if size == 0 { bytes.len().max(1) } else { size })
}

fn line(event: &Event<'_>) -> String {
    match event {
        Event::Asked(command) => {
            let mut line = format!(
                "{:?} {}",
                command.kind,
                String::from_utf8_lossy(command.text())
            );
            if !command.parameters.is_empty() {
                write!(line, " {:?}", command.parameters).unwrap();
            }
            line
        }
        Event::Answered(_, answer) => {
            let outcomes: Vec<_> = answer
                .outcomes
                .iter()
                .map(|outcome| match outcome {
                    Outcome::Rows { rows, .. } => format!("{rows} rows"),
                    Outcome::Done { changed_rows } => format!("{changed_rows} changed"),
                    Outcome::Failed { code } => format!("error {code}"),
                })
                .collect();
            format!("-> {} status {:x}", outcomes.join(", "), answer.status.0)
        }
    }
}

fn greeting(capabilities: u32) -> Vec<u8> {
    let [a, b, c, d] = capabilities.to_le_bytes();
    let head = b"\x0a10.11.6-MariaDB\0\x07\0\0\0saltsalt\0";
    [
        &head[..],
        &[a, b, 33, 2, 0, c, d, 21],
        &[0; 10],
        b"saltsaltsalt\0mysql_native_password\0",
    ]
    .concat()
}

fn response(capabilities: u32) -> Vec<u8> {
    let head = [capabilities.to_le_bytes(), [0, 0, 0, 1]].concat();
    [
        &head[..],
        &[45],
        &[0; 23],
        b"wp\0\x03abcblog\0mysql_native_password\0",
    ]
    .concat()
}

/// Definitions of `columns`, an EOF, rows, an EOF with `status`: packets from 1 on.
fn rows(first: u8, columns: &[&str], rows: &[&str], status: u8) -> Vec<u8> {
    let mut bytes = packet(first, &[u8::try_from(columns.len()).unwrap()]);
    let mut sequence = first;
    let mut add = |payload: &[u8]| {
        sequence += 1;
        bytes.extend(packet(sequence, payload));
    };
    columns
        .iter()
        .for_each(|column| add(format!("\x03def{column}").as_bytes()));
    add(&[0xfe, 0, 0, 2, 0]);
    for row in rows {
        add(&[&[u8::try_from(row.len()).unwrap()], row.as_bytes()].concat());
    }
    add(&[0xfe, 0, 0, status, 0]);
    bytes
}

#[test]
fn session_is_known_after_the_handshake() {
    let connection = Connection::open(MYSQLND);
    let session = connection.conversation.session().unwrap();
    assert_eq!((session.connection_id, session.collation), (7, 45));
    assert_eq!(
        (&session.account[..], session.database.as_deref()),
        (&b"wp"[..], Some(&b"blog"[..]))
    );
    assert_eq!(session.server_version, b"10.11.6-MariaDB");
    assert!(session.status.is_autocommit() && !session.status.is_in_transaction());
    assert!(connection.conversation.is_ready());
}

#[test]
fn queries_have_rows_counts_or_errors_in_pieces_of_any_size() {
    for piece in [0, 1, 2, 3, 5, 7, 64] {
        let mut connection = Connection::in_pieces(MYSQLND, piece);
        connection.client(0, b"\x03SELECT a FROM t");
        connection.received(&rows(1, &["a"], &["x", "yz"], 2));
        connection.client(0, b"\x03UPDATE t SET a = 1");
        connection.server(1, b"\x00\x05\x00\x03\x00\x00\x00");
        connection.client(0, b"\x03SELEC");
        connection.server(1, b"\xff\x28\x04#42000You have an error");
        let expected = [
            "Query SELECT a FROM t",
            "-> 2 rows status 2",
            "Query UPDATE t SET a = 1",
            "-> 5 changed status 3",
            "Query SELEC",
            "-> error 1064 status 3",
        ];
        assert_eq!(connection.lines, expected, "pieces of {piece}");
        assert!(connection.conversation.is_ready());
    }
}

#[test]
fn several_statements_have_a_result_each() {
    let mut connection = Connection::open(MYSQLND);
    connection.client(0, b"\x03SELECT 1; UPDATE t SET a = 1; SELECT 2");
    connection.received(&rows(1, &["1"], &["1"], 0x0a));
    connection.server(6, b"\x00\x01\x00\x0a\x00\x00\x00");
    assert_eq!(connection.lines.len(), 1, "the answer goes on");
    connection.received(&rows(7, &["2"], &[], 2));
    assert_eq!(connection.lines[1], "-> 1 rows, 1 changed, 0 rows status 2");
}

#[test]
fn results_without_eof_end_with_an_ok() {
    let mut connection = Connection::open(MYSQLND | DEPRECATE_EOF);
    connection.client(0, b"\x03SELECT a FROM t");
    for (sequence, payload) in [
        (1, &b"\x01"[..]),
        (2, b"\x03defa"),
        (3, b"\x01x"),
        (4, b"\xfe\0\0\x02\0\0\0"),
    ] {
        connection.server(sequence, payload);
    }
    assert_eq!(
        connection.lines,
        ["Query SELECT a FROM t", "-> 1 rows status 2"]
    );
}

#[test]
fn equal_results_have_equal_hashes_and_no_others() {
    let hash = |columns: &[&str], values: &[&str], piece: usize| {
        let mut connection = Connection::in_pieces(MYSQLND, piece);
        let mut hashes = Vec::new();
        connection.client(0, b"\x03SELECT");
        for piece in pieces(&rows(1, columns, values, 2), piece) {
            connection.conversation.received(piece, &mut |event| {
                if let Event::Answered(_, answer) = event
                    && let [Outcome::Rows { hash, .. }] = answer.outcomes[..]
                {
                    hashes.push(hash);
                }
            });
        }
        hashes[0]
    };
    let expected = hash(&["a"], &["x", "yz"], 0);
    for piece in 1..20 {
        assert_eq!(
            hash(&["a"], &["x", "yz"], piece),
            expected,
            "pieces of {piece}"
        );
    }
    for (columns, values) in [
        (&["b"][..], &["x", "yz"][..]),
        (&["a"], &["xy", "z"]),
        (&["a"], &["yz", "x"]),
        (&["a"], &["x", "yz", ""]),
        (&["a"], &["x"]),
        (&["a", "x"], &["yz"]),
    ] {
        assert_ne!(hash(columns, values, 0), expected, "{columns:?} {values:?}");
    }
}

/// What PHP is answered, with this seed.
fn outcomes(seed: u64, capabilities: u32, answer: &[u8]) -> Vec<Outcome> {
    let mut connection = Connection {
        conversation: Conversation::new(seed),
        ..Connection::default()
    };
    connection.server(0, &greeting(u32::MAX));
    connection.client(1, &response(capabilities));
    connection.server(2, b"\x00\x00\x00\x02\x00\x00\x00");
    connection.client(0, b"\x03SELECT");
    let mut outcomes = Vec::new();
    connection.conversation.received(answer, &mut |event| {
        if let Event::Answered(_, answer) = event {
            outcomes.clone_from(&answer.outcomes);
        }
    });
    outcomes
}

#[test]
fn statement_answers_have_the_hash_that_the_conversation_of_another_client_has() {
    let long = "x".repeat(200);
    for values in [&["x", "", &long][..], &[]] {
        // Warnings and flags are the session's, and no part of the result.
        let mut by_client = rows(1, &["a", "b"], values, 2);
        let warnings = by_client.len() - 4;
        by_client[warnings] = 3;
        let answered = outcomes(5, MYSQLND, &by_client);
        let mut own = StatementAnswer::new(5);
        let mut rest = &rows(1, &["a", "b"], values, 0x22)[..];
        let mut read = None;
        while let [low, middle, high, _, behind @ ..] = rest {
            let length = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
            assert!(read.is_none(), "it ends with the last packet");
            read = own.packet(&behind[..length]).unwrap();
            rest = &behind[length..];
        }
        assert_eq!(read.unwrap().outcomes, answered);
        // The same without EOF.
        let definitions = 3 * 4 + 1 + 2 * 5;
        let mut without = by_client[..definitions].to_vec();
        let mut sequence = 4;
        for value in values {
            let row = [&[u8::try_from(value.len()).unwrap()], value.as_bytes()].concat();
            without.extend(packet(sequence, &row));
            sequence += 1;
        }
        without.extend(packet(sequence, b"\xfe\0\0\x02\0\0\0"));
        assert_eq!(outcomes(5, MYSQLND | DEPRECATE_EOF, &without), answered);
        assert_ne!(outcomes(6, MYSQLND, &by_client), answered, "another seed");
    }
}

#[test]
fn prepared_statements_have_their_text_and_parameters() {
    let mut connection = Connection::open(MYSQLND);
    prepare(&mut connection, 1, b"SELECT a FROM t WHERE b = ? AND c = ?");
    connection.client(
        0,
        b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x08\0\xfd\0\x05\0\0\0\0\0\0\0\x02hi",
    );
    connection.received(&rows(1, &["a"], &[], 2));
    // A value that is sent in pieces is not known, and the answer to the execution follows at once.
    connection.client(0, b"\x18\x01\0\0\0\x01\0long");
    connection.client(0, b"\x17\x01\0\0\0\0\x01\0\0\0\0\0\x06\0\0\0\0\0\0\0");
    connection.received(&rows(1, &["a"], &[], 2));
    connection.client(0, b"\x19\x01\0\0\0");
    let text = "SELECT a FROM t WHERE b = ? AND c = ?";
    let bytes = Parameter::Bytes(b"hi".to_vec());
    assert_eq!(
        connection.lines[2],
        format!("Execute {text} [Integer(5), {bytes:?}]")
    );
    assert_eq!(
        connection.lines[4],
        format!("Execute {text} [Integer(6), Opaque]")
    );
    connection.client(0, b"\x17\x01\0\0\0\0\x01\0\0\0\0\0");
    assert_eq!(
        connection.reason(),
        Some(Unreadable::UnknownStatement),
        "it was closed"
    );
}

/// `USE` and `SET sql_mode` do not reach it.
#[test]
fn statement_that_was_prepared_before_the_session_changed_is_not_complete() {
    let mut connection = Connection::open(MYSQLND);
    let mut complete = Vec::new();
    let mut execute = |connection: &mut Connection, id: u8| {
        let head = [0x17, id, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 8, 0];
        let command = packet(0, &[&head[..], &[0; 16]].concat());
        connection.conversation.sent(&command, &mut |event| {
            if let Event::Asked(command) = event {
                assert!(command.is_whole());
                complete.push(command.is_complete());
            }
        });
        connection.received(&rows(1, &["a"], &[], 2));
    };
    let text = b"SELECT a FROM t WHERE b = ? AND c = ?";
    prepare(&mut connection, 1, text);
    execute(&mut connection, 1);
    connection.conversation.note_changed_session();
    prepare(&mut connection, 2, text);
    execute(&mut connection, 1);
    execute(&mut connection, 2);
    assert_eq!(complete, [true, false, true]);
}

/// A statement with two parameters and a column.
fn prepare(connection: &mut Connection, id: u32, text: &[u8]) {
    connection.client(0, &[b"\x16", text].concat());
    connection.server(
        1,
        &[&[0][..], &id.to_le_bytes(), b"\x01\0\x02\0\0\0\0"].concat(),
    );
    let eof = b"\xfe\0\0\x02\0";
    for (sequence, payload) in [
        (2, &b"\x03def?"[..]),
        (3, b"\x03def?"),
        (4, eof),
        (5, b"\x03defa"),
        (6, eof),
    ] {
        connection.server(sequence, payload);
    }
}

#[test]
fn database_and_account_follow_their_commands() {
    let mut connection = Connection::open(MYSQLND);
    let mut database = |client: &[u8], answer: &[u8]| {
        connection.client(0, client);
        connection.server(1, answer);
        let session = connection.conversation.session().unwrap();
        (
            session.account.clone(),
            session.database.clone().unwrap_or_default(),
        )
    };
    let ok = b"\0\0\0\x02\0\0\0";
    assert_eq!(
        database(b"\x02shop", ok),
        (b"wp".to_vec(), b"shop".to_vec())
    );
    assert_eq!(
        database(b"\x02none", b"\xff\x19\x04#42000Unknown database"),
        (b"wp".to_vec(), b"shop".to_vec())
    );
    assert_eq!(
        database(b"\x11other\0\x02abwiki\0\x21\0", ok),
        (b"other".to_vec(), b"wiki".to_vec())
    );
}

#[test]
fn longer_statements_are_cut_and_say_so() {
    let mut connection = Connection::open(MYSQLND);
    let long = [b"\x03", &b"x".repeat(MAX_STATEMENT_BYTES + 1)[..]].concat();
    let mut complete = Vec::new();
    connection
        .conversation
        .sent(&packet(0, &long), &mut |event| {
            if let Event::Asked(command) = event {
                assert_eq!(
                    (command.kind, command.text().len()),
                    (CommandKind::Query, MAX_STATEMENT_BYTES)
                );
                complete.push(command.is_complete());
            }
        });
    connection.server(1, b"\xff\x28\x04");
    connection.client(0, b"\x03SELECT 1");
    assert_eq!(complete, [false]);
    assert_eq!(
        connection.lines[1], "Query SELECT 1",
        "what follows is read"
    );
}

/// PHP sends the file's bytes in packets and an empty one behind them, or the empty one alone where it may not.
#[test]
fn file_that_the_server_asks_for_is_part_of_the_command() {
    for (piece, parts) in [(0, 300), (1, 2), (3, 0)] {
        let mut connection = Connection::in_pieces(MYSQLND, piece);
        connection.client(0, b"\x03LOAD DATA LOCAL INFILE 'f' INTO TABLE t");
        connection.server(1, b"\xfbf");
        let mut sequence = 2_u8;
        for _ in 0..parts {
            connection.client(sequence, b"\x03a\tb\n");
            sequence = sequence.wrapping_add(1);
        }
        connection.client(sequence, b"");
        connection.server(sequence.wrapping_add(1), b"\0\x02\0\x02\0\0\0");
        connection.client(0, b"\x03SELECT 1");
        assert_eq!(connection.reason(), None, "{parts}");
        assert_eq!(
            connection.lines,
            [
                "Query LOAD DATA LOCAL INFILE 'f' INTO TABLE t",
                "-> 2 changed status 2",
                "Query SELECT 1",
            ]
        );
    }
}

#[test]
fn first_doubt_ends_the_reading_and_names_itself() {
    type Act = fn(&mut Connection);
    let after_opening: &[(Unreadable, Act)] = &[
        (Unreadable::Pipelined, |it| {
            it.client(0, b"\x03SELECT 1");
            it.client(0, b"\x03SELECT 2");
        }),
        (Unreadable::Cursor, |it| {
            it.client(0, b"\x1c\x01\0\0\0\x01\0\0\0")
        }),
        (Unreadable::Cursor, |it| {
            prepare(it, 1, b"SELECT");
            it.client(0, b"\x17\x01\0\0\0\x01\x01\0\0\0");
        }),
        (Unreadable::OutOfSequence, |it| {
            it.client(0, b"\x03LOAD DATA LOCAL INFILE 'f' INTO TABLE t");
            it.server(1, b"\xfbf");
            it.server(2, b"\0\0\0\x02\0\0\0");
        }),
        (Unreadable::Replication, |it| it.client(0, b"\x12")),
        (Unreadable::Extension, |it| it.client(0, b"\xfa")),
        (Unreadable::OutOfSequence, |it| {
            it.client(1, b"\x03SELECT 1")
        }),
        (Unreadable::OutOfSequence, |it| {
            it.client(0, b"\x03SELECT 1");
            it.server(2, b"\0\0\0\x02\0\0\0");
        }),
        (Unreadable::Unasked, |it| it.server(0, b"\xff\x87\x07")),
        (Unreadable::Malformed, |it| {
            it.client(0, b"\x03SELECT 1");
            it.server(1, b"");
        }),
        (Unreadable::Malformed, |it| it.client(0, b"")),
        (Unreadable::TooManyPrepared, |it| {
            for id in 0..=u32::try_from(MAX_PREPARED).unwrap() {
                prepare(it, id, b"SELECT");
            }
        }),
    ];
    for (index, (reason, act)) in after_opening.iter().enumerate() {
        let mut connection = Connection::open(MYSQLND);
        act(&mut connection);
        assert_eq!(connection.reason(), Some(*reason), "case {index}");
        let lines = connection.lines.len();
        connection.client(0, b"\x03SELECT 1");
        assert_eq!(connection.lines.len(), lines, "nothing is said afterwards");
    }
}

#[test]
fn handshakes_that_cannot_be_followed_name_what_was_agreed_on() {
    for (flags, reason) in [
        (1 << 11, Some(Unreadable::Tls)),
        (1 << 5, Some(Unreadable::Compression)),
        (1 << 26, Some(Unreadable::Compression)),
        (1 << 27, Some(Unreadable::Extension)),
        (1 << 25, Some(Unreadable::Extension)),
        (0, None),
    ] {
        assert_eq!(
            Connection::open(MYSQLND | flags).reason(),
            reason,
            "{flags:x}"
        );
        // A server that cannot do it does not.
        let mut connection = Connection::default();
        connection.server(0, &greeting(MYSQLND));
        connection.client(1, &response(MYSQLND | flags));
        assert_eq!(connection.reason(), None, "{flags:x} with an old server");
    }
    let mut connection = Connection::default();
    connection.server(0, &greeting(u32::MAX));
    connection.client(
        1,
        &[&(MYSQLND | 1 << 11).to_le_bytes()[..], &[0; 28]].concat(),
    );
    assert_eq!(
        connection.reason(),
        Some(Unreadable::Tls),
        "a request for TLS has no account"
    );
    let mut connection = Connection::default();
    connection.client(0, b"GET / HTTP/1.1");
    assert_eq!(connection.reason(), Some(Unreadable::Protocol));
}

proptest::proptest! {
    /// Where the bytes are cut changes nothing, and no bytes make the reader panic.
    #[test]
    fn any_bytes_are_read_alike_in_any_pieces(
        sent in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        received in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        number in 0u8..0x20,
        piece in 1usize..50,
    ) {
        let run = |piece| {
            let mut connection = Connection::in_pieces(MYSQLND, piece);
            connection.client(0, &[&[number], &sent[..]].concat());
            connection.server(1, &received);
            connection.sent(&received);
            connection.received(&sent);
            (connection.lines.clone(), connection.reason())
        };
        proptest::prop_assert_eq!(run(0), run(piece));
    }
}
