//! A span: one piece of work, with its times and attributes.

use crate::context::{SpanId, TraceContext, TraceState};

/// One finished piece of work.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub context: TraceContext,
    pub state: TraceState,
    pub parent: Option<SpanId>,
    /// The parent is in another process.
    pub is_parent_remote: bool,
    pub name: String,
    pub kind: SpanKind,
    /// Unix time in nanoseconds.
    pub started_at: u64,
    pub ended_at: u64,
    pub attributes: Vec<Attribute>,
    pub links: Vec<Link>,
    /// It failed; with a sentence, which may be empty.
    pub error: Option<String>,
}

/// The role of a span towards its parent and children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// It answers a request.
    Server,
    /// It sends a request.
    Client,
}

/// A span in another trace, or another part of this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub context: TraceContext,
    pub attributes: Vec<Attribute>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    pub name: String,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    /// A list with one text: fields of a request are lists.
    List(String),
    Number(i64),
    Flag(bool),
}

impl Attribute {
    pub fn text(name: impl Into<String>, value: impl Into<String>) -> Attribute {
        let (name, value) = (name.into(), Value::Text(value.into()));
        Attribute { name, value }
    }

    pub fn number(name: impl Into<String>, value: impl TryInto<i64>) -> Attribute {
        Attribute {
            name: name.into(),
            value: Value::Number(value.try_into().unwrap_or(i64::MAX)),
        }
    }

    pub fn flag(name: impl Into<String>, value: bool) -> Attribute {
        Attribute {
            name: name.into(),
            value: Value::Flag(value),
        }
    }

    fn bytes(&self) -> usize {
        let value = match &self.value {
            Value::Text(text) | Value::List(text) => text.len(),
            Value::Number(_) | Value::Flag(_) => 0,
        };
        size_of::<Attribute>() + self.name.len() + value
    }
}

impl Span {
    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let links = self.links.iter().map(|link| {
            size_of::<Link>() + link.attributes.iter().map(Attribute::bytes).sum::<usize>()
        });
        size_of::<Span>()
            + self.name.len()
            + self.state.as_str().len()
            + self.error.as_ref().map_or(0, String::len)
            + self.attributes.iter().map(Attribute::bytes).sum::<usize>()
            + links.sum::<usize>()
    }
}
