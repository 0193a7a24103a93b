//! What was encoded is decoded, and no bytes do harm.

use learn_record::{
    Acknowledgement, CacheKey, Doubt, DoubtReason, FileLook, FileState, FileUse, Hello, Incomplete,
    Input, InputKind, MAX_CACHE_KEYS, MAX_INPUTS, MAX_MADE_OF_BYTES, MAX_MESSAGE_BYTES,
    MAX_RECORD_BYTES, MAX_STATEMENTS, MadeOf, MalformedMessage, Message, Outcome, Record,
    RecordPart, RecordParts, RecordWriter, Script, Session, SessionFile, SqliteFile, Statement,
    StatementKind, Value, Write, WriteOutcome, fuzz_decoding,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn session(connection: u32) -> Session<'static> {
    Session {
        connection,
        server: b"unix:/run/mysqld/mysqld.sock",
        server_version: b"10.11.6-MariaDB",
        identifier: 4711,
        account: b"wordpress",
        collation: 45,
        database: Some(b"wordpress"),
        settings: Some(vec![b"SET NAMES utf8mb4", b"SET SESSION sql_mode = ''"]),
    }
}

fn statement<'a>(text: &'a [u8], parameters: Vec<Value<'a>>) -> Statement<'a> {
    Statement {
        session: 0,
        kind: StatementKind::Prepared,
        text,
        is_complete: true,
        parameters,
        outcomes: vec![
            Outcome::Rows {
                rows: 3,
                bytes: 400,
                hash: u64::MAX,
            },
            Outcome::Done { changed_rows: 1 },
            Outcome::Failed { code: 1146 },
        ],
        status_before: 2,
        status_after: 3,
        write: 7,
    }
}

