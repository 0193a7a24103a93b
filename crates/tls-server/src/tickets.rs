//! Session tickets: sessions that clients keep, encrypted by us.
//!
//! ```text
//! ticket = key's name (16 bytes) | salt (32 bytes) | AES-256-GCM(time | session)
//! ```
//!
//! The AES key is made of the secret, the salt and the server's context, so that none encrypts
//! two tickets, and that a ticket of one server is worthless to another. Random secrets are
//! replaced by themselves; those of files are the operator's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{digest, hmac, rand};
use parking_lot::RwLock;
use rustls::pki_types::UnixTime;
use rustls::server::ProducesTickets;

use crate::config::Context;

const NAME_BYTES: usize = 16;
const SALT_BYTES: usize = 32;
/// The files of nginx: a name and two keys of 32 or of 16 bytes.
const FILE_BYTES: [usize; 2] = [80, 48];
/// Random secrets are used for this time at least.
const MIN_PERIOD: Duration = Duration::from_secs(60 * 60);
/// The longest lifetime that may be sent to a client (RFC 8446 §4.6.1).
const MAX_HINT_SECONDS: u64 = 7 * 24 * 60 * 60;

/// The secrets that tickets are encrypted with.
pub struct TicketKeys {
    secrets: RwLock<Secrets>,
    /// How long a random secret encrypts; after as long again it is forgotten.
    period: Option<Duration>,
}

struct Secrets {
    /// The first one encrypts.
    all: Vec<Arc<Secret>>,
    /// When the next one is made, in seconds since 1970.
    next_at: u64,
}

struct Secret {
    name: [u8; NAME_BYTES],
    key: hmac::Key,
}

/// The bytes of a file are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 48 or 80 bytes")]
pub struct TicketKeysError;

impl TicketKeys {
    /// Random secrets for tickets that are accepted for `lifetime`.
    pub fn random(lifetime: Duration) -> TicketKeys {
        TicketKeys {
            secrets: RwLock::new(Secrets {
                all: Vec::new(),
                next_at: 0,
            }),
            period: Some(lifetime.max(MIN_PERIOD)),
        }
    }

    /// The secrets of files. The first encrypts; all decrypt.
    ///
    /// # Errors
    ///
    /// A file has the wrong size.
    pub fn of_files<'a>(
        files: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<TicketKeys, TicketKeysError> {
        let secret = |bytes| Secret::of_file(bytes).map(Arc::new);
        let all = files.into_iter().map(secret);
        Ok(TicketKeys {
            secrets: RwLock::new(Secrets {
                all: all.collect::<Result<_, _>>()?,
                next_at: u64::MAX,
            }),
            period: None,
        })
    }

    /// The secret that encrypts now.
    fn current(&self, now: u64) -> Option<Arc<Secret>> {
        {
            let secrets = self.secrets.read();
            if now < secrets.next_at {
                return secrets.all.first().cloned();
            }
        }
        let period = self.period?.as_secs();
        let mut secrets = self.secrets.write();
        if now >= secrets.next_at {
            // After a pause, the former one is too old as well.
            let is_recent = now < secrets.next_at.saturating_add(period);
            secrets.all.truncate(usize::from(is_recent));
            secrets.all.insert(0, Arc::new(Secret::random()?));
            secrets.next_at = now.saturating_add(period);
        }
        secrets.all.first().cloned()
    }

    fn named(&self, name: &[u8]) -> Option<Arc<Secret>> {
        let secrets = self.secrets.read();
        secrets.all.iter().find(|it| it.name == name).cloned()
    }
}

/// Secrets do not belong into logs.
impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").finish_non_exhaustive()
    }
}

impl Secret {
    fn random() -> Option<Secret> {
        let mut name = [0; NAME_BYTES];
        let mut key = [0; 32];
        rand::fill(&mut name).ok()?;
        rand::fill(&mut key).ok()?;
        Some(Secret {
            name,
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        })
    }

    fn of_file(bytes: &[u8]) -> Result<Secret, TicketKeysError> {
        let name = bytes.first_chunk().ok_or(TicketKeysError)?;
        if !FILE_BYTES.contains(&bytes.len()) {
            return Err(TicketKeysError);
        }
        let key = digest::digest(&digest::SHA256, bytes);
        Ok(Secret {
            name: *name,
            key: hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()),
        })
    }

    /// The key of one ticket.
    fn ticket_key(&self, salt: &[u8], context: &Context) -> Option<LessSafeKey> {
        let mut hmac = hmac::Context::with_key(&self.key);
        hmac.update(salt);
        hmac.update(&context.0);
        let key = UnboundKey::new(&AES_256_GCM, hmac.sign().as_ref()).ok()?;
        Some(LessSafeKey::new(key))
    }
}

/// Makes the tickets of one server.
pub(crate) struct Ticketer {
    pub(crate) keys: Arc<TicketKeys>,
    pub(crate) context: Context,
    /// `ssl_session_timeout`
    pub(crate) lifetime: Duration,
}

