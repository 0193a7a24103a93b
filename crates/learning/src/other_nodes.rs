//! The entries by which machines in front of the same database report the writes of their programs to each other
//! (`cache_nodes`).
//!
//! ```text
//! answer of the database ─► Book::entry_of ─► WrittenEntry ─► OtherNodes::tell ─► acknowledgement to PHP
//! entry of another node ─► Learning::written_elsewhere ─► Book::written_elsewhere
//! ```
//!
//! An entry names database servers and, of each, the tables that were written: no statement and no value. One that is too
//! long, or is not understood, means everything.
//!
//! ```text
//! entry     version 1, count of servers, servers; none: everything anywhere
//! server    name as PHP reached it, its identity (empty: not known), kind, tables
//! kind      1 tables, each its database and its name; 2 everything; 3 the same, definitions too
//! text      length of two bytes, the least first; UTF-8
//! ```

use std::collections::BTreeSet;
use std::pin::Pin;

/// The other machines.
pub trait OtherNodes: Send + Sync + 'static {
    /// Tells an entry to all of them. Resolves once it holds on each, or its node shows nothing that is stored any more.
    fn tell(&self, entry: Vec<u8>) -> NodesKnow;
}

/// Resolves once all nodes know.
pub type NodesKnow = Pin<Box<dyn Future<Output = ()> + Send>>;

const VERSION: u8 = 1;

/// Servers of one entry; with more, it is everything anywhere.
const MAX_SERVERS: usize = 8;

/// Tables of one server; with more, it is everything on that server.
const MAX_TABLES: usize = 64;

/// Bytes of an entry: the engine keeps many. A longer one has everything in the place of tables.
const MAX_BYTES: usize = 4096;

/// A longer name is not sent.
const MAX_NAME_BYTES: usize = 300;

const TABLES: u8 = 1;
const EVERYTHING: u8 = 2;
const DEFINITIONS: u8 = 3;

/// A table by its database and name.
pub type TableName = (String, String);

/// The part of one server's data that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenPart {
    Tables(BTreeSet<TableName>),
    Everything,
    /// Everything, and tables may not be what they were.
    Definitions,
}

/// A server, and what was written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenServer {
    /// The address by which PHP reached it.
    pub name: String,
    /// The identity that it reports; empty: it is not known.
    pub identity: String,
    pub part: WrittenPart,
}

/// The writes that one node reports to the others. Without servers: everything, anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenEntry {
    pub servers: Vec<WrittenServer>,
}

impl WrittenPart {
    fn add(&mut self, other: WrittenPart) {
        let sum = match (std::mem::replace(self, WrittenPart::Everything), other) {
            (WrittenPart::Definitions, _) | (_, WrittenPart::Definitions) => {
                WrittenPart::Definitions
            }
            (WrittenPart::Tables(mut tables), WrittenPart::Tables(others)) => {
                tables.extend(others);
                match tables.len() <= MAX_TABLES {
                    true => WrittenPart::Tables(tables),
                    false => WrittenPart::Everything,
                }
            }
            _ => WrittenPart::Everything,
        };
        *self = sum;
    }
}

impl WrittenEntry {
    /// Everything, anywhere.
    pub fn is_everything(&self) -> bool {
        self.servers.is_empty()
    }

    /// Says this as well, of an entry that is not everything; `false`: there are too many servers.
    #[must_use]
    pub fn add(&mut self, written: WrittenServer) -> bool {
        let is_same =
            |it: &WrittenServer| (&it.name, &it.identity) == (&written.name, &written.identity);
        let is_full = self.servers.len() >= MAX_SERVERS;
        let known = self.servers.iter().position(is_same);
        match known.and_then(|at| self.servers.get_mut(at)) {
            Some(known) => known.part.add(written.part),
            None if is_full => return false,
            None => self.servers.push(written),
        }
        true
    }