/// The record that comes out of the parts of `writer`, as `check` sees it.
fn sent(writer: &mut RecordWriter, check: impl FnOnce(Record<'_>)) -> usize {
    let mut parts = RecordParts::default();
    let mut whole = None;
    let mut messages = 0;
    let is_sent = writer.send(99, |packet| {
        messages += 1;
        assert!(packet.len() <= MAX_MESSAGE_BYTES);
        let Ok(Message::RecordPart(part)) = Message::decode(packet) else {
            panic!("no part of a record");
        };
        assert_eq!(whole, None, "a part after the last one");
        whole = parts.add(&part).unwrap();
        true
    });
    assert!(is_sent);
    assert_eq!(whole, Some(99));
    check(parts.record().unwrap());
    messages
}

#[test]
fn record_of_a_page_comes_back_as_it_was_written() {
    let mut writer = RecordWriter::default();
    let statements = [
        statement(b"SELECT 1", vec![]),
        statement(
            b"SELECT ?",
            vec![
                Value::Null,
                Value::Integer(-1),
                Value::Unsigned(u64::MAX),
                Value::Double(-0.5),
                Value::Bytes(b"\0\xff"),
                Value::Opaque,
            ],
        ),
    ];
    let input = Input {
        kind: InputKind::Connection,
        detail: b"127.0.0.1:6379",
    };
    let state = FileState {
        is_folder: false,
        modified_nanoseconds: -1,
        size: 12,
        inode: 13,
    };
    let file = FileLook {
        path: b"/srv/theme.json",
        by: FileUse::Opened,
        state: Some(state),
    };
    let database = SqliteFile {
        path: b"/srv/data/site.db",
        device: 66,
        inode: u64::MAX,
        is_from_before: true,
    };
    let written = SessionFile {
        path: b"/srv/sessions/sess_a",
        hash_before: 1,
        hash_after: u64::MAX,
        before: Some(b""),
        after: None,
        state,
    };
    let key = CacheKey {
        server: b"127.0.0.1:6379",
        database: 2,
        key: b"wp:posts:7",
    };
    for _ in 0..2 {
        assert_eq!(writer.session(&session(1)), 0);
        writer.statement(&statements[0]);
        writer.input(&input);
        assert_eq!(writer.session(&session(2)), 1);
        writer.statement(&statements[1]);
        writer.file(&file);
        writer.sqlite_file(&database);
        writer.session_file(&written);
        writer.cache_key(&key);
        let messages = sent(&mut writer, |record| {
            let expected = Record {
                sessions: vec![session(1), session(2)],
                statements: statements.to_vec(),
                inputs: vec![input],
                files: vec![file],
                sqlite_files: vec![database],
                session_files: vec![written],
                cache_keys: vec![key],
                incomplete: None,
            };
            assert_eq!(record, expected);
        });
        assert_eq!(messages, 1);
    }
}

#[test]
fn long_record_is_sent_in_parts() {
    let text = vec![b'x'; 50_000];
    let mut writer = RecordWriter::default();
    writer.session(&session(1));
    for _ in 0..5 {
        writer.statement(&statement(&text, vec![]));
    }
    let messages = sent(&mut writer, |record| {
        assert_eq!(record.statements.len(), 5);
        assert!(record.statements.iter().all(|it| it.text == text));
        assert_eq!(record.incomplete, None);
    });
    assert_eq!(messages, 4);
}

#[test]
fn record_past_a_limit_says_that_it_is_too_long() {
    let long = vec![b'x'; 60_000];
    type Fill<'a> = &'a dyn Fn(&mut RecordWriter);
    let fill: [(&str, Fill<'_>); 4] = [
        ("bytes", &|writer| {
            (0..5).for_each(|_| writer.statement(&statement(&long, vec![])))
        }),
        ("statements", &|writer| {
            (0..=MAX_STATEMENTS).for_each(|_| writer.statement(&statement(b"SELECT 1", vec![])))
        }),
        ("keys", &|writer| {
            (0..=MAX_CACHE_KEYS).for_each(|_| {
                writer.cache_key(&CacheKey {
                    server: b"",
                    database: 0,
                    key: b"",
                })
            })
        }),
        ("inputs", &|writer| {
            (0..=MAX_INPUTS).for_each(|_| {
                writer.input(&Input {
                    kind: InputKind::Random,
                    detail: b"",
                })
            })
        }),
    ];
    for (limit, fill) in fill {
        let mut writer = RecordWriter::default();
        writer.session(&session(1));
        fill(&mut writer);
        sent(&mut writer, |record| {
            assert_eq!(record.incomplete, Some(Incomplete::TooLong), "{limit}");
            assert_eq!(record.statements, [], "{limit}");
        });
        assert!(writer.is_complete(), "{limit}: the next record begins anew");
    }
}

#[test]
fn long_detail_of_an_input_is_cut() {
    let mut writer = RecordWriter::default();
    writer.input(&Input {
        kind: InputKind::Program,
        detail: &[b'y'; 300],
    });
    sent(&mut writer, |record| {
        assert_eq!(record.inputs[0].detail, [b'y'; 200]);
    });
}

#[test]
fn parts_of_different_records_are_not_mixed_and_their_length_is_bounded() {
    let part = |fetch, bytes| RecordPart {
        fetch,
        is_last: false,
        bytes,
    };
    let mut parts = RecordParts::default();
    assert_eq!(parts.add(&part(1, b"abc")), Ok(None));
    assert_eq!(parts.record(), Err(MalformedMessage), "it is not whole");
    assert_eq!(parts.add(&part(2, b"abc")), Err(MalformedMessage));
    let piece = [0; 60_000];
    let results: Vec<_> = (0..5).map(|_| parts.add(&part(3, &piece))).collect();
    assert_eq!(results[..4], [Ok(None); 4]);
    assert!(5 * piece.len() > MAX_RECORD_BYTES);
    assert_eq!(results[4], Err(MalformedMessage));
}

#[test]
fn statement_of_a_session_that_is_not_there_is_malformed() {
    let mut writer = RecordWriter::default();
    writer.statement(&statement(b"SELECT 1", vec![]));
    let mut parts = RecordParts::default();
    writer.send(1, |packet| {
        let Ok(Message::RecordPart(part)) = Message::decode(packet) else {
            return false;
        };
        parts.add(&part).is_ok()
    });
    assert_eq!(parts.record(), Err(MalformedMessage));
}

fn messages() -> Vec<Message<'static>> {
    vec![
        Message::Hello(Hello {
            version: 1,
            pid: u32::MAX,
            is_again: true,
            is_command: false,
            wants_acknowledgement: false,
            unseen_extensions: vec![b"ioncube.so"],
        }),
        Message::RecordPart(RecordPart {
            fetch: 1 << 63,
            is_last: true,
            bytes: b"abc",
        }),
        Message::Write(Write {
            number: 1,
            fetch: 0,
            session: session(3),
            kind: StatementKind::Text,
            text: b"UPDATE t SET a = 1",
            is_complete: true,
            parameters: vec![Value::Double(1.0)],
            status_before: 3,
        }),
        Message::Written(WriteOutcome {
            number: 1,
            error: Some(1213),
            status_after: 2,
        }),
        Message::Doubt(Doubt {
            reason: DoubtReason::Channel,
            detail: b"",
        }),
    ]
}

#[test]
fn messages_come_back_and_each_shorter_or_longer_one_is_malformed() {
    for message in messages() {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        assert_eq!(Message::decode(&bytes).as_ref(), Ok(&message));
        for length in 0..bytes.len() {
            assert_eq!(
                Message::decode(&bytes[..length]),
                Err(MalformedMessage),
                "{message:?}"
            );
        }
        bytes.push(0);
        assert_eq!(
            Message::decode(&bytes),
            Err(MalformedMessage),
            "{message:?}"
        );
    }
    let answer = Acknowledgement {
        number: 5,
        hold_milliseconds: 3000,
    };
    assert_eq!(Acknowledgement::decode(&answer.encode()), Ok(answer));
    for packet in [&b"1234567"[..], b"12345678901", b"1234567890123"] {
        assert_eq!(Acknowledgement::decode(packet), Err(MalformedMessage));
    }
}

fn made_of() -> MadeOf<'static> {
    let script = |shared, rest| Script {
        shared,
        rest,
        is_there: true,
        modified_nanoseconds: -1,
        size: 4096,
        inode: u64::MAX,
    };
    MadeOf {
        pool: b"site",
        php: 1,
        server: u64::MAX,
        seed: 3,
        began: 1_795_602_030_000_000_000,
        digest: 5,
        lasts_seconds: 86_400,
        address: b"http://a/",
        scripts: vec![script(0, b"/srv/a.php"), script(5, b"b.php")],
        record: b"a record",
    }
}

