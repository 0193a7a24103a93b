//! Content codings, undone as the bytes arrive.

use std::io::{self, Write};

/// Decodes a body's content coding. Takes no more than its limit.
pub struct Decoder {
    coding: Coding,
    limit_bytes: usize,
    decoded_bytes: usize,
}

enum Coding {
    Identity(Vec<u8>),
    Gzip(Box<flate2::write::MultiGzDecoder<Vec<u8>>>),
    Deflate(Box<flate2::write::ZlibDecoder<Vec<u8>>>),
    Brotli(Box<brotli::DecompressorWriter<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Vec<u8>>>),
}

/// Bytes that are decoded between two looks at the limit.
const PIECE_BYTES: usize = 1024;
/// The size of the brotli decoder's buffer.
const BUFFER_BYTES: usize = 16 << 10;
/// The largest window that a browser takes: 8 MB (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;

impl Decoder {
    /// For a `Content-Encoding`.
    ///
    /// # Errors
    /// No browser knows the coding.
    pub fn new(coding: &str, limit_bytes: usize) -> Result<Decoder, String> {
        let coding = match coding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Coding::Identity(Vec::new()),
            "gzip" | "x-gzip" => {
                Coding::Gzip(Box::new(flate2::write::MultiGzDecoder::new(Vec::new())))
            }
            "deflate" => Coding::Deflate(Box::new(flate2::write::ZlibDecoder::new(Vec::new()))),
            "br" => Coding::Brotli(Box::new(brotli::DecompressorWriter::new(
                Vec::new(),
                BUFFER_BYTES,
            ))),
            "zstd" => {
                let made = zstd::stream::write::Decoder::new(Vec::new());
                let mut made = made.map_err(|error| error.to_string())?;
                let bounded = made.window_log_max(ZSTD_WINDOW_LOG);
                bounded.map_err(|error| error.to_string())?;
                Coding::Zstd(Box::new(made))
            }
            other => return Err(format!("the content coding \"{other}\" is not known")),
        };
        Ok(Decoder {
            coding,
            limit_bytes,
            decoded_bytes: 0,
        })
    }

    /// Decodes some bytes.
    ///
    /// # Errors
    /// They are not of this coding, or the whole is longer than the limit.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut decoded = Vec::new();
        for piece in bytes.chunks(PIECE_BYTES) {
            let written = match &mut self.coding {
                Coding::Identity(out) => out.write_all(piece),
                Coding::Gzip(it) => it.write_all(piece),
                Coding::Deflate(it) => it.write_all(piece),
                Coding::Brotli(it) => it.write_all(piece),
                Coding::Zstd(it) => it.write_all(piece),
            };
            written.map_err(|error| faulty(&error))?;
            self.drain(&mut decoded)?;
        }
        Ok(decoded)
    }

    /// Returns the bytes that are left at the end.
    ///
    /// # Errors
    /// The body was cut.
    pub fn end(&mut self) -> Result<Vec<u8>, String> {
        let ended = match &mut self.coding {
            Coding::Identity(_) => Ok(()),
            Coding::Gzip(it) => it.try_finish(),
            Coding::Deflate(it) => it.try_finish(),
            Coding::Brotli(it) => it.close(),
            Coding::Zstd(it) => it.flush(),
        };
        ended.map_err(|error| faulty(&error))?;
        let mut decoded = Vec::new();
        self.drain(&mut decoded)?;
        Ok(decoded)
    }

    fn drain(&mut self, decoded: &mut Vec<u8>) -> Result<(), String> {
        let out = match &mut self.coding {
            Coding::Identity(out) => out,
            Coding::Gzip(it) => it.get_mut(),
            Coding::Deflate(it) => it.get_mut(),
            Coding::Brotli(it) => it.get_mut(),
            Coding::Zstd(it) => it.get_mut(),
        };
        self.decoded_bytes += out.len();
        if self.decoded_bytes > self.limit_bytes {
            return Err(format!("it is longer than {} MB", self.limit_bytes >> 20));
        }
        decoded.append(out);
        Ok(())
    }
}

fn faulty(error: &io::Error) -> String {
    format!("its content coding is broken: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(coding: &str, text: &[u8]) -> Vec<u8> {
        match coding {
            "gzip" => {
                let mut it = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                it.write_all(text).expect("memory");
                it.finish().expect("memory")
            }
            "deflate" => {
                let mut it =
                    flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                it.write_all(text).expect("memory");
                it.finish().expect("memory")
            }
            "br" => {
                let mut it = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
                it.write_all(text).expect("memory");
                it.into_inner()
            }
            "zstd" => zstd::encode_all(text, 1).expect("memory"),
            _ => text.to_vec(),
        }
    }

    #[test]
    fn each_coding_is_undone_however_it_is_cut() {
        let text: Vec<u8> = (0..50_000_u32)
            .flat_map(|it| it.to_string().into_bytes())
            .collect();
        for coding in ["", "identity", "gzip", "deflate", "br", "zstd"] {
            for piece in [1, 7, 100_000] {
                let mut decoder = Decoder::new(coding, 1 << 20).expect("a known coding");
                let mut decoded = Vec::new();
                for bytes in encoded(coding, &text).chunks(piece) {
                    decoded.extend(decoder.take(bytes).expect("a right body"));
                }
                decoded.extend(decoder.end().expect("a whole body"));
                assert!(decoded == text, "{coding} by {piece}");
            }
        }
    }

    #[test]
    fn a_body_that_grows_without_end_is_refused() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let bomb = encoded(coding, &vec![0; 8 << 20]);
            let mut decoder = Decoder::new(coding, 1 << 20).expect("a known coding");
            let refused = decoder.take(&bomb).and_then(|_| decoder.end());
            assert_eq!(
                refused,
                Err("it is longer than 1 MB".to_owned()),
                "{coding}"
            );
        }
    }

    #[test]
    fn what_is_not_of_a_coding_is_said() {
        assert!(Decoder::new("compress", 1).is_err());
        for coding in ["gzip", "br", "zstd"] {
            let mut decoder = Decoder::new(coding, 1 << 20).expect("a known coding");
            let said = decoder
                .take(b"<!DOCTYPE html><p>plain")
                .and_then(|_| decoder.end());
            let said = said.expect_err("no such coding");
            assert!(said.contains("broken"), "{coding}: {said}");
        }
    }
}
