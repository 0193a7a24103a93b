//! `mayfly explain`: asks the running server how it would answer a request, and why; or for its
//! stored responses. `--audit` is `explain_audit/`.

use std::net::Ipv4Addr;
use std::path::Path;

use control::explain::{
    Effect, EvidencePart, ExplainedReason, KnownBy, LearnedPart, LearnedState, Limit, LimitVerdict,
    Outcome, PlanKind, SessionPart, Standing, TriedAlteration, TriedEffect, TurnPart,
};
use control::{
    ClientError, Entry, EntryRequest, ExplainRequest, Explanation, FoundEntries, SearchRequest,
};
use serde::Serialize;

use crate::cli::ExplainArgs;
use crate::commands::explain_audit;
use crate::commands::running_server::{self, explained, find};
use command_line::{Exit, complain, print, printable};

pub fn run(args: &ExplainArgs) -> Exit {
    let fields = match fields(&args.fields) {
        Ok(fields) => fields,
        Err(message) => return complain(Exit::Usage, &message),
    };
    if args.audit.audit {
        return explain_audit::run(args, fields);
    }
    if args.urls.len() > 1 {
        return complain(Exit::Usage, "expected one URL; --audit takes several");
    }
    running_server::run(async {
        let path = find(&args.server, &args.urls).await?;
        let answered = answer(args, fields, &path).await;
        Ok(print(&answered.map_err(|error| explained(&path, &error))?))
    })
}

/// `NAME: VALUE`, as curl takes them.
fn fields(typed: &[String]) -> Result<Vec<(String, String)>, String> {
    let field = |text: &String| match text.split_once(':') {
        Some((name, value)) if !name.is_empty() => {
            Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
        }
        _ => Err(format!("-H {text}: expected NAME: VALUE")),
    };
    typed.iter().map(field).collect()
}

async fn answer(
    args: &ExplainArgs,
    fields: Vec<(String, String)>,
    path: &Path,
) -> Result<String, ClientError> {
    if let Some(url) = args.urls.first() {
        let request = ExplainRequest {
            url: url.clone(),
            method: args.method.clone(),
            fields,
            ask: args.ask,
            tries: args.tries,
            from: Some(args.from.unwrap_or(Ipv4Addr::LOCALHOST.into())),
        };
        let explanation = control::client::explain(path, &request).await?;
        if let Some(doubt) = running_server::doubt(&args.server, path, url, &explanation).await {
            let doubt: String = doubt.chars().map(printable).collect();
            complain(Exit::Done, &doubt);
        }
        return Ok(shown(args, &explanation, text));
    }
    if let Some(id) = &args.entry {
        let request = EntryRequest { id: id.clone() };
        let entry = control::client::entry(path, &request).await?;
        return Ok(shown(args, &entry, |entry| lines(&entry_lines(entry))));
    }
    let request = SearchRequest {
        text: args.search.clone(),
        tag: args.tag.clone(),
        limit: args.limit,
        after: args.after.clone(),
        zone: None,
    };
    let found = control::client::search(path, &request).await?;
    Ok(shown(args, &found, table))
}

fn shown<T: Serialize>(args: &ExplainArgs, value: &T, text: impl Fn(&T) -> String) -> String {
    match args.json {
        // Values read from JSON can be written as JSON.
        true => serde_json::to_string(value).unwrap_or_default() + "\n",
        false => text(value),
    }
}

