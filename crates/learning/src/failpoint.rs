//! Errors on purpose: `scripts/promise/learned.py` must find what comes of them.

/// A server with debug assertions that finds this in its environment makes the error that it names.
const FAILPOINT: &str = "MAYFLY_FAILPOINT_LEARN";

/// Is this error to be made?
pub fn is(error: &str) -> bool {
    cfg!(debug_assertions) && std::env::var_os(FAILPOINT).is_some_and(|it| it == error)
}
