//! Tokens of the purge API: 32 random bytes each, of which the server keeps the SHA-256 hash alone.
//!
//! A file of them has lines of a name and a hash, as in `deploy:9f86d081...`; empty lines and those
//! that begin with `#` do not count.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_semantics::escape::hex_digits;

/// Largest file: some hundred tokens.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Random bytes of a token: too many to find one by trying.
const TOKEN_BYTES: usize = 32;

/// A new token, and the line that lets the server know it.
///
/// # Errors
/// The error of the system.
pub fn new(name: &str) -> io::Result<(String, String)> {
    let mut bytes = [0; TOKEN_BYTES];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| io::Error::other("there are no random numbers"))?;
    let token = URL_SAFE_NO_PAD.encode(bytes);
    let line = format!("{name}:{}", hex(&hash(token.as_bytes())));
    Ok((token, line))
}

/// The name of the token that is `given`, if the file has it.
///
/// # Errors
/// The file cannot be read.
pub fn find(file: &Path, given: &[u8]) -> io::Result<Option<String>> {
    Ok(find_in(&read(file)?, given))
}

/// Returns the reason why a file lets no request in, or fewer than it seems to: it cannot be read, a
/// line is no token, or there is no token. `None`: it is as it should be.
pub fn problem(file: &Path) -> Option<String> {
    match read(file) {
        Err(error) => Some(format!("cannot be read ({error})")),
        Ok(text) => problem_in(&text),
    }
}

fn problem_in(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).enumerate();
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let is_token = |line: &str| {
        let split = line.rsplit_once(':');
        split.is_some_and(|(name, hash)| {
            let is_hash = hash.len() == 2 * digest::SHA256_OUTPUT_LEN;
            is_hash && !name.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let mut has_token = false;
    let wrong = lines.find(|(_, line)| {
        has_token |= is_token(line);
        !is_token(line)
    });
    match wrong {
        Some((at, _)) => Some(format!(
            "has no NAME:HASH in line {}, as mayfly purge --new-token NAME prints it",
            at + 1
        )),
        None if !has_token => Some("has no token".to_owned()),
        None => None,
    }
}

fn read(file: &Path) -> io::Result<String> {
    let file = File::open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// All lines are compared, whichever it is.
fn find_in(text: &str, given: &[u8]) -> Option<String> {
    let given = hex(&hash(given));
    let mut found = None;
    for line in text.lines() {
        let Some((name, known)) = line.trim().rsplit_once(':') else {
            continue;
        };
        let known = known.to_ascii_lowercase();
        let is_it = verify_slices_are_equal(known.as_bytes(), given.as_bytes()).is_ok();
        if is_it && !name.starts_with('#') {
            found = Some(name.to_owned());
        }
    }
    found
}

fn hash(token: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, token)
}

fn hex(digest: &digest::Digest) -> String {
    hex_digits(digest.as_ref()).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_line() {
        let (token, line) = new("deploy").unwrap();
        let (other, _) = new("other").unwrap();
        assert_ne!(token, other);
        assert!(!line.contains(&token));
        let text = format!("# tokens\n\nold:00\n{line}\r\n#{line}\n");
        assert_eq!(find_in(&text, token.as_bytes()).as_deref(), Some("deploy"));
        assert_eq!(find_in(&text, other.as_bytes()), None);
        assert_eq!(find_in(&text, b""), None);
        assert_eq!(find_in(&format!("#{line}"), token.as_bytes()), None);
        // The output of `printf %s test | sha256sum`.
        let known = "a:9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08";
        assert_eq!(find_in(known, b"test").as_deref(), Some("a"));
    }

    #[test]
    fn a_file_that_lets_nobody_in_is_found_out() {
        let (_, line) = new("deploy").unwrap();
        assert_eq!(problem_in(&format!("# tokens\n\n{line}\r\n")), None);
        for (text, words) in [
            (String::new(), "no token"),
            (format!("#{line}"), "no token"),
            (format!("{line}\ndeploy"), "in line 2"),
            (line.replace("deploy", ""), "in line 1"),
            (format!("{line}0"), "in line 1"),
            ("deploy:9f86d0".to_owned(), "in line 1"),
        ] {
            let problem = problem_in(&text).unwrap();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    #[test]
    fn only_a_regular_file_is_read() {
        assert!(problem(Path::new("/dev/zero")).is_some());
        let folder = tempfile::tempdir().unwrap();
        assert!(find(folder.path(), b"x").is_err());
        assert!(find(Path::new("/dev/zero"), b"x").is_err());
        assert!(find(&folder.path().join("none"), b"x").is_err());
    }
}
