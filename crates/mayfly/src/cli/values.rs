//! Values of options that several words take.

use std::time::Duration;

pub fn rate(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let is_possible = |it: &f64| (0.001..=1_000_000.0).contains(it);
    number
        .filter(is_possible)
        .ok_or_else(|| "expected a number up to 1000000".to_owned())
}

pub fn time(text: &str) -> Result<Duration, String> {
    nginx_conf::parse_duration(text)
        .map_err(|_| "expected a time such as 1s, 200ms or 1m".to_owned())
}

/// Parses the address of PHP-FPM, in the form of `fastcgi_pass`.
pub fn fastcgi_address(text: &str) -> Result<String, String> {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"/._-:[]@".contains(&it);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(
            "expected an address such as unix:/run/php/php-fpm.sock or 127.0.0.1:9000".to_owned(),
        ),
    }
}
