//! The reasons why a site cannot be served.

/// A site that cannot be served.
#[derive(Debug)]
pub enum BuildError {
    /// An upstream group is impossible.
    Group { name: String, reason: String },
    /// A file of `ssl_*`, `proxy_ssl_*` or `otel_exporter` cannot be used.
    Tls(String),
    /// There is no room for the thread that takes PHP's reports of its reads.
    Learning(std::io::Error),
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::Tls(reason) => f.write_str(reason),
            BuildError::Learning(error) => write!(f, "cache_learn: {error}"),
            BuildError::Group { name, reason } => write!(f, "upstream \"{name}\": {reason}"),
        }
    }
}

impl std::error::Error for BuildError {}
