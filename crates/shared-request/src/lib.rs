//! Writes requests whose answers may be shared: which parts of a visitor's request reach the application,
//! and which are left out of it.
//!
//! The rule of a shared cache: an answer may go to another visitor only if everything of the
//! request that could have shaped it is in the cache key, was removed before the application
//! saw it, or is known not to matter. A list of dangerous fields can never be complete, so
//! the request is not filtered: it is written anew, from the parts that are in the key.
//!
//! ```text
//!                    ┌─ personal ─► Bypass: forwarded whole, never stored
//!   ReceivedRequest ─┤
//!                    └─ shared ───► put_key    (the parts that separate answers)
//!                                   write_head (the request that the application is sent)
//! ```
//!
//! The answer to such a request may be shown to a visitor once it has been seen that the parts left out of
//! the visitor's own ([`left_out`]) do not matter: the crate `page-evidence` keeps the evidence.
//!
//! Both functions read the same [`ReceivedRequest`] and nothing else. The head from `write_head` is made
//! of the parts that `put_key` wrote, of constants, and of the fields that a response has named in `Vary`,
//! which the store compares on its own. A field that is invented tomorrow is therefore not sent.
//!
//! If the application itself decides who may share a page that it made with a visitor's cookies
//! (LiteSpeed's protocol), the same is done with the cookies whole: [`put_visitors_key`] and
//! [`SentCookies::AllCookies`]. Nothing else of the visitor's request gets in.
//!
//! Names of cookies and arguments are compared as PHP will see them ([`php`]). No I/O, no
//! clock.

pub mod arguments;
mod browser;
mod class;
pub mod cookies;
mod crawlers;
mod fields;
pub mod left_out;
mod media;
mod names;
mod paths;
pub mod php;
pub mod varied;

use std::net::IpAddr;

use http_semantics::RequestView;
use pcre2::bytes::Regex;

use browser::Browser;
pub use class::{Class, crawler_named};
pub use crawlers::NamedCrawler;
pub use left_out::{LeftOut, Trait, TraitSet};
pub use names::NameSet;

/// A site administrator's rules for its cookies, arguments and paths.
#[derive(Debug, Default)]
pub struct Rules {
    /// Cookies that make a request personal, whatever their value.
    pub personal_cookies: NameSet,
    /// Cookies that shape pages for many visitors (a language): sent, and in the key.
    pub key_cookies: NameSet,
    /// Cookies that no page depends on: not sent.
    pub removed_cookies: NameSet,
    /// Cookies that a page may depend on (consent, a theme): not sent, and in no key, until they are
    /// seen to matter.
    pub tried_cookies: NameSet,
    /// All other cookies.
    pub unknown_cookies: UnknownCookies,
    /// Query arguments that make a request personal, whatever their value.
    pub personal_arguments: NameSet,
    /// Patterns of such arguments: `name=value`, both decoded.
    pub personal_argument_patterns: Vec<Regex>,
    /// Query arguments that no page depends on: neither sent nor in the key.
    pub removed_arguments: NameSet,
    /// Patterns of paths that are personal, or that do something.
    pub personal_paths: Vec<Regex>,
}

/// The treatment of a cookie that no rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCookies {
    /// It may be a session: the request is personal.
    #[default]
    Bypass,
    /// All cookies of the application that make a request personal are named: it is not sent until it
    /// is seen to matter.
    Remove,
}

/// A request as it was received, with the server's facts about it. The time is not here: a page is shown for
/// its lifetime.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedRequest<'a> {
    pub head: RequestView<'a>,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Lower case, without port and trailing dot; empty if the client named none.
    pub host: &'a [u8],
    /// The port that the client named.
    pub port: Option<u16>,
    /// The port that accepted the connection; 0 for a unix socket.
    pub server_port: u16,
    /// Path and arguments, as received.
    pub target: &'a [u8],
    /// Path and arguments after rewriting, where they are others.
    pub rewritten: Option<(&'a [u8], &'a [u8])>,
    /// The client's address; `None` over a unix socket.
    pub client: Option<IpAddr>,
    /// Its cookies that no rule names are those of a guest.
    pub is_guest: bool,
}

impl ReceivedRequest<'_> {
    fn browser(&self) -> Option<Browser> {
        Browser::of(self.head.field(b"user-agent")?)
    }
}

/// The visitor who asks for a page that may be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor {
    pub class: Class,
    /// The parts that the shared request leaves out.
    pub left_out: LeftOut,
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
    /// A field is not known not to matter.
    Field,
    /// A field names another method or another path.
    Override,
    /// A script asks for a part of a page.
    Partial,
    /// The path is personal.
    Path,
    /// A part that would have to be in the key is too long.
    TooLong,
    /// It asks for another protocol.
    Upgrade,
}

