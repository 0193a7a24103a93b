//! Which extensions files of a media type have, for lines that Apache says of types.

const TYPES: [(&str, &str); 58] = [
    ("application/atom+xml", "atom"),
    ("application/font-woff", "woff"),
    ("application/font-woff2", "woff2"),
    ("application/javascript", "js mjs"),
    ("application/json", "json"),
    ("application/ld+json", "jsonld"),
    ("application/manifest+json", "webmanifest"),
    ("application/msword", "doc"),
    ("application/pdf", "pdf"),
    ("application/rdf+xml", "rdf"),
    ("application/rss+xml", "rss"),
    ("application/schema+json", "schema.json"),
    ("application/vnd.geo+json", "geojson"),
    ("application/geo+json", "geojson"),
    ("application/vnd.ms-fontobject", "eot"),
    ("application/wasm", "wasm"),
    ("application/x-font-otf", "otf"),
    ("application/x-font-ttf", "ttf"),
    ("application/x-font-woff", "woff"),
    ("application/x-javascript", "js mjs"),
    ("application/x-shockwave-flash", "swf"),
    ("application/x-web-app-manifest+json", "webapp"),
    ("application/xhtml+xml", "xhtml"),
    ("application/xml", "xml"),
    ("application/zip", "zip"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg oga"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("font/collection", "ttc"),
    ("font/eot", "eot"),
    ("font/opentype", "otf"),
    ("font/otf", "otf"),
    ("font/truetype", "ttf"),
    ("font/ttf", "ttf"),
    ("font/woff", "woff"),
    ("font/woff2", "woff2"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpg jpeg"),
    ("image/jpg", "jpg jpeg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg svgz"),
    ("image/vnd.microsoft.icon", "ico"),
    ("image/webp", "webp"),
    ("image/x-icon", "ico"),
    ("text/cache-manifest", "appcache"),
    ("text/calendar", "ics"),
    ("text/css", "css"),
    ("text/html", "html htm"),
    ("text/javascript", "js mjs"),
    ("text/plain", "txt"),
    ("text/vtt", "vtt"),
    ("text/x-component", "htc"),
    ("text/xml", "xml"),
    ("video/mp4", "mp4 m4v"),
    ("video/webm", "webm"),
];

/// The extensions of a type; none where it is not known.
pub fn extensions(media_type: &str) -> Vec<&'static str> {
    let lower = media_type.to_ascii_lowercase();
    let found = TYPES.iter().find(|it| it.0 == lower);
    found.map_or(Vec::new(), |it| it.1.split(' ').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_their_extensions() {
        assert_eq!(extensions("image/JPEG"), ["jpg", "jpeg"]);
        assert!(extensions("x/y").is_empty());
    }
}
