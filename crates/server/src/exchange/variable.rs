//! What variables stand for at this moment of a request. Each `write` appends
//! to the caller's buffer and says whether the variable has a value at all:
//! logs show `-` for those without, everything else the empty text.

mod tables;

use std::net::{IpAddr, SocketAddr};

use http1::is_spelt;
use shared_request::arguments;
use site::{Builtin, Coding, Part, Root, Template, Variable};

use crate::base::clock;
use crate::base::decimal;
use crate::base::field_list::write_field_called;
use crate::content::through_cache::cookies as cache_cookies;
use crate::content::{files, proxy};
use crate::exchange::extras::{Extra, PathInfo, Values, put_value};
use crate::exchange::pattern;
use crate::exchange::request::{Request, View};
use crate::transport::facts::LocalAddress;

/// Versions of nginx whose language and behaviour this server speaks.
pub const NGINX_VERSION: &str = "1.31.5";

/// Room for most values: growing there in steps would cost more than the value.
const USUAL_BYTES: usize = 64;

/// The value of a template, in a buffer of its own.
pub fn evaluate(request: &mut Request, template: &Template) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    append(request, template, &mut out);
    out
}

/// The value of the variable called `name`; `None` where there is none, or it has
/// no value.
pub fn named(request: &mut Request, name: &str) -> Option<Vec<u8>> {
    let variable = request.configuration.site.http.variable(name)?;
    let mut value = Vec::new();
    write(request, &variable, &mut value).then_some(value)
}

/// Appends the value of a template.
pub fn append(request: &mut Request, template: &Template, out: &mut Vec<u8>) {
    for part in &template.parts {
        match part {
            Part::Literal(text) => out.extend_from_slice(text),
            Part::Variable(variable) => {
                write(request, variable, out);
            }
        }
    }
}

/// The value of a `map`.
pub fn evaluate_map(request: &mut Request, id: site::MapId) -> Vec<u8> {
    let mut out = Vec::new();
    write(request, &Variable::Map(id), &mut out);
    out
}

/// Neither empty nor `0`: how nginx reads conditions.
pub fn is_true(request: &mut Request, template: &Template) -> bool {
    if let Some(text) = template.as_constant() {
        return !text.is_empty() && text != b"0";
    }
    let value = evaluate(request, template);
    !value.is_empty() && value != b"0"
}

/// A `rewrite` replacement: captures of a decoded path are escaped again where
/// they land in arguments or in a redirect.
pub fn write_rewrite(
    request: &mut Request,
    replacement: &Template,
    redirects: bool,
    out: &mut Vec<u8>,
) {
    let was_escaped = {
        let target = request.head.target();
        target.contains(&b'%') || target.contains(&b'+')
    };
    let mut in_args = false;
    for part in &replacement.parts {
        match part {
            Part::Literal(text) => {
                in_args |= text.contains(&b'?');
                out.extend_from_slice(text);
            }
            Part::Variable(Variable::Capture(group)) => {
                let text = request
                    .extras
                    .captures
                    .group(usize::from(*group))
                    .unwrap_or_default();
                if was_escaped && (in_args || redirects) {
                    out.extend_from_slice(&http1::escape::escape_args(text));
                } else {
                    out.extend_from_slice(text);
                }
            }
            Part::Variable(variable) => {
                write(request, variable, out);
            }
        }
    }
}

/// Appends the value of `variable`; false where it has none.
#[inline]
pub fn write(request: &mut Request, variable: &Variable, out: &mut Vec<u8>) -> bool {
    match at_hand(request, variable) {
        Some(value) => put(Some(value), out),
        None => write_made(request, variable, out),
    }
}

/// A value that is there as it is, as those of most keys are.
#[inline]
fn at_hand<'r>(request: &'r Request, variable: &Variable) -> Option<&'r [u8]> {
    use Builtin as B;
    let Variable::Builtin(builtin) = variable else {
        return None;
    };
    Some(match builtin {
        B::Args | B::QueryString
            if request.view.counts_all_arguments() && !request.args.is_empty() =>
        {
            &request.args
        }
        B::Host if !request.host.is_empty() => &request.host,
        B::Request => request.head.request_line(),
        B::RequestMethod if !request.method_name().is_empty() => request.method_name(),
        B::RequestUri if request.view.counts_all_arguments() && request.has_line() => {
            request.received_target()
        }
        B::Scheme => request.scheme.as_bytes(),
        B::Uri | B::DocumentUri => &request.path,
        _ => return None,
    })
}

