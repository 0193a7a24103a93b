//! Names and passwords of HTTP's Basic authentication (RFC 7617): read from the field of a request, and compared with
//! the hashes of a user file.
//!
//! ```text
//! credentials(field) ─► user, password        users(path) ─► user: hash        compare(user, hash, password)
//! ```
//!
//! User files are read again when they have changed (`user_file`); the formats of hashes are in `password_hash`, and a
//! slow hash is computed only once for each password that was right (`remembered`). Each thread has a bounded memory
//! of its own for that. The crate knows no request, and logs nothing.

mod password_hash;
mod remembered;
mod user_file;

use base64::Engine;

pub use password_hash::Comparison;
use password_hash::base64_lenient;
pub use remembered::compare;
pub use user_file::{Users, users};

/// Name and password of an `Authorization: Basic` field (RFC 7617 §2).
pub fn credentials(authorization: Option<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = authorization?.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let decoded = base64_lenient().decode(encoded.trim_ascii()).ok()?;
    let colon = memchr::memchr(b':', &decoded).filter(|&colon| colon > 0)?;
    let (user, password) = decoded.split_at(colon);
    Some((user.to_vec(), password.get(1..)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_by_nginx() {
        let pair = |user: &str, password: &str| {
            Some((user.as_bytes().to_vec(), password.as_bytes().to_vec()))
        };
        for (field, wanted) in [
            ("Basic dXNlcjpwYXNz", pair("user", "pass")),
            ("basic   dXNlcjpwYXNz", pair("user", "pass")),
            ("Basic dXNlcjpw", pair("user", "p")),
            ("Basic dXNlcjphOmI=", pair("user", "a:b")),
            ("Basic dXNlcjphOmI", pair("user", "a:b")),
            ("Basic dXNlcjo=", pair("user", "")),
            ("Basic OnBhc3M=", None),
            ("Basic dXNlcg==", None),
            ("Basic ????", None),
            ("Basic", None),
            ("Basic ", None),
            ("Bearer dXNlcjpwYXNz", None),
        ] {
            assert_eq!(credentials(Some(field.as_bytes())), wanted, "{field}");
        }
        assert_eq!(credentials(None), None);
    }
}
