//! The formats in which user files keep passwords: crypt(3) hashes (bcrypt, SHA-2, MD5, DES),
//! Apache's `$apr1$`, `{SHA}`, `{SSHA}` and `{PLAIN}`. Pure.

use base64::Engine;
use md5::{Digest, Md5};
use sha1::Sha1;

use super::base64_lenient;

/// Does `password` fit `hash`, in whichever of the formats that is?
pub fn matches_hash(hash: &[u8], password: &[u8]) -> bool {
    if let Some(plain) = hash.strip_prefix(b"{PLAIN}") {
        return is_same(plain, password);
    }
    if let Some(encoded) = hash.strip_prefix(b"{SHA}") {
        return matches_sha1(encoded, password, false);
    }
    if let Some(encoded) = hash.strip_prefix(b"{SSHA}") {
        return matches_sha1(encoded, password, true);
    }
    if let Some(rest) = hash.strip_prefix(b"$apr1$") {
        let salt = rest.split(|&byte| byte == b'$').next().unwrap_or_default();
        return is_same(&apr1(password, salt), hash);
    }
    match std::str::from_utf8(hash) {
        // Fewer than the 13 characters of DES are no hash at all.
        Ok(hash) if hash.len() >= 13 => pwhash::unix::verify(password, hash),
        _ => false,
    }
}

/// `{SHA}` and `{SSHA}`: base64 of the digest and, behind it, the salt.
fn matches_sha1(encoded: &[u8], password: &[u8], salted: bool) -> bool {
    let Ok(decoded) = base64_lenient().decode(encoded) else {
        return false;
    };
    let Some((digest, salt)) = decoded.split_at_checked(20) else {
        return false;
    };
    if !salted && !salt.is_empty() {
        return false;
    }
    let made: [u8; 20] = Sha1::new()
        .chain_update(password)
        .chain_update(salt)
        .finalize()
        .into();
    is_same(&made, digest)
}

/// Compares without telling by its time where the difference is.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Apache's variant of the MD5 crypt: the same rounds under another mark.
fn apr1(password: &[u8], salt: &[u8]) -> Vec<u8> {
    const MAGIC: &[u8] = b"$apr1$";
    let salt = salt.get(..salt.len().min(8)).unwrap_or_default();
    let inner: [u8; 16] = Md5::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize()
        .into();
    let mut outer = Md5::new()
        .chain_update(password)
        .chain_update(MAGIC)
        .chain_update(salt);
    for taken in (0..password.len()).step_by(16) {
        let length = (password.len() - taken).min(16);
        outer.update(&inner[..length]);
    }
    let mut bits = password.len();
    while bits > 0 {
        let first = password.first().copied().unwrap_or_default();
        outer.update([if bits & 1 == 1 { 0 } else { first }]);
        bits >>= 1;
    }
    let mut digest: [u8; 16] = outer.finalize().into();
    for round in 0..1000 {
        let mut next = Md5::new();
        let (first, last): (&[u8], &[u8]) = if round % 2 == 1 {
            (password, &digest)
        } else {
            (&digest, password)
        };
        next.update(first);
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(last);
        digest = next.finalize().into();
    }
    let mut out = [MAGIC, salt, b"$"].concat();
    for [a, b, c] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        let word = u32::from(digest[a]) << 16 | u32::from(digest[b]) << 8 | u32::from(digest[c]);
        put_crypt64(word, 4, &mut out);
    }
    put_crypt64(u32::from(digest[11]), 2, &mut out);
    out
}

fn put_crypt64(mut word: u32, characters: usize, out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for _ in 0..characters {
        out.push(ALPHABET[(word & 63) as usize]);
        word >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_fit_their_hashes_in_every_format() {
        for (name, hash, password) in HASHES {
            assert!(matches_hash(hash.as_bytes(), password.as_bytes()), "{name}");
            assert!(!matches_hash(hash.as_bytes(), b"wrong"), "{name}");
            assert!(!matches_hash(hash.as_bytes(), b""), "{name}");
        }
    }

    /// Made by `htpasswd`, `openssl passwd` and `mkpasswd`.
    const HASHES: &[(&str, &str, &str)] = &[
        ("apr1", "$apr1$abcdefgh$FBwExRW4dCc8aL.OvjpIE1", "password"),
        ("md5", "$1$abcdefgh$G//4keteveJp0qb8z2DxG/", "password"),
        (
            "sha256",
            "$5$abcdefgh$ZLdkj8mkc2XVSrPVjskDAgZPGjtj1VGVaa1aUkrMTU/",
            "password",
        ),
        (
            "sha512",
            "$6$abcdefgh$yVfUwsw5T.JApa8POvClA1pQ5peiq97DUNyXCZN5IrF.BMSkiaLQ5kvpuEm/VQ1Tvh/KV2TcaWh8qinoW5dhA1",
            "password",
        ),
        ("SHA", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "password"),
        ("SSHA", "{SSHA}yI6cZwQadOA1e+/f+T+H3eCQQhRzYWx0", "password"),
        ("PLAIN", "{PLAIN}password", "password"),
        ("DES", "abJnggxhB/yWI", "password"),
        (
            "bcrypt",
            "$2y$05$abcdefghijklmnopqrstuuWG29KuyeAicPCJODk1zjyGvyQUU2awu",
            "password",
        ),
        (
            "apr1, long",
            "$apr1$a$1sXgrhzjoaZizmyXkSG45.",
            "a longer password than sixteen bytes",
        ),
    ];

    #[test]
    fn what_is_no_hash_fits_nothing() {
        for hash in [
            "",
            "password",
            "{SHA}",
            "{SHA}????",
            "{SSHA}c2hvcnQ=",
            "$",
            "$9$a$b",
            "$2y$99$",
            "$apr1$",
            "$5$rounds=",
            "\u{e9}",
        ] {
            assert!(!matches_hash(hash.as_bytes(), b"password"), "{hash}");
            assert!(!matches_hash(hash.as_bytes(), b""), "{hash}");
        }
    }
}
