//! A body being recoded piece by piece while it is sent: compressed, expanded,
//! or brought to another charset.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use site::{Coding, CodingSettings};

use crate::charset_map::Transcoder;
use crate::encoder::Encoder;

/// How much smaller compression made a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionRatio {
    pub coding: Coding,
    pub before_bytes: u64,
    pub after_bytes: u64,
}

/// A body being recoded, piece by piece.
pub enum Recoder {
    Encode {
        coding: Coding,
        encoder: Encoder,
        taken: u64,
        given: u64,
    },
    Gunzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// From one charset to another, and then perhaps compressed.
    Charset {
        transcoder: Transcoder,
        then: Option<Box<Recoder>>,
    },
}

impl Recoder {
    /// Compresses. Apart from those who look whether anything does: it has large things to make.
    #[inline(never)]
    pub fn encoding(coding: Coding, settings: &CodingSettings) -> Recoder {
        Recoder::Encode {
            coding,
            encoder: Encoder::new(coding, settings),
            taken: 0,
            given: 0,
        }
    }

    /// Expands gzip.
    pub fn expanding() -> Recoder {
        Recoder::Gunzip(Box::new(MultiGzDecoder::new(Vec::new())))
    }

    /// The recoded form of `bytes`; may be nothing yet.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        match self {
            Recoder::Encode {
                encoder,
                taken,
                given,
                ..
            } => {
                let out = encoder.push(bytes)?;
                *taken += bytes.len() as u64;
                *given += out.len() as u64;
                Ok(out.into())
            }
            Recoder::Gunzip(decoder) => {
                decoder.write_all(bytes)?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Recoder::Charset { transcoder, then } => {
                let text = transcoder.push(bytes);
                match then {
                    Some(then) => then.push(&text),
                    None => Ok(text.into()),
                }
            }
        }
    }

    /// Gives out the bytes held back, so that the client sees all there is.
    pub fn flush(&mut self) -> io::Result<Bytes> {
        match self {
            Recoder::Encode { encoder, given, .. } => {
                let out = encoder.flush()?;
                *given += out.len() as u64;
                Ok(out.into())
            }
            Recoder::Gunzip(decoder) => {
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Recoder::Charset { then, .. } => match then {
                Some(then) => then.flush(),
                None => Ok(Bytes::new()),
            },
        }
    }

    /// The rest of the body.
    ///
    /// # Errors
    /// A gzip body that ends early: the response must not look whole.
    pub fn finish(&mut self) -> io::Result<Bytes> {
        match self {
            Recoder::Encode { encoder, given, .. } => {
                let out = encoder.finish()?;
                *given += out.len() as u64;
                Ok(out.into())
            }
            Recoder::Gunzip(decoder) => {
                decoder.try_finish()?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Recoder::Charset { transcoder, then } => {
                let rest = transcoder.finish();
                let Some(then) = then else {
                    return Ok(Bytes::from_static(rest));
                };
                let mut out = then.push(rest)?.to_vec();
                out.extend_from_slice(&then.finish()?);
                Ok(out.into())
            }
        }
    }

    /// Returns the compression ratio so far.
    pub fn compressed(&self) -> Option<CompressionRatio> {
        match self {
            Recoder::Encode {
                coding,
                taken,
                given,
                ..
            } => Some(CompressionRatio {
                coding: *coding,
                before_bytes: *taken,
                after_bytes: *given,
            }),
            Recoder::Gunzip(_) => None,
            Recoder::Charset { then, .. } => then.as_ref()?.compressed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::tests::settings;

    fn gzip_recoder() -> Recoder {
        Recoder::encoding(Coding::Gzip, &settings(1))
    }

    #[test]
    fn what_was_compressed_in_pieces_expands_to_the_same_bytes() {
        let page: Vec<u8> = (0..50_000u32)
            .flat_map(|n| (n % 977).to_le_bytes())
            .collect();
        let mut compressed = Vec::new();
        let mut encoder = gzip_recoder();
        for piece in page.chunks(777) {
            compressed.extend_from_slice(&encoder.push(piece).unwrap());
        }
        compressed.extend_from_slice(&encoder.finish().unwrap());
        let done = CompressionRatio {
            coding: Coding::Gzip,
            before_bytes: page.len() as u64,
            after_bytes: compressed.len() as u64,
        };
        assert_eq!(encoder.compressed(), Some(done));
        let mut decoder = Recoder::expanding();
        let mut expanded = Vec::new();
        for piece in compressed.chunks(100) {
            expanded.extend_from_slice(&decoder.push(piece).unwrap());
        }
        expanded.extend_from_slice(&decoder.finish().unwrap());
        assert!(expanded == page);
    }

    #[test]
    fn a_gzip_body_that_ends_early_is_an_error() {
        let mut encoder = gzip_recoder();
        let mut compressed = encoder.push(&[b'x'; 10_000]).unwrap().to_vec();
        compressed.extend_from_slice(&encoder.finish().unwrap());
        let mut decoder = Recoder::expanding();
        let cut = compressed.len() - 9;
        let failed = decoder.push(&compressed[..cut]).is_err() || decoder.finish().is_err();
        assert!(failed);
    }
}
