//! A request with its response, as a transport sees it.

use bytes::Bytes;
use http_semantics::{Fields, RequestHead};
use site::{BodySettings, ConnectionSettings};
use transport::outbound::{FieldSink, Opening, Pace, SentHead, ServerField};
use transport::service::{Exchange, SendRules};

use super::{fields, pace};
use crate::exchange::compiled_location::ServerLine;
use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::{Method, Request};
use crate::exchange::sent_fields;

impl Exchange for Request {
    #[inline]
    fn head(&self) -> &RequestHead {
        self.received.head()
    }

    #[inline]
    fn wants_head_alone(&self) -> bool {
        self.route.method == Method::Head
    }

    #[inline]
    fn now(&self) -> u64 {
        Request::now(self)
    }

    #[inline]
    fn connection_settings(&self) -> &ConnectionSettings {
        &self.settings().connection
    }

    #[inline]
    fn body_settings(&self) -> &BodySettings {
        &self.settings().body
    }

    #[inline]
    fn may_sendfile(&self) -> bool {
        self.settings().files.sendfile
    }

    fn add_received(&mut self, bytes: u64) {
        *self.received_bytes.get_mut() += bytes;
    }

    #[inline]
    fn opening(&self) -> Opening<'_> {
        let Some(reply) = &self.delivery.reply else {
            return Opening {
                status: 500,
                reason: None,
                server: ServerField::None,
                date: Some(self.now()),
            };
        };
        let head = &reply.head;
        let server = match head.passed.server {
            true => ServerField::None,
            false => server_field(self),
        };
        Opening {
            status: head.status,
            reason: head.reason.as_deref(),
            server,
            date: (!head.passed.date).then_some(self.now()),
        }
    }

    #[inline]
    fn walk_fields(&self, to: &mut impl FieldSink) {
        if let Some(reply) = &self.delivery.reply {
            sent_fields::walk(self, &reply.head, to);
        }
    }

    #[inline]
    fn content_length(&self) -> Option<u64> {
        self.delivery.reply.as_ref()?.head.content_length
    }

    #[inline]
    fn rules(&self) -> SendRules {
        let location = self.compiled_location();
        let settings = &location.settings;
        SendRules {
            may_chunk: settings.connection.chunked_transfer_encoding,
            keepalive_header: settings.connection.keepalive_header,
            may_have_trailers: !settings.headers.trailers.is_empty(),
            may_be_paced: location.is_paced || self.delivery.limit_rate.is_some(),
            sendfile: settings.files.sendfile,
        }
    }

    fn error_status(&self) -> Option<u16> {
        self.delivery.error_page.error_status()
    }

    #[inline]
    fn body(&mut self) -> &mut Body {
        let empty = || Box::new(Reply::new(500, b"", Bytes::new()));
        &mut self.delivery.reply.get_or_insert_with(empty).body
    }

    fn take_body(&mut self) -> Body {
        std::mem::replace(self.body(), Body::Empty)
    }

    fn pace(&mut self) -> Option<Pace> {
        pace::of(self)
    }

    fn trailers(&mut self, received: Fields) -> &Fields {
        fields::add_trailers(self, received);
        &self.delivery.trailers
    }

    #[inline]
    fn note_head(&mut self, head: SentHead) {
        self.delivery.sent_head = Some(head);
    }

    #[inline]
    fn add_sent(&mut self, bytes: u64, head_bytes: u64) {
        *self.delivery.bytes_sent.get_mut() += bytes;
        *self.delivery.head_bytes_sent.get_mut() += head_bytes;
    }

    #[inline]
    fn complete(&mut self) {
        self.delivery.is_complete = true;
    }
}

/// The `Server` field that `server_tokens` asks for.
#[inline]
fn server_field(request: &Request) -> ServerField<'_> {
    match request.compiled_location().server_line {
        ServerLine::Version => ServerField::Version,
        ServerLine::Name => ServerField::Name,
        ServerLine::Text => match &request.delivery.server_text {
            Some(text) if !text.is_empty() => ServerField::Text(text),
            _ => ServerField::None,
        },
    }
}
