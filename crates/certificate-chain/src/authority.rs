//! Which trusted certificates may sign others (RFC 5280 §4.2.1.9). webpki takes each that is trusted for an
//! authority: a client whose own certificate is trusted could then sign one with any name.

use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage};

/// May this certificate, in DER, sign others? Those of version 1 say nothing of it, and were made for it.
pub(crate) fn may_sign(certificate: &[u8]) -> bool {
    let Ok(certificate) = Certificate::from_der(certificate) else {
        return false;
    };
    let content = certificate.tbs_certificate();
    match content.get_extension::<BasicConstraints>() {
        Ok(Some((_, constraints))) => constraints.ca,
        Ok(None) if content.version() == Version::V1 => true,
        Ok(None) => {
            matches!(content.get_extension::<KeyUsage>(), Ok(Some((_, usage))) if usage.key_cert_sign())
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, UnixTime};
    use std::time::Duration;

    use crate::{ChainVerifier, Purpose, Trust, VerifyFault};

    // Made by `openssl x509 -req`: an authority, an end that it has signed, and an old certificate (version 1) by each.
    const AUTHORITY: &str = include_str!("testdata/authority.pem");
    const END: &str = include_str!("testdata/end.pem");
    const OLD_BY_AUTHORITY: &str = include_str!("testdata/old_by_authority.pem");
    const OLD_BY_END: &str = include_str!("testdata/old_by_end.pem");
    const NEW_BY_END: &str = include_str!("testdata/new_by_end.pem");
    const NOW: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));

    fn verify(trusted: &str, certificate: &str) -> Result<(), VerifyFault> {
        let verifier = ChainVerifier::new(Trust {
            trusted_pem: trusted.as_bytes(),
            crl_pem: None,
            depth: 1,
            purpose: Purpose::Client,
        });
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        verifier.unwrap().verify(&certificate, &[], NOW)
    }

    #[test]
    fn an_authority_signs_certificates_of_both_versions() {
        assert_eq!(verify(AUTHORITY, END), Ok(()));
        assert_eq!(verify(AUTHORITY, OLD_BY_AUTHORITY), Ok(()));
        assert_eq!(verify(OLD_BY_AUTHORITY, OLD_BY_AUTHORITY), Ok(()));
        assert!(verify(AUTHORITY, OLD_BY_END).is_err());
    }

    #[test]
    fn a_certificate_that_is_trusted_itself_signs_no_other() {
        assert_eq!(verify(END, END), Ok(()));
        for signed in [OLD_BY_END, NEW_BY_END] {
            assert!(verify(END, signed).is_err());
        }
    }
}
