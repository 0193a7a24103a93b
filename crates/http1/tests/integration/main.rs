//! One test program of the codec.

mod properties;
mod request_heads;
mod smuggling;
