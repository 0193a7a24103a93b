//! `X-Accel-Charset` of a response that is stored: it names the charset of the stored page, which is brought into it
//! while it is stored, where its own media type names another one.

use bytes::Bytes;
use http_semantics::same_name;
use recoding::Transcoder;

use super::store_plan::StorePlan;
use crate::respond::charset;

/// The charset that the upstream names. A stored response has it in its media type.
pub fn named(fields: &[(Bytes, Bytes)], store: &StorePlan) -> Option<Bytes> {
    let is_ignored = store.pass.exchange.ignored_fields.x_accel_charset;
    let charset = value(fields, b"x-accel-charset").filter(|_| !is_ignored)?;
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(byte);
    let is_name = !charset.is_empty() && charset.iter().all(is_token);
    (is_name && !charset.eq_ignore_ascii_case(b"off")).then(|| charset.clone())
}

/// Returns the conversion of the body into that charset: with a `charset_map` between it and the one of the media
/// type.
pub fn conversion(fields: &[(Bytes, Bytes)], store: &StorePlan) -> Option<Transcoder> {
    let charsets = store.form.charsets.as_ref()?;
    let wanted = named(fields, store)?;
    // The bytes of a slice have their places in the whole.
    if store.form.slice.is_some() || value(fields, b"content-encoding").is_some() {
        return None;
    }
    let own = charset::of_content_type(value(fields, b"content-type")?)?;
    charsets.find(own, &wanted)
}

fn value<'a>(fields: &'a [(Bytes, Bytes)], called: &[u8]) -> Option<&'a Bytes> {
    let mut named = fields.iter().filter(|(name, _)| same_name(name, called));
    named.next().map(|(_, value)| value)
}
