//! The server's own tokens: shown in kept pages in the place of the application's, and found again in what visitors
//! send.

use std::hash::{BuildHasher, RandomState};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use page_evidence::Halves;
use parking_lot::Mutex;

use crate::form::{PageForm, Token};
use crate::place::{MAX_TOKEN, MIN_TOKEN, PlaceKind};

/// Tokens in half the table: with their pages some 10 MB.
const MAX_TOKENS: usize = 32 * 1024;
/// How the server's token in a cookie begins, so that it is known after a restart, too: no application is sent it.
const OWN_COOKIE: &[u8] = b"mayflyguest";
/// More words of a text are not looked for.
const MAX_WORDS: usize = 100_000;
/// So many are looked up before others have their turn.
const WORDS_AT_A_TIME: usize = 1_000;
/// The shortest and the longest token that is looked for.
const LENGTHS: RangeInclusive<usize> = MIN_TOKEN..=MAX_TOKEN;

/// A page that has tokens of the server's.
#[derive(Debug)]
pub struct TokenPage {
    /// Scheme, host and port as in its key, and path and arguments.
    pub host: Vec<u8>,
    pub target: Vec<u8>,
    pub form: Arc<PageForm>,
    /// Cookies whose tokens its scripts read and send back.
    pub cookies: Vec<Vec<u8>>,
    /// Pages of the site that did not say whether it leaves a session as it was: they differed between guests, or were none.
    pub unseen: Vec<Vec<u8>>,
}

/// The page that a token is of.
#[derive(Clone, Debug)]
pub struct TokenPlace {
    pub page: Arc<TokenPage>,
    /// Which of the page's tokens: those of its form, then those in cookies.
    pub token: usize,
}

impl TokenPlace {
    /// The cookie that has the token.
    #[must_use]
    pub fn cookie(&self) -> Option<&[u8]> {
        let nth = self.token.checked_sub(self.page.form.tokens().len())?;
        self.page.cookies.get(nth).map(Vec::as_slice)
    }
}

/// A token in a text.
#[derive(Clone, Debug)]
pub struct FoundToken {
    pub range: Range<usize>,
    pub place: TokenPlace,
}

/// The tokens that are known.
#[derive(Debug, Default)]
pub struct ServerTokens {
    secret: RandomState,
    has_any: AtomicBool,
    known: Mutex<Halves<(Vec<u8>, TokenPlace)>>,
}

impl ServerTokens {
    /// The tokens for a page, by the numbers of its form, which are found from now on. `page` stands for its key.
    pub fn for_page(&self, page: u64, known: &Arc<TokenPage>) -> Vec<Vec<u8>> {
        if known.form.tokens().is_empty() && known.cookies.is_empty() {
            return Vec::new();
        }
        self.has_any.store(true, Ordering::Release);
        let mut table = self.known.lock();
        let tokens = known.form.tokens().iter().enumerate();
        // Once the page has changed, its tokens have other numbers, and the same text before them.
        let of_form = tokens
            .map(|(number, token)| self.token(page, token, known.form.nth_of_context(number)));
        let of_cookies = known.cookies.iter().map(|name| self.of_cookie(page, name));
        of_form
            .chain(of_cookies)
            .enumerate()
            .map(|(number, text)| {
                let place = TokenPlace {
                    page: known.clone(),
                    token: number,
                };
                table.put(
                    self.secret.hash_one(&text),
                    (text.clone(), place),
                    MAX_TOKENS,
                );
                text
            })
            .collect()
    }

    /// Makes a token, which is the same each time for one page: a visitor may have an older copy.
    fn token(&self, page: u64, token: &Token, nth: usize) -> Vec<u8> {
        let alphabet = match &token.kind {
            PlaceKind::Token { alphabet, .. } => alphabet.bytes(),
            PlaceKind::Number | PlaceKind::Count => b"0",
        };
        let draw = |at: usize| {
            let drawn = self.secret.hash_one((page, token.context(), nth, at)) >> 8;
            let at = usize::try_from(drawn % alphabet.len() as u64).unwrap_or(0);
            alphabet.get(at).copied().unwrap_or(b'0')
        };
        (0..token.length).map(draw).collect()
    }

    /// Makes the token for a cookie.
    fn of_cookie(&self, page: u64, name: &[u8]) -> Vec<u8> {
        let mut token = OWN_COOKIE.to_vec();
        for part in 0..2 {
            let drawn = self.secret.hash_one((page, name, part));
            token.extend_from_slice(format!("{drawn:016x}").as_bytes());
        }
        token
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_any.load(Ordering::Acquire)
    }

