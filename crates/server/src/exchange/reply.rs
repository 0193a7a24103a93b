//! A response before it is sent: handlers make it and `respond` completes it.

use std::sync::Arc;

use bytes::Bytes;
use http_cache::{KnownField, StoredHead, StoredResponse, is_html};
use http_semantics::{Fields, same_name};
use parking_lot::Mutex;
use recoding::CompressionRatio;
use site::Coding;
pub use transport::outbound::Segment;
use transport::outbound::{
    self, DESCRIBE_BODY, FieldSink, StoredForm, describes_body, is_strong_tag,
};

use crate::exchange::client_facts::ClientFacts;
use crate::exchange::request::Request;

/// Head and body of a response.
pub struct Reply {
    pub head: ReplyHead,
    pub body: Body,
}

/// Status and fields. `Content-Length`, `Transfer-Encoding`, `Connection`,
/// `Date` and `Server` are not among the fields: `respond` writes them.
#[derive(Debug, Default)]
pub struct ReplyHead {
    pub status: u16,
    /// Reason phrase of the upstream; otherwise the usual one is sent.
    pub reason: Option<Bytes>,
    /// Fields already written as `Name: value\r\n` lines, sent as they are.
    /// [`ReplyHead::unpack`] turns them into `fields`.
    pub stored: Option<StoredFrom>,
    pub fields: Fields,
    /// Length of the body where it is known.
    pub content_length: Option<u64>,
    /// Unix seconds; for conditional requests and `expires modified`.
    pub last_modified: Option<i64>,
    pub source: ReplySource,
    pub passed: PassedLines,
    pub added: AddedLines,
    pub form: BodyForm,
    /// The result of compression so far.
    pub compressed: Mutex<Option<CompressionRatio>>,
    /// The upstream's own response for this client has said more than its fields.
    pub facts: Option<Box<ClientFacts>>,
    /// The upstream decided on a charset already (X-Accel-Charset: off).
    pub keeps_charset: bool,
    /// `add_header` and `expires` have been applied, or must not be.
    pub is_final: bool,
}

/// The source of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplySource {
    #[default]
    Server,
    /// An upstream made it for this request alone.
    Upstream,
    /// It is stored, or being stored.
    Cache,
}

/// Lines of the head that are the upstream's own, or absent.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassedLines {
    pub date: bool,
    pub server: bool,
}

/// Lines of the head that are sent in addition to the fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct AddedLines {
    /// `Accept-Ranges: bytes`
    pub accept_ranges: bool,
    /// `Vary: Accept-Encoding`
    pub vary: bool,
}

/// The form in which the body is sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct BodyForm {
    /// In this coding: `Content-Encoding` names it, the entity tag is sent as a weak one,
    /// and no ranges are promised.
    pub coded: Option<Coding>,
    /// Ranges of it may be sent.
    pub accepts_ranges: bool,
    /// The client has the body (304): fields that describe it are left out.
    pub is_left_out: bool,
}

/// A stored head: part of its whole response, or ahead of a body that is still arriving.
#[derive(Debug, Clone)]
pub enum StoredFrom {
    Response(Arc<StoredResponse>),
    Arriving(Arc<StoredHead>),
}

impl std::ops::Deref for StoredFrom {
    type Target = StoredHead;

    fn deref(&self) -> &StoredHead {
        match self {
            StoredFrom::Response(response) => &response.head,
            StoredFrom::Arriving(head) => head,
        }
    }
}

impl ReplyHead {
    pub fn new(status: u16) -> ReplyHead {
        ReplyHead {
            status,
            ..ReplyHead::default()
        }
    }

    /// The head of a response that is stored, or is being stored.
    #[inline]
    pub fn of_stored(stored: StoredFrom) -> ReplyHead {
        ReplyHead {
            status: stored.status,
            reason: (!stored.reason.is_empty()).then(|| Bytes::copy_from_slice(&stored.reason)),
            stored: Some(stored),
            source: ReplySource::Cache,
            form: BodyForm {
                accepts_ranges: true,
                ..BodyForm::default()
            },
            ..ReplyHead::default()
        }
    }

    /// Makes stored fields changeable.
    pub fn unpack(&mut self) {
        if let Some(stored) = self.stored.take() {
            let mut fields = Fields::with_capacity(16);
            let kept = |(name, _): &(Bytes, Bytes)| !self.leaves_out(name);
            for (name, value) in stored.fields.pairs().filter(kept) {
                fields.append(name, value);
            }
            for (name, value) in self.fields.as_slice() {
                fields.append(name.clone(), value.clone());
            }
            self.fields = fields;
        }
    }

