//! What is begun before the trial of a page that begins a session. While the first guest's own request is under way and
//! others wait, PHP has time: the shared request is a neutral guest's, and so the trial's first one; and on a site whose
//! pages begin sessions, other pages that the trial will need are asked for as well.

use std::sync::Arc;

use bytes::Bytes;
use cache_decision::Plan;
use guest_pages::{MAX_WITNESSES, target};
use live_state::evidence::{BegunAhead, SeenPages, SharedAnswer, SharedOffer};
use page_evidence::PageName;
use shared_request::{TraitSet, left_out};
use site::Pass;
use tokio::sync::oneshot;

use super::guests;
use super::shared;
use super::trial_requests::TrialRequest;
use super::tried::TrialSource;
use crate::exchange::request::Request;

/// So many requests are begun beside the first guest's own and the shared one.
const MAX_BEGUN: usize = 2;

/// Offers the shared request that begins now to the trial that may follow, and begins others for it. `is_idle`: PHP has
/// nothing to do that waits.
pub fn offer(
    request: &Request,
    pass: &Arc<Pass>,
    plan: &mut Plan<'_>,
    (page, is_idle): (PageName, bool),
) -> Option<SharedOffer> {
    let rules = plan.rules.shared.as_ref()?;
    if !rules.guest_sessions.are_shared() {
        return None;
    }
    let seen = guests::seen(request);
    let address = left_out::next_address();
    plan.tried_address = Some(address);
    let own = guests::asked_target(request);
    let is_likely = seen.evidence.has_sessions(page) && !target::is_for_one_visitor(own);
    let mut begun = BegunAhead::default();
    if is_likely && is_idle {
        let mut begin = |wanted: TrialRequest| {
            let mut source = TrialSource::ahead(address, shared::copy_of(request), pass);
            let (give, given) = oneshot::channel();
            begun.tasks.spawn(async move {
                if let Ok(Some(tried)) = wanted.make(&mut source).await
                    && let Some(answer) = tried.storable()
                {
                    let _ = give.send(SharedAnswer {
                        status: answer.status,
                        fields: answer.fields,
                        body: Bytes::from(answer.body),
                    });
                }
            });
            given
        };
        begun.second = Some(begin(TrialRequest::Own(TraitSet::NONE, None)));
        let front = front_if_unknown(request, seen).map(<[u8]>::to_vec);
        let less = less_one_argument(request, seen).into_iter();
        let targets = front.into_iter().chain(less.map(|(_, target)| target));
        for target in targets.take(MAX_BEGUN - 1) {
            let given = begin(TrialRequest::Other(target.clone(), None));
            begun.others.push((target, given));
        }
    }
    Some(seen.offer(page, address, begun))
}

/// The site's first page, where it is another one than that of the trial, and its form is not known.
pub fn front_if_unknown(request: &Request, seen: &SeenPages) -> Option<&'static [u8]> {
    const FRONT: &[u8] = b"/";
    let host = guests::named_host(request);
    let is_unknown =
        guests::asked_target(request) != FRONT && seen.guests.at(&host, FRONT).is_none();
    is_unknown.then_some(FRONT)
}

/// The pages that are asked for with a session: the site's first one, and kinds that guests share.
pub fn other_pages(request: &Request, seen: &SeenPages) -> Vec<Vec<u8>> {
    let host = guests::named_host(request);
    let own = guests::asked_target(request);
    let mut others: Vec<Vec<u8>> = Vec::new();
    if own != b"/" {
        others.push(b"/".to_vec());
    }
    let is_familiar = seen.guests.is_familiar(&host, own);
    // One where pages whose addresses look alike were shared before.
    let most = match is_familiar {
        true => 1,
        false => MAX_WITNESSES,
    };
    let witnesses = seen.guests.witnesses(&host);
    let known = witnesses.iter().map(|page| page.known().target.clone());
    others.extend(
        known
            .filter(|target| *target != own && target != b"/")
            .take(most),
    );
    others
}

/// The arguments of the page of which it is not known whether they show, each with the target without it. None where pages
/// whose addresses look alike were found to be shared.
pub fn less_one_argument(request: &Request, seen: &SeenPages) -> Vec<(Vec<u8>, Vec<u8>)> {
    let host = guests::named_host(request);
    let own = guests::asked_target(request);
    if seen.guests.is_familiar(&host, own) {
        return Vec::new();
    }
    let path = guests::path_of(own);
    let mut less = guests::less_one_argument(own);
    less.retain(|(argument, _)| !seen.guests.is_shown(&host, path, argument));
    less
}
