//! A body in text and commands, however it is cut into pieces.
//!
//! A command is `<!--#NAME PARAMETER="VALUE" ... -->`. What looks like one and is
//! not whole at the end of the body, or longer than [`MAX_COMMAND_BYTES`], is text.

use bytes::{Bytes, BytesMut};

/// A command with many long values; more is text that only looks like one.
const MAX_COMMAND_BYTES: usize = 16 * 1024;
const START: &[u8] = b"<!--#";
const END: &[u8] = b"-->";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Text(Bytes),
    Command(Command),
    /// A command that cannot be read.
    Broken,
}

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

/// Bytes in, tokens out.
#[derive(Debug, Default)]
pub struct Scanner {
    /// The beginning of a command whose end has not come.
    held: BytesMut,
}

impl Scanner {
    pub fn push(&mut self, bytes: &Bytes) -> Vec<Token> {
        let mut rest = if self.held.is_empty() {
            bytes.clone()
        } else {
            self.held.extend_from_slice(bytes);
            std::mem::take(&mut self.held).freeze()
        };
        let mut tokens = Vec::new();
        loop {
            let Some(start) = memchr::memmem::find(&rest, START) else {
                let kept = held_at_end(&rest);
                text(&mut tokens, rest.slice(..rest.len() - kept));
                self.held.extend_from_slice(&rest[rest.len() - kept..]);
                return tokens;
            };
            text(&mut tokens, rest.slice(..start));
            let inner = &rest[start + START.len()..];
            match command(inner) {
                Some((token, length)) => {
                    tokens.push(token);
                    rest = rest.slice(start + START.len() + length..);
                }
                None if inner.len() > MAX_COMMAND_BYTES => {
                    text(&mut tokens, rest.slice(start..start + START.len()));
                    rest = rest.slice(start + START.len()..);
                }
                None => {
                    self.held.extend_from_slice(&rest[start..]);
                    return tokens;
                }
            }
        }
    }

    /// What was taken for the beginning of a command.
    pub fn finish(self) -> Bytes {
        self.held.freeze()
    }
}

fn text(tokens: &mut Vec<Token>, bytes: Bytes) {
    if !bytes.is_empty() {
        tokens.push(Token::Text(bytes));
    }
}

/// How many bytes at the end may be the beginning of [`START`].
fn held_at_end(bytes: &[u8]) -> usize {
    (1..START.len())
        .rev()
        .find(|&length| bytes.ends_with(&START[..length]))
        .unwrap_or(0)
}

/// A command behind its start, and how long it is; `None` while its end is missing.
fn command(inner: &[u8]) -> Option<(Token, usize)> {
    let end = end_of_command(inner)?;
    let token = match parse(&inner[..end]) {
        Some(command) => Token::Command(command),
        None => Token::Broken,
    };
    Some((token, end + END.len()))
}

/// Where `-->` stands outside of quotes.
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
    use super::*;

    fn shown(body: &str, cut: usize) -> Vec<String> {
        let mut scanner = Scanner::default();
        let mut shown: Vec<String> = Vec::new();
        let mut add = |token: Token| match token {
            Token::Text(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                match shown.last_mut().filter(|last| !last.starts_with('<')) {
                    Some(last) => last.push_str(&text),
                    None => shown.push(text),
                }
            }
            Token::Command(command) => {
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
            Token::Broken => shown.push("<broken".to_owned()),
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
