//! Bytes of one direction become packets: a length of three bytes, a sequence number, a payload.
//!
//! A payload of 16 MB less one byte goes on in the next packet. The reader keeps the head of each
//! payload up to a limit and passes all of it on in parts, so that a long result is hashed as it
//! comes and never held.

/// The length of a packet whose payload goes on in the next one.
const FULL_PACKET: u32 = 0xff_ffff;

#[derive(Debug)]
pub(crate) enum Piece<'a> {
    /// Some bytes of the payload, at least one.
    Part(&'a [u8]),
    /// The header of a packet: its sequence number.
    Header(u8),
    /// The payload is complete.
    End,
}

#[derive(Debug)]
pub(crate) struct PacketReader {
    header: [u8; 4],
    header_bytes: usize,
    /// Bytes of the packet whose header was read that are still to come.
    remaining: Option<u32>,
    last_is_full: bool,
    /// Whether the last call returned `End`: the next byte begins a payload.
    is_between: bool,
    kept: Vec<u8>,
    most_kept: usize,
    length: u64,
}

impl PacketReader {
    pub(crate) fn new(most_kept: usize) -> Self {
        Self {
            header: [0; 4],
            header_bytes: 0,
            remaining: None,
            last_is_full: false,
            is_between: true,
            kept: Vec::new(),
            most_kept,
            length: 0,
        }
    }

    /// The next piece of `bytes`, or `None` once all of them are used.
    pub(crate) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Piece<'a>> {
        let Some(remaining) = self.remaining else {
            return self.read_header(bytes);
        };
        if remaining == 0 {
            self.remaining = None;
            if self.last_is_full {
                return self.read_header(bytes);
            }
            self.is_between = true;
            return Some(Piece::End);
        }
        let count = bytes
            .len()
            .min(usize::try_from(remaining).unwrap_or(usize::MAX));
        if count == 0 {
            return None;
        }
        let (part, rest) = bytes.split_at(count);
        *bytes = rest;
        self.remaining = Some(remaining - u32::try_from(count).unwrap_or(remaining));
        self.length += count as u64;
        let room = self.most_kept - self.kept.len();
        self.kept.extend_from_slice(&part[..count.min(room)]);
        Some(Piece::Part(part))
    }

    /// The sequence number and the payload of the packet at the begin of `bytes`, where it is all there and a payload of its
    /// own. Nothing of it is kept.
    pub(crate) fn whole<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
        if self.is_within_a_packet() {
            return None;
        }
        let (&[low, middle, high, sequence], rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes([low, middle, high, 0]);
        if length == FULL_PACKET {
            return None;
        }
        let (payload, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        *bytes = rest;
        Some((sequence, payload))
    }

    fn read_header<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Piece<'a>> {
        let count = bytes.len().min(4 - self.header_bytes);
        let (part, rest) = bytes.split_at(count);
        *bytes = rest;
        self.header[self.header_bytes..self.header_bytes + count].copy_from_slice(part);
        self.header_bytes += count;
        if self.header_bytes < 4 {
            return None;
        }
        self.header_bytes = 0;
        let [low, middle, high, sequence] = self.header;
        let length = u32::from_le_bytes([low, middle, high, 0]);
        if self.is_between {
            self.kept.clear();
            // The room of a long statement is not held for the rest of the connection.
            self.kept.shrink_to(4096);
            self.length = 0;
        }
        self.is_between = false;
        self.last_is_full = length == FULL_PACKET;
        self.remaining = Some(length);
        Some(Piece::Header(sequence))
    }

    /// The head of the payload, up to the limit.
    pub(crate) fn kept(&self) -> &[u8] {
        &self.kept
    }

    pub(crate) fn is_all_kept(&self) -> bool {
        self.length == self.kept.len() as u64
    }

    /// Whether the payload that is being read ends within its first packet and is so short.
    pub(crate) fn is_shorter_than(&self, bound: u64) -> bool {
        self.length + u64::from(self.remaining.unwrap_or(0)) < bound && !self.last_is_full
    }

    /// Whether the payload that was just read has no bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether the header that was just read continues a payload.
    pub(crate) fn is_continuation(&self) -> bool {
        self.length > 0
    }

    /// Whether a payload or a header is incomplete.
    pub(crate) fn is_within_a_packet(&self) -> bool {
        !self.is_between || self.header_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: &mut PacketReader, mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut payloads = Vec::new();
        while let Some(piece) = reader.next(&mut bytes) {
            if matches!(piece, Piece::End) {
                payloads.push((reader.length, reader.kept().to_vec()));
            }
        }
        payloads
    }

    #[test]
    fn packets_are_found_in_pieces_of_any_size() {
        let bytes = b"\x03\0\0\0abc\0\0\0\x01\x01\0\0\x02d";
        for size in 1..bytes.len() {
            let mut reader = PacketReader::new(2);
            let payloads: Vec<_> = bytes
                .chunks(size)
                .flat_map(|piece| read(&mut reader, piece))
                .collect();
            assert_eq!(
                payloads,
                [(3, b"ab".to_vec()), (0, vec![]), (1, b"d".to_vec())],
                "pieces of {size}"
            );
            assert!(!reader.is_within_a_packet());
        }
    }

    #[test]
    fn payload_of_a_full_packet_goes_on_in_the_next() {
        let mut bytes = vec![0xff, 0xff, 0xff, 0];
        bytes.resize(4 + 0xff_ffff, b'x');
        bytes.extend_from_slice(b"\x01\0\0\x01y\x01\0\0\x02z");
        let mut reader = PacketReader::new(1);
        assert_eq!(
            read(&mut reader, &bytes),
            [(0x100_0000, b"x".to_vec()), (1, b"z".to_vec())]
        );
    }
}
