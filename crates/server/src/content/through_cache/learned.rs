//! What a page is made of is learned beside its fetch (`cache_learn`): the fetch has a number, and what
//! comes of it is told to the pool's [`learning::LearnedPool`].

use std::time::Duration;

use bytes::Bytes;
use cache_decision::Plan;
use http_cache::{StoredResponse, VarySpec, Zone};
use http_semantics::same_name;
use learning::{Digest, Fetch, StoredPage};
use site::Pass;

use super::store_plan::StorePlan;
use super::tags;
use crate::content::pass::learned;
use crate::exchange::request::Request;

/// A fetch whose page is learned, if it is stored.
pub struct LearnedFetch {
    fetch: Fetch,
    digest: Digest,
    most: Duration,
    /// Its URL.
    address: String,
}

impl LearnedFetch {
    pub fn begin(request: &Request, pass: &Pass, plan: &Plan<'_>) -> Option<Box<LearnedFetch>> {
        let most = plan.rules.learn.as_ref()?.most;
        let fetch = learned::begin(request, pass)?;
        Some(Box::new(LearnedFetch {
            fetch,
            digest: Digest::default(),
            most,
            address: {
                let mut url = tags::origin(&request.received);
                url.extend_from_slice(request.received.target());
                String::from_utf8_lossy(&url).into_owned()
            },
        }))
    }

    pub fn number(&self) -> u64 {
        self.fetch.number()
    }

    /// The status, and where a redirect leads.
    pub fn read_head(&mut self, status: u16, fields: &[(Bytes, Bytes)]) {
        self.digest.read(&status.to_be_bytes());
        let location = fields.iter().find(|(name, _)| same_name(name, b"location"));
        self.digest
            .read(location.map_or(&b""[..], |(_, value)| value));
    }

    pub fn read(&mut self, bytes: &[u8]) {
        self.digest.read(bytes);
    }

    /// The page is in memory.
    pub fn stored(self, store: &StorePlan, stored: &StoredResponse) {
        let digest = self.digest.finish();
        self.told(store, stored, Some(digest));
    }

    /// The application stands by what is stored.
    pub fn freshened(self, store: &StorePlan, stored: &StoredResponse) {
        self.told(store, stored, None);
    }

    fn told(self, store: &StorePlan, stored: &StoredResponse, digest: Option<u64>) {
        let vary = stored.head.vary.as_ref();
        let vary = vary.map(|vary| (&**vary.spec(), vary.values()));
        self.fetch.stored(StoredPage {
            name: page_name(&store.zone, store.key.as_ref().bytes(), vary).into(),
            address: self.address,
            digest,
            most: self.most,
        });
    }
}

/// What a page is found by in what was learned.
pub fn page_name(zone: &Zone, key: &[u8], vary: Option<(&VarySpec, &[u8])>) -> Vec<u8> {
    let mut name = zone.config().name.clone().into_bytes();
    name.push(0);
    name.extend_from_slice(key);
    if let Some((spec, values)) = vary {
        for field in spec.names() {
            name.push(0);
            name.extend_from_slice(field.as_bytes());
        }
        name.push(0);
        name.extend_from_slice(values);
    }
    name
}
