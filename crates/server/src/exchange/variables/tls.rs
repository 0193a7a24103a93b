//! `$ssl_*`: the result of a connection's TLS handshake. Without TLS, none has a value.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use certificate_chain::Description;
use http_semantics::escape::{Escape, escape, hex_digits};
use rustls::ProtocolVersion;
use sha1::{Digest, Sha1};
use site::{Builtin as B, CipherSuite, KeyExchangeGroup};
use tls_server::openssl_names;
use transport::facts::TlsFacts;

use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::value::{put, put_number, put_unless_empty};
use crate::exchange::variable_table::Value::Received as Of;
use crate::exchange::variable_table::Variables;

const LINE_BYTES: usize = 64;
const SECONDS_OF_DAY: u64 = 24 * 60 * 60;

#[rustfmt::skip]
pub const VARIABLES: Variables = &[
    (B::SslAlpnProtocol, Of(|it, out| of_tls(it, out, put_alpn))),
    (B::SslCipher, Of(|it, out| of_tls(it, out, put_cipher))),
    (B::SslCiphers, Of(|it, out| of_tls(it, out, put_ciphers))),
    (B::SslClientCert, Of(|it, out| of_tls(it, out, put_indented))),
    (B::SslClientEscapedCert, Of(|it, out| of_tls(it, out, put_escaped))),
    (B::SslClientFingerprint, Of(|it, out| of_tls(it, out, put_fingerprint))),
    (B::SslClientIDn, Of(|it, out| of_client(it, out, |it, out| put_unless_empty(&it.issuer, out)))),
    (B::SslClientIDnLegacy, Of(|it, out| of_client(it, out, |it, out| put_unless_empty(&it.issuer_legacy, out)))),
    (B::SslClientRawCert, Of(|it, out| of_tls(it, out, put_pem))),
    (B::SslClientSDn, Of(|it, out| of_client(it, out, |it, out| put_unless_empty(&it.subject, out)))),
    (B::SslClientSDnLegacy, Of(|it, out| of_client(it, out, |it, out| put_unless_empty(&it.subject_legacy, out)))),
    (B::SslClientSerial, Of(|it, out| of_client(it, out, |it, out| put_unless_empty(&it.serial, out)))),
    (B::SslClientVEnd, Of(|it, out| of_client(it, out, |it, out| put_unless_empty(&it.not_after.text, out)))),
    (
        B::SslClientVRemain,
        Of(|it, out| { of_client(it, out, |it, out| { put_remaining_days(it, clock::wall_now(), out) }) }),
    ),
    (
        B::SslClientVStart,
        Of(|it, out| { of_client(it, out, |it, out| { put_unless_empty(&it.not_before.text, out) }) }),
    ),
    (
        B::SslClientVerify,
        Of(|it, out| { of_tls(it, out, |tls, out| { put(Some(tls.verdict.to_string().as_bytes()), out) }) }),
    ),
    (B::SslCurve, Of(|it, out| of_tls(it, out, put_curve))),
    (B::SslCurves, Of(|it, out| of_tls(it, out, put_curves))),
    (B::SslEarlyData, Of(|it, out| put(it.is_early().then_some(&b"1"[..]), out))),
    (B::SslProtocol, Of(|it, out| of_tls(it, out, put_protocol))),
    (
        B::SslServerName,
        Of(|it, out| { of_tls(it, out, |tls, out| { put(tls.server_name.as_deref().map(str::as_bytes), out) }) }),
    ),
    (B::SslSessionId, Of(|it, out| of_tls(it, out, put_session_id))),
    (
        B::SslSessionReused,
        Of(|it, out| { of_tls(it, out, |tls, out| { put(Some(if tls.is_resumed { b"r" } else { b"." }), out) }) }),
    ),
];

fn of_tls(
    received: &ReceivedRequest,
    out: &mut Vec<u8>,
    put: impl Fn(&TlsFacts, &mut Vec<u8>) -> bool,
) -> bool {
    let tls = received.connection().tls.as_deref();
    tls.is_some_and(|tls| put(tls, out))
}

/// Reads a value from the client's certificate.
fn of_client(
    received: &ReceivedRequest,
    out: &mut Vec<u8>,
    put: impl Fn(&Description, &mut Vec<u8>) -> bool,
) -> bool {
    of_tls(received, out, |tls, out| {
        let described = client_certificate(tls).and_then(Description::of);
        described.is_some_and(|described| put(&described, out))
    })
}

fn client_certificate(tls: &TlsFacts) -> Option<&[u8]> {
    tls.client_certificates.first().map(AsRef::as_ref)
}

fn put_alpn(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    put(tls.alpn.as_deref(), out)
}

fn put_protocol(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    let name: Option<&[u8]> = match tls.protocol {
        Some(ProtocolVersion::TLSv1_2) => Some(b"TLSv1.2"),
        Some(ProtocolVersion::TLSv1_3) => Some(b"TLSv1.3"),
        _ => None,
    };
    put(name, out)
}

fn put_cipher(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    let number = tls.cipher.map(|suite| u16::from(suite.suite()));
    let mut known = CipherSuite::ALL.into_iter();
    let found = known.find(|suite| Some(suite.iana_number()) == number);
    put(found.map(|suite| suite.openssl_name().as_bytes()), out)
}

fn put_curve(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    let number = tls.group.map(u16::from);
    let mut known = KeyExchangeGroup::ALL.into_iter();
    let found = known.find(|group| Some(group.iana_number()) == number);
    put(found.map(|group| group.openssl_name().as_bytes()), out)
}

