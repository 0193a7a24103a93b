//! Values for a client of one's own, which asks for little: an answer is read once all its bytes are there.

use crate::unreadable::Unreadable;

/// Lists within lists.
const MAX_DEPTH: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisValue {
    Null,
    Integer(i64),
    Text(Vec<u8>),
    Error(Vec<u8>),
    /// Of a map its keys and values in turn.
    List(Vec<RedisValue>),
    /// The server spoke without being asked.
    Push(Vec<RedisValue>),
    /// A number that is no integer, or a truth value.
    Other,
}

/// The value at the begin of `bytes`, and how many they are; `None`: it has not come in full.
///
/// # Errors
/// It is no value.
pub fn parse(bytes: &[u8]) -> Result<Option<(RedisValue, usize)>, Unreadable> {
    let mut rest = bytes;
    match value(&mut rest, 0) {
        Ok(value) => Ok(Some((value, bytes.len() - rest.len()))),
        Err(Stop::Cut) => Ok(None),
        Err(Stop::Unreadable) => Err(Unreadable),
    }
}

/// A command with its arguments in bytes.
pub fn command(arguments: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Why there is no value.
enum Stop {
    /// More bytes may come.
    Cut,
    Unreadable,
}

fn value(rest: &mut &[u8], depth: usize) -> Result<RedisValue, Stop> {
    let line = line(rest)?;
    let (kind, text) = line.split_first().ok_or(Stop::Unreadable)?;
    Ok(match kind {
        b'+' => RedisValue::Text(text.to_vec()),
        b'-' => RedisValue::Error(text.to_vec()),
        b':' => RedisValue::Integer(number(text).ok_or(Stop::Unreadable)?),
        b'_' => RedisValue::Null,
        b',' | b'#' | b'(' => RedisValue::Other,
        b'$' | b'=' | b'!' => match number(text).ok_or(Stop::Unreadable)? {
            -1 => RedisValue::Null,
            length => {
                let length = usize::try_from(length).map_err(|_| Stop::Unreadable)?;
                let end = length.checked_add(2).ok_or(Stop::Unreadable)?;
                let (text, behind) = rest.split_at_checked(end).ok_or(Stop::Cut)?;
                *rest = behind;
                let text = text.strip_suffix(b"\r\n").ok_or(Stop::Unreadable)?.to_vec();
                match kind {
                    b'!' => RedisValue::Error(text),
                    _ => RedisValue::Text(text),
                }
            }
        },
        b'*' | b'~' | b'%' | b'>' => {
            let times = if *kind == b'%' { 2 } else { 1 };
            match number(text).ok_or(Stop::Unreadable)? {
                -1 => RedisValue::Null,
                count => {
                    let count = usize::try_from(count).map_err(|_| Stop::Unreadable)?;
                    let count = count.checked_mul(times).ok_or(Stop::Unreadable)?;
                    let items = items(rest, count, depth)?;
                    match kind {
                        b'>' => RedisValue::Push(items),
                        _ => RedisValue::List(items),
                    }
                }
            }
        }
        _ => return Err(Stop::Unreadable),
    })
}

fn items(rest: &mut &[u8], count: usize, depth: usize) -> Result<Vec<RedisValue>, Stop> {
    if depth >= MAX_DEPTH {
        return Err(Stop::Unreadable);
    }
    // Not with room for `count`: a number alone asks for nothing.
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(value(rest, depth + 1)?);
    }
    Ok(items)
}

fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Stop> {
    let end = rest.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or(Stop::Cut)?;
    let (line, behind) = (rest.get(..end), rest.get(end + 1..));
    *rest = behind.unwrap_or_default();
    let line = line.and_then(|line| line.strip_suffix(b"\r"));
    line.ok_or(Stop::Unreadable)
}

fn number(text: &[u8]) -> Option<i64> {
    str::from_utf8(text).ok()?.parse().ok()
}
