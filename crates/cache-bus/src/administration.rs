//! An administrator's requests to the engine in force, beside the nodes: its version and state, the nodes it knows, and
//! the expulsion of one that hangs.

use crate::connection::BusError;
use crate::engine::{EngineFacts, KnownNodes, RedisEngine};
use crate::settings::BusSettings;

/// A connection of an administrator. It is no node.
pub struct Administration {
    engine: RedisEngine,
}

impl Administration {
    /// Connects to the engine in force.
    ///
    /// # Errors
    /// The reason why that is not possible.
    pub async fn connect(settings: &BusSettings) -> Result<Administration, BusError> {
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
    pub async fn nodes(&self) -> Result<KnownNodes, BusError> {
        self.engine.nodes().await
    }

    /// From now on this node gets no lease in this life: once the lease that it may hold has ended, purges wait for it no
    /// longer. Whether the engine knows the node.
    ///
    /// # Errors
    /// The reason why the engine does not do it.
    pub async fn expel(&self, instance: u64) -> Result<bool, BusError> {
        self.engine.expel(instance).await
    }
}
