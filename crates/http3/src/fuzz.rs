//! Entry points of the fuzz targets: any bytes in place of a client's.

use bytes::BytesMut;
use http2::{HeadBuffer, HeadLimits};

use crate::{
    ControlReader, DecoderReader, DynamicTable, MessageReader, Piece, StreamKind, read_request,
    read_trailers,
};

/// How large a field block may be.
const MAX_BLOCK_BYTES: usize = 4096;

/// The lowest bit of the first byte selects the stream, its other bits the size of the
/// pieces in which the rest arrives.
#[doc(hidden)]
pub fn fuzz_streams(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else {
        return;
    };
    let step = usize::from(first >> 1) + 1;
    match first & 1 {
        0 => request_stream(bytes, step),
        _ => other_stream(bytes, step),
    }
}

/// Reads encoder instructions, whose length is in the first byte, and a field block.
#[doc(hidden)]
pub fn fuzz_qpack(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else {
        return;
    };
    let (instructions, block) = bytes.split_at(usize::from(first).min(bytes.len()));
    let mut table = DynamicTable::default();
    if table.take(&mut BytesMut::from(instructions)).is_ok() {
        field_block(block, &mut table);
    }
}

fn field_block(bytes: &[u8], table: &mut DynamicTable) {
    let limits = HeadLimits::default();
    let mut buffer = HeadBuffer::new();
    if let Ok(Ok(_)) = read_request(bytes, table, &limits, &mut buffer) {
        let head = http2::to_owned_head(buffer.request());
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
        assert!(
            !head.bytes.iter().any(is_line_end),
            "no head that was read has a line end"
        );
    }
    let _ = read_trailers(bytes, table, &limits);
    table.acknowledge_block(bytes, 0, &mut Vec::new());
}

fn request_stream(bytes: &[u8], step: usize) {
    let mut reader = MessageReader::new(MAX_BLOCK_BYTES);
    let (mut input, mut body) = (BytesMut::new(), 0);
    for some in bytes.chunks(step) {
        input.extend_from_slice(some);
        loop {
            match reader.next(&mut input) {
                Ok(Some(Piece::Head(block) | Piece::Trailers(block))) => {
                    field_block(&block, &mut DynamicTable::default());
                }
                Ok(Some(Piece::Body(piece))) => body += piece.len(),
                Ok(None) => break,
                Ok(Some(Piece::TooLarge)) | Err(_) => return,
            }
        }
    }
    assert!(body <= bytes.len(), "no more of a body than came");
    let _ = reader.finish(&input);
}

fn other_stream(bytes: &[u8], step: usize) {
    let (mut input, mut kind) = (BytesMut::new(), None);
    let (mut control, mut table) = (ControlReader::default(), DynamicTable::default());
    for some in bytes.chunks(step) {
        input.extend_from_slice(some);
        kind = kind.or_else(|| StreamKind::read(&mut input));
        let taken = match kind {
            Some(StreamKind::Control) => loop {
                match control.next(&mut input) {
                    Ok(Some(_)) => {}
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            },
            Some(StreamKind::QpackEncoder) => table.take(&mut input),
            Some(StreamKind::QpackDecoder) => DecoderReader.take(&mut input),
            _ => Ok(()),
        };
        if taken.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_of_a_stream_are_read_or_refused(
            bytes in proptest::collection::vec(prop_oneof![0u8..16, any::<u8>()], 0..200),
        ) {
            fuzz_streams(&bytes);
            fuzz_qpack(&bytes);
        }
    }
}
