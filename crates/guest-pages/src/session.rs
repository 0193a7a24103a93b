//! The marks of a session in a response.
//!
//! The fields that PHP's `session_cache_limiter` sends when a session begins (`ext/session/session.c`, PHP 5.6 to 8.5)
//! say that there is a session, not that the page is private. What the application wrote itself counts.

use bytes::Bytes;

/// Pages with more tokens in cookies for scripts are not shared.
const MAX_TOKENS_OF_SCRIPTS: usize = 4;

/// A field of a response: name and value.
pub type Field = (Bytes, Bytes);

/// The date that PHP sends, of the birthday of who wrote it.
pub(crate) const PAST: &[u8] = b"Thu, 19 Nov 1981 08:52:00 GMT";
const NOCACHE: [&[u8]; 2] = [
    b"no-store, no-cache, must-revalidate",
    // PHP 5 and 7.0.
    b"no-store, no-cache, must-revalidate, post-check=0, pre-check=0",
];
/// With `session.cache_expire` as it is by default.
const PRIVATE: [&[u8]; 2] = [
    b"private, max-age=10800",
    b"private, max-age=10800, pre-check=10800",
];

/// The `session_cache_limiter` that has written the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheLimiter {
    NoCache,
    Private,
    PrivateNoExpire,
}

/// The limiter whose fields these are, exactly; `None` where the application has written others.
#[must_use]
pub fn limiter(fields: &[Field]) -> Option<CacheLimiter> {
    let control = only(fields, b"cache-control")?;
    let expires = only(fields, b"expires");
    let pragma = only(fields, b"pragma");
    let has = |name: &[u8]| fields.iter().any(|field| is_called(field, name));
    if NOCACHE.contains(&control) {
        let is_whole = expires == Some(PAST) && pragma == Some(b"no-cache");
        return is_whole.then_some(CacheLimiter::NoCache);
    }
    // Both say when the script was changed.
    if !PRIVATE.contains(&control) || has(b"pragma") || !has(b"last-modified") {
        return None;
    }
    match expires {
        Some(PAST) => Some(CacheLimiter::Private),
        None if !has(b"expires") => Some(CacheLimiter::PrivateNoExpire),
        _ => None,
    }
}

fn is_called(field: &Field, name: &[u8]) -> bool {
    field.0.eq_ignore_ascii_case(name)
}

/// The value of a field that is there once.
fn only<'f>(fields: &'f [Field], name: &[u8]) -> Option<&'f [u8]> {
    let mut found = fields.iter().filter(|field| is_called(field, name));
    let value = found.next()?;
    found.next().is_none().then(|| value.1.trim_ascii())
}

/// Does the response begin a session, or say that one is under way?
#[must_use]
pub fn is_of_session(fields: &[Field]) -> bool {
    limiter(fields).is_some() || fields.iter().any(|field| is_called(field, b"set-cookie"))
}

/// Returns the fields without the marks of a session: those of the limiter, and the cookies. The others decide whether the
/// response may be stored.
#[must_use]
pub fn without_session(fields: &[Field]) -> Vec<Field> {
    let mut left = without_limiter(fields, limiter(fields));
    without_cookies(&mut left);
    left
}

/// Returns the fields without those that this limiter has written.
#[must_use]
pub fn without_limiter(fields: &[Field], limiter: Option<CacheLimiter>) -> Vec<Field> {
    let mut left = fields.to_vec();
    let names: &[&[u8]] = match limiter {
        Some(CacheLimiter::NoCache) => &[b"cache-control", b"expires", b"pragma"],
        Some(CacheLimiter::Private) => &[b"cache-control", b"expires", b"last-modified"],
        Some(CacheLimiter::PrivateNoExpire) => &[b"cache-control", b"last-modified"],
        None => &[],
    };
    left.retain(|field| !names.iter().any(|name| is_called(field, name)));
    left
}

