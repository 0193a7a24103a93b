//! A list of media types, as in `gzip_types`.

/// A list of media types such as `gzip_types`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaTypes {
    pub all: bool,
    /// The types in lower case.
    pub types: Vec<Box<[u8]>>,
}

impl MediaTypes {
    /// Does `content_type` (parameters allowed) belong to the list?
    pub fn contains(&self, content_type: &[u8]) -> bool {
        let end = content_type
            .iter()
            .position(|&b| b == b';')
            .unwrap_or(content_type.len());
        let media_type = content_type[..end].trim_ascii();
        self.all
            || self
                .types
                .iter()
                .any(|t| t.eq_ignore_ascii_case(media_type))
    }
}