    /// The tokens in a text, in their order.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Vec<FoundToken> {
        if self.is_empty() {
            return Vec::new();
        }
        let words = words(text).filter(|range| LENGTHS.contains(&range.len()));
        // Hashed before others have to wait.
        let marks: Vec<(Range<usize>, u64)> = words
            .take(MAX_WORDS)
            .filter_map(|range| Some((range.clone(), self.secret.hash_one(text.get(range)?))))
            .collect();
        let mut found = Vec::new();
        // Others have their turn in between.
        for some in marks.chunks(WORDS_AT_A_TIME) {
            let table = self.known.lock();
            found.extend(some.iter().filter_map(|(range, mark)| {
                let (known, place) = table.get(*mark)?;
                (known == text.get(range.clone())?).then(|| FoundToken {
                    range: range.clone(),
                    place: place.clone(),
                })
            }));
        }
        found
    }
}

/// Is it the value of a cookie that the server has set in the place of the application's?
#[must_use]
pub fn is_own_cookie(value: &[u8]) -> bool {
    value.starts_with(OWN_COOKIE)
}

/// The letters and digits of a text that stand together. What is escaped (`%2F`, `\u002f`) belongs to none.
fn words(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let first = rest.first()?;
            let length = rest
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count();
            if length > 0 {
                let found = at..at + length;
                at += length;
                return Some(found);
            }
            at += match (first, rest.get(1)) {
                (b'%', _)
                    if rest
                        .get(1..3)
                        .is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit)) =>
                {
                    3
                }
                (b'\\', Some(b'u')) => 6.min(rest.len()),
                _ => 1,
            };
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::{AskedSite, Comparison, compare};
    use crate::place::Guests;

    fn known_page() -> Arc<TokenPage> {
        let pages = ["0cc175b9c0f1b6a8", "92eb5ffee6ae2fec", "4a8a08f09d37b737"];
        let pages = pages.map(|token| {
            format!("<input type=\"hidden\" name=\"key\" value=\"{token}\">").into_bytes()
        });
        let site = AskedSite {
            host: b"a.example",
            now: 0,
        };
        let Comparison::Form(form) =
            compare(&[&pages[0], &pages[1], &pages[2]], Guests::Alike, site)
        else {
            panic!("no form")
        };
        Arc::new(TokenPage {
            host: b"a.example".to_vec(),
            target: b"/form".to_vec(),
            form: Arc::new(form),
            cookies: vec![b"XSRF-TOKEN".to_vec()],
            unseen: Vec::new(),
        })
    }

    #[test]
    fn a_token_looks_like_the_applications_and_is_found() {
        let tokens = ServerTokens::default();
        assert!(tokens.is_empty() && tokens.find(b"key=0123456789abcdef").is_empty());
        let page = known_page();
        let of_page = tokens.for_page(7, &page);
        assert_eq!(of_page, tokens.for_page(7, &page));
        assert_ne!(of_page, tokens.for_page(8, &page));
        let token = &of_page[0];
        assert_eq!(token.len(), 16);
        assert!(
            token
                .iter()
                .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
        );
        let token = String::from_utf8(token.clone()).unwrap();
        for text in [
            format!("a=1&key={token}&b=2"),
            format!("key=%22{token}%22"),
            format!("{{\"key\":\"{token}\"}}"),
            format!("{{\"key\":\"\\u0022{token}\\u0022\"}}"),
            format!("--x\r\n\r\n{token}\r\n--x--"),
            format!("key_{token}=1"),
        ] {
            let found = tokens.find(text.as_bytes());
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(&text[found[0].range.clone()], token);
            assert_eq!(found[0].place.page.target, b"/form");
        }
        assert!(tokens.find(format!("x{token}").as_bytes()).is_empty());
        let [_, in_cookie] = &of_page[..] else {
            panic!("a token of the form and one in a cookie");
        };
        assert!(is_own_cookie(in_cookie) && !is_own_cookie(token.as_bytes()));
        let places = [token.as_bytes(), in_cookie].map(|text| tokens.find(text)[0].place.clone());
        assert_eq!(
            places.each_ref().map(|it| it.cookie()),
            [None, Some(&b"XSRF-TOKEN"[..])]
        );
    }
}
