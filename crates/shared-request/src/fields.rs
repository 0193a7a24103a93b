//! Reads the fields of a request: who its sender claims to be, and whether it asks for something that
//! cannot be a shared page.
//!
//! The lists here let known kinds of requests past the cache, so that they work. Nothing is
//! safe because a field is in a list: a field that is in none is not sent to the application
//! at all when the answer may be shared.

use http_semantics::RequestView;

use crate::left_out::{self, LeftOut, Trait, TraitSet};
use crate::{Bypass, Class, media, varied};

/// Reads each field once: the class of its sender, and the parts that the shared request leaves out.
///
/// # Errors
/// Why the request goes past the cache.
#[inline]
pub(crate) fn examine(
    head: RequestView<'_>,
    (host, port): (&[u8], Option<u16>),
) -> Result<(Class, LeftOut), Bypass> {
    let mut user_agent = None;
    let mut left_out = LeftOut::default();
    let mut seen = TraitSet::NONE;
    for (name, value) in head.fields() {
        match meaning(name) {
            Meaning::None => {}
            // The application would be sent this spelling, and may print it.
            Meaning::Host if !is_plain(value, (host, port)) => return Err(Bypass::Field),
            Meaning::Host => {}
            Meaning::UserAgent => {
                note_once(Trait::Agent, &mut seen)?;
                user_agent = Some(value);
            }
            Meaning::Accept if media::accepts_html(value) => put_accept(value, &mut left_out),
            Meaning::Accept => return Err(Bypass::Accept),
            Meaning::Language => {
                note_once(Trait::Language, &mut seen)?;
                left_out.set(Trait::Language, varied::language_class(value));
            }
            Meaning::Referer => {
                note_once(Trait::Referer, &mut seen)?;
                left_out.set(Trait::Referer, left_out::referer(value, host));
            }
            Meaning::Hint => put_hint(name, value, &mut left_out),
            Meaning::Address => left_out.note_named_address(value),
            Meaning::Goes(why) => return Err(why),
        }
    }
    let (class, family) = Class::and_family(user_agent);
    left_out.set(Trait::Agent, family);
    Ok((class, left_out))
}

/// Notes a field that a request has once. The application would be sent all of its values, whose class is none of theirs.
///
/// # Errors
/// It is there twice.
fn note_once(it: Trait, seen: &mut TraitSet) -> Result<(), Bypass> {
    match seen.has(it) {
        true => Err(Bypass::Field),
        false => {
            *seen = seen.with(it);
            Ok(())
        }
    }
}

/// Is it the host as the shared request names it: in lower case, without a dot at its end?
fn is_plain(field: &[u8], (host, port): (&[u8], Option<u16>)) -> bool {
    let rest = field.strip_prefix(host);
    rest.is_some_and(|rest| match port {
        None => rest.is_empty(),
        Some(port) => rest
            .strip_prefix(b":")
            .is_some_and(|digits| is_number(digits, port)),
    })
}

/// Are these the digits of the number, without a zero before them?
fn is_number(digits: &[u8], number: u16) -> bool {
    let is_short = digits
        .first()
        .is_some_and(|first| (b'1'..=b'9').contains(first));
    let text = std::str::from_utf8(digits).unwrap_or_default();
    is_short && text.parse() == Ok(number)
}

/// Returns the traits left out when responses have named these fields in `Vary`: those are sent, and
/// separate variants.
pub(crate) fn without_varied(
    head: RequestView<'_>,
    names: &[String],
    mut left_out: LeftOut,
) -> LeftOut {
    let is_sent = |name: &[u8]| {
        let named = names
            .iter()
            .find(|it| name.eq_ignore_ascii_case(it.as_bytes()));
        named.is_some_and(|named| varied::is_fit(head, named))
    };
    if is_sent(b"accept-language") {
        left_out.set(Trait::Language, 0);
    }
    if left_out.value(Trait::Hints) == 0 {
        return left_out;
    }
    left_out.set(Trait::Hints, 0);
    for (name, value) in head.fields().filter(|(name, _)| !is_sent(name)) {
        match meaning(name) {
            Meaning::Accept => put_accept(value, &mut left_out),
            Meaning::Hint => put_hint(name, value, &mut left_out),
            _ => {}
        }
    }
    left_out
}

