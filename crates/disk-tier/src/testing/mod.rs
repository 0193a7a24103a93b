//! For tests: a disk that loses power, tears, flips bits, fills up and stalls, and a tier without threads on it.

mod disk;

pub use disk::{DiskFault, DiskOperation, SimulatedDisk};
