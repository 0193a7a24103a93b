//! Lowers fields that are added to responses: `add_header`, `expires`, `server_tokens`,
//! `charset`.

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word, parse_duration};

use super::Lowering;
use super::level::Level;
use super::template::has_variables;
use super::values::{bytes, lower_bytes};
use crate::check::Node;
use crate::directives::constants::*;
use crate::directives::declaration::{Declaration, Lines};
use crate::model::*;

impl Lowering<'_> {
    pub fn header_settings(&mut self, level: &Level<'_>) -> HeaderSettings {
        let (edits, server) = self.field_edits(level);
        HeaderSettings {
            edits,
            add: self.added(level, "add_header", "add_header_inherit"),
            trailers: self.added(level, "add_trailer", "add_trailer_inherit"),
            expires: self.expires(level),
            server_tokens: server.map_or_else(|| self.server_tokens(level), ServerTokens::Text),
            cache_status: self.value(level, CACHE_STATUS_HEADER),
            user_id: self.user_id(level).map(Box::new),
        }
    }

    pub fn addition(&mut self, level: &Level<'_>) -> AdditionSettings {
        let path = |this: &mut Self, name| {
            let node = level.find(name)?;
            // An empty path removes an inherited value.
            Some(this.template(node.arg(0))).filter(|path| !path.is_empty())
        };
        AdditionSettings {
            before: path(self, "add_before_body"),
            after: path(self, "add_after_body"),
            types: self.media_types(level, ADDITION_TYPES),
        }
    }

    pub fn sub_filter(&mut self, level: &Level<'_>) -> Option<Arc<SubFilter>> {
        let types = self.media_types(level, SUB_FILTER_TYPES);
        let once = self.value(level, SUB_FILTER_ONCE);
        let last_modified = self.value(level, SUB_FILTER_LAST_MODIFIED);
        let nodes = level.all("sub_filter").to_vec();
        let pairs: Vec<SubFilterPair> = nodes
            .iter()
            .map(|node| self.sub_filter_pair(node))
            .collect();
        (!pairs.is_empty()).then(|| {
            Arc::new(SubFilter {
                pairs,
                once,
                types,
                last_modified,
            })
        })
    }

    fn sub_filter_pair(&mut self, node: &Node<'_>) -> SubFilterPair {
        let string = node.arg(0);
        if string.is_empty() {
            self.invalid(string, "string", "expected the text to look for");
        }
        SubFilterPair {
            string: self.template(string),
            replacement: self.template(node.arg(1)),
        }
    }

    fn added(&mut self, level: &Level<'_>, name: &str, rule: &str) -> Vec<AddHeader> {
        if let Some(node) = level.find(rule)
            && !["on", "off", "merge"].contains(&&*node.arg(0).text)
        {
            self.invalid(node.arg(0), "value", "expected on, off or merge");
        }
        let nodes = level.inherited(name, rule);
        let mut added = Vec::with_capacity(nodes.len());
        for node in nodes {
            let always = match node.args().get(2) {
                None => false,
                Some(word) if word.text == "always" => true,
                Some(word) => {
                    self.invalid(word, "parameter", "expected always");
                    false
                }
            };
            let name = node.arg(0);
            if name.is_empty() && node.arg(1).is_empty() {
                // Adds nothing, and keeps out the lines of outer levels, which the line is written for.
                continue;
            }
            if !is_field_name(name) {
                self.invalid(
                    name,
                    "field name",
                    "expected a name without spaces and colons",
                );
            }
            let value = self.template(node.arg(1));
            added.push(AddHeader {
                name: bytes(name).into(),
                constant: value.as_constant().map(bytes::Bytes::copy_from_slice),
                value,
                always,
            });
        }
        added
    }

    fn server_tokens(&mut self, level: &Level<'_>) -> ServerTokens {
        let Some(node) = level.find("server_tokens") else {
            return ServerTokens::On;
        };
        let word = node.arg(0);
        match word.text.as_str() {
            "on" => ServerTokens::On,
            "off" => ServerTokens::Off,
            "build" => ServerTokens::Build,
            _ => ServerTokens::Text(self.template(word)),
        }
    }

    fn expires(&mut self, level: &Level<'_>) -> Expires {
        let Some(node) = level.find("expires") else {
            return Expires::Off;
        };
        let (modified, word) = match node.args() {
            [first, second] if first.text == "modified" => (true, second),
            [first, _] => {
                self.invalid(first, "value", "expected modified, or a single time");
                return Expires::Off;
            }
            _ => (false, node.arg(0)),
        };
        if has_variables(word) {
            return Expires::Variable {
                value: self.template(word),
                modified,
            };
        }
        if let (false, Some(known)) = (modified, expires_word(word)) {
            return known;
        }
        let (text, sign) = match word.strip_prefix('-') {
            Some(text) => (text, -1),
            None => (word.strip_prefix('+').unwrap_or(word), 1),
        };
        if let Some(text) = text.strip_prefix('@') {
            if modified || sign < 0 {
                self.invalid(
                    word,
                    "value",
                    "daily time does not go with modified or a sign",
                );
                return Expires::Off;
            }
            return self.daily(word, text);
        }
        let Some(time) = self.duration_in(word, text) else {
            return Expires::Off;
        };
        let seconds = i64::try_from(time.as_secs())
            .unwrap_or(i64::MAX)
            .saturating_mul(sign);
        if modified {
            Expires::Modified(seconds)
        } else {
            Expires::Access(seconds)
        }
    }

    fn daily(&mut self, word: &Word, text: &str) -> Expires {
        match parse_duration(text).map(|time| time.as_secs()) {
            Ok(seconds) if seconds <= 24 * 60 * 60 => Expires::Daily(seconds),
            Ok(_) => {
                self.invalid(word, "value", "daily time value must be less than 24 hours");
                Expires::Off
            }
            Err(_) => {
                self.duration_in(word, text);
                Expires::Off
            }
        }
    }

    pub fn charset(&mut self, level: &Level<'_>) -> CharsetSettings {
        let charset = match level.word("charset") {
            Some(word) if word.text != "off" => self.template(word),
            _ => Template::default(),
        };
        let source = level.word("source_charset");
        if let (Some(to), Some(from)) = (charset.as_constant(), source)
            && !to.is_empty()
            && !from.as_bytes().eq_ignore_ascii_case(to)
            && !self.has_charset_map(from.as_bytes(), to)
        {
            let to = String::from_utf8_lossy(to).into_owned();
            let message =
                format!("no \"charset_map\" between the charsets \"{from}\" and \"{to}\"");
            self.report(
                Diagnostic::error(from.span, message)
                    .label("there is no table to convert by")
                    .hint("write a `charset_map` of the two in the http block"),
            );
        }
        CharsetSettings {
            charset,
            source: source.map(|word| bytes(word)).unwrap_or_default(),
            overrides: self.value(level, OVERRIDE_CHARSET),
            types: self.media_types(level, CHARSET_TYPES),
        }
    }

    fn has_charset_map(&self, from: &[u8], to: &[u8]) -> bool {
        let is = |one: &[u8], other: &[u8]| {
            one.eq_ignore_ascii_case(from) && other.eq_ignore_ascii_case(to)
        };
        let mut maps = self.declared.charset_maps.iter();
        maps.any(|map| is(&map.from, &map.to) || is(&map.to, &map.from))
    }

    /// A list of media types, which always includes `text/html`.
    pub fn media_types(&mut self, level: &Level<'_>, list: Declaration<Lines>) -> Arc<MediaTypes> {
        let nodes = level.all(&list.name()).to_vec();
        let Some(first) = nodes.first() else {
            let types = list.default_words().map(bytes).collect();
            return Arc::new(MediaTypes { all: false, types });
        };
        let written_at = first.span();
        if let Some(known) = self.media_types.get(&written_at) {
            return known.clone();
        }
        let mut list = MediaTypes {
            all: false,
            types: vec![bytes("text/html")],
        };
        for word in nodes.iter().flat_map(|node| node.args()) {
            let folded = lower_bytes(word);
            if word.text == "*" {
                list.all = true;
            } else if list.types.contains(&folded) {
                self.report(Diagnostic::warning(
                    word.span,
                    format!("duplicate MIME type \"{word}\""),
                ));
            } else {
                list.types.push(folded);
            }
        }
        let list = Arc::new(list);
        self.media_types.insert(written_at, list.clone());
        list
    }
}

/// Does the text do for a field name, as nginx has it?
pub fn is_field_name(text: &str) -> bool {
    let is_part = |byte: u8| byte > b' ' && byte != b':' && byte < 127;
    !text.is_empty() && text.bytes().all(is_part)
}

fn expires_word(word: &Word) -> Option<Expires> {
    match word.text.as_str() {
        "epoch" => Some(Expires::Epoch),
        "max" => Some(Expires::Max),
        "off" => Some(Expires::Off),
        _ => None,
    }
}