/// Stands between the parts of a key: it can be in no field and in no target.
const SEPARATOR: u8 = 0;

/// Bound on the bytes of cookies that are in the key.
const MAX_KEY_COOKIE_BYTES: usize = 1024;

/// Appends the cache key of a request: first its URL (scheme, host, port, path and the arguments that
/// count), then all other parts that separate answers.
///
/// # Errors
/// The reason why the request is personal; the caller discards the appended bytes.
pub fn put_key(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    key: &mut Vec<u8>,
) -> Result<Visitor, Bypass> {
    let mut visitor = examine(received, rules)?;
    if put_key_of(received, rules, visitor.class, key)? {
        let cookies = cookies::class_of_tried(received.head, rules);
        visitor.left_out.set(Trait::Cookies, cookies);
    }
    if received.is_guest {
        visitor.left_out.set(Trait::Session, 1);
    }
    Ok(visitor)
}

/// Reads everything but the cookies.
fn examine(received: &ReceivedRequest<'_>, rules: &Rules) -> Result<Visitor, Bypass> {
    let (class, left_out) = fields::examine(received.head, (received.host, received.port))?;
    paths::examine(received.target, rules)?;
    let rewritten = received.rewritten.map(|(_, args)| args);
    arguments::examine(received.target, rewritten, rules)?;
    Ok(Visitor {
        class,
        left_out: left_out.from(received.client),
    })
}

/// Returns the traits left out when responses have named these fields (lower case) in `Vary`: the parts of
/// them that are sent separate variants.
#[must_use]
pub fn without_varied(
    received: &ReceivedRequest<'_>,
    names: &[String],
    left_out: LeftOut,
) -> LeftOut {
    fields::without_varied(received.head, names, left_out)
}

/// Appends the values of the traits in `keyed` that the application is sent to a key: languages in their one
/// form, cookies, and the kind of browser. Others are in no key.
pub fn put_keyed(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    keyed: TraitSet,
    key: &mut Vec<u8>,
) -> Result<(), Bypass> {
    let start = key.len();
    if keyed.has(Trait::Language) {
        key.extend_from_slice(&[SEPARATOR, b'l']);
        varied::put_value(received.head, "accept-language", key);
    }
    if keyed.has(Trait::Cookies) {
        key.extend_from_slice(&[SEPARATOR, b'c']);
        cookies::put_tried(received.head, rules, key);
    }
    if keyed.has(Trait::Agent)
        && let Some(browser) = received.browser()
    {
        key.extend_from_slice(&[SEPARATOR, b'a']);
        key.extend_from_slice(&browser.code());
    }
    match key.len() - start > MAX_KEY_COOKIE_BYTES {
        true => Err(Bypass::TooLong),
        false => Ok(()),
    }
}

/// Like [`put_key`], for a request that cookies would make personal: cookies that are in no key are passed
/// over. The key differs from every key of [`put_key`]. The application, which has seen the cookies,
/// decides who may get the page stored under it.
///
/// # Errors
/// Why the request is personal for another reason; the caller discards the appended bytes.
pub fn put_visitors_key(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    key: &mut Vec<u8>,
) -> Result<Class, Bypass> {
    let Visitor { class, .. } = examine(received, rules)?;
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

/// Appends the key of a request whose visitor is of this class. True where the request has cookies that are
/// tried.
fn put_key_of(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    class: Class,
    key: &mut Vec<u8>,
) -> Result<bool, Bypass> {
    put_start(received, rules, class.letter(), key);
    let start = key.len();
    let has_tried = cookies::put_counted(received.head, rules, received.is_guest, key)?;
    match key.len() - start > MAX_KEY_COOKIE_BYTES {
        true => Err(Bypass::TooLong),
        false => Ok(has_tried),
    }
}

/// Appends the part of a key before the cookies.
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

/// Appends the beginning of the keys of all answers for one URL: for any visitor's class and cookies. It
/// ends with a byte that no URL holds.
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
    /// The cookies that are in the key.
    KeyCookies,
    /// All but those that no page depends on: see [`put_visitors_key`].
    AllCookies,
}

