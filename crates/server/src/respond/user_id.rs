//! `userid`: a cookie by which a client is known again
//! (<https://nginx.org/en/docs/http/ngx_http_userid_module.html>).
//!
//! An identifier has sixteen bytes: a number of the service, the time, a number of this process and
//! a sequence number. It is given out with the response, never stored with it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use site::{Builtin as B, LogLevel, UserIdExpires, UserIdSettings, UserIdVersion};
use transport::facts::LocalAddress;

use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::request_fields;
use crate::exchange::request_values::UserIds;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::log::error_log;

pub const VARIABLES: Variables = &[
    (
        B::UidGot,
        Of(|request, out| put_identifier(request, out, |ids| ids.got)),
    ),
    (
        B::UidSet,
        Of(|request, out| put_identifier(request, out, |ids| ids.given)),
    ),
];

/// An identifier in base64, without the padding in whose place a mark may stand.
const IDENTIFIER_TEXT_BYTES: usize = 22;
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// `userid_expires max`
const MAX_EXPIRES: &str = "; expires=Thu, 31-Dec-37 23:55:55 GMT";
/// The last second of 2037.
const LAST_SHORT_YEAR_END: i64 = 2_145_916_799;
/// The first sequence number of `userid on`, and its step.
const FIRST_SEQUENCE: u32 = 0x0303_0302;
const SEQUENCE_STEP: u32 = 0x100;

/// A number that separates the identifiers of this process from those of others.
static PROCESS: LazyLock<u32> = LazyLock::new(|| {
    let [a, b, c, d, ..] = server_base::random::bytes16();
    u32::from_ne_bytes([a, b, c, d])
});
/// How many identifiers were given out.
static GIVEN: AtomicU32 = AtomicU32::new(0);

type Identifier = [u8; 16];

/// Returns the identifiers of the request, found out once: `$uid_set` in a log line is the one that was
/// sent.
fn identifiers(request: &Request, settings: &UserIdSettings) -> UserIds {
    if let Some(known) = request.values.read(|values| values.user_ids) {
        return known;
    }
    let mut cookie = Vec::new();
    request_fields::put_cookie(request, &settings.name, &mut cookie);
    let got = parse(&cookie);
    if got.is_none() && !cookie.is_empty() {
        let mut shown = String::new();
        error_log::push_text(&cookie, &mut shown);
        let message = format_args!("client sent invalid userid cookie \"{shown}\"");
        error_log::request(request, LogLevel::Error, message);
    }
    let given = match (settings.version, got) {
        (None, _) => None,
        (Some(_), Some(got)) if !is_reset(request, settings, &got) => {
            let is_marked = settings
                .mark
                .is_none_or(|mark| cookie.get(IDENTIFIER_TEXT_BYTES..) == Some(&[mark, b'=']));
            (!is_marked).then_some(got)
        }
        (Some(version), _) => Some(new(request, settings, version)),
    };
    let ids = UserIds { got, given };
    request.values.write(|values| values.user_ids = Some(ids));
    ids
}

/// The identifier of a cookie. nginx knows none whose last part is zero.
fn parse(cookie: &[u8]) -> Option<Identifier> {
    let decoded = BASE64.decode(cookie.get(..IDENTIFIER_TEXT_BYTES)?).ok()?;
    let identifier = Identifier::try_from(decoded).ok()?;
    (identifier[12..] != [0; 4]).then_some(identifier)
}

/// Does `$uid_reset` say that the client gets another one?
fn is_reset(request: &Request, settings: &UserIdSettings, got: &Identifier) -> bool {
    let Some(reset) = &settings.reset else {
        return false;
    };
    let value = variable::evaluate(request, reset);
    if value == b"log" {
        let mut shown = String::new();
        error_log::push_text(&settings.name, &mut shown);
        let message = format_args!("userid cookie \"{shown}={}\" was reset", hexadecimal(got));
        error_log::request(request, LogLevel::Notice, message);
    }
    !matches!(value.as_slice(), b"" | b"0")
}

/// Version 1 has its numbers in the order of the machine, version 2 in that of the network.
fn new(request: &Request, settings: &UserIdSettings, version: UserIdVersion) -> Identifier {
    let seconds = (clock::wall(request.now()) / 1000) as u32;
    let numbers = [
        seconds,
        *PROCESS,
        sequence(GIVEN.fetch_add(1, Ordering::Relaxed)),
    ];
    let (service, numbers) = match version {
        UserIdVersion::One => (
            settings.service.unwrap_or(0).to_ne_bytes(),
            numbers.map(u32::to_ne_bytes),
        ),
        UserIdVersion::Two => (
            match settings.service {
                Some(service) => service.to_be_bytes(),
                None => of_address(&request.received.connection().local),
            },
            numbers.map(u32::to_be_bytes),
        ),
    };
    let [seconds, process, sequence] = numbers;
    let mut identifier = Identifier::default();
    let parts = [service, seconds, process, sequence];
    for (place, part) in identifier.chunks_exact_mut(4).zip(parts) {
        place.copy_from_slice(&part);
    }
    identifier
}

