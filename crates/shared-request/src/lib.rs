//! Writes requests whose answers may be shared: which parts of a visitor's request reach the
//! application.
//!
//! The rule of a shared cache: an answer may go to another visitor only if everything of the
//! request that could have shaped it is in the cache key, was removed before the application
//! saw it, or is known not to matter. A list of dangerous fields can never be complete, so
//! the request is not filtered: it is written anew, from the parts that are in the key.
//!
//! ```text
//!                    ┌─ personal ─► Bypass: forwarded whole, never stored
//!   ReceivedRequest ─┤
//!                    └─ shared ───► put_key    (what tells answers apart)
//!                                   write_head (what the application is sent)
//! ```
//!
//! Both functions read the same [`ReceivedRequest`] and nothing else. What `write_head` writes is
//! made of what `put_key` wrote, of constants, and of the fields that a response has named
//! in `Vary`, which the store compares on its own. A field that is invented tomorrow is
//! therefore not sent.
//!
//! Where the application itself says who may share a page that it made with a visitor's cookies
//! (LiteSpeed's protocol), the same is done with the cookies whole: [`put_visitors_key`] and
//! [`SentCookies::AllCookies`]. Nothing else of the visitor's request gets in.
//!
//! Names of cookies and arguments are compared as PHP will see them ([`php`]). No I/O, no
//! clock.

pub mod arguments;
mod class;
pub mod cookies;
mod fields;
mod media;
mod names;
mod paths;
pub mod php;
pub mod varied;

use http_semantics::RequestView;
use pcre2::bytes::Regex;

pub use class::Class;
pub use names::NameSet;

/// What a site's administrator says of its cookies, arguments and paths.
#[derive(Debug, Default)]
pub struct Rules {
    /// Cookies that make a request personal, whatever their value.
    pub personal_cookies: NameSet,
    /// Cookies that shape pages for many visitors (a language): sent, and in the key.
    pub key_cookies: NameSet,
    /// Cookies that no page depends on: not sent.
    pub removed_cookies: NameSet,
    /// All other cookies.
    pub unknown_cookies: UnknownCookies,
    /// Query arguments that make a request personal, whatever their value.
    pub personal_arguments: NameSet,
    /// The same by patterns of `name=value`, both decoded.
    pub personal_argument_patterns: Vec<Regex>,
    /// Query arguments that no page depends on: neither sent nor in the key.
    pub removed_arguments: NameSet,
    /// Patterns of paths that are personal, or that do something.
    pub personal_paths: Vec<Regex>,
}

/// What a cookie does that no rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCookies {
    /// It may be a session: the request is personal.
    #[default]
    Bypass,
    /// All cookies of the application that matter are named: it is not sent.
    Remove,
}

/// All that the request for a page that may be shared is made of. The client's address and
/// the time are not here: they are known not to matter.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedRequest<'a> {
    pub head: RequestView<'a>,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Lower case, without port and trailing dot; empty where the client named none.
    pub host: &'a [u8],
    /// The port that the client named.
    pub port: Option<u16>,
    /// The port that accepted the connection; 0 for a unix socket.
    pub server_port: u16,
    /// Path and arguments, as received.
    pub target: &'a [u8],
    /// Path and arguments after rewriting, where they are others.
    pub rewritten: Option<(&'a [u8], &'a [u8])>,
}

/// Why a request goes past the cache, forwarded whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// It does not accept HTML: a program that wants another format.
    Accept,
    /// A query argument is personal.
    Argument,
    /// A cookie is personal, or unknown.
    Cookie,
    /// A field carries credentials, or the identity that a proxy has established.
    Credentials,
    /// A field names another method or another path.
    Override,
    /// A script asks for a part of a page.
    Partial,
    /// The path is personal.
    Path,
    /// What would have to be in the key is too long.
    TooLong,
    /// It asks for another protocol.
    Upgrade,
}

/// Stands between the parts of a key: it can be in no field and in no target.
const SEPARATOR: u8 = 0;

/// Bound on the bytes of cookies that are in the key.
const MAX_KEY_COOKIE_BYTES: usize = 1024;

/// Appends the cache key of a request: first its URL (scheme, host, port, path and the
/// arguments that count), then everything else that tells answers apart.
///
/// # Errors
/// Why the request is personal; the caller discards what was appended.
pub fn put_key(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    key: &mut Vec<u8>,
) -> Result<Class, Bypass> {
    let class = fields::examine(received.head)?;
    paths::examine(received.target, rules)?;
    let rewritten = received.rewritten.map(|(_, args)| args);
    arguments::examine(received.target, rewritten, rules)?;
    put_key_of(received, rules, class, key)?;
    Ok(class)
}

