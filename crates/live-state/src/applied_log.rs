//! The position up to which the log that machines share (`cache_nodes`) is
//! applied.

use cache_bus::{AppliedPurges, Epoch};

/// The epoch of a log, and the position up to which it is applied.
pub type AppliedLog = AppliedPurges<Epoch>;
