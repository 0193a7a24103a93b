//! `htaccess`: Apache's per-folder rules, evaluated for the file that the path of a request stands for,
//! before a location is chosen for it. Rules for the response are kept until it is made
//! (`respond/by_htaccess`).
//!
//! The rules come from the files as they are now (`files`): each folder's is looked at once a second.
//! If none of the folders on the way has one, there is nothing more to do. A rule only refuses,
//! redirects or leads to another path: locations decide after it, and refuse what they refuse.

mod files;

use std::cell::RefCell;
use std::collections::HashSet;
use std::net::IpAddr;

use bytes::Bytes;
use htaccess::{Evaluation, Verdict, Visit, evaluate};
use http_semantics::Fields;
use parking_lot::Mutex;
use site::LogLevel;
use transport::facts::LocalAddress;

use crate::access::real_ip;
use crate::exchange::handled::StageEnd;
use crate::exchange::htaccess_site::HtaccessSite;
use crate::exchange::request::Request;
use crate::exchange::request_route::RequestKind;
use crate::log::error_log;
use files::{FolderFiles, RuleNote};

/// Are there rules for the request's server? A path named by an application or an error page is not the visitor's choice.
#[inline]
pub fn may_apply(request: &Request) -> bool {
    let server = request.route.server();
    request.configuration.htaccess[server.0].is_some()
        && request.route.kind != RequestKind::Diverted
}

/// Obeys the rules: the request ends, or its path becomes the one that they lead to.
pub fn obey(request: &mut Request) -> Option<StageEnd> {
    let configuration = request.configuration.clone();
    let site = configuration.htaccess[request.route.server().0].as_ref()?;
    if !site.rules.is_given && !files::has_rules(&site.mounts, &request.route.path) {
        request.delivery.set_rules(None);
        return None;
    }
    if let Some(client) = real_ip::client_address(request) {
        request.received.believe_client(client);
    }
    let (evaluation, notes) = evaluation(request, site);
    tell(request, notes);
    request.delivery.set_rules(evaluation.response);
    match evaluation.verdict {
        Verdict::Target(target) => {
            if target.is_missing {
                return Some(StageEnd::Status(404));
            }
            if target.is_changed {
                request.route.path = target.path;
                request.route.args = target.args;
                request.route.note_change();
                request.values.forget_path_info();
            }
            let mut variables = target.variables;
            variables.extend(error_variables(request));
            request.route.script_variables = variables;
            None
        }
        Verdict::Redirect { status, location } => {
            let mut fields = Fields::new();
            let location = match location.first() {
                Some(b'/') => [&own_address(request)[..], &location].concat(),
                _ => location,
            };
            fields.append("Location", Bytes::from(location));
            Some(StageEnd::StatusWith(status, fields))
        }
        Verdict::Refused { status, realm } => {
            let message = format_args!("access forbidden by a .htaccess file");
            error_log::refusal(request, LogLevel::Error, message);
            let mut fields = Fields::new();
            if status == 401 {
                let realm = realm.unwrap_or_default();
                let is_text = |it: &char| !it.is_control() && !matches!(it, '"' | '\\');
                let realm: String = realm.chars().filter(is_text).collect();
                let value = format!("Basic realm=\"{realm}\"");
                fields.append("WWW-Authenticate", Bytes::from(value));
            }
            Some(StageEnd::StatusWith(status, fields))
        }
    }
}

/// Returns the `REDIRECT_*` variables for the script of an error page.
fn error_variables(request: &Request) -> Vec<(String, Vec<u8>)> {
    let Some(status) = request.delivery.error_page.error_status() else {
        return Vec::new();
    };
    let (path, args) = http_semantics::split_query(request.received.target());
    let args = args.unwrap_or_default();
    vec![
        (
            "REDIRECT_STATUS".to_owned(),
            status.to_string().into_bytes(),
        ),
        ("REDIRECT_URL".to_owned(), path.to_vec()),
        ("REDIRECT_QUERY_STRING".to_owned(), args.to_vec()),
    ]
}

/// `http://host`, as the client wrote the host.
fn own_address(request: &Request) -> Vec<u8> {
    match request.received.head().field("host") {
        Some(host) if !host.is_empty() => {
            [request.received.scheme().as_bytes(), b"://", host].concat()
        }
        _ => Vec::new(),
    }
}

fn evaluation(request: &Request, site: &HtaccessSite) -> (Evaluation, Vec<RuleNote>) {
    let head = request.received.head();
    let field = |name: &str| {
        let separator: &[u8] = match name.eq_ignore_ascii_case("cookie") {
            true => b"; ",
            false => b", ",
        };
        let values = head.fields();
        let values = values.filter(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()));
        let values: Vec<&[u8]> = values.map(|(_, value)| value).collect();
        (!values.is_empty()).then(|| values.join(separator))
    };
    let field_names = || {
        let names = head.fields().map(|(name, _)| name);
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    };
    let method = String::from_utf8_lossy(request.method_name()).into_owned();
    let target = request.received.target();
    let request_line = [method.as_bytes(), b" ", target, b" HTTP/1.1"].concat();
    let local = match &request.received.connection().local {
        LocalAddress::Ip(address) => Some(*address),
        LocalAddress::Unix(_) => None,
    };
    let now = clock::wall_now() / 1000;
    let seconds = i64::try_from(now).unwrap_or(0);
    let visit = Visit {
        method: &method,
        path: &request.route.path,
        args: &request.route.args,
        request_line: &request_line,
        scheme: request.received.scheme(),
        host: head.field("host").unwrap_or_default(),
        port: local.map_or(0, |it| it.port()),
        server_address: local.map(|it| it.ip().to_canonical()),
        client: request
            .received
            .client_ip()
            .map(|it: IpAddr| it.to_canonical()),
        field: &field,
        field_names: &field_names,
        time: (seconds, local_time(seconds)),
        indexes: &site.indexes,
        lists_folders: site.lists_folders,
    };
    let disk = FolderFiles {
        site: &site.mounts,
        reads_rules: site.reads_files,
        credentials: basic_auth::credentials(head.field("authorization")),
        notes: RefCell::default(),
    };
    let evaluation = evaluate(&visit, &disk, &site.mounts, &site.rules);
    (evaluation, disk.notes.into_inner())
}

fn local_time(seconds: i64) -> [u32; 7] {
    let time = clock::local(seconds);
    let number = |value: i8| u32::try_from(value).unwrap_or(0);
    [
        u32::try_from(time.year()).unwrap_or(0),
        number(time.month()),
        number(time.day()),
        number(time.hour()),
        number(time.minute()),
        number(time.second()),
        number(time.weekday().to_sunday_zero_offset()),
    ]
}

/// Notes of files that have been logged, so that not every thread logs them.
static LOGGED: Mutex<Option<HashSet<RuleNote>>> = Mutex::new(None);
/// Beyond this number, notes are logged again.
const MAX_LOGGED: usize = 4096;

/// Logs lines that have another effect than in Apache, once for each state of a file.
fn tell(request: &Request, notes: Vec<RuleNote>) {
    for note in notes {
        let mut logged = LOGGED.lock();
        let logged = logged.get_or_insert_default();
        if logged.len() >= MAX_LOGGED {
            logged.clear();
        }
        let level = match note.closes {
            true => LogLevel::Error,
            false => LogLevel::Notice,
        };
        if logged.insert(note.clone()) {
            error_log::request(request, level, format_args!("{}", note.text));
        }
    }
}
