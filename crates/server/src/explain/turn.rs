//! The turn that a request would have at its upstream.

use control::explain::TurnPart;
use site::{Pass, PassTarget};

use crate::content::pass::turn;
use crate::exchange::request::Request;

/// Returns the turn of a request that is explained, if the group serves clients in turn.
pub fn part(request: &Request, pass: &Pass) -> Option<TurnPart> {
    let PassTarget::Group(id) = &pass.target else {
        return None;
    };
    let group = &request.configuration.live.groups[id.0].group;
    let clients = request.configuration.live.groups.clients()?;
    let (limit, reason) = group.turns(0, request.now()).limit?;
    let assessed = turn::look(request, clients);
    let (has_used_little, waits_milliseconds) =
        group.outlook(assessed.class, &assessed.turn, request.now());
    Some(TurnPart {
        class: assessed.class.name().to_owned(),
        of: assessed.turn.kind.to_string(),
        limit,
        limit_reason: reason.word().to_owned(),
        has_used_little,
        waits_milliseconds,
    })
}
