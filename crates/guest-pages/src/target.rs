//! Addresses that look as if they did something for one visitor. No trial asks for them.

use crate::place::is_drawn;

/// Words of a path or an argument that name an action.
const ACTIONS: [&str; 39] = [
    "activate",
    "add",
    "addtocart",
    "approve",
    "buy",
    "cancel",
    "confirm",
    "delete",
    "del",
    "disable",
    "dl",
    "dislike",
    "download",
    "enable",
    "empty",
    "exec",
    "invite",
    "join",
    "leave",
    "like",
    "logout",
    "markread",
    "move",
    "optin",
    "optout",
    "pay",
    "rate",
    "redeem",
    "remove",
    "reset",
    "restore",
    "signout",
    "subscribe",
    "undo",
    "unsubscribe",
    "update",
    "upvote",
    "verify",
    "vote",
];

/// Words that name an action where nothing stands behind them, and are sections of sites elsewhere: `/claim`, but
/// `/claim/how-to`. As the value of an argument that names what to do, too.
const LAST_ACTIONS: [&str; 18] = [
    "accept", "apply", "claim", "cron", "decline", "draw", "export", "follow", "import", "reserve",
    "resend", "run", "save", "send", "switch", "sync", "toggle", "unfollow",
];
/// Words that are pages of shops and libraries, and actions as the value of such an argument.
const VALUE_ACTIONS: [&str; 2] = ["book", "order"];
/// Words of which the next segment says what it is done with, and nothing else: `/follow/alice`.
const WITH_OBJECT: [&str; 5] = ["follow", "unfollow", "toggle", "resend", "claim"];
/// Arguments that name what to do.
const ACTION_ARGUMENTS: [&str; 8] = [
    "action", "act", "do", "task", "op", "mode", "cmd", "command",
];

/// The shortest text that is drawn for one visitor.
const MIN_DRAWN: usize = 16;

