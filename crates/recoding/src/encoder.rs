//! One body being compressed, whatever the coding: bytes in, bytes out.

use std::io::{self, Write};

use brotli::CompressorWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use site::{Coding, CodingSettings};
use zstd::stream::write::Encoder as ZstdEncoder;
use zstd::zstd_safe::CParameter;

/// Output bytes that the brotli encoder gives out at a time.
const BROTLI_BUFFER_BYTES: usize = 16 * 1024;
/// Largest window that a client must be able to hold (RFC 9659 §3): 8 MB.
const ZSTD_WINDOW_BITS: u32 = 23;
/// Levels from which zstd would use a larger one.
const ZSTD_LARGE_WINDOW_LEVEL: u8 = 20;

/// Each piece that is given out has at least this size, except the last: the ten bytes of gzip's
/// own head are not worth a chunk.
const MIN_GIVEN_BYTES: usize = 64;

/// A compressor and its output so far.
pub enum Encoder {
    Gzip(Box<GzEncoder<Vec<u8>>>),
    /// `None` once it has finished.
    Brotli(Option<Box<CompressorWriter<Vec<u8>>>>),
    Zstd(Box<ZstdEncoder<'static, Vec<u8>>>),
    /// The library could not start; every call fails.
    Broken,
}

impl Encoder {
    pub fn new(coding: Coding, settings: &CodingSettings) -> Encoder {
        match coding {
            Coding::Gzip => {
                let level = Compression::new(u32::from(settings.level).clamp(1, 9));
                Encoder::Gzip(Box::new(GzEncoder::new(Vec::new(), level)))
            }
            Coding::Brotli => Encoder::Brotli(Some(Box::new(CompressorWriter::new(
                Vec::new(),
                BROTLI_BUFFER_BYTES,
                u32::from(settings.level),
                u32::from(settings.window_bits),
            )))),
            Coding::Zstd => zstd(settings.level)
                .map_or(Encoder::Broken, |encoder| Encoder::Zstd(Box::new(encoder))),
        }
    }

    /// Encodes `bytes` and returns the output so far; may be empty.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.writer()?.write_all(bytes)?;
        if self.waiting_len() < MIN_GIVEN_BYTES {
            return Ok(Vec::new());
        }
        Ok(self.take())
    }

    /// Everything that was held back.
    pub fn flush(&mut self) -> io::Result<Vec<u8>> {
        self.writer()?.flush()?;
        Ok(self.take())
    }

    /// The end of the body. Nothing may be pushed after it.
    pub fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Gzip(encoder) => encoder.try_finish()?,
            Encoder::Brotli(encoder) => {
                let rest = encoder.take().map(|encoder| encoder.into_inner());
                return Ok(rest.unwrap_or_default());
            }
            Encoder::Zstd(encoder) => encoder.do_finish()?,
            Encoder::Broken => return Err(broken()),
        }
        Ok(self.take())
    }

    fn writer(&mut self) -> io::Result<&mut dyn Write> {
        match self {
            Encoder::Gzip(encoder) => Ok(encoder),
            Encoder::Brotli(Some(encoder)) => Ok(encoder),
            Encoder::Zstd(encoder) => Ok(encoder),
            Encoder::Brotli(None) | Encoder::Broken => Err(broken()),
        }
    }

    fn waiting_len(&self) -> usize {
        match self {
            Encoder::Gzip(encoder) => encoder.get_ref().len(),
            Encoder::Brotli(Some(encoder)) => encoder.get_ref().len(),
            Encoder::Zstd(encoder) => encoder.get_ref().len(),
            Encoder::Brotli(None) | Encoder::Broken => 0,
        }
    }

    fn take(&mut self) -> Vec<u8> {
        match self {
            Encoder::Gzip(encoder) => std::mem::take(encoder.get_mut()),
            Encoder::Brotli(Some(encoder)) => std::mem::take(encoder.get_mut()),
            Encoder::Zstd(encoder) => std::mem::take(encoder.get_mut()),
            Encoder::Brotli(None) | Encoder::Broken => Vec::new(),
        }
    }
}

fn zstd(level: u8) -> io::Result<ZstdEncoder<'static, Vec<u8>>> {
    let mut encoder = ZstdEncoder::new(Vec::new(), i32::from(level))?;
    if level >= ZSTD_LARGE_WINDOW_LEVEL {
        encoder.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_BITS))?;
    }
    Ok(encoder)
}

fn broken() -> io::Error {
    io::Error::other("the compressor does not work")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Read;

    pub fn settings(level: u8) -> CodingSettings {
        CodingSettings {
            enabled: true,
            types: Default::default(),
            min_length: 0,
            level,
            window_bits: 19,
            precompressed: site::PrecompressedFiles::Off,
        }
    }

    pub fn expand(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        match coding {
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain),
            Coding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut plain),
            Coding::Zstd => zstd::stream::read::Decoder::new(bytes)
                .and_then(|mut decoder| decoder.read_to_end(&mut plain)),
        }
        .expect("a whole body");
        plain
    }

    #[test]
    fn every_level_gives_back_the_same_bytes() {
        let page: Vec<u8> = (0..20_000u32)
            .flat_map(|n| (n % 977).to_le_bytes())
            .collect();
        for (coding, levels) in [
            (Coding::Gzip, 1..=9),
            (Coding::Brotli, 0..=11),
            (Coding::Zstd, 1..=22),
        ] {
            for level in levels {
                let mut encoder = Encoder::new(coding, &settings(level));
                let mut sent = Vec::new();
                for piece in page.chunks(7777) {
                    sent.extend(encoder.push(piece).expect("it goes on"));
                }
                sent.extend(encoder.finish().expect("an end"));
                assert!(sent.len() < page.len() / 2, "{coding:?} {level}");
                assert!(expand(coding, &sent) == page, "{coding:?} {level}");
            }
        }
    }

    #[test]
    fn a_flush_lets_the_client_see_all_there_is() {
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding, &settings(1));
            let mut sent = encoder.push(b"the first line").expect("it goes on");
            sent.extend(encoder.flush().expect("it goes on"));
            let mut seen = vec![0; 14];
            let read = match coding {
                Coding::Gzip => flate2::read::GzDecoder::new(&sent[..]).read_exact(&mut seen),
                Coding::Brotli => brotli::Decompressor::new(&sent[..], 64).read_exact(&mut seen),
                Coding::Zstd => zstd::stream::read::Decoder::new(&sent[..])
                    .and_then(|mut decoder| decoder.read_exact(&mut seen)),
            };
            assert!(read.is_ok(), "{coding:?}");
            assert_eq!(seen, b"the first line", "{coding:?}");
        }
    }
}
