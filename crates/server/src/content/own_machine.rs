//! Decides who may use the operator's directives: `metrics`, `stub_status`, `dashboard`, `cache_purge_api`
//! and `*_cache_purge`. No other module decides it.
//!
//! ```text
//! a token                        ─► yes: no page of another site has it
//! a browser, for another site    ─► no, whatever the rules say
//! the location's own rules       ─► their clients; lines of the blocks around it only refuse
//! otherwise                      ─► programs and users of this machine, asked for by no proxy
//! a Host that no server_name is  ─► no: a page of another site may have led its name here
//! ```
//!
//! The rules of enclosing blocks grant no access here: a list of bad addresses for a whole site does not
//! decide who should see its numbers.

use cache_decision::PurgeReach;
use control::Refusal;
use http_semantics::Initiator;
use http_semantics::initiator::is_navigation;
use site::{AccessRule, LogLevel, OwnCredentials};

use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;
use crate::log::error_log;

/// The effect of a request for one of these directives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is shown something.
    Look,
    /// It changes something.
    Change,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// A browser sent it for a page of another site, or may have.
    OtherSite,
    /// It comes from elsewhere, or was sent on behalf of a client elsewhere.
    Elsewhere,
    /// Its `Host` is no name of this machine.
    Misnamed,
}

impl Stranger {
    fn reason(self) -> &'static str {
        match self {
            Stranger::OtherSite => {
                "a browser sent this request for a page of another site, or does not say for which; \
                 programs, and pages of this site, may use this"
            }
            Stranger::Elsewhere => {
                "this is for programs on the server's own machine; allow, auth_basic, auth_request or \
                 cache_purge_token in this location itself let others use it"
            }
            Stranger::Misnamed => {
                "the Host of this request is neither localhost nor an IP address nor a server_name, so a \
                 page of somebody else may have made a browser send it"
            }
        }
    }

    /// The refusal for a program, which the error log has as well.
    pub fn refusal(self, request: &Request) -> Refusal {
        let message = format_args!("the operator's location is refused: {}", self.reason());
        error_log::refusal(request, LogLevel::Error, message);
        Refusal::new(403, self.reason())
    }
}

/// The answer to who may not look; `None`: they may.
pub fn refuses_look(request: &Request) -> Option<StageEnd> {
    let stranger = refuses(request, Purpose::Look)?;
    // Said in the log alone: an `error_page` may show something else.
    stranger.refusal(request);
    Some(StageEnd::Status(403))
}

/// Returns why the client may not use this location without a token; `None`: it may.
pub fn refuses(request: &Request, purpose: Purpose) -> Option<Stranger> {
    let initiator = request.initiator();
    if is_for_another_site(request, initiator, purpose) {
        return Some(Stranger::OtherSite);
    }
    let own = &request.settings().own_access;
    let is_let_in =
        own.credentials != OwnCredentials::NotAsked || own.has_rules && is_named_by_rules(request);
    if !is_let_in && !request.is_made_here() {
        return Some(Stranger::Elsewhere);
    }
    // A browser sends no password to a name that it has never had one for.
    let is_name_proven = own.credentials == OwnCredentials::PasswordAsked;
    let may_be_rebound = initiator != Initiator::Program || request.is_made_here();
    (may_be_rebound && !is_name_proven && !request.has_own_host()).then_some(Stranger::Misnamed)
}

/// Returns which pages the client of a location with `*_cache_purge` may purge.
///
/// # Errors
/// The reason why it may not purge, even though the directive allows its address.
pub fn purge_reach(request: &Request) -> Result<PurgeReach, Stranger> {
    let initiator = request.initiator();
    if is_for_another_site(request, initiator, Purpose::Change) {
        Err(Stranger::OtherSite)
    } else if request.has_own_host() {
        Ok(PurgeReach::Zone)
    } else if initiator != Initiator::Program {
        Err(Stranger::Misnamed)
    } else if request.is_made_here() {
        Ok(PurgeReach::OwnHost)
    } else {
        Ok(PurgeReach::Zone)
    }
}

/// Does a browser ask, for a page of another site? What such a page only leads its user to, it does not
/// see. A GET that changes something has to come from a page of this site: an image of any page may be one.
fn is_for_another_site(request: &Request, initiator: Initiator, purpose: Purpose) -> bool {
    match (initiator, purpose) {
        (Initiator::Program | Initiator::OwnSite, _) | (Initiator::Unknown, Purpose::Look) => false,
        (Initiator::Unknown, Purpose::Change) => request.route.method.is_read(),
        (Initiator::OtherSite, Purpose::Change) => true,
        (Initiator::OtherSite, Purpose::Look) => {
            !(request.route.method.is_read() && is_navigation(request.received.head().view()))
        }
    }
}

/// Does an `allow` name the client?
fn is_named_by_rules(request: &Request) -> bool {
    AccessRule::decision(&request.settings().access, request.received.client_ip()) == Some(true)
}
