//! Explains how a request would be answered, and why.

use std::sync::Arc;

use cache_decision::{Action, ForeseenReason, advice};
use control::explain::{
    CachePart, ExplainedReason, KnownBy, Limit, LimitVerdict, Outcome, Variants,
};
use control::{ExplainRequest, Explanation, Refusal};
use http_cache::{Forward, Millis, Reason, Refusal as LastRefusal, StoredId};
use site::{CacheRules, LearnMode};
use transport::facts::LocalAddress;

use super::asking::{self, ApplicationAnswer};
use super::learned;
use super::lifetime;
use super::parts;
use super::seen;
use super::shown::{ShownZone, readable};
use super::trying;
use super::way::{Question, Way, walk};
use crate::content::through_cache::outlook::{Lookup, Outlook};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::own_visit::LimitVerdict as Foreseen;
use crate::exchange::request::Request;
use live_state::disk_pages::DiskPages;

/// Explains how a request would be answered, or how it was if the caller wants it made.
///
/// # Errors
/// There is no such request, or it may not be made.
pub async fn explain(
    configuration: Arc<ActiveConfiguration>,
    asked: &ExplainRequest,
) -> Result<Explanation, Refusal> {
    let configuration = ConfigurationHandle::new(configuration);
    let question = Question::of(asked)?;
    let answer = match asked.ask {
        true => Some(asking::ask(&configuration, &question).await?),
        false => None,
    };
    let trial = match asked.tries {
        true => trying::try_out(&configuration, &question).await?,
        false => Vec::new(),
    };
    let way = walk(&configuration, &question).await?;
    let parts = parts::of(&configuration, &question, &way).await;
    Ok(Explanation {
        trial,
        ..explanation(&question, &way, parts, answer)
    })
}

fn explanation(
    question: &Question,
    way: &Way,
    parts: Vec<control::explain::Part>,
    answer: Option<ApplicationAnswer>,
) -> Explanation {
    let request = &way.request;
    let outlook = way.outlook.as_ref();
    let lookup = outlook.and_then(|outlook| outlook.lookup.as_ref());
    let rules = lookup.map(|lookup| &lookup.rules);
    let known = match &answer {
        Some(answer) => answer.reason.map(|why| (why, KnownBy::Response, None)),
        None => outlook
            .and_then(|outlook| outlook.reason.as_ref())
            .map(known),
    };
    let entry = lookup.and_then(|lookup| entry_of(way, lookup));
    let mut advised = Vec::new();
    advised.extend(known.map(|(why, ..)| advice::on(why).to_owned()));
    if rules.is_some_and(|rules| rules.speaks_litespeed()) {
        let is_private = entry.as_ref().is_some_and(|entry| entry.is_private);
        advised.extend(advice::of_litespeed(known.map(|(why, ..)| why), is_private));
    }
    if let Some(name) = outlook.and_then(|outlook| outlook.unknown_zone.as_ref()) {
        advised.push(format!(
            "No cache zone is called \"{name}\": requests are answered 500."
        ));
    }
    if let Some(name) = disbelieved(question, request) {
        advised.push(format!(
            "{name} is not believed, since no trusted_proxy names the client: the application is told of the connection. \
             If a proxy in front sets it, name its address with trusted_proxy (serve --behind ADDRESS)."
        ));
    }
    if known.is_none() && answer.is_none() && is_unknown(outlook) {
        advised.push(
            "Nothing is stored for it, and nothing is known of an earlier response. Only the \
             application knows what it will answer: --ask makes the request."
                .to_owned(),
        );
    }
    Explanation {
        url: question.url.clone(),
        method: question.method.clone(),
        listen: match &request.received.connection().local {
            LocalAddress::Ip(address) => address.to_string(),
            LocalAddress::Unix(path) => format!("unix:{}", path.display()),
        },
        server: request.server().name.clone(),
        location: request.location().name.clone(),
        plan: way.plan.clone(),
        client: request
            .received
            .client()
            .filter(|_| question.from.is_some())
            .map(|client| client.ip()),
        limits: limits(request),
        cache: lookup.map(cache_part),
        outcome: outlook.map_or(Outcome::Off, outcome),
        is_stored: entry.is_some(),
        reason: known.map(|known| explained_reason(known, rules)),
        variants: lookup.and_then(variants),
        learned: lookup.and_then(|lookup| learned::part(request, lookup)),
        evidence: lookup.and_then(|lookup| seen::part(request, lookup)),
        trial: Vec::new(),
        entry,
        parts,
        advice: advised,
        asked: answer.map(|answer| answer.response),
    }
}

/// A field of the question by which proxies tell of the visitor, where none is believed.
fn disbelieved<'q>(question: &'q Question, request: &Request) -> Option<&'q str> {
    let is_of_proxies = |name: &str| {
        let names = ["x-forwarded-proto", "x-forwarded-host", "x-forwarded-for"];
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    let believes = request.settings().real_ip.believes_forwarded;
    let mut fields = question.fields.iter().filter(|_| !believes);
    fields.find_map(|(name, _)| is_of_proxies(name).then_some(&**name))
}

