//! Which of a key's variants a request selects (RFC 9111 §4.1).
//!
//! A response's `Vary` names request fields; their values, normalised, are the secondary key. The
//! normalisation decides how many copies there are, so it is thorough where it is safe:
//! `Accept-Encoding` is reduced to the set of codings the client takes, `Accept-Language` to its ranges
//! and their weights, and `Cookie` to its cookies, both in the order sent. `cookie=NAME`, which is the
//! name of no field, stands for one cookie. Which cookies and arguments of a request count is decided
//! before it comes here. Values are kept whole and compared whole, never as hashes.

use crate::fields::RequestFields;
use crate::reason::Reason;
use crate::size_class::allocated;
use http_semantics::accept_encoding::{MOST, thousandths};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bound on the field names of one `Vary`; honest applications name three or four.
const MAX_NAMES: usize = 16;

/// Bound on the values kept per variant; a client chooses them, so they must not fill the memory.
const MAX_VALUES_BYTES: usize = 8 * 1024;

/// The prefix of a cookie's name among the names of fields. No field has such a name: `=` cannot stand in
/// the name of one (RFC 9110 §5.6.2).
pub const ONE_COOKIE: &str = "cookie=";

/// The fields that a response varies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarySpec {
    /// Lower case, sorted, each once.
    names: Vec<String>,
}

/// The fields that a response varies on, and the values for which it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryKey {
    spec: Arc<VarySpec>,
    values: Box<[u8]>,
}

impl VaryKey {
    /// Reads `Vary` field values and takes the request's values for them. None when the response
    /// does not vary.
    ///
    /// # Errors
    /// `Vary: *`, or more than can be kept.
    pub fn of<'a>(
        vary: impl Iterator<Item = &'a [u8]>,
        request: &dyn RequestFields,
    ) -> Result<Option<VaryKey>, Reason> {
        let mut names: Vec<String> = Vec::new();
        for name in vary
            .flat_map(|v| v.split(|&b| b == b','))
            .map(<[u8]>::trim_ascii)
        {
            if name.is_empty() {
                continue;
            }
            if name == b"*" {
                return Err(Reason::VaryStar);
            }
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            if !names.contains(&name) {
                if names.len() == MAX_NAMES {
                    return Err(Reason::VaryTooLong);
                }
                names.push(name);
            }
        }
        if names.is_empty() {
            return Ok(None);
        }
        names.sort_unstable();
        let spec = VarySpec { names };
        let mut values = Vec::new();
        spec.values(request, &mut values);
        if values.len() + spec.names.iter().map(String::len).sum::<usize>() > MAX_VALUES_BYTES {
            return Err(Reason::VaryTooLong);
        }
        Ok(Some(VaryKey {
            spec: Arc::new(spec),
            values: values.into(),
        }))
    }

    /// Creates a key from its parts in a record.
    pub(crate) fn of_parts(spec: VarySpec, values: &[u8]) -> VaryKey {
        VaryKey {
            spec: Arc::new(spec),
            values: values.into(),
        }
    }

    /// Creates the key of a request for the fields that a response is known to vary on.
    #[must_use]
    pub(crate) fn for_request(spec: Arc<VarySpec>, request: &dyn RequestFields) -> VaryKey {
        let mut values = Vec::new();
        spec.values(request, &mut values);
        VaryKey {
            spec,
            values: values.into(),
        }
    }

    /// Returns the fields that the response varies on.
    #[must_use]
    pub fn spec(&self) -> &Arc<VarySpec> {
        &self.spec
    }

    /// The values for which it was made.
    #[must_use]
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// The fields of a request that selects it, where it is chosen by content negotiation alone
    /// (RFC 9110 §12.5); none if another field has a value: that one is of one visitor.
    #[must_use]
    pub fn negotiated(&self) -> Option<Vec<(String, Vec<u8>)>> {
        let mut fields = Vec::new();
        let mut rest = &*self.values;
        for name in &self.spec.names {
            let (&[is_present, a, b, c, d], after) = rest.split_first_chunk()?;
            let len = u32::from_be_bytes([a, b, c, d]) as usize;
            let (value, after) = after.split_at_checked(len)?;
            rest = after;
            if is_present == 0 {
                continue;
            }
            let value = match name.as_str() {
                "accept-encoding" => written_codings(value)?,
                "accept" | "accept-charset" | "accept-language" => value.to_vec(),
                _ => return None,
            };
            fields.push((name.clone(), value));
        }
        Some(fields)
    }

    /// Returns whether a request with these fields selects it.
    #[must_use]
    pub fn matches<F: RequestFields + ?Sized>(&self, request: &F) -> bool {
        let mut values = Vec::new();
        self.spec.values(&BorrowedFields(request), &mut values);
        *values == *self.values
    }

    /// Bytes of memory it takes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let names: usize = self
            .spec
            .names
            .iter()
            .map(|n| allocated(n.len()) + size_of::<String>())
            .sum();
        allocated(size_of::<VaryKey>() + 16)
            + allocated(size_of::<VarySpec>() + 16)
            + allocated(self.values.len())
            + names
    }
}

