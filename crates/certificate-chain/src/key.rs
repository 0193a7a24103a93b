//! Reads private keys, encrypted ones too.

use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::der::{Decode, SecretDocument};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The block of an encrypted key in PKCS #8.
const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// How OpenSSL before version 1.0 wrote encrypted keys.
const OLD_ENCRYPTED: &str = "Proc-Type: 4,ENCRYPTED";

/// The passwords for encrypted keys.
#[derive(Clone, Copy)]
pub struct Passwords<'a> {
    /// One in each line.
    pub lines: &'a [u8],
    /// The directive that names the file of passwords, for messages.
    pub directive: &'static str,
}

/// The reason why a key cannot be read. The caller names the file.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("no key found")]
    Missing,
    #[error(transparent)]
    Pem(PemError),
    #[error(transparent)]
    Der(#[from] pkcs8::der::Error),
    #[error("its encryption is too old; convert it with \"openssl pkcs8 -topk8\"")]
    OldEncryption,
    #[error("it is encrypted, and there is no password in \"{0}\"")]
    NoPassword(&'static str),
    #[error("no password of \"{0}\" fits")]
    OtherPassword(&'static str),
}

/// The key in a file of PEM blocks, decrypted with the first of the `passwords` that fits.
///
/// # Errors
///
/// There is no key, or it cannot be read.
pub fn read_key(pem: &[u8], passwords: Passwords<'_>) -> Result<PrivateKeyDer<'static>, KeyError> {
    let text = String::from_utf8_lossy(pem);
    if let Some(block) = encrypted_block(&text) {
        return decrypt(block, passwords);
    }
    if text.contains(OLD_ENCRYPTED) {
        return Err(KeyError::OldEncryption);
    }
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        PemError::NoItemsFound => KeyError::Missing,
        other => KeyError::Pem(other),
    })
}

/// Does it take a password to read the key?
pub fn is_encrypted_key(pem: &[u8]) -> bool {
    encrypted_block(&String::from_utf8_lossy(pem)).is_some()
}

fn encrypted_block(text: &str) -> Option<&str> {
    let rest = text.get(text.find(ENCRYPTED_BEGIN)?..)?;
    rest.get(..rest.find(ENCRYPTED_END)? + ENCRYPTED_END.len())
}

fn decrypt(block: &str, passwords: Passwords<'_>) -> Result<PrivateKeyDer<'static>, KeyError> {
    // Files of operators may have any line ends and widths.
    let block: Vec<&str> = block.lines().map(str::trim).collect();
    let (_, der) = SecretDocument::from_pem(&block.join("\n"))?;
    let encrypted = EncryptedPrivateKeyInfoRef::from_der(der.as_bytes())?;
    let directive = passwords.directive;
    let mut passwords = lines(passwords.lines).peekable();
    if passwords.peek().is_none() {
        return Err(KeyError::NoPassword(directive));
    }
    for password in passwords {
        if let Ok(key) = encrypted.decrypt(password) {
            return Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into());
        }
    }
    Err(KeyError::OtherPassword(directive))
}

/// The lines that say something.
fn lines(passwords: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = passwords.split(|byte| *byte == b'\n');
    let trimmed = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    trimmed.filter(|line| !line.is_empty())
}