/// As [`put_key`], for a request that cookies would make personal: cookies that are in no key are
/// passed over. The key differs from every key of [`put_key`]. The application, which has seen the
/// cookies, says who may get what is stored under it.
///
/// # Errors
/// Why the request is personal for another reason; the caller discards what was appended.
pub fn put_visitors_key(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    key: &mut Vec<u8>,
) -> Result<Class, Bypass> {
    let class = fields::examine(received.head)?;
    paths::examine(received.target, rules)?;
    let rewritten = received.rewritten.map(|(_, args)| args);
    arguments::examine(received.target, rewritten, rules)?;
    put_start(received, rules, class.letter().to_ascii_uppercase(), key);
    let start = key.len();
    cookies::put_key_cookies(received.head, rules, key);
    match key.len() - start > MAX_KEY_COOKIE_BYTES {
        true => Err(Bypass::TooLong),
        false => Ok(class),
    }
}

/// Appends the cookies that the application is sent with [`SentCookies::AllCookies`].
pub fn put_all_cookies(received: &ReceivedRequest<'_>, rules: &Rules, out: &mut Vec<u8>) -> bool {
    cookies::put_others(received.head, &rules.removed_cookies, out)
}

/// Appends the key of a request whose visitor is of this class.
fn put_key_of(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    class: Class,
    key: &mut Vec<u8>,
) -> Result<(), Bypass> {
    put_start(received, rules, class.letter(), key);
    let start = key.len();
    cookies::put_counted(received.head, rules, key)?;
    match key.len() - start > MAX_KEY_COOKIE_BYTES {
        true => Err(Bypass::TooLong),
        false => Ok(()),
    }
}

/// Appends what stands before the cookies.
fn put_start(received: &ReceivedRequest<'_>, rules: &Rules, letter: u8, key: &mut Vec<u8>) {
    put_url(received, rules, key);
    key.push(letter);
    put_number(usize::from(received.server_port), key);
    if let Some((path, args)) = received.rewritten {
        key.push(b' ');
        key.extend_from_slice(path);
        key.push(b'?');
        arguments::put_counted(args, &rules.removed_arguments, key);
    }
    key.push(SEPARATOR);
}

/// Appends what the keys of all answers for one URL begin with: for any visitor's class and
/// cookies. It ends with a byte that no URL holds.
fn put_url(received: &ReceivedRequest<'_>, rules: &Rules, key: &mut Vec<u8>) {
    key.extend_from_slice(received.scheme.as_bytes());
    key.extend_from_slice(b"://");
    put_host(received, key);
    arguments::put_target(received.target, &rules.removed_arguments, key);
    key.push(SEPARATOR);
}

/// The cookies that the application is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentCookies {
    /// Those that are in the key.
    KeyCookies,
    /// All but those that no page depends on: see [`put_visitors_key`].
    AllCookies,
}

/// Appends the head of the request that the application is sent. `varied` are the fields
/// that responses for this key have named in `Vary`; those that may be sent are.
pub fn write_head<'v>(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    (class, sent): (Class, SentCookies),
    varied: impl Iterator<Item = &'v str>,
    head: &mut Vec<u8>,
) {
    head.extend_from_slice(b"GET ");
    arguments::put_target(received.target, &rules.removed_arguments, head);
    head.extend_from_slice(b" HTTP/1.1\r\n");
    if !received.host.is_empty() {
        head.extend_from_slice(b"Host: ");
        put_host(received, head);
        head.extend_from_slice(b"\r\n");
    }
    put_field("User-Agent", class.user_agent(), head);
    let mut accept = false;
    for name in varied {
        let start = head.len();
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        match varied::put_value(received.head, name, head) {
            true => {
                head.extend_from_slice(b"\r\n");
                accept |= name == "accept";
            }
            false => head.truncate(start),
        }
    }
    if !accept {
        put_field("Accept", media::ACCEPT, head);
    }
    let start = head.len();
    head.extend_from_slice(b"Cookie: ");
    let value = head.len();
    let is_examined = match sent {
        // It was examined for the key; a personal cookie would have ended the matter there.
        SentCookies::KeyCookies => cookies::put_counted(received.head, rules, head).is_ok(),
        SentCookies::AllCookies => put_all_cookies(received, rules, head),
    };
    match is_examined && head.len() > value {
        true => head.extend_from_slice(b"\r\n"),
        false => head.truncate(start),
    }
    head.extend_from_slice(b"\r\n");
}

