//! Tests of forms of pages.

use super::*;

const SITE: AskedSite<'static> = AskedSite {
    host: b"a.test",
    now: 1_795_926_080,
};

fn page(token: &str, id: &str, time: &str) -> Vec<u8> {
    format!(
        "<p>Made in {time} s</p><form><input type=\"hidden\" name=\"key\" value=\"{token}\"><input type=\"hidden\" value=\"{id}\"></form>\
         <a href=\"/logout?key={token}&amp;x=1\">out</a>"
    )
    .into_bytes()
}

fn three() -> [Vec<u8>; 3] {
    [
        page("0cc175b9c0f1b6a8", "Zx81kQ93mmZ2oPq7", "0.013"),
        page("92eb5ffee6ae2fec", "a81Ckq93mmZ2oPq1", "0.4"),
        page("4a8a08f09d37b737", "7781kQ93mTZ2oPb0", "1.25"),
    ]
}

fn compared(pages: &[Vec<u8>]) -> Comparison {
    let pages: Vec<&[u8]> = pages.iter().map(Vec::as_slice).collect();
    compare(&pages, Guests::Alike, SITE)
}

#[test]
fn a_page_has_literal_text_and_places() {
    let pages = three();
    assert!(matches!(compared(&pages[..2]), Comparison::More));
    let Comparison::Form(form) = compared(&pages) else {
        panic!("no form")
    };
    assert_eq!(form.count(), (1, 3));
    assert_eq!(form.tokens().len(), 2);
    let other = page("ffffffffffffff01", "BBBBBBBBBBBBBB11", "17");
    let mut blanks = Vec::new();
    for answer in [&pages[0], &other] {
        let mut blank = Vec::new();
        assert!(form.read_blank(answer, &mut |piece| blank.extend_from_slice(piece)));
        blanks.push(blank);
    }
    assert_eq!(blanks[0], blanks[1]);
    let own = [b"MAYFLY0123456789".to_vec(), b"9876543210MAYFLY".to_vec()];
    let shown = form.with_tokens(&other, &own).unwrap();
    assert_eq!(shown, page("MAYFLY0123456789", "9876543210MAYFLY", "17"));
    let tokens = form.tokens_of(&other);
    assert_eq!(tokens[0].as_deref(), Some(&b"ffffffffffffff01"[..]));
}

/// Two such answers were found to differ in a number. A page that changed what this one shows was shared then: this one was
/// taken for one that differs each time.
#[test]
fn drawn_text_may_look_like_numbers_in_two_answers() {
    let of_name = |name: &str| format!("<form><input type=hidden name={name}>").into_bytes();
    let of_link = |name: &str| format!("<a href='/leave?{name}=1'>").into_bytes();
    let names = ["f12345678a", "f98765432a", "f0a1b2c3d4"];
    for answers in [names.map(of_name), names.map(of_link)] {
        assert!(matches!(compared(&answers[..2]), Comparison::More));
        assert!(matches!(compared(&answers), Comparison::Form(_)));
    }
    let keys = ["12345678", "98765432", "45678901"];
    let keys = keys.map(|key| page(key, "Zx81kQ93mmZ2oPq7", "0.013"));
    assert!(matches!(compared(&keys[..2]), Comparison::More));
    assert!(matches!(compared(&keys), Comparison::Unlike(_)));
}

#[test]
fn an_answer_of_another_form_is_not_one_of_this() {
    let Comparison::Form(form) = compared(&three()) else {
        panic!("no form")
    };
    let good = page("ffffffffffffff01", "BBBBBBBBBBBBBB11", "17");
    let text = String::from_utf8(good.clone()).unwrap();
    for other in [
        text.replace("out", "in"),
        text.replacen("ffffffffffffff01", "ffffffffffffff02", 1),
        text.replace("17 s", "x s"),
        text.clone() + " ",
        text.replace("ffffffffffffff01", "ffffffff ffffff01"),
    ] {
        assert!(form.find(other.as_bytes()).is_none(), "{other}");
    }
    // Something was added: its tokens are known by what stands around them.
    let longer = text.replace("<form>", "<h1>new</h1><form>");
    let tokens = form.tokens_of(longer.as_bytes());
    assert_eq!(tokens[0].as_deref(), Some(&b"ffffffffffffff01"[..]));
}

#[test]
fn pages_that_say_something_of_their_visitor_have_no_form() {
    let of = |one: &str, other: &str| compared(&[one.into(), other.into()]);
    assert!(matches!(
        of("<b>Hello Alice</b>", "<b>Hello Bob</b>"),
        Comparison::Unlike(Unlike::Text { at: 9 })
    ));
    assert!(matches!(
        of("<b>cart</b>", "<b>cart</b><b>one</b>"),
        Comparison::Unlike(Unlike::Structure)
    ));
    assert!(matches!(of("<b>1 + 7", "<b>1 + 3"), Comparison::Unlike(_)));
    assert!(matches!(of("same", "same"), Comparison::Form(_)));
}

