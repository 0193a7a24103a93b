//! Reads what the fields of a request say: who its sender claims to be, and whether it asks for
//! something that cannot be a shared page.
//!
//! The lists here let known kinds of requests past the cache, so that they work. Nothing is
//! safe because a field is in a list: a field that is in none is not sent to the application
//! at all when the answer may be shared.

use http_semantics::RequestView;

use crate::{Bypass, Class, media};

/// Reads each field once.
///
/// # Errors
/// Why the request goes past the cache.
#[inline]
pub(crate) fn examine(head: RequestView<'_>) -> Result<Class, Bypass> {
    let mut user_agent = None;
    for (name, value) in head.fields() {
        match meaning(name) {
            Meaning::None => {}
            Meaning::UserAgent => user_agent = user_agent.or(Some(value)),
            Meaning::Accept if media::accepts_html(value) => {}
            Meaning::Accept => return Err(Bypass::Accept),
            Meaning::Goes(why) => return Err(why),
        }
    }
    Ok(Class::of(user_agent))
}

/// May an answer have depended on this field, had the application seen it? Not where the
/// field is about the connection, the cache or the form of the transfer, is written anew for
/// the visitor's class, or is judged elsewhere (`Cookie`).
pub(crate) fn may_shape_answer(name: &[u8]) -> bool {
    let mut lower = [0; MOST_NAME_BYTES];
    let Some(lower) = lower.get_mut(..name.len()) else {
        return true;
    };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    !matches!(
        &*lower,
        b"accept"
            | b"accept-encoding"
            | b"cache-control"
            | b"connection"
            | b"content-length"
            | b"cookie"
            | b"host"
            | b"if-match"
            | b"if-modified-since"
            | b"if-none-match"
            | b"if-range"
            | b"if-unmodified-since"
            | b"keep-alive"
            | b"pragma"
            | b"priority"
            | b"proxy-connection"
            | b"range"
            | b"te"
            | b"upgrade-insecure-requests"
            | b"user-agent"
            | b"via"
    )
}

enum Meaning {
    None,
    UserAgent,
    Accept,
    Goes(Bypass),
}

/// The longest name in [`named`], rounded up.
const MOST_NAME_BYTES: usize = 32;

#[inline]
fn meaning(name: &[u8]) -> Meaning {
    let mut lower = [0; MOST_NAME_BYTES];
    let len = name.len().min(MOST_NAME_BYTES);
    for (to, from) in lower.iter_mut().zip(name) {
        // As CGI sees a name: `X_Api_Key` and `X-Api-Key` are one.
        *to = match *from {
            b'_' => b'-',
            byte => byte.to_ascii_lowercase(),
        };
    }
    let start = lower.get(..len).unwrap_or_default();
    if len == name.len() {
        match start {
            b"user-agent" => return Meaning::UserAgent,
            b"accept" => return Meaning::Accept,
            _ => {
                if let Some(why) = named(start) {
                    return Meaning::Goes(why);
                }
            }
        }
    }
    match begins_like_identity(start) {
        true => Meaning::Goes(Bypass::Credentials),
        false => Meaning::None,
    }
}

/// Whole names, lower case.
fn named(name: &[u8]) -> Option<Bypass> {
    Some(match name {
        // RFC 9110 §11.6.2, RFC 9440, and what services and frameworks use in their place.
        b"authorization"
        | b"proxy-authorization"
        | b"authentication"
        | b"api-key"
        | b"apikey"
        | b"auth-token"
        | b"access-token"
        | b"token"
        | b"private-token"
        | b"job-token"
        | b"client-cert"
        | b"client-cert-chain"
        | b"dpop"
        | b"signature"
        | b"x-amz-security-token"
        | b"x-client-cert"
        | b"x-client-dn"
        | b"x-client-verify"
        | b"x-csrf-token"
        | b"x-csrftoken"
        | b"x-xsrf-token"
        | b"x-forwarded-user"
        | b"x-forwarded-email"
        | b"x-forwarded-groups"
        | b"x-forwarded-preferred-username"
        | b"x-forwarded-access-token"
        | b"x-forwarded-client-cert"
        | b"x-forwarded-tls-client-cert"
        | b"x-user"
        | b"x-username"
        | b"x-user-id"
        | b"x-userid"
        | b"x-user-email"
        | b"x-email"
        | b"x-uid"
        | b"x-account"
        | b"x-account-id"
        | b"x-password"
        | b"x-secret"
        | b"x-session"
        | b"x-session-id"
        | b"x-session-token"
        | b"x-sid"
        | b"x-sso-user"
        | b"x-token"
        | b"x-vault-token"
        | b"x-wp-nonce"
        | b"iv-user"
        | b"sm-user"
        | b"user" => Bypass::Credentials,
        b"x-http-method-override"
        | b"x-http-method"
        | b"x-method-override"
        | b"x-original-method"
        | b"x-original-url"
        | b"x-original-uri"
        | b"x-rewrite-url"
        | b"x-rewrite-uri" => Bypass::Override,
        // The application answers with a part of the page, or with JSON.
        b"x-requested-with"
        | b"x-pjax"
        | b"x-inertia"
        | b"x-livewire"
        | b"hx-request"
        | b"turbo-frame"
        | b"x-up-target"
        | b"x-barba"
        | b"x-october-request-handler"
        | b"x-winter-request-handler" => Bypass::Partial,
        b"upgrade" | b"http2-settings" => Bypass::Upgrade,
        _ => return None,
    })
}

