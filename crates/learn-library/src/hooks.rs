//! The functions that take the places of libc's: each passes its arguments on and returns the result.
//!
//! They all have this form: what must be known before (a statement that is about to be sent), the
//! function of libc, what it did. In tests they have other names, or the tests would call them.

mod calls;
mod descriptors;
mod files;

use std::ffi::{CStr, c_char};

/// A text of C, without its zero; empty for a null pointer.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero and live as long as the result is used.
unsafe fn text<'a>(text: *const c_char) -> &'a CStr {
    if text.is_null() {
        return c"";
    }
    // SAFETY: it is not null; the rest is the caller's promise.
    unsafe { CStr::from_ptr(text) }
}
