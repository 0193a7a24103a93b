//! The URL of a request: `http://HOST[:PORT]/TARGET`, with a weight before it if there are several.

const MAX_URL_BYTES: usize = 8 << 10;

/// A URL with its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
    /// The value of the `Host` field: with the port if it is not the usual one.
    pub authority: String,
    /// Path and query.
    pub target: String,
    pub weight: u32,
}

/// The reason why a text is no URL to ask for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(String);

impl Target {
    /// Reads `[WEIGHT@]URL`.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Target, UrlError> {
        let error = |what: &str| UrlError(format!("{text}: {what}"));
        let (weight, url) = match text.split_once('@') {
            Some((weight, url)) if weight.bytes().all(|it| it.is_ascii_digit()) => {
                let weight = weight
                    .parse()
                    .ok()
                    .filter(|it| (1..=1_000_000).contains(it));
                (
                    weight.ok_or_else(|| error("expected a weight from 1 to 1000000"))?,
                    url,
                )
            }
            _ => (1, text),
        };
        let is_plain = url.bytes().all(|it| it.is_ascii_graphic());
        if !is_plain || url.len() > MAX_URL_BYTES {
            return Err(error(
                "expected a URL without blanks and special characters",
            ));
        }
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(error("expected http:// or https://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(error("a URL with a password is not asked for"));
        }
        let usual = if is_tls { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (
                host,
                port.parse()
                    .ok()
                    .filter(|port| *port != 0)
                    .ok_or_else(|| error("expected a port from 1 to 65535"))?,
            ),
            _ => (authority, usual),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(error("expected a host"));
        }
        let shown = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        Ok(Target {
            is_tls,
            host: host.to_owned(),
            port,
            authority: if port == usual {
                shown
            } else {
                format!("{shown}:{port}")
            },
            target: match target.starts_with('/') {
                true => target.to_owned(),
                false => format!("/{target}"),
            },
            weight,
        })
    }

    /// The URL, for people.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_with_their_weights() {
        let cases = [
            ("http://a", "1 a 80 http://a/"),
            ("3@http://a:8080/x?y=1#z", "3 a 8080 http://a:8080/x?y=1"),
            ("https://[::1]/", "1 ::1 443 https://[::1]/"),
            ("http://[::1]:81?a", "1 ::1 81 http://[::1]:81/?a"),
            ("http://a:80/@b", "1 a 80 http://a/@b"),
        ];
        for (text, expected) in cases {
            let it = Target::parse(text).unwrap();
            let shown = format!("{} {} {} {}", it.weight, it.host, it.port, it.url());
            assert_eq!(shown, expected, "{text}");
        }
        for text in [
            "",
            "a",
            "ftp://a/",
            "http://",
            "http://a:0/",
            "http://a:x/",
            "0@http://a/",
            "http://u:p@a/",
            "http://a/b c",
            "http://a/\r\nx: y",
            "http://a/\u{e9}",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }
}
