//! Replies made of stored responses, and of responses that are arriving in the cache.

use std::sync::Arc;

use bytes::Bytes;
use http_cache::{Millis, Reader, Reason, ServedFrom, StoredHead, StoredResponse};

use crate::content::filling_body::FillingBody;
use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::{Body, Reply, ReplyHead, StoredFrom};
use crate::exchange::request::Request;

/// A fresh response.
pub fn hit(request: &Request, stored: Arc<StoredResponse>) -> StageEnd {
    from_memory(request, stored, ServedFrom::Fresh)
}

/// A stored response, fresh or stale.
pub fn from_memory(request: &Request, stored: Arc<StoredResponse>, served: ServedFrom) -> StageEnd {
    StageEnd::Reply(reply_from_memory(request, stored, served))
}

/// A stored response as a reply.
pub fn reply_from_memory(
    request: &Request,
    stored: Arc<StoredResponse>,
    served: ServedFrom,
) -> Box<Reply> {
    note_served(request, &stored.head, served);
    if stored.is_own_copy() {
        request.cache.write(|notes| {
            notes.reason.get_or_insert(Reason::OwnCopy);
        });
    }
    Reply::of_stored(stored)
}

/// Notes for logs and fields which stored response answers.
pub fn note_served(request: &Request, stored: &StoredHead, served: ServedFrom) {
    let keeps_last_modified = request.configuration.site.http.uses_cache_last_modified;
    request.cache.write(|notes| {
        notes.note_served(stored, served, Millis(request.now()));
        if keeps_last_modified {
            notes.last_modified = stored.last_modified().map(Bytes::copy_from_slice);
        }
    });
}

/// A response that is arriving, read by this client like by all others.
pub fn reading(cache: &CacheFacts, reader: Reader) -> StageEnd {
    let stored = reader.head().clone();
    // Age that other caches gave it is passed on (RFC 9111 §5.1).
    let age = stored.age_at_receipt.duration().as_secs();
    cache.write(|notes| notes.age = Some(age));
    StageEnd::Reply(Box::new(Reply {
        head: ReplyHead {
            content_length: stored.declared_length,
            ..ReplyHead::of_stored(StoredFrom::Arriving(stored))
        },
        body: Body::arriving(FillingBody(reader)),
    }))
}
