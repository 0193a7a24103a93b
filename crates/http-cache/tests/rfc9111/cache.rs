//! The cache of this crate, asked as the pipeline asks it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{
    CacheKey, Field, FoundResponse, JoinRequest, Millis, NotFreshKind, Policy, PurgeMode,
    PurgeTarget, RequestFacts, ResponseFacts, ResponseHead, StaleReason, Storable, StoredResponse,
    Urgency, UseStale, Zone, ZoneConfig, may_serve_stale,
};
use http_semantics::Method;

use crate::history::{HEURISTIC_PERCENT, OriginAnswer, Request, heuristic};
use crate::model::Reusable;

pub struct Cache {
    zone: Arc<Zone>,
    pub policy: Policy,
    /// Seconds by which its clock is behind when it looks for what is stored.
    pub clock_behind: i64,
    pub invalidates: bool,
}

/// The result of a lookup.
pub enum CacheFinding {
    Fresh(Reusable),
    NotFresh {
        stored: Option<Arc<StoredResponse>>,
        may_stand_in: Option<u32>,
    },
}

impl Cache {
    pub fn new() -> Cache {
        Cache {
            zone: Zone::new(ZoneConfig::default()),
            policy: Policy {
                heuristic: heuristic(HEURISTIC_PERCENT),
                stores_no_cache: true,
                ..Policy::default()
            },
            clock_behind: 0,
            invalidates: true,
        }
    }

    pub fn find(&self, request: &Request, now: i64) -> CacheFinding {
        let now = millis(now - self.clock_behind);
        let key = key(request.url);
        match self.zone.find(&key.as_ref(), &fields_of(request), now) {
            FoundResponse::Fresh(stored) => CacheFinding::Fresh(Reusable {
                body: body_of(&stored),
                age: i64::try_from(stored.head.current_age(now).as_secs()).unwrap_or(i64::MAX),
            }),
            FoundResponse::NotFresh(found) => {
                let NotFreshKind::Stale(stored, info) = found.kind else {
                    return CacheFinding::NotFresh {
                        stored: None,
                        may_stand_in: None,
                    };
                };
                // Nothing is configured: the text of the RFC applies.
                let unconfigured = UseStale {
                    when_disconnected: Duration::MAX,
                    ..UseStale::default()
                };
                let may_stand_in = may_serve_stale(StaleReason::Error, &unconfigured, &info);
                let may_stand_in = may_stand_in.then(|| body_of(&stored));
                CacheFinding::NotFresh {
                    stored: Some(stored),
                    may_stand_in,
                }
            }
        }
    }

    /// Which response a fetch would name as stored.
    pub fn validated(&self, stored: Option<&Arc<StoredResponse>>) -> Option<u32> {
        let stored = stored.filter(|stored| stored.head.status == 200)?;
        let head = &stored.head;
        (head.etag().is_some() || head.last_modified().is_some()).then(|| body_of(stored))
    }

    pub fn store(&self, request: &Request, answer: &OriginAnswer, now: i64) {
        let (request_fields, fields, key) = (fields_of(request), answer.fields(), key(request.url));
        let leader = self.zone.detached(&self.join(&key, &request_fields, now));
        let now = millis(now);
        match self.decide(&request_fields, answer.status, &fields, now) {
            Err(why) => leader.not_shareable(why, Duration::ZERO, now),
            Ok(storable) => {
                let head = ResponseHead {
                    status: answer.status,
                    fields: &fields,
                    ..ResponseHead::OK
                };
                let mut arriving = leader.publish_head(&head, &storable, now);
                arriving.push(Bytes::from(answer.body.to_string()), now);
                arriving.complete(now).expect("there is room");
            }
        }
    }

    /// The origin has answered a validation with 304.
    pub fn freshen(
        &self,
        request: &Request,
        stored: Option<Arc<StoredResponse>>,
        answer: &OriginAnswer,
        now: i64,
    ) {
        let (request_fields, fields, key) = (fields_of(request), answer.fields(), key(request.url));
        let Some(stale) = stored else {
            return;
        };
        let merged = stale.fields_after(&fields);
        let leader = self
            .zone
            .validating(&self.join(&key, &request_fields, now), Some(stale));
        let now = millis(now);
        match self.decide(&request_fields, 200, &merged, now) {
            Ok(storable) => {
                let _ = leader.freshen(&fields, None, &storable, now);
            }
            Err(why) => {
                leader.not_shareable(why, Duration::ZERO, now);
                if matches!(
                    why,
                    http_cache::Reason::Private | http_cache::Reason::NoStoreDirective
                ) {
                    self.zone
                        .purge(PurgeTarget::Key(key.as_ref()), PurgeMode::Hard, now);
                }
            }
        }
    }

    /// A request with another method has been answered.
    pub fn write(&self, url: u32, method: &str, succeeds: bool, now: i64) {
        let invalidates = Method::parse(method.as_bytes()).invalidates();
        if invalidates && succeeds && self.invalidates {
            let key = key(url);
            self.zone
                .purge(PurgeTarget::Key(key.as_ref()), PurgeMode::Hard, millis(now));
        }
    }

    fn decide(
        &self,
        request: &Vec<Field>,
        status: u16,
        fields: &[Field],
        now: Millis,
    ) -> Result<Storable, http_cache::Reason> {
        let request = RequestFacts {
            method: b"GET",
            fields: request,
            no_store_condition: false,
            uses: 1,
        };
        let response = ResponseFacts {
            status,
            fields,
            declared_length: None,
        };
        http_cache::decide(&request, &response, &self.policy, now)
    }

    fn join<'a>(&self, key: &'a CacheKey, fields: &'a Vec<Field>, now: i64) -> JoinRequest<'a> {
        JoinRequest {
            key: key.as_ref(),
            fields,
            now: millis(now),
            lock_age: None,
            group: None,
            address: b"",
            came_at: self.zone.stamp(),
            may_have_tags: false,
            urgency: Urgency::Page,
            expects: None,
        }
    }
}

fn key(url: u32) -> CacheKey {
    CacheKey::new(format!("/{url}").into_bytes())
}

fn millis(seconds: i64) -> Millis {
    Millis(seconds.unsigned_abs() * 1000)
}

fn fields_of(request: &Request) -> Vec<Field> {
    let fields = request.fields.iter();
    fields
        .map(|(name, value)| (Bytes::from(*name), Bytes::from(*value)))
        .collect()
}

/// The number that a body is.
fn body_of(stored: &StoredResponse) -> u32 {
    let bytes = stored.body.chunks().concat();
    String::from_utf8_lossy(&bytes).parse().expect("a number")
}
