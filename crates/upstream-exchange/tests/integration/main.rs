//! Exchanges of each protocol over a scripted stream.

mod cost;
mod failures;
mod scripted;
