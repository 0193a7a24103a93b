//! Connections driven frame by frame, as clients may. One program: linking several costs
//! more than running them.

mod blocks;
mod client;
mod floods;
mod flow;
mod h2_peer;
mod properties;
mod requests;
mod responses;
mod shutdown;
mod states;
