//! Content codings: which one a client gets, and bodies compressed or expanded on
//! their way to it
//! (<https://nginx.org/en/docs/http/ngx_http_gzip_module.html>,
//! <https://nginx.org/en/docs/http/ngx_http_gunzip_module.html>,
//! <https://github.com/google/ngx_brotli>,
//! <https://github.com/tokers/zstd-nginx-module>).
//!
//! A stored response is compressed once, off the threads that serve, and kept so, and so is a file; everything
//! else is compressed as it is sent. crates/recoding does both; this module decides which, and sets the fields.

use std::sync::Arc;

use http_cache::{KnownField, StoredResponse};
use http_semantics::{Version, accept_encoding, same_name};
use recoding::{CompressionRatio, EncodedForm, RecodedBody, Recoder, SettledForm, Wait};
use site::{Coding, CodingSettings, CompressionSettings, GzipProxied};

use crate::exchange::compiled_location::CompiledLocation;
use crate::exchange::reply::{Body, Reply, ReplyHead, Segment};
use crate::exchange::request::{Method, Request};
use crate::route::pattern;

/// The content coding of a body on its way to the client.
pub enum Recoding {
    /// It is sent as the reply has it.
    AsIs,
    /// It is recoded while it is sent.
    OnTheWay(Recoder),
    /// Its encoded form is being made, and will be there in a moment.
    Wait(Box<Wait>),
}

impl Recoding {
    pub fn into_recoder(self) -> Option<Recoder> {
        match self {
            Recoding::OnTheWay(recoder) => Some(recoder),
            Recoding::AsIs | Recoding::Wait(_) => None,
        }
    }
}

/// Decides whether the body is recoded, and changes the head accordingly.
/// `is_itself`: nothing else changes the body, or stands around it.
pub fn choose(request: &Request, reply: &mut Reply, is_itself: bool) -> Recoding {
    let place = request.compiled_location();
    if place.recoding.is_none() || matches!(reply.body, Body::Empty) {
        return Recoding::AsIs;
    }
    match reply.head.known(KnownField::ContentEncoding) {
        None => encode(request, place, reply, is_itself),
        Some(coding) if coding.eq_ignore_ascii_case(b"gzip") => gunzip(request, reply),
        _ => Recoding::AsIs,
    }
}

/// Would [`choose`] recode the body of a response with this head?
pub fn is_wanted(request: &Request, head: &mut ReplyHead) -> bool {
    let place = request.compiled_location();
    if place.recoding.is_none() {
        return false;
    }
    match head.known(KnownField::ContentEncoding) {
        None => coding_for(request, place, head).is_some(),
        Some(coding) if coding.eq_ignore_ascii_case(b"gzip") => {
            let settings = &place.settings.compression;
            settings.gunzip && weight(request, head, Coding::Gzip) == 0
        }
        Some(_) => false,
    }
}

fn encode(
    request: &Request,
    place: &CompiledLocation,
    reply: &mut Reply,
    is_itself: bool,
) -> Recoding {
    let Some(coding) = coding_for(request, place, &mut reply.head) else {
        return Recoding::AsIs;
    };
    let settings = place.settings.compression.coding(coding);
    if is_itself
        && request.route.method == Method::Get
        && let Some(file) = kept_file(&reply.body, request.now())
    {
        reply.body = Body::Stored {
            start: 0,
            end: file.body.len(),
            response: file,
        };
    }
    match &reply.body {
        Body::Stored {
            response,
            start: 0,
            end,
        } if is_itself && *end == response.body.len() => {
            let is_wanted = request.route.method != Method::Head;
            match recoding::look(response, coding, settings, is_wanted) {
                EncodedForm::Ready(body) => {
                    send(reply, coding, body);
                    return Recoding::AsIs;
                }
                EncodedForm::Useless => return Recoding::AsIs,
                EncodedForm::Wait(wait) => {
                    recoded(&mut reply.head, coding);
                    return Recoding::Wait(wait);
                }
                EncodedForm::No => {}
            }
        }
        _ => {}
    }
    recoded(&mut reply.head, coding);
    Recoding::OnTheWay(Recoder::encoding(coding, settings))
}

/// The file that `body` sends, if it is a whole one and nothing else.
fn kept_file(body: &Body, now: u64) -> Option<Arc<StoredResponse>> {
    let Body::Segments(segments) = body else {
        return None;
    };
    match segments.as_slices().0 {
        [
            Segment::File {
                file,
                offset: 0,
                length,
            },
        ] => recoding::kept_file(file, *length, now),
        _ => None,
    }
}

/// Waits for the form of `reply`, and makes it send the form, or the body as it is. Returns a recoder for the
/// way to the client if the maker of the form gave up.
pub async fn settle(wait: Wait, reply: &mut Reply) -> Option<Recoder> {
    match wait.settle().await {
        SettledForm::Ready(coding, form) => send(reply, coding, form),
        SettledForm::Plain(length) => {
            reply.head.form.coded = None;
            reply.head.content_length = Some(length);
        }
        SettledForm::OnTheWay(recoder) => return Some(recoder),
    }
    None
}