/// Removes the cookies, and the date of PHP's script, which is not that of the page: the fields that guests are shown from
/// memory. A browser must still ask again, since its visitor may log in.
pub fn without_cookies(fields: &mut Vec<Field>) {
    let is_of_script = matches!(
        limiter(fields),
        Some(CacheLimiter::Private | CacheLimiter::PrivateNoExpire)
    );
    fields.retain(|field| {
        let goes =
            is_called(field, b"set-cookie") || is_of_script && is_called(field, b"last-modified");
        !goes
    });
}

/// Does the same, but for these cookies, whose values are put in: scripts of the page read them.
pub fn with_own_cookies<'c>(
    fields: &mut Vec<Field>,
    cookies: impl Iterator<Item = (&'c [u8], &'c [u8])>,
) {
    let cookies: Vec<(&[u8], &[u8])> = cookies.collect();
    let given: Vec<Field> = fields
        .iter()
        .filter(|field| is_called(field, b"set-cookie"))
        .filter_map(|(name, line)| {
            let set = set_cookie(line).filter(|it| !it.is_removed)?;
            let (_, own) = cookies.iter().find(|(name, _)| *name == set.name)?;
            let end = memchr::memchr(b';', line).unwrap_or(line.len());
            let line = [set.name, b"=", own, line.get(end..)?].concat();
            Some((name.clone(), Bytes::from(line)))
        })
        .collect();
    without_cookies(fields);
    fields.extend(given);
}

/// Does a field of the answer, beside the cookies, have one of these texts in it? A browser compares it with the page.
#[must_use]
pub fn has_in_field(fields: &[Field], texts: &[Vec<u8>]) -> bool {
    let others = fields
        .iter()
        .filter(|field| !is_called(field, b"set-cookie"));
    let mut values = others.map(|(_, value)| value);
    values.any(|value| {
        texts
            .iter()
            .any(|text| memchr::memmem::find(value, text).is_some())
    })
}

/// A cookie that a response sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetCookie<'f> {
    pub name: &'f [u8],
    pub value: &'f [u8],
    /// The browser is to forget it.
    pub is_removed: bool,
    /// Scripts do not see it.
    pub is_http_only: bool,
}

impl SetCookie<'_> {
    /// Do scripts read it and send it back as a token? Those of Laravel and Angular do.
    #[must_use]
    pub fn is_token_of_scripts(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let has = |word: &[u8]| memchr::memmem::find(&name, word).is_some();
        !self.is_http_only && !self.is_removed && (has(b"csrf") || has(b"xsrf"))
    }
}

/// The names of the cookies with a token that scripts read, another one for each guest. `None`: not all answers set them.
#[must_use]
pub fn tokens_of_scripts(answers: &[&[Field]]) -> Option<Vec<Vec<u8>>> {
    let all: Vec<Vec<SetCookie<'_>>> = answers.iter().map(|fields| set_cookies(fields)).collect();
    let is_in_all = |cookie: &SetCookie<'_>| all.iter().all(|given| given.contains(cookie));
    let mut names: Vec<&[u8]> = Vec::new();
    for cookie in all.iter().flatten().filter(|it| it.is_token_of_scripts()) {
        if !is_in_all(cookie) && !names.contains(&cookie.name) {
            names.push(cookie.name);
        }
    }
    let is_given = |given: &Vec<SetCookie<'_>>| {
        let is_one = |name: &&[u8]| {
            given
                .iter()
                .any(|it| it.name == *name && it.is_token_of_scripts())
        };
        names.iter().all(is_one)
    };
    let are_given = all.iter().all(is_given) && names.len() <= MAX_TOKENS_OF_SCRIPTS;
    are_given.then(|| names.into_iter().map(<[u8]>::to_vec).collect())
}

/// Has a page a script?
#[must_use]
pub fn has_script(body: &[u8]) -> bool {
    let mut tags = body.windows(7);
    tags.any(|it| it.eq_ignore_ascii_case(b"<script"))
}

