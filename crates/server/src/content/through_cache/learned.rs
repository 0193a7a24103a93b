//! What a page is made of is learned beside its fetch (`cache_learn`): the fetch has a number, and what
//! comes of it is told to the pool's [`learning::LearnedPool`].

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cache_decision::Plan;
use http_cache::{
    Guard, GuardVerdict, Leader, LifetimeSource, Millis, StoredResponse, VarySpec, Zone,
};
use http_semantics::same_name;
use learning::{Digest, Fetch, KeepPage, PageMark, PageVerdict, StoredPage};
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
    /// It may be shown beyond its ordinary lifetime.
    keeps: bool,
    /// Its URL.
    address: String,
}

impl LearnedFetch {
    pub fn begin(
        request: &Request,
        pass: &Pass,
        plan: &Plan<'_>,
        leader: &Leader,
    ) -> Option<Box<LearnedFetch>> {
        let rules = plan.rules.learn.as_ref()?;
        let fetch = learned::begin(request, pass)?;
        // During an upgrade the PHP of the other process writes as well. Pages of one session are few.
        let keeps = rules.keeps && plan.zone.trusts_guards() && plan.audience.group().is_none();
        if keeps {
            leader.set_guard(Box::new(MarkedPage(fetch.mark().clone())));
        }
        Some(Box::new(LearnedFetch {
            fetch,
            digest: Digest::default(),
            most: rules.most,
            keeps,
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
    pub fn stored(self, store: &StorePlan, stored: &Arc<StoredResponse>) {
        let digest = self.digest.finish();
        self.told(store, stored, Some(digest));
    }

    /// The application stands by what is stored.
    pub fn freshened(self, store: &StorePlan, stored: &Arc<StoredResponse>) {
        self.told(store, stored, None);
    }

    fn told(self, store: &StorePlan, stored: &Arc<StoredResponse>, digest: Option<u64>) {
        let vary = stored.head.vary.as_ref();
        let vary = vary.map(|vary| (&**vary.spec(), vary.values()));
        self.fetch.stored(StoredPage {
            name: page_name(&store.zone, store.key.as_ref().bytes(), vary).into(),
            address: self.address,
            digest,
            most: self.most,
            keep: self.keeps.then(|| keep(store, stored)),
        });
    }
}

/// Lets the page be shown for a time, unless the application has said how long itself.
fn keep(store: &StorePlan, stored: &Arc<StoredResponse>) -> KeepPage {
    let (zone, key, stored) = (store.zone.clone(), store.key.clone(), stored.clone());
    Box::new(move |time| {
        let is_said = !matches!(
            stored.head.lifetime_source,
            LifetimeSource::Rule | LifetimeSource::Heuristic
        );
        let until = Millis(clock::now()).plus(time);
        !is_said && zone.keep(&key.as_ref(), &stored, until)
    })
}

/// A page that is shown while nothing that it was made of has changed.
#[derive(Debug)]
struct MarkedPage(Arc<PageMark>);

impl Guard for MarkedPage {
    fn begin(&self) {
        self.0.begin();
    }

    fn verdict(&self, _: Millis) -> GuardVerdict {
        // The time of the request may be one of before the server stood still.
        match self.0.verdict(clock::now()) {
            PageVerdict::Good => GuardVerdict::Good,
            PageVerdict::Unknown => GuardVerdict::Unknown,
            PageVerdict::Open | PageVerdict::Outdated => GuardVerdict::Outdated,
        }
    }

    fn decided(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(self.0.decided())
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
