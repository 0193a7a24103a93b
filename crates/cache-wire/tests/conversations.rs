//! Conversations with a server, as a client's bytes and the server's.

use cache_wire::{
    Conversation, Effect, Event, MAX_KEY_BYTES, MAX_KEYS, RedisValue, ReplyEnd, command, parse,
};
use proptest::prelude::*;

type AskedCommand = (String, Effect, Vec<String>, u32);

/// What a conversation has seen. `pieces`: bytes, and whether they were sent.
fn seen(pieces: &[(&[u8], bool)]) -> (Vec<AskedCommand>, Vec<ReplyEnd>, bool) {
    let mut conversation = Conversation::default();
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for (bytes, is_sent) in pieces {
        let mut see = |event: Event<'_>| match event {
            Event::Asked(command) => {
                let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
                let keys = command.keys.iter().map(text).collect();
                asked.push((text(&command.name), command.effect, keys, command.database));
            }
            Event::Answered(end) => answered.push(end),
        };
        match is_sent {
            true => conversation.sent(bytes, &mut see),
            false => conversation.received(bytes, &mut see),
        }
    }
    (asked, answered, conversation.is_unreadable())
}

fn line(words: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    command(&words)
}

fn one(words: &str) -> Option<(Effect, Vec<String>)> {
    let (mut asked, _, _) = seen(&[(&line(words), true)]);
    asked.pop().map(|(_, effect, keys, _)| (effect, keys))
}

#[test]
fn commands_have_the_effect_and_the_keys_that_redis_documents() {
    use Effect::{Anything, Nothing, Reads, ReadsMore, Writes};
    for (words, effect, keys) in [
        ("GET a", Reads, "a"),
        ("get a", Reads, "a"),
        ("MGET a b c", Reads, "a b c"),
        ("EXISTS a b", Reads, "a b"),
        ("HGET a field", Reads, "a"),
        ("HMGET a one two", Reads, "a"),
        ("HGETALL a", Reads, "a"),
        ("SET a value EX 10", Writes, "a"),
        ("SETEX a 10 value", Writes, "a"),
        ("MSET a 1 b 2", Writes, "a b"),
        ("DEL a b", Writes, "a b"),
        ("UNLINK a b", Writes, "a b"),
        ("INCRBY a 2", Writes, "a"),
        ("EXPIRE a 10", Writes, "a"),
        ("HSET a field value", Writes, "a"),
        ("TTL a", ReadsMore, ""),
        ("SCAN 0 MATCH a*", ReadsMore, ""),
        ("PING", Nothing, ""),
        ("INFO", Nothing, ""),
        ("AUTH secret", Nothing, ""),
        ("HELLO 3 AUTH default secret", Nothing, ""),
        ("CLIENT SETNAME php", Nothing, ""),
        ("FLUSHDB", Anything, ""),
        ("FLUSHALL ASYNC", Anything, ""),
        ("SWAPDB 0 1", Anything, ""),
        ("EVAL return 0", Anything, ""),
        ("MULTI", Anything, ""),
        ("EXEC", Anything, ""),
        ("RENAME a b", Anything, ""),
        ("NEWCOMMAND a", Anything, ""),
        ("GET", Anything, ""),
    ] {
        let keys = keys.split(' ').filter(|it| !it.is_empty());
        let keys = keys.map(str::to_owned).collect();
        assert_eq!(one(words), Some((effect, keys)), "{words}");
    }
}

#[test]
fn more_keys_than_are_kept_may_be_any() {
    let long = "k".repeat(MAX_KEY_BYTES + 1);
    let many = "a ".repeat(MAX_KEYS + 1);
    for words in [
        format!("GET {long}"),
        format!("DEL {}", many.trim()),
        format!("SET {long} 1"),
    ] {
        assert_eq!(one(&words), Some((Effect::Anything, Vec::new())));
    }
    let value = "v".repeat(100_000);
    assert_eq!(
        one(&format!("SET a {value}")),
        Some((Effect::Writes, vec!["a".to_owned()]))
    );
}

#[test]
fn commands_that_are_sent_together_are_answered_in_their_order() {
    let sent = [line("SELECT 3"), line("GET a"), line("GET b")].concat();
    let answers = b"+OK\r\n$1\r\nv\r\n-WRONGTYPE no\r\n";
    let (asked, answered, is_unreadable) = seen(&[(&sent, true), (answers, false)]);
    let databases: Vec<u32> = asked.iter().map(|(_, _, _, database)| *database).collect();
    assert_eq!(databases, [3, 3, 3]);
    assert_eq!(
        answered,
        [ReplyEnd::Answer, ReplyEnd::Answer, ReplyEnd::Error]
    );
    assert!(!is_unreadable);
}

