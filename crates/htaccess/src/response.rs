//! Rules about a response: its fields (`Header`), its lifetime (`Expires*`), the type of a file and the pages of
//! errors. Conditions are judged with the request. The remaining lines are applied to the response, to stored pages as
//! well.

use std::sync::Arc;

use crate::expression::Expression;
use crate::lifetimes::{ExpiresSettings, Lifetime};
use crate::media::{FileType, MediaSettings};
use crate::pattern::Pattern;

/// Fields that frame a message, or that the server writes itself.
const OWN_FIELDS: [&str; 10] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-connection",
];

/// The lines of a section about responses.
#[derive(Clone, Debug, Default)]
pub struct ResponseSettings {
    pub fields: Vec<Arc<FieldLine>>,
    pub expires: ExpiresSettings,
    pub media: MediaSettings,
    /// By status; a later line holds.
    pub error_documents: Vec<(u16, ErrorDocument)>,
}

/// A line of `Header`.
#[derive(Clone, Debug)]
pub struct FieldLine {
    pub name: String,
    /// For answers that the server makes itself as well.
    pub is_always: bool,
    pub change: FieldChange,
    pub condition: FieldCondition,
}

/// When a line of `Header` holds.
#[derive(Clone, Debug)]
pub enum FieldCondition {
    Always,
    Variable { name: String, is_negated: bool },
    Expression(Arc<Expression>),
}

/// The change of a field. Values have `%{NAME}e` in them until the line is judged.
#[derive(Clone, Debug)]
pub enum FieldChange {
    Add(Vec<u8>),
    Append(Vec<u8>),
    /// Like `Append`, unless the value is in the list already.
    Merge(Vec<u8>),
    Set(Vec<u8>),
    SetIfEmpty(Vec<u8>),
    Unset,
    Edit {
        pattern: Pattern,
        to: Vec<u8>,
        is_global: bool,
    },
}

/// The content sent for an error (`ErrorDocument`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorDocument {
    /// The server's own page.
    Default,
    /// A path of the site.
    Path(String),
    Text(String),
    /// A whole address, to which clients are redirected.
    Address(String),
}

/// The rules that hold for the response to one request.
#[derive(Clone, Debug, Default)]
pub struct ResponseRules {
    /// The lines whose conditions hold, with their values.
    pub fields: Vec<FieldLine>,
    pub(crate) expires: ExpiresSettings,
    /// The type of the file that is sent.
    pub file_type: FileType,
    pub(crate) error_documents: Vec<(u16, ErrorDocument)>,
}

impl ResponseSettings {
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
            && self.expires.is_empty()
            && self.media.is_empty()
            && self.error_documents.is_empty()
    }

    pub fn merge(&mut self, inner: &ResponseSettings) {
        self.fields.extend(inner.fields.iter().cloned());
        self.expires.merge(&inner.expires);
        self.media.merge(&inner.media);
        let documents = inner.error_documents.iter().cloned();
        self.error_documents.extend(documents);
    }
}

impl ResponseRules {
    /// How long clients may keep a response of this media type; `None`: no line sets it.
    pub fn lifetime(&self, media_type: &[u8]) -> Option<Lifetime> {
        self.expires.of(media_type)
    }

    /// The content to send for an error; `None`: no line sets it.
    pub fn error_document(&self, status: u16) -> Option<&ErrorDocument> {
        let mut documents = self.error_documents.iter().rev();
        let found = documents.find(|(own, _)| *own == status);
        found.map(|(_, document)| document)
    }
}

impl FieldLine {
    /// Whether it adds to the lines of its field, whatever they are.
    pub fn adds(&self) -> bool {
        matches!(self.change, FieldChange::Add(_))
    }

    /// Whether it changes or removes the lines that are there.
    pub fn takes_away(&self) -> bool {
        matches!(self.change, FieldChange::Unset | FieldChange::Edit { .. })
    }

