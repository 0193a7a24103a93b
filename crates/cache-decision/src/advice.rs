//! Advice for each reason, in the words of the configuration; and the directives that decide it.

use http_cache::Reason;

/// The directives that have a say in a reason, by the ends of their names.
#[must_use]
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
        | Reason::Depends
        | Reason::Field
        | Reason::Override
        | Reason::Fragment
        | Reason::TooLong
        | Reason::NotShareable
        | Reason::Unproven => &["cache_shared"],
        Reason::Purge => &["_cache_purge"],
        Reason::NoLease => &["cache_nodes"],
        Reason::LostLease => &["cache_nodes_lost"],
        Reason::MinUses => &["_cache_min_uses"],
        Reason::LockTimeout => &["_cache_lock_timeout"],
        Reason::Condition => &["_no_cache", "_cache_bypass", "cache_store_bypassed"],
        Reason::CookieOutsideKey => &["_cache_key", "_ignore_headers"],
        Reason::Authorization => &["cache_store_authorized"],
        Reason::SetCookie => &["cache_store_set_cookie", "_ignore_headers"],
        Reason::NoStoreDirective
        | Reason::NoCache
        | Reason::Private
        | Reason::ZeroLifetime
        | Reason::UnknownLifetime => &["_ignore_headers"],
        Reason::NoLifetime => &["_cache_valid"],
        Reason::OwnCopy => &["cache_private", "cache_learn"],
        Reason::AddressDatabase => &["cache_learn"],
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
        | Reason::Superseded
        | Reason::Purged => &[],
    }
}

