//! The content of a certificate, in OpenSSL's forms.

use std::fmt::Write;

use x509_cert::Certificate;
use x509_cert::der::asn1::{Any, BmpString, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::{Decode, Encode, Tag, Tagged};
use x509_cert::name::{Name, RdnSequence};
use x509_cert::time::Time;

/// A certificate's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name in the form of RFC 2253: `CN=who,O=where`.
    pub subject: String,
    pub issuer: String,
    /// The old form: `/O=where/CN=who`.
    pub subject_legacy: String,
    pub issuer_legacy: String,
    /// The number in hexadecimal.
    pub serial: String,
    pub not_before: Moment,
    pub not_after: Moment,
}

/// A time that a certificate names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970.
    pub seconds: u64,
    /// `Jan  2 03:04:05 2026 GMT`
    pub text: String,
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// OpenSSL's short names for the parts of a name.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.97", "organizationIdentifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

impl Description {
    /// Reads a DER certificate; `None` if it does not parse.
    pub fn of(certificate: &[u8]) -> Option<Description> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let fields = certificate.tbs_certificate();
        let serial = fields.serial_number().as_bytes();
        // A zero in front means only that the number is positive.
        let serial = match serial {
            [0, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        Some(Description {
            subject: rfc2253(fields.subject()),
            issuer: rfc2253(fields.issuer()),
            subject_legacy: legacy(fields.subject()),
            issuer_legacy: legacy(fields.issuer()),
            serial: hexadecimal(serial),
            not_before: moment(&fields.validity().not_before),
            not_after: moment(&fields.validity().not_after),
        })
    }
}

/// Is this key, a `SubjectPublicKeyInfo` in DER (RFC 5280 §4.1.2.7), that of a DER certificate of
/// any version? `None` if it is no certificate.
///
/// rustls' own comparison reads certificates of version 3 alone. OpenSSL makes version 1 with the
/// shortest of configurations.
pub fn has_key(certificate: &[u8], key: &[u8]) -> Option<bool> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let own = certificate.tbs_certificate().subject_public_key_info();
    Some(own.to_der().ok()? == key)
}

fn moment(time: &Time) -> Moment {
    let date = time.to_date_time();
    let month = MONTHS.get(usize::from(date.month()).saturating_sub(1));
    Moment {
        seconds: date.unix_duration().as_secs(),
        text: format!(
            "{} {:2} {:02}:{:02}:{:02} {} GMT",
            month.copied().unwrap_or_default(),
            date.day(),
            date.hour(),
            date.minutes(),
            date.seconds(),
            date.year(),
        ),
    }
}

/// The last part first.
fn rfc2253(name: &Name) -> String {
    let rdns: &RdnSequence = name.as_ref();
    let mut rdns: Vec<String> = rdns
        .iter()
        .map(|rdn| {
            let parts = rdn.iter().map(|part| {
                let value = match (short_name(&part.oid.to_string()), text(&part.value)) {
                    (Some(_), Some(text)) => escaped(&text),
                    // The DER bytes in hexadecimal (RFC 4514 §2.4).
                    _ => format!("#{}", hexadecimal(&part.value.to_der().unwrap_or_default())),
                };
                format!("{}={value}", type_name(&part.oid.to_string()))
            });
            parts.collect::<Vec<_>>().join("+")
        })
        .collect();
    rdns.reverse();
    rdns.join(",")
}

fn legacy(name: &Name) -> String {
    let rdns: &RdnSequence = name.as_ref();
    let mut out = String::new();
    for part in rdns.iter().flat_map(|rdn| rdn.iter()) {
        let _ = write!(out, "/{}=", type_name(&part.oid.to_string()));
        let bytes = match text(&part.value) {
            Some(text) => text.into_bytes(),
            None => part.value.value().to_vec(),
        };
        for byte in bytes {
            match byte {
                b' '..=b'~' => out.push(char::from(byte)),
                other => {
                    let _ = write!(out, "\\x{other:02X}");
                }
            }
        }
    }
    out
}

fn short_name(oid: &str) -> Option<&'static str> {
    let found = SHORT_NAMES.iter().find(|(known, _)| *known == oid);
    found.map(|(_, name)| *name)
}

fn type_name(oid: &str) -> &str {
    short_name(oid).unwrap_or(oid)
}

/// The text of a value, whatever kind of string it is.
fn text(value: &Any) -> Option<String> {
    match value.tag() {
        Tag::BmpString => {
            let units = value.decode_as::<BmpString>().ok()?;
            Some(units.to_string())
        }
        Tag::Utf8String => {
            let text = value.decode_as::<Utf8StringRef<'_>>().ok()?;
            Some(text.as_str().to_owned())
        }
        Tag::PrintableString => {
            let text = value.decode_as::<PrintableStringRef<'_>>().ok()?;
            Some(text.as_str().to_owned())
        }
        Tag::TeletexString => {
            let text = value.decode_as::<TeletexStringRef<'_>>().ok()?;
            Some(text.as_str().to_owned())
        }
        Tag::Ia5String => std::str::from_utf8(value.value()).ok().map(str::to_owned),
        _ => None,
    }
}

/// Escapes characters that RFC 2253 gives a meaning, and those that are not printable ASCII.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.len().saturating_sub(1);
    for (at, byte) in text.bytes().enumerate() {
        let is_edge_space = byte == b' ' && (at == 0 || at == last);
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'#' if at == 0 => out.push_str("\\#"),
            b' ' if is_edge_space => out.push_str("\\ "),
            b' '..=b'~' => out.push(char::from(byte)),
            other => {
                let _ = write!(out, "\\{other:02X}");
            }
        }
    }
    out
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(out, "{byte:02X}");
    }
    out
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SerialNumber};

    use super::*;

    fn certificate(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::new([]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 2);
        params.not_after = rcgen::date_time_ymd(2049, 12, 31);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn fields_have_the_form_that_openssl_gives_them() {
        let der = certificate(|params| {
            let mut name = DistinguishedName::new();
            name.push(DnType::CountryName, "DE");
            name.push(DnType::OrganizationName, "A, B; \"C\" & Söhne ");
            name.push(DnType::CommonName, "#who");
            params.distinguished_name = name;
            params.serial_number = Some(SerialNumber::from(vec![0x80, 0x0a]));
        });
        let found = Description::of(&der).unwrap();
        let expected = "CN=\\#who,O=A\\, B\\; \\\"C\\\" & S\\C3\\B6hne\\ ,C=DE";
        assert_eq!(found.subject, expected);
        assert_eq!(found.issuer, expected);
        let expected = "/C=DE/O=A, B; \"C\" & S\\xC3\\xB6hne /CN=#who";
        assert_eq!(found.subject_legacy, expected);
        assert_eq!(found.serial, "800A");
        assert_eq!(found.not_before.text, "Jan  2 00:00:00 2026 GMT");
        assert_eq!(found.not_before.seconds, 1_767_312_000);
        assert_eq!(found.not_after.text, "Dec 31 00:00:00 2049 GMT");
    }

    #[test]
    fn what_is_no_certificate_has_no_description() {
        let der = certificate(|_| {});
        assert!(Description::of(&der).is_some());
        for end in 0..der.len() {
            assert_eq!(Description::of(&der[..end]), None, "{end}");
        }
    }
}
