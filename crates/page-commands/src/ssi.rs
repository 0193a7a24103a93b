//! The commands of SSI: `<!--#NAME PARAMETER="VALUE" ... -->`.

use http_cache::Encoding;

use crate::language::{CommandSearch, KEPT_SSI, Language, MAX_COMMAND_BYTES};

const START: &[u8] = b"<!--#";
const END: &[u8] = b"-->";

/// Server Side Includes.
pub struct Ssi;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub name: Vec<u8>,
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Command {
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name.as_bytes())
            .map(|(_, value)| value.as_slice())
    }
}

impl Language for Ssi {
    /// `None`: a command that cannot be read.
    type Command = Option<Command>;
    type CommandContext = ();
    const KEPT_AS: Encoding = KEPT_SSI;

    fn find(bytes: &[u8], _inside: &mut ()) -> CommandSearch {
        let mut from = 0;
        loop {
            let Some(start) = memchr::memmem::find(&bytes[from..], START) else {
                return CommandSearch::None(bytes.len() - held_at_end(&bytes[from..]));
            };
            let start = from + start;
            let inner = &bytes[start + START.len()..];
            let searched = &inner[..inner.len().min(MAX_COMMAND_BYTES)];
            match end_of_command(searched) {
                Some(end) => {
                    return CommandSearch::Command(start..start + START.len() + end + END.len());
                }
                None if inner.len() > MAX_COMMAND_BYTES => from = start + START.len(),
                None => return CommandSearch::None(start),
            }
        }
    }

    fn parse(command: &[u8]) -> Option<Command> {
        let inner = command.strip_prefix(START)?.strip_suffix(END)?;
        parse(inner)
    }
}

/// How many bytes at the end may be the beginning of [`START`].
fn held_at_end(bytes: &[u8]) -> usize {
    (1..START.len())
        .rev()
        .find(|&length| bytes.ends_with(&START[..length]))
        .unwrap_or(0)
}

/// Returns the position of `-->` outside of quotes.
fn end_of_command(inner: &[u8]) -> Option<usize> {
    let mut quote = None;
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        match (quote, byte) {
            (Some(_), b'\\') => at += 1,
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'-') if inner[at..].starts_with(END) => return Some(at),
            (None, _) => {}
        }
        at += 1;
    }
    None
}

fn parse(text: &[u8]) -> Option<Command> {
    let mut rest = text.trim_ascii();
    let end = rest
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(rest.len());
    let name = rest[..end].to_ascii_lowercase();
    rest = rest[end..].trim_ascii_start();
    let mut parameters = Vec::new();
    while !rest.is_empty() {
        let equals = rest.iter().position(|&byte| byte == b'=')?;
        let name = rest[..equals].trim_ascii().to_ascii_lowercase();
        rest = rest[equals + 1..].trim_ascii_start();
        let (&quote, behind) = rest.split_first()?;
        if quote != b'"' && quote != b'\'' {
            return None;
        }
        let (value, length) = quoted(behind, quote)?;
        parameters.push((name, value));
        rest = behind[length..].trim_ascii_start();
    }
    (!name.is_empty()).then_some(Command { name, parameters })
}

/// The value up to `quote`, and how far it reaches with it.
fn quoted(text: &[u8], quote: u8) -> Option<(Vec<u8>, usize)> {
    let mut value = Vec::new();
    let mut at = 0;
    loop {
        match *text.get(at)? {
            byte if byte == quote => return Some((value, at + 1)),
            b'\\' if text.get(at + 1) == Some(&quote) => {
                value.push(quote);
                at += 2;
            }
            byte => {
                value.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{Scanner, Token};

    fn shown(body: &str, cut: usize) -> Vec<String> {
        let mut scanner = Scanner::<Ssi>::default();
        let mut shown: Vec<String> = Vec::new();
        let mut add = |token: Token<Option<Command>>| match token {
            Token::Text(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                match shown.last_mut().filter(|last| !last.starts_with('<')) {
                    Some(last) => last.push_str(&text),
                    None => shown.push(text),
                }
            }
            Token::Command(Some(command)) => {
                let mut line = format!("<{}", String::from_utf8_lossy(&command.name));
                for (name, value) in command.parameters {
                    let (name, value) = (
                        String::from_utf8_lossy(&name).into_owned(),
                        String::from_utf8_lossy(&value).into_owned(),
                    );
                    line.push_str(&format!(" {name}={value}"));
                }
                shown.push(line);
            }
            Token::Command(None) => shown.push("<broken".to_owned()),
        };
        for piece in body.as_bytes().chunks(cut) {
            scanner
                .push(&Bytes::copy_from_slice(piece))
                .into_iter()
                .for_each(&mut add);
        }
        let rest = scanner.finish();
        if !rest.is_empty() {
            add(Token::Text(rest));
        }
        shown
    }

    #[test]
    fn commands_are_found_however_the_body_is_cut() {
        let cases: [(&str, &[&str]); 8] = [
            (
                "plain <!-- comment --> text",
                &["plain <!-- comment --> text"],
            ),
            ("a<!--#echo var=\"x\" -->b", &["a", "<echo var=x", "b"]),
            (
                "<!--# include virtual='/a?b' wait=\"yes\"-->",
                &["<include virtual=/a?b wait=yes"],
            ),
            (
                "<!--#set var=\"a\" value=\"-->\" -->",
                &["<set var=a value=-->"],
            ),
            ("<!--#set value=\"a\\\"b\" -->", &["<set value=a\"b"]),
            ("<!--#else -->", &["<else"]),
            ("<!--#echo var -->x", &["<broken", "x"]),
            ("x<!--#echo var=\"a", &["x<!--#echo var=\"a"]),
        ];
        for (body, wanted) in cases {
            for cut in 1..=body.len() {
                assert_eq!(shown(body, cut), wanted, "{body} cut at {cut}");
            }
        }
    }
}
