//! Certificates: what clients and upstreams present, as DER, and what files hold, as PEM.
#![no_main]

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use certificate_chain::{ChainVerifier, Description, Purpose, Trust, Validity, has_key};
use rustls::pki_types::{CertificateDer, UnixTime};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let description = Description::of(bytes);
    let _ = (Validity::of(bytes), has_key(bytes, bytes), description);
    let _ = verifier(bytes);
    // The first byte says where the other side's certificate ends and the next one begins.
    let Some((at, chain)) = bytes.split_first() else {
        return;
    };
    let (certificate, other) = chain.split_at(chain.len() * usize::from(*at) / 255);
    let other = CertificateDer::from(other);
    let certificate = CertificateDer::from(certificate);
    for trusted in [&other, &certificate] {
        let pem = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            STANDARD.encode(trusted)
        );
        if let Some(verifier) = verifier(pem.as_bytes()) {
            let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
            let _ = verifier.verify(&certificate, std::slice::from_ref(&other), now);
            verifier.subjects().for_each(drop);
        }
    }
});

fn verifier(pem: &[u8]) -> Option<ChainVerifier> {
    let trust = Trust {
        trusted_pem: pem,
        crl_pem: Some(pem),
        depth: 3,
        purpose: Purpose::Client,
    };
    ChainVerifier::new(Trust {
        crl_pem: None,
        ..trust
    })
    .or_else(|_| ChainVerifier::new(trust))
    .ok()
}