impl VarySpec {
    /// Creates a spec from names in lower case, each once.
    pub(crate) fn of_names(mut names: Vec<String>) -> VarySpec {
        names.sort_unstable();
        VarySpec { names }
    }

    /// The field names, lower case and sorted.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Appends the secondary key of a request: for each name whether the field is there, the
    /// length of its normalised value, and the value. Unambiguous, hence comparable as bytes.
    pub fn values(&self, request: &dyn RequestFields, out: &mut Vec<u8>) {
        for name in &self.names {
            let start = out.len();
            out.extend_from_slice(&[0; 5]);
            let present = match name.as_str() {
                "accept-encoding" => accept_encoding(request, out),
                "accept-language" => accept_language(request, out),
                "cookie" => cookie(request, out),
                one if one.starts_with(ONE_COOKIE) => exact(one, request, out),
                other => plain(other, request, out),
            };
            let len = u32::try_from(out.len() - start - 5).unwrap_or(u32::MAX);
            if let Some(mark) = out.get_mut(start..start + 5) {
                mark[0] = u8::from(present);
                mark[1..].copy_from_slice(&len.to_be_bytes());
            }
        }
    }
}

/// Lets a generic caller use the functions over `dyn`.
struct BorrowedFields<'a, F: ?Sized>(&'a F);

impl<F: RequestFields + ?Sized> RequestFields for BorrowedFields<'_, F> {
    fn each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.0.each_value(name, visit);
    }
}

/// The values one behind the other, each with its length: they are compared as they were sent.
fn exact(name: &str, request: &dyn RequestFields, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    request.each_value(name, &mut |value| {
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(value);
    });
    out.len() > start
}

/// The values of all lines, joined by `,`, without the white space around list members.
fn plain(name: &str, request: &dyn RequestFields, out: &mut Vec<u8>) -> bool {
    let mut present = false;
    request.each_value(name, &mut |value| {
        for member in value.split(|&b| b == b',') {
            if present {
                out.push(b',');
            }
            present = true;
            out.extend_from_slice(member.trim_ascii());
        }
    });
    present
}

/// The language ranges in lower case, and a weight where it is not 1. Their order stays: applications
/// choose the first of one weight, or the first of all, and one visitor must not get a page that was made
/// for the order of another. If one of them cannot be read, the values stay as they were sent.
fn accept_language(request: &dyn RequestFields, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut is_plain = false;
    request.each_value("accept-language", &mut |value| {
        let members = value.split(|&b| b == b',').map(<[u8]>::trim_ascii);
        for member in members.filter(|member| !member.is_empty()) {
            let Some((weight, range)) = language_range(member) else {
                is_plain = true;
                return;
            };
            if out.len() > start {
                out.push(b',');
            }
            out.extend(range.iter().map(u8::to_ascii_lowercase));
            if weight < MOST {
                let decimals = format!("{weight:03}");
                out.extend_from_slice(b";q=0.");
                out.extend_from_slice(decimals.trim_end_matches('0').as_bytes());
            }
        }
    });
    if is_plain || out.len() == start {
        out.truncate(start);
        return plain("accept-language", request, out);
    }
    true
}

/// A range, and its weight in thousandths (RFC 9110 §12.4.2).
fn language_range(member: &[u8]) -> Option<(u16, &[u8])> {
    let mut parts = member.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    let range = parts.next()?;
    let is_of_range = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'*');
    let weight = match (parts.next(), parts.next()) {
        (None, _) => MOST,
        (Some([b'q' | b'Q', b'=', weight @ ..]), None) => thousandths(weight)?,
        _ => return None,
    };
    let is_range = !range.is_empty() && range.iter().all(is_of_range);
    is_range.then_some((weight, range))
}

