//! The tags that the application gives a response, in fields, in trailers or in its error stream
//! (`cache_tags`).

use bytes::Bytes;
use http_cache::Tags;
use site::{TagRules, TagSeparator};

use crate::litespeed;
use crate::litespeed::VisitorId;

/// Adds the tags that fields or trailers name. `origin` is the request's, for groups; `ids` are those of
/// the visitor whom the response is for alone.
pub fn add(
    tags: &mut Tags,
    fields: &[(Bytes, Bytes)],
    rules: &TagRules,
    (origin, ids): (&[u8], &[VisitorId]),
) {
    for (name, value) in fields.iter().filter(|(name, _)| rules.names.has(name)) {
        let is_it = |field: &&site::TagField| name.eq_ignore_ascii_case(field.name.as_bytes());
        let Some(field) = rules.fields.iter().find(is_it) else {
            continue;
        };
        let separates = |byte: &u8| match field.separator {
            TagSeparator::Commas | TagSeparator::LiteSpeed => *byte == b',',
            TagSeparator::Spaces => matches!(byte, b' ' | b'\t'),
            TagSeparator::Both => matches!(byte, b' ' | b'\t' | b','),
            TagSeparator::Groups => false,
        };
        match field.separator {
            TagSeparator::Groups => groups(value).into_iter().flatten().for_each(|group| {
                tags.add(&group_tag(origin, &group));
            }),
            TagSeparator::LiteSpeed => value.split(separates).for_each(|tag| {
                litespeed::each_label(tag.trim_ascii(), ids, &mut |label| tags.add(&label));
            }),
            _ => value
                .split(separates)
                .for_each(|tag| tags.add(tag.trim_ascii())),
        }
    }
}

/// The tag of a group of responses: groups are of one origin (RFC 9875 §2), tags of a whole zone.
/// No other tag has a NUL in it.
pub fn group_tag(origin: &[u8], group: &[u8]) -> Vec<u8> {
    [origin, b"\0", group].concat()
}

/// The strings of a list (RFC 9651 §3.1); none if it is no list of strings. Parameters say
/// nothing (RFC 9875 §2).
pub fn groups(value: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut rest = value.trim_ascii();
    let mut names = Vec::new();
    loop {
        let (name, behind) = string(rest)?;
        names.push(name);
        let behind = behind.iter().position(|&byte| byte == b',').map_or_else(
            || is_parameters(behind).then_some(&b""[..]),
            |comma| {
                let (parameters, next) = behind.split_at(comma);
                is_parameters(parameters).then_some(next)
            },
        )?;
        match behind.split_first() {
            None => return Some(names),
            Some((_, next)) => rest = next.trim_ascii_start(),
        }
    }
}

/// Takes a quoted string apart from the text behind it.
fn string(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut bytes = text.strip_prefix(b"\"")?.iter();
    let mut name = Vec::new();
    loop {
        match bytes.next()? {
            b'"' => return Some((name, bytes.as_slice())),
            b'\\' => match bytes.next()? {
                byte @ (b'"' | b'\\') => name.push(*byte),
                _ => return None,
            },
            byte @ 0x20..0x7f => name.push(*byte),
            _ => return None,
        }
    }
}

fn is_parameters(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.is_empty() || text.starts_with(b";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> TagRules {
        let field = |name: &str, separator| site::TagField {
            name: name.into(),
            separator,
        };
        let fields = [
            field("surrogate-key", TagSeparator::Spaces),
            field("cache-tag", TagSeparator::Commas),
            field("xkey", TagSeparator::Both),
            field("cache-groups", TagSeparator::Groups),
        ];
        TagRules {
            names: fields
                .iter()
                .map(|field| field.name.as_bytes().into())
                .collect(),
            fields: fields.into(),
            from_stderr: false,
            are_sent: false,
            control: None,
        }
    }

    fn tags_of(name: &'static str, value: &'static str) -> Vec<String> {
        let mut tags = Tags::default();
        let fields = [(Bytes::from(name), Bytes::from(value))];
        add(&mut tags, &fields, &rules(), (b"https://o", &[]));
        let text = |tag: &[u8]| String::from_utf8_lossy(tag).into_owned();
        tags.iter().map(text).collect()
    }

    #[test]
    fn each_field_has_its_separator() {
        assert_eq!(tags_of("Surrogate-Key", "a b,c  d"), ["a", "b,c", "d"]);
        assert_eq!(tags_of("cache-tag", "a b, c,,d "), ["a b", "c", "d"]);
        assert_eq!(tags_of("xkey", "a b, c"), ["a", "b", "c"]);
        assert!(tags_of("x-other", "a").is_empty());
    }

    #[test]
    fn groups_are_strings_of_one_origin() {
        assert_eq!(
            tags_of("Cache-Groups", r#""a", "b \"c\"";x=1"#),
            ["https://o\0a", "https://o\0b \"c\""]
        );
        for broken in ["a", r#""a"#, r#""a" "b""#, r#""a","#, "", "\"\u{e4}\""] {
            assert!(tags_of("cache-groups", broken).is_empty(), "{broken}");
        }
    }
}