/// The sequence number of the identifier before which this many were given out. Beyond the last it begins
/// anew: two visitors of one second never have the same.
fn sequence(given: u32) -> u32 {
    const NUMBERS: u32 = (u32::MAX - FIRST_SEQUENCE) / SEQUENCE_STEP + 1;
    FIRST_SEQUENCE + given % NUMBERS * SEQUENCE_STEP
}

/// The end of the server's address.
fn of_address(local: &LocalAddress) -> [u8; 4] {
    match local {
        LocalAddress::Ip(address) => match address.ip() {
            std::net::IpAddr::V4(address) => address.octets(),
            std::net::IpAddr::V6(address) => {
                let [.., a, b, c, d] = address.octets();
                [a, b, c, d]
            }
        },
        LocalAddress::Unix(_) => [0; 4],
    }
}

/// Formats an identifier for logs: four numbers in the order of the machine.
fn hexadecimal(identifier: &Identifier) -> String {
    let words = identifier.chunks_exact(4).map(|word| {
        let word = word.try_into().unwrap_or_default();
        format!("{:08X}", u32::from_ne_bytes(word))
    });
    words.collect()
}

fn put_identifier(
    request: &Request,
    out: &mut Vec<u8>,
    which: fn(&UserIds) -> Option<Identifier>,
) -> bool {
    let Some(settings) = request.settings().headers.user_id.as_deref() else {
        return false;
    };
    let Some(identifier) = which(&identifiers(request, settings)) else {
        return false;
    };
    out.extend_from_slice(&settings.name);
    out.push(b'=');
    out.extend_from_slice(hexadecimal(&identifier).as_bytes());
    true
}

/// Adds the cookie to the response where the client needs one.
pub fn add(request: &Request, reply: &mut Reply, settings: &UserIdSettings) {
    if request.route.is_subrequest() {
        return;
    }
    let Some(identifier) = identifiers(request, settings).given else {
        return;
    };
    let now = i64::try_from(clock::wall(request.now()) / 1000).unwrap_or(0);
    let cookie = cookie(settings, &identifier, now);
    reply.head.fields.append("Set-Cookie", Bytes::from(cookie));
    if !settings.p3p.is_empty() {
        let policy = Bytes::copy_from_slice(&settings.p3p);
        reply.head.fields.append("P3P", policy);
    }
}

fn cookie(settings: &UserIdSettings, identifier: &Identifier, now: i64) -> Vec<u8> {
    let mut text = BASE64.encode(identifier).into_bytes();
    if let (Some(mark), Some(place)) = (settings.mark, text.get_mut(IDENTIFIER_TEXT_BYTES)) {
        *place = mark;
    }
    let expires = match settings.expires {
        UserIdExpires::Session => String::new(),
        UserIdExpires::Max => MAX_EXPIRES.to_owned(),
        UserIdExpires::After(time) => {
            let end = now.saturating_add(i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
            let end = jiff::Timestamp::from_second(end).unwrap_or(jiff::Timestamp::MAX);
            // Like in nginx, two digits of the year as long as they can be read.
            let format = match end.as_second() > LAST_SHORT_YEAR_END {
                false => "; expires=%a, %d-%b-%y %H:%M:%S GMT",
                true => "; expires=%a, %d-%b-%Y %H:%M:%S GMT",
            };
            end.strftime(format).to_string()
        }
    };
    let name = &settings.name[..];
    [name, b"=", &text, expires.as_bytes(), &settings.attributes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_that_follow_each_other_differ() {
        let last = (u32::MAX - FIRST_SEQUENCE) / SEQUENCE_STEP;
        for (given, expected) in [
            (0, FIRST_SEQUENCE),
            (1, FIRST_SEQUENCE + SEQUENCE_STEP),
            (last, FIRST_SEQUENCE + last * SEQUENCE_STEP),
            (last + 1, FIRST_SEQUENCE),
            (last + 2, FIRST_SEQUENCE + SEQUENCE_STEP),
        ] {
            assert_eq!(sequence(given), expected, "{given}");
        }
        assert!(sequence(u32::MAX) >= FIRST_SEQUENCE);
    }

    #[test]
    fn cookies_are_read_as_nginx_writes_them() {
        let identifier = Some(*b"\x7f\0\0\x01aaaabbbb\x03\x03\x03\x02");
        for (cookie, expected) in [
            (&b"fwAAAWFhYWFiYmJiAwMDAg=="[..], identifier),
            (b"fwAAAWFhYWFiYmJiAwMDAg", identifier),
            (b"fwAAAWFhYWFiYmJiAwMDAgt=", identifier),
            (b"fwAAAWFhYWFiYmJiAwMDA", None),
            (b"fwAAAWFhYWFiYmJiAAAAAA==", None),
            (b"fwAAAWFhYWFiYmJi!wMDAg==", None),
            (b"", None),
        ] {
            assert_eq!(parse(cookie), expected, "{cookie:?}");
        }
    }
}
