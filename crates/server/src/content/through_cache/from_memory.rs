//! Replies made of stored responses, and of responses that are arriving in the cache.

use std::sync::Arc;

use bytes::Bytes;
use http_cache::{
    Forward, Millis, Outcome, Reader, Reason, ServedFrom, StoredHead, StoredResponse,
};

use crate::content::filling_body::FillingBody;
use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::{Body, Reply, ReplyHead, StoredFrom};
use crate::exchange::request::Request;

/// A fresh response.
pub fn hit(request: &mut Request, stored: Arc<StoredResponse>) -> StageEnd {
    from_memory(request, stored, ServedFrom::Fresh)
}

/// A stored response, fresh or stale.
pub fn from_memory(
    request: &mut Request,
    stored: Arc<StoredResponse>,
    served: ServedFrom,
) -> StageEnd {
    StageEnd::Reply(reply_from_memory(request, stored, served))
}

/// A stored response as a reply.
pub fn reply_from_memory(
    request: &mut Request,
    stored: Arc<StoredResponse>,
    served: ServedFrom,
) -> Box<Reply> {
    note_served(request, &stored.head, served);
    if stored.is_own_copy() && request.cache.reason.is_none() {
        request.cache.reason = Some(Reason::OwnCopy);
    }
    Reply::of_stored(stored)
}

/// Notes for logs and fields which stored response answers.
pub fn note_served(request: &mut Request, stored: &StoredHead, served: ServedFrom) {
    let now = Millis(request.now);
    let collapsed = request
        .cache
        .outcome
        .as_ref()
        .is_some_and(|outcome| outcome.collapsed);
    request.cache.outcome = Some(Outcome {
        served,
        collapsed,
        fwd: (served == ServedFrom::Revalidated).then_some(Forward::Stale),
        ttl_secs: Some(stored.ttl_secs(now)),
        ..Outcome::default()
    });
    if served != ServedFrom::Revalidated {
        request.cache.spared_micros = stored.made_in.micros();
    }
    // The reason that an internal redirect may have left is out of date.
    request.cache.reason = request.cache.lost_lease();
    request.cache.age = Some(stored.current_age(now).as_secs());
    if request.configuration.site.http.uses_cache_last_modified {
        request.cache.last_modified = stored.last_modified().map(Bytes::copy_from_slice);
    }
}

/// A response that is arriving, read by this client like by all others.
pub fn reading(cache: &mut CacheFacts, reader: Reader) -> StageEnd {
    let stored = reader.head().clone();
    // Age that other caches gave it is passed on (RFC 9111 §5.1).
    cache.age = Some(stored.age_at_receipt.duration().as_secs());
    StageEnd::Reply(Box::new(Reply {
        head: ReplyHead {
            content_length: stored.declared_length,
            ..ReplyHead::of_stored(StoredFrom::Arriving(stored))
        },
        body: Body::arriving(FillingBody(reader)),
    }))
}

/// Notes why a response is for this client alone.
pub fn note_not_stored(cache: &mut CacheFacts, why: Reason) {
    cache.note_not_stored(why);
}
