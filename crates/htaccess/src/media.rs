//! The media type and the charset of files: `AddType`, `ForceType`, `AddCharset`, `AddDefaultCharset` (`mod_mime`).

/// The lines of a section about files' types.
#[derive(Clone, Debug, Default)]
pub struct MediaSettings {
    /// By extension, in lower case; `None` takes away. A later line holds.
    pub types: Vec<(String, Option<String>)>,
    pub charsets: Vec<(String, Option<String>)>,
    /// `ForceType`; an empty text: none.
    pub forced: Option<String>,
    /// `AddDefaultCharset`; an empty text: none.
    pub default_charset: Option<String>,
}

/// The type of one file, as far as rules set it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileType {
    pub media_type: Option<String>,
    pub charset: Option<String>,
    /// For text without a charset, of scripts as well.
    pub default_charset: Option<String>,
}

impl MediaSettings {
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
            && self.charsets.is_empty()
            && self.forced.is_none()
            && self.default_charset.is_none()
    }

    pub fn merge(&mut self, inner: &MediaSettings) {
        self.types.extend(inner.types.iter().cloned());
        self.charsets.extend(inner.charsets.iter().cloned());
        for (own, inner) in [
            (&mut self.forced, &inner.forced),
            (&mut self.default_charset, &inner.default_charset),
        ] {
            if inner.is_some() {
                own.clone_from(inner);
            }
        }
    }

    /// Returns the type of the file with this path. Each of its extensions may set a part, the last one counts.
    pub fn of_file(&self, path: &[u8]) -> FileType {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let extensions: Vec<&str> = name.split('.').skip(1).collect();
        let of = |lines: &[(String, Option<String>)]| {
            let mut extensions = extensions.iter().rev();
            extensions.find_map(|extension| {
                let mut lines = lines.iter().rev();
                lines.find(|(own, _)| own == extension)?.1.clone()
            })
        };
        let forced = self.forced.clone().filter(|it| !it.is_empty());
        FileType {
            media_type: forced.or_else(|| of(&self.types)),
            charset: of(&self.charsets),
            ..self.of_no_file()
        }
    }

    /// Returns the type of a response for which no file is sent.
    pub fn of_no_file(&self) -> FileType {
        FileType {
            default_charset: self.default_charset.clone().filter(|it| !it.is_empty()),
            ..FileType::default()
        }
    }
}

/// Lines for each of some extensions.
pub fn by_extension(extensions: &[String], value: Option<&str>) -> Vec<(String, Option<String>)> {
    let extension = |it: &String| it.trim_start_matches('.').to_ascii_lowercase();
    let line = |it| (extension(it), value.map(str::to_owned));
    extensions.iter().map(line).collect()
}

/// Whether the text can stand in `Content-Type`.
pub fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        let of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !part.is_empty() && part.bytes().all(of_token)
    };
    let (bare, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    let parts = bare.trim_matches(' ').split_once('/');
    parts.is_some_and(|(family, kind)| is_token(family) && is_token(kind))
        && parameters.bytes().all(is_plain)
}

/// Whether the text is the name of a charset.
pub fn is_charset(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_that_says_something_counts() {
        let settings = MediaSettings {
            types: by_extension(&["webp".into(), ".AVIF".into()], Some("image/x")),
            charsets: by_extension(&["ru".into()], Some("koi8-r")),
            ..MediaSettings::default()
        };
        for (path, media_type, charset) in [
            ("/a/b.webp", Some("image/x"), None),
            ("/a/b.avif.ru", Some("image/x"), Some("koi8-r")),
            ("/a.webp/b.png", None, None),
            ("/a/webp", None, None),
        ] {
            let found = settings.of_file(path.as_bytes());
            assert_eq!(found.media_type.as_deref(), media_type, "{path}");
            assert_eq!(found.charset.as_deref(), charset, "{path}");
        }
    }

    #[test]
    fn a_type_that_would_end_the_field_is_none() {
        for (text, is_one) in [
            ("text/css", true),
            ("text/html; charset=utf-8", true),
            ("text", false),
            ("text/css\r", false),
            ("text/css; a=\u{7f}", false),
        ] {
            assert_eq!(is_media_type(text), is_one, "{text}");
        }
    }
}