/// Makes `reply`, which was to send a stored body, send this form of it.
fn send(reply: &mut Reply, coding: Coding, form: http_cache::Body) {
    let before_bytes = match &reply.body {
        Body::Stored { response, .. } => response.body.len(),
        _ => 0,
    };
    recoded(&mut reply.head, coding);
    reply.head.content_length = Some(form.len());
    *reply.head.compressed.get_mut() = Some(CompressionRatio {
        coding,
        before_bytes,
        after_bytes: form.len(),
    });
    reply.body = Body::Encoded(form);
}

/// The coding for this response and this client: of those that are on and fit
/// the response the one with the highest weight, among equals the first.
fn coding_for(request: &Request, place: &CompiledLocation, head: &mut ReplyHead) -> Option<Coding> {
    if !is_compressed(head.status) {
        return None;
    }
    let compression = &place.settings.compression;
    let is_html = head.is_html();
    let length = head.content_length.unwrap_or(u64::MAX);
    let accepted = request
        .received
        .head()
        .field("accept-encoding")
        .unwrap_or_default();
    let mut is_any = false;
    let mut best = (0, None);
    for coding in place.recoding.into_iter().flatten().flatten() {
        let settings = compression.coding(coding);
        if length < settings.min_length || !(is_html || is_listed(head, settings)) {
            continue;
        }
        is_any = true;
        let weight = accept_encoding::value_weight(accepted, coding.name().as_bytes());
        if weight > best.0 && may_have(request, compression, head, coding) {
            best = (weight, Some(coding));
        }
        // No coding can have a greater weight: the rest need not be read.
        if best.0 == accept_encoding::MOST {
            break;
        }
    }
    if is_any {
        add_vary(head, compression);
    }
    best.1
}

/// Is the response of one of the types that the coding is for, beside HTML?
fn is_listed(head: &ReplyHead, settings: &CodingSettings) -> bool {
    let content_type = head.known(KnownField::ContentType);
    content_type.is_some_and(|content_type| settings.types.contains(content_type))
}

/// Is a body of this status worth compressing, as in nginx?
fn is_compressed(status: u16) -> bool {
    matches!(status, 200 | 403 | 404)
}

fn gunzip(request: &Request, reply: &mut Reply) -> Recoding {
    let settings = &request.settings().compression;
    if !settings.gunzip {
        return Recoding::AsIs;
    }
    add_vary(&mut reply.head, settings);
    if weight(request, &reply.head, Coding::Gzip) > 0 {
        return Recoding::AsIs;
    }
    expanded(&mut reply.head);
    Recoding::OnTheWay(Recoder::expanding())
}

/// Expands a body that something else is to change: a client that does not accept gzip gets it
/// plain in any case.
pub fn expand_first(request: &Request, reply: &mut Reply) -> Option<Recoder> {
    let coding = reply.head.known(KnownField::ContentEncoding)?;
    if !coding.eq_ignore_ascii_case(b"gzip") {
        return None;
    }
    gunzip(request, reply).into_recoder()
}

/// Expands the body of a part, which becomes a piece of another body: whatever the client
/// accepts, it must be plain (`gunzip on`, as in nginx).
pub fn expand_part(request: &Request, reply: &mut Reply) -> Option<Recoder> {
    let coding = reply.head.known(KnownField::ContentEncoding)?;
    if !request.settings().compression.gunzip || !coding.eq_ignore_ascii_case(b"gzip") {
        return None;
    }
    expanded(&mut reply.head);
    Some(Recoder::expanding())
}

#[inline]
fn add_vary(head: &mut ReplyHead, settings: &CompressionSettings) {
    head.added.vary |= settings.gzip_vary && !varies_by_coding(head);
}

/// Does some `Vary` name Accept-Encoding already?
fn varies_by_coding(head: &ReplyHead) -> bool {
    head.known(KnownField::Vary).is_some()
        && head
            .stored_fields()
            .chain(head.fields.iter())
            .any(|(name, value)| {
                same_name(name, b"vary")
                    && value.split(|&byte| byte == b',').any(|field| {
                        let field = field.trim_ascii();
                        field == b"*" || field.eq_ignore_ascii_case(b"accept-encoding")
                    })
            })
}

/// Notes that the bytes will be others. The fields are changed when they are written, so that stored ones can
/// stay the block they are.
fn recoded(head: &mut ReplyHead, coding: Coding) {
    head.form.coded = Some(coding);
    head.content_length = None;
    head.form.accepts_ranges = false;
}

