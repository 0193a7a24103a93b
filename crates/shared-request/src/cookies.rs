//! Which cookies make a request personal, which are in the key, and which are removed.

use http_semantics::RequestView;

use crate::left_out::class_of;
use crate::{Bypass, NameSet, Rules, UnknownCookies, php};

/// Appends the cookies that are sent, as one Cookie field holds them. True where there are others that are
/// tried ([`put_tried`]). `is_guest`: cookies that no rule names are a guest's, and not sent.
///
/// # Errors
/// [`Bypass::Cookie`] where one of them makes the request personal.
pub(crate) fn put_counted(
    head: RequestView<'_>,
    rules: &Rules,
    is_guest: bool,
    out: &mut Vec<u8>,
) -> Result<bool, Bypass> {
    let start = out.len();
    let mut has_tried = false;
    for value in head.field_all(b"cookie") {
        for cookie in value.split(|&byte| byte == b';') {
            match kind(cookie, rules) {
                CookieKind::Removed => {}
                CookieKind::Tried => has_tried = true,
                CookieKind::Unknown if is_guest => {}
                CookieKind::Personal | CookieKind::Unknown => return Err(Bypass::Cookie),
                CookieKind::InKey => {
                    if out.len() > start {
                        out.extend_from_slice(b"; ");
                    }
                    out.extend_from_slice(cookie.trim_ascii());
                }
            }
        }
    }
    Ok(has_tried)
}

/// Appends the cookies that are in the key, and passes over all others.
pub(crate) fn put_key_cookies(head: RequestView<'_>, rules: &Rules, out: &mut Vec<u8>) {
    let start = out.len();
    let fields = head.field_all(b"cookie");
    let cookies = fields.flat_map(|value| value.split(|&byte| byte == b';'));
    for cookie in cookies.filter(|cookie| matches!(kind(cookie, rules), CookieKind::InKey)) {
        if out.len() > start {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(cookie.trim_ascii());
    }
}

enum CookieKind {
    Personal,
    /// No rule names it: personal, unless it is a guest's.
    Unknown,
    InKey,
    /// It is not sent until it is seen to matter.
    Tried,
    Removed,
}

/// The cookies that are not sent until they are seen to matter, as one Cookie field holds them, in the
/// order of their bytes. False if there is none.
pub(crate) fn put_tried(head: RequestView<'_>, rules: &Rules, out: &mut Vec<u8>) -> bool {
    let fields = head.field_all(b"cookie");
    let cookies = fields.flat_map(|value| value.split(|&byte| byte == b';'));
    let tried = cookies.filter(|cookie| matches!(kind(cookie, rules), CookieKind::Tried));
    let mut tried: Vec<&[u8]> = tried.map(<[u8]>::trim_ascii).collect();
    tried.sort_unstable();
    for (index, cookie) in tried.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(cookie);
    }
    !tried.is_empty()
}

/// A value that is longer, or has more digits, is one visitor's own (a number, a date): such a cookie counts by
/// its name.
const MAX_CHOICE_BYTES: usize = 16;
const MAX_CHOICE_DIGITS: usize = 3;

/// The class of the cookies that [`put_tried`] gives; 0: there are none.
pub(crate) fn class_of_tried(head: RequestView<'_>, rules: &Rules) -> u32 {
    let mut text = Vec::new();
    if !put_tried(head, rules, &mut text) {
        return 0;
    }
    let mut class = Vec::with_capacity(text.len());
    for cookie in text.split(|&byte| byte == b';') {
        let (cookie, name) = (cookie.trim_ascii(), name_of(cookie));
        let value = cookie.get(name.len()..).unwrap_or_default();
        let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_choice = value.len() <= 1 + MAX_CHOICE_BYTES && digits <= MAX_CHOICE_DIGITS;
        class.push(b';');
        class.extend_from_slice(if is_choice { cookie } else { name });
    }
    class_of(&class)
}

/// The cookies that no rule names, where they alone make the request personal: name and value.
#[must_use]
pub fn unknown<'h>(head: RequestView<'h>, rules: &Rules) -> Option<Vec<(&'h [u8], &'h [u8])>> {
    let fields = head.field_all(b"cookie");
    let cookies = fields.flat_map(|value| value.split(|&byte| byte == b';'));
    let mut unknown = Vec::new();
    for cookie in cookies {
        match kind(cookie, rules) {
            CookieKind::Personal => return None,
            CookieKind::Unknown => unknown.push(pair(cookie.trim_ascii())),
            CookieKind::InKey | CookieKind::Tried | CookieKind::Removed => {}
        }
    }
    (!unknown.is_empty()).then_some(unknown)
}

