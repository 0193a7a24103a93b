//! A request that `*_cache_purge` lets purge: PURGE, or the method that the directive names.

use std::sync::Arc;

use cache_decision::PurgeReach;
use control::{PurgeReport, Refusal, TargetKind};
use http_cache::{Millis, OwnedPurgeTarget, Zone};
use site::Pass;

use super::address_rules;
use super::api::refused;
use super::durable;
use super::{PurgeCall, Scope, doors, purge as purge_asked, purge_now};
use crate::content::own_machine::Stranger;
use crate::exchange::handled::StageEnd;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::log::purge_log::{PurgeInterface, Source};
use purge_order::{Order, Target};

/// A purge in the zone of a location.
pub struct LocationPurge {
    order: Order,
    zone: String,
    answer: PurgeAnswer,
}

/// How a purge is answered.
enum PurgeAnswer {
    /// Like the module ngx_cache_purge: a page that shows this key, or 404 if nothing was stored.
    Page(String),
    /// 200 and how many.
    Count,
}

/// Purges the pages that the request names, as far as its rights reach, and answers.
///
/// # Errors
/// A purge that takes longer than others may wait for; nothing has been done yet.
pub fn begin(
    request: &Request,
    pass: &Pass,
    zone: &Arc<Zone>,
    (targets, reach): (Vec<Target>, PurgeReach),
) -> Result<StageEnd, Box<LocationPurge>> {
    let purges_everything = targets.iter().any(Target::is_everything);
    let asked = match doors::of_request(request) {
        asked if reach == PurgeReach::OwnHost && (asked.is_some() || purges_everything) => {
            Err(Stranger::Misnamed.refusal(request))
        }
        Some(asked) if !purges_everything => asked.map(|order| (order, PurgeAnswer::Count)),
        _ => {
            let shown = targets.first().map(shown).unwrap_or_default();
            let targets = within(targets, reach, &request.received);
            Ok((page(request, pass, targets), PurgeAnswer::Page(shown)))
        }
    };
    let purge = match asked {
        Ok((order, answer)) => LocationPurge {
            order,
            zone: zone.config().name.clone(),
            answer,
        },
        Err(refusal) => return Ok(refused(&refusal)),
    };
    zone.purge_arrivals().note_purge(Millis(clock::now()));
    let must_wait =
        durable::are_kept(std::slice::from_ref(zone)) || request.configuration.live.nodes.is_some();
    if purge.order.is_long() || must_wait {
        return Err(Box::new(purge));
    }
    let LocationPurge {
        order,
        zone,
        answer,
    } = purge;
    let scope = Scope::Zone(zone);
    let asked = PurgeCall::Order(order);
    let purged = purge_now(
        request.configuration.shared(),
        asked,
        &scope,
        &source(&request.received),
    );
    Ok(answer.handled(purged))
}

impl LocationPurge {
    /// Purges, for as long as it takes.
    pub async fn carry_out(self, request: &Request) -> StageEnd {
        let configuration = request.configuration.shared().clone();
        let asked = PurgeCall::Order(self.order);
        let scope = Scope::Zone(self.zone);
        let purged = purge_asked(configuration, asked, scope, source(&request.received)).await;
        self.answer.handled(purged)
    }
}

/// Returns the order for the page that a request names: the response under its key, and those for
/// its address under other keys, for other classes, cookies and schemes.
fn page(request: &Request, pass: &Pass, mut targets: Vec<Target>) -> Order {
    let is_key = |target: &Target| matches!(target.names[..], [OwnedPurgeTarget::Key(_)]);
    let knows_address = !targets.iter().all(is_key);
    if !knows_address && !is_handler(pass) {
        let rules = address_rules::of(&request.configuration);
        let (host, target) = (request.received.host(), request.received.target());
        let addresses = rules.of_target(host, target);
        targets.push(Target::url(&[host, target].concat(), addresses));
    }
    Order {
        targets,
        soft: false,
        dry_run: false,
    }
}

/// The targets that a purge reaches. Keys without the host in them may be of pages of other hosts.
fn within(mut targets: Vec<Target>, reach: PurgeReach, received: &ReceivedRequest) -> Vec<Target> {
    if reach == PurgeReach::OwnHost {
        let host = received.host();
        targets.retain(|target| memchr::memmem::find(target.text.as_bytes(), host).is_some());
    }
    targets
}

fn shown(target: &Target) -> String {
    match target.is_everything() {
        true => "*".to_owned(),
        false => target.text.clone(),
    }
}

/// `*_cache_purge ZONE KEY`: the request's own address is that of the purging location.
fn is_handler(pass: &Pass) -> bool {
    match pass.cache.as_ref().map(|rules| &rules.purge[..]) {
        Some([condition]) => condition.as_constant().is_some(),
        _ => false,
    }
}

impl PurgeAnswer {
    fn handled(self, purged: Result<PurgeReport, Refusal>) -> StageEnd {
        let report = match purged {
            Ok(report) => report,
            Err(refusal) => return refused(&refusal),
        };
        let is_everything = |kind: TargetKind| kind == TargetKind::Everything;
        match self {
            PurgeAnswer::Count => {
                let text = format!("Purged {} stored responses.\n", report.responses());
                StageEnd::Reply(Box::new(Reply::new(200, b"text/plain", text)))
            }
            PurgeAnswer::Page(_)
                if report.responses() == 0
                    && !report.targets.iter().any(|it| is_everything(it.kind)) =>
            {
                StageEnd::Status(404)
            }
            PurgeAnswer::Page(key) => {
                let body = format!(
                    "<html>\r\n<head><title>Successful purge</title></head>\r\n<body bgcolor=\"white\">\r\n\
                     <center><h1>Successful purge</h1><p>Key : {}</p></center>\r\n</body>\r\n</html>\r\n",
                    String::from_utf8_lossy(&http_semantics::escape::escape_html(key.as_bytes()))
                );
                StageEnd::Reply(Box::new(Reply::new(200, b"text/html", body)))
            }
        }
    }
}

fn source(received: &ReceivedRequest) -> Source {
    Source {
        door: PurgeInterface::Request,
        who: doors::client_name(received),
        is_own_visit: false,
    }
}
