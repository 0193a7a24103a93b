//! `dashboard`: a page that draws the server's numbers and looks inside the cache. The page's requests go to
//! its own address:
//!
//! ```text
//! ?about           the visitor's rights     ?table           the names of the numbers
//! ?numbers         Snapshot                 ?pages           Pages
//! ?history=MS      HistoryReport since then
//! ?search=TEXT     Found (&tag=, &zone=, &after=, &limit=)
//! ?entry=ID        Entry                    POST ?purge=ID   PurgeReport
//! ```
//!
//! The first five are of crates/numbers, the others are the terms of the control socket (crates/control), with
//! the same code behind them.
//!
//! With `cache_purge_token` in force, the page itself, which has no data in it, is for every client that
//! `allow`, `deny` and `auth_request` let through. Its data are for clients that would see them without tokens,
//! and for holders of a token. Purging always needs a token: no page of another site, no form and no cookie can
//! send its field.

mod page;

use std::path::Path;

use bytes::Bytes;
use control::{PurgeReport, Refusal, TargetKind};
use http_cache::{CacheKey, OwnedPurgeTarget};
use numbers::NumberKind;
use numbers::table::TABLE;
use serde::Serialize;
use site::Dashboard;

use crate::content::metrics::FIELDS;
use crate::content::own_machine::{self, Purpose};
use crate::content::purging::{self, Scope, bearer, doors};
use crate::exchange::functions;
use crate::exchange::handled::StageEnd;
use crate::exchange::numbers as current;
use crate::exchange::reply::Reply;
use crate::exchange::request::{Method, Request};
use crate::log::purge_log::{PurgeInterface, Source};
use purge_order::{Order, Target, order};

use control::dashboard_request::{self, DashboardRequest};

/// Answers with the page, or with the data that it asks for.
pub async fn answer(request: &Request, dashboard: &Dashboard) -> StageEnd {
    let tokens = tokens(request, dashboard);
    let asked = match DashboardRequest::read(&request.route.args) {
        Ok(asked) => asked,
        Err(refusal) => return refused(&refusal),
    };
    let is_right_method = match asked {
        DashboardRequest::Purge(_) => request.route.method == Method::Post,
        _ => request.route.method.is_read(),
    };
    if !is_right_method {
        return StageEnd::Status(405);
    }
    if matches!(asked, DashboardRequest::Page) {
        let refused = match tokens {
            Some(_) => None,
            None => own_machine::refuses_look(request),
        };
        return refused.unwrap_or_else(page::reply);
    }
    match try_answer(request, asked, tokens).await {
        Ok(json) => reply(200, json),
        Err(refusal) => refused(&refusal),
    }
}

/// The file of those who may purge. A request has one field for a token and for a password: where a password
/// is asked for, purges are not possible.
fn tokens<'a>(request: &Request, dashboard: &'a Dashboard) -> Option<&'a Path> {
    let tokens = dashboard.tokens.as_deref();
    tokens.filter(|_| request.settings().auth.is_none())
}

async fn try_answer(
    request: &Request,
    asked: DashboardRequest,
    tokens: Option<&Path>,
) -> Result<Vec<u8>, Refusal> {
    let holder = match tokens {
        Some(file) => bearer::holder(request, file)?,
        None => None,
    };
    let stranger = match holder {
        Some(_) => None,
        None => own_machine::refuses(request, Purpose::Look),
    };
    if let (Some(stranger), None) = (stranger, tokens) {
        return Err(stranger.refusal(request));
    }
    let may_see = stranger.is_none();
    match (asked, tokens) {
        (DashboardRequest::About, _) => json(&DashboardRights {
            tokens: tokens.is_some(),
            password: request.settings().auth.is_some(),
            sees: may_see,
            holder,
        }),
        (_, Some(_)) if !may_see => Err(Refusal::new(
            401,
            "sign in with a token to see this from elsewhere",
        )),
        (DashboardRequest::Purge(_), None) => Err(Refusal::new(
            403,
            "this dashboard is read-only: cache_purge_token of its location says who may purge",
        )),
        (DashboardRequest::Purge(id), Some(_)) => match holder {
            Some(holder) => json(&purge(request, id, &holder).await?),
            None => Err(Refusal::new(401, "sign in with a token to purge")),
        },
        (asked, _) => look(request, asked).await,
    }
}

