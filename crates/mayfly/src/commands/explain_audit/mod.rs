//! `mayfly explain --audit`: requests pages of a running server as strangers do, and reports the parts of a
//! request that could change the pages of other visitors.
//!
//! ```text
//! URLs, sitemaps ─► pages ─► page_audit: requests and their order ─► report
//!                              ├ variations, request    the requests
//!                              ├ visitor                how they are sent
//!                              └ response, baseline, judge   the responses, and what they mean
//! ```
//!
//! Pages are requested with an argument of a random value, so that other visitors do not meet pages that an
//! audit leaves in the cache.

mod baseline;
mod judge;
mod page_audit;
mod report;
mod request;
mod response;
mod variations;
mod visitor;

use std::collections::HashSet;
use std::time::Instant;

use command_line::Target;
use serde::Serialize;

use crate::cli::ExplainArgs;
use crate::commands::warm::sources::FoundPages;
use command_line::{Exit, complain, print};

use page_audit::PageAudit;
use report::Sum;
use request::{BUSTER, Page};
use visitor::{AskError, Budget, Place, Visitor};

/// Requests of one call: some 600 for each of 100 pages.
const MAX_REQUESTS: u32 = 60_000;
/// Sitemaps of one call.
const MAX_SITEMAPS: usize = 20;

pub fn run(args: &ExplainArgs, fields: Vec<(String, String)>) -> Exit {
    if fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        let message =
            "-H Host: the host is that of the URL; --connect ADDRESS says where it is served";
        return complain(Exit::Usage, message);
    }
    let event_loop = match crate::processes::event_loop::build() {
        Ok(event_loop) => event_loop,
        Err(error) => return complain(Exit::NoServer, &format!("could not start: {error}")),
    };
    let mut budget = Budget {
        requests_left: MAX_REQUESTS,
        deadline: Instant::now() + args.audit.duration,
        timeout: args.audit.timeout,
    };
    let exit = event_loop.block_on(async {
        match pages(args, &fields, &mut budget).await {
            Ok((pages, left_out)) => audit(args, &pages, left_out, &mut budget).await,
            Err(message) => complain(Exit::NoServer, &message),
        }
    });
    event_loop.shutdown_background();
    exit
}

async fn audit(args: &ExplainArgs, pages: &[Page], left_out: usize, budget: &mut Budget) -> Exit {
    let mut sum = Sum {
        left_out,
        ..Sum::default()
    };
    for page in pages {
        let visitors = match visitors(args, &page.target).await {
            Ok(visitors) => visitors,
            Err(message) => return complain(Exit::NoServer, &message),
        };
        let audit = PageAudit::new(page, visitors, budget);
        let report = audit.run(args.audit.plain_address).await;
        sum.count(&report);
        say(args, &report, || report.text());
    }
    say(args, &sum, || sum.text());
    match (sum.findings, sum.incomplete) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::NoServer,
        _ => Exit::Findings,
    }
}

async fn visitors(args: &ExplainArgs, target: &Target) -> Result<(Visitor, Visitor), String> {
    let audit = &args.audit;
    let connect = audit.connect.as_deref();
    let place = Place::find(target, connect, audit.yes_this_is_mine).await?;
    Ok((Visitor::new(&place, target)?, Visitor::new(&place, target)?))
}

/// The pages to audit, and the number of those that are left out.
async fn pages(
    args: &ExplainArgs,
    fields: &[(String, String)],
    budget: &mut Budget,
) -> Result<(Vec<Page>, usize), String> {
    let mut found = FoundPages::default();
    for url in &args.urls {
        found.page(url.clone()).map_err(|(_, message)| message)?;
    }
    for url in &args.audit.sitemap {
        found.sitemaps.push_back((url.clone(), 0));
    }
    let mut read = HashSet::new();
    while let Some((url, depth)) = found.sitemaps.pop_front() {
        if read.len() >= MAX_SITEMAPS || !read.insert(url.clone()) {
            continue;
        }
        let sitemap = page(&url, fields)?;
        let (mut visitor, _) = visitors(args, &sitemap.target).await?;
        let response = match visitor.ask(&sitemap.clean(None), budget).await {
            Ok(response) if response.status == 200 => response,
            Ok(response) => return Err(format!("{url}: status {}", response.status)),
            Err(AskError::Stopped) => return Err(format!("{url}: no time is left")),
            Err(AskError::Failed(reason)) => return Err(format!("{url}: {reason}")),
        };
        let text = found.text(&response.body, &url, depth);
        text.map_err(|(_, message)| message)?;
    }
    let most = usize::from(args.audit.pages);
    let all = found.pages.iter();
    let pages: Vec<Page> = all
        .take(most)
        .map(|url| page(url, fields))
        .collect::<Result<_, _>>()?;
    match pages.is_empty() {
        true => Err("the sitemap names no page".to_owned()),
        false => Ok((pages, found.pages.len().saturating_sub(most))),
    }
}

fn page(url: &str, fields: &[(String, String)]) -> Result<Page, String> {
    let is_url = url.starts_with("http://") || url.starts_with("https://");
    if !is_url {
        return Err(format!("{url}: expected http:// or https:// with a host"));
    }
    let target = Target::parse(url).map_err(|error| error.to_string())?;
    if target.target.contains(BUSTER) {
        return Err(format!("{url}: the argument {BUSTER} is that of the audit"));
    }
    Ok(Page {
        target,
        fields: fields.to_vec(),
    })
}

fn say(args: &ExplainArgs, value: &impl Serialize, text: impl Fn() -> String) {
    let text = match args.json {
        true => serde_json::to_string(value).unwrap_or_default() + "\n",
        false => text(),
    };
    print(&text);
}