    /// Leaves out the fields that describe the body.
    pub fn leave_out_body(&mut self) {
        self.form.is_left_out = true;
        self.fields.retain(|name, _| !describes_body(name));
    }

    /// Is a stored field called `name` not sent?
    fn leaves_out(&self, name: &[u8]) -> bool {
        self.form.is_left_out && describes_body(name)
    }

    /// The stored fields that are sent.
    pub fn stored_fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let stored = self.stored.iter().flat_map(|stored| stored.fields.iter());
        stored.filter(|(name, _)| !self.leaves_out(name))
    }

    /// The first field called `name`, wherever it is kept.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        if let Some(value) = self.fields.get(name) {
            return Some(value);
        }
        match &self.stored {
            Some(stored) if !self.leaves_out(name.as_bytes()) => stored.fields.first(name),
            _ => None,
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// Like [`ReplyHead::field`], for the fields that most hits read.
    #[inline]
    pub fn known(&self, field: KnownField) -> Option<&[u8]> {
        if !self.fields.is_empty() {
            return self.field(field.name());
        }
        match &self.stored {
            Some(stored) if !(self.form.is_left_out && DESCRIBE_BODY.contains(&field)) => {
                stored.fields.known(field)
            }
            _ => None,
        }
    }

    /// Is the body HTML?
    pub fn is_html(&self) -> bool {
        match &self.stored {
            Some(stored) if self.fields.is_empty() => stored.fields.is_html(),
            _ => self.known(KnownField::ContentType).is_some_and(is_html),
        }
    }

    /// The fields that are sent, beside those of the transport and those for the cache's
    /// result.
    #[inline]
    pub fn walk(&self, to: &mut impl FieldSink) {
        if let Some(stored) = &self.stored {
            let form = match self.form.coded {
                _ if self.form.is_left_out => StoredForm::WithoutBody,
                Some(_) => StoredForm::Recoded,
                None => StoredForm::AsIs,
            };
            to.stored(&stored.fields, form);
        }
        if self.added.accept_ranges {
            to.line(b"Accept-Ranges: bytes\r\n");
        }
        if self.added.vary {
            to.line(b"Vary: Accept-Encoding\r\n");
        }
        if let Some(coding) = self.form.coded {
            to.line(match coding {
                Coding::Brotli => b"Content-Encoding: br\r\n",
                Coding::Zstd => b"Content-Encoding: zstd\r\n",
                Coding::Gzip => b"Content-Encoding: gzip\r\n",
            });
        }
        if !self.fields.is_empty() {
            self.walk_own(to);
        }
    }

    /// The fields that are kept one by one.
    fn walk_own(&self, to: &mut impl FieldSink) {
        for (name, value) in self.fields.iter() {
            if self.form.coded.is_some() && is_strong_tag(name, value) {
                to.field(name, &[b"W/", value].concat());
            } else if self.form.coded.is_none() || !same_name(name, b"accept-ranges") {
                to.field(name, value);
            }
        }
    }

    /// Returns how many times smaller this coding made the body: `$gzip_ratio` and its
    /// kin.
    pub fn ratio(&self, coding: Coding) -> Option<f64> {
        let done = self
            .compressed
            .lock()
            .filter(|done| done.coding == coding)?;
        (done.after_bytes > 0).then(|| done.before_bytes as f64 / done.after_bytes as f64)
    }
}

/// The body of a response, or where its bytes come from.
pub type Body = outbound::Body<Request>;

impl Reply {
    /// A stored response, whole. Made where it stays: it is large.
    pub fn of_stored(stored: Arc<StoredResponse>) -> Box<Reply> {
        let place = Box::new_uninit();
        let length = stored.body.len();
        let reply = Reply {
            head: ReplyHead {
                content_length: Some(length),
                ..ReplyHead::of_stored(StoredFrom::Response(stored.clone()))
            },
            body: Body::Stored {
                response: stored,
                start: 0,
                end: length,
            },
        };
        Box::write(place, reply)
    }

    pub fn new(status: u16, content_type: &[u8], body: impl Into<Bytes>) -> Reply {
        let body = body.into();
        let mut head = ReplyHead::new(status);
        head.content_length = Some(body.len() as u64);
        if !content_type.is_empty() {
            head.fields
                .append("Content-Type", Bytes::copy_from_slice(content_type));
        }
        Reply {
            head,
            body: Body::bytes(body),
        }
    }
}
