//! The next step after the result of a stage: the reply itself, an error's page
//! (`error_page`), or another path of this site.

use bytes::Bytes;
use http_semantics::Fields;
use site::{LocationId, LogLevel, Server};

use super::by_htaccess::{self, ErrorAnswer};
use super::pages::page_with;
use super::status_page;
use crate::exchange::error_page::ErrorPage;
use crate::exchange::extras::Extras;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::request_route::TargetOrigin;
use crate::exchange::variable;
use crate::log::error_log;
use crate::route::pattern;

/// The next step of a request.
pub enum Next {
    Reply(Box<Reply>),
    /// It has another path now.
    Redirected,
    /// It goes on in this location.
    Location(LocationId),
    /// The client has left, or gets no answer.
    Nothing,
}

/// Returns the next step after `handled`.
#[inline]
pub fn after(request: &mut Request, handled: StageEnd) -> Next {
    if pattern::has_failed(request) {
        return refuse_for_pattern(request);
    }
    match handled {
        StageEnd::Reply(reply) => Next::Reply(reply),
        handled => after_other(request, handled),
    }
}

fn after_other(request: &mut Request, handled: StageEnd) -> Next {
    match handled {
        StageEnd::Reply(reply) => Next::Reply(reply),
        StageEnd::ClientGone => {
            request.delivery.status = 499;
            Next::Nothing
        }
        StageEnd::Close => {
            request.delivery.status = 444;
            Next::Nothing
        }
        StageEnd::Redirect { path, args } => redirected(request, path, args),
        StageEnd::Named(name) => named(request, &name),
        StageEnd::Status(status) => error(request, status, Fields::new()),
        StageEnd::StatusWith(status, fields) => error(request, status, fields),
    }
}

/// Refuses a request on which a pattern gave up: the round may not have followed the
/// configuration. The first time the error page is looked for; after that no page is sent.
#[cold]
fn refuse_for_pattern(request: &mut Request) -> Next {
    match request.values.failures.refuse() {
        true => broken(request),
        false => error(request, 500, Fields::new()),
    }
}

fn redirected(request: &mut Request, path: Vec<u8>, args: Vec<u8>) -> Next {
    if !request.route.may_redirect() {
        error_log::request(
            request,
            LogLevel::Error,
            format_args!("rewrite or internal redirection cycle"),
        );
        return broken(request);
    }
    request.route.path = path;
    request.route.args = args;
    begin_internal(request);
    Next::Redirected
}

fn begin_internal(request: &mut Request) {
    request.route.become_internal();
    request.values.forget_path_info();
    request.values.forget_slicing();
    request.route.origin = TargetOrigin::Changed;
    request.enter(Server::ROOT);
}

fn named(request: &mut Request, name: &[u8]) -> Next {
    let location = request.server().top.named.get(name).copied();
    let Some(location) = location else {
        error_log::request(
            request,
            LogLevel::Error,
            format_args!(
                "could not find named location \"{}\"",
                String::from_utf8_lossy(name)
            ),
        );
        return broken(request);
    };
    if !request.route.may_redirect() {
        error_log::request(
            request,
            LogLevel::Error,
            format_args!(
                "rewrite or internal redirection cycle while redirecting to named location"
            ),
        );
        return broken(request);
    }
    request.route.become_internal();
    request.values.forget_slicing();
    Next::Location(location)
}

/// The configuration leads nowhere: no page of its own is looked for.
fn broken(request: &mut Request) -> Next {
    request.delivery.error_page.stop_forcing();
    Next::Reply(Box::new(status_page(request, 500)))
}

/// An error's page: `error_page` where one is given, else the built-in text. An
/// error or a redirect in the place of a page counts instead of the first error.
fn error(request: &mut Request, status: u16, fields: Fields) -> Next {
    request.delivery.error_page.stop_forcing();
    let may_use_page = request.delivery.error_page.may_follow();
    let by_rules = match may_use_page {
        true => by_htaccess::error_answer(request, status, &fields),
        false => None,
    };
    match by_rules {
        Some(ErrorAnswer::Reply(reply)) => return Next::Reply(reply),
        Some(ErrorAnswer::Redirected) => {
            carry(&mut request.extras, &fields);
            return Next::Redirected;
        }
        None => {}
    }
    let settings = request.settings_held();
    let page = settings
        .error_pages
        .iter()
        .find(|page| page.statuses.contains(&status));
    let Some(page) = page.filter(|_| may_use_page) else {
        return Next::Reply(Box::new(page_with(request, status, &fields)));
    };
    carry(&mut request.extras, &fields);
    let target = variable::evaluate(request, &page.target);
    let forced = match page.answer {
        site::ErrorAnswer::Same => Some(status),
        site::ErrorAnswer::Status(status) => Some(status),
        site::ErrorAnswer::OfPage => None,
    };
    let is_here = matches!(target.first(), Some(b'@' | b'/'));
    request.delivery.error_page = ErrorPage::Tried {
        error: status,
        forced: forced.filter(|_| is_here),
        is_last: !settings.recursive_error_pages,
    };
    if target.first() == Some(&b'@') {
        return named(request, &target);
    }
    if target.first() == Some(&b'/') {
        request.route.become_get();
        request.route.become_diverted();
        let (path, args) = http_semantics::split_query(&target);
        let (path, args) = (path.to_vec(), args.unwrap_or_default().to_vec());
        return redirected(request, path, args);
    }
    // Elsewhere: an external redirect.
    let status = match page.answer {
        site::ErrorAnswer::Status(status @ (301 | 302 | 303 | 307 | 308)) => status,
        _ => 302,
    };
    let mut fields = Fields::new();
    fields.append("Location", Bytes::from(target));
    Next::Reply(Box::new(page_with(request, status, &fields)))
}

/// Notes the fields of an error for the page that takes its place.
fn carry(extras: &mut Extras, fields: &Fields) {
    for (name, value) in fields.as_slice() {
        let carried = &mut extras.carried.error_fields;
        match name.eq_ignore_ascii_case(b"location") {
            true => carried.set(name.clone(), value.clone()),
            false => carried.append(name.clone(), value.clone()),
        }
    }
}
