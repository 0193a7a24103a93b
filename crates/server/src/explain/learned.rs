//! Explains the inputs of a learned page, or why they are not known (`cache_learn`).

use cache_decision::fields::Fields;
use control::explain::{LearnedPart, LearnedState};
use http_cache::VarySpec;
use learning::{LogState, MAX_REPLAY_PERCENT, PageReport};
use site::{Content, PassTarget};

use crate::content::through_cache::learned::page_name;
use crate::content::through_cache::outlook::Lookup;
use crate::content::through_cache::site_variance;
use crate::exchange::request::Request;

/// `None`: nothing is learned there.
pub fn part(request: &Request, lookup: &Lookup) -> Option<LearnedPart> {
    lookup.rules.learn.as_ref()?;
    let pools = request.configuration.live.groups.learned()?;
    let Content::Pass(pass) = &request.settings().content else {
        return None;
    };
    let pool = match pass.target {
        PassTarget::Group(id) => pools.of_group(id)?,
        PassTarget::Variable(_) => return None,
    };
    let name = |vary: Option<(&VarySpec, &[u8])>| page_name(&lookup.zone, &lookup.key, vary);
    let of_variant = |spec: &VarySpec| {
        let mut values = Vec::new();
        spec.values(&Fields::Received(request.received.head()), &mut values);
        pool.page(&name(Some((spec, &values))))
    };
    let stored = lookup.stored.as_ref().map(|stored| stored.vary.as_ref());
    let report = match (stored, &lookup.varies_on) {
        (Some(vary), _) => pool.page(&name(vary.map(|vary| (&**vary.spec(), vary.values())))),
        (None, Some(spec)) => of_variant(spec),
        // Of a page that was withdrawn, what it varies on is forgotten.
        (None, None) => pool.page(&name(None)).or_else(|| {
            let spec = lookup
                .class
                .and(site_variance::known(&lookup.zone, request));
            of_variant(&*spec?)
        }),
    };
    Some(learned_part(report))
}

fn replays(percent: Option<u32>) -> String {
    percent.map_or_else(String::new, |percent| {
        format!(
            " Its statements are run again once for those who ask for it; replays of the pool took {percent} % of the last \
             minute, and take at most {MAX_REPLAY_PERCENT} % beside what visitors wait for."
        )
    })
}

fn learned_part(report: Option<PageReport>) -> LearnedPart {
    let empty = LearnedPart {
        state: LearnedState::Unknown,
        reason: String::new(),
        sentence: "Nothing is known of it: it was not made yet, or too long ago.".to_owned(),
        detail: String::new(),
        milliseconds_ago: None,
        statements: None,
        tables: Vec::new(),
        files: Vec::new(),
        log: String::new(),
        databases: Vec::new(),
        same: 0,
        changed: 0,
    };
    match report {
        None => empty,
        Some(PageReport::NotLearned { why, ago }) => LearnedPart {
            state: LearnedState::NotLearned,
            reason: why.reason.word().to_owned(),
            sentence: why.reason.sentence().to_owned(),
            detail: why.detail,
            milliseconds_ago: Some(clock::millis(ago)),
            ..empty
        },
        Some(PageReport::Learned {
            made_ago,
            suspect,
            left,
            is_kept,
            not_kept,
            statements,
            tables,
            files,
            log,
            databases,
            replay_percent,
            same,
            changed,
        }) => {
            let why = not_kept.filter(|_| suspect.is_none());
            let reason = why.as_ref().map_or("", |why| why.reason.word()).to_owned();
            let (state, sentence, detail) = match (suspect, why) {
                (None, Some(why)) => (
                    LearnedState::Fresh,
                    format!(
                        "Nothing that it was made of has changed, but it has its ordinary lifetime. {}",
                        why.reason.sentence()
                    ),
                    why.detail,
                ),
                (None, None) => (
                    LearnedState::Fresh,
                    format!(
                        "Nothing that it was made of has changed; it {} kept for {} more seconds.",
                        if is_kept { "is" } else { "would be" },
                        left.as_secs()
                    ),
                    String::new(),
                ),
                (Some((cause, ago)), _) => (
                    LearnedState::Suspect,
                    format!(
                        "Something that it was made of may have changed {} seconds ago.{}",
                        ago.as_secs(),
                        replays(replay_percent)
                    ),
                    cause,
                ),
            };
            LearnedPart {
                state,
                reason,
                sentence,
                detail,
                milliseconds_ago: Some(clock::millis(made_ago)),
                statements: Some(statements),
                tables,
                files,
                log: match log {
                    LogState::Off => String::new(),
                    LogState::Followed => "followed".to_owned(),
                    LogState::NotFollowed(why) => format!("not followed: {why}"),
                },
                databases,
                same,
                changed,
            }
        }
    }
}
