//! A fetch for one client alone.

use std::pin::pin;
use std::sync::Arc;

use cache_decision::litespeed;
use http_cache::{Millis, Zone};
use site::Pass;
use transport::client::{ClientSide, unless_gone};
use transport::request_body::RequestBody;

use super::early_hints::EarlyHints;
use super::fetch_log::Visitor;
use super::fetch_purpose::FetchPurpose;
use super::fetch_spec::{spec, take_body, wants_body};
use super::file_copy;
use super::guest_write;
use super::learned;
use super::page_fetch;
use super::response::{failed, into_handled};
use crate::content::own_visit;
use crate::content::purging::by_response;
use crate::content::purging::by_response::ByResponse;
use crate::content::purging::edits;
use crate::content::robots::RobotsOfSite;
use crate::content::through_cache::guests;
use crate::content::through_cache::with_cookies;
use crate::exchange::handled::StageEnd;
use crate::exchange::own_visit::NotAsked;
use crate::exchange::request::Request;
use crate::log::traces;
use upstream_fetch::{FetchError, StreamedBody};

/// Fetches for this client alone. `changes`: the zone whose pages the request may change.
pub async fn direct(
    request: &mut Request,
    pass: &Arc<Pass>,
    client: &mut ClientSide,
    changes: Option<&Arc<Zone>>,
) -> StageEnd {
    let changes = changes.map(|zone| (zone, Millis(clock::now())));
    // The page is asked for once more, with the visitor's own request.
    let part = request.fragments.get();
    if part.is_some_and(|part| part.turn.lock().is_none())
        && let Err(refused) = page_fetch::take_turn(request, pass).await
    {
        return refused;
    }
    if wants_body(request, pass) {
        let taken = Box::pin(take_body(request, pass, client)).await;
        if let Err(status) = request.set_body(taken) {
            return StageEnd::Status(status);
        }
    }
    let writer = guest_write::Writer::of(request, pass);
    guests::note_asked(request);
    let prepared = Box::pin(guest_write::prepare(request, pass, writer)).await;
    let (written, session) = prepared.unzip();
    if let Some(written) = written {
        request.received.replace_head(written.head);
        request.route.args = written.args;
        if let Some(body) = written.body {
            request.body = RequestBody::Memory(body.into());
        }
    }
    let trace = traces::begin_direct(request, pass);
    let learned = learned::begin(request, pass);
    let _write = learned::begin_write(request);
    let purpose = FetchPurpose {
        learned_fetch: learned.as_ref().map(learning::Fetch::number),
        deadline: Some(client.deadline()),
        trace: trace.fields(),
        ..FetchPurpose::default()
    };
    let visitor = Visitor::begin_fetch(request);
    let spec = visitor.and_then(|visitor| spec(trace.sent(request), pass, &purpose, visitor));
    let _trace = trace.begun(request, spec.is_ok());
    let mut spec = match spec {
        Ok(spec) => spec,
        Err(status) => return StageEnd::Status(status),
    };
    if matches!(request.body, RequestBody::Streamed(_)) {
        spec.streaming = client
            .lend_input()
            .map(|input| Box::new(input) as StreamedBody);
    }
    let exchange = &pass.exchange;
    let is_for_more = exchange.ignore_client_abort || exchange.file_copy.is_some();
    let watch = !is_for_more && spec.streaming.is_none();
    let hints = EarlyHints::of(request, client, &mut spec);
    let fetched = {
        // It is large, and stays where it is.
        let fetching = pin!(upstream_fetch::fetch(&mut spec));
        let fetching = unless_gone(client.gone(watch), fetching);
        match hints {
            None => fetching.await,
            Some(hints) => Box::pin(hints.while_waiting(request, exchange, fetching))
                .await
                .flatten(),
        }
    };
    let mut fetched = match fetched {
        Some(Ok(fetched)) => fetched,
        Some(Err(FetchError::LeftOut)) if request.is_own_visit() => {
            own_visit::note(request, NotAsked::Busy);
            return own_visit::NOT_ASKED;
        }
        Some(Err(error)) => return failed(error),
        None => {
            spec.context.trace.lock().end_try(Some(499));
            return StageEnd::ClientGone;
        }
    };
    learned::note_cookies(learned.as_ref(), &fetched.fields);
    if let Some(robots) = RobotsOfSite::asked_for(request) {
        Box::pin(robots.read_response(&mut fetched)).await;
    }
    if let Some(session) = session {
        session.put_into(&mut fetched.fields);
    }
    if by_response::is_asked(&fetched.fields, exchange)
        && let Some(purge) = ByResponse::of(request, pass, spec.to.own_pool)
    {
        Box::pin(purge.carry_out(&fetched.fields)).await;
    }
    if let Some((zone, began)) = changes {
        let cache = (&pass.cache, zone);
        Box::pin(edits::await_purge(request, cache, &mut fetched, began)).await;
    }
    if exchange.litespeed {
        with_cookies::note_of_direct(&request.values, &fetched.fields);
        litespeed::put_surrogate_control(&mut fetched.fields);
    }
    let file_copy = match spec.is_head {
        true => None,
        false => file_copy::plan(request, pass, &fetched),
    };
    into_handled(request, pass, fetched, file_copy)
}