/// Notes that the bytes will be plain: fields about the old ones are removed or weakened.
fn expanded(head: &mut ReplyHead) {
    head.unpack();
    head.content_length = None;
    head.form.accepts_ranges = false;
    head.fields.remove("accept-ranges");
    head.fields.remove("content-encoding");
    weaken_tag(head);
}

/// The bytes are others for the same content.
pub fn weaken_tag(head: &mut ReplyHead) {
    let tag = head.fields.get("etag");
    if let Some(tag) = tag.filter(|tag| !tag.starts_with(b"W/")) {
        let weak = [b"W/", tag].concat();
        head.fields.set("ETag", weak);
    }
}

/// `body`, recoded where there is something to recode it.
pub fn around(body: Body, recoder: Option<Recoder>) -> Body {
    let Some(recoder) = recoder else {
        return body;
    };
    let note = |request: &Request, compressed| {
        if let Some(reply) = &request.delivery.reply {
            *reply.head.compressed.lock() = Some(compressed);
        }
    };
    Body::Arriving(RecodedBody::around(body.into_arriving(), recoder, note))
}

/// Returns how much this client wants `coding`, in thousandths; 0 if it must not get it.
pub fn weight(request: &Request, head: &ReplyHead, coding: Coding) -> u16 {
    let weight = match request.received.head().field("accept-encoding") {
        Some(value) => accept_encoding::value_weight(value, coding.name().as_bytes()),
        None => 0,
    };
    let settings = &request.settings().compression;
    if weight > 0 && may_have(request, settings, head, coding) {
        weight
    } else {
        0
    }
}

/// The other codings are younger than the clients and proxies that gzip is kept from.
#[inline]
fn may_have(
    request: &Request,
    settings: &CompressionSettings,
    head: &ReplyHead,
    coding: Coding,
) -> bool {
    coding != Coding::Gzip || may_have_gzip(request, settings, head)
}

/// May this client get gzip, which it accepts?
#[inline]
fn may_have_gzip(request: &Request, settings: &CompressionSettings, head: &ReplyHead) -> bool {
    let minor = match request.received.head().version() {
        Version::Http09 => return false,
        Version::Http10 => 0,
        _ => 1,
    };
    if minor < settings.gzip_http_minor {
        return false;
    }
    if !settings.gzip_disable.is_empty() && is_disabled_for(request, settings) {
        return false;
    }
    request.received.head().field("via").is_none() || proxied(request, head, settings.gzip_proxied)
}

/// `gzip_disable`: must this client not get gzip? A client for which a pattern gives up counts as disabled.
#[cold]
fn is_disabled_for(request: &Request, settings: &CompressionSettings) -> bool {
    let Some(agent) = request.received.head().field("user-agent") else {
        return false;
    };
    let mut patterns = settings.gzip_disable.iter();
    patterns.any(|pattern| pattern::is_match(request, pattern, agent).unwrap_or(true))
}

/// `gzip_proxied`: may a request that came through a proxy get a compressed response?
#[cold]
fn proxied(request: &Request, head: &ReplyHead, allowed: GzipProxied) -> bool {
    if allowed.any || (allowed.auth && request.received.head().field("authorization").is_some()) {
        return true;
    }
    if let Some(expires) = head.field("expires") {
        if !allowed.expired {
            return false;
        }
        let now = i64::try_from(clock::wall(request.now()) / 1000).unwrap_or(0);
        return http_semantics::date::parse(expires).is_none_or(|date| date < now);
    }
    if let Some(value) = head.field("cache-control") {
        let value = value.to_ascii_lowercase();
        let has = |word: &[u8]| memchr::memmem::find(&value, word).is_some();
        return (allowed.no_cache && has(b"no-cache"))
            || (allowed.no_store && has(b"no-store"))
            || (allowed.private && has(b"private"));
    }
    (allowed.no_last_modified && head.known(KnownField::LastModified).is_none())
        || (allowed.no_etag && head.known(KnownField::ETag).is_none())
}

#[cfg(test)]
mod tests {
    use transport::open_file::OpenFile;

    use super::*;

    #[test]
    fn a_form_that_is_ready_takes_the_place_of_the_body() {
        let mut reply = Reply::new(200, b"text/html", "");
        let form = http_cache::Body::pack(&["a form".into()]);
        send(&mut reply, Coding::Gzip, form);
        assert_eq!(reply.head.content_length, Some(6));
        assert_eq!(reply.head.form.coded, Some(Coding::Gzip));
        assert!(matches!(reply.body, Body::Encoded(_)));
    }

    #[test]
    fn parts_and_other_bodies_are_no_files() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let part = Body::Segments(
            [Segment::File {
                file: Arc::new(OpenFile::new(file)),
                offset: 1,
                length: 5,
            }]
            .into(),
        );
        for body in [part, Body::Empty, Body::bytes("text")] {
            assert!(kept_file(&body, 0).is_none());
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
}