fn limits(request: &Request) -> Vec<Limit> {
    let visit = request.own_visit.as_ref();
    let limits = visit.and_then(|visit| visit.limits.get());
    let limits = limits.map_or(&[][..], Vec::as_slice);
    let explained = limits.iter().map(|limit| Limit {
        directive: limit.directive.to_owned(),
        zone: limit.zone.clone(),
        says: match limit.says {
            Foreseen::Pass => LimitVerdict::Pass,
            Foreseen::Delay(pause) => LimitVerdict::Delay {
                milliseconds: clock::millis(pause),
            },
            Foreseen::Refuse(status) => LimitVerdict::Refuse { status },
        },
        is_dry_run: limit.is_dry_run,
    });
    explained.collect()
}

fn outcome(outlook: &Outlook) -> Outcome {
    match (&outlook.decision.action, outlook.decision.forward) {
        (Action::Purge(_), _) => Outcome::Purge,
        (Action::Hit, _) => Outcome::Hit,
        (Action::ShowStale(..) | Action::Refresh(_), _) => Outcome::Stale,
        (_, None) => Outcome::Off,
        (_, Some(Forward::Method)) => Outcome::Method,
        (_, Some(Forward::Bypass)) => Outcome::Bypass,
        (_, Some(Forward::Stale)) => Outcome::Stale,
        (_, Some(Forward::VaryMiss)) => Outcome::VaryMiss,
        (_, Some(_)) => Outcome::Miss,
    }
}

fn is_unknown(outlook: Option<&Outlook>) -> bool {
    let outcome = outlook.map(outcome);
    matches!(outcome, Some(Outcome::Miss | Outcome::VaryMiss))
}

fn known(known: &ForeseenReason) -> (Reason, KnownBy, Option<LastRefusal>) {
    match known {
        ForeseenReason::ByRequest(why) => (*why, KnownBy::Request, None),
        ForeseenReason::ByMoment(why) => (*why, KnownBy::Moment, None),
        ForeseenReason::ByLast(last) => (last.why, KnownBy::LastResponse, Some(*last)),
    }
}

fn explained_reason(
    (why, known_by, last): (Reason, KnownBy, Option<LastRefusal>),
    rules: Option<&Arc<CacheRules>>,
) -> ExplainedReason {
    let now = Millis(clock::now());
    let ago = last.map(|last| now.since(last.at).as_millis());
    let lines = rules.map_or_else(Vec::new, |rules| {
        let endings = advice::directives(why).iter();
        let lines = endings.flat_map(|ending| rules.lines_of(ending));
        lines.map(line_text).collect()
    });
    ExplainedReason {
        word: why.word().to_owned(),
        sentence: why.sentence().to_owned(),
        known_by,
        milliseconds_ago: ago.map(|ago| u64::try_from(ago).unwrap_or(u64::MAX)),
        status: last.map(|last| last.status),
        lines,
    }
}

/// A line of the configuration for people.
pub fn line_text(line: &site::RuleLine) -> String {
    format!("{}: {}", line.at, line.text)
}

fn cache_part(lookup: &Lookup) -> CachePart {
    CachePart {
        zone: lookup.zone.config().name.clone(),
        key: readable(&lookup.key),
        address: readable(&lookup.address),
        disk: DiskPages::of(&lookup.zone).map_or_else(String::new, |pages| {
            let state = pages.state();
            let learn = lookup.rules.learn.as_ref();
            let learn = learn.filter(|it| it.keeps());
            match (state.why(), pages.has(&lookup.key)) {
                _ if learn.is_some_and(|it| it.mode == LearnMode::Auto) => {
                    "is not used here: with cache_learn auto, pages are kept in memory alone".to_owned()
                }
                _ if learn.is_some_and(|it| !it.replays) => {
                    "is not used here: without cache_learn_replay, pages that are learned are kept in memory alone"
                        .to_owned()
                }
                (Some(why), _) => format!("{}: {why}", state.word()),
                (None, true) if learn.is_some() => {
                    "has a response for this key, which is shown once its statements have returned the same".to_owned()
                }
                (None, true) => "has a response for this key".to_owned(),
                (None, false) => "has nothing for this key".to_owned(),
            }
        }),
    }
}

/// Describes the stored response for the request.
fn entry_of(way: &Way, lookup: &Lookup) -> Option<control::Entry> {
    let stored = lookup.stored.as_ref()?;
    let now = Millis(way.request.now());
    let key = http_cache::CacheKey::new(lookup.key.clone());
    let mut variants = lookup.zone.variants(&key.as_ref(), now).into_iter();
    // Finds the same response, or its replacement if it was stored again meanwhile.
    let found = variants.find(|found| found.response.vary == stored.vary)?;
    let shown = ShownZone::new(&way.request.configuration, &lookup.zone);
    let mut entry = shown.whole(&found, now);
    entry.lifetime_by = lifetime::given_by(&found.response, lookup);
    Some(entry)
}

fn variants(lookup: &Lookup) -> Option<Variants> {
    let key = http_cache::CacheKey::new(lookup.key.clone());
    let stored = lookup.zone.variants(&key.as_ref(), Millis(clock::now()));
    let ids: Vec<StoredId> = stored
        .iter()
        .filter(|it| !it.is_gone)
        .map(|it| it.id)
        .collect();
    let fields = lookup.varies_on.as_ref().map(|spec| spec.names().to_vec());
    (!ids.is_empty()).then(|| Variants {
        stored: ids.len(),
        most: lookup.zone.config().max_variants,
        fields: fields.unwrap_or_default(),
    })
}
