//! The framing of a response's body for the client (RFC 9112 §6), and whether the
//! connection goes on behind it.

use std::time::Duration;

use http_semantics::Version;

use crate::outbound::{Body, ConnectionOption, SentHead};
use crate::service::{Ending, Exchange, SendRules};

/// The mark of the body's end for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body, whatever the fields say.
    None,
    Length(u64),
    Chunked,
    UntilClose,
}

impl BodyFraming {
    /// Bytes that are promised to the client.
    pub fn declared(self) -> Option<u64> {
        match self {
            BodyFraming::Length(length) => Some(length),
            _ => None,
        }
    }
}

/// Statuses after which the connection is not used again (as nginx does): bytes that
/// follow on it cannot be trusted to be a request.
const CLOSING_STATUSES: [u16; 10] = [400, 413, 414, 494, 495, 496, 497, 500, 501, 505];

fn is_closing(status: u16) -> bool {
    status >= 400 && CLOSING_STATUSES.contains(&status)
}

/// Returns how the body of a response with this status is framed.
#[inline]
pub fn of<X: Exchange>(exchange: &mut X, status: u16, rules: &SendRules) -> BodyFraming {
    match status {
        100..=199 | 204 | 304 => return BodyFraming::None,
        _ => {}
    }
    let may_chunk = rules.may_chunk && exchange.head().version() >= Version::Http11;
    // Only chunks have room for trailers.
    let has_trailers = rules.may_have_trailers && may_chunk;
    if let Some(length) = exchange.content_length().filter(|_| !has_trailers) {
        return BodyFraming::Length(length);
    }
    if matches!(exchange.body(), Body::Empty) && !has_trailers {
        return match exchange.wants_head_alone() {
            true => BodyFraming::None,
            false => BodyFraming::Length(0),
        };
    }
    match may_chunk {
        true => BodyFraming::Chunked,
        false => BodyFraming::UntilClose,
    }
}

/// Returns whether the connection goes on behind the response.
#[inline]
pub fn ending<X: Exchange>(
    exchange: &X,
    status: u16,
    framing: BodyFraming,
    may_keep_alive: bool,
) -> Ending {
    let closes = !may_keep_alive
        || framing == BodyFraming::UntilClose
        || (is_closing(status) && exchange.error_status().is_none_or(is_closing));
    match closes {
        true => Ending::Close,
        false => Ending::KeepAlive,
    }
}

/// Returns the connection facts of the head, and the body's framing.
#[inline]
pub fn sent_head(
    status: u16,
    framing: BodyFraming,
    ending: Ending,
    keepalive_header: Option<Duration>,
) -> SentHead {
    SentHead {
        length: framing.declared(),
        is_chunked: framing == BodyFraming::Chunked,
        connection: match (status, ending) {
            (101, _) => ConnectionOption::Upgrade,
            (_, Ending::Close) => ConnectionOption::Close,
            (_, Ending::KeepAlive) => ConnectionOption::KeepAlive,
        },
        keep_alive_seconds: match ending {
            Ending::KeepAlive => keepalive_header.map(|time| time.as_secs()),
            Ending::Close => None,
        },
    }
}
