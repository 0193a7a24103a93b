//! The protocol beside a model of the world: one page, its data, two or three nodes, engines that are
//! failed over, trimmed and lost, calls whose parts are apart in time, crashes, pauses, a disk that
//! lags, clocks that run fast and slow.
//!
//! One sentence is checked, at each answer: no node begins an answer with older data than that of
//! the newest purge that has returned.
//!
//! ```text
//! engine    the log and the members, and the meaning of each call
//! world     the state, and what may happen next
//! host      a node with its memory, its disk and its calls
//! search    at random (a seed finds a history again), and all histories of a small world
//! rules     each rule left out is found, by a seed that is written down
//! ```
//!
//! By hand: `MODEL_STEPS=60000000 cargo test --release -p cache-nodes --test model -- --nocapture`

mod engine;
mod host;
mod rules;
mod search;
mod world;
