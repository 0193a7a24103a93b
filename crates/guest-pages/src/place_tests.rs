//! Tests of what stands at places.

use super::*;
use crate::markup::Markup;

const NOW: u64 = 1_732_850_000;

fn found(values: &[&str], before: &str, after: &str, guests: Guests) -> PlaceFinding {
    let page = format!("{before}{}{after}", values[0]);
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let around = Surroundings {
        before: before.as_bytes(),
        after: after.as_bytes(),
        spot: Markup::new(page.as_bytes(), b"a.test").spot(before.len()),
        now: NOW,
    };
    classify(&values, &around, guests)
}

fn of(values: &[&str], after: &str) -> PlaceFinding {
    found(values, "<a href=\"?k=", after, Guests::Alike)
}

fn to_another(values: &[&str]) -> PlaceFinding {
    found(values, "<a href=\"?k=", "\"", Guests::LastUnlike)
}

fn narrowed(values: &[&str]) -> String {
    let bytes: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let (start, end) = narrow(&bytes);
    values[0][start..values[0].len() - end].to_owned()
}

const NUMBER: PlaceFinding = PlaceFinding::Place(PlaceKind::Number);
const COUNT: PlaceFinding = PlaceFinding::Place(PlaceKind::Count);

fn of_before(values: &[&str], before: &str) -> PlaceFinding {
    found(values, before, "<", Guests::Alike)
}

#[test]
fn what_a_person_reads_is_no_token_and_a_price_no_duration() {
    let codes = [
        "75F816225D5E75F816",
        "05F816225D5E75F817",
        "95F816225D5E75F818",
    ];
    assert_eq!(of_before(&codes, "<p>Code: "), PlaceFinding::Other);
    assert!(matches!(
        of_before(&codes, "<script>var token='"),
        PlaceFinding::Place(_)
    ));
    assert_eq!(of_before(&["6.79", "7.12"], "<p>EUR "), PlaceFinding::Other);
    assert_eq!(of_before(&["6.79", "7.12"], "<!-- Runtime: "), NUMBER);
    assert_eq!(
        of_before(&["67", "41"], "<!-- customer "),
        PlaceFinding::Other
    );
    assert_eq!(of_before(&["59", "00"], "<p>05:30:"), NUMBER);
    assert_eq!(of_before(&["7", "8", "9", "10"], "<p>"), COUNT);
    assert_eq!(
        of_before(&["7", "8", "9", "10"], "<form><p>3 + "),
        PlaceFinding::Other
    );
    let uuids = ["0cc175b9-c0f1-4b6a-8a31-c399e2697726"; 3];
    assert_eq!(of_before(&uuids, "<p id=\""), PlaceFinding::Other);
}

#[test]
fn a_long_text_that_is_another_one_for_one_guest_alone_is_no_token() {
    let (empty, full) = (
        "d751713988987e9331980363e24189ce",
        "35dba5d75538a9bbe0b4da4422759a0e",
    );
    let (hash, key) = (
        "<input type=hidden name=cart value=",
        "<input type=hidden name=my_post_key value=",
    );
    for made in 1..6 {
        let mut values = vec![empty; made];
        values.push(full);
        let unnamed = found(&values, hash, ">", Guests::LastUnlike);
        assert_eq!(unnamed, PlaceFinding::Needs(made + 2));
        let named = found(&values, key, ">", Guests::LastUnlike);
        assert!(matches!(named, PlaceFinding::Place(_)), "of a browser");
    }
}

#[test]
fn numbers_are_times_of_now_durations_or_counts() {
    for (values, before, after) in [
        (["42", "57", "88"], "<p>Seat ", " B"),
        (["42", "57", "88"], "<p>Row ", " S"),
        (
            ["202611290001", "202611290002", "202611290003"],
            "<p>Order ",
            "<",
        ),
        (["1632850000", "1632850001", "1632850002"], "<p>", "<"),
        (["123456789-12", "987654321-34", "918273645-99"], "<b>", "<"),
        (["123456789.12", "987654321.34", "918273645.99"], "<b>", "<"),
        (["7531-99-12", "1234-56-78", "4321-12-31"], "<b>", "<"),
        (
            ["1732850000", "1732850001", "1732850002"],
            "<input name=x value=",
            ">",
        ),
        (
            ["0.11", "0.12", "0.13"],
            "<form><input type=hidden value='",
            " s'",
        ),
        (["7", "8", "9"], "<input type=hidden value=", ">"),
    ] {
        let found = found(&values, before, after, Guests::Alike);
        assert_eq!(found, PlaceFinding::Other, "{before}{values:?}{after}");
    }
    assert_eq!(of_before(&["2024-11-28", "2024-11-29"], "<p>"), NUMBER);
    assert_eq!(found(&["0.1", "0.4"], "<p>", " s", Guests::Alike), NUMBER);
    for values in [
        ["1732850000", "1732850001", "1732850001"],
        ["4829104857", "1092837465", "9182736455"],
    ] {
        let found = found(&values, "<input type=hidden value=", ">", Guests::Alike);
        let PlaceFinding::Place(PlaceKind::Token { alphabet, .. }) = found else {
            panic!("{found:?}")
        };
        assert_eq!(alphabet, Alphabet::Digits);
    }
}

