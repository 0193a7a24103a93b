//! Conversations with a memcached, as a client's bytes and the server's.

use cache_wire::{CacheConversation, Effect, Event, MAX_KEYS, ReplyEnd, is_memcached_key};
use proptest::prelude::*;

type AskedCommand = (String, Effect, String);

/// What a conversation has seen. `pieces`: bytes, and whether they were sent.
fn seen(pieces: &[(&str, bool)], size: usize) -> (Vec<AskedCommand>, Vec<ReplyEnd>, bool) {
    let (first, _) = pieces.first().expect("a piece");
    let Some(mut conversation) = CacheConversation::begin(first.as_bytes()) else {
        return (Vec::new(), Vec::new(), true);
    };
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for (bytes, is_sent) in pieces {
        let mut see = |event: Event<'_>| match event {
            Event::Asked(command) => {
                let keys = command.keys.iter().map(|it| String::from_utf8_lossy(it));
                let keys: Vec<_> = keys.collect();
                let name = String::from_utf8_lossy(&command.name).into_owned();
                asked.push((name, command.effect, keys.join(" ")));
            }
            Event::Answered(end) => answered.push(end),
        };
        for part in bytes.as_bytes().chunks(size) {
            match is_sent {
                true => conversation.sent(part, &mut see),
                false => conversation.received(part, &mut see),
            }
        }
    }
    (asked, answered, conversation.is_unreadable())
}

#[test]
fn commands_have_the_effect_and_the_keys_that_memcached_documents() {
    use Effect::{Anything, Nothing, Reads, ReadsMore, Writes};
    let many = format!("get{}", " a".repeat(MAX_KEYS + 1));
    let long = format!("get {}", "a".repeat(251));
    for (line, effect, keys) in [
        ("get a", Reads, "a"),
        ("get a b  c ", Reads, "a b c"),
        ("gets a", Reads, "a"),
        ("gat 10 a b", Writes, "a b"),
        ("set a 0 10 2", Writes, "a"),
        ("cas a 0 10 2 7 noreply", Writes, "a"),
        ("append a 0 0 0", Writes, "a"),
        ("delete a", Writes, "a"),
        ("incr a 2", Writes, "a"),
        ("touch a 10", Writes, "a"),
        ("flush_all", Anything, ""),
        ("flush_all 10 noreply", Anything, ""),
        ("version", Nothing, ""),
        ("stats", ReadsMore, ""),
        ("mg a v f c", Reads, "a"),
        ("mg a t v", ReadsMore, "a"),
        ("mg a v N30", Writes, "a"),
        ("ms a 2 T0", Writes, "a"),
        ("md a", Writes, "a"),
        ("ma a N0", Writes, "a"),
        (&many, Anything, ""),
        (&long, Anything, ""),
    ] {
        let sent = format!("{line}\r\n");
        let (asked, _, is_unreadable) = seen(&[(&sent, true)], 1000);
        let (_, found, found_keys) = asked.first().unwrap_or_else(|| panic!("{line}"));
        assert_eq!((*found, &**found_keys), (effect, keys), "{line}");
        assert!(!is_unreadable, "{line}");
    }
    for line in [
        "mg a q v",
        "mg YQ== b v",
        "ms a 2 q",
        "stats items",
        "lru_crawler metadump all",
        "set a 0 10 -1",
        "set a 0 10",
        "set a 0 10 99999999999",
        "me a",
        "GET a",
        "gat",
        "",
    ] {
        let sent = format!("version\r\n{line}\r\n");
        let (asked, _, is_unreadable) = seen(&[(&sent, true)], 1000);
        assert!(is_unreadable && asked.len() == 1, "{line}");
    }
}

#[test]
fn other_protocols_are_none_of_an_object_cache() {
    for sent in [
        "GET / HTTP/1.1\r\n",
        "EHLO a\r\n",
        "\u{1}get a\r\n",
        "getter\r\n",
        "",
        "\u{80}\0\0\0",
    ] {
        assert!(
            CacheConversation::begin(sent.as_bytes()).is_none(),
            "{sent}"
        );
    }
}

/// Values that look like answers and commands, several commands at once, and `noreply`.
const SENT: &str = "get a b\r\nset a 0 0 12\r\nget b\r\nEND\r\n\r\nset b 0 0 0 noreply\r\n\r\nincr n 1\r\nmg a v\r\nmn\r\n";
const RECEIVED: &str = "VALUE a 0 5\r\nEND\r\n\r\nEND\r\nSTORED\r\n12\r\nVA 3 c1\r\nEN\r\r\nMN\r\n";

proptest! {
    #[test]
    fn pieces_of_any_size_are_read_alike(size in 1_usize..40) {
        let (asked, answered, is_unreadable) = seen(&[(SENT, true), (RECEIVED, false)], size);
        let names: Vec<_> = asked.iter().map(|(name, _, keys)| format!("{name} {keys}")).collect();
        prop_assert_eq!(names.join(","), "GET a b,SET a,SET b,INCR n,MG a,MN ");
        prop_assert_eq!(answered.len(), asked.len());
        prop_assert!(!is_unreadable);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        cache_wire::fuzz_conversation(&bytes);
        let _ = is_memcached_key(&bytes);
    }
}

#[test]
fn answers_that_do_not_fit_end_the_reading() {
    for (sent, received, ends, is_unreadable) in [
        ("get a\r\n", "END\r\n", &[ReplyEnd::Answer][..], false),
        (
            "get a\r\n",
            "SERVER_ERROR out of memory\r\n",
            &[ReplyEnd::Error],
            false,
        ),
        ("get a\r\n", "STORED\r\n", &[], true),
        ("get a\r\n", "VALUE a 0 x\r\n", &[], true),
        ("set a 0 0 1\r\nx\r\n", "END\r\n", &[], true),
        ("delete a\r\n", "NOT_FOUND\r\n", &[ReplyEnd::Answer], false),
        ("incr a 1\r\n", "NOT_FOUND\r\n", &[ReplyEnd::Answer], false),
        ("get a\r\n", "END\r\nEND\r\n", &[ReplyEnd::Answer], true),
        ("get a\r\n", "END\n", &[], true),
        // The error is of the first command, which has no answer otherwise.
        (
            "set a 0 0 1 noreply\r\nx\r\nget b\r\n",
            "ERROR\r\nEND\r\n",
            &[ReplyEnd::Answer, ReplyEnd::Error],
            true,
        ),
    ] {
        let (_, answered, found) = seen(&[(sent, true), (received, false)], 3);
        assert_eq!(
            (&answered[..], found),
            (ends, is_unreadable),
            "{sent} {received}"
        );
    }
}
