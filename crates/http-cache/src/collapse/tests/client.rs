//! Actors of the tests: a client that looks and plays its part, a leader's response, and futures that are polled
//! by hand.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

pub fn zone() -> Arc<Zone> {
    zone_with(1 << 20)
}

pub fn zone_with(max_response_bytes: u64) -> Arc<Zone> {
    Zone::new(ZoneConfig {
        max_response_bytes,
        shards: 2,
        ..ZoneConfig::default()
    })
}

pub struct Client<'a> {
    pub zone: &'a Arc<Zone>,
    pub key: CacheKey,
    pub fields: Vec<Field>,
    pub now: Millis,
    pub lock_age: Option<Duration>,
    pub group: Option<u64>,
}

impl<'a> Client<'a> {
    pub fn new(zone: &'a Arc<Zone>, lines: &[&str]) -> Client<'a> {
        Client {
            zone,
            key: key("/"),
            fields: fields(lines),
            now: T0,
            lock_age: None,
            group: None,
        }
    }

    pub fn request(&self) -> JoinRequest<'_> {
        let (key, fields, now) = (self.key.as_ref(), &self.fields, self.now);
        JoinRequest {
            key,
            fields,
            now,
            lock_age: self.lock_age,
            group: self.group,
            address: b"",
            came_at: self.zone.stamp(),
            may_have_tags: false,
            urgency: Urgency::Page,
            expects: None,
        }
    }

    pub fn find(&self) -> FoundResponse {
        self.zone.find(&self.key.as_ref(), &self.fields, self.now)
    }

    pub fn not_fresh(&self) -> NotFresh {
        match self.find() {
            FoundResponse::NotFresh(found) => found,
            FoundResponse::Fresh(response) => panic!("not fresh, not {response:?}"),
        }
    }

    pub fn collapse(&self, found: &NotFresh) -> Join {
        self.zone.collapse(&self.request(), found)
    }

    /// Looks, and plays its part.
    pub fn join(&self) -> Join {
        match self.find() {
            FoundResponse::Fresh(response) => Join::Fresh(response),
            FoundResponse::NotFresh(found) => self.collapse(&found),
        }
    }

    pub fn refresh(&self) -> Option<Leader> {
        self.zone.refresh(&self.request(), &self.not_fresh())
    }

    pub fn lead(&self) -> Leader {
        match self.join() {
            Join::Lead(leader) => leader,
            other => panic!("leads, not {other:?}"),
        }
    }

    pub fn follow(&self) -> Follower {
        match self.join() {
            Join::Follow(follower) => follower,
            other => panic!("follows, not {other:?}"),
        }
    }

    pub fn wait(&self, follower: &mut Follower) -> Option<FollowerOutcome> {
        now(follower.wait(&self.fields))
    }

    pub fn stream(&self, follower: &mut Follower) -> Reader {
        match self.wait(follower) {
            Some(FollowerOutcome::Streaming(reader)) => reader,
            other => panic!("streams, not {other:?}"),
        }
    }
}

/// Returns the result of a future that is ready at once.
pub fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

pub fn publish(
    leader: Leader,
    lines: &[&str],
    request: &[Field],
    declared: Option<u64>,
) -> ArrivingResponse {
    let storable = storable(lines, request);
    let fields = fields(lines);
    let head = ResponseHead {
        fields: &fields,
        declared_length: declared,
        ..ResponseHead::OK
    };
    leader.publish_head(&head, &storable, T0)
}

pub const SECOND: &[&str] = &["Cache-Control: max-age=1"];

/// Reads what there is: the bytes, and how it ended (None: not yet).
pub fn read(reader: &mut Reader) -> (String, Option<Result<(), TruncatedResponse>>) {
    let mut text = String::new();
    loop {
        match now(reader.next_chunk()) {
            Some(Ok(Some(bytes))) => text.push_str(&String::from_utf8_lossy(&bytes)),
            Some(Ok(None)) => return (text, Some(Ok(()))),
            Some(Err(truncated)) => return (text, Some(Err(truncated))),
            None => return (text, None),
        }
    }
}

pub fn part(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}
