//! The time slice of a thread: how long the scheduler lets it run before other threads.
//!
//! Linux (6.12 and later) lets a thread of ordinary priority ask for a shorter slice of time than
//! others have (`sched_setattr(2)`, `sched_runtime`). It gets no more of the processor for that, but
//! its turns come sooner: when it wakes up it need not wait until a neighbour has used up 3 ms. A
//! server that answers in microseconds beside PHP, which computes for milliseconds, wants exactly this.
//! It needs no privilege. On a kernel without it nothing changes.
//!
//! This crate has `unsafe` code: two system calls that no library wraps. Both are given a structure of
//! our own and its size, and nothing else; the kernel reads or writes at most that size and keeps no
//! reference to the structure.

use std::io;
use std::mem::size_of;
use std::time::Duration;

/// The kernel's `struct sched_attr`, in its first version (48 bytes), which every kernel that has the
/// two calls understands (Linux 3.14).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Nanoseconds. For threads of ordinary priority: the slice.
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;
const _: () = assert!(SIZE == 48);

/// `SCHED_OTHER`: the policy that threads have by default.
const ORDINARY: u32 = 0;

/// Asks for turns of `slice` for the calling thread, and for the threads it starts from now on. The
/// kernel takes 0.1 to 100 ms and clamps others to that. Threads with another policy than the
/// ordinary one are left alone.
///
/// # Errors
/// The error of the system call, if a sandbox forbids it for instance.
pub fn set(slice: Duration) -> io::Result<()> {
    let mut attributes = get()?;
    if attributes.policy != ORDINARY {
        return Ok(());
    }
    attributes.size = SIZE;
    attributes.runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the kernel reads `size` bytes, all of them ours, while the call lasts. The first
    // argument 0 is the calling thread; the last, flags, must be 0.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The calling thread's attributes.
fn get() -> io::Result<Attributes> {
    let mut attributes = Attributes::default();
    // SAFETY: the kernel writes at most `SIZE` bytes, the size of `attributes`, while the call lasts; any
    // bytes are a valid `Attributes`. Arguments as above.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    match done {
        0 => Ok(attributes),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the test in a thread of its own, since the attributes stay.
    fn apart<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(test).join().expect("no panic")
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no sched_getattr")]
    fn the_kernel_says_what_it_was_told_or_knows_nothing_of_it() {
        apart(|| {
            let before = get().expect("readable");
            set(Duration::from_micros(500)).expect("allowed");
            let after = get().expect("readable");
            let knows = before.runtime > 0;
            assert_eq!(after.runtime, if knows { 500_000 } else { 0 });
            // Nothing else is another.
            let wanted = Attributes {
                runtime: before.runtime,
                ..after
            };
            assert_eq!(format!("{wanted:?}"), format!("{before:?}"));
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no sched_getattr")]
    fn others_keep_theirs() {
        let before = get().expect("readable");
        apart(|| set(Duration::from_micros(500)).expect("allowed"));
        assert_eq!(get().expect("readable").runtime, before.runtime);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no sched_getattr")]
    fn what_is_beyond_the_bounds_is_cut() {
        apart(|| {
            let knows = get().expect("readable").runtime > 0;
            for (asked, got) in [
                (Duration::from_nanos(1), 100_000),
                (Duration::from_secs(1), 100_000_000),
            ] {
                set(asked).expect("allowed");
                assert_eq!(
                    get().expect("readable").runtime,
                    if knows { got } else { 0 }
                );
            }
        });
    }
}