/// Writes names; numbers for members without a name.
fn put_list(
    numbers: &[u16],
    name: impl Fn(u16) -> Option<&'static str>,
    out: &mut Vec<u8>,
) -> bool {
    let mut names = numbers.iter().map(|number| match name(*number) {
        Some(name) => name.to_owned(),
        None => format!("0x{number:04x}"),
    });
    let Some(first) = names.next() else {
        return false;
    };
    let list = names.fold(first, |list, name| list + ":" + &name);
    put(Some(list.as_bytes()), out)
}

fn put_ciphers(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    let offered = &tls.offered.cipher_suites;
    put_list(offered, openssl_names::cipher_suite, out)
}

fn put_curves(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    put_list(&tls.offered.groups, openssl_names::group, out)
}

fn put_session_id(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    let id = tls.session_id.as_bytes();
    out.extend(hex_digits(id));
    !id.is_empty()
}

/// The client's certificate in PEM format.
fn pem(tls: &TlsFacts) -> Option<String> {
    let text = STANDARD.encode(client_certificate(tls)?);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_BYTES));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    Some(pem)
}

fn put_pem(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    put(pem(tls).as_deref().map(str::as_bytes), out)
}

/// The certificate in the old form for a field of several lines: each but the first after a
/// tab.
fn put_indented(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    let indented = pem(tls).map(|pem| pem.trim_end().replace('\n', "\n\t"));
    put(indented.as_deref().map(str::as_bytes), out)
}

fn put_escaped(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    let pem = pem(tls);
    let escaped = pem
        .as_ref()
        .map(|pem| escape(pem.as_bytes(), Escape::Component));
    put(escaped.as_deref(), out)
}

fn put_fingerprint(tls: &TlsFacts, out: &mut Vec<u8>) -> bool {
    let Some(certificate) = client_certificate(tls) else {
        return false;
    };
    out.extend(hex_digits(&Sha1::digest(certificate)));
    true
}

fn put_remaining_days(client: &Description, now_ms: u64, out: &mut Vec<u8>) -> bool {
    let left = client.not_after.seconds.saturating_sub(now_ms / 1000);
    put_number(left / SECONDS_OF_DAY, out)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};
    use rustls::NamedGroup;
    use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    use tls_server::ClientVerdict;

    use super::*;

    fn facts(certificates: Vec<rustls::pki_types::CertificateDer<'static>>) -> TlsFacts {
        TlsFacts {
            protocol: Some(ProtocolVersion::TLSv1_3),
            cipher: Some(TLS13_AES_128_GCM_SHA256),
            group: Some(NamedGroup::secp256r1),
            server_name: Some("example.org".to_owned()),
            offered: Default::default(),
            session_id: Default::default(),
            alpn: Some(b"h2".to_vec()),
            is_resumed: false,
            client_certificates: certificates,
            verdict: ClientVerdict::NoCertificate,
        }
    }

    /// Returns the value that `put` appends, if there is one.
    fn value(tls: &TlsFacts, put: fn(&TlsFacts, &mut Vec<u8>) -> bool) -> Option<String> {
        let mut out = Vec::new();
        let has_value = put(tls, &mut out);
        assert!(has_value || out.is_empty());
        has_value.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_is_negotiated_is_called_as_what_is_offered() {
        for suite in CipherSuite::ALL {
            let name = openssl_names::cipher_suite(suite.iana_number());
            assert_eq!(name, Some(suite.openssl_name()));
        }
        for known in KeyExchangeGroup::ALL {
            assert_eq!(
                openssl_names::group(known.iana_number()),
                Some(known.openssl_name())
            );
        }
        assert_eq!(
            (
                openssl_names::cipher_suite(0x00ff),
                openssl_names::group(0x0a0a)
            ),
            (None, None)
        );
    }

    #[test]
    fn what_was_agreed_on_has_the_names_of_openssl() {
        let tls = facts(Vec::new());
        let found = |put| value(&tls, put);
        assert_eq!(found(put_protocol).as_deref(), Some("TLSv1.3"));
        assert_eq!(found(put_cipher).as_deref(), Some("TLS_AES_128_GCM_SHA256"));
        assert_eq!(found(put_curve).as_deref(), Some("prime256v1"));
        assert_eq!(found(put_alpn).as_deref(), Some("h2"));
    }

    #[test]
    fn without_a_certificate_there_is_nothing_to_show() {
        let tls = facts(Vec::new());
        for put in [put_pem, put_indented, put_escaped, put_fingerprint] {
            assert_eq!(value(&tls, put), None);
        }
    }

    #[test]
    fn a_certificate_is_shown_in_each_form() {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "who");
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let tls = facts(vec![certificate.der().clone()]);
        let expected = certificate.pem().replace('\r', "");
        assert_eq!(value(&tls, put_pem).as_deref(), Some(expected.as_str()));
        let indented = value(&tls, put_indented).unwrap();
        assert_eq!(indented.replace("\n\t", "\n"), expected.trim_end());
        assert!(indented.lines().skip(1).all(|line| line.starts_with('\t')));
        let escaped = value(&tls, put_escaped).unwrap();
        assert!(escaped.starts_with("-----BEGIN%20CERTIFICATE-----%0A"));
        let fingerprint = value(&tls, put_fingerprint).unwrap();
        assert_eq!(fingerprint.len(), 40);
        assert!(
            fingerprint
                .bytes()
                .all(|it| b"0123456789abcdef".contains(&it))
        );
        let described = Description::of(certificate.der()).unwrap();
        assert_eq!(described.subject, "CN=who");
        for (now_s, days) in [
            (described.not_after.seconds - 1, "0"),
            (described.not_after.seconds - 10 * SECONDS_OF_DAY, "10"),
            (described.not_after.seconds + 1, "0"),
        ] {
            let mut out = Vec::new();
            assert!(put_remaining_days(&described, now_s * 1000, &mut out));
            assert_eq!(out, days.as_bytes());
        }
    }
}