/// A value that has to be put together or looked for.
#[inline(never)]
fn write_made(request: &mut Request, variable: &Variable, out: &mut Vec<u8>) -> bool {
    match variable {
        Variable::Builtin(builtin) => write_builtin(request, *builtin, out),
        Variable::Capture(group) => put(request.extras.captures.group(usize::from(*group)), out),
        Variable::Slot(slot) => match request.extras.slots.get(slot.0) {
            Some(Some(value)) => put(Some(value), out),
            // As in nginx what `set` would have written is empty, what a pattern would have
            // captured is not there.
            _ => request.configuration.site.http.slots_of_set.contains(slot),
        },
        Variable::SetOver(slot, made) => match request.extras.slots.get(slot.0) {
            Some(Some(value)) => put(Some(value), out),
            _ => write_looked_up(request, made, out),
        },
        Variable::WithoutTls => false,
        Variable::Map(_) | Variable::Geo(_) | Variable::SplitClients(_) => {
            write_looked_up(request, variable, out)
        }
        Variable::Argument(name) => put(argument(&request.args, name), out),
        Variable::RequestField(name) => write_request_field(request, name, out),
        Variable::SentField(name) => request
            .reply
            .as_ref()
            .is_some_and(|reply| reply.head.write_sent_field(name, out)),
        Variable::SentTrailer(name) => {
            write_field_called(name, request.extras.trailers.as_slice(), out)
        }
        Variable::UpstreamTrailer(name) => request
            .trace
            .as_ref()
            .is_some_and(|trace| trace.lock().write_trailer(name, out)),
        Variable::UpstreamField(name) => request
            .trace
            .as_ref()
            .is_some_and(|trace| trace.lock().write_field(name, out)),
        Variable::Cookie(name) => {
            if let View::Cache(rules) = &request.view
                && rules
                    .ignored_cookies
                    .iter()
                    .any(|glob| cache_cookies::matches_glob(glob, name))
            {
                return false;
            }
            put(http1::cookie::find(&request.head, name), out)
        }
        Variable::ProxyProtocolExtra(wanted) => match &request.connection.proxy {
            Some(proxy) => {
                crate::transport::proxy_protocol::write_extra(&proxy.extras, *wanted, out)
            }
            None => false,
        },
        Variable::UpstreamCookie(name) => request
            .trace
            .as_ref()
            .is_some_and(|trace| trace.lock().write_cookie(name, out)),
    }
}

/// Appends what a table gives: once for the request where it remembers that. What the
/// cache sees is not what the rest of the request sees.
#[inline(never)]
fn write_looked_up(request: &mut Request, variable: &Variable, out: &mut Vec<u8>) -> bool {
    let configuration = request.configuration.clone();
    let http = &configuration.site.http;
    let (values, at, is_volatile): (fn(&mut Extra) -> &mut Values, usize, bool) = match variable {
        Variable::Map(id) => (|own| &mut own.map_values, id.0, http.maps[id.0].volatile),
        Variable::Geo(id) => (|own| &mut own.geo_values, id.0, http.geos[id.0].volatile),
        Variable::SplitClients(id) => (|own| &mut own.split_values, id.0, false),
        _ => return false,
    };
    let remembers = matches!(request.view, View::Plain) && !is_volatile;
    if remembers && let Some(Some(value)) = values(&mut request.extras).get(at) {
        return put(Some(value), out);
    }
    let start = out.len();
    match variable {
        Variable::Map(_) => tables::write_map(request, &http.maps[at], out),
        Variable::Geo(_) => tables::write_geo(request, &http.geos[at], out),
        _ => tables::write_split(request, &http.split_clients[at], out),
    };
    if remembers {
        let value = Some(out[start..].to_vec());
        put_value(values(&mut request.extras), at, value);
    }
    true
}

