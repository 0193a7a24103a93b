//! `cache_purge_api`: a location that takes purges as JSON, and those of other software.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use control::{PurgeReport, PurgeRequest, Refusal};
use site::{BodySettings, InFileOnly, LogLevel, PurgeApi};
use transport::client::ClientSide;

use super::{PurgeCall, Scope, bearer, doors, purge};
use crate::content::own_machine::{self, Purpose};
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::{Method, Request};
use crate::log::error_log;
use crate::log::purge_log::{PurgeInterface, Source};

/// The largest body, where `client_max_body_size` allows more.
const MAX_BODY_BYTES: u64 = 8 << 20;

/// The answer of the location.
pub async fn answer(request: &Request, client: &mut ClientSide, api: &PurgeApi) -> StageEnd {
    match try_answer(request, client, api).await {
        Ok(report) => reply(200, report.to_json()),
        Err(Failure::Refused(refusal)) => refused(&refusal),
        Err(Failure::ClientGone) => StageEnd::ClientGone,
    }
}

enum Failure {
    Refused(Refusal),
    ClientGone,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

async fn try_answer(
    request: &Request,
    client: &mut ClientSide,
    api: &PurgeApi,
) -> Result<PurgeReport, Failure> {
    let who = authorize(request, api)?;
    let (asked, door) = match doors::in_api_location(request) {
        Some(order) => (PurgeCall::Order(order?), PurgeInterface::Request),
        None => (
            PurgeCall::Program(read(request, client).await?),
            PurgeInterface::Api,
        ),
    };
    let configuration = request.configuration.shared().clone();
    let source = Source {
        door,
        who,
        is_own_visit: false,
    };
    Ok(purge(configuration, asked, Scope::All, source).await?)
}

/// Returns the client's name, if it may purge. `allow`, `deny` and passwords have been
/// checked before.
fn authorize(request: &Request, api: &PurgeApi) -> Result<String, Refusal> {
    let address = doors::client_name(&request.received);
    let Some(file) = &api.tokens else {
        return match own_machine::refuses(request, Purpose::Change) {
            None => Ok(address),
            Some(stranger) => Err(stranger.refusal(request)),
        };
    };
    match bearer::holder(request, file)? {
        Some(name) => Ok(format!("{address} {name}")),
        None => Err(Refusal::new(401, "expected Authorization: Bearer TOKEN")),
    }
}

/// Reads a request of the interface.
async fn read(request: &Request, client: &mut ClientSide) -> Result<PurgeRequest, Failure> {
    if request.route.method != Method::Post {
        return Err(Refusal::new(405, "expected POST").into());
    }
    let media_type = request
        .received
        .head()
        .field("content-type")
        .unwrap_or_default();
    let end = memchr::memchr(b';', media_type).unwrap_or(media_type.len());
    let (media_type, _) = media_type.split_at(end);
    // A page that a browser shows can send other types to this machine without being asked.
    if !media_type
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
    {
        return Err(Refusal::new(415, "expected Content-Type: application/json").into());
    }
    let settings = request.settings();
    let max_bytes = match settings.body.max_bytes {
        0 => MAX_BODY_BYTES,
        max => max.min(MAX_BODY_BYTES),
    };
    let in_memory = BodySettings {
        max_bytes,
        buffer_bytes: max_bytes,
        in_file_only: InFileOnly::Off,
        ..settings.body.clone()
    };
    let too_large = || {
        let message = format!("expected a body of at most {max_bytes} bytes");
        Failure::Refused(Refusal::new(413, message))
    };
    // A declared Content-Length has only been compared with `client_max_body_size` so far.
    let said = client.input().and_then(|input| input.remaining());
    if said.is_some_and(|bytes| bytes > max_bytes) {
        return Err(too_large());
    }
    let (read, wire_bytes) = client.read_body(&in_memory).await;
    request.received_bytes.fetch_add(wire_bytes, Relaxed);
    let body = match read {
        Ok(body) => body,
        Err(error) => {
            error_log::request(request, LogLevel::Info, format_args!("{error}"));
            return match error.status() {
                413 => Err(too_large()),
                400 => Err(Refusal::new(400, "the body is not valid").into()),
                408 => Err(Refusal::new(408, "the body did not arrive in time").into()),
                _ => Err(Failure::ClientGone),
            };
        }
    };
    Ok(PurgeRequest::from_json(
        body.in_memory().unwrap_or_default(),
    )?)
}

/// Returns the answer that explains a refusal.
pub fn refused(refusal: &Refusal) -> StageEnd {
    let mut handled = reply(refusal.status, refusal.to_json());
    let StageEnd::Reply(reply) = &mut handled else {
        return handled;
    };
    let fields = &mut reply.head.fields;
    match refusal.status {
        401 => fields.append(
            "WWW-Authenticate",
            Bytes::from_static(b"Bearer realm=\"purge\""),
        ),
        405 => fields.append("Allow", Bytes::from_static(b"POST")),
        _ => {}
    }
    if let Some(seconds) = refusal.retry_after {
        fields.append("Retry-After", Bytes::from(seconds.to_string()));
    }
    handled
}

fn reply(status: u16, json: String) -> StageEnd {
    let mut reply = Reply::new(status, b"application/json", json);
    let no_store = Bytes::from_static(b"no-store");
    reply.head.fields.append("Cache-Control", no_store);
    StageEnd::Reply(Box::new(reply))
}
