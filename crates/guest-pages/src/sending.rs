//! Whether a page would send a token where the server's token stands in a request: only there is the application's put in its
//! place. A token in a text that a visitor writes, or in a link that others have written, stays the server's, which anybody may
//! know.

use std::ops::Range;

use shared_request::php;

use crate::exchange::Writing;
use crate::markup::{is_token_name, key_before, tags};

/// Tags of a page that are read.
const MAX_TAGS: usize = 20_000;
/// Bytes before a token, and behind it, in which its argument is looked for. A token has a thousand at most.
const MAX_ARGUMENT_BYTES: usize = 8 * 1024;
/// Places of one value in a page that are looked at.
const MAX_PLACES: usize = 64;

/// An argument of a request, as the application reads it; without its value, where its name is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentArgument {
    pub name: Vec<u8>,
    pub value: Vec<u8>,
}

/// Returns the argument of `text` that has these bytes; `None`: they stand in none, or in a long one.
#[must_use]
pub fn argument_at(text: &[u8], at: &Range<usize>, writing: Writing) -> Option<SentArgument> {
    // No more is read for each token of a body.
    let begin = at.start.saturating_sub(MAX_ARGUMENT_BYTES);
    let end = at.end.saturating_add(MAX_ARGUMENT_BYTES).min(text.len());
    let near = text.get(begin..end)?;
    let at = at.start - begin..at.end - begin;
    let edges = Edges {
        is_begin: begin == 0,
        is_end: end == text.len(),
    };
    match writing {
        Writing::Percent => of_query(near, &at, edges),
        Writing::Json => of_json(near, &at),
        Writing::Plain => of_part(near, &at, edges),
    }
}

/// Whether a text begins and ends where the whole one does.
#[derive(Clone, Copy)]
struct Edges {
    is_begin: bool,
    is_end: bool,
}

impl Edges {
    /// The place of a joint before an argument, or the begin of the text.
    fn begin(self, joint: Option<usize>, length: usize) -> Option<usize> {
        let behind = joint.map(|at| at + length);
        behind.or_else(|| self.is_begin.then_some(0))
    }

    /// The place of a joint behind an argument, or the end of the text.
    fn end(self, joint: Option<usize>, text: &[u8]) -> Option<usize> {
        joint.or_else(|| self.is_end.then_some(text.len()))
    }
}

fn of_query(text: &[u8], at: &Range<usize>, edges: Edges) -> Option<SentArgument> {
    let (before, after) = (text.get(..at.start)?, text.get(at.end..)?);
    let is_joint = |byte: &u8| matches!(byte, b'&' | b';' | b'?');
    let begin = edges.begin(before.iter().rposition(is_joint), 1)?;
    let end = after
        .iter()
        .position(|byte| is_joint(byte) || *byte == b'#');
    let end = edges.end(end.map(|length| at.end + length), text)?;
    let argument = text.get(begin..end)?;
    let joint = argument.iter().position(|byte| *byte == b'=');
    let is_value = joint.is_some_and(|length| begin + length < at.end);
    let (name, value) = argument.split_at(joint.unwrap_or(argument.len()));
    Some(SentArgument {
        name: php::decode(name, true),
        value: match is_value {
            true => php::decode(value.get(1..)?, true),
            false => Vec::new(),
        },
    })
}

fn of_json(text: &[u8], at: &Range<usize>) -> Option<SentArgument> {
    let (value, rest) = json_string(text, at)?;
    let begin = at.start
        - text
            .get(..at.start)?
            .iter()
            .rev()
            .position(|byte| *byte == b'"')?;
    let is_name = rest.trim_ascii_start().first() == Some(&b':');
    if is_name {
        return Some(SentArgument {
            name: value,
            value: Vec::new(),
        });
    }
    let before = text
        .get(..begin - 1)?
        .trim_ascii_end()
        .strip_suffix(b":")?
        .trim_ascii_end();
    let name = before.strip_suffix(b"\"")?;
    let name = name.get(name.iter().rposition(|byte| *byte == b'"')? + 1..)?;
    Some(SentArgument {
        name: without_backslashes(name),
        value,
    })
}

/// The string of JSON around these bytes, and the text behind it.
fn json_string<'t>(text: &'t [u8], at: &Range<usize>) -> Option<(Vec<u8>, &'t [u8])> {
    let begin = text
        .get(..at.start)?
        .iter()
        .rposition(|byte| *byte == b'"')?
        + 1;
    let rest = text.get(begin..)?;
    let mut is_escaped = false;
    let end = rest.iter().position(|&byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })?;
    Some((without_backslashes(rest.get(..end)?), rest.get(end + 1..)?))
}

