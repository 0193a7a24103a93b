//! The library is loaded: before the program's first line it finds out where Mayfly listens. In a pool it removes
//! itself from the environment of what PHP starts.

use std::ffi::{CStr, CString, c_void};

use learn_record::{CHANNEL_VARIABLE, COMMAND_VARIABLE, MAX_SERVERS};

use crate::entry;
use crate::library::Library;

const PRELOAD: &CStr = c"LD_PRELOAD";

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static START: extern "C" fn() = start;

extern "C" fn start() {
    // A panic does not leave a function of C. None is expected here.
    let _ = std::panic::catch_unwind(|| {
        std::panic::set_hook(Box::new(|_| {}));
        let Some(library) = of_pool().or_else(of_command) else {
            return;
        };
        // SAFETY: the function stays as long as the library, which is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
        entry::activate(library);
    });
}

/// A process of a pool. What PHP starts is not to load the library.
fn of_pool() -> Option<Library> {
    let name = CString::new(CHANNEL_VARIABLE).ok()?;
    let path = variable(&name)?;
    remove_preload();
    // SAFETY: no other thread is there before the program's first line; the name is a text.
    unsafe { libc::unsetenv(name.as_ptr()) };
    Some(Library::new(vec![path], false))
}

/// Makes the library for a process of `mayfly run`. The processes that it starts load the library as well.
fn of_command() -> Option<Library> {
    let paths = variable(&CString::new(COMMAND_VARIABLE).ok()?)?;
    let paths = paths.split(|byte| *byte == b':').take(MAX_SERVERS);
    Some(Library::new(paths.map(<[u8]>::to_vec).collect(), true))
}

unsafe extern "C" fn note_fork() {
    entry::note_fork();
}

fn variable(name: &CStr) -> Option<Vec<u8>> {
    // SAFETY: no other thread is there before the program's first line; the name is a text.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: the environment holds texts, which do not change meanwhile.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes().to_vec())
}

/// Takes this library out of the list; what others have put there stays.
fn remove_preload() {
    let Some(list) = variable(PRELOAD) else {
        return;
    };
    let own = own_path();
    let others: Vec<_> = list
        .split(|byte| matches!(byte, b' ' | b':'))
        .filter(|path| !path.is_empty() && Some(*path) != own.as_deref())
        .collect();
    if others.is_empty() {
        // SAFETY: no other thread is there before the program's first line; the name is a text.
        unsafe { libc::unsetenv(PRELOAD.as_ptr()) };
    } else if let Ok(rest) = CString::new(others.join(&b':')) {
        // SAFETY: as above; the value is copied.
        unsafe { libc::setenv(PRELOAD.as_ptr(), rest.as_ptr(), 1) };
    }
}

/// The file that this library was loaded from, as it was named.
fn own_path() -> Option<Vec<u8>> {
    let address = (start as extern "C" fn()) as *const c_void;
    // SAFETY: all zeros are a valid value, which the call fills in.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is that of a function of this library.
    let is_found = unsafe { libc::dladdr(address, &raw mut found) } != 0;
    if !is_found || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is a text that lives as long as the library is loaded.
    Some(
        unsafe { CStr::from_ptr(found.dli_fname) }
            .to_bytes()
            .to_vec(),
    )
}