/// Has the request no cookie that may be a session's? `is_common`: all visitors are given this cookie.
#[must_use]
pub fn are_without_session(
    head: RequestView<'_>,
    rules: &Rules,
    is_common: &dyn Fn(&[u8], &[u8]) -> bool,
) -> bool {
    let fields = head.field_all(b"cookie");
    let mut cookies = fields.flat_map(|value| value.split(|&byte| byte == b';'));
    cookies.all(|cookie| match kind(cookie, rules) {
        CookieKind::Personal => false,
        CookieKind::Unknown => {
            let (name, value) = pair(cookie.trim_ascii());
            is_common(name, value)
        }
        CookieKind::InKey | CookieKind::Tried | CookieKind::Removed => true,
    })
}

fn pair(cookie: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'=', cookie) {
        Some(equals) => (&cookie[..equals], &cookie[equals + 1..]),
        None => (cookie, &[][..]),
    }
}

/// Is a cookie whose name is received so in the set, as PHP may read the name?
#[must_use]
pub fn is_named(name: &[u8], set: &NameSet) -> bool {
    is_in(name, set)
}

/// The cookies of a request: name and value. One without `=` has a name and an empty value;
/// PHP reads it so, too.
pub fn pairs<'h>(head: RequestView<'h>) -> impl Iterator<Item = (&'h [u8], &'h [u8])> {
    head.field_all(b"cookie")
        .flat_map(|value| value.split(|&byte| byte == b';'))
        .map(<[u8]>::trim_ascii)
        .filter(|cookie| !cookie.is_empty())
        .map(pair)
}