/// Answers a request that changes nothing.
async fn look(request: &Request, asked: DashboardRequest) -> Result<Vec<u8>, Refusal> {
    let configuration = request.configuration.shared().clone();
    let looking = &functions::table().looking;
    match asked {
        DashboardRequest::Numbers => json(&current::snapshot(&configuration)),
        DashboardRequest::Pages => json(&current::pages(&configuration)),
        DashboardRequest::Table => json(&titles()),
        DashboardRequest::History(since) => json(&current::history(&configuration, since)),
        DashboardRequest::Search(search) => {
            json(&(looking.search)(configuration.clone(), &search).await?)
        }
        DashboardRequest::Entry(id) => json(&(looking.entry)(&configuration, &id)?),
        // They have been answered.
        DashboardRequest::Page | DashboardRequest::About | DashboardRequest::Purge(_) => {
            Err(Refusal::new(404, dashboard_request::UNKNOWN))
        }
    }
}

/// Purges a stored response, with all that is stored for its address. Who asks has seen that address with
/// masks in it, so it is named by its id.
async fn purge(
    request: &Request,
    id: control::EntryRequest,
    holder: &str,
) -> Result<PurgeReport, Refusal> {
    let configuration = request.configuration.shared().clone();
    let stored = (functions::table().looking.stored)(&configuration, &id)?;
    let shown = stored.shown.as_bytes();
    let (target, scope) = match stored.address {
        Some(address) => (Target::url(shown, vec![address]), Scope::All),
        None => {
            let names = [OwnedPurgeTarget::Key(CacheKey::new(stored.key.into()))];
            let target = order::target(TargetKind::Key, shown, names);
            (target, Scope::Zone(stored.zone))
        }
    };
    let order = Order {
        targets: vec![target],
        soft: false,
        dry_run: false,
    };
    let source = Source {
        door: PurgeInterface::Dashboard,
        who: format!("{} {holder}", doors::client_name(&request.received)),
        is_own_visit: false,
    };
    purging::purge(
        configuration,
        purging::PurgeCall::Order(order),
        scope,
        source,
    )
    .await
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(value).map_err(|_| Refusal::new(500, "this cannot be shown"))
}

fn refused(refusal: &Refusal) -> StageEnd {
    let mut handled = reply(refusal.status, refusal.to_json().into_bytes());
    if let StageEnd::Reply(reply) = &mut handled
        && refusal.status == 401
    {
        // For a token browsers do not ask.
        let challenge = Bytes::from_static(b"Bearer realm=\"dashboard\"");
        reply.head.fields.append("WWW-Authenticate", challenge);
    }
    handled
}

fn reply(status: u16, json: Vec<u8>) -> StageEnd {
    let reply = Reply::new(status, b"application/json", json);
    StageEnd::Reply(Box::new(with_fields(reply)))
}

fn with_fields(mut reply: Reply) -> Reply {
    for (name, value) in FIELDS {
        reply.head.fields.append(*name, Bytes::from_static(value));
    }
    reply
}

/// The rights of a visitor.
// Large: the page reads these answers one by one.
#[derive(Serialize)]
struct DashboardRights {
    /// There are tokens, with which one may see and purge.
    tokens: bool,
    /// A password is asked for, which leaves no room for a token.
    password: bool,
    /// This visitor may see the data.
    sees: bool,
    /// The name of the token that came with the request.
    holder: Option<String>,
}

/// The part of the table of numbers that the page shows.
#[derive(Serialize)]
struct Title {
    name: &'static str,
    title: &'static str,
    help: &'static str,
    /// The bounds of a histogram's buckets.
    bounds: &'static [f64],
}

fn titles() -> Vec<Title> {
    let titles = TABLE.iter().map(|definition| Title {
        name: definition.name,
        title: definition.title,
        help: definition.help,
        bounds: match definition.kind {
            NumberKind::Histogram(bounds) => bounds,
            NumberKind::Counter | NumberKind::Gauge => &[],
        },
    });
    titles.collect()
}