fn put(value: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    match value {
        Some(value) => {
            out.extend_from_slice(value);
            true
        }
        None => false,
    }
}

fn put_number(value: impl Into<u64>, out: &mut Vec<u8>) -> bool {
    decimal::put(value.into(), out);
    true
}

/// Is one of the conditions true?
pub fn is_any_true(request: &mut Request, conditions: &[Template]) -> bool {
    conditions
        .iter()
        .any(|condition| is_true(request, condition))
}

/// Seconds with milliseconds: `1.234`.
pub fn put_seconds(milliseconds: u64, out: &mut Vec<u8>) -> bool {
    decimal::put_seconds(milliseconds, out);
    true
}

fn write_builtin(request: &mut Request, builtin: Builtin, out: &mut Vec<u8>) -> bool {
    use Builtin as B;
    match builtin {
        B::Args | B::QueryString => {
            put_args(request, &request.args, out);
            !request.args.is_empty()
        }
        B::RequestUri if !request.has_line() => false,
        B::RequestUri => {
            let target = request.received_target();
            arguments::put_target(target, request.view.ignored_arguments(), out);
            true
        }
        B::IsArgs => {
            let mut args = Vec::new();
            put_args(request, &request.args, &mut args);
            if !args.is_empty() {
                out.push(b'?');
            }
            true
        }
        // A request of HTTP/0.9 names none.
        B::ServerProtocol
            if !request.has_line() || request.head.version() == http1::Version::Http09 =>
        {
            false
        }
        B::ServerProtocol => put(Some(request.head.version().as_str().as_bytes()), out),
        B::Http2 | B::Http3 => true,
        B::Https => {
            if request.scheme == "https" {
                out.extend_from_slice(b"on");
            }
            true
        }
        // These are always at hand.
        B::Request | B::RequestMethod | B::Scheme | B::Uri | B::DocumentUri => false,
        B::Host => put(Some(request.server().name.as_bytes()), out),
        B::IsRequestPort => {
            if request.host.port().is_some() {
                out.push(b':');
            }
            true
        }
        B::RequestPort => match request.host.port() {
            Some(port) => put_number(port, out),
            None => true,
        },
        B::ServerName => put(Some(request.server().name.as_bytes()), out),
        B::ContentLength => {
            // A chunked body has a length once it was read.
            write_request_field(request, b"content_length", out)
                || match (&request.body, request.body.length()) {
                    (crate::transport::body::RequestBody::None, _) | (_, None) => false,
                    (_, Some(length)) => put_number(length, out),
                }
        }
        B::ContentType => write_request_field(request, b"content_type", out),
        B::RemoteAddr => write_ip(request.client, out),
        B::RemotePort => write_port(request.client, out),
        B::RealipRemoteAddr => write_ip(request.connection.peer, out),
        B::RealipRemotePort => write_port(request.connection.peer, out),
        B::BinaryRemoteAddr => write_binary_address(request, out),
        B::RemoteUser => match &request.extras.remote_user {
            Some(user) => put(Some(user), out),
            // Also where nobody asked for a name.
            None => {
                let given =
                    crate::access::auth_basic::credentials(request.head.field("authorization"));
                put(given.as_ref().map(|(user, _)| user.as_slice()), out)
            }
        },
        B::ServerAddr => match &request.connection.local {
            LocalAddress::Tcp(address) => write_ip(Some(*address), out),
            LocalAddress::Unix(path) => {
                out.extend_from_slice(b"unix:");
                put(
                    Some(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())),
                    out,
                )
            }
        },
        B::ServerPort => match request.connection.local.port() {
            Some(port) => put_number(port, out),
            None => true,
        },
        B::ProxyProtocolAddr
        | B::ProxyProtocolPort
        | B::ProxyProtocolServerAddr
        | B::ProxyProtocolServerPort => {
            // Nothing where the proxy spoke for itself.
            let Some(proxy) = &request.connection.proxy else {
                return false;
            };
            match builtin {
                B::ProxyProtocolAddr => write_ip(Some(proxy.client), out),
                B::ProxyProtocolPort => write_port(Some(proxy.client), out),
                B::ProxyProtocolServerAddr => write_ip(Some(proxy.server), out),
                _ => write_port(Some(proxy.server), out),
            }
        }
        B::ProxyAddXForwardedFor => write_forwarded_for(request, out),
        B::ProxyHost => proxy::write_host(request, false, out),
        B::ProxyPort => proxy::write_host(request, true, out),
        B::ClientIsLocal => put(request.is_made_here().then_some(b"1".as_slice()), out),
        B::Connection => put_number(request.connection.serial, out),
        B::ConnectionRequests => put_number(request.nth_on_connection, out),
        B::ConnectionTime => put_seconds(
            clock::now().saturating_sub(request.connection.accepted_at),
            out,
        ),
        B::Pipe => put(Some(if request.pipelined { b"p" } else { b"." }), out),
        B::Pid => put_number(std::process::id(), out),
        B::Hostname => put(Some(request.configuration.hostname.as_bytes()), out),
        B::NginxVersion => put(Some(NGINX_VERSION.as_bytes()), out),
        B::Msec => put_seconds(clock::wall_now(), out),
        B::TimeLocal => {
            clock::put_log_time(clock::recent(), out);
            true
        }
        B::TimeIso8601 => {
            clock::put_iso8601(clock::recent(), out);
            true
        }
        B::DateGmt => put(Some(date_gmt().as_bytes()), out),
        B::DateLocal => put(Some(date_local().as_bytes()), out),
        B::RequestTime => put_seconds(clock::now().saturating_sub(request.started_at), out),
        B::RequestLength => put_number(request.received_bytes, out),
        B::RequestId => write_request_id(request, out),
        B::SliceRange => match crate::content::slice::range::range(request) {
            Some(range) => put(Some(range.as_bytes()), out),
            None => false,
        },
        B::RequestCompletion => put(
            if request.is_complete {
                Some(b"OK")
            } else {
                Some(b"")
            },
            out,
        ),
        B::RequestBody => put(request.body.in_memory(), out),
        B::RequestBodyFile => put(request.body.file_name(), out),
        B::RequestFilename => put(Some(&files::request_path(request)), out),
        B::DocumentRoot => write_document_root(request, out),
        B::RealpathRoot => write_realpath_root(request, out),
        B::FastcgiScriptName => write_script_name(request, out),
        B::FastcgiPathInfo => write_path_info(request, out),
        B::Status => {
            // As in nginx, whose own codes for kinds of a bad request clients never see.
            let status = match request.status {
                494..=497 => 400,
                status => status,
            };
            if status < 100 {
                out.extend_from_slice(b"00");
            }
            put_number(status, out)
        }
        B::BodyBytesSent => put_number(
            request.bytes_sent.saturating_sub(request.head_bytes_sent),
            out,
        ),
        B::BytesSent => put_number(request.bytes_sent, out),
        B::GzipRatio => put_ratio(request, Coding::Gzip, out),
        B::BrotliRatio => put_ratio(request, Coding::Brotli, out),
        B::ZstdRatio => put_ratio(request, Coding::Zstd, out),
        B::LimitRate => put_number(request.limit_rate.unwrap_or(0), out),
        B::LimitReqStatus => put(
            Some(request.extras.limit_req_status.as_bytes()).filter(|s| !s.is_empty()),
            out,
        ),
        B::LimitConnStatus => put(
            Some(request.extras.limit_conn_status.as_bytes()).filter(|s| !s.is_empty()),
            out,
        ),
        B::InvalidReferer => {
            if crate::access::addresses::is_referer_invalid(request) {
                out.push(b'1');
            }
            true
        }
        B::UpstreamCacheStatus => match &request.cache.outcome {
            Some(outcome) => put(
                outcome
                    .upstream_cache_status()
                    .map(|status| status.as_str().as_bytes()),
                out,
            ),
            None => false,
        },
        B::CacheStatus => match &request.cache.outcome {
            Some(outcome) => {
                out.extend_from_slice(outcome.cache_status("mayfly").to_string().as_bytes());
                true
            }
            None => false,
        },
        B::CacheReason => put(request.cache.reason.map(str::as_bytes), out),
        B::UpstreamCacheAge => match request.cache.age {
            Some(age) => put_number(age, out),
            None => false,
        },
        B::UpstreamCacheKey => put(
            Some(&request.cache.key[..]).filter(|key| !key.is_empty()),
            out,
        ),
        B::UpstreamCacheLastModified => put(request.cache.last_modified.as_deref(), out),
        B::UpstreamAddr
        | B::UpstreamBytesReceived
        | B::UpstreamBytesSent
        | B::UpstreamConnectTime
        | B::UpstreamHeaderTime
        | B::UpstreamQueueTime
        | B::UpstreamResponseLength
        | B::UpstreamResponseTime
        | B::UpstreamStatus => request
            .trace
            .as_ref()
            .is_some_and(|trace| trace.lock().write(builtin, out)),
    }
}