    /// Both of them.
    pub fn and(mut self, other: WrittenEntry) -> WrittenEntry {
        let is_everything = self.is_everything() || other.is_everything();
        match !is_everything && other.servers.into_iter().all(|it| self.add(it)) {
            true => self,
            false => WrittenEntry::default(),
        }
    }

    /// In about [`MAX_BYTES`] at most.
    pub fn encode(&self) -> Vec<u8> {
        let whole = self.encode_as(put_part);
        match whole.len() <= MAX_BYTES {
            true => whole,
            false => self.encode_as(|out, part| match part {
                WrittenPart::Tables(_) => out.push(EVERYTHING),
                other => put_part(out, other),
            }),
        }
    }

    fn encode_as(&self, put_part: impl Fn(&mut Vec<u8>, &WrittenPart)) -> Vec<u8> {
        let mut out = vec![VERSION, u8::try_from(self.servers.len()).unwrap_or(0)];
        for server in &self.servers {
            if server.name.len() > MAX_NAME_BYTES {
                return vec![VERSION, 0];
            }
            put(&mut out, &server.name);
            let is_sent = server.identity.len() <= MAX_NAME_BYTES;
            put(&mut out, if is_sent { &server.identity } else { "" });
            put_part(&mut out, &server.part);
        }
        out
    }

    /// Decodes an entry. Bytes that cannot be read mean everything, anywhere.
    pub fn decode(bytes: &[u8]) -> WrittenEntry {
        read(bytes).unwrap_or_default()
    }
}

/// Two entries in one, for those that wait for the log at the same time.
pub fn merged(one: &[u8], other: &[u8]) -> Vec<u8> {
    let merged = WrittenEntry::decode(one).and(WrittenEntry::decode(other));
    merged.encode()
}

fn put_part(out: &mut Vec<u8>, part: &WrittenPart) {
    let tables = match part {
        WrittenPart::Tables(tables) => tables,
        WrittenPart::Everything => return out.push(EVERYTHING),
        WrittenPart::Definitions => return out.push(DEFINITIONS),
    };
    let is_short = |(database, name): &TableName| {
        database.len() <= MAX_NAME_BYTES && name.len() <= MAX_NAME_BYTES
    };
    let count = u8::try_from(tables.len()).ok();
    match count.filter(|_| tables.len() <= MAX_TABLES && tables.iter().all(is_short)) {
        None => out.push(EVERYTHING),
        Some(count) => {
            out.extend([TABLES, count]);
            for (database, name) in tables {
                put(out, database);
                put(out, name);
            }
        }
    }
}

/// A text of at most [`MAX_NAME_BYTES`].
fn put(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(0);
    out.extend(length.to_le_bytes());
    out.extend(text.as_bytes().iter().take(usize::from(length)));
}

fn read(mut bytes: &[u8]) -> Option<WrittenEntry> {
    let bytes = &mut bytes;
    if byte(bytes)? != VERSION {
        return None;
    }
    let mut entry = WrittenEntry::default();
    for _ in 0..byte(bytes)? {
        let server = WrittenServer {
            name: text(bytes)?,
            identity: text(bytes)?,
            part: part(bytes)?,
        };
        entry.add(server).then_some(())?;
    }
    bytes.is_empty().then_some(entry)
}

