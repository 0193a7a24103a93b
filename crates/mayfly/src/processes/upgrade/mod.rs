//! Another program in the place of the one that runs, without an end of the service: nginx's USR2, WINCH,
//! QUIT and HUP, and `mayfly upgrade`. The messages between the supervisors of both programs are here, over
//! a pair of sockets that the new one inherits; `supervisor/upgrading.rs` acts on them.
//!
//! ```text
//! the program that runs                                the new program (`Command::Successor`)
//!  [`successor`]                                        [`predecessor`]
//!   starts it, from the file it was started from ─────►
//!                 ◄──────────────────────────── Hello   it can do this
//! Inherit(sockets, control socket, pools) ──────────► logs, sockets, pools from its configuration
//!                 ◄──────────────────────── Prepared    it can serve; nothing has changed so far
//!   lets go of pid file, control socket, certificates
//!   and pools: TakeOver ──────────────────────────────► serves
//!                 ◄─────────────────── Ready(sockets)   both serve
//!   drains and ends: end of the channel ──────────────► it is alone
//! ```
//!
//! Until `Ready`, the end of the new program, a refusal or a deadline leaves the first one as it was. Later
//! the end of the new one, and its `GivesBack`, make the first one take its resources back.
//!
//! The messages are JSON: the two programs may be of different versions.

pub mod peer;
pub mod predecessor;
pub mod program;
pub mod successor;
pub mod wire;
