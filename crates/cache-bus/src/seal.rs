//! Sealing of the pages and secrets that nodes share through the engine: a program that can write to the engine, and
//! has not the key file of the nodes, can neither read nor make a page or a secret. AES-GCM with 256 bits; a page is
//! bound to its name, to the epoch and to the position at which its fetch began, a secret to its name.
//!
//! ```text
//! form 1 │ position 8 │ nonce 12 │ sealed bytes │ tag 16
//! ```

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac;

/// The form that is written and read.
const FORM: u8 = 1;
/// Before the sealed bytes.
const HEAD_BYTES: usize = 1 + 8 + NONCE_LEN;
/// Two sealed pages differ in them.
pub const MARK_BYTES: usize = HEAD_BYTES;
/// A key file has at least as many bytes.
pub const MIN_KEY_BYTES: usize = 32;
/// The length of a page's name at the engine.
const NAME_BYTES: usize = 16;

/// The secret that the nodes have in common.
pub struct NodeSeal(hmac::Key);

/// The associated data to which a sealed page is bound.
#[derive(Clone, Copy)]
pub struct SealedPlace<'a> {
    /// Its name at the engine.
    pub name: &'a str,
    /// The epoch of the log.
    pub epoch: &'a str,
    /// The position at which its fetch began.
    pub position: u64,
}

impl NodeSeal {
    /// Makes the seal from the content of a key file; `None` if it is too short.
    #[must_use]
    pub fn new(secret: &[u8]) -> Option<NodeSeal> {
        let is_long = secret.len() >= MIN_KEY_BYTES;
        is_long.then(|| NodeSeal(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// The name of a page, from which nothing is learned of the page.
    #[must_use]
    pub fn name(&self, page: &[&[u8]]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(b"name");
        for part in page {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let named = context.sign();
        let bytes = named.as_ref().iter().take(NAME_BYTES);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    /// Seals bytes; `None` if the system gives no random bytes.
    #[must_use]
    pub fn seal(&self, place: SealedPlace<'_>, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        aws_lc_rs::rand::fill(&mut nonce).ok()?;
        let mut sealed = vec![FORM];
        sealed.extend_from_slice(&place.position.to_be_bytes());
        sealed.extend_from_slice(&nonce);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let key = self.key(place.epoch)?;
        key.seal_in_place_append_tag(nonce, bound_to(place), &mut bytes)
            .ok()?;
        sealed.extend_from_slice(&bytes);
        Some(sealed)
    }

    /// The position and the bytes of a page that was sealed for this name in this epoch; `None` for anything else.
    #[must_use]
    pub fn open(&self, name: &str, epoch: &str, sealed: &[u8]) -> Option<(u64, Vec<u8>)> {
        let (head, sealed) = sealed.split_at_checked(HEAD_BYTES)?;
        let (form, rest) = head.split_first()?;
        let (position, nonce) = rest.split_first_chunk::<8>()?;
        let place = SealedPlace {
            name,
            epoch,
            position: u64::from_be_bytes(*position),
        };
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = sealed.to_vec();
        let key = (*form == FORM).then(|| self.key(epoch))??;
        let len = key.open_in_place(nonce, bound_to(place), &mut bytes);
        let len = len.ok()?.len();
        bytes.truncate(len);
        Some((place.position, bytes))
    }

    fn key(&self, epoch: &str) -> Option<LessSafeKey> {
        let derived = hmac::sign(&self.0, format!("seal {epoch}").as_bytes());
        let key = UnboundKey::new(&AES_256_GCM, derived.as_ref()).ok()?;
        Some(LessSafeKey::new(key))
    }
}

fn bound_to(place: SealedPlace<'_>) -> Aad<Vec<u8>> {
    let mut bytes = place.position.to_be_bytes().to_vec();
    bytes.extend_from_slice(place.name.as_bytes());
    Aad::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(secret: u8) -> NodeSeal {
        NodeSeal::new(&[secret; MIN_KEY_BYTES]).expect("long enough")
    }

    #[test]
    fn a_page_is_opened_under_its_name_in_its_epoch_with_the_key_and_otherwise_not() {
        let place = SealedPlace {
            name: "a",
            epoch: "e",
            position: 7,
        };
        let sealed = seal(1).seal(place, b"page".to_vec()).expect("sealed");
        let open = |secret, name, epoch, bytes: &[u8]| seal(secret).open(name, epoch, bytes);
        assert_eq!(open(1, "a", "e", &sealed), Some((7, b"page".to_vec())));
        for (secret, name, epoch) in [(2, "a", "e"), (1, "b", "e"), (1, "a", "f")] {
            assert_eq!(open(secret, name, epoch, &sealed), None);
        }
        // Each byte counts: the form, the position, the nonce and the sealed bytes.
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open(1, "a", "e", &changed), None, "{at}");
            assert_eq!(open(1, "a", "e", &sealed[..at]), None, "{at}");
        }
        let again = seal(1).seal(place, b"page".to_vec()).expect("sealed");
        assert_ne!(sealed, again, "another nonce");
    }

    #[test]
    fn names_depend_on_the_key_and_on_where_a_part_ends() {
        let parts: [&[&[u8]]; 3] = [&[b"ab", b"c"], &[b"a", b"bc"], &[b"abc"]];
        let mut names: Vec<String> = parts.map(|parts| seal(1).name(parts)).into();
        names.push(seal(2).name(parts[0]));
        for (at, name) in names.iter().enumerate() {
            assert_eq!(name.len(), 2 * NAME_BYTES);
            assert!(!names[at + 1..].contains(name));
        }
        assert!(NodeSeal::new(b"short").is_none());
    }
}
