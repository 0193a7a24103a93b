//! Compressed responses: the content codings and a location's settings for each.

use std::sync::Arc;

use super::media_types::MediaTypes;
use super::pattern::Pattern;

#[derive(Debug, Clone)]
pub struct CompressionSettings {
    pub brotli: CodingSettings,
    pub zstd: CodingSettings,
    pub gzip: CodingSettings,
    /// Lowest minor version of HTTP/1 that gets compressed answers: `gzip_http_version`.
    pub gzip_http_minor: u8,
    /// `gzip_vary`; holds for every coding.
    pub gzip_vary: bool,
    pub gzip_proxied: GzipProxied,
    /// Patterns of `gzip_disable` against User-Agent.
    pub gzip_disable: Vec<Arc<Pattern>>,
    pub gunzip: bool,
}

/// A content coding that responses can be sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    /// The codings in the order in which the server prefers them if a client accepts several
    /// equally: the smallest first.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// Returns its name in `Accept-Encoding` and `Content-Encoding` (RFC 9110 §8.4.1, RFC 7932,
    /// RFC 8878).
    pub fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// The end of the name of a file that was compressed beforehand.
    pub fn file_suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
            Coding::Gzip => ".gz",
        }
    }
}

/// `NAME on`, `NAME_types` and so on, for one coding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodingSettings {
    pub enabled: bool,
    /// `*_types` (`*` is everything); text/html is always included.
    pub types: Arc<MediaTypes>,
    /// `*_min_length`, bytes.
    pub min_length: u64,
    /// `*_comp_level`
    pub level: u8,
    /// Base-two logarithm of `brotli_window`; 0 for the other codings.
    pub window_bits: u8,
    /// `*_static`
    pub precompressed: PrecompressedFiles,
}

impl CompressionSettings {
    pub fn coding(&self, coding: Coding) -> &CodingSettings {
        match coding {
            Coding::Brotli => &self.brotli,
            Coding::Zstd => &self.zstd,
            Coding::Gzip => &self.gzip,
        }
    }
}

/// The flags of `gzip_proxied`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GzipProxied {
    pub any: bool,
    pub expired: bool,
    pub no_cache: bool,
    pub no_store: bool,
    pub private: bool,
    pub no_last_modified: bool,
    pub no_etag: bool,
    pub auth: bool,
}

/// `gzip_static`, `brotli_static`, `zstd_static`: files compressed beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecompressedFiles {
    Off,
    On,
    Always,
}
