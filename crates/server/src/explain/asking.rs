//! The request, really made, as a visitor's would be but for the limits on requests: the
//! application's answer, and the cache's result.

use bytes::Bytes;
use control::Refusal;
use control::explain::AskedResponse;
use http_cache::Reason;

use super::way::Question;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::own_visit::Purpose;
use crate::exchange::subrequest;

/// More of a page is not waited for: it is too large to be stored by far.
const MAX_BODY_BYTES: usize = 256 << 20;

/// The application's answer to a request that was really made.
pub struct ApplicationAnswer {
    pub response: AskedResponse,
    pub reason: Option<Reason>,
}

/// Makes the request.
///
/// # Errors
/// It may not be made, or is not now.
pub async fn ask(
    configuration: &ConfigurationHandle,
    question: &Question,
) -> Result<ApplicationAnswer, Refusal> {
    if !matches!(question.method.as_str(), "GET" | "HEAD") {
        return Err(Refusal::field(
            "ask",
            "only GET and HEAD are sent: other methods change something",
        ));
    }
    let mut request = question.request(configuration, Purpose::Ask)?;
    let reply = subrequest::serve(&mut request).await;
    let visit = request.own_visit.as_ref();
    if visit.is_some_and(|visit| visit.not_asked.get().is_some()) {
        return Err(match request.cache.reason() {
            Some(Reason::Purge) => Refusal::field("ask", "this request would purge"),
            _ => Refusal {
                retry_after: Some(1),
                ..Refusal::new(503, "visitors come first: the server is busy")
            },
        });
    }
    let Some(reply) = reply else {
        return Ok(ApplicationAnswer {
            response: AskedResponse {
                status: request.delivery.status,
                cache_status: String::new(),
                bytes: 0,
                location: String::new(),
            },
            reason: Some(Reason::NoAnswer),
        });
    };
    let mut head = reply.head;
    let status = request.delivery.status_of(&head);
    head.unpack();
    let location = head.fields.get(b"location").unwrap_or_default();
    let location = String::from_utf8_lossy(location).into_owned();
    let mut bytes = 0;
    // At its end it is known whether all of it was stored.
    let count = |piece: Bytes| bytes += piece.len() as u64;
    subrequest::read_body(&request, reply.body, MAX_BODY_BYTES, count).await;
    let refresh = request
        .values
        .given()
        .and_then(|it| it.later.refresh.take());
    if let Some(refresh) = refresh {
        // Its result is seen in the store.
        let _ = refresh.await;
    }
    let cache_status = request.cache.read(|notes| notes.upstream_cache_status());
    Ok(ApplicationAnswer {
        response: AskedResponse {
            status,
            cache_status: cache_status.map_or("", |it| it.as_str()).to_owned(),
            bytes,
            location,
        },
        reason: request.cache.reason(),
    })
}