/// The parts of a shared request's head, beside those that are always in the key.
pub struct SharedHead<'v> {
    pub class: Class,
    pub cookies: SentCookies,
    /// The fields that responses for this key have named in `Vary`; those that may be sent are.
    pub varied: &'v [String],
    /// Traits that are in the key ([`put_keyed`]).
    pub keyed: TraitSet,
    /// Traits that are tried: the visitor's own fields are sent as they are. The answer is compared, and
    /// shown to no visitor.
    pub tried: TraitSet,
    /// The cookies of a session that a trial was given, where [`Trait::Session`] is tried.
    pub session: Option<&'v [u8]>,
}

/// Appends the head of the request that the application is sent.
pub fn write_head(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    shared: &SharedHead<'_>,
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
    let tried = |it| shared.tried.has(it);
    if !(tried(Trait::Agent) && put_received(received, |name| is(name, "user-agent"), head)) {
        let keyed = shared.keyed.has(Trait::Agent);
        match keyed.then(|| received.browser()).flatten() {
            Some(browser) => put_field("User-Agent", &browser.user_agent(), head),
            None => put_field("User-Agent", shared.class.user_agent(), head),
        }
    }
    let mut accept = false;
    if tried(Trait::Hints) {
        put_received(received, |name| is(name, "accept"), head);
        accept = received.head.field(b"accept").is_some();
        put_received(received, fields::is_hint_field, head);
    }
    if tried(Trait::Language) {
        put_received(received, |name| is(name, "accept-language"), head);
    }
    if tried(Trait::Referer) {
        put_received(received, |name| is(name, "referer"), head);
    }
    if tried(Trait::Network) {
        put_received(received, fields::is_address_field, head);
    }
    let language = "accept-language".to_owned();
    let is_keyed = shared.keyed.has(Trait::Language) && !shared.varied.contains(&language);
    let varied = shared.varied.iter().chain(is_keyed.then_some(&language));
    for name in varied {
        let is_written = match &**name {
            "accept" => accept,
            "accept-language" => tried(Trait::Language),
            _ => tried(Trait::Hints),
        };
        if is_written {
            continue;
        }
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
    put_cookies(received, rules, shared, head);
    head.extend_from_slice(b"\r\n");
}

fn put_cookies(
    received: &ReceivedRequest<'_>,
    rules: &Rules,
    shared: &SharedHead<'_>,
    head: &mut Vec<u8>,
) {
    let start = head.len();
    head.extend_from_slice(b"Cookie: ");
    let value = head.len();
    let is_examined = match shared.cookies {
        // It was examined for the key; a personal cookie would have ended the matter there.
        SentCookies::KeyCookies => {
            cookies::put_counted(received.head, rules, received.is_guest, head).is_ok()
        }
        SentCookies::AllCookies => put_all_cookies(received, rules, head),
    };
    let sends_tried = shared.keyed.has(Trait::Cookies) || shared.tried.has(Trait::Cookies);
    if is_examined && sends_tried && shared.cookies == SentCookies::KeyCookies {
        let end = head.len();
        if end > value {
            head.extend_from_slice(b"; ");
        }
        if !cookies::put_tried(received.head, rules, head) {
            head.truncate(end);
        }
    }
    if let Some(session) = shared.session.filter(|_| is_examined) {
        if head.len() > value {
            head.extend_from_slice(b"; ");
        }
        head.extend_from_slice(session);
    }
    match is_examined && head.len() > value {
        true => head.extend_from_slice(b"\r\n"),
        false => head.truncate(start),
    }
}

/// Appends the received fields whose names are wanted; false if there is none.
fn put_received(
    received: &ReceivedRequest<'_>,
    is_wanted: impl Fn(&[u8]) -> bool,
    head: &mut Vec<u8>,
) -> bool {
    let start = head.len();
    for (name, value) in received.head.fields() {
        if is_wanted(name) {
            head.extend_from_slice(name);
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.len() > start
}

fn is(name: &[u8], wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted.as_bytes())
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

    fn of_first_page(head: RequestView<'_>) -> ReceivedRequest<'_> {
        ReceivedRequest {
            head,
            scheme: "http",
            host: b"a",
            port: None,
            server_port: 80,
            target: b"/",
            rewritten: None,
            client: None,
            is_guest: false,
        }
    }

    fn shared_head(class: Class, cookies: SentCookies, varied: &[String]) -> SharedHead<'_> {
        SharedHead {
            class,
            cookies,
            varied,
            keyed: TraitSet::NONE,
            tried: TraitSet::NONE,
            session: None,
        }
    }

    #[test]
    fn traits_are_sent_where_they_are_keyed_or_tried() {
        let set = |names: &[&str]| NameSet::new(names.iter().map(|name| name.as_bytes()));
        let rules = Rules {
            key_cookies: set(&["cur"]),
            removed_cookies: set(&["_ga*"]),
            tried_cookies: set(&["theme", "consent"]),
            ..Rules::default()
        };
        let text = "GET / HTTP/1.1\r\nUser-Agent: Odd/1\r\nAccept: text/html\r\nAccept-Language: DE-at, de\r\n\
            Referer: http://b/\r\nDNT: 1\r\nX-Forwarded-Host: b\r\nCF-Connecting-IP: 1.2.3.4\r\nCookie: theme=dark; _ga=1; cur=EUR; consent=1\r\n\r\n";
        let head = parse_head(text, &HeadLimits::default()).unwrap();
        let received = of_first_page(head.view());
        let visitor = put_key(&received, &rules, &mut Vec::new()).unwrap();
        let sent = |keyed: &[Trait], tried: &[Trait]| {
            let set = |of: &[Trait]| of.iter().fold(TraitSet::NONE, |set, it| set.with(*it));
            let shared = SharedHead {
                keyed: set(keyed),
                tried: set(tried),
                ..shared_head(visitor.class, SentCookies::KeyCookies, &[])
            };
            let mut out = Vec::new();
            write_head(&received, &rules, &shared, &mut out);
            let text = String::from_utf8(out).unwrap();
            let lines = text.split("\r\n").filter(|line| !line.is_empty()).skip(2);
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let agent = format!("User-Agent: {}", visitor.class.user_agent());
        let accept = format!("Accept: {}", media::ACCEPT);
        let own = [&agent, &accept, "Cookie: cur=EUR"];
        assert_eq!(sent(&[], &[]), own);
        assert_eq!(
            sent(&[Trait::Language, Trait::Cookies], &[]),
            [
                &agent,
                "accept-language: de-at,de;q=0.9",
                &accept,
                "Cookie: cur=EUR; consent=1; theme=dark"
            ]
        );
        for (tried, wanted) in [
            (Trait::Agent, vec!["User-Agent: Odd/1", &accept, own[2]]),
            (
                Trait::Hints,
                vec![&agent, "Accept: text/html", "DNT: 1", own[2]],
            ),
            (
                Trait::Language,
                vec![&agent, "Accept-Language: DE-at, de", &accept, own[2]],
            ),
            (
                Trait::Referer,
                vec![&agent, "Referer: http://b/", &accept, own[2]],
            ),
            (
                Trait::Network,
                vec![&agent, "CF-Connecting-IP: 1.2.3.4", &accept, own[2]],
            ),
        ] {
            assert_eq!(sent(&[], &[tried]), wanted, "{tried:?}");
        }
        let mut key = Vec::new();
        put_keyed(&received, &rules, TraitSet::ALL, &mut key).unwrap();
        assert_eq!(key, b"\0lde-at,de;q=0.9\0cconsent=1; theme=dark");
    }

    /// Returns the keys of a request with this Cookie field, and the cookies sent with all of them.
    fn visitor(cookies: &str) -> (Option<Vec<u8>>, Vec<u8>, String) {
        let set = |names: &[&str]| NameSet::new(names.iter().map(|name| name.as_bytes()));
        let rules = Rules {
            personal_cookies: set(&["login_*"]),
            key_cookies: set(&["lang"]),
            removed_cookies: set(&["_ga*"]),
            ..Rules::default()
        };
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nDNT: 1\r\nCookie: {cookies}\r\n\r\n");
        let head = parse_head(text, &HeadLimits::default()).unwrap();
        let received = of_first_page(head.view());
        let (mut shared, mut own, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        let shared = put_key(&received, &rules, &mut shared).ok().map(|_| shared);
        let class = put_visitors_key(&received, &rules, &mut own).unwrap();
        let head = shared_head(class, SentCookies::AllCookies, &[]);
        write_head(&received, &rules, &head, &mut sent);
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
        assert!(!sent.contains("DNT"), "{sent}");
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
            client: None,
            is_guest: false,
        };
        let (mut key, mut sent) = (Vec::new(), Vec::new());
        let class = put_key(&received, &rules, &mut key).unwrap().class;
        let letter = char::from(class.letter());
        assert_eq!(
            String::from_utf8_lossy(&key),
            format!(
                "https://a.example:8443/p?b=1\0{letter}443 /index.php?q=p\0lang=de; theme=dark"
            )
        );
        let varied = ["accept-language", "x-absent"].map(str::to_owned);
        let shared = shared_head(class, SentCookies::KeyCookies, &varied);
        write_head(&received, &rules, &shared, &mut sent);
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