    /// Reads the arguments of `Header`. `Ok(None)`: the line does not concern responses.
    ///
    /// # Errors
    /// The mistake in the line.
    pub fn of(args: &[String]) -> Result<FieldLine, FieldLineError> {
        let (is_always, args) = match args {
            [first, rest @ ..] if first.eq_ignore_ascii_case("always") => (true, rest),
            [first, rest @ ..] if first.eq_ignore_ascii_case("onsuccess") => (false, rest),
            args => (false, args),
        };
        let [action, name, rest @ ..] = args else {
            return Err(FieldLineError::Mistake("it needs an action and a field"));
        };
        let action = action.to_ascii_lowercase();
        let name = name.trim_end_matches(':');
        let (values, condition) = match rest {
            [values @ .., last] if is_condition(last) => (values, condition(last)?),
            values => (values, FieldCondition::Always),
        };
        let change = match (action.as_str(), values) {
            ("unset", []) => FieldChange::Unset,
            ("add", [value]) => FieldChange::Add(value_text(value)?),
            ("append", [value]) => FieldChange::Append(value_text(value)?),
            ("merge", [value]) => FieldChange::Merge(value_text(value)?),
            ("set", [value]) => FieldChange::Set(value_text(value)?),
            ("setifempty", [value]) => FieldChange::SetIfEmpty(value_text(value)?),
            ("edit" | "edit*", [pattern, to]) => FieldChange::Edit {
                pattern: Pattern::new(pattern, false)
                    .ok_or(FieldLineError::Mistake("the pattern cannot be read"))?,
                to: to.clone().into_bytes(),
                is_global: action == "edit*",
            },
            ("echo" | "note", _) => {
                return Err(FieldLineError::Without("echo and note do nothing"));
            }
            _ => {
                return Err(FieldLineError::Mistake(
                    "there is no such action, or its value is missing",
                ));
            }
        };
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(FieldLineError::Without("this is no name of a field"));
        }
        if OWN_FIELDS.contains(&&*name.to_ascii_lowercase()) {
            return Err(FieldLineError::Without(
                "the server writes this field itself",
            ));
        }
        Ok(FieldLine {
            name: name.to_owned(),
            is_always,
            change,
            condition,
        })
    }
}

/// The reason why a line of `Header` does not hold.
pub enum FieldLineError {
    /// Apache answers 500.
    Mistake(&'static str),
    Without(&'static str),
}

fn is_condition(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word == "early" || word.starts_with("env=") || word.starts_with("expr=")
}

fn condition(word: &str) -> Result<FieldCondition, FieldLineError> {
    if let Some(name) = strip(word, "env=") {
        let (is_negated, name) = match name.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, name),
        };
        let name = name.to_owned();
        return Ok(FieldCondition::Variable { name, is_negated });
    }
    let Some(text) = strip(word, "expr=") else {
        return Err(FieldLineError::Without("early counts in no .htaccess"));
    };
    let asked = text.to_ascii_lowercase();
    if ["%{content_type}", "%{request_status}", "%{resp:", "resp("]
        .iter()
        .any(|name| asked.contains(name))
    {
        return Err(FieldLineError::Without(
            "the condition asks for the response",
        ));
    }
    match Expression::of(text) {
        Some(expression) => Ok(FieldCondition::Expression(Arc::new(expression))),
        None => Err(FieldLineError::Without("the condition is not understood")),
    }
}

fn strip<'w>(word: &'w str, begin: &str) -> Option<&'w str> {
    let (first, rest) = word.split_at_checked(begin.len())?;
    first.eq_ignore_ascii_case(begin).then_some(rest)
}

/// A value, whose formats are known.
fn value_text(value: &str) -> Result<Vec<u8>, FieldLineError> {
    if strip(value, "expr=").is_some() {
        return Err(FieldLineError::Without(
            "a value that is an expression is not evaluated",
        ));
    }
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        rest = match rest.strip_prefix('%') {
            Some(after) => after,
            None => match rest.split_once('}') {
                Some((inner, after)) if inner.starts_with('{') && after.starts_with('e') => {
                    &after[1..]
                }
                Some((inner, after)) if inner.starts_with('{') && after.starts_with('s') => {
                    &after[1..]
                }
                _ if rest.starts_with(['t', 'D', 'l', 'i', 'b']) => {
                    return Err(FieldLineError::Without("times and loads are not written"));
                }
                _ => {
                    return Err(FieldLineError::Mistake(
                        "a % stands before no format that is known",
                    ));
                }
            },
        };
    }
    Ok(value.as_bytes().to_vec())
}

/// The effect of a line on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldEffect {
    Keep,
    /// In the place of all lines of the field.
    Lines(Vec<Vec<u8>>),
    /// Beside the lines that are there.
    Added(Vec<u8>),
}

impl FieldChange {
    /// Returns the effect on a field that has these lines.
    pub fn effect(&self, lines: &[&[u8]]) -> FieldEffect {
        let joined = || lines.join(&b", "[..]);
        let one = |value: Vec<u8>| FieldEffect::Lines(vec![value]);
        match self {
            FieldChange::Add(value) => FieldEffect::Added(value.clone()),
            FieldChange::Set(value) => one(value.clone()),
            FieldChange::SetIfEmpty(value)
            | FieldChange::Append(value)
            | FieldChange::Merge(value)
                if lines.is_empty() =>
            {
                one(value.clone())
            }
            FieldChange::SetIfEmpty(_) => FieldEffect::Keep,
            FieldChange::Merge(value) if is_in_list(&joined(), value) => FieldEffect::Keep,
            FieldChange::Append(value) | FieldChange::Merge(value) => {
                one([&joined()[..], b", ", value].concat())
            }
            FieldChange::Unset => FieldEffect::Lines(Vec::new()),
            FieldChange::Edit { .. } if lines.is_empty() => FieldEffect::Keep,
            FieldChange::Edit {
                pattern,
                to,
                is_global,
            } => {
                let edited = |line: &&[u8]| pattern.replaced(line, to, *is_global);
                FieldEffect::Lines(lines.iter().map(edited).collect())
            }
        }
    }
}

