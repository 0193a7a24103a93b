//! Whether a request has cookies that its cache key does not hold.

use cache_decision::cookies::has_cookie_not_named;
use site::{CacheRules, CookieInKey};

use crate::exchange::request::Request;
use crate::exchange::variable;

/// Has the request cookies that count and that its key does not hold?
pub fn has_cookie_outside_key(request: &Request, rules: &CacheRules) -> bool {
    if !has_cookie_not_named(request.received.head(), rules) {
        return false;
    }
    !rules.cookies_in_key.iter().any(|part| match part {
        CookieInKey::All => true,
        CookieInKey::Named(_) => false,
        CookieInKey::Slot(slot) => {
            let is_set = |value: &Option<Vec<u8>>| value.as_ref().is_some_and(|it| !it.is_empty());
            request
                .values
                .read(|values| values.slots.get(slot.0).is_some_and(is_set))
        }
        CookieInKey::Map(id) => {
            let value = variable::evaluate_map(request, *id);
            let default = &request.configuration.site.http.maps[id.0].default;
            !value.is_empty() && value != variable::evaluate(request, default)
        }
    })
}
