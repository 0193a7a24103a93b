//! The operator's settings for issuers and certificates.

use std::path::PathBuf;

/// An issuer of certificates, and its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// For messages.
    pub name: String,
    /// The URL of the directory (RFC 8555 §7.1.1).
    pub directory: String,
    /// URLs such as `mailto:admin@example.org`.
    pub contacts: Vec<String>,
    pub account_key: AccountKey,
    pub external_account: Option<ExternalAccount>,
    pub accepts_terms: bool,
    pub challenge: Challenge,
    pub profile: Option<Profile>,
    /// The authorities that verify the certificate of the issuer's server, as PEM; `None`: those of
    /// the system.
    pub trusted: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountKey {
    /// Made at first use, and kept in the store.
    Generated,
    /// A key of the operator's, as PEM (PKCS #8, ECDSA with P-256).
    Given(Vec<u8>),
}

/// The account that the operator has with the issuer already (RFC 8555 §7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    pub key_id: String,
    /// In base64url.
    pub key: String,
}

impl std::fmt::Debug for ExternalAccount {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.key_id)
    }
}

/// How it is shown that a name is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// A file on port 80 (RFC 8555 §8.3).
    Http01,
    /// A certificate on port 443 (RFC 8737).
    TlsAlpn01,
    /// A TXT record, set by a command (RFC 8555 §8.4). Only this one gets wildcards.
    Dns01 { command: PathBuf },
}

/// `profile NAME [require]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    /// Without it, an issuer that does not have the profile is asked for its usual certificate.
    pub is_required: bool,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Host names, wildcards, addresses.
    pub names: Vec<String>,
    pub key: KeyType,
    /// The names of its files in the store begin so.
    pub file_stem: String,
}

/// The kind of a certificate's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyType {
    EcdsaP256,
    EcdsaP384,
    EcdsaP521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}
