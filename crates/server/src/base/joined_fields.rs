//! Fields of one name as the one value that variables have for them.

use bytes::Bytes;
use http1::is_spelt;

/// Appends the values of all fields that a variable's `name` means, joined as one;
/// false where there is none.
pub fn put_joined(name: &[u8], fields: &[(Bytes, Bytes)], out: &mut Vec<u8>) -> bool {
    let mut found = false;
    for (_, value) in fields.iter().filter(|(field, _)| is_spelt(name, field)) {
        if found {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(value);
        found = true;
    }
    found
}
