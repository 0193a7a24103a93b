//! What to do about each reason, in the words of the configuration; and which of its lines decide it.

use http_cache::Reason;

/// The directives that have a say in a reason, by the ends of their names.
pub fn directives(why: Reason) -> &'static [&'static str] {
    match why {
        Reason::Off => &["_cache"],
        Reason::Method => &["_cache_methods", "_cache_convert_head"],
        Reason::Range => &["_cache_max_range_offset"],
        Reason::Bypass => &["_cache_bypass"],
        Reason::OwnWrite => &["cache_read_your_writes"],
        Reason::Argument => &["cache_personal_args"],
        Reason::Cookie => &[
            "cache_personal_cookies",
            "cache_unknown_cookies",
            "cache_key_cookies",
        ],
        Reason::Path => &["cache_personal_paths"],
        Reason::Accept
        | Reason::Credentials
        | Reason::Override
        | Reason::Fragment
        | Reason::TooLong => &["cache_shared"],
        Reason::Purge => &["_cache_purge"],
        Reason::MinUses => &["_cache_min_uses"],
        Reason::LockTimeout => &["_cache_lock_timeout"],
        Reason::Condition => &["_no_cache"],
        Reason::CookieOutsideKey => &["_cache_key", "_ignore_headers"],
        Reason::Authorization => &["cache_store_authorized"],
        Reason::SetCookie => &["cache_store_set_cookie", "_ignore_headers"],
        Reason::NoStoreDirective
        | Reason::NoCache
        | Reason::Private
        | Reason::ZeroLifetime
        | Reason::UnknownLifetime => &["_ignore_headers"],
        Reason::NoLifetime => &["_cache_valid"],
        Reason::Body
        | Reason::Upgrade
        | Reason::TooManyVariants
        | Reason::Failed
        | Reason::NoAnswer
        | Reason::AccelRedirect
        | Reason::Status
        | Reason::Partial
        | Reason::VaryStar
        | Reason::VaryTooLong
        | Reason::TooLarge
        | Reason::NoRoom
        | Reason::Truncated
        | Reason::ExcessData
        | Reason::Purged => &[],
    }
}

/// What would let the response be stored or looked up.
pub fn on(why: Reason) -> Vec<String> {
    vec![text(why).to_owned()]
}

fn text(why: Reason) -> &'static str {
    match why {
        Reason::Off => {
            "Write fastcgi_cache or proxy_cache with the name of a zone in this location."
        }
        Reason::Method => {
            "GET and HEAD are stored. POST is with fastcgi_cache_methods POST and $request_body in the key."
        }
        Reason::Body => {
            "A body that reaches the application shapes its answer. Send it with POST, or no body at all."
        }
        Reason::Upgrade => "A connection that changes its protocol has no response to store.",
        Reason::Range => "fastcgi_cache_max_range_offset says how far back a range may begin.",
        Reason::Bypass => {
            "The condition is true for this request. It looks again where all variables of the line \
             are empty or 0."
        }
        Reason::OwnWrite => {
            "The cookie mayfly_writer ends by itself: cache_read_your_writes says after how long."
        }
        Reason::Accept => {
            "Browsers send Accept with text/html. This request is for another format."
        }
        Reason::Argument => {
            "If no visitor's own data depends on the argument, take it out of cache_personal_args."
        }
        Reason::Cookie => {
            "A cookie that no page depends on belongs in cache_ignore_cookies, one that shapes pages for \
             many visitors in cache_key_cookies."
        }
        Reason::Credentials => {
            "Whoever sends credentials gets a page of their own. Without the field the page is shared."
        }
        Reason::Override => {
            "The request is served without the field that names a method or a path."
        }
        Reason::Fragment => "The page as a whole is shared; what scripts fetch of it is not.",
        Reason::Path => {
            "If the page is the same for everybody, take it out of cache_personal_paths."
        }
        Reason::TooLong => "The cookies of cache_key_cookies are longer than 1024 bytes together.",
        Reason::Purge => "The request removes what is stored. Ask with GET.",
        Reason::MinUses => {
            "It is stored when it was asked for often enough: fastcgi_cache_min_uses says how often."
        }
        Reason::LockTimeout => {
            "The application takes longer than fastcgi_cache_lock_timeout; whoever waits that long asks for itself."
        }
        Reason::TooManyVariants => {
            "The response varies on fields with too many values. Have the application name fewer fields \
             in Vary, or fields with fewer values."
        }
        Reason::Failed => "The error log says what is wrong with the upstream.",
        Reason::NoAnswer => "The configuration or the application closes the connection.",
        Reason::AccelRedirect => {
            "What X-Accel-Redirect names is answered by its own location, with its own cache."
        }
        Reason::Condition => {
            "The condition is true for this request. It is stored where all variables of the line are \
             empty or 0."
        }
        Reason::Status => "No cache stores responses of this status.",
        Reason::Partial => {
            "The slice directive stores responses in parts; others are stored whole only."
        }
        Reason::CookieOutsideKey => {
            "The response says private or no-store to a visitor with cookies. With cache_shared on, such \
             visitors go past the cache."
        }
        Reason::Authorization => {
            "Responses to requests with a password are stored if they say public or s-maxage, or with \
             cache_store_authorized on."
        }
        Reason::SetCookie => {
            "Have the application set the cookie only where it is needed. If no page here depends on the \
             visitor, cache_store_set_cookie on stores the response without the cookie."
        }
        Reason::NoStoreDirective | Reason::NoCache | Reason::Private => {
            "The application says so in Cache-Control. In PHP, session_start() does unless \
             session.cache_limiter is empty. X-Accel-Expires of the same response takes precedence."
        }
        Reason::VaryStar => {
            "Have the application name the fields that shape the page in the place of \"*\"."
        }
        Reason::VaryTooLong => "Have the application name fewer fields in Vary.",
        Reason::ZeroLifetime => {
            "The application says that the response is stale at once (max-age=0, Expires in the past, or \
             X-Accel-Expires: 0). A longer time there lets it be stored."
        }
        Reason::UnknownLifetime => {
            "Have the application write max-age as a number of seconds, and Expires as a date (RFC 9110 §5.6.7)."
        }
        Reason::NoLifetime => {
            "Write fastcgi_cache_valid for this status, or have the application send Cache-Control: s-maxage."
        }
        Reason::TooLarge => {
            "The response is larger than a zone stores; a file is better served as a file."
        }
        Reason::NoRoom => "Give the zone more memory: memory= in fastcgi_cache_path.",
        Reason::Truncated => "The upstream closed the connection too early: its own log says why.",
        Reason::ExcessData => "The Content-Length of the application is too small.",
        Reason::Purged => "It is stored with the next request.",
    }
}