impl Ticketer {
    fn encrypt_at(&self, now: u64, session: &[u8]) -> Option<Vec<u8>> {
        let secret = self.keys.current(now)?;
        let mut salt = [0; SALT_BYTES];
        rand::fill(&mut salt).ok()?;
        let key = secret.ticket_key(&salt, &self.context)?;
        let mut sealed = [&now.to_be_bytes(), session].concat();
        key.seal_in_place_append_tag(only_nonce(), Aad::empty(), &mut sealed)
            .ok()?;
        Some([&secret.name[..], &salt, &sealed].concat())
    }

    fn decrypt_at(&self, now: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME_BYTES)?;
        let (salt, sealed) = rest.split_at_checked(SALT_BYTES)?;
        let key = self.keys.named(name)?.ticket_key(salt, &self.context)?;
        let mut sealed = sealed.to_vec();
        let opened = key
            .open_in_place(only_nonce(), Aad::empty(), &mut sealed)
            .ok()?;
        let (made_at, session) = opened.split_first_chunk()?;
        let age = now.saturating_sub(u64::from_be_bytes(*made_at));
        (age <= self.lifetime.as_secs()).then(|| session.to_vec())
    }
}

/// Each key encrypts one ticket.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        let seconds = self.lifetime.as_secs().min(MAX_HINT_SECONDS);
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(UnixTime::now().as_secs(), plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(UnixTime::now().as_secs(), cipher)
    }
}

impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticketer").finish_non_exhaustive()
    }
}

/// `ssl_session_tickets off`
#[derive(Debug)]
pub(crate) struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60;

    fn ticketer(keys: &Arc<TicketKeys>, context: u8) -> Ticketer {
        Ticketer {
            keys: keys.clone(),
            context: Context([context; 32]),
            lifetime: Duration::from_secs(HOUR),
        }
    }

    #[test]
    fn a_ticket_is_accepted_until_its_lifetime_ends() {
        let keys = Arc::new(TicketKeys::random(Duration::from_secs(HOUR)));
        let ticketer = ticketer(&keys, 0);
        let ticket = ticketer.encrypt_at(1000, b"session").unwrap();
        for (now, is_accepted) in [(1000, true), (1000 + HOUR, true), (1001 + HOUR, false)] {
            let found = ticketer.decrypt_at(now, &ticket);
            assert_eq!(found.as_deref() == Some(b"session"), is_accepted, "{now}");
        }
    }

    #[test]
    fn a_random_secret_is_replaced_and_later_forgotten() {
        let keys = Arc::new(TicketKeys::random(Duration::from_secs(HOUR)));
        let mut ticketer = ticketer(&keys, 0);
        ticketer.lifetime = Duration::from_secs(100 * HOUR);
        let first = ticketer.encrypt_at(0, b"first").unwrap();
        let second = ticketer.encrypt_at(HOUR, b"second").unwrap();
        assert_ne!(first[..NAME_BYTES], second[..NAME_BYTES]);
        assert!(ticketer.decrypt_at(HOUR, &first).is_some());
        ticketer.encrypt_at(2 * HOUR, b"third").unwrap();
        assert!(ticketer.decrypt_at(2 * HOUR, &first).is_none());
        assert!(ticketer.decrypt_at(2 * HOUR, &second).is_some());
        // The keys have not been used for a long time: the remaining ones are too old.
        ticketer.encrypt_at(50 * HOUR, b"fourth").unwrap();
        assert_eq!(keys.secrets.read().all.len(), 1);
    }

    #[test]
    fn keys_of_files_are_shared_by_machines_and_replaced_by_hand() {
        let (old, new) = ([1; 48], [2; 80]);
        let machine = |files: &[&[u8]]| {
            let keys = TicketKeys::of_files(files.iter().copied()).unwrap();
            ticketer(&Arc::new(keys), 0)
        };
        let ticket = machine(&[&old]).encrypt_at(0, b"session").unwrap();
        assert!(machine(&[&new, &old]).decrypt_at(0, &ticket).is_some());
        assert!(machine(&[&new]).decrypt_at(0, &ticket).is_none());
        let size = TicketKeys::of_files([&[0; 79][..]]).err();
        assert_eq!(size, Some(TicketKeysError));
    }

    #[test]
    fn a_ticket_of_another_server_and_a_changed_one_are_refused() {
        let keys = Arc::new(TicketKeys::random(Duration::from_secs(HOUR)));
        let ticket = ticketer(&keys, 0).encrypt_at(0, b"session").unwrap();
        assert!(ticketer(&keys, 1).decrypt_at(0, &ticket).is_none());
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert!(ticketer(&keys, 0).decrypt_at(0, &changed).is_none(), "{at}");
            assert!(ticketer(&keys, 0).decrypt_at(0, &ticket[..at]).is_none());
        }
    }
}
