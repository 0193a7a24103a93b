//! The settings of an exporter.

use std::fmt;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::span::Attribute;

/// Two exporters with the same settings are the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub endpoint: Endpoint,
    /// The longest time that a span waits.
    pub interval: Duration,
    /// Spans in a batch.
    pub batch_size: usize,
    /// Batches that may wait.
    pub batch_count: usize,
    /// Certificates of authorities (PEM), where those of the system are not meant.
    pub trusted: Option<TrustedPem>,
    /// Sent with each batch: valid names and values.
    pub fields: Vec<(String, String)>,
    pub resource: Vec<Attribute>,
    /// The version of this server.
    pub version: String,
}

/// A PEM text.
#[derive(Clone, PartialEq, Eq)]
pub struct TrustedPem(pub Vec<u8>);

impl fmt::Debug for TrustedPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}
