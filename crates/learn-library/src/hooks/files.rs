//! Files that are looked at, opened, listed and changed.
//!
//! The paths that come in are the caller's promise to libc: texts that end with a zero.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use learn_record::{FileState, FileUse};
use libc::{DIR, FILE, mode_t, size_t, ssize_t, stat as FileStatus};

use super::text;
use crate::entry::{enter, enter_while_opening, errno, is_active, is_followed, is_opening_within};
use crate::library::Library;
use crate::{next, system};

/// Notes a use of the file at `path`, whose state is asked for where it is not given.
///
/// # Safety
/// `path` is null or a text of C.
unsafe fn note(path: *const c_char, by: FileUse, state: impl FnOnce(&CStr) -> Option<FileState>) {
    // SAFETY: the caller's promise.
    unsafe {
        note_by(path, |library, whole, path| {
            library.add_file(whole, by, || state(path))
        })
    };
}

/// Notes a look of the program at a path, and the state that it found. All such hooks come through this one function,
/// so that it is in the processor's caches.
///
/// # Safety
/// `path` is null or a text of C.
#[inline(never)]
unsafe fn note_look(path: *const c_char, state: Option<FileState>) {
    // SAFETY: the caller's promise.
    unsafe { note(path, FileUse::Looked, |_| state) };
}

/// Gives `work` the whole path, and the path as it was named.
///
/// # Safety
/// `path` is null or a text of C.
unsafe fn note_by(path: *const c_char, work: impl FnOnce(&mut Library, &[u8], &CStr)) {
    if !is_active() {
        return;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { text(path) };
    let bytes = path.to_bytes();
    enter(|library| {
        if bytes.starts_with(b"/") {
            work(library, bytes, path);
        } else if let Some(whole) = below_working_folder(bytes) {
            work(library, &whole, path);
        }
    });
}

#[cold]
fn below_working_folder(path: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = [0; 1024];
    let folder = system::working_folder(&mut buffer)?;
    Some([folder, b"/", path].concat())
}

/// Notes a file that was opened, and follows the descriptor where an SQLite database may be behind it.
///
/// # Safety
/// `path` is null or a text of C.
unsafe fn note_opened(fd: c_int, path: *const c_char, flags: c_int) {
    let by = use_of_flags(flags);
    // By such a descriptor nothing is read.
    let fd = if flags & libc::O_PATH == 0 { fd } else { -1 };
    // SAFETY: the caller's promise.
    unsafe {
        note_by(path, |library, whole, path| {
            library.opened(fd, whole, by, || state_of(path))
        })
    };
}

macro_rules! looking_at_opened {
    ($($name:ident;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(fd: c_int, found: *mut FileStatus) -> c_int {
            // SAFETY: the caller's arguments; the status stands there if the result is 0.
            unsafe {
                let result = next::$name(fd, found);
                if result == 0 && is_opening_within(fd, fd) {
                    enter_while_opening(|library| library.opening_is(|_| Some(system::opened_file_of(&*found))));
                }
                result
            }
        }
    )*};
}

looking_at_opened! {
    fstat;
    fstat64;
}

/// Only whether the file is there was asked: nothing else of it can have shaped the page.
const IS_THERE: FileState = FileState {
    is_folder: false,
    modified_nanoseconds: 0,
    size: 0,
    inode: 0,
};

fn state_of(path: &CStr) -> Option<FileState> {
    system::look(path)
}

const fn use_of_flags(flags: c_int) -> FileUse {
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY if flags & libc::O_CREAT == 0 => FileUse::Opened,
        // Whether the file was there shapes what follows.
        libc::O_WRONLY if flags & libc::O_EXCL == 0 => FileUse::WrittenOnly,
        _ => FileUse::Written,
    }
}

fn use_of_mode(mode: &[u8]) -> FileUse {
    match mode.first() {
        _ if mode.contains(&b'+') => FileUse::Written,
        Some(b'r') => FileUse::Opened,
        Some(b'w' | b'a') if !mode.contains(&b'x') => FileUse::WrittenOnly,
        _ => FileUse::Written,
    }
}