fn date_gmt() -> String {
    let seconds = i64::try_from(clock::wall_now() / 1000).unwrap_or(0);
    let now = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    now.strftime("%A, %d-%b-%Y %H:%M:%S GMT").to_string()
}

fn date_local() -> String {
    let now = clock::local(i64::try_from(clock::wall_now() / 1000).unwrap_or(0));
    now.strftime("%A, %d-%b-%Y %H:%M:%S %Z").to_string()
}

/// Appends a query string, for the cache without what does not count.
fn put_args(request: &Request, args: &[u8], out: &mut Vec<u8>) -> bool {
    arguments::put_counted(args, request.view.ignored_arguments(), out);
    true
}

/// A request field by the name a variable gives it: lower case, `_` for `-`.
/// Several fields of the name are joined by `, ` (`; ` for Cookie).
fn write_request_field(request: &Request, name: &[u8], out: &mut Vec<u8>) -> bool {
    if let View::Cache(rules) = &request.view
        && !rules.ignored_cookies.is_empty()
        && name == b"cookie"
    {
        return cache_cookies::put_counted_cookies(&request.head, &rules.ignored_cookies, out);
    }
    if !request.head.view().may_have_spelt(name) {
        return false;
    }
    let mut fields = request.head.fields();
    let Some((_, first)) = fields.find(|(field, _)| is_spelt(name, field)) else {
        return false;
    };
    out.extend_from_slice(first);
    // Fields that may stand only once, as nginx reads them.
    if matches!(
        name,
        b"host" | b"content_length" | b"user_agent" | b"content_type"
    ) {
        return true;
    }
    let separator = if name == b"cookie" { b"; " } else { b", " };
    for (_, value) in fields.filter(|(field, _)| is_spelt(name, field)) {
        out.extend_from_slice(separator);
        out.extend_from_slice(value);
    }
    true
}