fn is_in_list(list: &[u8], value: &[u8]) -> bool {
    let mut parts = list.split(|byte| *byte == b',');
    parts.any(|part| part.trim_ascii() == value)
}

/// The words behind `ErrorDocument`.
///
/// # Errors
/// The mistake in the words.
pub fn error_document(args: &[String]) -> Result<(u16, ErrorDocument), FieldLineError> {
    let [status, document] = args else {
        return Err(FieldLineError::Mistake(
            "it needs a status and a path, an address or a text in quotes",
        ));
    };
    let status = status.parse().ok().filter(|it| (400..600).contains(it));
    let status = status.ok_or(FieldLineError::Mistake("this is no status of an error"))?;
    let is_address = crate::paths::scheme_bytes(document.as_bytes()).is_some();
    let document = match document.as_str() {
        it if it.eq_ignore_ascii_case("default") => ErrorDocument::Default,
        it if it.contains("%{") => {
            return Err(FieldLineError::Without(
                "variables are not written into pages of errors",
            ));
        }
        _ if is_address && status == 401 => {
            return Err(FieldLineError::Without("an address is no page for 401"));
        }
        it if is_address => ErrorDocument::Address(it.to_owned()),
        it if it.starts_with('/') => ErrorDocument::Path(it.to_owned()),
        it => ErrorDocument::Text(it.strip_prefix('"').unwrap_or(it).to_owned()),
    };
    Ok((status, document))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<FieldLine> {
        FieldLine::of(&crate::lexer::words(text)).ok()
    }

    #[test]
    fn a_field_is_changed_as_apache_changes_it() {
        for (text, before, after) in [
            ("set A b", &["x"][..], &["b"][..]),
            ("setifempty A b", &["x"], &["x"]),
            ("setifempty A b", &[], &["b"]),
            ("append A b", &["x", "y"], &["x, y, b"]),
            ("merge A b", &["x, b"], &["x, b"]),
            ("merge A b", &["x, bb"], &["x, bb, b"]),
            ("add A b", &["x"], &["x", "b"]),
            ("unset A", &["x", "y"], &[]),
            ("edit A (.)x $1z", &["axax", "c"], &["azax", "c"]),
            ("edit* A (.)x $1z", &["axax"], &["azaz"]),
            ("edit* A ^ y", &["a"], &["ya"]),
        ] {
            let lines: Vec<&[u8]> = before.iter().map(|it| it.as_bytes()).collect();
            let found = match line(text).expect(text).change.effect(&lines) {
                FieldEffect::Keep => lines.iter().map(|it| it.to_vec()).collect(),
                FieldEffect::Lines(lines) => lines,
                FieldEffect::Added(value) => {
                    let before = lines.iter().map(|it| it.to_vec());
                    before.chain([value]).collect()
                }
            };
            let after: Vec<Vec<u8>> = after.iter().map(|it| it.as_bytes().to_vec()).collect();
            assert_eq!(found, after, "{text}");
        }
    }

    #[test]
    fn fields_that_frame_a_message_are_the_servers() {
        for text in [
            "set Content-Length 5",
            "unset Transfer-Encoding",
            "set Connection: close",
            "add Server x",
            "set A%0d b",
            "set A expr=%{REQUEST_URI}",
            "set A b early",
            // Kirby has this line: the field is for responses of no type.
            r#"set Content-Type "text/plain" "expr=-z %{CONTENT_TYPE}""#,
            r#"set A b "expr=%{REQUEST_STATUS} -eq 404""#,
        ] {
            assert!(line(text).is_none() || text.contains("%0d"), "{text}");
        }
        for text in ["set A %x", "set A", "frob A b", "unset", "set \"A b\" c"] {
            assert!(line(text).is_none(), "{text}");
        }
    }

    #[test]
    fn error_documents_are_paths_addresses_or_texts() {
        for (words, expected) in [
            (
                &["404", "/a?b"][..],
                Some(ErrorDocument::Path("/a?b".into())),
            ),
            (&["404", "sorry"], Some(ErrorDocument::Text("sorry".into()))),
            (&["404", "Default"], Some(ErrorDocument::Default)),
            (
                &["404", "http://x/"],
                Some(ErrorDocument::Address("http://x/".into())),
            ),
            (&["401", "http://x/"], None),
            (&["999", "/a"], None),
            (&["404", "not", "quoted"], None),
        ] {
            let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
            let found = error_document(&words).ok().map(|it| it.1);
            assert_eq!(found, expected, "{words:?}");
        }
    }
}
