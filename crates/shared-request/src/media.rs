//! The Accept field (RFC 9110 §12.5.1).

/// The `Accept` value that the application is sent for all visitors: HTML before
/// everything.
pub(crate) const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Does a visitor who sent this value take an HTML page? An empty value refuses nothing.
#[inline]
pub(crate) fn accepts_html(value: &[u8]) -> bool {
    // Browsers ask for pages so, and programs that do not care ask for anything.
    value.starts_with(b"text/html,") || value == b"*/*" || names_html(value)
}

fn names_html(value: &[u8]) -> bool {
    let mut is_empty = true;
    for range in value.split(|&byte| byte == b',') {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let media = parts.next().unwrap_or_default();
        is_empty &= media.is_empty();
        let is_html = [
            &b"text/html"[..],
            b"text/*",
            b"*/*",
            b"application/xhtml+xml",
        ]
        .iter()
        .any(|html| media.eq_ignore_ascii_case(html));
        if is_html && !parts.any(is_refusal) {
            return true;
        }
    }
    is_empty
}

/// `q=0`, `q=0.000`.
pub(crate) fn is_refusal(parameter: &[u8]) -> bool {
    let Some((b'q' | b'Q', rest)) = parameter.split_first() else {
        return false;
    };
    let Some((b'=', weight)) = rest.trim_ascii_start().split_first() else {
        return false;
    };
    let weight = weight.trim_ascii();
    weight.starts_with(b"0") && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_html_is_known() {
        for (value, wanted) in [
            ("", true),
            ("*/*", true),
            ("text/html", true),
            ("TEXT/HTML;charset=utf-8", true),
            ("application/json, text/plain, */*", true),
            ("image/avif,image/webp,*/*;q=0.8", true),
            ("text/*;q=0.1", true),
            ("application/xhtml+xml", true),
            ("application/json", false),
            ("text/html;q=0", false),
            ("text/html;q=0.0, application/json", false),
            ("image/*", false),
            ("text/css", false),
        ] {
            assert_eq!(accepts_html(value.as_bytes()), wanted, "{value}");
        }
        assert!(accepts_html(ACCEPT.as_bytes()));
    }
}
