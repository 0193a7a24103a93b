//! When a trusted certificate is valid.
//!
//! webpki checks this within a chain only. A certificate that is trusted as it stands has
//! none, and one made by `openssl req -x509` is marked as an authority, which webpki
//! refuses as a server's; so the two times are read here. The bytes are the operator's,
//! from `proxy_ssl_trusted_certificate`; nothing that a peer sent comes here.

use jiff::civil::{DateTime, date};

/// Seconds since 1970, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub not_before: u64,
    pub not_after: u64,
}

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `version [0] EXPLICIT`, absent from version 1.
const VERSION: u8 = 0xa0;

impl Validity {
    /// Reads it from a DER certificate (RFC 5280 §4.1).
    pub fn of(certificate: &[u8]) -> Option<Validity> {
        let (SEQUENCE, certificate, _) = element(certificate)? else {
            return None;
        };
        let (SEQUENCE, mut rest, _) = element(certificate)? else {
            return None;
        };
        if rest.first() == Some(&VERSION) {
            rest = element(rest)?.2;
        }
        // Serial number, signature algorithm, issuer.
        for _ in 0..3 {
            rest = element(rest)?.2;
        }
        let (SEQUENCE, times, _) = element(rest)? else {
            return None;
        };
        let (tag, not_before, rest) = element(times)?;
        let not_before = seconds(tag, not_before)?;
        let (tag, not_after, _) = element(rest)?;
        Some(Validity {
            not_before,
            not_after: seconds(tag, not_after)?,
        })
    }
}

/// Returns tag, content, and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short if short < 0x80 => (usize::from(short), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = bytes
                .iter()
                .fold(0, |length, &byte| length << 8 | usize::from(byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 §4.1.2.5).
fn seconds(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| {
        digits
            .iter()
            .fold(0, |number, digit| number * 10 + i16::from(digit - b'0'))
    };
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year = number(year);
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (number(year), rest)
        }
        _ => return None,
    };
    let (pairs, []) = rest.as_chunks::<2>() else {
        return None;
    };
    let &[month, day, hour, minute, second] = pairs else {
        return None;
    };
    let pair = |digits: [u8; 2]| i8::try_from(number(&digits)).ok();
    let time = DateTime::new(
        year,
        pair(month)?,
        pair(day)?,
        pair(hour)?,
        pair(minute)?,
        pair(second)?,
        0,
    );
    let since_1970 = time.ok()?.duration_since(date(1970, 1, 1).into());
    u64::try_from(since_1970.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229000000Z", Some(951_782_400)),
            (UTC_TIME, "000301000000Z", Some(951_868_800)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "7001010000Z", None),
            (UTC_TIME, "700101000000", None),
            (UTC_TIME, "701301000000Z", None),
            (UTC_TIME, "700230000000Z", None),
            (UTC_TIME, "700101240000Z", None),
            (UTC_TIME, "7001010000000Z", None),
            (GENERALIZED_TIME, "19690101000000Z", None),
            (4, "700101000000Z", None),
        ] {
            assert_eq!(seconds(tag, text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_cut_certificate_has_no_validity() {
        let mut params = rcgen::CertificateParams::new(["a".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(1975, 1, 1);
        params.not_after = rcgen::date_time_ymd(2050, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = certificate.der();
        let validity = Validity::of(der).expect("a whole one");
        assert_eq!(validity.not_before, 157_766_400);
        assert_eq!(validity.not_after, 2_524_608_000);
        for end in 0..der.len() {
            assert_eq!(Validity::of(&der[..end]), None, "{end}");
        }
    }
}
