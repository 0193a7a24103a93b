//! One page through all stages, and the result.

use bytes::Bytes;
use http_cache::{Reason, ServedFrom};
use shared_request::Class;

use crate::content::own_visit::{self, StoredState};
use crate::exchange::own_visit::{NotAsked, Purpose};
use crate::exchange::request::Request;
use crate::exchange::subrequest;

/// The media types that browsers accept for pages.
const ACCEPT: &[u8] = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
/// The codings that most browsers accept: a page that is stored compressed is stored for them.
const ACCEPT_ENCODING: &[u8] = b"gzip, deflate, br, zstd";

/// More of a page is not waited for: it is too large to be stored by far.
const MAX_BODY_BYTES: usize = 256 << 20;

/// The result of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisitResult {
    /// It was stored, and fresh.
    Fresh { status: u16 },
    /// It was fetched, and is stored now.
    Stored { status: u16 },
    /// It is not stored, and why. `None`: no upstream was asked.
    NotStored { status: Option<u16>, why: Reason },
    /// Visitors come first, or another request is fetching it.
    Busy,
    /// The answer would not be stored in the place of the purged page.
    OtherPage,
}

/// The fields of a visitor of this class who has never been here.
pub fn fields(class: Class) -> Vec<(String, Vec<u8>)> {
    let field = |name: &str, value: &[u8]| (name.to_owned(), value.to_vec());
    vec![
        field("user-agent", class.user_agent().as_bytes()),
        field("accept", ACCEPT),
        field("accept-encoding", ACCEPT_ENCODING),
    ]
}

/// Takes the request through all stages. Over when the page is stored, or will not be.
pub async fn visit(request: &mut Request) -> VisitResult {
    let reply = subrequest::serve(request).await;
    if let Some(not_asked) = not_asked(request) {
        return match not_asked {
            NotAsked::Busy => VisitResult::Busy,
            NotAsked::OtherPage | NotAsked::Dry => VisitResult::OtherPage,
            NotAsked::NotKept(why) => VisitResult::NotStored { status: None, why },
        };
    }
    let Some(reply) = reply else {
        let status = Some(request.delivery.status);
        let why = Reason::NoAnswer;
        return VisitResult::NotStored { status, why };
    };
    let status = request.delivery.status_of(&reply.head);
    let is_hit = request.cache.read(|notes| {
        let outcome = notes.outcome.as_ref();
        outcome.is_some_and(|it| it.served == ServedFrom::Fresh && it.fwd.is_none())
    });
    if is_hit {
        return match is_meant(request) {
            true => VisitResult::Fresh { status },
            false => VisitResult::OtherPage,
        };
    }
    // All of it is read, so that it is stored.
    let is_whole = subrequest::read_body(request, reply.body, MAX_BODY_BYTES, drop).await;
    let refresh = request
        .values
        .given()
        .and_then(|it| it.later.refresh.take());
    if let Some(refresh) = refresh {
        // Its result is seen in the store.
        let _ = refresh.await;
    }
    match own_visit::stored(request) {
        StoredState::Fresh => VisitResult::Stored { status },
        // The stale copy was shown. If no upstream was asked, other requests fetch the page, or come first.
        StoredState::Stale if !was_asked(request) => VisitResult::Busy,
        StoredState::Stale => VisitResult::NotStored {
            status: Some(status),
            why: Reason::Failed,
        },
        StoredState::No(why) => VisitResult::NotStored {
            status: Some(status),
            why: match is_whole {
                true => why,
                false => Reason::Truncated,
            },
        },
    }
}

/// Reads a page: its body and its status. The body is `None` if it is longer than `max_bytes` or broke off.
pub async fn read(
    mut request: Box<Request>,
    max_bytes: usize,
) -> Result<(u16, Option<Bytes>), NotAsked> {
    let reply = subrequest::serve(&mut request).await;
    if let Some(not_asked) = not_asked(&request) {
        return Err(not_asked);
    }
    let Some(reply) = reply else {
        return Ok((request.delivery.status, None));
    };
    let status = request.delivery.status_of(&reply.head);
    let mut bytes = Vec::new();
    let take = |piece: Bytes| bytes.extend_from_slice(&piece);
    let is_whole = subrequest::read_body(&request, reply.body, max_bytes, take).await;
    Ok((status, is_whole.then(|| bytes.into())))
}

fn not_asked(request: &Request) -> Option<NotAsked> {
    request.own_visit.as_ref()?.not_asked.get().copied()
}

/// Was any upstream asked, with whatever success?
fn was_asked(request: &Request) -> bool {
    let trace = request.trace.get();
    trace.is_some_and(|trace| !trace.lock().tries.is_empty())
}

/// Is the stored response for the request the page that is meant?
fn is_meant(request: &Request) -> bool {
    match request.own_visit.as_ref().map(|it| &it.purpose) {
        Some(Purpose::Refill(wanted)) => *wanted.key == *request.cache.key,
        _ => true,
    }
}
