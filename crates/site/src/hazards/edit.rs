//! Changes of a text that end a hazard.

use nginx_conf::{Span, Word};

/// A text in the place of another; an empty span is a place between two bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HazardEdit {
    pub span: Span,
    pub text: String,
}

/// The whole target anew, where `$uri` stands for the path of the request and nothing else:
/// `https://$host$uri$is_args$args` becomes `https://$host$request_uri`.
pub(super) fn redirect_edits(target: &Word) -> Vec<HazardEdit> {
    let rests = [
        "",
        "$is_args$args",
        "?$args",
        "?$query_string",
        "$is_args$query_string",
    ];
    for uri in ["$uri", "${uri}", "$document_uri"] {
        if let Some((authority, rest)) = target.split_once(uri)
            && rests.contains(&rest)
            && authority
                .split_once("://")
                .is_some_and(|(_, host)| !host.contains('/') && !host.is_empty())
        {
            return vec![HazardEdit {
                span: target.span,
                text: format!("{authority}$request_uri"),
            }];
        }
    }
    Vec::new()
}

/// The place before the first byte.
pub(super) fn before(span: Span) -> Span {
    Span {
        end: span.start,
        ..span
    }
}

/// Adds a text to a word; nothing if escapes hide the place.
pub(super) fn insertion(word: &Word, at: usize, text: &str) -> Vec<HazardEdit> {
    let span = word.part(at..at);
    let edit = HazardEdit {
        span,
        text: text.to_owned(),
    };
    (span.start == span.end)
        .then_some(edit)
        .into_iter()
        .collect()
}

/// Returns the text of a source after these edits of it. If two overlap, the first in the text is
/// made.
pub fn edited<'a>(text: &str, edits: impl Iterator<Item = &'a HazardEdit>) -> String {
    let mut edits: Vec<&HazardEdit> = edits.collect();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    edits.dedup();
    let mut whole = String::with_capacity(text.len());
    let mut done = 0;
    for edit in edits {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        if let Some(before) = text.get(done..start) {
            whole.push_str(before);
            whole.push_str(&edit.text);
            done = end;
        }
    }
    whole.push_str(text.get(done..).unwrap_or_default());
    whole
}
