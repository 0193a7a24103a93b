//! `limit_rate` and its kin: how fast a response may be sent.

use transport::outbound::Pace;

use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::route::rewrite::parse_rate;

/// The pace that X-Accel-Limit-Rate, `set $limit_rate` or `limit_rate` ask for.
pub fn of(request: &Request) -> Option<Pace> {
    let settings = request.settings();
    let rate = match request.delivery.limit_rate {
        None if !request.compiled_location().is_paced => return None,
        None => parse_rate(&variable::evaluate(request, &settings.limit_rate)),
        rate => rate,
    };
    let bytes_per_second = rate.filter(|&rate| rate > 0)?;
    Some(Pace {
        bytes_per_second,
        free: parse_rate(&variable::evaluate(request, &settings.limit_rate_after)).unwrap_or(0),
    })
}