/// The value of the first argument called `name` (no case), as sent. An argument
/// without a name is none.
pub fn argument<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    if name.is_empty() {
        return None;
    }
    args.split(|&byte| byte == b'&').find_map(|pair| {
        let (key, value) = pair.split_at_checked(name.len())?;
        if !key.eq_ignore_ascii_case(name) {
            return None;
        }
        value.strip_prefix(b"=")
    })
}

/// Appends an address without its port; nginx writes `unix:` for unix sockets.
fn write_ip(address: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    match address {
        None => out.extend_from_slice(b"unix:"),
        Some(address) => put_ip(address.ip(), out),
    }
    true
}

/// What each part of an IPv4 address is written as, with the dot behind it, and how long
/// that is.
static OCTETS: [([u8; 4], u8); 256] = {
    let mut texts = [([0; 4], 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [
            b'0' + (octet / 100) as u8,
            b'0' + (octet / 10 % 10) as u8,
            b'0' + (octet % 10) as u8,
        ];
        texts[octet] = match octet {
            0..10 => ([digits[2], b'.', 0, 0], 2),
            10..100 => ([digits[1], digits[2], b'.', 0], 3),
            _ => ([digits[0], digits[1], digits[2], b'.'], 4),
        };
        octet += 1;
    }
    texts
};

pub fn put_ip(address: IpAddr, out: &mut Vec<u8>) {
    use std::io::Write;
    match address {
        IpAddr::V4(address) => {
            let mut text = [0; 16];
            let mut len = 0;
            for octet in address.octets() {
                let (digits, digits_len) = OCTETS[usize::from(octet)];
                text[len..len + 4].copy_from_slice(&digits);
                len += usize::from(digits_len);
            }
            out.extend_from_slice(&text[..len - 1]);
        }
        IpAddr::V6(address) => {
            let _ = write!(out, "{address}");
        }
    }
}

fn write_port(address: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    match address {
        // 0: a trusted proxy told the address without a port.
        Some(address) if address.port() > 0 => put_number(address.port(), out),
        _ => true,
    }
}

fn write_binary_address(request: &Request, out: &mut Vec<u8>) -> bool {
    match request.client_ip() {
        Some(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
        Some(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
        None => out.extend_from_slice(b"unix:"),
    }
    true
}

fn write_forwarded_for(request: &Request, out: &mut Vec<u8>) -> bool {
    if write_request_field(request, b"x_forwarded_for", out) {
        out.extend_from_slice(b", ");
    }
    write_ip(request.client, out)
}

fn put_ratio(request: &Request, coding: Coding, out: &mut Vec<u8>) -> bool {
    let reply = request.reply.as_ref();
    let Some(ratio) = reply.and_then(|reply| reply.head.ratio(coding)) else {
        return false;
    };
    out.extend_from_slice(format!("{ratio:.2}").as_bytes());
    true
}

fn write_request_id(request: &mut Request, out: &mut Vec<u8>) -> bool {
    let id = *request
        .extras
        .request_id
        .get_or_insert_with(crate::base::random::bytes16);
    for byte in id {
        for nibble in [byte >> 4, byte & 15] {
            out.push(b"0123456789abcdef"[usize::from(nibble)]);
        }
    }
    true
}

fn write_document_root(request: &mut Request, out: &mut Vec<u8>) -> bool {
    let settings = request.settings_held();
    match &settings.files.root {
        Root::Root(template) | Root::Alias(template) => append(request, template, out),
    }
    true
}

fn write_realpath_root(request: &mut Request, out: &mut Vec<u8>) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let mut root = Vec::new();
    write_document_root(request, &mut root);
    match std::fs::canonicalize(std::ffi::OsStr::from_bytes(&root)) {
        Ok(path) => put(Some(path.as_os_str().as_bytes()), out),
        Err(_) => false,
    }
}

fn write_script_name(request: &mut Request, out: &mut Vec<u8>) -> bool {
    split_path_info(request);
    if let Some(split) = &request.extras.path_info {
        return put(Some(&split.script), out);
    }
    out.extend_from_slice(&request.path);
    let settings = request.settings_held();
    if request.path.last() == Some(&b'/')
        && let site::Content::Pass(pass) = &settings.content
        && let Some(fastcgi) = pass.fastcgi()
        && let Some(index) = &fastcgi.index
    {
        out.extend_from_slice(index);
    }
    true
}

fn write_path_info(request: &mut Request, out: &mut Vec<u8>) -> bool {
    split_path_info(request);
    put(
        request
            .extras
            .path_info
            .as_ref()
            .map(|split| split.info.as_slice())
            .or(Some(b"")),
        out,
    )
}

/// Runs `fastcgi_split_path_info` once for the current path.
fn split_path_info(request: &mut Request) {
    let settings = request.settings_held();
    let site::Content::Pass(pass) = &settings.content else {
        return;
    };
    let Some(pattern) = pass
        .fastcgi()
        .and_then(|fastcgi| fastcgi.split_path_info.as_ref())
    else {
        return;
    };
    if request
        .extras
        .path_info
        .as_ref()
        .is_some_and(|split| split.for_path == request.path)
    {
        return;
    }
    let path = request.path.clone();
    request.extras.forget_path_info();
    if let Some(locations) = pattern::captures(request, pattern, &path) {
        let group = |number| {
            locations
                .get(number)
                .and_then(|(start, end)| path.get(start..end))
                .unwrap_or_default()
                .to_vec()
        };
        let (script, info) = (group(1), group(2));
        request.extras.path_info = Some(PathInfo {
            for_path: path,
            script,
            info,
        });
    }
}