/// An argument of `multipart/form-data`.
fn of_part(text: &[u8], at: &Range<usize>, edges: Edges) -> Option<SentArgument> {
    let (before, after) = (text.get(..at.start)?, text.get(at.end..)?);
    let part = memchr::memmem::rfind(before, b"--").map(|at| at + 2)?;
    // A token with hyphens before it is in the part before.
    let part = edges.begin(memchr::memmem::rfind(text.get(..part)?, b"\r\n--"), 4)?;
    let end = memchr::memmem::find(after, b"\r\n--").map(|length| at.end + length);
    let end = edges.end(end, text)?;
    let part = text.get(part..end)?;
    let (head, value) = part.split_at(memchr::memmem::find(part, b"\r\n\r\n")?);
    let name = head.get(memchr::memmem::find(head, b" name=\"")? + 7..)?;
    let name = name.get(..name.iter().position(|byte| *byte == b'"')?)?;
    let is_name = end - value.len() >= at.end;
    Some(SentArgument {
        name: name.to_vec(),
        value: match is_name {
            true => Vec::new(),
            false => value.get(4..)?.to_vec(),
        },
    })
}

impl SentArgument {
    /// The argument with the application's token in the place of the server's. `own`: as it stands in the page.
    #[must_use]
    pub fn with(&self, server: &[u8], own: &[u8]) -> SentArgument {
        SentArgument {
            name: replaced(&self.name, server, own),
            value: replaced(&self.value, server, own),
        }
    }
}

/// A target, decoded, with the application's tokens in the place of the server's, which stand before them in `pairs`.
#[must_use]
pub fn target_with<'t>(
    target: &[u8],
    pairs: impl Iterator<Item = (&'t [u8], &'t [u8])>,
) -> Vec<u8> {
    pairs.fold(php::decode(target, false), |text, (server, own)| {
        replaced(&text, server, own)
    })
}

fn replaced(text: &[u8], server: &[u8], own: &[u8]) -> Vec<u8> {
    let own = plain(own);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for place in memchr::memmem::find_iter(text, server) {
        out.extend_from_slice(text.get(at..place).unwrap_or_default());
        out.extend_from_slice(&own);
        at = place + server.len();
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    out
}

/// What a page sends.
#[derive(Debug, Default)]
pub struct SendingPage<'p> {
    body: &'p [u8],
    target: &'p [u8],
    /// Names and values of fields that no visitor writes, each with the target of its form, where that is sent by GET.
    fixed: Vec<(SentArgument, Option<Vec<u8>>)>,
    /// Names of fields that visitors write.
    written: Vec<Vec<u8>>,
    /// Targets of links, as they stand there.
    links: Vec<Vec<u8>>,
    /// Those of forms.
    actions: Vec<Vec<u8>>,
}

