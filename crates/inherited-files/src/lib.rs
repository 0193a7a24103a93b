//! Files that the caller of this program had open, above the standard streams.
//!
//! A shell, a service manager or a deployment script leaves descriptors open for no purpose of ours:
//! `exec 9</root-only; mayfly -c x.conf`. A process that holds them keeps pipes from ending, and
//! programs that it starts read files that they should not. So they are kept from other programs from
//! the first line of the program on, and closed once the configuration was read, which may be one of
//! them (`mayfly -c <(make-config)`).
//!
//! A descriptor without an owner has no safe interface. This crate uses only numbers that were open
//! before the program opened anything, and closes each once or gives it one owner.

use std::fs;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// The first descriptor behind the standard streams.
const FIRST: RawFd = 3;
/// Numbers that are tried where `/proc` does not list them. Each costs a system call.
const MAX_TRIED: RawFd = 65_536;

/// Descriptors that came with the start of the process. Dropped, they stay open here and are still
/// kept from other programs.
#[derive(Debug)]
pub struct InheritedFiles(Vec<RawFd>);

/// Keeps all inherited descriptors from programs that are started. To be called in the first line of
/// `main`: files open by then count as inherited.
#[must_use]
pub fn keep_from_others() -> InheritedFiles {
    // Also covers descriptors that /proc does not list, in one step. Linux 5.11.
    // SAFETY: the call takes three numbers, sets a flag of descriptors and touches no memory.
    let is_marked = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    } == 0;
    let numbers = open_numbers();
    if !is_marked {
        for &number in &numbers {
            // SAFETY: the call takes three numbers, sets a flag and touches no memory.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    InheritedFiles(numbers)
}

impl InheritedFiles {
    /// The first `count` descriptors behind the standard streams, which a service manager has put there
    /// (`sd_listen_fds(3)`); fewer where one of them is not open.
    pub fn take_first(&mut self, count: usize) -> Vec<OwnedFd> {
        let numbers = (FIRST..).take(count);
        let is_open = |number: &RawFd| self.0.contains(number);
        let taken: Vec<RawFd> = numbers.take_while(is_open).collect();
        self.0.retain(|number| !taken.contains(number));
        let own = |number| {
            // SAFETY: it was open before this program opened anything, so that no value of it owns the
            // number, and it has just left the list: it gets one owner.
            unsafe { OwnedFd::from_raw_fd(number) }
        };
        taken.into_iter().map(own).collect()
    }

    /// Leaves them to the programs that are started from now on.
    pub fn pass_on(self) {
        for number in self.0 {
            // SAFETY: the call takes three numbers, sets a flag and touches no memory.
            unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
        }
    }

    /// Closes them.
    pub fn close(self) {
        for number in self.0 {
            // SAFETY: it was open before this program opened anything, so that no value of it owns the
            // number, and `self` is consumed: it is closed once.
            unsafe { libc::close(number) };
        }
    }
}

/// The descriptors behind the standard streams that are open.
fn open_numbers() -> Vec<RawFd> {
    let listed: Option<Vec<RawFd>> = fs::read_dir("/proc/self/fd").ok().map(|entries| {
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok()).collect()
    });
    let numbers = listed.unwrap_or_else(|| (FIRST..MAX_TRIED).collect());
    // The list had a descriptor of its own, which is closed by now.
    let is_open = |number: &RawFd| {
        // SAFETY: the call takes two numbers and touches no memory.
        *number >= FIRST && unsafe { libc::fcntl(*number, libc::F_GETFD) } >= 0
    };
    numbers.into_iter().filter(is_open).collect()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_is_open_behind_the_standard_streams_is_found() {
        let file = tempfile::tempfile().unwrap();
        let number = file.as_raw_fd();
        let found = open_numbers();
        assert!(found.contains(&number), "{found:?}");
        assert!(found.iter().all(|number| *number >= FIRST), "{found:?}");
    }
}