fn put_accept(value: &[u8], left_out: &mut LeftOut) {
    if value != media::ACCEPT.as_bytes() && value != b"*/*" {
        left_out.add(Trait::Hints, value);
    }
}

fn put_hint(name: &[u8], value: &[u8], left_out: &mut LeftOut) {
    left_out.add(Trait::Hints, name);
    match name.to_ascii_lowercase().as_slice() {
        // The state of the client's network is another one each time.
        b"downlink" | b"rtt" => {}
        // Windows have any width. Layouts change at few of them.
        b"viewport-width" | b"width" => {
            let hundreds = value.trim_ascii().len().saturating_sub(2);
            let hundreds = value.trim_ascii().get(..hundreds);
            left_out.add(Trait::Hints, hundreds.unwrap_or_default());
        }
        _ => left_out.add(Trait::Hints, value),
    }
}

enum Meaning {
    /// No trait: the field is about the connection, the cache, the form of the transfer, or the way that
    /// the request came by. `Cookie` is judged elsewhere.
    None,
    Host,
    UserAgent,
    Accept,
    Language,
    Referer,
    /// The client's description of itself, in few words that browsers of one kind all send alike.
    Hint,
    /// The client's address, as a proxy or the client itself names it.
    Address,
    Goes(Bypass),
}

/// The longest name in [`named`], rounded up.
const MAX_NAME_BYTES: usize = 48;

#[inline]
fn meaning(name: &[u8]) -> Meaning {
    let mut lower = [0; MAX_NAME_BYTES];
    let len = name.len().min(MAX_NAME_BYTES);
    for (to, from) in lower.iter_mut().zip(name) {
        // Folds a name like CGI: `X_Api_Key` and `X-Api-Key` are one.
        *to = match *from {
            b'_' => b'-',
            byte => byte.to_ascii_lowercase(),
        };
    }
    let start = lower.get(..len).unwrap_or_default();
    match start {
        b"connection" | b"accept-encoding" | b"cookie" | b"cache-control" => Meaning::None,
        b"host" => Meaning::Host,
        b"user-agent" => Meaning::UserAgent,
        b"accept" => Meaning::Accept,
        b"accept-language" => Meaning::Language,
        b"referer" => Meaning::Referer,
        _ if begins_like_identity(start) => Meaning::Goes(Bypass::Credentials),
        _ if len < name.len() => Meaning::Goes(Bypass::Field),
        _ if is_immaterial(start) => Meaning::None,
        _ if is_address(start) => Meaning::Address,
        _ if is_hint(start) => Meaning::Hint,
        _ => Meaning::Goes(named(start).unwrap_or(Bypass::Field)),
    }
}

