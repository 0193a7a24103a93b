//! `--home`: WordPress takes another address for the one of its home, without a change of its files and its
//! database. PHP reads a file before each script; it uses WordPress's interface for programs that come before
//! it: filters in `$wp_filter`, which `WP_Hook::build_preinitialized_hooks` takes over.

/// An address that a home can have: scheme, host and perhaps a port, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeAddress(String);

impl HomeAddress {
    /// Reads `http://127.0.0.1:8080`, with or without a slash at its end.
    pub fn parse(text: &str) -> Option<HomeAddress> {
        let address = text.strip_suffix('/').unwrap_or(text);
        let host = address
            .strip_prefix("http://")
            .or_else(|| address.strip_prefix("https://"))?;
        // No letter that means something in the text of a script.
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        (!host.is_empty() && host.bytes().all(is_host)).then(|| HomeAddress(address.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the file that PHP reads first. A file that `auto_prepend_file` names elsewhere is read as
    /// before.
    pub fn script(&self) -> String {
        SCRIPT.replace("%%", &self.0)
    }
}

const SCRIPT: &str = r"<?php
// Written by `mayfly serve --home`, and removed when it ends.
(static function () {
    $address = '%%';
    $move = static function ($url) use ($address) {
        return is_string($url) ? preg_replace('~^https?://[^/]*~i', $address, $url) : $url;
    };
    foreach (['option_home', 'option_siteurl'] as $filter) {
        $GLOBALS['wp_filter'][$filter][PHP_INT_MAX]['mayfly_home'] =
            ['function' => $move, 'accepted_args' => 1];
    }
})();
foreach ([
    get_cfg_var('auto_prepend_file'),
    (@parse_ini_file($_SERVER['DOCUMENT_ROOT'] . '/.user.ini') ?: [])['auto_prepend_file'] ?? '',
] as $mayfly_file) {
    if (is_string($mayfly_file) && $mayfly_file !== '' && $mayfly_file !== 'none') {
        require_once $mayfly_file;
    }
}
unset($mayfly_file);
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_no_path() {
        let cases = [
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("https://localhost:8443/", Some("https://localhost:8443")),
            ("http://[::1]:8080", Some("http://[::1]:8080")),
            ("example.org", None),
            ("http://", None),
            ("http://a/b", None),
            ("http://a'b", None),
            ("ftp://a", None),
        ];
        for (text, expected) in cases {
            let address = HomeAddress::parse(text);
            let address = address.as_ref().map(HomeAddress::as_str);
            assert_eq!(address, expected, "{text}");
        }
    }
}
