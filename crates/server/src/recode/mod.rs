//! `gzip` and `gunzip`: bodies compressed or expanded on their way to a client
//! (<https://nginx.org/en/docs/http/ngx_http_gzip_module.html>,
//! <https://nginx.org/en/docs/http/ngx_http_gunzip_module.html>).

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder};
use http1::{Version, accept_encoding};
use site::{CompressionSettings, GzipProxied};

use crate::charset::Transcoder;
use crate::reply::{Body, Reply, ReplyHead};
use crate::request::Request;

/// Statuses whose bodies are worth compressing, as in nginx.
const COMPRESSED_STATUSES: [u16; 3] = [200, 403, 404];

/// A body being recoded, piece by piece.
pub enum Recoder {
    Gzip {
        encoder: Box<GzEncoder<Vec<u8>>>,
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
    /// What is to be sent for `bytes`; may be nothing yet.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        match self {
            Recoder::Gzip {
                encoder,
                taken,
                given,
            } => {
                encoder.write_all(bytes)?;
                *taken += bytes.len() as u64;
                let out = std::mem::take(encoder.get_mut());
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

    /// Gives out what was held back, so that the client sees all there is.
    pub fn flush(&mut self) -> io::Result<Bytes> {
        match self {
            Recoder::Gzip { encoder, given, .. } => {
                encoder.flush()?;
                let out = std::mem::take(encoder.get_mut());
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
            Recoder::Gzip { encoder, given, .. } => {
                encoder.try_finish()?;
                let out = std::mem::take(encoder.get_mut());
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

    /// Bytes before and after compression: `$gzip_ratio`.
    pub fn ratio(&self) -> Option<(u64, u64)> {
        match self {
            Recoder::Gzip { taken, given, .. } => Some((*taken, *given)),
            Recoder::Gunzip(_) => None,
            Recoder::Charset { then, .. } => then.as_ref()?.ratio(),
        }
    }
}

/// Decides whether the body is recoded, and changes the fields accordingly.
pub fn choose(request: &Request, reply: &mut Reply) -> Option<Recoder> {
    let settings = &request.settings.compression;
    if !(settings.gzip || settings.gunzip) || matches!(reply.body, Body::Empty) {
        return None;
    }
    match reply.head.field("content-encoding") {
        None => gzip(request, reply, settings),
        Some(coding) if coding.eq_ignore_ascii_case(b"gzip") => gunzip(request, reply, settings),
        Some(_) => None,
    }
}

fn gzip(request: &Request, reply: &mut Reply, settings: &CompressionSettings) -> Option<Recoder> {
    let head = &mut reply.head;
    if !settings.gzip
        || !COMPRESSED_STATUSES.contains(&head.status)
        || head
            .content_length
            .is_some_and(|length| length < settings.gzip_min_length)
    {
        return None;
    }
    let content_type = head.field("content-type")?;
    if !settings.gzip_types.contains(content_type) && !is_html(content_type) {
        return None;
    }
    add_vary(head, settings);
    if !accepts(request, head, settings) {
        return None;
    }
    recoded(head);
    head.fields.append("Content-Encoding", "gzip");
    let level = Compression::new(settings.gzip_level.clamp(1, 9));
    Some(Recoder::Gzip {
        encoder: Box::new(GzEncoder::new(Vec::new(), level)),
        taken: 0,
        given: 0,
    })
}

fn is_html(content_type: &[u8]) -> bool {
    let end = content_type
        .iter()
        .position(|&byte| byte == b';')
        .unwrap_or(content_type.len());
    content_type
        .get(..end)
        .is_some_and(|media_type| media_type.trim_ascii().eq_ignore_ascii_case(b"text/html"))
}

fn gunzip(request: &Request, reply: &mut Reply, settings: &CompressionSettings) -> Option<Recoder> {
    if !settings.gunzip {
        return None;
    }
    add_vary(&mut reply.head, settings);
    if accepts(request, &reply.head, settings) {
        return None;
    }
    recoded(&mut reply.head);
    reply.head.fields.remove("content-encoding");
    Some(Recoder::Gunzip(Box::new(MultiGzDecoder::new(Vec::new()))))
}

fn add_vary(head: &mut ReplyHead, settings: &CompressionSettings) {
    if settings.gzip_vary && !varies_by_coding(head) {
        head.fields.append("Vary", "Accept-Encoding");
    }
}

/// Does some `Vary` name Accept-Encoding already?
fn varies_by_coding(head: &ReplyHead) -> bool {
    let stored = head.stored.iter().flat_map(|stored| stored.fields.iter());
    stored.chain(head.fields.iter()).any(|(name, value)| {
        name.eq_ignore_ascii_case(b"vary")
            && value.split(|&byte| byte == b',').any(|field| {
                let field = field.trim_ascii();
                field == b"*" || field.eq_ignore_ascii_case(b"accept-encoding")
            })
    })
}

/// The bytes will be others: what speaks of the old ones goes or is weakened.
fn recoded(head: &mut ReplyHead) {
    head.unpack();
    head.content_length = None;
    head.accepts_ranges = false;
    head.fields.remove("accept-ranges");
    if let Some(etag) = head.fields.get("etag").map(<[u8]>::to_vec)
        && !etag.starts_with(b"W/")
    {
        let mut weak = b"W/".to_vec();
        weak.extend_from_slice(&etag);
        head.fields.set("ETag", weak);
    }
}

/// May this client get gzip?
pub fn accepts(request: &Request, head: &ReplyHead, settings: &CompressionSettings) -> bool {
    let minor = match request.head.version() {
        Version::Http09 => return false,
        Version::Http10 => 0,
        _ => 1,
    };
    if minor < settings.gzip_http_minor || !accept_encoding::accepts_gzip(&request.head) {
        return false;
    }
    if let Some(agent) = request.head.field("user-agent")
        && settings
            .gzip_disable
            .iter()
            .any(|pattern| pattern.regex.is_match(agent).unwrap_or(false))
    {
        return false;
    }
    request.head.field("via").is_none() || proxied(request, head, settings.gzip_proxied)
}

/// `gzip_proxied`: what a request that came through a proxy may get.
fn proxied(request: &Request, head: &ReplyHead, allowed: GzipProxied) -> bool {
    if allowed.any || (allowed.auth && request.head.field("authorization").is_some()) {
        return true;
    }
    if let Some(expires) = head.field("expires") {
        if !allowed.expired {
            return false;
        }
        let now = i64::try_from(request.now / 1000).unwrap_or(0);
        return http1::date::parse(expires).is_none_or(|date| date < now);
    }
    if let Some(value) = head.field("cache-control") {
        let value = value.to_ascii_lowercase();
        let has = |word: &[u8]| memchr::memmem::find(&value, word).is_some();
        return (allowed.no_cache && has(b"no-cache"))
            || (allowed.no_store && has(b"no-store"))
            || (allowed.private && has(b"private"));
    }
    (allowed.no_last_modified && !head.has("last-modified"))
        || (allowed.no_etag && !head.has("etag"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip_recoder() -> Recoder {
        Recoder::Gzip {
            encoder: Box::new(GzEncoder::new(Vec::new(), Compression::new(1))),
            taken: 0,
            given: 0,
        }
    }

    #[test]
    fn vary_names_a_field_once() {
        for (before, is_there) in [
            ("Accept-Encoding", true),
            ("Cookie, accept-encoding", true),
            ("*", true),
            ("Cookie", false),
            ("Accept-Encoding-Not", false),
        ] {
            let mut head = ReplyHead::new(200);
            head.fields.append("Vary", before);
            assert_eq!(varies_by_coding(&head), is_there, "{before}");
        }
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
        assert_eq!(
            encoder.ratio(),
            Some((page.len() as u64, compressed.len() as u64))
        );
        let mut decoder = Recoder::Gunzip(Box::new(MultiGzDecoder::new(Vec::new())));
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
        let mut decoder = Recoder::Gunzip(Box::new(MultiGzDecoder::new(Vec::new())));
        let cut = compressed.len() - 9;
        let failed = decoder.push(&compressed[..cut]).is_err() || decoder.finish().is_err();
        assert!(failed);
    }
}