/// Names of fields that say nothing of a page, lower case.
fn is_immaterial(name: &[u8]) -> bool {
    matches!(
        name,
        b"content-length"
            | b"content-type"
            | b"early-data"
            | b"if-match"
            | b"if-modified-since"
            | b"if-none-match"
            | b"if-range"
            | b"if-unmodified-since"
            | b"keep-alive"
            | b"max-forwards"
            | b"pragma"
            | b"priority"
            | b"proxy-connection"
            | b"range"
            | b"te"
            | b"trailer"
            | b"upgrade-insecure-requests"
            | b"via"
            // They name a version, which goes along with the User-Agent, and change with each browser.
            | b"sec-ch-ua"
            | b"sec-ch-ua-full-version"
            | b"sec-ch-ua-full-version-list"
            | b"sec-ch-ua-platform-version"
            // Proxies in front add them, and clients invent them: an application that would believe
            // them is sent none.
            | b"cdn-loop"
            | b"cf-ray"
            | b"cf-visitor"
            | b"cf-warp-tag-id"
            | b"forwarded"
            | b"front-end-https"
            | b"x-amzn-trace-id"
            | b"x-cloud-trace-context"
            | b"x-correlation-id"
            | b"x-forwarded"
            | b"x-forwarded-for"
            | b"x-forwarded-host"
            | b"x-forwarded-port"
            | b"x-forwarded-prefix"
            | b"x-forwarded-proto"
            | b"x-forwarded-protocol"
            | b"x-forwarded-scheme"
            | b"x-forwarded-server"
            | b"x-forwarded-ssl"
            | b"x-host"
            | b"x-request-id"
            | b"x-request-start"
            | b"x-url-scheme"
            | b"traceparent"
            | b"tracestate"
            | b"baggage"
            | b"surrogate-capability"
    )
}

/// Names of fields in which proxies name the client's address, lower case. An application that shapes its pages by
/// addresses may read them.
fn is_address(name: &[u8]) -> bool {
    matches!(
        name,
        b"cf-connecting-ip"
            | b"client-ip"
            | b"fastly-client-ip"
            | b"true-client-ip"
            | b"x-client-ip"
            | b"x-cluster-client-ip"
            | b"x-real-ip"
    )
}

/// Is it the name of a field with the client's address, in any spelling?
pub(crate) fn is_address_field(name: &[u8]) -> bool {
    matches!(meaning(name), Meaning::Address)
}

/// Is it the name of a field by which a client describes itself, in any spelling?
pub(crate) fn is_hint_field(name: &[u8]) -> bool {
    is_hint(&name.to_ascii_lowercase())
}

/// Names of fields by which clients describe themselves, lower case.
fn is_hint(name: &[u8]) -> bool {
    matches!(
        name,
        b"accept-charset"
            | b"cf-ipcountry"
            // Browsers send these to sites that ask for them (Accept-CH).
            | b"device-memory"
            | b"downlink"
            | b"dpr"
            | b"ect"
            | b"rtt"
            | b"viewport-width"
            | b"width"
            | b"dnt"
            | b"from"
            | b"origin"
            | b"purpose"
            | b"save-data"
            | b"x-moz"
            | b"x-purpose"
    ) || name.starts_with(b"sec-")
}

