//! W3C Trace Context (<https://www.w3.org/TR/trace-context/>): reads the fields of a request that
//! name its trace, and writes those of the next request.
//!
//! Reading is strict: a field that is not exactly as specified counts as if it were not there.

use std::fmt;

/// Sixteen bytes, not all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Eight bytes, not all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// `tracestate` of a parent: valid members, as they came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceState(String);

/// The span that a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub context: TraceContext,
    pub state: TraceState,
}

/// The identity of one span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    /// The caller may have recorded it.
    pub is_sampled: bool,
}

/// The version that is written, and whose form every later one begins with (§4.3).
const VERSION: &[u8] = b"00";
/// Reserved as invalid (§3.2.2.1).
const INVALID_VERSION: &[u8] = b"ff";
/// Length of a `traceparent` of version 00.
const TRACEPARENT_BYTES: usize = 55;
const FLAG_SAMPLED: u8 = 1;

/// A longer `tracestate` is not taken over (§3.3.1.5 asks for at least this many bytes).
const MAX_STATE_BYTES: usize = 512;
/// §3.3.1.1.
const MAX_STATE_MEMBERS: usize = 32;
const MAX_KEY_BYTES: usize = 256;
const MAX_MEMBER_VALUE_BYTES: usize = 256;

impl TraceId {
    /// `None` if all bytes are zero.
    pub fn new(bytes: [u8; 16]) -> Option<TraceId> {
        (bytes != [0; 16]).then_some(TraceId(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// `None` if all bytes are zero.
    pub fn new(bytes: [u8; 8]) -> Option<SpanId> {
        (bytes != [0; 8]).then_some(SpanId(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl TraceContext {
    /// The value of `traceparent`.
    pub fn traceparent(&self) -> String {
        let flags = u8::from(self.is_sampled) * FLAG_SAMPLED;
        format!("00-{}-{}-{flags:02x}", self.trace_id, self.span_id)
    }
}

impl TraceState {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members of all `tracestate` fields together; nothing if one of them is wrong.
    fn read<'a>(fields: impl Iterator<Item = &'a [u8]>) -> TraceState {
        let mut text = String::new();
        let mut keys: Vec<&str> = Vec::new();
        for member in fields.flat_map(|field| field.split(|&byte| byte == b',')) {
            let member = member.trim_ascii();
            if member.is_empty() {
                // Allowed, and not worth to be sent on (§3.3.1.2).
                continue;
            }
            let Some((key, member)) = read_member(member) else {
                return TraceState::default();
            };
            if keys.contains(&key) || keys.len() == MAX_STATE_MEMBERS {
                return TraceState::default();
            }
            keys.push(key);
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(member);
            if text.len() > MAX_STATE_BYTES {
                return TraceState::default();
            }
        }
        TraceState(text)
    }
}

/// The key of a member, and all of it.
fn read_member(member: &[u8]) -> Option<(&str, &str)> {
    let member = std::str::from_utf8(member).ok()?;
    let (key, value) = member.split_once('=')?;
    let is_value_byte = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    let is_value = (1..=MAX_MEMBER_VALUE_BYTES).contains(&value.len())
        && value.bytes().all(is_value_byte)
        && !value.ends_with(' ');
    (is_key(key) && is_value).then_some((key, member))
}

/// §3.3.1.3.1: one identifier, or a tenant before `@` and a system behind it.
fn is_key(key: &str) -> bool {
    let is_rest = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'))
    };
    let begins = |text: &str, digit: bool| {
        let first = text.bytes().next();
        first.is_some_and(|byte| byte.is_ascii_lowercase() || (digit && byte.is_ascii_digit()))
    };
    match key.split_once('@') {
        None => key.len() <= MAX_KEY_BYTES && begins(key, false) && is_rest(key),
        Some((tenant, system)) => {
            tenant.len() <= 241
                && system.len() <= 14
                && begins(tenant, true)
                && begins(system, false)
                && is_rest(tenant)
                && is_rest(system)
        }
    }
}

impl Parent {
    /// Reads the `traceparent` and `tracestate` fields together. There may be several of the second
    /// (§3.3.1.1), and one of the first only.
    pub fn read<'a>(
        mut traceparent: impl Iterator<Item = &'a [u8]>,
        tracestate: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Parent> {
        let context = read_traceparent(traceparent.next()?)?;
        if traceparent.next().is_some() {
            return None;
        }
        Some(Parent {
            context,
            state: TraceState::read(tracestate),
        })
    }
}

fn read_traceparent(value: &[u8]) -> Option<TraceContext> {
    let value = value.trim_ascii();
    let (known, rest) = value.split_at_checked(TRACEPARENT_BYTES)?;
    let version = known.get(..2)?;
    if !version.iter().all(|&byte| is_hex(byte)) || version == INVALID_VERSION {
        return None;
    }
    // Later versions may have more behind another dash.
    let rest_is_right = match version == VERSION {
        true => rest.is_empty(),
        false => rest.is_empty() || rest.first() == Some(&b'-'),
    };
    let dashes = [2, 35, 52];
    if !rest_is_right || dashes.iter().any(|&at| known.get(at) != Some(&b'-')) {
        return None;
    }
    let [flags] = hex(known.get(53..55)?)?;
    Some(TraceContext {
        trace_id: TraceId::new(hex(known.get(3..35)?)?)?,
        span_id: SpanId::new(hex(known.get(36..52)?)?)?,
        is_sampled: flags & FLAG_SAMPLED != 0,
    })
}

/// Lower case alone (§3.2.2).
fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, odd) = text.as_chunks::<2>();
    if !odd.is_empty() || pairs.len() != N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// For the fuzz target: the first line is `traceparent`, the others are `tracestate`.
///
/// # Panics
/// When a field that was read is not read equally from the field that is sent on.
#[doc(hidden)]
pub fn fuzz_parent(bytes: &[u8]) {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let Some(parent) = Parent::read(lines.next().into_iter(), lines) else {
        return;
    };
    let sent = parent.context.traceparent();
    let state = [parent.state.as_str().as_bytes()];
    let again = Parent::read([sent.as_bytes()].into_iter(), state.into_iter());
    assert_eq!(again, Some(parent));
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn read(traceparent: &[&str], tracestate: &[&str]) -> Option<Parent> {
        Parent::read(
            traceparent.iter().map(|field| field.as_bytes()),
            tracestate.iter().map(|field| field.as_bytes()),
        )
    }

    #[test]
    fn a_valid_traceparent_is_read_and_written_the_same() {
        let parent = read(&[GOOD], &[]).expect("a parent");
        assert!(parent.context.is_sampled);
        assert_eq!(parent.context.traceparent(), GOOD);
        let unsampled = GOOD.replace("-01", "-00");
        let parent = read(&[&unsampled], &[]).expect("a parent");
        assert_eq!(parent.context.traceparent(), unsampled);
    }

    #[test]
    fn only_what_the_specification_allows_is_a_traceparent() {
        let ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
        for (value, is_valid) in [
            (format!("00-{ids}-01"), true),
            (format!(" 00-{ids}-01\t"), true),
            // Flags that are not yet assigned.
            (format!("00-{ids}-ff"), true),
            (format!("00-{ids}-02"), true),
            // Later versions.
            (format!("01-{ids}-01"), true),
            (format!("cc-{ids}-01-what-comes-next"), true),
            (format!("cc-{ids}-01."), false),
            (format!("cc-{ids}-011"), false),
            (format!("00-{ids}-01-more"), false),
            (format!("00-{ids}-01-"), false),
            (format!("ff-{ids}-01"), false),
            (format!("FF-{ids}-01"), false),
            (format!("0-{ids}-01"), false),
            (format!("00-{ids}-1"), false),
            (format!("00-{ids}-0g"), false),
            (format!("00-{ids}_01"), false),
            (format!("00-{ids}"), false),
            (format!("00 {ids}-01"), false),
            (format!("00-{}-01", ids.to_uppercase()), false),
            (format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)), false),
            (
                format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16)),
                false,
            ),
            (format!("00-{}é-01", &ids[..ids.len() - 2]), false),
            (String::new(), false),
            ("x".repeat(10_000), false),
        ] {
            assert_eq!(read(&[&value], &[]).is_some(), is_valid, "{value:?}");
        }
        assert_eq!(read(&[], &["a=b"]), None);
        assert_eq!(read(&[GOOD, GOOD], &[]), None, "which of the two?");
    }

