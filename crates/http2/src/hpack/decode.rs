//! Field blocks, decoded (RFC 7541 §3, §6). Fields are appended to a buffer of the
//! caller's, name and value behind each other, so that a head costs no allocation.

use super::static_table::FIELDS;
use super::table::Table;
use super::{HpackError, TABLE_BYTES, huffman, integer};

/// The state of one direction of a connection: the peer's dynamic table.
#[derive(Debug, Default)]
pub struct Decoder {
    table: Table,
}

/// A field block that is being read. One that is not read to its end leaves the decoder
/// in a state that fits no further block.
#[derive(Debug)]
pub struct BlockReader<'a> {
    rest: &'a [u8],
    has_field: bool,
}

/// How long the name and the value are that were just appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedField {
    /// Length of the name.
    pub name_len: usize,
    /// Length of the value, which follows the name.
    pub value_len: usize,
}

impl<'a> BlockReader<'a> {
    /// Begins with a whole field block.
    pub fn new(block: &'a [u8]) -> Self {
        BlockReader {
            rest: block,
            has_field: false,
        }
    }

    #[inline]
    fn integer(&mut self, first: u8, prefix_bits: u32) -> Result<u32, HpackError> {
        integer::read(first, prefix_bits, &mut self.rest)
    }

    #[inline]
    fn next_byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Appends a string (§5.2) to `out`.
    fn string(&mut self, out: &mut Vec<u8>) -> Result<(), HpackError> {
        let first = self.next_byte().ok_or(HpackError::Truncated)?;
        let length = self.integer(first, 7)?;
        let split = self.rest.split_at_checked(length as usize);
        let (text, rest) = split.ok_or(HpackError::Truncated)?;
        self.rest = rest;
        if first & 0x80 != 0 {
            return huffman::decode(text, out);
        }
        out.extend_from_slice(text);
        Ok(())
    }
}

