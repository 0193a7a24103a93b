//! Paths as lists of pages show them: a part that looks like a token is `*`. A reader of the list must not be able
//! to follow the link of another person's mail (`/reset/8c9f...`), and a thousand such links are one page.
//!
//! A piece of a path is between `/`, `.` and other punctuation. It looks like a token if it is a UUID, many
//! hexadecimal digits, or long and changes between digits, small and capital letters more often than words do:
//! `how-to-install-php-8-on-debian-12` stays.

/// Stands for a token.
const MASK: u8 = b'*';
/// Fewer hexadecimal digits are no secret: they can be found by trying.
const MIN_HEX_BYTES: usize = 16;
/// A shorter token of letters and digits is no secret either.
const MIN_TOKEN_BYTES: usize = 20;
/// Words change less often than once in this number of letters.
const LETTERS_PER_CHANGE: usize = 7;

/// Appends a path. One that is `is_cut` ends within a piece, which may be a part of a token.
pub fn put(path: &[u8], is_cut: bool, out: &mut Vec<u8>) {
    let mut rest = path;
    loop {
        let end = rest.iter().position(|&byte| !is_of_piece(byte));
        let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
        match is_token(piece) || is_cut && end.is_none() && !piece.is_empty() {
            true => out.push(MASK),
            false => out.extend_from_slice(piece),
        }
        let Some((&separator, next)) = behind.split_first() else {
            return;
        };
        out.push(separator);
        rest = next;
    }
}

/// Base64 in both alphabets, also where it was encoded for a URL.
fn is_of_piece(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'=' | b'%')
}

fn is_token(piece: &[u8]) -> bool {
    piece.len() >= MIN_HEX_BYTES && (is_uuid(piece) || is_hexadecimal(piece) || is_mixed(piece))
}

