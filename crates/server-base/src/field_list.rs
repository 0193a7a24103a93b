//! Fields as a list of names and values, read by the names that variables have.

use bytes::Bytes;
use http_semantics::is_spelt;

/// Appends the values of the fields that `name` spells (`content_type` for `Content-Type`), with
/// commas between them; false if there is no such field.
pub fn write_field_called(name: &[u8], fields: &[(Bytes, Bytes)], out: &mut Vec<u8>) -> bool {
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
