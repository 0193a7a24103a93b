//! What an upstream's response for one client changes beside its fields (`X-Accel-*`).

use http_semantics::Fields;

/// Facts of an upstream's response for its client. They apply to this response, or to the one in its place.
#[derive(Debug, Default)]
pub struct ClientFacts {
    /// Fields that take the place of others; cookies are added.
    pub fields: Fields,
    /// X-Accel-Limit-Rate
    pub limit_rate: Option<u64>,
    /// X-Accel-Charset, if it names one.
    pub charset: Option<Vec<u8>>,
    /// X-Accel-Buffering
    pub is_buffered: Option<bool>,
}
