//! The settings of `acme_*`: issuers, and certificates that Mayfly gets and renews by itself.

use std::path::PathBuf;

/// All issuers and all certificates that they are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acme {
    pub issuers: Vec<AcmeIssuer>,
    pub certificates: Vec<AcmeCertificate>,
}

/// An `acme_issuer` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeIssuer {
    pub name: String,
    /// `uri`: the URL of the directory.
    pub uri: String,
    /// `contact`: URLs.
    pub contacts: Vec<String>,
    /// `account_key FILE`; otherwise a key is generated.
    pub account_key: Option<PathBuf>,
    /// `external_account_key`
    pub external_account: Option<AcmeExternalAccount>,
    /// `accept_terms_of_service`
    pub accepts_terms: bool,
    /// `challenge`
    pub challenge: AcmeChallenge,
    /// `profile`: the name, and whether it is required.
    pub profile: Option<(String, bool)>,
    /// `ssl_trusted_certificate`
    pub trusted: Option<PathBuf>,
    /// `state_path`; `None` keeps everything in memory.
    pub state_path: Option<PathBuf>,
}

/// `external_account_key KID FILE | data:KEY`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeExternalAccount {
    pub key_id: String,
    pub key: AcmeExternalKey,
}

/// The key as it is, or where it is; in base64url.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcmeExternalKey {
    Data(String),
    File(PathBuf),
}

/// How an issuer is shown that a name belongs to this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcmeChallenge {
    Http01,
    TlsAlpn01,
    /// By a command that sets records of the domain.
    Dns01 {
        command: PathBuf,
    },
}

/// `acme_certificate` of some server. Servers that say the same share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeCertificate {
    /// An index into [`Acme::issuers`].
    pub issuer: usize,
    pub names: Vec<String>,
    pub key: AcmeKeyType,
    /// The beginning of file names in the issuer's folder.
    pub file_stem: String,
    /// The name by which servers know chain and key. There is a file of this name unless the issuer
    /// keeps everything in memory.
    pub file: PathBuf,
}

/// `key=` of `acme_certificate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcmeKeyType {
    EcdsaP256,
    EcdsaP384,
    EcdsaP521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

impl Acme {
    /// Does some issuer look for files on port 80?
    pub fn uses_http_challenge(&self) -> bool {
        let mut issuers = self.issuers.iter();
        issuers.any(|issuer| issuer.challenge == AcmeChallenge::Http01)
    }
}
