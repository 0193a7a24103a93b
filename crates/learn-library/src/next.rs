//! The functions of libc whose places are taken, found with `RTLD_NEXT` when they are first called.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    DIR, FILE, iovec, mode_t, msghdr, pid_t, pthread_rwlock_t, size_t, sockaddr, socklen_t, ssize_t,
};
use libc::{posix_spawn_file_actions_t, posix_spawnattr_t, stat as FileStatus};

/// Returns the address of a function of libc. It is null if libc lacks the function: the caller then returns
/// the function's own error.
fn find(address: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = address.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name ends with a zero; the result is an address or null.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    address.store(found, Ordering::Relaxed);
    found
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty, or $missing:expr;)*) => {$(
        /// # Safety
        /// The function of libc with this name has the same conditions.
        pub(crate) unsafe fn $name($($argument: $kind),*) -> $result {
            static ADDRESS: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let address = find(&ADDRESS, NAME);
            if address.is_null() {
                return $missing;
            }
            // SAFETY: libc's function of this name has this signature.
            let function: unsafe extern "C" fn($($kind),*) -> $result = unsafe { std::mem::transmute(address) };
            // SAFETY: the caller keeps to what the function asks for.
            unsafe { function($($argument),*) }
        }
    )*};
}

functions! {
    read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t, or -1;
    __read_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t) -> ssize_t, or -1;
    readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t, or -1;
    recv(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t, or -1;
    __recv_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t, flags: c_int) -> ssize_t, or -1;
    recvfrom(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int, from: *mut sockaddr, length: *mut socklen_t) -> ssize_t, or -1;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t, or -1;
    write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t, or -1;
    writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t, or -1;
    send(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int) -> ssize_t, or -1;
    sendto(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int, to: *const sockaddr, length: socklen_t) -> ssize_t, or -1;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t, or -1;
    close(fd: c_int) -> c_int, or -1;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int, or -1;
    dup(fd: c_int) -> c_int, or -1;
    dup2(from: c_int, to: c_int) -> c_int, or -1;
    dup3(from: c_int, to: c_int, flags: c_int) -> c_int, or -1;
    connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int, or -1;
    accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int, or -1;
    accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int, or -1;
    open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, or -1;
    open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, or -1;
    __open_2(path: *const c_char, flags: c_int) -> c_int, or -1;
    __open64_2(path: *const c_char, flags: c_int) -> c_int, or -1;
    openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, or -1;
    openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, or -1;
    fopen(path: *const c_char, mode: *const c_char) -> *mut FILE, or null_mut();
    fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE, or null_mut();
    opendir(path: *const c_char) -> *mut DIR, or null_mut();
    stat(path: *const c_char, found: *mut FileStatus) -> c_int, or -1;
    fstat(fd: c_int, found: *mut FileStatus) -> c_int, or -1;
    fstat64(fd: c_int, found: *mut FileStatus) -> c_int, or -1;
    stat64(path: *const c_char, found: *mut FileStatus) -> c_int, or -1;
    lstat(path: *const c_char, found: *mut FileStatus) -> c_int, or -1;
    lstat64(path: *const c_char, found: *mut FileStatus) -> c_int, or -1;
    access(path: *const c_char, mode: c_int) -> c_int, or -1;
    readlink(path: *const c_char, buffer: *mut c_char, room: size_t) -> ssize_t, or -1;
    __readlink_chk(path: *const c_char, buffer: *mut c_char, count: size_t, room: size_t) -> ssize_t, or -1;
    unlink(path: *const c_char) -> c_int, or -1;
    mkdir(path: *const c_char, mode: mode_t) -> c_int, or -1;
    rename(from: *const c_char, to: *const c_char) -> c_int, or -1;
    flock(fd: c_int, operation: c_int) -> c_int, or -1;
    fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int, or -1;
    fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int, or -1;
    getrandom(buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t, or -1;
    fork() -> pid_t, or -1;
    popen(command: *const c_char, kind: *const c_char) -> *mut FILE, or null_mut();
    system(command: *const c_char) -> c_int, or -1;
    posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const posix_spawn_file_actions_t, attributes: *const posix_spawnattr_t, arguments: *const *mut c_char, environment: *const *mut c_char) -> c_int, or libc::ENOSYS;
    posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const posix_spawn_file_actions_t, attributes: *const posix_spawnattr_t, arguments: *const *mut c_char, environment: *const *mut c_char) -> c_int, or libc::ENOSYS;
    getaddrinfo(node: *const c_char, service: *const c_char, hints: *const libc::addrinfo, found: *mut *mut libc::addrinfo) -> c_int, or libc::EAI_FAIL;
    gethostbyname(name: *const c_char) -> *mut c_void, or null_mut();
    gethostbyname_r(name: *const c_char, entry: *mut c_void, buffer: *mut c_char, room: size_t, found: *mut *mut c_void, error: *mut c_int) -> c_int, or libc::ENOSYS;
    res_nsearch(state: *mut c_void, name: *const c_char, class: c_int, kind: c_int, answer: *mut u8, room: c_int) -> c_int, or -1;
    glob(pattern: *const c_char, flags: c_int, on_error: *const c_void, found: *mut libc::glob_t) -> c_int, or libc::GLOB_ABORTED;
    shmat(identifier: c_int, address: *const c_void, flags: c_int) -> *mut c_void, or usize::MAX as *mut c_void;
    shm_open(name: *const c_char, flags: c_int, mode: mode_t) -> c_int, or -1;
    msgrcv(queue: c_int, message: *mut c_void, count: size_t, kind: c_long, flags: c_int) -> ssize_t, or -1;
    pthread_rwlock_init(lock: *mut pthread_rwlock_t, attributes: *const libc::pthread_rwlockattr_t) -> c_int, or libc::ENOSYS;
    pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int, or libc::ENOSYS;
    dlopen(path: *const c_char, flags: c_int) -> *mut c_void, or null_mut();
}
