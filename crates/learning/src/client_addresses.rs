//! Statements that look something up by the visitor's address: the page that they make is that visitor's. Plug-ins for polls
//! and counters know in this way who has voted.
//!
//! The address is recognised as a whole value: as text, as a number, in bytes, as the network around it, and by the hashes that
//! need no secret. A statement that only writes such a value shapes no page.

use std::net::IpAddr;

use aws_lc_rs::digest;
use learned::Value;
use md5::{Digest, Md5};

use crate::record::{Reason, RunRecord, SentStatement, WhyNot};
use crate::{php_report, statement_text};

/// Smaller numbers stand for other things as well.
const MIN_NUMBER: u32 = 1 << 24;

/// How the database was asked by the visitor's address.
pub struct AddressUse {
    /// The first statement, for people.
    shown: String,
    /// Statements that find a row if another visitor may get another page. `None`: no such statements are known.
    pub lookups: Option<Vec<SentStatement>>,
}

impl AddressUse {
    /// `None`: none of these addresses was looked up.
    pub fn of(record: &RunRecord, clients: &[IpAddr]) -> Option<AddressUse> {
        if record.statements.is_empty() || clients.is_empty() {
            return None;
        }
        let clients = ClientAddresses::of(clients.iter().copied());
        let mut found = clients.looked_up(&record.statements).peekable();
        let shown = statement_text::without_values(&found.peek()?.text);
        let lookups: Option<Vec<_>> = found.map(|it| clients.by_any(it)).collect();
        Some(AddressUse {
            shown: php_report::shown(&shown),
            lookups: lookups.map(|it| it.into_iter().flatten().collect()),
        })
    }

    /// Notes in the record of the page that it is one visitor's, and why it is not known to be for others.
    pub fn note_in(&self, record: &mut RunRecord, why: &str) {
        let why = format!("{} ({why})", self.shown);
        record.obstacle = Some(WhyNot::new(Reason::AddressDatabase, why));
    }
}

/// The addresses that PHP may have seen for one request, in the forms in which a statement may have them.
#[derive(Debug, Default)]
struct ClientAddresses {
    texts: Vec<Vec<u8>>,
    numbers: Vec<i64>,
}

impl ClientAddresses {
    fn of(addresses: impl IntoIterator<Item = IpAddr>) -> ClientAddresses {
        let mut all = ClientAddresses::default();
        for address in addresses {
            all.add(address.to_canonical());
        }
        all
    }

    fn add(&mut self, address: IpAddr) {
        let text = address.to_string();
        let bytes = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        if let IpAddr::V4(address) = address {
            let [a, b, c, _] = address.octets();
            self.texts.push(format!("{a}.{b}.{c}.0").into_bytes());
            self.add_number(address.to_bits());
        }
        for hashed in [text.as_bytes(), &bytes] {
            let sha1 = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, hashed);
            let crc = crc32fast::hash(hashed);
            self.add_number(crc);
            self.texts.push(hex(&Md5::digest(hashed)));
            self.texts.push(hex(sha1.as_ref()));
            self.texts.push(hex(&crc.to_be_bytes()));
        }
        self.texts.push(hex(&bytes));
        self.texts.push(bytes);
        self.texts.push(text.into_bytes());
    }

    fn add_number(&mut self, number: u32) {
        if number >= MIN_NUMBER {
            self.numbers.push(number.into());
        }
    }

    /// The statements that read by one of the addresses.
    fn looked_up<'a>(
        &'a self,
        statements: &'a [SentStatement],
    ) -> impl Iterator<Item = &'a SentStatement> {
        let reading = statements.iter().filter(|it| reads(&it.text));
        reading.filter(|statement| {
            let mut parameters = statement.parameters.iter();
            parameters.any(|value| self.is_value(value))
                || literals(&statement.text).any(|literal| self.is_literal(literal))
        })
    }

    /// Statements that find a row if this one may return something else to another visitor.
    fn by_any(&self, statement: &SentStatement) -> Option<Vec<SentStatement>> {
        statement.again_in.as_ref()?;
        let is_address = |value: &Value| self.is_value(value);
        let SentStatement {
            text,
            parameters,
            session,
            ..
        } = statement;
        let texts = learned::lookups_by_any_address(text, parameters, session, &is_address)?;
        let lookups = texts.into_iter().map(|text| SentStatement {
            text: text.into_bytes(),
            parameters: Vec::new(),
            is_prepared: false,
            result: 0,
            ..statement.clone()
        });
        Some(lookups.collect())
    }

    fn is_value(&self, value: &Value) -> bool {
        match value {
            Value::Integer(number) => self.numbers.contains(number),
            Value::Text(text) => self.is_literal(text),
            Value::Null | Value::Other => false,
        }
    }

    /// `text` is as the statement has it, without its quotes.
    fn is_literal(&self, text: &[u8]) -> bool {
        // A pattern of LIKE may go on.
        let text = text.strip_suffix(b"%").unwrap_or(text);
        let number = str::from_utf8(text).ok().and_then(|it| it.parse().ok());
        number.is_some_and(|number| self.numbers.contains(&number))
            || self.texts.iter().any(|it| it.eq_ignore_ascii_case(text))
    }
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<String>().into_bytes()
}

