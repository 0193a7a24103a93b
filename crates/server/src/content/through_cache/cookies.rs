//! Whether a request has cookies that its cache key does not hold.

use cache_decision::cookies::has_cookie_not_named;
use site::{CacheRules, CookieInKey};

use crate::exchange::request::Request;
use crate::exchange::variable;

/// Has the request cookies that count and that its key does not hold?
pub fn has_cookie_outside_key(request: &mut Request, rules: &CacheRules) -> bool {
    if !has_cookie_not_named(request.received.head(), rules) {
        return false;
    }
    !rules.cookies_in_key.iter().any(|part| match part {
        CookieInKey::All => true,
        CookieInKey::Named(_) => false,
        CookieInKey::Slot(slot) => {
            let value = request.extras.values.slots.get(slot.0);
            value.is_some_and(|value| value.as_ref().is_some_and(|value| !value.is_empty()))
        }
        CookieInKey::Map(id) => {
            let value = variable::evaluate_map(request, *id);
            let configuration = request.configuration.clone();
            let default = &configuration.site.http.maps[id.0].default;
            !value.is_empty() && value != variable::evaluate(request, default)
        }
    })
}