/// Of no use but here: each byte counts.
fn sum(bytes: &[u8]) -> u64 {
    let step = |all: u64, byte: &u8| all.wrapping_mul(31) + u64::from(*byte);
    bytes.iter().fold(7, step)
}

#[test]
fn what_a_page_was_made_of_comes_back_and_any_changed_byte_is_found() {
    let bytes = made_of().encode(sum).unwrap();
    assert_eq!(MadeOf::decode(&bytes, sum), Some(made_of()));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_eq!(MadeOf::decode(&changed, sum), None, "{at}");
        assert_eq!(MadeOf::decode(&bytes[..at], sum), None, "{at}");
    }
    let long = vec![0; MAX_MADE_OF_BYTES];
    let long = MadeOf {
        record: &long,
        ..made_of()
    };
    assert_eq!(long.encode(sum), None);
}

proptest! {
    #[test]
    fn what_a_page_was_made_of_does_no_harm_whatever_it_says(
        at in any::<prop::sample::Index>(), byte: u8, length in any::<prop::sample::Index>()
    ) {
        let mut bytes = made_of().encode(|_| 0).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        fuzz_decoding(&bytes);
        bytes.truncate(length.index(bytes.len()));
        fuzz_decoding(&bytes);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..4000)) {
        fuzz_decoding(&bytes);
    }

    #[test]
    fn changed_messages_do_no_harm(nth in 0..5_usize, at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = Vec::new();
        messages()[nth].encode(&mut bytes);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        fuzz_decoding(&bytes);
    }

    #[test]
    fn statements_come_back(
        texts in vec((vec(any::<u8>(), 0..300), any::<i64>(), any::<u64>(), any::<u16>()), 0..20)
    ) {
        let mut writer = RecordWriter::default();
        writer.session(&session(1));
        let statements: Vec<_> = texts.iter().map(|(text, integer, number, status)| Statement {
            status_after: *status,
            write: *number,
            ..statement(text, vec![Value::Integer(*integer), Value::Bytes(text), Value::Unsigned(*number)])
        }).collect();
        statements.iter().for_each(|it| writer.statement(it));
        sent(&mut writer, |record| assert_eq!(record.statements, statements));
    }
}
