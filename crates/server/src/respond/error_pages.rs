//! The next step after the result of a stage: the reply itself, an error's page
//! (`error_page`), or another path of this site.

use bytes::Bytes;
use http_semantics::Fields;
use site::{LocationId, LogLevel};

use super::by_htaccess::{self, ErrorAnswer};
use super::pages::page_with;
use super::status_page;
use crate::exchange::delivery::Delivery;
use crate::exchange::error_page::ErrorPage;
use crate::exchange::handled::{Diversion, StageEnd};
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::log::error_log;
use crate::route::pattern;

/// The next step of a request.
pub enum Next {
    Reply(Box<Reply>),
    /// An error's page that is made here, with the error's own status.
    ErrorReply(Box<Reply>, Option<TriedPage>),
    /// The request goes on elsewhere in this site, perhaps for an error's page.
    Redirect(RedirectTarget, Option<TriedPage>),
    /// The upstream's response has said where.
    Divert(Box<Diversion>),
    /// The client has left, or gets no answer; the status is for the log.
    Nothing(u16),
}

/// The error page that is tried from here on, and the fields of the error.
pub struct TriedPage {
    pub page: ErrorPage,
    pub fields: Fields,
}

pub enum RedirectTarget {
    Path {
        path: Vec<u8>,
        args: Vec<u8>,
        /// A rule of a `.htaccess` file names the path, and it is requested as a visitor would.
        is_visitors: bool,
    },
    Location(LocationId),
}

/// Returns the next step after `handled`.
#[inline]
pub fn after(request: &Request, handled: StageEnd) -> Next {
    if pattern::has_failed(request) {
        return refuse_for_pattern(request);
    }
    match handled {
        StageEnd::Reply(reply) => Next::Reply(reply),
        handled => after_other(request, handled),
    }
}

fn after_other(request: &Request, handled: StageEnd) -> Next {
    match handled {
        StageEnd::Reply(reply) => Next::Reply(reply),
        StageEnd::ClientGone => Next::Nothing(499),
        StageEnd::Close => Next::Nothing(444),
        StageEnd::Redirect { path, args } => redirected(request, (path, args), None),
        StageEnd::Named(name) => named(request, &name, None),
        StageEnd::Diverted(diversion) => Next::Divert(diversion),
        StageEnd::Status(status) => error(request, status, Fields::new()),
        StageEnd::StatusWith(status, fields) => error(request, status, fields),
    }
}

/// Refuses a request on which a pattern gave up: the round may not have followed the
/// configuration. The first time the error page is looked for; after that no page is sent.
#[cold]
fn refuse_for_pattern(request: &Request) -> Next {
    match request.values.failures.refuse() {
        true => broken(request),
        false => error(request, 500, Fields::new()),
    }
}

fn redirected(
    request: &Request,
    (path, args): (Vec<u8>, Vec<u8>),
    tried: Option<TriedPage>,
) -> Next {
    if !request.route.may_redirect() {
        error_log::request(
            request,
            LogLevel::Error,
            format_args!("rewrite or internal redirection cycle"),
        );
        return broken(request);
    }
    let to = RedirectTarget::Path {
        path,
        args,
        is_visitors: false,
    };
    Next::Redirect(to, tried)
}

fn named(request: &Request, name: &[u8], tried: Option<TriedPage>) -> Next {
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
    Next::Redirect(RedirectTarget::Location(location), tried)
}

/// The configuration leads nowhere: no page of its own is looked for.
fn broken(request: &Request) -> Next {
    Next::ErrorReply(Box::new(status_page(request, 500)), None)
}

/// An error's page: `error_page` where one is given, else the built-in text. An
/// error or a redirect in the place of a page counts instead of the first error.
fn error(request: &Request, status: u16, fields: Fields) -> Next {
    let own = |reply: Reply| Next::ErrorReply(Box::new(reply), None);
    if !request.delivery.error_page.may_follow() {
        return own(page_with(request, status, &fields));
    }
    match by_htaccess::error_answer(request, status, &fields) {
        Some(ErrorAnswer::Reply(reply)) => return own(reply),
        Some(ErrorAnswer::Path { path, args }) => {
            let page = ErrorPage::Tried {
                error: status,
                forced: Some(status),
                is_last: true,
            };
            let to = RedirectTarget::Path {
                path,
                args,
                is_visitors: true,
            };
            let tried = Some(TriedPage { page, fields });
            return Next::Redirect(to, tried);
        }
        None => {}
    }
    let settings = request.settings();
    let mut pages = settings.error_pages.iter();
    let Some(page) = pages.find(|page| page.statuses.contains(&status)) else {
        return own(page_with(request, status, &fields));
    };
    let target = variable::evaluate(request, &page.target);
    let forced = match page.answer {
        site::ErrorAnswer::Same => Some(status),
        site::ErrorAnswer::Status(status) => Some(status),
        site::ErrorAnswer::OfPage => None,
    };
    let is_here = matches!(target.first(), Some(b'@' | b'/'));
    let tried = Some(TriedPage {
        page: ErrorPage::Tried {
            error: status,
            forced: forced.filter(|_| is_here),
            is_last: !settings.recursive_error_pages,
        },
        fields,
    });
    if target.first() == Some(&b'@') {
        return named(request, &target, tried);
    }
    if is_here {
        let (path, args) = http_semantics::split_query(&target);
        let target = (path.to_vec(), args.unwrap_or_default().to_vec());
        return redirected(request, target, tried);
    }
    // Elsewhere: an external redirect.
    let status = match page.answer {
        site::ErrorAnswer::Status(status @ (301 | 302 | 303 | 307 | 308)) => status,
        _ => 302,
    };
    let mut fields = Fields::new();
    fields.append("Location", Bytes::from(target));
    Next::ErrorReply(Box::new(page_with(request, status, &fields)), tried)
}

impl TriedPage {
    /// From here on the request is for the page. The fields of the error go with it.
    pub fn begin(self, delivery: &mut Delivery) {
        delivery.error_page = self.page;
        for (name, value) in self.fields.as_slice() {
            let carried = &mut delivery.carried().error_fields;
            match name.eq_ignore_ascii_case(b"location") {
                true => carried.set(name.clone(), value.clone()),
                false => carried.append(name.clone(), value.clone()),
            }
        }
    }
}
