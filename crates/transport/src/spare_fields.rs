//! Memory for the places of a head's fields, handed on from one request of a thread to its next.

use std::cell::Cell;

use http_semantics::FieldSpan;

thread_local! {
    static FIELDS: Cell<Vec<FieldSpan>> = const { Cell::new(Vec::new()) };
}

/// Takes the list that the thread's last request has left.
pub fn take() -> Vec<FieldSpan> {
    FIELDS.try_with(Cell::take).unwrap_or_default()
}

pub fn give(fields: Vec<FieldSpan>) {
    // A thread that is ending drops it.
    let _ = FIELDS.try_with(|kept| kept.set(fields));
}
