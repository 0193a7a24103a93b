//! Does a password fit the hash in a user file? The formats are those of `htpasswd` and
//! `openssl passwd`: crypt(3) with bcrypt, SHA-2, MD5 or DES, Apache's `$apr1$`, `{SHA}`, `{SSHA}`
//! and `{PLAIN}`.
//!
//! Comparing distinguishes two failures: the visitor's password, or an unknown format, which only
//! the operator can mend. Nothing in a user file leads to a panic.

mod crypt64;
mod des_crypt;
mod md5_crypt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha_crypt::{PasswordVerifier, ShaCrypt};
use sha1::{Digest, Sha1};

use crypt64::CRYPT64;
use des_crypt::{HASH_CHARACTERS, des_crypt};
use md5_crypt::md5_crypt;

/// The result of comparing a password with a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Right,
    Wrong,
    /// None of the formats at the head of this file.
    UnknownFormat,
}

/// Is comparing with this hash more work than one digest?
pub fn is_slow(hash: &[u8]) -> bool {
    !hash.starts_with(b"{")
}

/// Does `password` fit `hash`, in whichever of the formats that is?
pub fn compare(hash: &[u8], password: &[u8]) -> Comparison {
    let is_right = match fits(hash, password) {
        None => return Comparison::UnknownFormat,
        Some(is_right) => is_right,
    };
    if is_right {
        Comparison::Right
    } else {
        Comparison::Wrong
    }
}