fn is_uuid(piece: &[u8]) -> bool {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let mut bytes = piece.iter().enumerate();
    piece.len() == 36
        && bytes.all(|(at, byte)| match HYPHENS.contains(&at) {
            true => *byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}

/// Numbers count where they are longer than any that counts something.
fn is_hexadecimal(piece: &[u8]) -> bool {
    let digits = piece.iter().filter(|byte| byte.is_ascii_digit()).count();
    piece.iter().all(u8::is_ascii_hexdigit)
        && digits > 0
        && (digits < piece.len() || piece.len() >= MIN_TOKEN_BYTES)
}

/// Does it change between digits, small and capital letters as words do not? A capital letter in front of a small
/// one begins a word.
fn is_mixed(piece: &[u8]) -> bool {
    let (mut length, mut changes) = (0, 0);
    let (mut has_digit, mut has_letter) = (false, false);
    let mut last = None;
    let mut bytes = piece.iter();
    while let Some(byte) = bytes.next() {
        let kind = match byte {
            b'0'..=b'9' => CharacterKind::Digit,
            b'a'..=b'z' => CharacterKind::Small,
            b'A'..=b'Z' => CharacterKind::Capital,
            b'%' => {
                let (first, second) = (bytes.next(), bytes.next());
                // `+` and `/` of base64. Letters of another alphabet tell nothing.
                if let (Some(b'2'), Some(b'B' | b'b' | b'F' | b'f')) = (first, second) {
                    last = None;
                    length += 1;
                }
                continue;
            }
            _ => {
                last = None;
                length += 1;
                continue;
            }
        };
        has_digit |= kind == CharacterKind::Digit;
        has_letter |= kind != CharacterKind::Digit;
        let is_change = last.is_some_and(|last| {
            last != kind && (last, kind) != (CharacterKind::Capital, CharacterKind::Small)
        });
        changes += usize::from(is_change);
        length += 1;
        last = Some(kind);
    }
    let is_long = length >= MIN_TOKEN_BYTES;
    is_long && has_digit && has_letter && changes * LETTERS_PER_CHANGE >= length
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterKind {
    Digit,
    Small,
    Capital,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(path: &str, is_cut: bool) -> String {
        let mut out = Vec::new();
        put(path.as_bytes(), is_cut, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_looks_like_a_token_is_masked() {
        for (path, expected) in [
            ("/reset/8c9f1b2d3e4f5a6b", "/reset/*"),
            ("/reset/8C9F1B2D3E4F5A6B7C8D/confirm", "/reset/*/confirm"),
            // PHP: md5(), bin2hex(random_bytes(20)), base64url of 32 bytes, uniqid() twice.
            ("/d41d8cd98f00b204e9800998ecf8427e.pdf", "/*.pdf"),
            ("/u/da39a3ee5e6b4b0d3255bfef95601890afd80709/", "/u/*/"),
            (
                "/invite/y6x5YWe1ODKLr5jdmVTAjx_mcuQppbMaM-UBVBKMO1Y",
                "/invite/*",
            ),
            ("/x/656f1c2b9a8e04656f1c2b9a8f17", "/x/*"),
            ("/s/Zm9vYmFyMTIzNDU2Nzg5MA%3D%3D", "/s/*"),
            ("/s/kJ3%2Bx9Qw8%2FZz7Lm2Tq5R", "/s/*"),
            // A JWT, Laravel's and WordPress's keys, a token in small letters.
            (
                "/t/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
                "/t/*.*.*",
            ),
            ("/verify/Xq3vT8mK1pZ7nR2sW9yL", "/verify/*"),
            ("/k/a8f3k2m9q1z7x5c4v6b0", "/k/*"),
            ("/order/1c9e6679-7425-40de-944b-e07fc1f90ae7", "/order/*"),
            ("/n/12345678901234567890", "/n/*"),
            ("/a/id:8c9f1b2d3e4f5a6b,x", "/a/id:*,x"),
        ] {
            assert_eq!(masked(path, false), expected);
        }
    }

    #[test]
    fn names_of_pages_stay() {
        for path in [
            "/",
            "",
            "/wp-content/themes/twentytwentythree/style.css",
            "/2024/05/17/how-to-install-php-8-on-debian-12/",
            "/wiki/FIFA_World_Cup_2022_Final_Round_of_16",
            "/wiki/InternationalConferenceOnMachineLearning2024",
            "/wiki/%E4%B8%AD%E5%8D%8E%E4%BA%BA%E6%B0%91%E5%85%B1%E5%92%8C%E5%9B%BD",
            "/caf%C3%A9-m%C3%BCnchen-und-umgebung-2024",
            "/products/1234567890123456",
            "/iphone-15-pro-max-256gb-blue-titanium",
            "/app.3f2a1b9c.js",
            "/a/20240517120000",
            "/defaced-facade-decade",
            "/%",
            "/%4",
        ] {
            assert_eq!(masked(path, false), path);
        }
    }

    #[test]
    fn the_end_of_a_path_that_was_cut_may_be_a_part_of_a_token() {
        assert_eq!(masked("/reset/8c9f", true), "/reset/*");
        assert_eq!(masked("/reset/", true), "/reset/");
        assert_eq!(masked("/a.b", true), "/a.*");
    }

    /// Tokens of applications are 20 letters at least; these are as random as theirs.
    #[test]
    fn few_random_tokens_get_through() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap() % below
        };
        const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
        // Most of those that get through have no digit.
        for (letters, length, most) in [
            (64, 43, 10),
            (62, 32, 25),
            (64, 22, 80),
            (36, 40, 10),
            (16, 20, 0),
        ] {
            let mut shown = 0;
            for _ in 0..2000 {
                let token: Vec<u8> = (0..length).map(|_| LETTERS[random(letters)]).collect();
                shown += usize::from(!is_token(&token));
            }
            assert!(
                shown <= most,
                "{shown} of 2000 with {letters} letters, {length} long"
            );
        }
    }
}
