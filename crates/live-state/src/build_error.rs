//! The reasons why a site cannot be served.

/// A site that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An upstream group is impossible.
    #[error("upstream \"{name}\": {reason}")]
    Group { name: String, reason: String },
    /// A file of `ssl_*`, `proxy_ssl_*` or `otel_exporter` cannot be used.
    #[error("{0}")]
    Tls(String),
    /// There is no room for the thread that takes PHP's reports of its reads.
    #[error("cache_learn: {0}")]
    Learning(std::io::Error),
}