    #[test]
    fn a_tracestate_is_taken_over_whole_or_not_at_all() {
        let many = |count: usize| {
            let members: Vec<String> = (0..count).map(|at| format!("k{at}=v")).collect();
            members.join(",")
        };
        let long_key = format!("{}=v", "k".repeat(257));
        let long_value = format!("k={}", "v".repeat(257));
        let two_long = format!("a={},b={}", "v".repeat(256), "v".repeat(256));
        for (fields, wanted) in [
            (vec![], ""),
            (vec!["a=b"], "a=b"),
            (vec!["a=b", "c=d"], "a=b,c=d"),
            (vec!["a=b , c=d,,\t"], "a=b,c=d"),
            (vec!["1t@sys=x y"], "1t@sys=x y"),
            (vec!["a=b,a=c"], ""),
            (vec!["A=b"], ""),
            (vec!["1=b"], ""),
            (vec!["a="], ""),
            (vec!["a"], ""),
            (vec!["a=b=c"], ""),
            (vec!["a=\u{e9}"], ""),
            (vec!["a@b@c=d"], ""),
            (vec!["@b=d"], ""),
            (vec![&long_key], ""),
            (vec![&long_value], ""),
            (vec![&two_long], ""),
        ] {
            let parent = read(&[GOOD], &fields).expect("a parent");
            assert_eq!(parent.state.as_str(), wanted, "{fields:?}");
        }
        let state = |text: &str| read(&[GOOD], &[text]).expect("a parent").state;
        assert_eq!(state(&many(32)).as_str(), many(32));
        assert!(state(&many(33)).is_empty());
    }
}