/// The cookies of all lines in the order sent, as `a=1; b=2`. None at all are the same as no field.
fn cookie(request: &dyn RequestFields, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    request.each_value("cookie", &mut |value| {
        for cookie in value.split(|&b| b == b';').map(<[u8]>::trim_ascii) {
            if cookie.is_empty() {
                continue;
            }
            if out.len() > start {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(cookie);
        }
    });
    out.len() > start
}

/// Codings that differ for an upstream that compresses, in the order of their bits.
const CODINGS: [&[u8]; 5] = [b"br", b"gzip", b"zstd", b"deflate", b"*"];

/// One byte: the set of codings the client accepts. Order and weights other than zero do not
/// count, and `identity` is always acceptable in practice. Codings unknown here follow by name: the
/// upstream may know one of them, and only who asked for it can read the answer.
fn accept_encoding(request: &dyn RequestFields, out: &mut Vec<u8>) -> bool {
    let mut set = 0u8;
    let mut others = BTreeSet::new();
    request.each_value("accept-encoding", &mut |value| {
        for member in value.split(|&b| b == b',') {
            let mut parts = member.split(|&b| b == b';').map(<[u8]>::trim_ascii);
            let coding = parts.next().unwrap_or_default();
            let coding = if coding.eq_ignore_ascii_case(b"x-gzip") {
                b"gzip"
            } else {
                coding
            };
            let refused = parts.any(is_zero_weight);
            let bit = CODINGS
                .iter()
                .position(|known| coding.eq_ignore_ascii_case(known));
            match bit {
                _ if refused || coding.is_empty() => {}
                Some(bit) => set |= 1 << bit,
                None if coding.eq_ignore_ascii_case(b"identity") => {}
                None => {
                    others.insert(coding.to_ascii_lowercase());
                }
            }
        }
    });
    if set == 0 && others.is_empty() {
        return false;
    }
    out.push(set);
    for coding in others {
        out.extend_from_slice(&coding);
        out.push(b',');
    }
    true
}

/// A value of the field for which [`accept_encoding`] gives `set`.
fn written_codings(set: &[u8]) -> Option<Vec<u8>> {
    let (&bits, others) = set.split_first()?;
    let known = CODINGS.iter().enumerate();
    let known = known.filter(|(bit, _)| bits & (1 << bit) != 0);
    let others = others.split(|&b| b == b',').filter(|it| !it.is_empty());
    let all: Vec<&[u8]> = known.map(|(_, coding)| *coding).chain(others).collect();
    Some(all.join(&b", "[..]))
}

/// `q=0`, `q=0.0`, `Q=0.000`.
fn is_zero_weight(parameter: &[u8]) -> bool {
    match parameter.split_first() {
        Some((b'q' | b'Q', rest)) => {
            let Some((b'=', weight)) = rest.trim_ascii_start().split_first() else {
                return false;
            };
            let weight = weight.trim_ascii();
            weight.starts_with(b"0") && weight.iter().all(|b| matches!(b, b'0' | b'.'))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    #[test]
    fn spelling_of_languages_does_not_count_and_their_order_does() {
        let language = |value: &str| format!("Accept-Language: {value}");
        for (left, right, expected) in [
            ("en, de", "en,de", true),
            // Many applications take the first, whatever its weight.
            ("en, de", "de,en", false),
            ("en;q=0.5, de", "de, en;q=0.5", false),
            ("en, de", "eN , De", true),
            ("de, en;q=0.5", "de;q=1.000, en;q=0.50", true),
            ("de;q=0.8, en;q=0", "de;q=0.80 ,en;q=0.000", true),
            ("de;q=0.8, en;q=0.9", "de;q=0.9, en;q=0.8", false),
            ("de", "de, en;q=0.5", false),
            ("de;q=0", "de", false),
            ("de-DE", "de-de", true),
            ("de", "*", false),
            // An unreadable value stays as it is.
            ("de;x=1, en", "en, de;x=1", false),
            ("de;q=2, en", "en, de;q=2", false),
            ("d\u{e4}, en", "en, d\u{e4}", false),
        ] {
            let (a, b) = (language(left), language(right));
            let found = same("Accept-Language", &[&a], &[&b]);
            assert_eq!(found, expected, "{left:?} {right:?}");
        }
    }

    fn same(vary: &str, a: &[&str], b: &[&str]) -> bool {
        let made_for = VaryKey::of([vary.as_bytes()].into_iter(), &fields(a));
        made_for
            .expect("no refusal")
            .expect("varies")
            .matches(&fields(b))
    }

    #[test]
    fn a_negotiated_variant_can_be_asked_for_again() {
        let negotiated = |vary: &str, lines: &[&str]| {
            let made_for = VaryKey::of([vary.as_bytes()].into_iter(), &fields(lines));
            let made_for = made_for.expect("no refusal").expect("varies");
            let again = made_for.negotiated()?;
            let again: Vec<String> = again
                .iter()
                .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
                .collect();
            let again: Vec<&str> = again.iter().map(String::as_str).collect();
            assert!(made_for.matches(&fields(&again)), "{again:?}");
            Some(again.join("; "))
        };
        for (vary, lines, expected) in [
            (
                "Accept-Encoding",
                &["Accept-Encoding: gzip, deflate;q=0, br, x1"][..],
                Some("accept-encoding: br, gzip, x1"),
            ),
            ("Accept-Encoding, Cookie", &[], Some("")),
            (
                "Accept, Accept-Language",
                &["Accept: a , b", "Accept-Language: "],
                Some("accept: a,b; accept-language: "),
            ),
            ("Cookie", &["Cookie: a=1"], None),
            ("X-Device", &["X-Device: phone"], None),
        ] {
            assert_eq!(negotiated(vary, lines).as_deref(), expected, "{vary}");
        }
    }

    #[test]
    fn requests_that_differ_only_in_form_select_the_same_variant() {
        /// Name, `Vary`, two requests, and whether they select the same variant.
        type Case<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str], bool);
        #[rustfmt::skip]
        let cases: [Case<'_>; 19] = [
            ("same", "Accept", &["Accept: a"], &["accept: a"], true),
            ("other value", "Accept", &["Accept: a"], &["Accept: b"], false),
            ("absent is not empty", "Accept", &["Accept: "], &[], false),
            ("lines are one list", "Accept", &["Accept: a", "Accept: b"], &["Accept: a ,b"], true),
            ("both fields count", "Accept, Origin", &["Accept: a", "Origin: x"], &["Accept: a"], false),
            ("values do not run together", "A, B", &["A: xy", "B: z"], &["A: x", "B: yz"], false),
            (
                "browsers' lists", "Accept-Encoding", &["Accept-Encoding: gzip, deflate, br"],
                &["Accept-Encoding: br;q=1.0, DEFLATE , gzip;q=0.8"], true,
            ),
            ("without br", "Accept-Encoding", &["Accept-Encoding: gzip, br"], &["Accept-Encoding: gzip"], false),
            (
                "refused br", "Accept-Encoding", &["Accept-Encoding: gzip, br;q=0.0"], &["Accept-Encoding: gzip"],
                true,
            ),
            (
                "unknown codings, in any order", "Accept-Encoding", &["Accept-Encoding: foo, gzip, BAR"],
                &["Accept-Encoding: bar,, foo;q=0.5", "Accept-Encoding: gzip"], true,
            ),
            (
                "an unknown coding is not another", "Accept-Encoding", &["Accept-Encoding: foo,bar"],
                &["Accept-Encoding: foobar"], false,
            ),
            (
                "refused unknown coding", "Accept-Encoding", &["Accept-Encoding: foo;q=0, gzip"],
                &["Accept-Encoding: gzip"], true,
            ),
            ("identity is none", "Accept-Encoding", &["Accept-Encoding: identity"], &[], true),
            (
                "cookies in another form", "Cookie", &["Cookie: s=1;lang=de;"], &["Cookie: s=1", "Cookie: lang=de"],
                true,
            ),
            ("one cookie is compared as it is", "cookie=a", &["cookie=a: 1,2"], &["cookie=a: 1, 2"], false),
            ("twice is not once", "cookie=a", &["cookie=a: 1", "cookie=a: 2"], &["cookie=a: 1"], false),
            ("no cookies is none", "Cookie", &["Cookie: ; "], &[], true),
            ("session", "Cookie", &["Cookie: s=1"], &[], false),
            ("other session", "Cookie", &["Cookie: s=1"], &["Cookie: s=2"], false),
        ];
        for (name, vary, a, b, expected) in cases {
            assert_eq!(same(vary, a, b), expected, "{name}");
            assert_eq!(same(vary, b, a), expected, "{name}, turned round");
        }
    }

    #[test]
    fn star_and_too_much_are_refused() {
        let of = |vary: &str, request: &[&str]| {
            VaryKey::of([vary.as_bytes()].into_iter(), &fields(request)).map(|k| k.is_some())
        };
        let many: Vec<String> = (0..17).map(|i| format!("f{i}")).collect();
        let long = format!("Accept: {}", "x".repeat(9000));
        assert_eq!(of("", &[]), Ok(false));
        assert_eq!(of("Accept", &[]), Ok(true));
        assert_eq!(of("Accept, *", &[]), Err(Reason::VaryStar));
        assert_eq!(of(&many.join(","), &[]), Err(Reason::VaryTooLong));
        assert_eq!(of("Accept", &[&long]), Err(Reason::VaryTooLong));
    }
}
