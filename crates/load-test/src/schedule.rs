//! When requests are due: numbers in, times out.

use std::time::Duration;

/// When request number `number` (from 0) is due, counted from the beginning, if the rate grows evenly
/// from nothing to `rate` during `ramp` and stays there.
///
/// The number of requests until `t` is `rate * t² / (2 * ramp)` within the ramp, and grows by `rate` each
/// second behind it.
#[must_use]
pub fn due(number: u64, rate: f64, ramp: Duration) -> Duration {
    let (number, ramp) = (number as f64, ramp.as_secs_f64());
    let within_ramp = rate * ramp / 2.0;
    let seconds = match number < within_ramp {
        true => (2.0 * ramp * number / rate).sqrt(),
        false => number / rate + ramp / 2.0,
    };
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_the_rate_behind_the_ramp() {
        let at = |number| due(number, 100.0, Duration::ZERO).as_secs_f64();
        assert_eq!((at(0), at(1), at(100)), (0.0, 0.01, 1.0));
        let ramp = Duration::from_secs(2);
        let until = |seconds: f64| {
            (0..1000)
                .filter(|number| due(*number, 100.0, ramp).as_secs_f64() < seconds)
                .count()
        };
        assert_eq!((until(1.0), until(2.0), until(3.0)), (25, 100, 200));
        let times: Vec<Duration> = (0..400).map(|number| due(number, 100.0, ramp)).collect();
        assert!(times.is_sorted());
    }
}