/// Appends the cookies that the set does not name, as one Cookie field holds them; false if it
/// appends none.
pub fn put_others(head: RequestView<'_>, set: &NameSet, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let fields = head.field_all(b"cookie");
    let cookies = fields.flat_map(|value| value.split(|&byte| byte == b';'));
    for cookie in cookies.map(<[u8]>::trim_ascii) {
        if cookie.is_empty() || is_in(name_of(cookie), set) {
            continue;
        }
        if out.len() > start {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(cookie);
    }
    out.len() > start
}

/// A cookie without `=` has a name and no value. PHP reads it so, too.
fn name_of(cookie: &[u8]) -> &[u8] {
    let name = match memchr::memchr(b'=', cookie) {
        Some(equals) => cookie.get(..equals).unwrap_or_default(),
        None => cookie,
    };
    name.trim_ascii_start()
}

fn is_in(name: &[u8], set: &NameSet) -> bool {
    !set.is_empty() && php::any_name(name, |name| set.has(name))
}

fn kind(cookie: &[u8], rules: &Rules) -> CookieKind {
    let name = name_of(cookie);
    if cookie.trim_ascii().is_empty() {
        return CookieKind::Removed;
    }
    let is_in = |set: &NameSet| is_in(name, set);
    if is_in(&rules.personal_cookies) {
        CookieKind::Personal
    } else if is_in(&rules.key_cookies) {
        CookieKind::InKey
    } else if is_in(&rules.tried_cookies) {
        CookieKind::Tried
    } else if is_in(&rules.removed_cookies) {
        CookieKind::Removed
    } else {
        match rules.unknown_cookies {
            UnknownCookies::Bypass => CookieKind::Unknown,
            UnknownCookies::Remove => CookieKind::Tried,
        }
    }
}

#[cfg(test)]
mod tests {
    use http1::{HeadLimits, parse_head};

    use super::*;

    fn set(names: &[&str]) -> NameSet {
        NameSet::new(names.iter().map(|name| name.as_bytes()))
    }

    fn counted(fields: &[&str], unknown_cookies: UnknownCookies) -> Result<String, Bypass> {
        let rules = Rules {
            personal_cookies: set(&["login_*", "SESS"]),
            key_cookies: set(&["lang"]),
            removed_cookies: set(&["_ga*"]),
            unknown_cookies,
            ..Rules::default()
        };
        let mut text = "GET / HTTP/1.1\r\nHost: a\r\n".to_owned();
        for field in fields {
            text.push_str(&format!("Cookie: {field}\r\n"));
        }
        text.push_str("\r\n");
        let head = parse_head(text, &HeadLimits::default()).unwrap();
        let mut out = Vec::new();
        put_counted(head.view(), &rules, false, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_guests_cookies_are_those_that_no_rule_names() {
        let rules = Rules {
            personal_cookies: set(&["login_*"]),
            removed_cookies: set(&["_ga*"]),
            ..Rules::default()
        };
        for (field, wanted) in [
            (
                "_ga=1; sid=abc; currency=USD",
                Some(&["sid", "currency"][..]),
            ),
            ("sid=abc; login_x=1", None),
            ("_ga=1", None),
            ("", None),
        ] {
            let text = format!("GET / HTTP/1.1\r\nCookie: {field}\r\n\r\n");
            let head = parse_head(text, &HeadLimits::default()).unwrap();
            let found = unknown(head.view(), &rules);
            let names = found.map(|found| found.iter().map(|(name, _)| *name).collect::<Vec<_>>());
            let wanted = wanted.map(|names| names.iter().map(|name| name.as_bytes()).collect());
            assert_eq!(names, wanted, "{field}");
            let mut out = Vec::new();
            let counted = put_counted(head.view(), &rules, true, &mut out);
            assert_eq!(
                counted.is_ok() && out.is_empty(),
                !field.contains("login"),
                "{field}"
            );
        }
    }

    #[test]
    fn cookies_that_are_ignored_are_compared_as_php_reads_them() {
        let ignored = set(&["_ga*", "utm_source", "pll.language"]);
        for (field, wanted) in [
            ("_ga=1; lang=de", "lang=de"),
            ("lang=de; _ga_X=1;; _ga", "lang=de"),
            (
                "utm.source=a; utm%5Fsource=b; utm source=c; utm[source=d",
                "",
            ),
            ("utm_source[x]=1; utm_sources=2", "utm_sources=2"),
            ("pll.language=de; pll_language=en; a", "a"),
        ] {
            let text = format!("GET / HTTP/1.1\r\nCookie: {field}\r\n\r\n");
            let head = parse_head(text, &HeadLimits::default()).unwrap();
            let mut out = Vec::new();
            assert_eq!(
                put_others(head.view(), &ignored, &mut out),
                !wanted.is_empty()
            );
            assert_eq!(String::from_utf8(out).unwrap(), wanted, "{field}");
        }
    }

    #[test]
    fn a_cookie_has_a_name_and_perhaps_a_value() {
        let text = "GET / HTTP/1.1\r\nCookie: a=1; b; =c;;d==\r\nCookie: e=\r\n\r\n";
        let head = parse_head(text, &HeadLimits::default()).unwrap();
        let found: Vec<_> = pairs(head.view()).collect();
        let wanted = [("a", "1"), ("b", ""), ("", "c"), ("d", "="), ("e", "")];
        assert_eq!(
            found,
            wanted.map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        );
    }

    #[test]
    fn cookies_are_personal_in_the_key_or_removed() {
        use UnknownCookies::{Bypass as Goes, Remove};
        let personal = Err(Bypass::Cookie);
        let counts = |text: &str| Ok(text.to_owned());
        for (fields, unknown, wanted) in [
            (&[][..], Goes, counts("")),
            (&["_ga=1; _gat=2"], Goes, counts("")),
            (&["lang=de"], Goes, counts("lang=de")),
            (
                &["_ga=1; lang=de;;  ; lang=en"],
                Goes,
                counts("lang=de; lang=en"),
            ),
            (
                &["lang=de", "_ga=1", "lang=fr"],
                Goes,
                counts("lang=de; lang=fr"),
            ),
            (&["other=1"], Goes, personal.clone()),
            (&["other=1; lang=de"], Remove, counts("lang=de")),
            (&["other"], Goes, personal.clone()),
            (&["other"], Remove, counts("")),
            (&["login_x=0"], Remove, personal.clone()),
            (&["login_x="], Remove, personal.clone()),
            (&["login_x"], Remove, personal.clone()),
            (&["a=1;login.x=1"], Remove, personal.clone()),
            (&["a=1;\tlogin x=1"], Remove, personal.clone()),
            (&["login_x[1]=1"], Remove, personal.clone()),
            (&["login%5Fx=1"], Remove, personal.clone()),
            // PHP reads `SESS_`: more careful than it need be.
            (&["SESS[=1"], Remove, personal.clone()),
            (&["SESS =1"], Remove, personal.clone()),
            (&["=SESS"], Remove, counts("")),
            (&["lang[a]=de"], Goes, counts("lang[a]=de")),
        ] {
            assert_eq!(counted(fields, unknown), wanted, "{fields:?}");
        }
    }
}