#[test]
fn commands_of_a_transaction_read_nothing_before_its_end() {
    let words = ["MULTI", "GET a", "EXEC", "GET b"];
    let sent: Vec<u8> = words.iter().flat_map(|words| line(words)).collect();
    let (asked, _, _) = seen(&[(&sent, true)]);
    let effects: Vec<Effect> = asked.iter().map(|(_, effect, _, _)| *effect).collect();
    let anything = Effect::Anything;
    assert_eq!(effects, [anything, anything, anything, Effect::Reads]);
}

#[test]
fn answers_of_both_versions_end_where_the_next_begins() {
    for answer in [
        "+OK\r\n",
        ":1\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "$0\r\n\r\n",
        "*0\r\n",
        "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        "_\r\n",
        ",1.5\r\n",
        "#t\r\n",
        "=7\r\ntxt:abc\r\n",
        "%1\r\n+a\r\n*2\r\n_\r\n%0\r\n",
        "~1\r\n+a\r\n",
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n+OK\r\n",
    ] {
        let sent = [line("GET a"), line("GET b")].concat();
        let twice = [answer.as_bytes(), b":7\r\n"].concat();
        let (_, answered, is_unreadable) = seen(&[(&sent, true), (&twice, false)]);
        assert_eq!(answered, [ReplyEnd::Answer; 2], "{answer}");
        assert!(!is_unreadable, "{answer}");
    }
}

#[test]
fn what_cannot_be_followed_ends_the_reading() {
    let deep = "*1\r\n".repeat(40);
    for (sent, received) in [
        (line("MONITOR"), ""),
        (line("SUBSCRIBE a"), ""),
        (line("CLIENT REPLY OFF"), ""),
        (line("CLIENT TRACKING on"), ""),
        (line("SELECT x"), ""),
        (line("SELECT 20"), "-ERR DB index is out of range\r\n"),
        ([line("QUIT"), line("GET a")].concat(), ""),
        (b"PING\r\n".to_vec(), ""),
        (b"*1\r\n+GET\r\n".to_vec(), ""),
        (b"*99999999999\r\n".to_vec(), ""),
        (b"*0\r\n".to_vec(), ""),
        (line("GET a"), "$9999999999999999999999\r\n"),
        (line("GET a"), "*-2\r\n"),
        (line("GET a"), "HTTP/1.1 200 OK\r\n"),
        (line("GET a"), &deep),
        (Vec::new(), "+OK\r\n"),
    ] {
        let (_, _, is_unreadable) = seen(&[(&sent, true), (received.as_bytes(), false)]);
        assert!(
            is_unreadable,
            "{:?} {received}",
            String::from_utf8_lossy(&sent)
        );
    }
}

#[test]
fn values_are_read_once_they_have_come_in_full() {
    let text = |text: &str| RedisValue::Text(text.as_bytes().to_vec());
    let push = ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$2\r\nbc\r\n";
    let keys = RedisValue::List(vec![text("a"), text("bc")]);
    for (bytes, expected) in [
        ("+OK\r\n", text("OK")),
        (":-2\r\n", RedisValue::Integer(-2)),
        ("$-1\r\n", RedisValue::Null),
        ("-ERR no\r\n", RedisValue::Error(b"ERR no".to_vec())),
        (
            "%1\r\n+a\r\n:1\r\n",
            RedisValue::List(vec![text("a"), RedisValue::Integer(1)]),
        ),
        (push, RedisValue::Push(vec![text("invalidate"), keys])),
    ] {
        for cut in 0..bytes.len() {
            assert_eq!(parse(&bytes.as_bytes()[..cut]), Ok(None), "{bytes:?} {cut}");
        }
        let behind = format!("{bytes}+more\r\n");
        assert_eq!(parse(behind.as_bytes()), Ok(Some((expected, bytes.len()))));
    }
    let deep = "*1\r\n".repeat(40);
    for bytes in [
        "HTTP/1.1 200 OK\r\n",
        "$x\r\n",
        "$-2\r\n",
        "$1\r\nabc",
        "+a\n",
        &deep,
    ] {
        assert!(parse(bytes.as_bytes()).is_err(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn pieces_of_any_size_say_the_same(cuts in prop::collection::vec(1_usize..40, 1..40)) {
        let sent = [line("MGET a bb ccc"), line("SET key value"), line("SELECT 2"), line("GET x")];
        let sent = sent.concat();
        let received = b"*3\r\n$1\r\na\r\n$-1\r\n:5\r\n+OK\r\n+OK\r\n$3\r\n\r\n\r\r\n".as_slice();
        let whole = seen(&[(&sent, true), (received, false)]);
        let mut pieces = Vec::new();
        for (bytes, is_sent) in [(&sent[..], true), (received, false)] {
            let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                pieces.push((piece, is_sent));
                rest = behind;
            }
        }
        prop_assert!(!whole.2);
        prop_assert_eq!(seen(&pieces), whole);
    }
}
