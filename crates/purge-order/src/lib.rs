//! What a purge is about, however it was asked for, who may ask for it with a token, and what it does:
//! to the zones of a running server, or to the folders of one that is stopped.

pub mod carry_out;
pub mod order;
pub mod token;
pub mod while_stopped;

pub use order::{MAX_SHORT_TARGETS, Order, Target};
