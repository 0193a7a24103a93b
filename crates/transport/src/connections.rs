//! The connections of clients, as far as others than themselves have to do with them: to
//! be counted, and to be closed.

use std::collections::HashMap;
use std::sync::Weak;

use parking_lot::Mutex;

use crate::stream::Phase;

/// A connection, as others see it.
pub trait TrackedConnection: Send + Sync {
    fn phase(&self) -> Phase;

    /// Ends it where it waits for a next request.
    fn close_if_idle(&self);
}

/// The connections there are.
#[derive(Default)]
pub struct Connections(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    streams: HashMap<usize, Weak<dyn TrackedConnection>>,
    next: usize,
}

/// How many connections are active, idle and so on.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    pub active: usize,
    /// Part of a request's head has come.
    pub reading: usize,
    /// A request is being answered.
    pub writing: usize,
    /// Nothing of a next request has come.
    pub waiting: usize,
}

impl Connections {
    /// Takes a connection in; its end must pass the number that it gives to [`Connections::remove`].
    pub fn add(&self, stream: Weak<dyn TrackedConnection>) -> usize {
        let mut registry = self.0.lock();
        let key = registry.next;
        registry.next = registry.next.wrapping_add(1);
        registry.streams.insert(key, stream);
        key
    }

    pub fn remove(&self, key: usize) {
        self.0.lock().streams.remove(&key);
    }

    pub fn for_each(&self, mut act: impl FnMut(&dyn TrackedConnection)) {
        for stream in self.0.lock().streams.values() {
            if let Some(stream) = stream.upgrade() {
                act(&*stream);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().streams.is_empty()
    }

    pub fn census(&self) -> Census {
        let mut census = Census::default();
        self.for_each(|stream| {
            census.active += 1;
            let counted = match stream.phase() {
                Phase::Idle | Phase::Quiet => &mut census.waiting,
                Phase::Reading => &mut census.reading,
                Phase::Busy => &mut census.writing,
            };
            *counted += 1;
        });
        census
    }
}