#[test]
fn tokens_with_the_same_text_before_them_are_known_by_their_order() {
    let text = |one: &str, two: &str| {
        format!(
            "<form><input type=\"hidden\" name=\"id\" value=\"{one}\"></form><form><input type=\"hidden\" name=\"id\" value=\"{two}\"></form>"
        )
    };
    let pages = [
        ("0cc175b9c0f1b6a8", "1111111111aa1111"),
        ("92eb5ffee6ae2fec", "22222222bb222222"),
        ("4a8a08f09d37b737", "3333cc3333333333"),
    ];
    let pages = pages.map(|(one, two)| text(one, two).into_bytes());
    let Comparison::Form(form) = compared(&pages) else {
        panic!("no form")
    };
    let other = "<p>news</p>".to_owned() + &text("ffffffffffffff01", "ffffffffffffff02");
    let found = form.tokens_of(other.as_bytes());
    let wanted = [Some(&b"ffffffffffffff01"[..]), Some(b"ffffffffffffff02")];
    assert_eq!(
        found.iter().map(Option::as_deref).collect::<Vec<_>>(),
        wanted
    );
    let more = other + &text("ffffffffffffff03", "ffffffffffffff04");
    assert_eq!(form.tokens_of(more.as_bytes()), [None, None]);
}

/// Question2Answer: each answer to a question has a form to vote, and below all is the form for an answer.
#[test]
fn a_token_among_more_of_its_name_is_known_by_the_fields_before_it() {
    let vote = |token: &str| {
        format!("<form><input name=\"code\" type=\"hidden\" value=\"{token}\"></form>")
    };
    let answer = |token: &str| {
        format!(
            "<form><input name=\"add\" type=\"hidden\" value=\"1\"><input name=\"code\" type=\"hidden\" value=\"{token}\"></form>"
        )
    };
    let pages = [
        ("0cc175b9c0f1b6a8", "1111111111aa1111"),
        ("92eb5ffee6ae2fec", "22222222bb222222"),
        ("4a8a08f09d37b737", "3333cc3333333333"),
    ];
    let pages = pages.map(|(one, two)| (vote(one) + &answer(two)).into_bytes());
    let Comparison::Form(form) = compared(&pages) else {
        panic!("no form")
    };
    let votes = vote("ffffffffffffff01") + &vote("ffffffffffffff02");
    let longer = votes.clone() + &answer("ffffffffffffff03");
    let found = form.tokens_of(longer.as_bytes());
    assert_eq!(found, [None, Some(b"ffffffffffffff03".to_vec())]);
    // The form is there twice, or not at all.
    let others = [
        longer + &answer("ffffffffffffff04"),
        votes + &vote("ffffffffffffff04"),
    ];
    for other in others {
        assert_eq!(form.tokens_of(other.as_bytes())[1], None, "{other}");
    }
}

#[test]
fn a_token_with_its_time_is_one() {
    let text = |time: &str, mac: &str| {
        format!("<input type=\"hidden\" value=\"{time}:2:{mac}\"> {time}").into_bytes()
    };
    let pages = [
        text("1795926078.9", "0cc175b9c0f1b6a8"),
        text("1795926079.1", "92eb5ffee6ae2fec"),
        text("1795926079.4", "4a8a08f09d37b737"),
    ];
    let Comparison::Form(form) = compared(&pages) else {
        panic!("no form")
    };
    assert_eq!(form.count(), (1, 1));
    let tokens = form.tokens_of(&text("1795926099.0", "ffffffffffffff01"));
    assert_eq!(
        tokens[0].as_deref(),
        Some(&b"1795926099.0:2:ffffffffffffff01"[..])
    );
}

#[test]
fn one_token_is_one_at_all_its_places() {
    let text = |one: &str, two: &str| {
        format!("<i data-token=\"{one}\" data-key=\"{two}\" data-sid=\"{one}\">").into_bytes()
    };
    let pages = [
        text("0cc175b9c0f1b6a8", "1111111111aa1111"),
        text("92eb5ffee6ae2fec", "22222222bb222222"),
        text("4a8a08f09d37b737", "3333cc3333333333"),
    ];
    let Comparison::Form(form) = compared(&pages) else {
        panic!("no form")
    };
    assert_eq!(form.tokens().len(), 2);
    let places: Vec<_> = form.places.iter().map(|place| place.token).collect();
    assert_eq!(places, [Some(0), Some(1), Some(0)]);
}