impl<'p> SendingPage<'p> {
    /// `target`: that of the page.
    #[must_use]
    pub fn of(body: &'p [u8], target: &'p [u8]) -> SendingPage<'p> {
        let mut page = SendingPage {
            body,
            target,
            ..SendingPage::default()
        };
        let mut form = None;
        for tag in tags(body).take(MAX_TAGS) {
            let attribute = |name: &str| tag.attribute(name).map(unescaped);
            let is = |name: &str| tag.name.eq_ignore_ascii_case(name.as_bytes());
            page.links
                .extend(attribute("href").or_else(|| attribute("formaction")));
            if is("form") {
                let method = attribute("method").unwrap_or_default();
                let action = attribute("action").unwrap_or_default();
                page.actions.push(action.clone());
                form = (method.is_empty() || method.eq_ignore_ascii_case(b"get")).then_some(action);
            } else if is("input") || is("button") {
                let kind = attribute("type").unwrap_or_default().to_ascii_lowercase();
                let is_fixed = is("button")
                    || matches!(&kind[..], b"hidden" | b"submit" | b"image" | b"button");
                let name = attribute("name").unwrap_or_default();
                match is_fixed {
                    true => {
                        let value = attribute("value").unwrap_or_default();
                        page.fixed
                            .push((SentArgument { name, value }, form.clone()));
                    }
                    false => page.written.push(name),
                }
            } else if is("textarea") || is("select") {
                page.written.extend(attribute("name"));
            }
        }
        page
    }

    /// Would a form or a script of the page send this argument?
    #[must_use]
    pub fn sends(&self, argument: &SentArgument) -> bool {
        let SentArgument { name, value } = argument;
        if self.fixed.iter().any(|(it, _)| it == argument) {
            return true;
        }
        if value.is_empty() {
            return self.fixed.iter().any(|(it, _)| it.name == *name)
                || self.has(name).next().is_some();
        }
        if self.written.contains(name) {
            return false;
        }
        self.has(value)
            .any(|before| is_token_name(name) || names(before, name))
    }

    /// Would a script of the page send the token of a cookie in this argument?
    #[must_use]
    pub fn sends_of_cookie(&self, argument: &SentArgument, token: &[u8]) -> bool {
        let SentArgument { name, value } = argument;
        *value == plain(token) && is_token_name(name) && !self.written.contains(name)
    }

    /// Is this a whole value somewhere in the page? A script sends it in a field such as `X-CSRF-Token`.
    #[must_use]
    pub fn has_value(&self, value: &[u8]) -> bool {
        self.has(value).next().is_some()
    }

    /// Does a form or a link of the page lead to this target? It is decoded.
    #[must_use]
    pub fn writes_to(&self, target: &[u8]) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|action| self.resolved(action) == target) || self.leads_to(target, &[])
    }

    /// Is there a link to this target, or a form that leads there by GET with these arguments? `target` is decoded.
    #[must_use]
    pub fn leads_to(&self, target: &[u8], arguments: &[SentArgument]) -> bool {
        let path = path_of(target);
        let is_form = |argument: &SentArgument| {
            let mut fixed = self.fixed.iter();
            fixed.any(|(it, action)| {
                let action = action.as_ref().map(|action| self.resolved(action));
                it == argument && action.is_some_and(|action| path_of(&action) == path)
            })
        };
        self.links.iter().any(|link| self.resolved(link) == target)
            || !arguments.is_empty() && arguments.iter().all(is_form)
    }

    /// The target of a link, decoded, whatever its host.
    fn resolved(&self, link: &[u8]) -> Vec<u8> {
        let link = plain(link);
        let link = link.split(|&byte| byte == b'#').next().unwrap_or_default();
        let rest = link
            .strip_prefix(b"https:")
            .or(link.strip_prefix(b"http:"))
            .unwrap_or(link);
        if let Some(rest) = rest.strip_prefix(b"//") {
            let host = rest
                .iter()
                .position(|byte| matches!(byte, b'/' | b'?'))
                .unwrap_or(rest.len());
            let target = rest.get(host..).unwrap_or_default();
            return if target.starts_with(b"/") {
                target.to_vec()
            } else {
                [b"/", target].concat()
            };
        }
        let own = path_of(self.target);
        match link.first() {
            Some(b'/') => link.to_vec(),
            None | Some(b'?') => [own, link].concat(),
            Some(_) => {
                let folder = own
                    .iter()
                    .rposition(|byte| *byte == b'/')
                    .map_or(0, |at| at + 1);
                let (mut folder, mut link) = (own.get(..folder).unwrap_or_default(), link);
                while let Some(rest) = link
                    .strip_prefix(b"./")
                    .or_else(|| link.strip_prefix(b"../"))
                {
                    if link.starts_with(b"../") {
                        let parent = folder.strip_suffix(b"/").unwrap_or(folder);
                        let end = parent
                            .iter()
                            .rposition(|byte| *byte == b'/')
                            .map_or(0, |at| at + 1);
                        folder = parent.get(..end).unwrap_or_default();
                    }
                    link = rest;
                }
                [folder, link].concat()
            }
        }
    }

    /// The text before each place of the page where this is a whole value.
    fn has(&self, value: &[u8]) -> impl Iterator<Item = &'p [u8]> {
        let body = self.body;
        let shown: Vec<Vec<u8>> = spellings(value);
        let places = shown
            .into_iter()
            .filter(|it| !it.is_empty())
            .flat_map(move |shown| {
                let places = memchr::memmem::find_iter(body, &shown).take(MAX_PLACES);
                places.map(|at| at..at + shown.len()).collect::<Vec<_>>()
            });
        places.filter_map(move |place| {
            let (before, after) = (body.get(..place.start)?, body.get(place.end..)?);
            let is_end = |byte: Option<&u8>| {
                byte.is_none_or(|byte| {
                    !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_' | b'%' | b'+')
                })
            };
            (is_end(before.last()) && is_end(after.first())).then_some(before)
        })
    }
}

fn path_of(target: &[u8]) -> &[u8] {
    target
        .split(|&byte| byte == b'?')
        .next()
        .unwrap_or_default()
}