fn fits(hash: &[u8], password: &[u8]) -> Option<bool> {
    if let Some(plain) = hash.strip_prefix(b"{PLAIN}") {
        return Some(is_same(plain, password));
    }
    if let Some(encoded) = hash.strip_prefix(b"{SHA}") {
        return Some(matches_sha1(encoded, password, false));
    }
    if let Some(encoded) = hash.strip_prefix(b"{SSHA}") {
        return Some(matches_sha1(encoded, password, true));
    }
    for mark in [&b"$apr1$"[..], b"$1$"] {
        if let Some(rest) = hash.strip_prefix(mark) {
            let salt = rest.split(|&byte| byte == b'$').next().unwrap_or_default();
            return Some(is_same(&md5_crypt(mark, password, salt), hash));
        }
    }
    let text = std::str::from_utf8(hash).ok()?;
    if text.starts_with("$5$") || text.starts_with("$6$") {
        return Some(ShaCrypt::default().verify_password(password, text).is_ok());
    }
    if ["$2a$", "$2b$", "$2y$"]
        .iter()
        .any(|mark| text.starts_with(mark))
    {
        return Some(bcrypt::verify(password, text).unwrap_or(false));
    }
    let is_des = hash.len() == HASH_CHARACTERS && hash.iter().all(|byte| CRYPT64.contains(byte));
    let salt = hash.first_chunk().filter(|_| is_des)?;
    Some(is_same(&des_crypt(password, *salt)?, hash))
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

/// Clients and user files leave the padding out at times.
pub fn base64_lenient() -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&alphabet::STANDARD, config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_fit_their_hashes_in_every_format() {
        for (name, hash, password) in HASHES {
            let said = |password: &str| compare(hash.as_bytes(), password.as_bytes());
            assert_eq!(said(password), Comparison::Right, "{name}");
            assert_eq!(said("wrong"), Comparison::Wrong, "{name}");
            assert_eq!(said(""), Comparison::Wrong, "{name}");
        }
    }

    /// Made by `htpasswd`, `openssl passwd` and `mkpasswd`.
    #[rustfmt::skip]
    const HASHES: &[(&str, &str, &str)] = &[
        ("apr1", "$apr1$abcdefgh$FBwExRW4dCc8aL.OvjpIE1", "password"),
        ("md5", "$1$abcdefgh$G//4keteveJp0qb8z2DxG/", "password"),
        ("sha256", "$5$abcdefgh$ZLdkj8mkc2XVSrPVjskDAgZPGjtj1VGVaa1aUkrMTU/", "password"),
        (
            "sha512",
            "$6$abcdefgh$yVfUwsw5T.JApa8POvClA1pQ5peiq97DUNyXCZN5IrF.BMSkiaLQ5kvpuEm/VQ1Tvh/KV2TcaWh8qinoW5dhA1",
            "password",
        ),
        ("SHA", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "password"),
        ("SSHA", "{SSHA}yI6cZwQadOA1e+/f+T+H3eCQQhRzYWx0", "password"),
        ("PLAIN", "{PLAIN}password", "password"),
        ("DES", "abJnggxhB/yWI", "password"),
        ("bcrypt", "$2y$05$abcdefghijklmnopqrstuuWG29KuyeAicPCJODk1zjyGvyQUU2awu", "password"),
        ("apr1, long", "$apr1$a$1sXgrhzjoaZizmyXkSG45.", "a longer password than sixteen bytes"),
        ("sha256, long", "$5$abcdefgh$6XtBnRhOvl6dNgKvIe64IMyfrFAetZr6uMvgjSeL5Q5", LONG),
        (
            "sha512 with rounds",
            "$6$rounds=1000$abcdefgh$wuAp2XWwaaguzVxZjeM2bd1yLSqbC/I9sr9DFeOfIPoAZiIj3ecL6rf9ibuAg8RDmh1vqbaeL0NSLJtGPF7b60",
            "password",
        ),
        (
            "sha512, longest salt",
            "$6$abcdefghijklmnop$zbyQGCR4HfG92f2Uc.4bEK.Sr5628NXqsjz5JW5scfqNA3IM24Pv70k5HUg2NNatLaZYd331Dc/TQoZEa3FEn0",
            LONG,
        ),
        ("bcrypt, 2b, long", "$2b$04$abcdefghijklmnopqrstuuo3ZaOr.gRyc2wNYQ7qmqcWoRzceRj2C", LONG),
        ("bcrypt, 2a", "$2a$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm", "password"),
        ("md5, long", "$1$abcdefgh$Hbg5UHVkSHVBj7d7v5AHc.", LONG),
        ("DES, long", "abkcfEndDLESY", LONG),
    ];

    const LONG: &str = "a longer password than sixteen bytes \u{e9}";

    #[test]
    fn a_broken_hash_fits_nothing() {
        for hash in [
            "{SHA}",
            "{SHA}????",
            "{SSHA}c2hvcnQ=",
            "$1$",
            "$2y$99$",
            "$2y$99$abcdefghijklmnopqrstuuWG29KuyeAicPCJODk1zjyGvyQUU2awu",
            "$2b$04$\u{e9}bcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzd",
            "$apr1$",
            "$5$",
            "$5$$",
            "$6$abcdefgh$",
            "$5$rounds=",
            "$5$rounds=10$abcdefgh$ZLdkj8mkc2XVSrPVjskDAgZPGjtj1VGVaa1aUkrMTU/",
            "$5$rounds=99999999999$abcdefgh$ZLdkj8mkc2XVSrPVjskDAgZPGjtj1VGVaa1aUkrMTU/",
            "$5$abcdefgh$ZLdkj8mkc2XVSrPVjskDAgZPGjtj1VGVaa1aUkrMTU/$",
            "$6$abcdefgh$\u{e9}",
        ] {
            for password in [&b"password"[..], b""] {
                assert_eq!(
                    compare(hash.as_bytes(), password),
                    Comparison::Wrong,
                    "{hash}"
                );
            }
        }
    }

    /// Formats that crypt(3) of a C library may know besides, and texts that are no hash at all.
    #[test]
    fn an_unknown_format_is_told_from_a_wrong_password() {
        for hash in [
            "",
            "password",
            "thirteen byte",
            "{MD5}X03MO1qnZdYdgyfeuILPmQ==",
            "$",
            "$9$a$b",
            "$2x$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm",
            "$sha1$10$abcdefgh$E..MsAnSwoEonfElOc8tnFfRU7hZ",
            "$y$j9T$abcdefgh$79JhsKZwfY/UU2qrk3QcffpHl7EyEEJK0pA5pD1wu73",
            "_J9..rasmEedsvB6g8/6",
            "\u{e9}",
        ] {
            let said = compare(hash.as_bytes(), b"password");
            assert_eq!(said, Comparison::UnknownFormat, "{hash}");
        }
        assert_eq!(compare(b"$6$\xff", b"password"), Comparison::UnknownFormat);
    }
}