/// The cookies that these fields set, the last value of each name.
#[must_use]
pub fn set_cookies(fields: &[Field]) -> Vec<SetCookie<'_>> {
    let lines = fields
        .iter()
        .filter(|field| is_called(field, b"set-cookie"));
    let mut cookies: Vec<SetCookie<'_>> = Vec::new();
    for cookie in lines.filter_map(|(_, line)| set_cookie(line)) {
        cookies.retain(|it| it.name != cookie.name);
        cookies.push(cookie);
    }
    cookies
}

fn set_cookie(line: &[u8]) -> Option<SetCookie<'_>> {
    let mut parts = line.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let pair = parts.next()?;
    let equals = memchr::memchr(b'=', pair)?;
    let (name, value) = (
        pair.get(..equals)?.trim_ascii(),
        pair.get(equals + 1..)?.trim_ascii(),
    );
    let mut is_removed = value.is_empty() || value == b"deleted";
    let mut is_http_only = false;
    for attribute in parts {
        let begin = attribute.get(..8);
        is_http_only |= begin.is_some_and(|it| it.eq_ignore_ascii_case(b"httponly"));
        let Some(equals) = memchr::memchr(b'=', attribute) else {
            continue;
        };
        let (key, said) = attribute.split_at(equals);
        let said = said.get(1..).unwrap_or_default().trim_ascii();
        if key.eq_ignore_ascii_case(b"max-age") {
            is_removed |= said.first().is_some_and(|byte| matches!(byte, b'0' | b'-'));
        } else if key.eq_ignore_ascii_case(b"expires") {
            is_removed |= said.windows(4).any(|it| it == b"1970");
        }
    }
    (!name.is_empty()).then_some(SetCookie {
        name,
        value,
        is_removed,
        is_http_only,
    })
}

/// The body of an answer with these fields without the names of the sessions that it begins.
#[must_use]
pub fn without_links(fields: &[Field], mut body: Vec<u8>) -> Vec<u8> {
    for cookie in set_cookies(fields) {
        if let Some(changed) = without_session_links(&body, &cookie) {
            body = changed;
        }
    }
    body
}