/// Does [`write_head`] leave out something that the answer may have depended on? An answer
/// that is shared may not depend on it; one that is for this visitor alone should.
#[must_use]
pub fn leaves_something_out(received: &ReceivedRequest<'_>, rules: &Rules) -> bool {
    let mut fields = received.head.fields();
    fields.any(|(name, _)| fields::may_shape_answer(name))
        || cookies::removes_unknown(received.head, rules)
}

fn put_field(name: &str, value: &str, head: &mut Vec<u8>) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value.as_bytes());
    head.extend_from_slice(b"\r\n");
}

fn put_host(received: &ReceivedRequest<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(received.host);
    if let Some(port) = received.port {
        out.push(b':');
        put_number(usize::from(port), out);
    }
}

fn put_number(number: usize, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut rest = number;
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use http1::{HeadLimits, parse_head};

    use super::*;

    /// The keys of a request with this Cookie field, and what is sent of it with all cookies.
    fn visitor(cookies: &str) -> (Option<Vec<u8>>, Vec<u8>, String) {
        let set = |names: &[&str]| NameSet::new(names.iter().map(|name| name.as_bytes()));
        let rules = Rules {
            personal_cookies: set(&["login_*"]),
            key_cookies: set(&["lang"]),
            removed_cookies: set(&["_ga*"]),
            ..Rules::default()
        };
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Own: 1\r\nCookie: {cookies}\r\n\r\n");
        let head = parse_head(text, &HeadLimits::default()).unwrap();
        let received = ReceivedRequest {
            head: head.view(),
            scheme: "http",
            host: b"a",
            port: None,
            server_port: 80,
            target: b"/",
            rewritten: None,
        };
        let (mut shared, mut own, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        let shared = put_key(&received, &rules, &mut shared).ok().map(|_| shared);
        let class = put_visitors_key(&received, &rules, &mut own).unwrap();
        let none = std::iter::empty();
        write_head(
            &received,
            &rules,
            (class, SentCookies::AllCookies),
            none,
            &mut sent,
        );
        (shared, own, String::from_utf8(sent).unwrap())
    }

    #[test]
    fn no_visitor_with_cookies_has_the_key_of_those_without() {
        let (everybody, _, _) = visitor("_ga=1");
        let (none, of_one, sent) = visitor("login_x=1; _ga=2; other=3");
        assert_eq!(none, None);
        assert_ne!(everybody, Some(of_one.clone()));
        assert!(
            sent.contains("\r\nCookie: login_x=1; other=3\r\n"),
            "{sent}"
        );
        assert!(!sent.contains("X-Own"), "{sent}");
        let (_, of_another, _) = visitor("login_x=2");
        assert_eq!(of_one, of_another);
        let (_, german, _) = visitor("login_x=2; lang=de");
        assert_ne!(of_one, german);
        assert_ne!(visitor("lang=de").0, Some(german));
        let (_, of_both, _) = visitor("lang=de; login_x=1; lang=en");
        assert!(of_both.ends_with(b"\0lang=de; lang=en"));
    }

    #[test]
    fn key_and_head_are_written_to_the_letter() {
        let set = |names: &[&str]| NameSet::new(names.iter().map(|name| name.as_bytes()));
        let rules = Rules {
            key_cookies: set(&["lang", "theme"]),
            removed_arguments: set(&["utm_*"]),
            ..Rules::default()
        };
        let text = "GET / HTTP/1.1\r\nAccept-Language: de\r\nCookie: lang=de; theme=dark\r\n\r\n";
        let head = parse_head(text, &HeadLimits::default()).unwrap();
        let received = ReceivedRequest {
            head: head.view(),
            scheme: "https",
            host: b"a.example",
            port: Some(8443),
            server_port: 443,
            target: b"/p?utm_source=x&b=1",
            rewritten: Some((b"/index.php", b"q=p&utm_source=x")),
        };
        let (mut key, mut sent) = (Vec::new(), Vec::new());
        let class = put_key(&received, &rules, &mut key).unwrap();
        let letter = char::from(class.letter());
        assert_eq!(
            String::from_utf8_lossy(&key),
            format!(
                "https://a.example:8443/p?b=1\0{letter}443 /index.php?q=p\0lang=de; theme=dark"
            )
        );
        let varied = ["accept-language", "x-absent"].into_iter();
        let cookies = SentCookies::KeyCookies;
        write_head(&received, &rules, (class, cookies), varied, &mut sent);
        let (agent, accept) = (class.user_agent(), media::ACCEPT);
        assert_eq!(
            String::from_utf8_lossy(&sent),
            format!(
                "GET /p?b=1 HTTP/1.1\r\nHost: a.example:8443\r\nUser-Agent: {agent}\r\n\
                 accept-language: de\r\nAccept: {accept}\r\nCookie: lang=de; theme=dark\r\n\r\n"
            )
        );
    }
}
