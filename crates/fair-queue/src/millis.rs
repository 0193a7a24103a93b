/// Milliseconds of some clock that does not go back.
pub type Millis = u64;
