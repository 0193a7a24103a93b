//! An issuer with the parts that its certificates share: the account, which is made at first use,
//! and the folder.
//!
//! `account.key` is written before the account is registered, so that a program that stops in
//! between finds the account again by its key (RFC 8555 §7.3.1). `account.url` records the URLs of
//! the account and of the issuer's directory.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use instant_acme::{Account, ExternalAccountKey, Key, NewAccount};
use outgoing::OutgoingError;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::sync::Mutex;

use crate::client::Client;
use crate::failure::Failure;
use crate::settings::{AccountKey, Issuer};
use crate::store::Store;

const KEY_FILE: &str = "account.key";
const URL_FILE: &str = "account.url";

/// An issuer, its account and its folder. Certificates of the same issuer share one.
pub struct Authority {
    pub(crate) issuer: Issuer,
    pub(crate) store: Arc<Store>,
    pub(crate) client: Client,
    account: Mutex<Option<Account>>,
}

impl Authority {
    /// # Errors
    /// The certificates that the issuer's own is verified with cannot be used.
    pub fn new(issuer: Issuer, store: Arc<Store>) -> Result<Authority, OutgoingError> {
        let client = Client::new(issuer.trusted.as_deref())?;
        Ok(Authority {
            issuer,
            store,
            client,
            account: Mutex::new(None),
        })
    }

    /// The account. Registers one at first use.
    pub(crate) async fn account(&self) -> Result<Account, Failure> {
        let mut known = self.account.lock().await;
        if let Some(account) = &*known {
            return Ok(account.clone());
        }
        let account = match self.stored_account().await? {
            Some(account) => account,
            None => self.register().await?,
        };
        *known = Some(account.clone());
        Ok(account)
    }

    /// The issuer does not take this account any more: the next request is for another one.
    /// Keys that the operator gave stay.
    pub(crate) async fn forget_account(&self) {
        *self.account.lock().await = None;
        self.store.remove(URL_FILE);
        if self.issuer.account_key == AccountKey::Generated {
            self.store.remove(KEY_FILE);
        }
    }

    async fn stored_account(&self) -> Result<Option<Account>, Failure> {
        let text = self.store.read(URL_FILE);
        let text = text.and_then(|text| String::from_utf8(text).ok());
        let Some((url, directory)) = text
            .as_deref()
            .and_then(|text| text.trim().split_once('\n'))
        else {
            return Ok(None);
        };
        let Some(key) = self.key()? else {
            return Ok(None);
        };
        if directory != self.issuer.directory {
            return Ok(None);
        }
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let restored = builder.from_parts(url.to_owned(), key, directory.to_owned());
        Ok(Some(restored.await?))
    }

    /// The key of the account, if there is one.
    fn key(&self) -> Result<Option<PrivatePkcs8KeyDer<'static>>, Failure> {
        let pem = match &self.issuer.account_key {
            AccountKey::Given(pem) => pem.clone(),
            AccountKey::Generated => match self.store.read(KEY_FILE) {
                Some(pem) => pem,
                None => return Ok(None),
            },
        };
        match PrivateKeyDer::from_pem_slice(&pem) {
            Ok(PrivateKeyDer::Pkcs8(key)) => Ok(Some(key)),
            _ => Err(Failure::new(
                "the key of the account is not one of ECDSA with P-256 in the form PKCS #8",
            )),
        }
    }

    async fn register(&self) -> Result<Account, Failure> {
        let issuer = &self.issuer;
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let contacts: Vec<&str> = issuer.contacts.iter().map(String::as_str).collect();
        let binds = issuer.external_account.as_ref();
        // The library accepts a key of ours only in a plain registration: terms accepted, no
        // external account.
        if binds.is_some() || !issuer.accepts_terms {
            let external = match binds {
                Some(external) => {
                    let key = BASE64_URL_SAFE_NO_PAD.decode(external.key.trim_end_matches('='));
                    let key = key.map_err(|_| {
                        Failure::new("the key of external_account_key is not base64url")
                    })?;
                    Some(ExternalAccountKey::new(external.key_id.clone(), &key))
                }
                None => None,
            };
            let wanted = NewAccount {
                contact: &contacts,
                terms_of_service_agreed: issuer.accepts_terms,
                only_return_existing: false,
            };
            let made = builder.create(&wanted, issuer.directory.clone(), external.as_ref());
            let (account, credentials) = made.await?;
            let pem = pem_of(credentials.private_key().secret_pkcs8_der());
            self.write(KEY_FILE, pem.as_bytes())?;
            self.write_url(&account)?;
            return Ok(account);
        }
        let der = match self.key()? {
            Some(der) => der,
            None => {
                let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
                let key = key.map_err(Failure::new)?;
                self.write(KEY_FILE, key.serialize_pem().as_bytes())?;
                PrivatePkcs8KeyDer::from(key.serialize_der())
            }
        };
        let key = Key::from_pkcs8_der(der.clone_key())?;
        let made =
            builder.create_from_key((key, PrivateKeyDer::Pkcs8(der)), issuer.directory.clone());
        let (account, _) = made.await?;
        if !contacts.is_empty() {
            account.update_contacts(&contacts).await?;
        }
        self.write_url(&account)?;
        Ok(account)
    }

    fn write_url(&self, account: &Account) -> Result<(), Failure> {
        let text = format!("{}\n{}\n", account.id(), self.issuer.directory);
        self.write(URL_FILE, text.as_bytes())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.store.write(name, bytes).map_err(Failure::new)
    }
}

fn pem_of(pkcs8: &[u8]) -> String {
    let text = base64::prelude::BASE64_STANDARD.encode(pkcs8);
    let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    pem
}
