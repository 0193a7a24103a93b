//! A thread's own share of the configuration in force. Every request holds one
//! while it lives. Were all of them shares of one count, that count's cache line
//! would go from core to core for each request; so each thread has a count of its
//! own around the shared one, and its requests meet no other thread's.

use std::ops::Deref;
use std::sync::Arc;

use crate::exchange::active_configuration::ActiveConfiguration;

/// A configuration, held by way of the thread that [`ConfigurationHandle::new`] was called for.
/// Clones may go to other threads; they still count where they come from.
#[derive(Clone)]
pub struct ConfigurationHandle(Arc<Line>);

/// Kept apart from other memory: the counts before it fill a cache line that holds
/// nothing else.
#[repr(align(64))]
struct Line(Arc<ActiveConfiguration>);

impl ConfigurationHandle {
    /// A count of its own around `configuration`.
    pub fn new(configuration: Arc<ActiveConfiguration>) -> ConfigurationHandle {
        ConfigurationHandle(Arc::new(Line(configuration)))
    }

    /// The configuration that all threads share.
    pub fn shared(&self) -> &Arc<ActiveConfiguration> {
        &self.0.0
    }
}

impl Deref for ConfigurationHandle {
    type Target = ActiveConfiguration;

    fn deref(&self) -> &ActiveConfiguration {
        self.shared()
    }
}