#[test]
fn a_key_of_a_form_is_drawn_and_hidden() {
    let has = |one: &str, other: &str| has_new_key(one.as_bytes(), other.as_bytes());
    let field = |value: &str| format!("<form><input name=key value=\"{value}\" type=hidden>");
    let (one, other) = (field("0cc175b9c0f1b6a8"), field("92eb5ffee6ae2fec"));
    assert!(has(&one, &other));
    assert!(has(&one, &format!("<p>News</p>{other}")));
    assert!(has_key(one.as_bytes()) && !has_key(field("in-your-own-words").as_bytes()));
    // Of sixteen bytes in base64.
    let masked = field("Y2YxYmE0ZTk4ZDc2NTQzMg==");
    assert!(has(&one, &masked) && has_key(masked.as_bytes()));
    for (one, other) in [
        (one.clone(), one.clone()),
        (field("12"), field("217")),
        (field("1795926078"), field("1795926079")),
        (field("in-your-own-words"), field("in-many-other-words")),
        (
            one.replace("hidden", "text"),
            other.replace("hidden", "text"),
        ),
        (
            one.replace("input", "script"),
            other.replace("input", "script"),
        ),
        ("<p>".into(), other.clone()),
    ] {
        assert!(!has(&one, &other), "{one} {other}");
    }
}

#[test]
fn a_time_beside_its_check_goes_back_with_it() {
    let pages = [
        ("1795926078", "0cc175b9c0f1b6a8"),
        ("1795926079", "92eb5ffee6ae2fec"),
        ("1795926080", "4a8a08f09d37b737"),
    ];
    let link = |page: (&str, &str)| format!("<a href=\"/f?e={}&amp;s={}\">", page.0, page.1);
    let Comparison::Form(form) = compared(&pages.map(|page| link(page).into_bytes())) else {
        panic!("no form")
    };
    assert_eq!(form.count(), (0, 2));
    let apart = |page: (&str, &str)| format!("<a href=\"?s={}\">{}", page.1, page.0);
    let Comparison::Form(form) = compared(&pages.map(|page| apart(page).into_bytes())) else {
        panic!("no form")
    };
    assert_eq!(form.count(), (1, 1));
}

#[test]
fn the_same_text_elsewhere_decides() {
    let pages = ["0cc175b9c0f1b6a8", "92eb5ffee6ae2fec", "4a8a08f09d37b737"];
    let compared = |around: &str| {
        let page = |token: &str| around.replace('#', token).into_bytes();
        compared(&pages.map(page))
    };
    let hidden = "<input type=hidden name=h value=#>";
    assert!(matches!(compared(hidden), Comparison::Form(_)));
    for elsewhere in [
        "<img src=\"/captcha?h=#\">",
        "<p>#</p>",
        "<div data-hash=#>",
    ] {
        let found = compared(&format!("{hidden}{elsewhere}"));
        assert!(matches!(found, Comparison::Unlike(_)), "{elsewhere}");
    }
}

#[test]
fn a_number_that_stays_for_one_guest_is_the_sessions() {
    let compared = |pages: &[&str]| {
        let pages: Vec<Vec<u8>> = pages.iter().map(|it| it.as_bytes().to_vec()).collect();
        let Comparison::Form(form) = compared(&pages) else {
            panic!("no form")
        };
        form
    };
    let kept = |pages: &[&'static str], again: &[&'static str]| {
        let all: Vec<&[u8]> = pages.iter().map(|it| it.as_bytes()).collect();
        let own: Vec<&[u8]> = again.iter().map(|it| it.as_bytes()).collect();
        let own = [&all[..1], &own[..]].concat();
        compared(pages).numbers_of_session(&own, &all[1..], SITE.now)
    };
    let rows = ["<p>42 ms", "<p>57 ms", "<p>88 ms"];
    assert_eq!(kept(&rows, &["<p>42 ms"]), SessionNumbers::Perhaps);
    assert_eq!(kept(&rows, &["<p>42 ms", "<p>43 ms"]), SessionNumbers::None);
    assert_eq!(
        kept(&["<p>42 ms", "<p>57 ms", "<p>42 ms"], &["<p>42 ms"]),
        SessionNumbers::None
    );
    let times = ["<p>1795926078", "<p>1795926078", "<p>1795926079"];
    assert_eq!(kept(&times, &["<p>1795926078"]), SessionNumbers::Perhaps);
    assert_eq!(kept(&times, &["<p>1795926080"]), SessionNumbers::None);
    let counts = ["<p>7", "<p>8", "<p>9", "<p>10"];
    assert_eq!(kept(&counts, &["<p>11", "<p>12"]), SessionNumbers::None);
    assert_eq!(kept(&counts, &["<p>11", "<p>11"]), SessionNumbers::None);
    assert_eq!(kept(&counts, &["<p>11", "<p>10"]), SessionNumbers::Some);
    assert_eq!(kept(&counts, &["<p>7"]), SessionNumbers::Some);
    assert_eq!(kept(&counts, &["<b>7"]), SessionNumbers::Some);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_compared_and_read(
        texts in proptest::collection::vec("[ab1<\" =/.&]{0,40}", 2..5),
        other in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60),
    ) {
        let pages: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        if let Comparison::Form(form) = compare(&pages, Guests::Alike, SITE) {
            for page in &pages {
                // Each is of the form that all have in common.
                proptest::prop_assert!(form.find(page).is_some(), "{:?}", String::from_utf8_lossy(page));
            }
            let _ = (form.find(&other), form.tokens_of(&other));
        }
    }
}
