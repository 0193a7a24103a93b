//! Up to where the log that machines share (`cache_nodes`) is applied.

use cache_bus::{AppliedPurges, Epoch};

/// Up to where the log of which epoch is applied.
pub type AppliedLog = AppliedPurges<Epoch>;