/// Returns advice for a location with `cache_litespeed`: the application decides by LiteSpeed's fields.
#[must_use]
pub fn of_litespeed(why: Option<Reason>, is_private: bool) -> Option<String> {
    let text = match why {
        None if is_private => {
            "cache_litespeed: this is one visitor's own copy, because X-LiteSpeed-Cache-Control says private. With ESI \
             in the settings of the plug-in, the page is public, and what is personal is a fragment of it."
        }
        Some(Reason::Cookie) => {
            "cache_litespeed: a page for visitors with cookies is stored when the application has once said in \
             X-LiteSpeed-Cache-Control who may share it, so from the second request on. A private one needs a cookie \
             of 16 bytes or more, and at most 16 of these. --ask makes the request."
        }
        Some(Reason::NoCache | Reason::NoStoreDirective | Reason::ZeroLifetime) => {
            "cache_litespeed: X-LiteSpeed-Cache-Control counts instead of Cache-Control and X-Accel-Expires. The \
             plug-in sends no-cache for what its settings exclude, and for visitors whom they give no copies."
        }
        Some(Reason::Private) => {
            "cache_litespeed: the page is private in X-LiteSpeed-Cache-Control. It is then stored for visitors with a \
             cookie of 16 bytes or more, a copy for each, and for nobody without cookies. With public, those without \
             cookies share it."
        }
        Some(Reason::CookieOutsideKey) => {
            "cache_litespeed: the response has no X-LiteSpeed-Cache-Control, so nobody says who shares it beside this \
             visitor. Is the plug-in active, and does it see this page?"
        }
        Some(Reason::SetCookie) => {
            "cache_litespeed: a cookie that all visitors of the page may get belongs in the field LSC-Cookie as well."
        }
        Some(Reason::VaryStar) => {
            "cache_litespeed: X-LiteSpeed-Vary may say cookie=NAME and value=ismobile; another value cannot be told from \
             the request."
        }
        Some(Reason::NoLifetime) => {
            "cache_litespeed: max-age in X-LiteSpeed-Cache-Control gives the lifetime."
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns advice that would let the response be stored or looked up.
#[must_use]
pub fn on(why: Reason) -> &'static str {
    match why {
        Reason::Off => {
            "Write fastcgi_cache or proxy_cache with the name of a zone in this location."
        }
        Reason::Method => {
            "GET and HEAD are stored. POST is with fastcgi_cache_methods POST and $request_body in the key."
        }
        Reason::Body => {
            "A GET with a body is never stored, because the body may shape the answer. Without the body it is. POST is stored \
             with fastcgi_cache_methods POST and a $request_body that fits in memory."
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
            "A cookie of a log-in or a session stays as it is: the page is its visitor's own. One that no page depends on \
             belongs in cache_ignore_cookies, one that shapes pages for many visitors in cache_key_cookies."
        }
        Reason::Credentials => {
            "A visitor who sends credentials gets a page of their own. Without the field the page is shared."
        }
        Reason::Field => {
            "The application may read any field that is not known to be harmless. Without the field the page is shared."
        }
        Reason::Depends => {
            "Have the application name in Vary what shapes the page, or write it into the cache key. The trial is made \
             again after half an hour; explain --try makes it now."
        }
        Reason::Unproven => {
            "The answer to this request is compared with the shared one. Where both are the same, the next visitor who says \
             the same is shown the shared one."
        }
        Reason::NotShareable => {
            "explain says why, and explain --try in which parts the page differs. A page is shared if its address names no \
             action, and if guests get the same, but for tokens, times and counts. The trial is made again after a pause."
        }
        Reason::Override => {
            "The request is served without the field that names a method or a path."
        }
        Reason::Fragment => "The page as a whole is shared; what scripts fetch of it is not.",
        Reason::Path => {
            "If the page is the same for everybody, take it out of cache_personal_paths."
        }
        Reason::TooLong => {
            "The cookies of cache_key_cookies are longer than 1024 bytes together. Name fewer there, or have the \
             application set shorter ones."
        }
        Reason::Purge => "The request removes what is stored. Ask with GET.",
        Reason::NoLease => {
            "The error log says why the engine of cache_nodes cannot be reached. Stored pages are used again as soon as \
             it can."
        }
        Reason::LostLease => {
            "The error log says why the engine of cache_nodes cannot be reached. Without cache_nodes_lost no stored page \
             is used meanwhile."
        }
        Reason::MinUses => {
            "It is stored when it was asked for often enough: fastcgi_cache_min_uses says how often."
        }
        Reason::LockTimeout => {
            "The application takes longer than fastcgi_cache_lock_timeout; a request that waits longer asks for itself."
        }
        Reason::TooManyVariants => {
            "The response varies on fields with too many values. Have the application name fewer fields \
             in Vary, or fields with fewer values."
        }
        Reason::Failed => "The error log says what is wrong with the upstream.",
        Reason::NoAnswer => {
            "The configuration (return 444) or the application closes the connection. Only a response can be stored."
        }
        Reason::AccelRedirect => {
            "What X-Accel-Redirect names is answered by its own location, with its own cache."
        }
        Reason::Condition => {
            "The condition is true for this request. It is stored where all variables of the line are \
             empty or 0."
        }
        Reason::Status => {
            "No cache stores responses of this status (1xx, 304 and the like). With another status, such as 200 or 404, \
             it is stored for as long as fastcgi_cache_valid or Cache-Control says."
        }
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
            "Have the application name the fields that shape the page instead of \"*\"."
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
            "The response is larger than a zone stores. A file is better served as a file, also by X-Accel-Redirect; else \
             slice stores it in parts."
        }
        Reason::NoRoom => "Give the zone more memory: memory= in fastcgi_cache_path.",
        Reason::Truncated => "The upstream closed the connection too early: its own log says why.",
        Reason::ExcessData => {
            "The Content-Length of the application is too small. It counts bytes, after compression; without the field, \
             the response is stored as it comes."
        }
        Reason::OwnCopy => {
            "It is shown until something changes that the page was made of, the visitor writes, or the visitor's session \
             changes; at most for 5 minutes."
        }
        Reason::AddressDatabase => {
            "The report of cache_learn names the file or the statement. If no page depends on a file, have the application \
             use it only where it is needed: a day later the page is stored again. A statement that finds no visitor's \
             address any more is no reason after a minute."
        }
        Reason::Purged => "It is stored with the next request.",
        Reason::Superseded => {
            "Two requests for the page were under way at once; the later one is stored."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn litespeeds_advice_is_about_what_was_asked_for() {
        let own_copy = of_litespeed(None, true).unwrap();
        assert!(own_copy.contains("one visitor's own copy"), "{own_copy}");
        assert_eq!(of_litespeed(None, false), None);
        let cookies = of_litespeed(Some(Reason::Cookie), false).unwrap();
        assert!(cookies.contains("from the second request on"), "{cookies}");
    }
}