/// Is this the name of what stands behind the text: `?name=` in a link, `"name": "` or `name = '` in a script?
fn names(before: &[u8], name: &[u8]) -> bool {
    if key_before(before) != Some(name) || name.is_empty() {
        return false;
    }
    let last = |byte: u8| before.iter().rposition(|it| *it == byte);
    let is_in_tag = last(b'<').is_some_and(|begin| last(b'>').is_none_or(|end| end < begin));
    // An attribute is no argument.
    let outer = before
        .strip_suffix(b"=")
        .and_then(|before| before.strip_suffix(name));
    let is_argument = outer.is_some_and(|it| matches!(it.last(), Some(b'?' | b'&' | b';')));
    !is_in_tag || is_argument
}

/// The ways in which a page may write a value.
fn spellings(value: &[u8]) -> Vec<Vec<u8>> {
    let replaced = |byte: u8, by: &[u8]| {
        let pieces: Vec<&[u8]> = value.split(|it| *it == byte).collect();
        pieces.join(by)
    };
    let mut all = vec![value.to_vec()];
    for (byte, by) in [
        (b'/', &b"\\/"[..]),
        (b'"', b"&quot;"),
        (b'\'', b"&#039;"),
        (b'&', b"&amp;"),
    ] {
        if value.contains(&byte) {
            all.push(replaced(byte, by));
        }
    }
    let escaped = percent_encoded(value);
    if escaped != value {
        all.push(escaped);
    }
    all
}

fn percent_encoded(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for byte in value {
        match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            true => out.push(*byte),
            false => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

/// A text of a page without the escapes of scripts and links.
fn plain(text: &[u8]) -> Vec<u8> {
    php::decode(&without_backslashes(&unescaped(text)), false)
}

fn without_backslashes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.split_first()) {
            (b'\\', Some((&next, after))) if matches!(next, b'/' | b'"' | b'\\' | b'\'') => {
                out.push(next);
                rest = after;
            }
            _ => out.push(byte),
        }
    }
    out
}

