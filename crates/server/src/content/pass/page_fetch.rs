//! Fetches for the parts of a page: counted in its budget, and bounded at a time, so that the servers
//! have room for others.

use site::{Pass, PassTarget};

use super::loop_detection;
use crate::exchange::handled::StageEnd;
use crate::exchange::page_budget::Bound;
use crate::exchange::request::Request;
use crate::exchange::slicing::Slicing;
use crate::log::error_log;

/// Waits for the turn of a part to ask an upstream; not at all for a request that is no part. Comes
/// before the request leads a fetch that others wait for.
///
/// # Errors
/// The page has asked as often as it may, or is itself made for a fragment of this server.
pub async fn take_turn(request: &Request, pass: &Pass) -> Result<(), StageEnd> {
    let Some(part) = request.fragments.get() else {
        return Ok(());
    };
    if loop_detection::is_from_own_fragment(&request.received) {
        error_log::beyond_budget(request, Bound::Loop);
        return Err(StageEnd::Status(508));
    }
    if !part.budget.has_fetch_left() {
        error_log::beyond_budget(request, Bound::Fetches);
        return Err(StageEnd::Status(503));
    }
    // The next slice of a part has the turn of its first one: to wait for another while that is held
    // could be to wait for itself.
    if matches!(request.values.slicing(), Slicing::Next(_)) {
        return Ok(());
    }
    let at_once = match &pass.target {
        PassTarget::Group(id) => {
            let groups = &request.configuration.live.groups;
            groups[id.0].group.share_of_page()
        }
        PassTarget::Variable(_) => None,
    };
    // One that was asked before has failed.
    *part.turn.lock() = None;
    let turn = part.budget.take_turn_to_fetch(at_once).await;
    *part.turn.lock() = Some(turn);
    Ok(())
}

/// A fetch begins: it is counted, and gets the turn that was taken for it.
///
/// # Errors
/// A status: the page has asked as often as it may.
pub fn begun(request: &Request) -> Result<Option<Box<dyn Send + Sync>>, u16> {
    let Some(part) = request.fragments.get() else {
        return Ok(None);
    };
    if let Err(bound) = part.budget.take_fetch() {
        error_log::beyond_budget(request, bound);
        return Err(503);
    }
    let turn = part.turn.lock().take();
    Ok(turn.map(|turn| Box::new(turn) as Box<dyn Send + Sync>))
}