/// Families of fields in which proxies and login services tell the identity of a user.
fn begins_like_identity(name: &[u8]) -> bool {
    let families: &[&[u8]] = match name {
        [b'x', b'-', b'a', ..] => &[
            b"x-amzn-oidc-",
            b"x-api-",
            b"x-apikey",
            b"x-auth",
            b"x-access-token",
            b"x-admin-",
        ],
        [b'x', b'-', b'c', b'l', ..] => &[b"x-client-ssl-", b"x-client-certificate"],
        [b'x', b'-', b'g' | b'i' | b'j' | b'm', ..] => &[
            b"x-goog-authenticated-",
            b"x-goog-iap-",
            b"x-identity",
            b"x-impersonat",
            b"x-jwt",
            b"x-ms-client-principal",
            b"x-ms-token-",
        ],
        [b'x', b'-', b'o' | b'p' | b'r' | b's' | b'w', ..] => &[
            b"x-oidc-",
            b"x-okta-",
            b"x-pomerium-",
            b"x-proxy-user",
            b"x-remote-",
            b"x-saml-",
            b"x-shib",
            b"x-ssl-",
            b"x-webauth-",
        ],
        [b's', ..] => &[b"ssl-", b"shib"],
        [b'r', ..] => &[b"remote-"],
        [b'o', ..] => &[b"oidc-"],
        [b'c', b'f', ..] => &[b"cf-access-"],
        [b't', b'a', ..] => &[b"tailscale-user"],
        _ => return false,
    };
    families.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use http1::{HeadLimits, parse_head};

    use super::*;

    fn examined(fields: &str) -> Result<Class, Bypass> {
        let limits = HeadLimits {
            ignore_invalid_fields: false,
            ..HeadLimits::default()
        };
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        examine(parse_head(text, &limits).unwrap().view())
    }

    #[test]
    fn an_unheard_of_field_may_shape_the_answer() {
        for name in ["Host", "user-agent", "Cookie", "Range", "Accept-Encoding"] {
            assert!(!may_shape_answer(name.as_bytes()), "{name}");
        }
        for name in [
            "Accept-Language",
            "Referer",
            "X-Forwarded-For",
            "X-Invented-Tomorrow",
            "",
            "X-Longer-Than-Any-Name-That-Is-Known-Here",
        ] {
            assert!(may_shape_answer(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn requests_of_their_own_kind_are_known_by_their_fields() {
        for (fields, wanted) in [
            ("", Ok(Class::Desktop)),
            ("User-Agent: Googlebot/2.1\r\n", Ok(Class::Crawler)),
            ("Accept: text/html,*/*;q=0.8\r\n", Ok(Class::Desktop)),
            ("Accept: application/json\r\n", Err(Bypass::Accept)),
            ("Authorization: \r\n", Err(Bypass::Credentials)),
            ("X-API-Key: 0\r\n", Err(Bypass::Credentials)),
            ("X_Api_Key: 0\r\n", Err(Bypass::Credentials)),
            ("x-auth-request-user: a\r\n", Err(Bypass::Credentials)),
            ("Remote-User: a\r\n", Err(Bypass::Credentials)),
            ("SSL-Client-Cert: a\r\n", Err(Bypass::Credentials)),
            ("X-SSL-Client-S-DN: a\r\n", Err(Bypass::Credentials)),
            ("X-HTTP-Method-Override: PUT\r\n", Err(Bypass::Override)),
            ("X-Requested-With: XMLHttpRequest\r\n", Err(Bypass::Partial)),
            ("Upgrade: websocket\r\n", Err(Bypass::Upgrade)),
            (
                "Sec-Fetch-Mode: navigate\r\nReferer: x\r\n",
                Ok(Class::Desktop),
            ),
            ("X-Forwarded-For: 1.2.3.4\r\nVia: x\r\n", Ok(Class::Desktop)),
            ("X-Invented-Tomorrow: 1\r\n", Ok(Class::Desktop)),
            (
                "X-Goog-Authenticated-User-Email-And-More-Of-It: a\r\n",
                Err(Bypass::Credentials),
            ),
        ] {
            assert_eq!(examined(fields), wanted, "{fields}");
        }
    }
}
