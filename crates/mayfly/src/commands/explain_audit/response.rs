//! A response as a visitor gets it, with the signs that it came from a cache's memory.

use command_line::CacheWord;

/// A whole response; interim ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageResponse {
    pub status: u16,
    /// Names in lower case, in the order of the response.
    pub fields: Vec<(String, String)>,
    /// At most [`MAX_BODY_BYTES`] of it, from its beginning.
    pub body: Vec<u8>,
}

/// Bytes of a body that are compared. Pages are smaller; the rest is not read.
pub const MAX_BODY_BYTES: usize = 2 << 20;

impl PageResponse {
    /// Whether the response shows that it was stored: by a field of a cache, or by an `Age`, which
    /// only caches add (RFC 9111 §5.1).
    pub fn is_from_memory(&self) -> bool {
        let fields = self.fields.iter();
        let said = CacheWord::of_fields(fields.map(|(name, value)| (&**name, &**value)));
        match said {
            Some(word) => word.is_spared(),
            None => self.values("age").next().is_some(),
        }
    }

    /// The values of all lines of a field.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = self.fields.iter().filter(move |(it, _)| it == name);
        lines.map(|(_, value)| &**value)
    }

    /// Fields and body as one text, in lower case.
    pub fn lower_text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.fields {
            text.push_str(&format!("{name}: {value}\n"));
        }
        text.push_str(&String::from_utf8_lossy(&self.body));
        text.make_ascii_lowercase();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_caches_tell_what_came_from_memory() {
        for (name, value, expected) in [
            ("cache-status", "mayfly; hit; ttl=3", true),
            ("cache-status", "mayfly; fwd=uri-miss; stored", false),
            ("x-cache", "HIT", true),
            ("x-cache", "MISS", false),
            ("age", "0", true),
            ("date", "now", false),
        ] {
            let response = PageResponse {
                fields: vec![(name.to_owned(), value.to_owned())],
                ..PageResponse::default()
            };
            assert_eq!(response.is_from_memory(), expected, "{name}: {value}");
        }
    }

    #[test]
    fn a_miss_outweighs_an_age_of_a_cache_behind() {
        let fields = [("age", "5"), ("x-cache", "MISS")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let response = PageResponse {
            fields: fields.to_vec(),
            ..PageResponse::default()
        };
        assert!(!response.is_from_memory());
    }
}
