//! Responses of the server's own: status pages and redirects.

use bytes::Bytes;
use http_semantics::escape::{Escape, escape};
use http_semantics::{Fields, status};
use transport::facts::LocalAddress;

use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;

/// The built-in page for a status.
pub fn status_page(request: &Request, code: u16) -> Reply {
    let Some((title, below)) = title(code) else {
        let mut reply = Reply::new(code, b"", Bytes::new());
        if code >= 300 && code != 304 {
            reply.head.content_length = Some(0);
        }
        return reply;
    };
    let product = match request.settings().headers.server_tokens {
        site::ServerTokens::On | site::ServerTokens::Build => {
            concat!("mayfly/", env!("CARGO_PKG_VERSION"))
        }
        _ => "mayfly",
    };
    let heading = match below {
        Some(text) => format!("<h1>400 Bad Request</h1></center>\r\n<center>{text}"),
        None => format!("<h1>{title}</h1>"),
    };
    let page = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n\
         <center>{heading}</center>\r\n<hr><center>{product}</center>\r\n</body>\r\n</html>\r\n"
    );
    Reply::new(code, b"text/html", page)
}

/// Creates a page with these fields. If a browser gets a page in place of a redirect (`msie_refresh`), the
/// page leads on to the redirect's target.
pub fn page_with(request: &Request, code: u16, fields: &Fields) -> Reply {
    let location = fields.get("location");
    if let Some(location) = location.filter(|_| wants_refresh(request, code)) {
        let location = String::from_utf8_lossy(&escape(location, Escape::Refresh)).into_owned();
        let page = format!(
            "<html><head><meta http-equiv=\"Refresh\" content=\"0; URL={location}\"></head>\
             <body></body></html>\r\n"
        );
        return Reply::new(200, b"text/html", page);
    }
    let mut reply = status_page(request, code);
    for (name, value) in fields.as_slice() {
        reply.head.fields.append(name.clone(), value.clone());
    }
    reply
}

fn wants_refresh(request: &Request, code: u16) -> bool {
    let agent = || request.received.head().field("user-agent");
    request.settings().redirects.msie_refresh
        && matches!(code, 301 | 302)
        && agent().is_some_and(|agent| memchr::memmem::find(agent, b"MSIE ").is_some())
}

/// Returns the title of a status's page, and the text below its heading; `None` for statuses that have no
/// page.
fn title(code: u16) -> Option<(String, Option<&'static str>)> {
    if let Some((title, below)) = status::page_title(code) {
        return Some((title.to_owned(), below));
    }
    if code < 300 || code == 304 {
        return None;
    }
    Some((format!("{code} {}", status::reason(code)?), None))
}

/// A redirect to `location`, made absolute as the directives say.
pub fn redirect(request: &Request, code: u16, location: Vec<u8>) -> StageEnd {
    let location = absolute(request, location);
    let mut fields = http_semantics::Fields::new();
    if !location.is_empty() {
        fields.append("Location", Bytes::from(location));
    }
    StageEnd::StatusWith(code, fields)
}

/// A path of this site with the origin before it, where the directives say so.
pub fn absolute(request: &Request, location: Vec<u8>) -> Vec<u8> {
    if location.first() != Some(&b'/') || !request.settings().redirects.absolute {
        return location;
    }
    let mut absolute = origin(request);
    absolute.extend_from_slice(&location);
    absolute
}

/// A redirect within this site; `target` is an escaped path with arguments.
pub fn local_redirect(request: &Request, target: Vec<u8>, code: u16) -> StageEnd {
    redirect(request, code, target)
}

/// Redirects to the same path with a slash.
pub fn add_slash(request: &Request) -> StageEnd {
    let mut target = http_semantics::escape::escape_uri(&request.route.path).into_owned();
    target.push(b'/');
    if !request.route.args.is_empty() {
        target.push(b'?');
        target.extend_from_slice(&request.route.args);
    }
    redirect(request, 301, target)
}

/// Returns `scheme://host[:port]` for redirects to this server.
fn origin(request: &Request) -> Vec<u8> {
    let settings = &request.settings().redirects;
    let server = request.server();
    let connection = request.received.connection();
    let mut out = connection.scheme.as_bytes().to_vec();
    out.extend_from_slice(b"://");
    if settings.server_name && !server.name.is_empty() {
        out.extend_from_slice(server.name.as_bytes());
    } else if !request.received.host().is_empty() {
        out.extend_from_slice(request.received.host());
    } else {
        match &connection.local {
            LocalAddress::Ip(address) => server_base::address::put_ip(address.ip(), &mut out),
            LocalAddress::Unix(_) => out.extend_from_slice(server.name.as_bytes()),
        }
    }
    let usual = connection.usual_port();
    let port = connection.local.port().unwrap_or(usual);
    if settings.port && port != usual {
        out.push(b':');
        out.extend_from_slice(port.to_string().as_bytes());
    }
    out
}
