//! Values of options that several words take.

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
