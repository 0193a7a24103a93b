//! The journal: purges that hold through a restart.
//!
//! ```text
//! history   reads the files of earlier starts: purges, the floor, the last start
//! writer    the file of this start, and the next when it is full
//! queue     purges that wait for the disk, and the tickets of their callers
//! ```
//!
//! Each start of a server, and each purge while none runs, begins a file of its own: a file that an earlier process
//! may have left half written is read, never appended to. A file is kept as long as a record is older than the next
//! file.

pub(crate) mod history;
pub(crate) mod queue;
pub(crate) mod writer;