fn part(bytes: &mut &[u8]) -> Option<WrittenPart> {
    Some(match byte(bytes)? {
        TABLES => {
            let count = byte(bytes)?;
            let tables = (0..count).map(|_| Some((text(bytes)?, text(bytes)?)));
            WrittenPart::Tables(tables.collect::<Option<_>>()?)
        }
        EVERYTHING => WrittenPart::Everything,
        DEFINITIONS => WrittenPart::Definitions,
        _ => return None,
    })
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(names: &[&str]) -> WrittenPart {
        let names = names.iter().map(|it| ("blog".to_owned(), (*it).to_owned()));
        WrittenPart::Tables(names.collect())
    }

    fn entry(parts: &[(&str, &str, WrittenPart)]) -> WrittenEntry {
        let servers = parts.iter().map(|(name, identity, part)| WrittenServer {
            name: (*name).to_owned(),
            identity: (*identity).to_owned(),
            part: part.clone(),
        });
        WrittenEntry {
            servers: servers.collect(),
        }
    }

    #[test]
    fn an_entry_comes_back_and_what_is_not_understood_is_everything() {
        let entries = [
            entry(&[("10.0.0.1:3306", "uid", tables(&["post", "wp_options"]))]),
            entry(&[
                ("a", "", WrittenPart::Everything),
                ("b", "x", WrittenPart::Definitions),
            ]),
            WrittenEntry::default(),
        ];
        for written in entries {
            let bytes = written.encode();
            assert_eq!(WrittenEntry::decode(&bytes), written);
            let long = [&bytes[..], b"x"].concat();
            assert!(WrittenEntry::decode(&long).is_everything(), "{written:?}");
            for length in 0..bytes.len() {
                let cut = WrittenEntry::decode(&bytes[..length]);
                assert!(cut.is_everything(), "{written:?} {length}");
            }
        }
        let mut bytes = entry(&[("a", "", WrittenPart::Everything)]).encode();
        bytes[0] = VERSION + 1;
        assert!(WrittenEntry::decode(&bytes).is_everything());
    }

    #[test]
    fn what_is_too_much_for_an_entry_is_more_and_never_less() {
        let names: Vec<String> = (0..=MAX_TABLES).map(|it| format!("t{it}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (most, last) = names.split_at(MAX_TABLES);
        let (most, last) = (tables(most), tables(last));
        let one = entry(&[("a", "", most.clone())]);
        assert_eq!(WrittenEntry::decode(&one.encode()), one);
        let both = one.clone().and(entry(&[("a", "", last.clone())]));
        assert_eq!(both, entry(&[("a", "", WrittenPart::Everything)]));
        // Another server, or what may be one, is another part.
        let apart = one.clone().and(entry(&[("a", "x", last.clone())]));
        assert_eq!(apart, entry(&[("a", "", most), ("a", "x", last)]));
        let servers: Vec<String> = (0..=MAX_SERVERS).map(|it| format!("s{it}")).collect();
        let many = servers.iter().map(|it| entry(&[(it, "", tables(&["t"]))]));
        let many = many.reduce(WrittenEntry::and).unwrap();
        assert!(many.is_everything());
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let decoded = WrittenEntry::decode(&entry(&[("a", &long, tables(&[&long]))]).encode());
        assert_eq!(decoded, entry(&[("a", "", WrittenPart::Everything)]));
        let wide: Vec<String> = (0..MAX_TABLES)
            .map(|it| format!("{it}{:x<100}", ""))
            .collect();
        let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
        let decoded = WrittenEntry::decode(&entry(&[("a", "x", tables(&wide))]).encode());
        assert_eq!(decoded, entry(&[("a", "x", WrittenPart::Everything)]));
        let decoded = entry(&[(&long, "", tables(&["t"]))]).encode();
        assert!(WrittenEntry::decode(&decoded).is_everything());
    }

    #[test]
    fn entries_that_wait_together_are_told_as_one() {
        let one = entry(&[("a", "x", tables(&["post"]))]);
        let other = entry(&[("a", "x", tables(&["user"])), ("b", "", tables(&["t"]))]);
        let both = merged(&one.encode(), &other.encode());
        let expected = entry(&[
            ("a", "x", tables(&["post", "user"])),
            ("b", "", tables(&["t"])),
        ]);
        assert_eq!(WrittenEntry::decode(&both), expected);
        let definitions = entry(&[("a", "x", WrittenPart::Definitions)]);
        let all = merged(&both, &definitions.encode());
        let part = &WrittenEntry::decode(&all).servers[0].part;
        assert_eq!(*part, WrittenPart::Definitions);
        let anywhere = merged(&all, b"nonsense");
        assert!(WrittenEntry::decode(&anywhere).is_everything());
    }
}
