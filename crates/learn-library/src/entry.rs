//! The one place of the state, and the way into it.
//!
//! A hook comes in if nothing else is within: no other thread, and not the same one further up its
//! stack (a signal handler, or an allocator that opens a file). Otherwise it is turned away at once, and
//! the state learns later that it missed something. So nothing waits for a lock, and none can be held
//! for ever.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use libc::c_int;

use crate::library::Library;
use crate::system;

/// Greater descriptors are not followed.
pub(crate) const MAX_DESCRIPTOR: c_int = 1024;

struct Place {
    is_entered: AtomicBool,
    library: UnsafeCell<Option<Library>>,
}

// SAFETY: only the thread that has changed `is_entered` from false to true touches `library`, until it
// changes it back.
unsafe impl Sync for Place {}

static PLACE: Place = Place {
    is_entered: AtomicBool::new(false),
    library: UnsafeCell::new(None),
};

/// Whether there is something to do at all.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// The process whose state this is.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static HAS_MISSED: AtomicBool = AtomicBool::new(false);
static IS_CHILD: AtomicBool = AtomicBool::new(false);
static HAS_READ_RANDOM: AtomicBool = AtomicBool::new(false);
/// The descriptor that was opened last, whose file is not known yet, or -1.
static OPENING: AtomicI32 = AtomicI32::new(-1);
/// By descriptor, whether it is followed: what is not costs a hook one look.
static FOLLOWED: [AtomicBool; MAX_DESCRIPTOR as usize] =
    [const { AtomicBool::new(false) }; MAX_DESCRIPTOR as usize];

/// Puts the state in its place. Called before the program's own code runs.
pub(crate) fn activate(library: Library) {
    if !PLACE.is_entered.swap(true, Ordering::Acquire) {
        // SAFETY: `is_entered` was false and is true now: nothing else touches the state.
        unsafe { *PLACE.library.get() = Some(library) };
        PROCESS.store(system::process_id(), Ordering::Relaxed);
        PLACE.is_entered.store(false, Ordering::Release);
        IS_ACTIVE.store(true, Ordering::Release);
    }
}

pub(crate) fn is_active() -> bool {
    IS_ACTIVE.load(Ordering::Relaxed)
}

/// Does `work` with the state. `errno` is the same afterwards. Without a result, the state was busy, the
/// library is not active, or it has just given up.
pub(crate) fn enter<R>(work: impl FnOnce(&mut Library) -> R) -> Option<R> {
    enter_while_opening(|library| {
        library.settle_opening();
        work(library)
    })
}

/// Does `work` like [`enter`], for callers that know the file that was opened last.
pub(crate) fn enter_while_opening<R>(work: impl FnOnce(&mut Library) -> R) -> Option<R> {
    if !is_active() {
        return None;
    }
    if PLACE.is_entered.swap(true, Ordering::Acquire) {
        HAS_MISSED.store(true, Ordering::Relaxed);
        return None;
    }
    let errno = errno();
    // SAFETY: `is_entered` was false and is true now: this is the only reference until it is set back below.
    let place = unsafe { &mut *PLACE.library.get() };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let library = place.as_mut()?;
        if take(&IS_CHILD) {
            library.is_child_now();
        }
        if take(&HAS_MISSED) {
            library.misses_all();
        }
        Some(work(library))
    }));
    let result = match result {
        Ok(result) => result,
        Err(panic) => {
            // Dropping the payload could panic again.
            std::mem::forget(panic);
            IS_ACTIVE.store(false, Ordering::Release);
            system::close_channels();
            None
        }
    };
    set_errno(errno);
    PLACE.is_entered.store(false, Ordering::Release);
    result
}

/// Called in the child after each fork, where only async-signal-safe things may be done.
pub(crate) fn note_fork() {
    IS_CHILD.store(true, Ordering::Relaxed);
    PROCESS.store(system::process_id(), Ordering::Relaxed);
    // If another thread was within, it is not in this process, and the state is half changed.
    if PLACE.is_entered.load(Ordering::Relaxed) {
        IS_ACTIVE.store(false, Ordering::Release);
        system::close_channels();
    }
}

/// False in a child that has the memory of its parent until it starts a program (`vfork`): what it does with
/// descriptors concerns its own alone.
pub(crate) fn is_in_own_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == system::process_id()
}

pub(crate) fn is_followed(fd: c_int) -> bool {
    usize::try_from(fd)
        .ok()
        .and_then(|fd| FOLLOWED.get(fd))
        .is_some_and(|it| it.load(Ordering::Relaxed))
}

pub(crate) fn set_followed(fd: c_int, value: bool) {
    if let Some(place) = usize::try_from(fd).ok().and_then(|fd| FOLLOWED.get(fd)) {
        place.store(value, Ordering::Relaxed);
    }
}

/// Whether one of these was opened last, and its file is not known yet.
pub(crate) fn is_opening_within(first: c_int, last: c_int) -> bool {
    (first..=last).contains(&OPENING.load(Ordering::Relaxed))
}

pub(crate) fn set_opening(fd: c_int) {
    OPENING.store(fd, Ordering::Relaxed);
}

/// Random bytes were read. The library's own hash maps ask for some as well.
pub(crate) fn note_random() {
    if !PLACE.is_entered.load(Ordering::Relaxed) {
        HAS_READ_RANDOM.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn take_random() -> bool {
    take(&HAS_READ_RANDOM)
}

/// A mark is seldom there, and to exchange it costs more than to look.
fn take(mark: &AtomicBool) -> bool {
    mark.load(Ordering::Relaxed) && mark.swap(false, Ordering::Relaxed)
}

pub(crate) fn errno() -> c_int {
    // SAFETY: the address of this thread's `errno` is always valid.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}
