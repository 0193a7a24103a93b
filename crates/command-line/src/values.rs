//! Values of options that several words take.

use std::time::Duration;

/// Reads a number of events in a second, or a factor.
///
/// # Errors
/// The text is no such value: the error names the expected form.
pub fn rate(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let is_possible = |it: &f64| (0.001..=1_000_000.0).contains(it);
    number
        .filter(is_possible)
        .ok_or_else(|| "expected a number up to 1000000".to_owned())
}

/// Reads a time as nginx writes it.
///
/// # Errors
/// The text is no such value: the error names the expected form.
pub fn time(text: &str) -> Result<Duration, String> {
    nginx_conf::parse_duration(text)
        .map_err(|_| "expected a time such as 1s, 200ms or 1m".to_owned())
}