/// Removes a session's name from the links and forms of a page, where PHP writes it for visitors without a cookie
/// (`session.use_trans_sid`): `?NAME=VALUE`, `&amp;NAME=VALUE`, and a hidden field. `None`: it is nowhere.
#[must_use]
fn without_session_links(body: &[u8], cookie: &SetCookie<'_>) -> Option<Vec<u8>> {
    if cookie.value.len() < 16 {
        return None;
    }
    let argument = [cookie.name, b"=", cookie.value].concat();
    let hidden = [
        b"<input type=\"hidden\" name=\"",
        cookie.name,
        b"\" value=\"",
        cookie.value,
        b"\"",
    ]
    .concat();
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    let mut has_changed = false;
    while let Some((at, length)) = next_of(rest, &argument, &hidden) {
        let (before, found) = rest.split_at(at);
        out.extend_from_slice(before);
        rest = found.get(length..).unwrap_or_default();
        has_changed = true;
        if length == argument.len() {
            rest = without_argument(&mut out, rest);
        } else {
            // To the end of the tag.
            let end = memchr::memchr(b'>', rest).map_or(rest.len(), |at| at + 1);
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    out.extend_from_slice(rest);
    has_changed.then_some(out)
}

fn next_of(text: &[u8], argument: &[u8], hidden: &[u8]) -> Option<(usize, usize)> {
    let argument = memchr::memmem::find(text, argument).map(|at| (at, argument.len()));
    let hidden = memchr::memmem::find(text, hidden).map(|at| (at, hidden.len()));
    argument.into_iter().chain(hidden).min()
}

/// Removes what joins an argument to the others: `out` ends before it, `rest` begins behind it.
fn without_argument<'b>(out: &mut Vec<u8>, rest: &'b [u8]) -> &'b [u8] {
    const JOINTS: [&[u8]; 4] = [b"&amp;", b"&#38;", b"&", b";"];
    for joint in JOINTS {
        if out.ends_with(joint) {
            out.truncate(out.len() - joint.len());
            return rest;
        }
    }
    let next = JOINTS.iter().find_map(|joint| rest.strip_prefix(*joint));
    let rest = next.unwrap_or(rest);
    // SMF joins the session to arguments that may be none.
    let is_last = rest
        .first()
        .is_none_or(|byte| b"\"'<># \t\r\n".contains(byte));
    if out.ends_with(b"?") && (next.is_none() || is_last) {
        out.pop();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(of: &[(&str, &str)]) -> Vec<Field> {
        let to_bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        of.iter()
            .map(|(name, value)| (to_bytes(name), to_bytes(value)))
            .collect()
    }

    const EXPIRES: (&str, &str) = ("Expires", "Thu, 19 Nov 1981 08:52:00 GMT");

    #[test]
    fn scripts_read_tokens_in_cookies() {
        for (line, is_one) in [
            ("XSRF-TOKEN=ab12; Path=/; SameSite=Lax", true),
            ("csrf_cookie_name=ab12; secure", true),
            ("XSRF-TOKEN=ab12; Path=/; HttpOnly", false),
            ("XSRF-TOKEN=ab12;httponly", false),
            ("XSRF-TOKEN=; Max-Age=0", false),
            ("sid=ab12", false),
        ] {
            let cookie = set_cookie(line.as_bytes()).expect("a cookie");
            assert_eq!(cookie.is_token_of_scripts(), is_one, "{line}");
        }
        assert!(has_script(b"<p>x</p><SCRIPT src=a>"));
        assert!(!has_script(b"<p>script</p>") && !has_script(b""));
    }

    #[test]
    fn the_fields_of_each_limiter_are_known_and_no_others() {
        let nocache = ("Cache-Control", "no-store, no-cache, must-revalidate");
        let private = ("Cache-Control", "private, max-age=10800");
        let changed = ("Last-Modified", "Sat, 28 Nov 2026 10:00:00 GMT");
        for (of, wanted) in [
            (
                vec![EXPIRES, nocache, ("Pragma", "no-cache")],
                Some(CacheLimiter::NoCache),
            ),
            (vec![EXPIRES, private, changed], Some(CacheLimiter::Private)),
            (vec![private, changed], Some(CacheLimiter::PrivateNoExpire)),
            (vec![private], None),
            (vec![nocache], None),
            (vec![EXPIRES, nocache], None),
            (
                vec![
                    EXPIRES,
                    ("Cache-Control", "no-store"),
                    ("Pragma", "no-cache"),
                ],
                None,
            ),
            (
                vec![EXPIRES, nocache, nocache, ("Pragma", "no-cache")],
                None,
            ),
            (
                vec![
                    EXPIRES,
                    nocache,
                    ("Cache-Control", "private"),
                    ("Pragma", "no-cache"),
                ],
                None,
            ),
            (
                vec![("Expires", "0"), nocache, ("Pragma", "no-cache")],
                None,
            ),
            (
                vec![("Cache-Control", "private, max-age=600"), changed],
                None,
            ),
            (vec![], None),
        ] {
            assert_eq!(limiter(&fields(&of)), wanted, "{of:?}");
        }
    }

    #[test]
    fn what_the_application_says_itself_stays() {
        let said = fields(&[
            ("Set-Cookie", "PHPSESSID=abc; path=/"),
            ("Cache-Control", "private"),
            ("Content-Type", "text/html"),
        ]);
        let left = without_session(&said);
        assert_eq!(left.len(), 2);
        let php = fields(&[
            EXPIRES,
            ("Cache-Control", "no-store, no-cache, must-revalidate"),
            ("Pragma", "no-cache"),
            ("Set-Cookie", "PHPSESSID=abc; path=/"),
            ("Content-Type", "text/html"),
        ]);
        assert_eq!(
            without_session(&php),
            fields(&[("Content-Type", "text/html")])
        );
        assert!(is_of_session(&php));
        assert!(!is_of_session(&left[1..]));
    }

    #[test]
    fn cookies_are_read_with_what_removes_them() {
        let said = fields(&[
            ("Set-Cookie", "a=1; Path=/; HttpOnly"),
            (
                "Set-Cookie",
                "b=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0",
            ),
            ("Set-Cookie", "a=2"),
            ("Set-Cookie", "=x"),
            ("Set-Cookie", "nothing"),
            ("Set-Cookie", "c=7; Max-Age=1209600"),
        ]);
        let cookies = set_cookies(&said);
        let found: Vec<_> = cookies
            .iter()
            .map(|it| (it.name, it.value, it.is_removed))
            .collect();
        let wanted: [(&[u8], &[u8], bool); 3] = [
            (b"b", b"deleted", true),
            (b"a", b"2", false),
            (b"c", b"7", false),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_name_of_a_session_leaves_links_and_forms() {
        let cookie = SetCookie {
            name: b"PHPSESSID",
            value: b"0123456789abcdef0123",
            is_removed: false,
            is_http_only: false,
        };
        let of = |text: &str| {
            let text = text.replace("@", "PHPSESSID=0123456789abcdef0123");
            let out = without_session_links(text.as_bytes(), &cookie);
            out.map(|out| String::from_utf8(out).unwrap())
        };
        for (text, wanted) in [
            ("<a href=\"a.php?@\">", "<a href=\"a.php\">"),
            ("<a href=\"a.php?@&amp;b=1\">", "<a href=\"a.php?b=1\">"),
            ("<a href=\"a.php?@&amp;\">", "<a href=\"a.php\">"),
            ("<a href=\"a.php?@&amp;#top\">", "<a href=\"a.php#top\">"),
            ("<a href=\"a.php?b=1&amp;@\">", "<a href=\"a.php?b=1\">"),
            ("'a?b=1&@#c'", "'a?b=1#c'"),
            ("'a?b=1;@;c'", "'a?b=1;c'"),
            (
                "<form><input type=\"hidden\" name=\"PHPSESSID\" value=\"0123456789abcdef0123\" /><b>",
                "<form><b>",
            ),
        ] {
            assert_eq!(of(text).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(of("nothing"), None);
    }

    #[test]
    fn a_cookie_for_scripts_has_the_servers_token() {
        let mut given = fields(&[
            ("Set-Cookie", "XSRF-TOKEN=eyJ%3D; path=/a; samesite=lax"),
            ("Set-Cookie", "sid=1; path=/; httponly"),
            ("Content-Type", "text/html"),
        ]);
        let own = [(&b"XSRF-TOKEN"[..], &b"own"[..]), (b"other", b"x")];
        with_own_cookies(&mut given, own.into_iter());
        let wanted = fields(&[
            ("Content-Type", "text/html"),
            ("Set-Cookie", "XSRF-TOKEN=own; path=/a; samesite=lax"),
        ]);
        assert_eq!(given, wanted);
    }

    #[test]
    fn tokens_of_scripts_are_given_to_all_guests_or_to_none() {
        let answer = |cookies: &[&'static str]| -> Vec<Field> {
            let lines: Vec<(&str, &str)> = cookies.iter().map(|it| ("Set-Cookie", *it)).collect();
            fields(&lines)
        };
        let found = |one: &[&'static str], other: &[&'static str]| {
            tokens_of_scripts(&[&answer(one), &answer(other)])
        };
        let name = b"XSRF-TOKEN".to_vec();
        assert_eq!(
            found(&["XSRF-TOKEN=a", "sid=1"], &["XSRF-TOKEN=b", "sid=2"]),
            Some(vec![name])
        );
        assert_eq!(found(&["csrf=a", "sid=1"], &["csrf=a"]), Some(Vec::new()));
        for (one, other) in [
            (&["XSRF-TOKEN=a"][..], &["sid=1"][..]),
            (&["sid=1"], &["XSRF-TOKEN=a"]),
            (&["XSRF-TOKEN=a"], &["XSRF-TOKEN=b; HttpOnly"]),
        ] {
            assert_eq!(found(one, other), None, "{one:?} {other:?}");
        }
    }
}