/// Does the address name an action, or have something in it that is drawn for one visitor? In a path an action is a whole
/// segment: titles have its words, too.
#[must_use]
pub fn is_for_one_visitor(target: &[u8]) -> bool {
    let mut halves = target.splitn(2, |&byte| byte == b'?');
    let (path, args) = (
        halves.next().unwrap_or_default(),
        halves.next().unwrap_or_default(),
    );
    let is_drawn_word =
        |word: &[u8]| word.len() >= MIN_DRAWN && is_drawn(word) && has_no_words(word);
    let mut segments = path.split(|byte| matches!(byte, b'/' | b'.'));
    let mut words =
        args.split(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_'));
    let first_part = |word: &[u8]| {
        let mut parts = word.split(|byte| matches!(byte, b'-' | b'_'));
        parts.next().is_some_and(is_action)
    };
    segments.any(|segment| is_action(segment) || is_drawn_word(segment))
        || ends_in_action(path)
        || args
            .split(|byte| matches!(byte, b'&' | b';'))
            .any(names_action)
        || words.any(|word| first_part(word) || is_drawn_word(word))
}

/// Does a path end in an action, or in an action and what it is done with?
fn ends_in_action(path: &[u8]) -> bool {
    let segments = path.split(|byte| matches!(byte, b'/' | b'.'));
    // The ending of a script's name is none.
    let mut segments: Vec<&[u8]> = segments
        .filter(|it| !it.is_empty() && !it.eq_ignore_ascii_case(b"php"))
        .collect();
    let last = segments.pop().unwrap_or_default();
    let before = segments.pop().unwrap_or_default();
    // `/order` is a page, and `/item/5/order` orders it.
    let is_done_with = is_number(before) && is_in(&VALUE_ACTIONS, last);
    is_in(&LAST_ACTIONS, last) || is_in(&WITH_OBJECT, before) || is_done_with
}

/// Does an argument name an action as what to do?
fn names_action(argument: &[u8]) -> bool {
    let mut parts = argument.splitn(2, |&byte| byte == b'=');
    let name = parts.next().unwrap_or_default();
    let value = parts.next().unwrap_or_default();
    if is_in(&LAST_ACTIONS, name) && matches!(value, b"" | b"1") {
        return true;
    }
    let mut words = value.split(|byte| !byte.is_ascii_alphanumeric());
    let is_one = |word: &[u8]| is_in(&LAST_ACTIONS, word) || is_in(&VALUE_ACTIONS, word);
    is_in(&ACTION_ARGUMENTS, name) && words.any(is_one)
}

fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

fn is_in(words: &[&str], word: &[u8]) -> bool {
    let mut words = words.iter();
    words.any(|it| word.eq_ignore_ascii_case(it.as_bytes()))
}

/// May a word of the address be a code that is used once, however short? What such an address does cannot be seen by
/// asking for it again.
#[must_use]
pub fn has_code(target: &[u8]) -> bool {
    /// The shortest code, and the shortest one that is a number.
    const LEAST: usize = 4;
    const MIN_DIGITS: usize = 6;
    let mut words = target.split(|byte| !byte.is_ascii_alphanumeric());
    words.any(|word| {
        let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_mixed = digits > 0 && digits < word.len();
        let is_shouted = word.iter().all(u8::is_ascii_uppercase);
        word.len() >= LEAST && (is_mixed || is_shouted) || digits >= MIN_DIGITS
    })
}

fn is_action(word: &[u8]) -> bool {
    is_in(&ACTIONS, word)
}

/// Titles have words of letters alone; what is drawn has digits among its letters.
fn has_no_words(word: &[u8]) -> bool {
    let mut parts = word.split(|byte| matches!(byte, b'-' | b'_'));
    parts.any(|part| part.len() >= 8 && is_mixed(part))
}

fn is_mixed(part: &[u8]) -> bool {
    let pairs = part.windows(2);
    let turns = pairs.filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
    turns.count() >= 3 || part.len() >= MIN_DRAWN && part.iter().any(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_do_something_are_told_from_pages() {
        for (target, is_one) in [
            ("/add.php?id=5", true),
            ("/index.php?route=checkout/cart.add&id=5", true),
            ("/cart/add/5", true),
            ("/vote.php?o=2", true),
            ("/dl.php?k=SECRET77", true),
            ("/newsletter/unsubscribe", true),
            ("/?action=log-out&do=logout", true),
            ("/?do=add_to_cart", true),
            ("/how-to-move-a-site", false),
            ("/reset?token=9f86d081884c7d65", true),
            ("/invitation/9f86d081884c7d659a2f", true),
            ("/cart", false),
            ("/index.php?route=item&product_id=12", false),
            ("/2026/11/address-book-additions-of-2026", false),
            ("/article-2026-11-29-hello-world-again", false),
            ("/index.php?page=register", false),
            ("/index.php?route=checkout/cart", false),
            ("/", false),
            ("/cron", true),
            ("/cron.php", true),
            ("/claim", true),
            ("/claim/summer", true),
            ("/follow/alice", true),
            ("/item/5/order", true),
            ("/wp-admin/export/", true),
            ("/index.php?do=Save", true),
            ("/?task=cart.switch", true),
            ("/order", false),
            ("/order/", false),
            ("/book/1", false),
            ("/register", false),
            ("/run/for-charity", false),
            ("/export/to-france", false),
            ("/draw/animals", false),
            ("/follow/alice/posts", false),
            ("/?page=book", false),
            ("/?sort=order", false),
            ("/index.php?action=register", false),
            ("/index.php?action=profile;save", true),
            ("/?cron=1", true),
            ("/?draw=animals", false),
        ] {
            assert_eq!(is_for_one_visitor(target.as_bytes()), is_one, "{target}");
        }
    }

    #[test]
    fn a_code_may_be_short() {
        for (target, has) in [
            ("/sso?ticket=ST-123abc", true),
            ("/invite/K7P2", true),
            ("/i/ABCD", true),
            ("/otp?c=482913", true),
            ("/search.php", false),
            (
                "/index.php?route=account/wishlist&language=en-gb&path=20_26",
                false,
            ),
        ] {
            assert_eq!(has_code(target.as_bytes()), has, "{target}");
        }
    }
}
