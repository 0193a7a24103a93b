//! `charset_map`: text rewritten from one charset to another on its way out
//! (<https://nginx.org/en/docs/http/ngx_http_charset_module.html>). Each map
//! serves both ways. One side is a charset of single bytes; the other may be
//! utf-8.

use std::collections::HashMap;
use std::sync::Arc;

use site::CharsetMap;

/// All conversions that the configuration has tables for.
#[derive(Debug, Default)]
pub struct Conversions {
    known: Vec<Conversion>,
}

#[derive(Debug)]
struct Conversion {
    from: Box<[u8]>,
    to: Box<[u8]>,
    table: Arc<Table>,
}

#[derive(Debug)]
enum Table {
    /// The replacement for each of the 256 bytes.
    FromBytes(Vec<Box<[u8]>>),
    FromUtf8(HashMap<char, u8>),
}

impl Conversions {
    pub fn new(maps: &[CharsetMap]) -> Conversions {
        let mut known = Vec::with_capacity(maps.len() * 2);
        for map in maps {
            let there = map.pairs.iter().map(|(byte, text)| (*byte, &text[..]));
            known.push(Conversion {
                from: map.from.clone(),
                to: map.to.clone(),
                table: Arc::new(from_bytes(there)),
            });
            let back = if map.is_to_utf8() {
                let chars = map.pairs.iter().filter_map(|(byte, text)| {
                    Some((std::str::from_utf8(text).ok()?.chars().next()?, *byte))
                });
                Table::FromUtf8(chars.collect())
            } else {
                let swapped: Vec<(u8, [u8; 1])> = map
                    .pairs
                    .iter()
                    .filter_map(|(byte, text)| Some((*text.first()?, [*byte])))
                    .collect();
                from_bytes(swapped.iter().map(|(byte, text)| (*byte, &text[..])))
            };
            known.push(Conversion {
                from: map.to.clone(),
                to: map.from.clone(),
                table: Arc::new(back),
            });
        }
        Conversions { known }
    }

    /// The conversions, or `None` if there are none.
    pub fn given(shared: &Arc<Conversions>) -> Option<Arc<Conversions>> {
        (!shared.known.is_empty()).then(|| Arc::clone(shared))
    }

    /// How to get from one charset to the other; `None` without a table.
    pub fn find(&self, from: &[u8], to: &[u8]) -> Option<Transcoder> {
        let fits = |conversion: &&Conversion| {
            conversion.from.eq_ignore_ascii_case(from) && conversion.to.eq_ignore_ascii_case(to)
        };
        let table = self.known.iter().find(fits)?.table.clone();
        Some(Transcoder {
            table,
            begun: Vec::new(),
        })
    }
}

/// ASCII stays as it is unless a pair replaces it; other bytes without a pair
/// become `?`.
fn from_bytes<'a>(pairs: impl Iterator<Item = (u8, &'a [u8])>) -> Table {
    let mut table: Vec<Box<[u8]>> = (0..=u8::MAX)
        .map(|byte| {
            if byte.is_ascii() {
                [byte].into()
            } else {
                (*b"?").into()
            }
        })
        .collect();
    for (byte, text) in pairs {
        if let Some(entry) = table.get_mut(usize::from(byte)) {
            *entry = text.into();
        }
    }
    Table::FromBytes(table)
}

/// One body on its way from charset to charset.
#[derive(Debug)]
pub struct Transcoder {
    table: Arc<Table>,
    /// A character of utf-8 whose rest has not come yet: three bytes at most.
    begun: Vec<u8>,
}

impl Transcoder {
    /// The recoded form of `bytes`.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        match &*self.table {
            Table::FromBytes(table) => {
                for &byte in bytes {
                    out.extend_from_slice(table.get(usize::from(byte)).map_or(b"?", |text| text));
                }
            }
            Table::FromUtf8(table) => {
                let mut joined = std::mem::take(&mut self.begun);
                joined.extend_from_slice(bytes);
                self.begun = from_utf8(table, &joined, &mut out);
            }
        }
        out
    }

    /// The rest: a character that never came whole.
    pub fn finish(&mut self) -> &'static [u8] {
        if std::mem::take(&mut self.begun).is_empty() {
            b""
        } else {
            b"?"
        }
    }
}

/// Appends `bytes` in the charset of `table`; returns a character that has only
/// begun. A character that the charset lacks is written as HTML writes it.
fn from_utf8(table: &HashMap<char, u8>, mut bytes: &[u8], out: &mut Vec<u8>) -> Vec<u8> {
    let mut put = |text: &str| {
        for character in text.chars() {
            match table.get(&character) {
                Some(byte) => out.push(*byte),
                None if character.is_ascii() => out.push(character as u8),
                None => out.extend_from_slice(format!("&#{};", u32::from(character)).as_bytes()),
            }
        }
    };
    loop {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => {
                put(text);
                return Vec::new();
            }
            Err(error) => error,
        };
        let (good, rest) = bytes.split_at(error.valid_up_to());
        put(std::str::from_utf8(good).unwrap_or_default());
        let Some(bad) = error.error_len() else {
            return rest.to_vec();
        };
        put("?");
        bytes = rest.get(bad..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversions() -> Conversions {
        let map = |from: &str, to: &str, pairs: &[(u8, &[u8])]| CharsetMap {
            from: from.as_bytes().into(),
            to: to.as_bytes().into(),
            pairs: pairs
                .iter()
                .map(|(byte, text)| (*byte, (*text).into()))
                .collect(),
        };
        Conversions::new(&[
            map("koi8-r", "windows-1251", &[(0xc1, b"\xe0"), (b'X', b"Y")]),
            map(
                "koi8-r",
                "utf-8",
                &[(0xc1, "а".as_bytes()), (0xa3, "ё".as_bytes())],
            ),
        ])
    }

    #[test]
    fn maps_serve_both_ways() {
        let conversions = conversions();
        for (from, to, text, wanted) in [
            (
                "koi8-r",
                "windows-1251",
                &b"aX\xc1\xff"[..],
                &b"aY\xe0?"[..],
            ),
            ("WINDOWS-1251", "KOI8-R", b"aY\xe0\xff", b"aX\xc1?"),
            ("koi8-r", "utf-8", b"X\xc1\xa3\xff", "Xаё?".as_bytes()),
            ("utf-8", "koi8-r", "Xаё€".as_bytes(), b"X\xc1\xa3&#8364;"),
            ("utf-8", "koi8-r", b"a\xffb\xd0", b"a?b?"),
        ] {
            // However the body is cut, it comes out the same.
            for cut in 0..=text.len() {
                let mut transcoder = conversions.find(from.as_bytes(), to.as_bytes()).unwrap();
                let (one, two) = text.split_at(cut);
                let mut out = transcoder.push(one);
                out.extend(transcoder.push(two));
                out.extend_from_slice(transcoder.finish());
                assert_eq!(out, wanted, "{from} to {to}, cut at {cut}");
            }
        }
        assert!(conversions.find(b"windows-1251", b"utf-8").is_none());
    }
}