#[test]
fn what_differs_is_a_piece_of_its_run() {
    for (values, wanted) in [
        (&["/logout/abc/now", "/logout/def/now"][..], "abc"),
        (&["0.0123", "0.0119"], "0.0123"),
        (&["took12ms", "took9ms"], "12"),
        (&["a.123.js", "a.456.js"], "123"),
        (&["Xx/y+Z9", "Yx/y+W8"], "Xx/y+Z9"),
        (&["p/Xx/y", "p/ab"], "Xx/y"),
        (&["06Z", "07Z"], "06"),
    ] {
        assert_eq!(narrowed(values), wanted, "{values:?}");
    }
}

#[test]
fn times_durations_and_counts_are_numbers() {
    assert_eq!(of(&["1732850000", "1732850001"], ""), NUMBER);
    assert_eq!(of(&["1732850000123", "1732850000456"], ""), NUMBER);
    assert_eq!(of(&["0.0123", "0.4"], " s"), NUMBER);
    assert_eq!(of(&["12", "7"], " ms"), NUMBER);
    assert_eq!(of(&["1234", "1230"], "&nbsp;KB"), NUMBER);
    assert_eq!(of(&["7", "8"], "x"), PlaceFinding::Needs(FOR_COUNTS));
    assert_eq!(of(&["7", "8", "8", "10"], " views"), COUNT);
    assert_eq!(of(&["320", "331", "331", "350"], " guests"), COUNT);
    assert_eq!(
        of(&["320", "331", "331", "360"], " guests"),
        PlaceFinding::Other
    );
    // A sum that a person shall compute.
    assert_eq!(of(&["7", "3"], " +"), PlaceFinding::Other);
    assert_eq!(of(&["1", "9"], " +"), PlaceFinding::Other);
}

#[test]
fn names_of_hexadecimal_digits_may_have_letters_alone() {
    let names = ["abbecfb", "d83ab1c77", "e0190bb2f", "c4f81e0b2"];
    let name = PlaceFinding::Place(PlaceKind::Token {
        length: None,
        alphabet: Alphabet::LowerHex,
    });
    assert_eq!(of(&names[..2], ""), PlaceFinding::Needs(3));
    assert_eq!(of(&names[..3], ""), name);
    assert_eq!(
        of(&["abbecfb", "fadedbe", "e0190bb2f"], ""),
        PlaceFinding::Needs(4)
    );
    assert_eq!(to_another(&["d83ab1c77", "e0190bb2f", "abbecfb"]), name);
    let words = ["facade", "decade", "accede", "deface", "efface"];
    assert_eq!(of(&words[..2], ""), PlaceFinding::Other);
    assert_eq!(
        of(&["facade", "decade", "accede", "deface", "c4f81e"], ""),
        PlaceFinding::Other
    );
    assert_eq!(
        to_another(&["d83ab1c77", "d83ab1c77", "abbecfb"]),
        PlaceFinding::Other
    );
}

#[test]
fn tokens_are_drawn_by_chance_and_words_are_not() {
    let hex = [
        "0cc175b9c0f1b6a831c399e269772661",
        "92eb5ffee6ae2fec3ad71c777531578f",
        "4a8a08f09d37b73795649038408b5f33",
    ];
    assert_eq!(of(&hex[..2], ""), PlaceFinding::Needs(FOR_TOKENS));
    assert_eq!(
        of(&hex, ""),
        PlaceFinding::Place(PlaceKind::Token {
            length: Some(32),
            alphabet: Alphabet::LowerHex
        })
    );
    assert_eq!(
        of(&["a94a8fe5c", "z1d5781111", "c8d6666"], ""),
        PlaceFinding::Other,
        "short, of several lengths"
    );
    assert_eq!(
        of(&["c4f81e0b2", "d83ab1c77", "e0190bb2f"], ""),
        PlaceFinding::Place(PlaceKind::Token {
            length: None,
            alphabet: Alphabet::LowerHex
        })
    );
    assert_eq!(
        of(
            &[
                "dGhpcyBpcyBhIHRva2Vu",
                "YW5vdGhlciB0b2tlbiB4",
                "c29tZXRoaW5nIGVsc2Ug"
            ],
            ""
        ),
        PlaceFinding::Place(PlaceKind::Token {
            length: Some(20),
            alphabet: Alphabet::Mixed
        })
    );
    assert_eq!(
        to_another(&["0.00", "0.00", "20.00"]),
        PlaceFinding::Needs(4)
    );
    let durations = ["0.12", "0.13", "20.00"];
    assert_eq!(found(&durations, "<p>", " s", Guests::LastUnlike), NUMBER);
    for words in [
        [
            "hello-world-again",
            "hello-there-again",
            "great-world-again",
        ],
        ["Alice", "Bob", "Carol"],
        ["summer", "winter", "spring"],
    ] {
        assert_eq!(of(&words, ""), PlaceFinding::Other, "{words:?}");
    }
    assert_eq!(
        of(&[hex[0], hex[0], hex[1]], ""),
        PlaceFinding::Needs(4),
        "the same twice"
    );
    assert!(matches!(
        of(
            &[
                "918273645546372819",
                "473829104857362910",
                "109283746574839201"
            ],
            ""
        ),
        PlaceFinding::Place(PlaceKind::Token {
            alphabet: Alphabet::Digits,
            ..
        })
    ));
}
