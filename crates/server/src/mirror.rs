//! `mirror`: copies of a request for other paths, made in the background
//! (<https://nginx.org/en/docs/http/ngx_http_mirror_module.html>). No client
//! waits for a copy or sees its response; how many are under way is bounded.

use std::sync::atomic::{AtomicUsize, Ordering};

use site::{LogLevel, Mirror};
use upstream::Class;

use crate::body::RequestBody;
use crate::client::ClientSide;
use crate::error_log;
use crate::request::Request;
use crate::subrequest;

/// Copies under way in the whole process. With bodies of
/// `client_body_buffer_size` each this is some 16 MB; a target slower than that
/// could not follow anyway.
const MAX_IN_FLIGHT: usize = 1024;

static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// Copies that have not ended.
pub fn in_flight() -> usize {
    IN_FLIGHT.load(Ordering::Acquire)
}

/// Starts the copies of `request`. Reads its body first where they are to have
/// it; the error is the status of a body that could not be read.
pub async fn begin(
    request: &mut Request,
    mirror: &Mirror,
    client: &mut ClientSide,
) -> Result<(), u16> {
    if mirror.with_body && matches!(request.body, RequestBody::Unread) {
        client.read_body(request).await?;
    }
    for target in &mirror.targets {
        let Some(place) = Place::take() else {
            error_log::request(
                request,
                LogLevel::Warn,
                format_args!("request not mirrored: {MAX_IN_FLIGHT} copies are under way"),
            );
            return Ok(());
        };
        let args = request.args.clone();
        let mut copy = subrequest::to(request, target, &args);
        copy.extras.class = Class::Mirror;
        if mirror.with_body {
            copy.body = request.body.share();
        }
        launch(copy, place);
    }
    Ok(())
}

fn launch(mut copy: Box<Request>, place: Place) {
    tokio::spawn(async move {
        subrequest::run(&mut copy).await;
        drop(place);
    });
}

/// One of the copies that may be under way; given back when dropped.
struct Place(());

impl Place {
    fn take() -> Option<Place> {
        let more = |taken: usize| (taken < MAX_IN_FLIGHT).then_some(taken + 1);
        IN_FLIGHT
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()
            .map(|_| Place(()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_under_way_are_bounded() {
        let places: Vec<Place> = std::iter::from_fn(Place::take)
            .take(MAX_IN_FLIGHT + 1)
            .collect();
        assert_eq!(places.len(), MAX_IN_FLIGHT);
        assert!(Place::take().is_none());
        drop(places);
        assert_eq!(in_flight(), 0);
    }
}
