//! Explains the evidence about a page that visitors may share, and its effect on this
//! visitor.

use control::explain::{EvidencePart, SessionPart, Standing as ExplainedStanding};
use page_evidence::{PageFindings, PageName, SessionStanding, Standing};
use shared_request::TraitSet;

use crate::content::through_cache::outlook::Lookup;
use crate::exchange::request::Request;

/// Returns the evidence about the page; `None` if its answers are not shared on evidence.
pub fn part(request: &Request, lookup: &Lookup) -> Option<EvidencePart> {
    let (page, standing) = lookup.page?;
    let now = clock::now();
    let evidence = &request.configuration.live.alive_zones.seen_pages.evidence;
    let found = evidence.findings(page.name, now);
    let words = |traits: TraitSet| traits.iter().map(|it| it.word().to_owned()).collect();
    let depends = found.map_or(TraitSet::NONE, |found| found.depends);
    Some(EvidencePart {
        standing: match standing {
            Standing::Shared => ExplainedStanding::Shared,
            Standing::Unproven => ExplainedStanding::Unproven,
            Standing::NotShareable => ExplainedStanding::NotShareable,
            Standing::Depends(_) | Standing::Unexplained => ExplainedStanding::Depends,
        },
        left_out: words(page.left_out.traits()),
        known_for_milliseconds: found
            .map(|found| now.saturating_sub(u64::from(found.since) * 1000)),
        comparisons: found.map_or(0, |found| found.comparisons),
        immaterial: found.map_or(0, |found| found.agreed),
        depends_on: words(depends),
        in_key: words(page.keyed),
        is_refused: found.is_some_and(|found| found.is_refused),
        refusal: match found.map(|found| found.session) {
            Some(SessionStanding::None) if standing == Standing::NotShareable => {
                let guests = &request.configuration.live.alive_zones.seen_pages.guests;
                guests.refusal(page.name).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        },
        is_unexplained: found.is_some_and(|found| found.is_unexplained),
        differs_each_time: found.is_some_and(|found| found.differs_each_time),
        session: found.and_then(|found| session(request, page.name, &found)),
    })
}

fn session(request: &Request, page: PageName, found: &PageFindings) -> Option<SessionPart> {
    let guests = &request.configuration.live.alive_zones.seen_pages.guests;
    if found.leaves_session {
        let why = guests.refusal(page).unwrap_or_default().to_owned();
        return Some(SessionPart::Left { why });
    }
    match found.session {
        SessionStanding::None => None,
        SessionStanding::Begun => Some(match guests.refusal(page) {
            Some(why) => SessionPart::Refused {
                why: why.to_owned(),
            },
            None => SessionPart::Unproven,
        }),
        // Who has a session waits for the end of the trial.
        SessionStanding::SharedByNew => Some(SessionPart::Unproven),
        SessionStanding::Indifferent => {
            let (numbers, tokens) = guests
                .page(page)
                .map_or((0, 0), |known| known.form().count());
            Some(SessionPart::Shared { numbers, tokens })
        }
    }
}
