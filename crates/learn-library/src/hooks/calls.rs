//! Everything else that a page may be made from: chance, programs, names, shared memory, and
//! extensions that are loaded.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use learn_record::InputKind;
use libc::{FILE, mode_t, pid_t, pthread_rwlock_t, size_t, ssize_t};
use libc::{posix_spawn_file_actions_t, posix_spawnattr_t};

use super::text;
use crate::entry::{self, enter};
use crate::extensions::{Extension, extension};
use crate::next;

/// Locks in shared memory that are remembered. APCu has one or two.
const MAX_SHARED_LOCKS: usize = 16;

static SHARED_LOCKS: [AtomicUsize; MAX_SHARED_LOCKS] =
    [const { AtomicUsize::new(0) }; MAX_SHARED_LOCKS];

/// Notes an input whose detail is a text of C.
///
/// # Safety
/// `detail` is null or a text of C.
unsafe fn note(kind: InputKind, detail: *const c_char) {
    // SAFETY: the caller's promise.
    let detail = unsafe { text(detail) };
    enter(|library| library.add_input(kind, detail.to_bytes()));
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn getrandom(buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t {
    entry::note_random();
    // SAFETY: the caller's arguments.
    unsafe { next::getrandom(buffer, count, flags) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn fork() -> pid_t {
    enter(|library| library.add_input(InputKind::Program, b"fork"));
    // SAFETY: nothing is passed; the state is free, and the child finds that out in `note_fork`.
    unsafe { next::fork() }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn popen(command: *const c_char, kind: *const c_char) -> *mut FILE {
    // SAFETY: the caller's texts.
    unsafe {
        note(InputKind::Program, command);
        next::popen(command, kind)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn system(command: *const c_char) -> c_int {
    // SAFETY: the caller's text.
    unsafe {
        note(InputKind::Program, command);
        next::system(command)
    }
}

macro_rules! spawning {
    ($($name:ident;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(
            pid: *mut pid_t,
            file: *const c_char,
            actions: *const posix_spawn_file_actions_t,
            attributes: *const posix_spawnattr_t,
            arguments: *const *mut c_char,
            environment: *const *mut c_char,
        ) -> c_int {
            // SAFETY: the caller's arguments; the file is a text.
            unsafe {
                note(InputKind::Program, file);
                next::$name(pid, file, actions, attributes, arguments, environment)
            }
        }
    )*};
}

spawning! {
    posix_spawn;
    posix_spawnp;
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const libc::addrinfo,
    found: *mut *mut libc::addrinfo,
) -> c_int {
    // SAFETY: the caller's arguments; the name is null or a text.
    unsafe {
        note_name(node);
        next::getaddrinfo(node, service, hints, found)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn gethostbyname(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's text.
    unsafe {
        note_name(name);
        next::gethostbyname(name)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn gethostbyname_r(
    name: *const c_char,
    entry: *mut c_void,
    buffer: *mut c_char,
    room: size_t,
    found: *mut *mut c_void,
    error: *mut c_int,
) -> c_int {
    // SAFETY: the caller's arguments; the name is a text.
    unsafe {
        note_name(name);
        next::gethostbyname_r(name, entry, buffer, room, found, error)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn res_nsearch(
    state: *mut c_void,
    name: *const c_char,
    class: c_int,
    kind: c_int,
    answer: *mut u8,
    room: c_int,
) -> c_int {
    // SAFETY: the caller's arguments; the name is a text.
    unsafe {
        note_name(name);
        next::res_nsearch(state, name, class, kind, answer, room)
    }
}

/// An address, and the name of this machine, are not looked up elsewhere.
///
/// # Safety
/// `name` is null or a text of C.
unsafe fn note_name(name: *const c_char) {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) }.to_bytes();
    let is_address =
        std::str::from_utf8(name).is_ok_and(|it| it.parse::<std::net::IpAddr>().is_ok());
    if !name.is_empty() && name != b"localhost" && !is_address {
        enter(|library| library.add_input(InputKind::NameLookup, name));
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn shmat(identifier: c_int, address: *const c_void, flags: c_int) -> *mut c_void {
    enter(|library| library.add_input(InputKind::SharedMemory, b"shmat"));
    // SAFETY: the caller's arguments.
    unsafe { next::shmat(identifier, address, flags) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn shm_open(name: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's arguments; the name is a text.
    unsafe {
        note(InputKind::SharedMemory, name);
        next::shm_open(name, flags, mode)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn msgrcv(
    queue: c_int,
    message: *mut c_void,
    count: size_t,
    kind: c_long,
    flags: c_int,
) -> ssize_t {
    enter(|library| library.add_input(InputKind::SharedMemory, b"msgrcv"));
    // SAFETY: the caller's arguments.
    unsafe { next::msgrcv(queue, message, count, kind, flags) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn pthread_rwlock_init(
    lock: *mut pthread_rwlock_t,
    attributes: *const libc::pthread_rwlockattr_t,
) -> c_int {
    // SAFETY: the caller's arguments; the attributes are null or were made by libc.
    unsafe {
        let mut shared = libc::PTHREAD_PROCESS_PRIVATE;
        if !attributes.is_null() {
            libc::pthread_rwlockattr_getpshared(attributes, &raw mut shared);
        }
        if shared == libc::PTHREAD_PROCESS_SHARED {
            remember_lock(lock.addr());
        }
        next::pthread_rwlock_init(lock, attributes)
    }
}

fn remember_lock(address: usize) {
    for place in &SHARED_LOCKS {
        let found = place.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed);
        if found.is_ok() || found == Err(address) {
            return;
        }
    }
}

/// APCu takes such a lock before it reads. No other part of PHP has one in shared memory.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int {
    // The first place without a lock ends them: OpenSSL takes some 50,000 locks to log in to a PostgreSQL.
    let known = SHARED_LOCKS.iter().map(|it| it.load(Ordering::Relaxed));
    if known
        .take_while(|address| *address != 0)
        .any(|address| address == lock.addr())
    {
        enter(|library| library.add_input(InputKind::SharedCache, b""));
    }
    // SAFETY: the caller's argument.
    unsafe { next::pthread_rwlock_rdlock(lock) }
}

/// musl has no such flag.
const RTLD_DEEPBIND: c_int = if cfg!(target_env = "gnu") { 8 } else { 0 };
#[cfg(target_env = "gnu")]
const _: () = assert!(RTLD_DEEPBIND == libc::RTLD_DEEPBIND);

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: the caller's path, which may be null.
    let name = unsafe { text(path) }.to_bytes();
    let is_undone = entry::is_active() && extension(name) == Some(Extension::Undone);
    let flags = if is_undone {
        flags & !RTLD_DEEPBIND
    } else {
        flags
    };
    // SAFETY: the caller's arguments, possibly without a flag. The path is not searched for in another way:
    // PHP names its extensions by absolute paths.
    let loaded = unsafe { next::dlopen(path, flags) };
    if !loaded.is_null() && !name.is_empty() {
        enter(|library| library.loaded(name));
    }
    loaded
}
