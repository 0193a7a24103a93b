//! The MD5 crypt, under its two marks: `$1$` of crypt(3) and `$apr1$` of Apache.

use md5::{Digest, Md5};

use super::crypt64::CRYPT64;

/// The hash of `password`: mark, salt (eight characters at most) and digest.
pub fn md5_crypt(mark: &[u8], password: &[u8], salt: &[u8]) -> Vec<u8> {
    let salt = salt.get(..salt.len().min(8)).unwrap_or_default();
    let inner: [u8; 16] = Md5::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize()
        .into();
    let mut outer = Md5::new()
        .chain_update(password)
        .chain_update(mark)
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
    let mut out = [mark, salt, b"$"].concat();
    for [a, b, c] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        let word = u32::from(digest[a]) << 16 | u32::from(digest[b]) << 8 | u32::from(digest[c]);
        put_crypt64(word, 4, &mut out);
    }
    put_crypt64(u32::from(digest[11]), 2, &mut out);
    out
}

fn put_crypt64(mut word: u32, characters: usize, out: &mut Vec<u8>) {
    for _ in 0..characters {
        out.push(CRYPT64[(word & 63) as usize]);
        word >>= 6;
    }
}