impl Decoder {
    /// Appends the next field of a block to `out`; `None` at the block's end.
    ///
    /// # Errors
    /// The connection cannot go on.
    #[inline]
    pub fn next_field(
        &mut self,
        block: &mut BlockReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<DecodedField>, HpackError> {
        loop {
            let Some(first) = block.next_byte() else {
                return Ok(None);
            };
            if first & 0xe0 == 0x20 {
                self.change_size(first, block)?;
                continue;
            }
            block.has_field = true;
            let field = match first {
                0x80.. => self.indexed(first, block, out),
                0x40.. => self.literal(first, 6, block, out),
                _ => self.literal(first, 4, block, out),
            };
            return field.map(Some);
        }
    }

    /// §6.3: only before the first field of a block (§4.2), and not above our limit.
    fn change_size(&mut self, first: u8, block: &mut BlockReader<'_>) -> Result<(), HpackError> {
        if block.has_field {
            return Err(HpackError::LateTableSize);
        }
        let size = block.integer(first, 5)?;
        if size as usize > TABLE_BYTES {
            return Err(HpackError::TableTooLarge(size));
        }
        self.table.set_max_bytes(size as usize);
        Ok(())
    }

    /// §6.1.
    #[inline]
    fn indexed(
        &mut self,
        first: u8,
        block: &mut BlockReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<DecodedField, HpackError> {
        let index = block.integer(first, 7)?;
        let (name, value) = self.field(index)?;
        out.extend_from_slice(name);
        out.extend_from_slice(value);
        Ok(DecodedField {
            name_len: name.len(),
            value_len: value.len(),
        })
    }

    /// §6.2: with a prefix of six bits the field is inserted in the table.
    fn literal(
        &mut self,
        first: u8,
        prefix_bits: u32,
        block: &mut BlockReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<DecodedField, HpackError> {
        let start = out.len();
        match block.integer(first, prefix_bits)? {
            0 => block.string(out)?,
            index => out.extend_from_slice(self.field(index)?.0),
        }
        let name_len = out.len() - start;
        block.string(out)?;
        if prefix_bits == 6 {
            self.table
                .insert(out.get(start..).unwrap_or_default(), name_len);
        }
        Ok(DecodedField {
            name_len,
            value_len: out.len() - start - name_len,
        })
    }

    /// The field at an index of both tables (§2.3.3).
    #[inline]
    fn field(&self, index: u32) -> Result<(&[u8], &[u8]), HpackError> {
        let invalid = HpackError::InvalidIndex(index);
        let at = (index as usize).checked_sub(1).ok_or(invalid)?;
        match FIELDS.get(at) {
            Some(&field) => Ok(field),
            None => self.table.field(at - FIELDS.len()).ok_or(invalid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a block as text.
    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<String, HpackError> {
        let mut reader = BlockReader::new(block);
        let (mut out, mut text) = (Vec::new(), String::new());
        while let Some(field) = decoder.next_field(&mut reader, &mut out)? {
            let (name, value) = out.split_at(field.name_len);
            assert_eq!(value.len(), field.value_len);
            for part in [name, b"=", value, b"\n"] {
                text.push_str(std::str::from_utf8(part).unwrap());
            }
            out.clear();
        }
        Ok(text)
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let hex = hex.replace(' ', "");
        let digits = (0..hex.len()).step_by(2);
        digits
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn the_requests_of_the_standard_are_decoded() {
        // RFC 7541 C.3 (plain) and C.4 (Huffman).
        for blocks in [
            [
                "828684410f7777772e6578616d706c652e636f6d",
                "828684be58086e6f2d6361636865",
                "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
            ],
            [
                "828684418cf1e3c2e5f23a6ba0ab90f4ff",
                "828684be5886a8eb10649cbf",
                "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
            ],
        ] {
            let mut decoder = Decoder::default();
            let host = ":authority=www.example.com\n";
            let first = format!(":method=GET\n:scheme=http\n:path=/\n{host}");
            assert_eq!(decode(&mut decoder, &bytes(blocks[0])), Ok(first.clone()));
            let second = first + "cache-control=no-cache\n";
            assert_eq!(decode(&mut decoder, &bytes(blocks[1])), Ok(second));
            let third = ":method=GET\n:scheme=https\n:path=/index.html\n".to_owned()
                + host
                + "custom-key=custom-value\n";
            assert_eq!(decode(&mut decoder, &bytes(blocks[2])), Ok(third));
        }
    }

    #[test]
    fn the_responses_of_the_standard_evict_fields() {
        // RFC 7541 C.5, with a table of 256 bytes.
        let mut decoder = Decoder::default();
        let first = "3fe101 4803333032580770726976617465611d4d6f6e2c203231204f6374203230313320\
                     32303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d";
        let rest = "cache-control=private\ndate=Mon, 21 Oct 2013 20:13:21 GMT\n\
                    location=https://www.example.com\n";
        assert_eq!(
            decode(&mut decoder, &bytes(first)),
            Ok(format!(":status=302\n{rest}"))
        );
        let second = bytes("4803333037c1c0bf");
        assert_eq!(
            decode(&mut decoder, &second),
            Ok(format!(":status=307\n{rest}"))
        );
        let third = "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04\
                     677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49\
                     553b206d61782d6167653d333630303b2076657273696f6e3d31";
        let expected = ":status=200\ncache-control=private\ndate=Mon, 21 Oct 2013 20:13:22 GMT\n\
                        location=https://www.example.com\ncontent-encoding=gzip\n\
                        set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n";
        assert_eq!(decode(&mut decoder, &bytes(third)), Ok(expected.to_owned()));
    }

    #[test]
    fn what_does_not_decode_is_refused() {
        use HpackError::*;
        for (block, error) in [
            ("80", InvalidIndex(0)),
            ("be", InvalidIndex(62)),
            ("ff80ffff7f", InvalidIndex((1 << 28) - 1)),
            ("ffffffffff", IntegerTooLarge),
            ("ff", Truncated),
            ("40", Truncated),
            ("4003", Truncated),
            ("40036162", Truncated),
            ("4001 61", Truncated),
            ("4001 61 02 62", Truncated),
            ("7e", InvalidIndex(62)),
            ("0f2f", InvalidIndex(62)),
            ("00 01 61 81 00", InvalidHuffman),
            ("82 20", LateTableSize),
            ("3fe21f", TableTooLarge(4097)),
            ("20 82 be", InvalidIndex(62)),
        ] {
            let mut decoder = Decoder::default();
            assert_eq!(decode(&mut decoder, &bytes(block)), Err(error), "{block}");
        }
        let mut decoder = Decoder::default();
        // An encoder whose table shrank and grew sends two updates at the start.
        assert_eq!(
            decode(&mut decoder, &bytes("203fe11f82")),
            Ok(":method=GET\n".into())
        );
        assert_eq!(decode(&mut decoder, &[]), Ok(String::new()));
    }
}