/// A text of a page with the characters that its entities stand for.
fn unescaped(text: &[u8]) -> Vec<u8> {
    const NAMED: [(&[u8], u8); 5] = [
        (b"amp", b'&'),
        (b"quot", b'"'),
        (b"apos", b'\''),
        (b"lt", b'<'),
        (b"gt", b'>'),
    ];
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let end = after
            .iter()
            .take(8)
            .position(|it| *it == b';')
            .filter(|_| byte == b'&');
        let name = end.and_then(|end| after.get(..end)).unwrap_or_default();
        let number = name
            .strip_prefix(b"#")
            .and_then(|it| str::from_utf8(it).ok());
        let number = number.and_then(|it| match it.strip_prefix(['x', 'X']) {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => it.parse().ok(),
        });
        let known = number.filter(u8::is_ascii).or_else(|| {
            NAMED
                .iter()
                .find(|(it, _)| *it == name)
                .map(|(_, byte)| *byte)
        });
        out.push(known.unwrap_or(byte));
        rest = match (known, end) {
            (Some(_), Some(end)) => after.get(end + 1..).unwrap_or_default(),
            _ => after,
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &[u8] = br#"<meta name="csrf-token" content="m3t4">
        <form action="/send" method="post"><input value='0wn==' type=hidden name="key"><input name=f1n4me type=hidden value=1>
        <input name="token_note"><textarea name="text"></textarea><button name=b value=0wn==>Go</button></form>
        <form action="http://a.example/search"><input type="hidden" name="s" value="g3t"></form>
        <a href="/leave?key=0wn%3D%3D&amp;to=/">Leave</a><a href='../go?key=0wn=='></a><a href=?key=0wn#top></a><img src="/image?code=p1c">
        <script>var my_post_key = "scr1pt"; let other = {"sesc":"j50n"};</script>"#;

    fn argument(name: &str, value: &str) -> SentArgument {
        SentArgument {
            name: name.into(),
            value: value.into(),
        }
    }

    #[test]
    fn the_argument_around_a_token_is_found() {
        let multipart =
            "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\na-TOKEN\r\n--x--";
        for (text, writing, expected) in [
            (
                "a=1&key=TOKEN%3D%3D&b=2",
                Writing::Percent,
                Some(("key", "TOKEN==")),
            ),
            (
                "text=I+quote+%28TOKEN%29",
                Writing::Percent,
                Some(("text", "I quote (TOKEN)")),
            ),
            ("TOKEN=1&a", Writing::Percent, Some(("TOKEN", ""))),
            ("a&TOKEN", Writing::Percent, Some(("TOKEN", ""))),
            (
                "/leave?key=TOKEN#top",
                Writing::Percent,
                Some(("key", "TOKEN")),
            ),
            (
                "{\"a\": 1, \"key\" : \"x\\/TOKEN\"}",
                Writing::Json,
                Some(("key", "x/TOKEN")),
            ),
            ("{\"TOKEN\": 1}", Writing::Json, Some(("TOKEN", ""))),
            ("[\"TOKEN\"]", Writing::Json, None),
            (multipart, Writing::Plain, Some(("key", "a-TOKEN"))),
            ("key=TOKEN", Writing::Plain, None),
        ] {
            let at = text.find("TOKEN").unwrap();
            let found = argument_at(text.as_bytes(), &(at..at + 5), writing);
            assert_eq!(
                found,
                expected.map(|(name, value)| argument(name, value)),
                "{text}"
            );
        }
    }

    /// A body may have many tokens, and be large: no more is read for each.
    #[test]
    fn a_long_argument_is_none() {
        let long = "x".repeat(MAX_ARGUMENT_BYTES + 1);
        for (text, writing) in [
            (format!("key={long}TOKEN"), Writing::Percent),
            (format!("key=TOKEN{long}&a=1"), Writing::Percent),
            (format!("{{\"key\":\"{long}TOKEN\"}}"), Writing::Json),
            (
                format!("--x\r\nA: name=\"k\"\r\n\r\nTOKEN{long}\r\n--x--"),
                Writing::Plain,
            ),
        ] {
            let at = text.find("TOKEN").unwrap();
            assert_eq!(argument_at(text.as_bytes(), &(at..at + 5), writing), None);
        }
        let text = format!("{long}&key=TOKEN&{long}");
        let at = text.find("TOKEN").unwrap();
        let found = argument_at(text.as_bytes(), &(at..at + 5), Writing::Percent);
        assert_eq!(found, Some(argument("key", "TOKEN")));
    }

    #[test]
    fn a_page_sends_its_tokens_where_its_forms_and_scripts_do() {
        let page = SendingPage::of(PAGE, b"/shop/page?x=1");
        for (name, value, expected) in [
            ("key", "0wn==", true),
            ("b", "0wn==", true),
            ("f1n4me", "1", true),
            ("f1n4me", "", true),
            ("my_post_key", "scr1pt", true),
            ("sesc", "j50n", true),
            ("_token", "m3t4", true),
            ("csrfToken", "m3t4", true),
            // Of a field that visitors write, of a name that says nothing, and of more than the token.
            ("text", "0wn==", false),
            ("token_note", "m3t4", false),
            ("u", "m3t4", false),
            ("keyword", "m3t4", false),
            ("author", "scr1pt", false),
            // The attribute of a field is no name of an argument.
            ("value", "0wn==", false),
            ("content", "m3t4", false),
            ("key", "I quote (0wn==)", false),
            ("key", "0wn", true),
            ("token", "scr1", false),
        ] {
            assert_eq!(
                page.sends(&argument(name, value)),
                expected,
                "{name}={value}"
            );
        }
    }

    #[test]
    fn a_page_leads_where_its_links_and_forms_do() {
        let page = SendingPage::of(PAGE, b"/shop/page?x=1");
        let found = [argument("s", "g3t")];
        assert!(page.leads_to(b"/leave?key=0wn==&to=/", &[]));
        assert!(page.leads_to(b"/search?s=g3t&q=x", &found));
        assert!(page.leads_to(b"/go?key=0wn==", &[]));
        assert!(page.writes_to(b"/send") && page.writes_to(b"/go?key=0wn=="));
        assert!(page.leads_to(b"/shop/page?key=0wn", &[]));
        for (target, arguments) in [
            ("/out?u=0wn==", &[][..]),
            ("/leave?key=0wn==&to=/elsewhere", &[]),
            ("/send?key=0wn==", &[argument("key", "0wn==")]),
            ("/send", &[]),
            ("/other?s=g3t", &found),
        ] {
            assert!(!page.leads_to(target.as_bytes(), arguments), "{target}");
        }
    }

    #[test]
    fn broken_pages_are_read_to_their_end() {
        for text in [
            "<",
            "<a",
            "<a href",
            "<a href=",
            "<a href='x",
            "<input <b>",
            "<a =>",
            "&#",
            "&#x;",
            "%",
            "%4",
            "\\",
        ] {
            let page = SendingPage::of(text.as_bytes(), b"/");
            assert!(!page.sends(&argument("a", "b")), "{text}");
            plain(text.as_bytes());
        }
    }

    #[test]
    fn the_servers_token_is_replaced_in_an_argument() {
        let sent = argument("a[T0K3N]", "1:T0K3N");
        assert_eq!(
            sent.with(b"T0K3N", b"x\\/y%3D"),
            argument("a[x/y=]", "1:x/y=")
        );
    }
}