// `open` and its like take the mode only with some flags. Passing on what stands in the register is the
// same for the function that is called, which looks at it only then.

macro_rules! opening {
    ($($name:ident($($mode:ident)?);)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int $(, $mode: mode_t)?) -> c_int {
            // SAFETY: the caller's arguments; the path is a text.
            unsafe {
                let opened = next::$name(path, flags $(, $mode)?);
                note_opened(opened, path, flags);
                opened
            }
        }
    )*};
}

opening! {
    open(mode);
    open64(mode);
    __open_2();
    __open64_2();
}

macro_rules! opening_in_folder {
    ($($name:ident;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller's arguments; the path is a text.
            unsafe {
                let opened = next::$name(folder, path, flags, mode);
                if folder == libc::AT_FDCWD || text(path).to_bytes().starts_with(b"/") {
                    note_opened(opened, path, flags);
                } else {
                    enter(Library::misses_input);
                }
                opened
            }
        }
    )*};
}

opening_in_folder! {
    openat;
    openat64;
}

macro_rules! opening_streams {
    ($($name:ident;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: the caller's arguments, two texts.
            unsafe {
                let opened = next::$name(path, mode);
                note(path, use_of_mode(text(mode).to_bytes()), state_of);
                opened
            }
        }
    )*};
}

opening_streams! {
    fopen;
    fopen64;
}

/// PHP reads a session in a file once it has locked it.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn flock(fd: c_int, operation: c_int) -> c_int {
    // SAFETY: two numbers.
    let result = unsafe { next::flock(fd, operation) };
    if result != 0 && is_refusal() {
        enter(|library| library.did_not_lock(fd, false));
    } else if operation & libc::LOCK_EX != 0 && is_followed(fd) {
        enter(|library| library.locked(fd));
    }
    result
}

// SQLite locks its files by `fcntl`. As with `open`, what stands in the register is passed on.

macro_rules! locking {
    ($($name:ident;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
            // SAFETY: the caller's arguments; the kernel has read the lock if it refuses it.
            unsafe {
                let result = next::$name(fd, command, argument);
                if result == -1 && is_lock(command) && is_refusal() {
                    let kind = (*argument.cast::<libc::flock>()).l_type;
                    enter(|library| library.did_not_lock(fd, c_int::from(kind) == libc::F_WRLCK));
                }
                result
            }
        }
    )*};
}

locking! {
    fcntl;
    fcntl64;
}

const fn is_lock(command: c_int) -> bool {
    matches!(
        command,
        libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW
    )
}

/// Whether the call that has just failed would get the lock at another moment.
fn is_refusal() -> bool {
    matches!(
        errno(),
        libc::EAGAIN | libc::EACCES | libc::EINTR | libc::EDEADLK | libc::ENOLCK
    )
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    // SAFETY: the caller's path.
    unsafe {
        let opened = next::opendir(path);
        note(path, FileUse::Listed, |path| {
            let fd = if opened.is_null() {
                -1
            } else {
                libc::dirfd(opened)
            };
            system::opened_file(fd).map_or_else(|| state_of(path), |it| Some(it.state))
        });
        opened
    }
}

macro_rules! looking {
    ($($name:ident;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(path: *const c_char, found: *mut FileStatus) -> c_int {
            // SAFETY: the caller's arguments; the status stands there if the result is 0.
            unsafe {
                let result = next::$name(path, found);
                // A link counts as what it leads to: so Mayfly sees the same, and a link that leads elsewhere is a change.
                let is_link = result == 0 && (*found).st_mode & libc::S_IFMT == libc::S_IFLNK;
                match is_link {
                    true => note(path, FileUse::Looked, state_of),
                    false => note_look(path, (result == 0).then(|| system::file_state(&*found))),
                }
                result
            }
        }
    )*};
}