/// Whole names, lower case.
fn named(name: &[u8]) -> Option<Bypass> {
    Some(match name {
        // RFC 9110 §11.6.2, RFC 9440, and fields that services and frameworks use in their place.
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
        Ok(examine(parse_head(text, &limits).unwrap().view(), (b"a", None))?.0)
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
            ("CF-IPCountry: DE\r\n", Ok(Class::Desktop)),
            ("X-Invented-Tomorrow: 1\r\n", Err(Bypass::Field)),
            ("X-Tenant: acme\r\n", Err(Bypass::Field)),
            ("Sec-Fetch-Mode: navigate\r\nDNT: 1\r\n", Ok(Class::Desktop)),
            // PHP is sent both values, and answers neither language's visitors.
            (
                "Accept-Language: en\r\nAccept-Language: de\r\n",
                Err(Bypass::Field),
            ),
            ("Referer: x\r\nReferer: y\r\n", Err(Bypass::Field)),
            ("User-Agent: x\r\nUser_Agent: y\r\n", Err(Bypass::Field)),
            (
                "X-Longer-Than-Any-Name-That-Could-Be-Known-Here-Or-Elsewhere: 1\r\n",
                Err(Bypass::Field),
            ),
            (
                "X-Goog-Authenticated-User-Email-And-More-Of-It: a\r\n",
                Err(Bypass::Credentials),
            ),
        ] {
            assert_eq!(examined(fields), wanted, "{fields}");
        }
    }

    #[test]
    fn a_host_is_plain_in_one_spelling() {
        for (field, port, is_wanted) in [
            ("a", None, true),
            ("a:80", Some(80), true),
            ("a:65535", Some(65535), true),
            ("A", None, false),
            ("a.", None, false),
            ("a:", None, false),
            ("a:080", Some(80), false),
            ("a:+80", Some(80), false),
            ("a:81", Some(80), false),
            ("a", Some(80), false),
            ("ab", None, false),
        ] {
            assert_eq!(
                is_plain(field.as_bytes(), (b"a", port)),
                is_wanted,
                "{field}"
            );
        }
    }

    #[test]
    fn the_shared_request_leaves_out_what_the_application_could_read() {
        let left_out = |fields: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
            let head = parse_head(text, &HeadLimits::default()).unwrap();
            examine(head.view(), (b"a", None)).unwrap().1
        };
        let own = format!("User-Agent: {}\r\n", Class::Mobile.user_agent());
        for fields in [
            "",
            "Accept-Encoding: gzip\r\nCache-Control: no-cache\r\nIf-None-Match: \"a\"\r\n",
            "Accept: */*\r\nUpgrade-Insecure-Requests: 1\r\n",
            "X-Forwarded-Host: evil\r\nForwarded: for=1.1.1.1\r\n",
            &own,
        ] {
            assert!(left_out(fields).is_nothing(), "{fields}");
        }
        for (fields, named) in [
            ("Accept-Language: de\r\n", Trait::Language),
            ("User-Agent: curl/8.0\r\n", Trait::Agent),
            ("Referer: http://a/\r\n", Trait::Referer),
            ("Accept: text/html\r\n", Trait::Hints),
            ("Sec-Fetch-Dest: document\r\n", Trait::Hints),
            ("Save-Data: on\r\n", Trait::Hints),
            ("DPR: 2\r\n", Trait::Hints),
            ("Accept-Charset: utf-8\r\n", Trait::Hints),
            ("CF-Connecting-IP: 203.0.113.9\r\n", Trait::Network),
            ("True-Client-IP: 203.0.113.9\r\n", Trait::Network),
            ("X-Real-IP: unknown\r\n", Trait::Network),
        ] {
            assert_eq!(
                left_out(fields).traits().iter().collect::<Vec<_>>(),
                [named],
                "{fields}"
            );
        }
        let varied = |names: &[&str], fields: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
            let head = parse_head(text, &HeadLimits::default()).unwrap();
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            without_varied(head.view(), &names, left_out(fields))
        };
        for (names, fields, rest) in [
            (&["accept-language"][..], "Accept-Language: de\r\n", ""),
            (&["accept"], "Accept: text/html\r\nDNT: 1\r\n", "DNT: 1\r\n"),
            (
                &["origin", "save-data"],
                "Save-Data: on\r\nOrigin: http://b\r\n",
                "",
            ),
            // It is not sent, though it was named.
            (&["dnt", "x-tenant"], "DNT: 1\r\n", "DNT: 1\r\n"),
            (
                &["accept-language"],
                "Accept-Language: \r\n",
                "Accept-Language: \r\n",
            ),
        ] {
            assert_eq!(varied(names, fields), left_out(rest), "{fields}");
        }
        for (one, other, are_alike) in [
            ("Viewport-Width: 1280", "Viewport-Width: 1299", true),
            ("Viewport-Width: 1280", "Viewport-Width: 390", false),
            ("RTT: 50", "RTT: 100", true),
            ("DPR: 1", "DPR: 2", false),
        ] {
            let [one, other] = [one, other].map(|line| left_out(&format!("{line}\r\n")));
            assert_eq!(one == other, are_alike, "{one:?} {other:?}");
        }
        assert_eq!(
            left_out("Accept-Language: de-AT, de;q=0.9\r\n"),
            left_out("Accept-Language: DE-at,de;q=0.8\r\n")
        );
    }
}
