//! Purges from all sources: their targets, the tokens that allow them, and their effect on the zones
//! of a running server, or on the folders of one that is stopped.

pub mod carry_out;
pub mod order;
pub mod token;
pub mod while_stopped;

pub use order::{MAX_SHORT_TARGETS, Order, Target};