looking! {
    stat;
    stat64;
    lstat;
    lstat64;
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe {
        let result = next::access(path, mode);
        note_look(path, (result == 0).then_some(IS_THERE));
        result
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, room: size_t) -> ssize_t {
    // SAFETY: the caller's arguments.
    unsafe {
        let length = next::readlink(path, buffer, room);
        note(path, FileUse::Looked, state_of);
        length
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __readlink_chk(
    path: *const c_char,
    buffer: *mut c_char,
    count: size_t,
    room: size_t,
) -> ssize_t {
    // SAFETY: the caller's arguments.
    unsafe {
        let length = next::__readlink_chk(path, buffer, count, room);
        note(path, FileUse::Looked, state_of);
        length
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's path.
    unsafe {
        note(path, FileUse::Removed, state_of);
        next::unlink(path)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller's path.
    unsafe {
        note(path, FileUse::Written, state_of);
        next::mkdir(path, mode)
    }
}

/// libc lists the folders by itself: those are noted whose entries decide what is found.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn glob(
    pattern: *const c_char,
    flags: c_int,
    on_error: *const c_void,
    found: *mut libc::glob_t,
) -> c_int {
    // SAFETY: the caller's pattern, a text, and its arguments.
    unsafe {
        if is_active() {
            note_folders_of(text(pattern).to_bytes(), flags);
        }
        next::glob(pattern, flags, on_error, found)
    }
}

/// The most folders that the parts of a pattern before its last one may find.
const MAX_FOUND_FOLDERS: usize = 200;

/// Notes the last folder without a wildcard, and for `plugins/*/about.json` each folder in `plugins` as well.
fn note_folders_of(pattern: &[u8], flags: c_int) {
    let list = |folder: &[u8]| {
        let folder = CString::new(folder).unwrap_or_default();
        // SAFETY: a text of our own.
        unsafe { note(folder.as_ptr(), FileUse::Listed, state_of) };
    };
    let wildcard = pattern
        .iter()
        .position(|byte| b"*?[{\\".contains(byte))
        .unwrap_or(pattern.len());
    match pattern[..wildcard].iter().rposition(|byte| *byte == b'/') {
        None => list(b"."),
        Some(0) => list(b"/"),
        Some(end) => list(&pattern[..end]),
    }
    let slashes = (wildcard..pattern.len()).filter(|at| pattern[*at] == b'/');
    for end in slashes {
        let part = &pattern[..end];
        // Within braces, or escaped, a slash may end no folder.
        let is_read = !part.iter().any(|byte| b"{\\".contains(byte))
            && for_each_found(part, flags, MAX_FOUND_FOLDERS, list);
        if !is_read {
            enter(Library::misses_input);
            return;
        }
    }
}

/// Gives each path that a pattern finds to `take`. False: they are more than `most`, or could not be listed.
fn for_each_found(pattern: &[u8], flags: c_int, most: usize, take: impl Fn(&[u8])) -> bool {
    let Ok(pattern) = CString::new(pattern) else {
        return false;
    };
    let flags = flags & (libc::GLOB_PERIOD | libc::GLOB_TILDE) | libc::GLOB_NOSORT;
    // SAFETY: of zeros, as glob(3) is given it; the paths are texts, and are freed once.
    unsafe {
        let mut found: libc::glob_t = std::mem::zeroed();
        let result = next::glob(pattern.as_ptr(), flags, std::ptr::null(), &mut found);
        let is_read = match result {
            0 => found.gl_pathc <= most,
            other => other == libc::GLOB_NOMATCH,
        };
        if result == 0 && is_read {
            for at in 0..found.gl_pathc {
                take(text(*found.gl_pathv.add(at)).to_bytes());
            }
        }
        libc::globfree(&mut found);
        is_read
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller's paths.
    unsafe {
        note(from, FileUse::Written, state_of);
        let result = next::rename(from, to);
        note(to, FileUse::Written, state_of);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::{AsRawFd, FromRawFd};

    use super::*;
    use crate::entry;
    use crate::reporter::tests::inputs;

    /// A file without a name, opened twice.
    fn opened_twice() -> (File, File) {
        // SAFETY: a text; a descriptor comes back that nothing else owns.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"locked".as_ptr(), 0)) };
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        let again = File::options().read(true).write(true).open(again).unwrap();
        (file, again)
    }

    fn lock_of(kind: c_int) -> libc::flock {
        libc::flock {
            l_type: kind as i16,
            l_whence: libc::SEEK_SET as i16,
            l_start: 0x4000_0002,
            l_len: 510,
            l_pid: 0,
        }
    }

    /// The inputs of a page that asks for a lock, as SQLite does, and whether it got it.
    fn asked(file: &File, command: c_int, kind: c_int) -> (bool, Vec<String>) {
        enter(|library| library.reporter().begin(1));
        let mut lock = lock_of(kind);
        // SAFETY: the lock lives during the call.
        let result = unsafe { fcntl64(file.as_raw_fd(), command, (&raw mut lock).cast()) };
        let inputs = enter(|library| inputs(library.reporter()));
        (result == 0, inputs.unwrap())
    }

    /// One test, for the library's state is one.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memfd_create")]
    fn lock_that_another_program_holds_is_named() {
        entry::activate(Library::new(Vec::new(), false));
        let named = vec!["unanswered: the lock of a file".to_owned()];
        let (mut ours, theirs) = opened_twice();
        assert_eq!(asked(&ours, libc::F_SETLK, libc::F_RDLCK), (true, vec![]));

        let mut lock = lock_of(libc::F_WRLCK);
        asked(&ours, libc::F_SETLK, libc::F_UNLCK);
        // SAFETY: the lock lives during the call.
        let is_locked = unsafe {
            next::fcntl(
                theirs.as_raw_fd(),
                libc::F_OFD_SETLK,
                (&raw mut lock).cast(),
            )
        };
        assert_eq!(is_locked, 0);
        for (command, kind) in [
            (libc::F_SETLK, libc::F_RDLCK),
            (libc::F_SETLK, libc::F_WRLCK),
            (libc::F_OFD_SETLK, libc::F_RDLCK),
        ] {
            assert_eq!(
                asked(&ours, command, kind),
                (false, named.clone()),
                "{command} {kind}"
            );
        }
        // Whether there is a lock is no wish for one.
        assert_eq!(asked(&ours, libc::F_GETLK, libc::F_RDLCK), (true, vec![]));

        // The one who closes a database with a log last tries the lock of a writer.
        let header = [&b"SQLite format 3\0"[..], &[16, 0, 2, 2]].concat();
        ours.write_all(&header).unwrap();
        assert_eq!(asked(&ours, libc::F_SETLK, libc::F_WRLCK), (false, vec![]));
        assert_eq!(
            asked(&ours, libc::F_SETLK, libc::F_RDLCK),
            (false, named.clone())
        );

        // No lock of a writer: the kernel cannot read the wish.
        enter(|library| library.reporter().begin(1));
        // SAFETY: the kernel finds out that there is nothing at this address.
        let result = unsafe { fcntl(ours.as_raw_fd(), libc::F_SETLK, std::ptr::null_mut()) };
        assert_eq!((result, errno()), (-1, libc::EFAULT));
        assert_eq!(enter(|library| inputs(library.reporter())), Some(vec![]));

        for (held, wanted, is_got) in [
            (libc::LOCK_SH, libc::LOCK_SH, true),
            (libc::LOCK_EX, libc::LOCK_SH, false),
            (libc::LOCK_SH, libc::LOCK_EX, false),
        ] {
            // SAFETY: numbers.
            assert_eq!(unsafe { next::flock(theirs.as_raw_fd(), held) }, 0);
            enter(|library| library.reporter().begin(1));
            // SAFETY: numbers.
            let result = unsafe { flock(ours.as_raw_fd(), wanted | libc::LOCK_NB) };
            let error = (result != 0).then(errno);
            assert_eq!(
                error,
                (!is_got).then_some(libc::EWOULDBLOCK),
                "{held} {wanted}"
            );
            let expected = if is_got { vec![] } else { named.clone() };
            assert_eq!(enter(|library| inputs(library.reporter())), Some(expected));
            // SAFETY: numbers.
            unsafe { next::flock(ours.as_raw_fd(), libc::LOCK_UN) };
        }
    }
}