/// A label, and its text.
type Line = (&'static str, String);

fn lines(all: &[Line]) -> String {
    let mut out = String::new();
    for (label, text) in all {
        let text: String = text.chars().map(printable).collect();
        out.push_str(&format!("  {label:<10}  {text}\n"));
    }
    out
}

/// An explanation for people.
fn text(explanation: &Explanation) -> String {
    let url: String = explanation.url.chars().map(printable).collect();
    let mut all = way_lines(explanation);
    all.extend(cache_lines(explanation));
    if let Some(entry) = &explanation.entry {
        all.extend(entry_lines(entry));
    }
    if let Some(variants) = &explanation.variants {
        let by = match &variants.fields[..] {
            [] => String::new(),
            fields => format!(", distinguished by {}", fields.join(", ")),
        };
        let (stored, most) = (variants.stored, variants.most);
        all.push(("variants", format!("{stored} of at most {most}{by}")));
    }
    all.extend(explanation.learned.iter().flat_map(learned_lines));
    all.extend(explanation.evidence.iter().flat_map(evidence_lines));
    all.extend(
        explanation
            .trial
            .iter()
            .map(|row| ("tried", tried_text(row))),
    );
    all.extend(part_lines(explanation));
    all.extend(
        explanation
            .advice
            .iter()
            .map(|advice| ("advice", advice.clone())),
    );
    format!("{} {url}\n{}", explanation.method, lines(&all))
}

fn way_lines(explanation: &Explanation) -> Vec<Line> {
    let server = match explanation.server.as_str() {
        "" => format!("one without a name, on {}", explanation.listen),
        name => format!("{name}, on {}", explanation.listen),
    };
    let location = match explanation.location.as_str() {
        "" => "the server's own level".to_owned(),
        location => location.to_owned(),
    };
    let plan = &explanation.plan;
    let status = plan
        .status
        .map_or_else(String::new, |it| format!(" with {it}"));
    let doing = match plan.kind {
        PlanKind::File => format!("sends the file {}", plan.to),
        PlanKind::Fastcgi => format!("asks FastCGI at {}", plan.to),
        PlanKind::Http => format!("asks HTTP at {}", plan.to),
        PlanKind::Memcached => format!("asks memcached at {}", plan.to),
        PlanKind::Handler => format!("answers by {}", plan.to),
        PlanKind::PurgeApi => "purges (cache_purge_api)".to_owned(),
        PlanKind::Answer => format!("answers{status} by itself"),
        PlanKind::Nothing => "closes the connection without an answer".to_owned(),
    };
    let client = explanation
        .client
        .map(|client| ("client", client.to_string()));
    let all = client.into_iter().chain([
        ("server", server),
        ("location", location),
        ("plan", format!("the server {doing}")),
    ]);
    let limits = explanation
        .limits
        .iter()
        .map(|limit| ("limit", limit_text(limit)));
    let turn = plan.turn.iter().map(|turn| ("turn", turn_text(turn)));
    all.chain(turn).chain(limits).collect()
}

fn turn_text(turn: &TurnPart) -> String {
    let waits = match (turn.waits_milliseconds, turn.has_used_little) {
        (0, _) => "it would begin at once".to_owned(),
        (waits, true) => format!(
            "it has used little, and goes before others who wait (all of them: {})",
            time(waits)
        ),
        (waits, false) => format!("it would wait for up to {}", time(waits)),
    };
    format!(
        "a {}'s, the turn of {}: {waits}; {} requests run at once ({})",
        turn.class, turn.of, turn.limit, turn.limit_reason
    )
}

fn limit_text(limit: &Limit) -> String {
    let says = match limit.says {
        LimitVerdict::Pass => "lets the client pass".to_owned(),
        LimitVerdict::Delay { milliseconds } => {
            format!("delays the client by {}", time(milliseconds))
        }
        LimitVerdict::Refuse { status } => format!("refuses the client with {status}"),
    };
    let dry_run = if limit.is_dry_run {
        " (dry run only)"
    } else {
        ""
    };
    format!(
        "{} {} {says} at this moment{dry_run}",
        limit.directive, limit.zone
    )
}

fn cache_lines(explanation: &Explanation) -> Vec<Line> {
    let mut all = Vec::new();
    if let Some(cache) = &explanation.cache {
        all.push(("zone", cache.zone.clone()));
        if !cache.disk.is_empty() {
            all.push(("disk", cache.disk.clone()));
        }
        all.push(("key", cache.key.clone()));
    }
    if let Some(asked) = &explanation.asked {
        let status = match asked.cache_status.as_str() {
            "" => String::new(),
            status => format!(", {status}"),
        };
        let to = match asked.location.as_str() {
            "" => String::new(),
            location => format!(", leads to {location}"),
        };
        let text = format!("{}{status}, {} bytes{to}", asked.status, asked.bytes);
        all.push(("answered", text));
    }
    let outcome = match explanation.outcome {
        Outcome::Off => "the cache is not used here",
        Outcome::Hit => "it is answered from memory (HIT)",
        Outcome::Stale => {
            "what is stored is stale: it is fetched anew, and the stale copy may be shown meanwhile"
        }
        Outcome::Miss => "nothing is stored for it (MISS)",
        Outcome::VaryMiss => "other variants are stored, not the one for these fields (MISS)",
        Outcome::Bypass => "it goes past the cache (BYPASS)",
        Outcome::Method => "responses to this method are not stored",
        Outcome::Purge => "the request purges",
    };
    all.push(("outcome", outcome.to_owned()));
    let stored = if explanation.is_stored { "yes" } else { "no" };
    all.push(("stored", stored.to_owned()));
    if let Some(reason) = &explanation.reason {
        all.push(("reason", reason_text(reason)));
        all.extend(reason.lines.iter().map(|line| ("decided by", line.clone())));
    }
    all
}

fn reason_text(reason: &ExplainedReason) -> String {
    let known = match reason.known_by {
        KnownBy::Request => "for each request like this".to_owned(),
        KnownBy::Moment => "at this moment".to_owned(),
        KnownBy::Response => "as the answer to this request".to_owned(),
        KnownBy::LastResponse => {
            let ago = reason.milliseconds_ago.map_or_else(String::new, time);
            let status = reason
                .status
                .map_or_else(String::new, |it| format!(", status {it}"));
            format!("the last response for this key, {ago} ago{status}")
        }
    };
    format!("{}: {} ({known})", reason.word, reason.sentence)
}

fn entry_lines(entry: &Entry) -> Vec<Line> {
    let fresh = match (entry.is_purged, entry.fresh_milliseconds) {
        (true, _) => "removed by a purge".to_owned(),
        (false, 0) => "stale".to_owned(),
        (false, left) => format!("fresh for {}", time(left)),
    };
    let by = match entry.lifetime_by.as_str() {
        "" => &entry.lifetime_source,
        by => by,
    };
    let mut all = vec![
        ("entry", entry.id.clone()),
        ("address", entry.address.clone()),
        ("status", entry.status.to_string()),
        ("age", format!("{}, {fresh}", time(entry.age_milliseconds))),
        (
            "lifetime",
            format!("{}, from {by}", time(entry.lifetime_milliseconds)),
        ),
        (
            "size",
            format!(
                "{} bytes of body, {} of memory",
                entry.body_bytes, entry.memory_bytes
            ),
        ),
        (
            "used",
            format!(
                "{} ago; asked for in about {} seconds lately, however often in each",
                time(entry.used_milliseconds_ago),
                entry.seconds_used
            ),
        ),
    ];
    if entry.is_private {
        all.push(("private", "for one session (cache_private)".to_owned()));
    }
    if !entry.tags.is_empty() {
        all.push(("tags", entry.tags.join(" ")));
    }
    for (name, value) in &entry.vary {
        all.push(("varies on", format!("{name}: {value}")));
    }
    for form in &entry.forms {
        let bytes = match form.bytes {
            Some(bytes) => format!("{}, {bytes} bytes", form.name),
            None => format!("{}, which saves nothing", form.name),
        };
        all.push(("form", bytes));
    }
    all.extend(
        entry
            .fields
            .iter()
            .map(|(name, value)| ("field", format!("{name}: {value}"))),
    );
    all
}

/// Returns the lines about the statements and files that the page was made of.
fn learned_lines(part: &LearnedPart) -> Vec<Line> {
    let state = match part.state {
        LearnedState::Fresh => "unchanged",
        LearnedState::Suspect => "suspect",
        LearnedState::Unknown => "unknown",
        LearnedState::NotLearned => "no",
    };
    let reason = match part.reason.as_str() {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    let mut all = vec![("learned", format!("{state}{reason}: {}", part.sentence))];
    if !part.detail.is_empty() {
        all.push(("because of", part.detail.clone()));
    }
    if let Some(statements) = part.statements {
        let ago = part.milliseconds_ago.map_or_else(String::new, time);
        let tables = match &part.tables[..] {
            [] => String::new(),
            tables => format!(" on {}", tables.join(", ")),
        };
        all.push((
            "made of",
            format!("{statements} statements{tables}; {ago} ago"),
        ));
    }
    let databases = part.databases.iter();
    all.extend(databases.map(|path| ("database", path.clone())));
    all.extend(part.files.iter().map(|file| ("file", file.clone())));
    if !part.log.is_empty() {
        all.push(("binary log", part.log.clone()));
    }
    if part.same + part.changed > 0 {
        let text = format!(
            "made again {} times while nothing had changed that was seen: {} times the same",
            part.same + part.changed,
            part.same
        );
        all.push(("compared", text));
    }
    all
}

/// Returns the lines about the evidence on a page that visitors may share.
fn evidence_lines(part: &EvidencePart) -> Vec<Line> {
    let standing = match part.standing {
        Standing::Shared => {
            "nothing that this request says beyond the shared one matters, as far as was seen"
        }
        Standing::Unproven | Standing::NotShareable if part.is_refused => {
            "the last answer could not have been stored: each visitor has one of their own"
        }
        Standing::NotShareable => {
            "a trial has found no answer that visitors can share: each has one of their own, until a later trial finds \
             one"
        }
        Standing::Unproven => {
            "it was not seen yet whether what this request says beyond the shared one matters: the visitor's own \
             request is made, and compared"
        }
        Standing::Depends => {
            "the page depends on what this request says: it is made for this visitor alone"
        }
    };
    let mut all = vec![("evidence", standing.to_owned())];
    if !part.left_out.is_empty() {
        all.push(("left out", part.left_out.join(", ")));
    }
    match part.known_for_milliseconds {
        None => all.push(("seen", "no visitor's own answer yet".to_owned())),
        Some(since) => {
            let (pairs, values) = (part.comparisons, part.immaterial);
            all.push((
                "seen",
                format!(
                    "for {}: {pairs} comparisons; {values} values that do not matter",
                    time(since)
                ),
            ));
        }
    }
    if !part.refusal.is_empty() {
        all.push(("seen", format!("not shared: {}", part.refusal)));
    }
    if part.is_unexplained {
        let text = "answers to two visitors differed by something that is not compared (a field that a proxy in \
                    front adds?): the page is not shared for half an hour";
        all.push(("seen", text.to_owned()));
    }
    if let Some(session) = &part.session {
        all.push(("session", session_text(session)));
    }
    if part.differs_each_time {
        all.push(("seen", "the page differs each time it is made".to_owned()));
    }
    if !part.depends_on.is_empty() {
        let in_key = match &part.in_key[..] {
            [] => String::new(),
            traits => format!("; in the key: {}", traits.join(", ")),
        };
        all.push((
            "depends on",
            format!("{}{in_key}", part.depends_on.join(", ")),
        ));
    }
    all
}

/// Describes the session that a page begins.
fn session_text(session: &SessionPart) -> String {
    match session {
        SessionPart::Unproven => {
            "it begins one for each visitor; that of a second one begins a trial of it".to_owned()
        }
        SessionPart::Refused { why } => {
            format!("it begins one for each visitor, and is not shared: {why}")
        }
        SessionPart::Left { why } => {
            format!(
                "it leaves one as it was, so whoever has seen it is a guest still; not shared: {why}"
            )
        }
        SessionPart::Shared { numbers, tokens } => format!(
            "guests share it without one; places for tokens: {tokens}, for times and counts: {numbers}"
        ),
    }
}

/// Describes the effect of an alteration on the page.
fn tried_text(row: &TriedAlteration) -> String {
    let effect = match row.effect {
        TriedEffect::Same => "same",
        TriedEffect::Differs => "differs",
        TriedEffect::NoAnswer => "no answer",
    };
    let change = match (row.was.as_str(), row.became.as_str()) {
        ("", "") => String::new(),
        (was, became) => format!(": \"{was}\" became \"{became}\""),
    };
    format!("{effect:<9}  {}  {}{change}", row.status, row.altered)
}

/// Returns the lines about the effects of a request's parts, those with the same effect together.
fn part_lines(explanation: &Explanation) -> Vec<Line> {
    let effects = [
        Effect::InKey,
        Effect::SelectsVariant,
        Effect::Shares,
        Effect::PastCache,
        Effect::ChoosesWay,
    ];
    let mut all = Vec::new();
    for effect in effects {
        let parts = explanation
            .parts
            .iter()
            .filter(|part| part.effect == effect);
        let names: Vec<&str> = parts.map(|part| part.name.as_str()).collect();
        if !names.is_empty() {
            all.push(("parts", format!("{}: {}", effect.words(), names.join(", "))));
        }
    }
    all
}

/// Lists the found entries for people.
fn table(found: &FoundEntries) -> String {
    let mut out = String::new();
    for entry in &found.entries {
        let fresh = match entry.fresh_milliseconds {
            0 => "stale".to_owned(),
            left => time(left),
        };
        let address: String = entry.address.chars().map(printable).collect();
        let (status, bytes, id) = (entry.status, entry.memory_bytes, &entry.id);
        out.push_str(&format!(
            "{status}  {fresh:>8}  {bytes:>9}  {address}  {id}\n"
        ));
    }
    let count = found.entries.len();
    let more = match &found.next {
        None => String::new(),
        Some(next) => format!("; --after {next} shows more"),
    };
    out.push_str(&format!("{count} found among {}{more}\n", found.looked_at));
    out
}

/// A time in the largest unit that leaves something before the point.
fn time(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..120_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        120_000..7_200_000 => format!("{} min", milliseconds / 60_000),
        7_200_000..172_800_000 => format!("{:.1} h", milliseconds as f64 / 3.6e6),
        _ => format!("{} days", milliseconds / 86_400_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_typed_as_for_curl() {
        let typed = ["Cookie: a=b".to_owned(), "X-Empty:".to_owned()];
        let expected = [("Cookie", "a=b"), ("X-Empty", "")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fields(&typed).unwrap(), expected);
        assert!(fields(&["nonsense".to_owned()]).is_err());
    }

    #[test]
    fn a_time_has_the_unit_that_fits() {
        for (milliseconds, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1500, "1.5 s"),
            (120_000, "2 min"),
            (7_200_000, "2.0 h"),
            (28_440_000, "7.9 h"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(time(milliseconds), expected);
        }
    }

    #[test]
    fn what_is_found_is_a_table() {
        let entry = Entry {
            id: "1-2-zone".to_owned(),
            address: "a.test/\u{1b}[2J".to_owned(),
            status: 200,
            fresh_milliseconds: 1500,
            memory_bytes: 1234,
            ..Entry::default()
        };
        let found = FoundEntries {
            entries: vec![entry],
            next: Some("0.1.2".to_owned()),
            looked_at: 9,
        };
        assert_eq!(
            table(&found),
            "200     1.5 s       1234  a.test/?[2J  1-2-zone\n\
             1 found among 9; --after 0.1.2 shows more\n"
        );
    }
}
