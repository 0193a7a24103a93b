//! One cookie out of the Cookie fields, found as nginx finds `$cookie_name`:
//! the first match wins, names compare in any case, pairs are separated by `;`
//! alone (a comma is part of a value, as in nginx since 1.29.6).

use crate::request::RequestView;

/// The value of the cookie `name`, as sent.
pub fn find<'r>(head: impl Into<RequestView<'r>>, name: &[u8]) -> Option<&'r [u8]> {
    head.into()
        .field_all(b"cookie")
        .find_map(|value| find_in(value, name))
}

/// Returns the value of the cookie `name` in one field value.
pub fn find_in<'v>(value: &'v [u8], name: &[u8]) -> Option<&'v [u8]> {
    pairs(value)
        .find(|(cookie, _)| cookie.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// All `name=value` pairs of one Cookie field value, as sent, without the
/// spaces around name and before the value. Pieces without `=` are left out.
pub fn pairs(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    value.split(|&byte| byte == b';').filter_map(|pair| {
        let equals = memchr::memchr(b'=', pair)?;
        let (name, value) = pair.split_at_checked(equals)?;
        Some((name.trim_ascii(), value.get(1..)?.trim_ascii_start()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RequestHead;

    #[test]
    fn a_cookie_is_found_in_any_cookie_field() {
        let fields = [
            ("Host", "x"),
            ("Cookie", "foo=1, qux=0; bar=2; empty="),
            ("Cookie", "bazz=3; FOO=9; broken; a = b"),
        ];
        let head = RequestHead::of("GET", "/", fields);
        for (name, value) in [
            ("foo", Some("1, qux=0")),
            ("bar", Some("2")),
            ("bazz", Some("3")),
            ("BAR", Some("2")),
            ("empty", Some("")),
            ("a", Some("b")),
            ("qux", None),
            ("broken", None),
            ("fo", None),
            ("", None),
        ] {
            let found = find(&head, name.as_bytes());
            assert_eq!(found, value.map(str::as_bytes), "{name}");
        }
    }
}
