//! How crypt(3) writes six bits as a character.

/// The 64 characters in the order of their values.
pub const CRYPT64: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
