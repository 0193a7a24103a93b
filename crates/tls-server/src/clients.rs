//! Certificates of clients.
//!
//! The handshake demands a proof that the client has the certificate's key, and nothing else.
//! Whether the certificate is good is asked afterwards, on resumed sessions too, so that the
//! client gets a response.

use std::sync::Arc;

use certificate_chain::{ChainVerifier, Purpose, Trust, TrustError, VerifyFault, Version1};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};

use crate::error::SettingsError;
use crate::settings::{ClientMode, Clients, PemFile};

/// The verdict on a client's certificate: `$ssl_client_verify`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientVerdict {
    /// The client has shown none, or was not asked.
    NoCertificate,
    Verified,
    Failed(VerifyFault),
}

impl std::fmt::Display for ClientVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientVerdict::NoCertificate => f.write_str("NONE"),
            ClientVerdict::Verified => f.write_str("SUCCESS"),
            ClientVerdict::Failed(fault) => write!(f, "FAILED:{}", fault.words()),
        }
    }
}

/// Why requests on a connection are refused, with nginx's numbers for `error_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 495: the certificate is bad.
    BadCertificate,
    /// 496: the client has sent no certificate.
    NoCertificate,
}

/// Verifies the chains of certificates that clients have shown.
#[derive(Debug)]
pub(crate) struct ClientChainVerifier {
    mode: ClientMode,
    /// There where at least one authority is known.
    chain: Option<ChainVerifier>,
}

impl ClientChainVerifier {
    pub(crate) fn new(clients: &Clients) -> Result<ClientChainVerifier, SettingsError> {
        let files = [&clients.named_authorities, &clients.other_authorities];
        let mut trusted_pem = Vec::new();
        for file in files.into_iter().flatten() {
            // Each by itself, so that the message names the right one.
            verifier_of(clients, file, &file.pem)?;
            trusted_pem.extend_from_slice(&file.pem);
            trusted_pem.push(b'\n');
        }
        let first = files.into_iter().flatten().next();
        let chain = first.map(|file| verifier_of(clients, file, &trusted_pem));
        Ok(ClientChainVerifier {
            mode: clients.mode,
            chain: chain.transpose()?,
        })
    }

    pub(crate) fn verdict(
        &self,
        chain: Option<&[CertificateDer<'_>]>,
        now: UnixTime,
    ) -> ClientVerdict {
        let Some((certificate, intermediates)) = chain.and_then(<[_]>::split_first) else {
            return ClientVerdict::NoCertificate;
        };
        let found = match &self.chain {
            Some(verifier) => verifier.verify(certificate, intermediates, now),
            None => Err(VerifyFault::UnknownIssuer),
        };
        match found {
            Ok(()) => ClientVerdict::Verified,
            Err(fault) => ClientVerdict::Failed(fault),
        }
    }

    pub(crate) fn refusal(&self, verdict: &ClientVerdict) -> Option<Refusal> {
        match (verdict, self.mode) {
            (ClientVerdict::NoCertificate, ClientMode::Required) => Some(Refusal::NoCertificate),
            (ClientVerdict::NoCertificate | ClientVerdict::Verified, _) => None,
            (ClientVerdict::Failed(fault), ClientMode::OptionalWithoutAuthority)
                if says_nobody_known_signed(fault) =>
            {
                None
            }
            (ClientVerdict::Failed(_), _) => Some(Refusal::BadCertificate),
        }
    }
}

/// The faults that `optional_no_ca` forgives.
fn says_nobody_known_signed(fault: &VerifyFault) -> bool {
    matches!(fault, VerifyFault::SelfSigned | VerifyFault::UnknownIssuer)
}

fn verifier_of(
    clients: &Clients,
    file: &PemFile,
    trusted_pem: &[u8],
) -> Result<ChainVerifier, SettingsError> {
    let trust = Trust {
        trusted_pem,
        crl_pem: clients.crl.as_ref().map(|crl| crl.pem.as_slice()),
        depth: clients.depth,
        purpose: Purpose::Client,
    };
    ChainVerifier::new(trust).map_err(|error| match (error, &clients.crl) {
        (TrustError::Crl(why), Some(crl)) => SettingsError::Crl {
            file: crl.name.clone(),
            why,
        },
        (TrustError::Trusted(why) | TrustError::Crl(why), _) => SettingsError::Authorities {
            file: file.name.clone(),
            why,
        },
    })
}

/// Asks for certificates in the handshake, and has clients prove that they have the keys.
#[derive(Debug)]
pub(crate) struct PossessionVerifier {
    provider: Arc<CryptoProvider>,
    /// The names of `ssl_client_certificate`.
    hints: Vec<DistinguishedName>,
}

impl PossessionVerifier {
    pub(crate) fn new(
        clients: &Clients,
        provider: Arc<CryptoProvider>,
    ) -> Result<PossessionVerifier, SettingsError> {
        let hints = match &clients.named_authorities {
            Some(file) => verifier_of(clients, file, &file.pem)?
                .subjects()
                .map(DistinguishedName::in_sequence)
                .collect(),
            None => Vec::new(),
        };
        Ok(PossessionVerifier { provider, hints })
    }
}

impl ClientCertVerifier for PossessionVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match Version1::of(certificate) {
            Some(old) => old
                .verify_handshake(message, signature, algorithms, false)
                .map(|()| HandshakeSignatureValid::assertion()),
            None => verify_tls12_signature(message, certificate, signature, algorithms),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match Version1::of(certificate) {
            Some(old) => old
                .verify_handshake(message, signature, algorithms, true)
                .map(|()| HandshakeSignatureValid::assertion()),
            None => verify_tls13_signature(message, certificate, signature, algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
