//! An administrator's requests to the engine in force, beside the nodes: its version and state, the nodes it knows, and
//! the expulsion of one that hangs.

use std::fmt;

use crate::connection::BusError;
use crate::engine::{EngineFacts, KnownNodes, RedisEngine};
use crate::settings::BusSettings;

/// A connection of an administrator. It is no node.
pub struct Administration {
    engine: RedisEngine,
}

/// The reason why the engine does not answer.
#[derive(Debug)]
pub struct AdministrationError(BusError);

impl From<BusError> for AdministrationError {
    fn from(error: BusError) -> AdministrationError {
        AdministrationError(error)
    }
}

impl fmt::Display for AdministrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.0)
    }
}

impl Administration {
    /// Connects to the engine in force.
    ///
    /// # Errors
    /// The reason why that is not possible.
    pub async fn connect(settings: &BusSettings) -> Result<Administration, AdministrationError> {
        let engine = RedisEngine::connect(settings, 0).await?;
        Ok(Administration { engine })
    }

    /// Returns the engine's facts about itself.
    #[must_use]
    pub fn facts(&self) -> &EngineFacts {
        &self.engine.facts
    }

    /// The nodes that the engine knows.
    ///
    /// # Errors
    /// The engine does not answer, for this reason.
    pub async fn nodes(&self) -> Result<KnownNodes, AdministrationError> {
        Ok(self.engine.nodes().await?)
    }

    /// From now on this node gets no lease in this life: once the lease that it may hold has ended, purges wait for it no
    /// longer. Whether the engine knows the node.
    ///
    /// # Errors
    /// The reason why the engine does not do it.
    pub async fn expel(&self, instance: u64) -> Result<bool, AdministrationError> {
        Ok(self.engine.expel(instance).await?)
    }
}
