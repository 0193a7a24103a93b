//! Field blocks, decoded (RFC 9204 §4.5). No dynamic table was offered: what refers to one
//! cannot be read, and ends the connection.

use http_semantics::Version;
use http2::hpack::{DecodedField, huffman, integer};
use http2::{FieldSource, HeadBuffer, HeadLimits, RequestError, RequestFacts};

use super::static_table::FIELDS;
use crate::error::{Code, Error};

/// Reads a request head into `buffer`.
///
/// # Errors
/// Outside, those of the connection; inside, those of the request.
pub fn read_request(
    block: &[u8],
    limits: &HeadLimits,
    buffer: &mut HeadBuffer,
) -> Result<Result<RequestFacts, RequestError>, Error> {
    let mut source = Block::new(block)?;
    http2::read_head(&mut source, Version::Http3, limits, buffer)
}

/// Reads trailers, which are checked and otherwise left out.
///
/// # Errors
/// As [`read_request`].
pub fn read_trailers(block: &[u8], limits: &HeadLimits) -> Result<Result<(), RequestError>, Error> {
    let mut source = Block::new(block)?;
    http2::read_trailer_fields(&mut source, limits, &mut HeadBuffer::new())
}

/// A field block that is being read.
#[derive(Debug)]
pub struct Block<'a>(&'a [u8]);

fn broken(reason: &'static str) -> Error {
    Error::new(Code::QPACK_DECOMPRESSION_FAILED, reason)
}

const TRUNCATED: &str = "sent a field block that ends within a field";
const NO_TABLE: &str = "refers to a dynamic table that was not offered";

impl<'a> Block<'a> {
    /// Begins with a whole field block.
    ///
    /// # Errors
    /// Its prefix is broken or asks for a dynamic table (§4.5.1).
    pub fn new(block: &'a [u8]) -> Result<Block<'a>, Error> {
        let mut block = Block(block);
        let first = block.next_byte()?;
        let required = block.integer(first, 8)?;
        let first = block.next_byte()?;
        block.integer(first, 7)?;
        match required {
            0 => Ok(block),
            _ => Err(broken(NO_TABLE)),
        }
    }

    #[inline]
    fn next_byte(&mut self) -> Result<u8, Error> {
        let (&first, rest) = self.0.split_first().ok_or(broken(TRUNCATED))?;
        self.0 = rest;
        Ok(first)
    }

    #[inline]
    fn integer(&mut self, first: u8, prefix_bits: u32) -> Result<u32, Error> {
        let read = integer::read(first, prefix_bits, &mut self.0);
        read.map_err(|_| broken("sent a field block with a broken integer"))
    }

    /// Appends a string whose length has this prefix, above which is the bit of Huffman.
    fn string(&mut self, first: u8, prefix_bits: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let length = self.integer(first, prefix_bits)? as usize;
        let (text, rest) = self.0.split_at_checked(length).ok_or(broken(TRUNCATED))?;
        self.0 = rest;
        if first & 1 << prefix_bits != 0 {
            let decoded = huffman::decode(text, out);
            return decoded.map_err(|_| broken("sent an invalid Huffman code"));
        }
        out.extend_from_slice(text);
        Ok(())
    }

    fn value(&mut self, name_len: usize, out: &mut Vec<u8>) -> Result<DecodedField, Error> {
        let start = out.len();
        let first = self.next_byte()?;
        self.string(first, 7, out)?;
        Ok(DecodedField {
            name_len,
            value_len: out.len() - start,
        })
    }

    fn read_field(&mut self, first: u8, out: &mut Vec<u8>) -> Result<DecodedField, Error> {
        let of_table = |index: u32| {
            let field = FIELDS.get(index as usize);
            field.ok_or(broken("sent an invalid index of the static table"))
        };
        match first {
            // Indexed field line (§4.5.2).
            0xc0.. => {
                let (name, value) = of_table(self.integer(first, 6)?)?;
                out.extend_from_slice(name);
                out.extend_from_slice(value);
                Ok(DecodedField {
                    name_len: name.len(),
                    value_len: value.len(),
                })
            }
            // Literal with a name of the static table (§4.5.4).
            0x50..=0x5f | 0x70..=0x7f => {
                let (name, _) = of_table(self.integer(first, 4)?)?;
                out.extend_from_slice(name);
                self.value(name.len(), out)
            }
            // Literal with a literal name (§4.5.6).
            0x20..=0x3f => {
                let start = out.len();
                self.string(first, 3, out)?;
                let name_len = out.len() - start;
                self.value(name_len, out)
            }
            _ => Err(broken(NO_TABLE)),
        }
    }
}

impl FieldSource for Block<'_> {
    type Error = Error;

    fn next_field(&mut self, out: &mut Vec<u8>) -> Result<Option<DecodedField>, Error> {
        let Some((&first, rest)) = self.0.split_first() else {
            return Ok(None);
        };
        self.0 = rest;
        self.read_field(first, out).map(Some)
    }

    fn too_large() -> Error {
        Error::new(Code::EXCESSIVE_LOAD, "sent too large a field block")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(block: &[u8]) -> Result<Vec<(String, String)>, Code> {
        let mut block = Block::new(block).map_err(|error| error.code)?;
        let (mut fields, mut out) = (Vec::new(), Vec::new());
        while let Some(field) = block.next_field(&mut out).map_err(|error| error.code)? {
            let value = String::from_utf8(out.split_off(field.name_len)).unwrap();
            fields.push((String::from_utf8(std::mem::take(&mut out)).unwrap(), value));
        }
        Ok(fields)
    }

    #[test]
    fn the_example_of_the_standard_is_read() {
        // RFC 9204 §B.1.
        let block = b"\x00\x00\x51\x0b/index.html";
        let expected = (":path".to_owned(), "/index.html".to_owned());
        assert_eq!(fields(block), Ok(vec![expected]));
    }

    #[test]
    fn a_dynamic_table_is_refused() {
        for block in [
            &b"\x01\x00"[..],
            b"\x00\x00\x80",
            b"\x00\x00\x40\x00",
            b"\x00\x00\x10",
            b"\x00\x00\x00\x00",
            // Beyond the static table.
            b"\x00\x00\xff\x24",
            b"\x00\x00\x51\x05/",
            b"\x00",
            b"",
        ] {
            assert_eq!(
                fields(block),
                Err(Code::QPACK_DECOMPRESSION_FAILED),
                "{block:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(block in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_request(&block, &HeadLimits::default(), &mut HeadBuffer::new());
            let _ = read_trailers(&block, &HeadLimits::default());
        }
    }
}