fn reads(statement: &[u8]) -> bool {
    let is_opening = |byte: &u8| *byte == b'(' || byte.is_ascii_whitespace();
    let start = statement.iter().position(|byte| !is_opening(byte));
    let start = statement.get(start.unwrap_or(0)..).unwrap_or_default();
    let writes = [
        "insert", "update", "delete", "replace", "set", "call", "load", "truncate",
    ];
    !writes.iter().any(|word| {
        let begin = start.get(..word.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Texts in quotes, without them, and words that begin with a digit; one behind `0x` without that.
fn literals(statement: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = statement;
    std::iter::from_fn(move || {
        loop {
            let first = *rest.first()?;
            let is_quote = matches!(first, b'\'' | b'"' | b'`');
            let length = match is_quote {
                true => closing_quote(rest, first),
                false => rest.iter().position(|byte| !is_of_word(*byte)),
            };
            let end = length.map_or(rest.len(), |length| length + usize::from(is_quote));
            let word = rest.get(usize::from(is_quote)..end).unwrap_or_default();
            let behind = end.max(1) + usize::from(is_quote && length.is_some());
            rest = rest.get(behind..).unwrap_or_default();
            if is_quote {
                return Some(word);
            }
            if first.is_ascii_digit() {
                return Some(word.strip_prefix(b"0x").unwrap_or(word));
            }
        }
    })
}

/// How many bytes are between the quotes.
fn closing_quote(text: &[u8], quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().skip(1).position(|byte| {
        let is_end = *byte == quote && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped && quote != b'`';
        is_end
    })
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::book::tests::reads as reading;

    fn statement(text: &str, parameters: &[Value]) -> SentStatement {
        let mut statement = reading(&[text]).statements.remove(0);
        statement.parameters = parameters.to_vec();
        statement
    }

    #[test]
    fn statement_that_looks_up_an_address_or_a_hash_of_it_is_found() {
        let addresses = ClientAddresses::of([
            Ipv4Addr::new(203, 0, 113, 9).into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ]);
        for (text, is_found) in [
            ("SELECT id FROM votes WHERE ip = '203.0.113.9'", true),
            ("SELECT id FROM votes WHERE ip = \"203.0.113.9\"", true),
            ("(SELECT id FROM votes WHERE ip LIKE '203.0.113.9%')", true),
            ("SELECT id FROM votes WHERE ip = '203.0.113.0'", true),
            (
                "SELECT 1 FROM votes WHERE name = 'it\\'s' AND ip = '203.0.113.9'",
                true,
            ),
            ("SELECT 1 FROM votes WHERE ip = 3405803785", true),
            ("SELECT 1 FROM votes WHERE ip = X'cb007109'", true),
            ("SELECT 1 FROM votes WHERE ip = 0xCB007109", true),
            ("SELECT 1 FROM votes WHERE ip = '2001:db8::1'", true),
            ("SELECT 1 FROM votes WHERE ip = '203.0.113.10'", false),
            (
                "SELECT 1 FROM options WHERE url = 'http://203.0.113.9/'",
                false,
            ),
            ("INSERT INTO visits (ip) VALUES ('203.0.113.9')", false),
            ("SELECT 'it''s', `203.0.113.8`, 'open", false),
            ("", false),
        ] {
            let all = [statement(text, &[])];
            assert_eq!(
                addresses.looked_up(&all).next().is_some(),
                is_found,
                "{text}"
            );
        }
        for (value, is_found) in [
            (Value::Text(b"203.0.113.9".into()), true),
            (Value::Text(vec![203, 0, 113, 9]), true),
            (Value::Integer(3_405_803_785), true),
            (Value::Text(b"203.0.113.91".into()), false),
            (Value::Integer(9), false),
            (Value::Null, false),
        ] {
            let all = [statement(
                "SELECT 1 FROM votes WHERE ip = ?",
                std::slice::from_ref(&value),
            )];
            assert_eq!(
                addresses.looked_up(&all).next().is_some(),
                is_found,
                "{value:?}"
            );
        }
    }

    #[test]
    fn hashes_are_those_of_php() {
        let address = ClientAddresses::of([Ipv4Addr::new(203, 0, 113, 9).into()]);
        for hash in HASHES {
            assert!(address.is_literal(hash.as_bytes()), "{hash}");
        }
        let mapped = "::ffff:203.0.113.9".parse().unwrap();
        assert!(ClientAddresses::of([mapped]).is_literal(b"203.0.113.9"));
        let low = ClientAddresses::of([Ipv4Addr::new(0, 0, 0, 5).into()]);
        assert!(
            !low.is_literal(b"5"),
            "numbers of this size stand for anything"
        );
    }

    /// `md5`, `sha1`, `crc32`, and `hash('crc32b')` of the text.
    const HASHES: [&str; 4] = [
        "8226d05ff811db619a466d17b0b2d1bb",
        "a7cd483b603362ea1fa39d12686e7d8e7aecec65",
        "3138279537",
        "bb0e5871",
    ];
}
