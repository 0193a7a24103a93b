//! Content from files: from the request's path to a path on disk, index files,
//! precompressed files, `try_files`
//! (<https://nginx.org/en/docs/http/ngx_http_core_module.html#root>,
//! `ngx_http_index_module`, `ngx_http_gzip_static_module`). Statuses and log
//! lines are nginx's.
//!
//! Files are opened and looked at by blocking calls, as nginx does: the system keeps
//! popular files in memory.

#[cfg(test)]
mod on_disk;
mod try_files;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use http_semantics::escape::escape_uri;
use site::{Builtin as B, Coding, LogLevel, PrecompressedFiles, Root};

use crate::content::autoindex;
use crate::content::robots::RobotsOfSite;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::{Body, Reply, ReplyHead};
use crate::exchange::request::{Method, Request};
use crate::exchange::value::put;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::exchange::variables::files::{document_root, look};
use crate::log::error_log;
use crate::respond;
use crate::respond::recode;
use server_base::random;
use site_files::listing;
use site_files::open::{Failure, FileKind, FoundFile, OpenPurpose};
use system_error::SystemError;

pub use try_files::tried;

pub const VARIABLES: Variables = &[(
    B::RequestFilename,
    Of(|request, out| put(Some(&request_path(request)), out)),
)];

/// The path on disk that the request's path stands for.
pub fn request_path(request: &Request) -> Vec<u8> {
    let (Root::Root(template) | Root::Alias(template)) = &request.settings().files.root;
    if let Some(root) = template.as_constant() {
        return [root, below_root(request)].concat();
    }
    let mut path = document_root(request);
    path.extend_from_slice(below_root(request));
    path
}

/// Like [`request_path`]; `None` if an `alias` cannot map the path.
pub fn mapped_path(request: &Request) -> Option<Vec<u8>> {
    is_mapped(request).then(|| request_path(request))
}

/// An `alias` takes the place of its location's path, which a rewritten path may
/// not begin with.
fn is_mapped(request: &Request) -> bool {
    if !matches!(request.settings().files.root, Root::Alias(_)) || !request.route.is_rewritten() {
        return true;
    }
    let name = &request.location().name;
    error_log::request(
        request,
        LogLevel::Alert,
        format_args!("\"alias\" cannot be used in location \"{name}\" where URI was rewritten"),
    );
    false
}

/// Returns the part of the request's path that is appended to `root` or `alias`.
fn below_root(request: &Request) -> &[u8] {
    let place = request.location();
    match request.settings().files.root {
        Root::Root(_) => &request.route.path,
        // The value of an alias in a location given by a pattern is a whole path.
        Root::Alias(_) if place.is_pattern && !request.route.adds_path_to_alias => b"",
        Root::Alias(_) if place.is_pattern => &request.route.path,
        Root::Alias(_) => request
            .route
            .path
            .get(place.prefix_bytes.unwrap_or(0)..)
            .unwrap_or_default(),
    }
}

/// Media type of `path` by the part behind its last dot.
pub fn media_type<'a>(request: &'a Request, path: &[u8]) -> &'a [u8] {
    let files = &request.settings().files;
    let known = extension(path).and_then(|extension| {
        // Most are written in the lower case of the table.
        let known = files.types.get(extension);
        known.or_else(|| files.types.get(extension.to_ascii_lowercase().as_slice()))
    });
    known.unwrap_or(&files.default_type)
}

/// The extension of the last part of a path. A name that begins with its only dot
/// has none.
fn extension(path: &[u8]) -> Option<&[u8]> {
    let name_start = path
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1);
    let name = path.get(name_start..)?;
    let dot = name
        .iter()
        .rposition(|&byte| byte == b'.')
        .filter(|&dot| dot > 0)?;
    name.get(dot + 1..)
}

/// Answers with the file or folder at the request's path.
pub fn serve(request: &Request) -> StageEnd {
    if !is_mapped(request) {
        return StageEnd::Status(500);
    }
    if request.route.path.last() == Some(&b'/') {
        directory(request)
    } else {
        file(request)
    }
}

/// A path with a slash at its end: an index file, a listing, or nothing.
fn directory(request: &Request) -> StageEnd {
    let is_read = matches!(request.route.method, Method::Get | Method::Head);
    // `PURGE /` and `BAN /` purge the page that the index makes; nginx answers 405.
    let may_purge = matches!(request.route.method, Method::Purge | Method::Other);
    if !is_read && !may_purge && request.route.method != Method::Post {
        return StageEnd::Status(405);
    }
    if request.settings().files.random_index
        && !may_purge
        && let Some(handled) = random_index(request)
    {
        return handled;
    }
    if let Some(handled) = index(request) {
        return handled;
    }
    if may_purge {
        return StageEnd::Status(405);
    }
    let directory = request_path(request);
    if is_read && request.settings().files.autoindex.enabled {
        return autoindex::listing(request, Path::new(OsStr::from_bytes(&directory)));
    }
    error_log::refusal(
        request,
        LogLevel::Error,
        format_args!("directory index of \"{}\" is forbidden", text(&directory)),
    );
    StageEnd::Status(403)
}

/// `random_index`: a file of the directory, by an internal redirect.
fn random_index(request: &Request) -> Option<StageEnd> {
    let directory = request_path(request);
    let directory = Path::new(OsStr::from_bytes(&directory));
    match listing::random_file(directory, random::below) {
        Ok(name) => Some(StageEnd::Redirect {
            path: [request.route.path.as_slice(), &name?].concat(),
            args: request.route.args.clone(),
        }),
        Err(error) => Some(autoindex::failed(request, directory, &error)),
    }
}

/// The first of the `index` files that exists, by an internal redirect.
fn index(request: &Request) -> Option<StageEnd> {
    let directory = request_path(request);
    let mut is_directory_tested = false;
    for template in &request.settings().files.index {
        let name = variable::evaluate(request, template);
        if name.first() == Some(&b'/') {
            return Some(StageEnd::Redirect {
                path: name,
                args: request.route.args.clone(),
            });
        }
        let path = [directory.as_slice(), &name].concat();
        let failure = match look(request, &path, OpenPurpose::Facts) {
            Ok(_) => {
                let path = [request.route.path.as_slice(), &name].concat();
                return Some(StageEnd::Redirect {
                    path,
                    args: request.route.args.clone(),
                });
            }
            Err(failure) => failure,
        };
        match failure.errno {
            rustix::io::Errno::LOOP | rustix::io::Errno::MLINK => {
                return Some(StageEnd::Status(403));
            }
            rustix::io::Errno::NOTDIR
            | rustix::io::Errno::NAMETOOLONG
            | rustix::io::Errno::ACCESS => {
                return Some(index_error(request, &path, failure));
            }
            _ => {}
        }
        if !is_directory_tested {
            if let Some(handled) = test_directory(request, &directory, &path) {
                return Some(handled);
            }
            is_directory_tested = true;
        }
        if failure.errno != rustix::io::Errno::NOENT {
            log_failure(request, LogLevel::Crit, &path, failure);
            return Some(StageEnd::Status(500));
        }
    }
    None
}

/// Is there a directory to look for index files in? If not, gives the answer.
fn test_directory(request: &Request, directory: &[u8], index: &[u8]) -> Option<StageEnd> {
    let name = match directory.strip_suffix(b"/") {
        Some(name) if !name.is_empty() => name,
        _ => directory,
    };
    match look(request, name, OpenPurpose::Facts) {
        Ok(found) if found.kind == FileKind::Directory => None,
        Ok(_) => {
            error_log::request(
                request,
                LogLevel::Alert,
                format_args!("\"{}\" is not a directory", text(name)),
            );
            Some(StageEnd::Status(500))
        }
        Err(failure) => match failure.errno {
            rustix::io::Errno::LOOP | rustix::io::Errno::MLINK => Some(StageEnd::Status(403)),
            rustix::io::Errno::NOENT => Some(index_error(request, index, failure)),
            // Its parent may be searched, since the index file's error was another.
            rustix::io::Errno::ACCESS => None,
            _ => {
                log_failure(request, LogLevel::Crit, name, failure);
                Some(StageEnd::Status(500))
            }
        },
    }
}

fn index_error(request: &Request, path: &[u8], failure: Failure) -> StageEnd {
    let error = failure.error();
    if failure.is_forbidden() {
        let message = format_args!("\"{}\" is forbidden ({})", text(path), SystemError(&error));
        error_log::request(request, LogLevel::Error, message);
        return StageEnd::Status(403);
    }
    if request.settings().log_not_found {
        let message = format_args!("\"{}\" is not found ({})", text(path), SystemError(&error));
        error_log::request(request, LogLevel::Error, message);
    }
    StageEnd::Status(404)
}

/// A path without a slash at its end: a file, precompressed where there is one.
fn file(request: &Request) -> StageEnd {
    let path = request_path(request);
    let mut varies = false;
    if matches!(request.route.method, Method::Get | Method::Head)
        && let Some(handled) = precompressed(request, &path, &mut varies)
    {
        return handled;
    }
    if !matches!(
        request.route.method,
        Method::Get | Method::Head | Method::Post
    ) {
        return StageEnd::Status(405);
    }
    let found = match look(request, &path, OpenPurpose::Contents) {
        Ok(found) => found,
        Err(failure) => return file_error(request, &path, failure),
    };
    match (found.kind, &found.file) {
        (FileKind::Directory, _) => add_slash(request),
        (FileKind::File, Some(_)) if request.route.method == Method::Post => StageEnd::Status(405),
        (FileKind::File, Some(file)) => {
            mark_asset(request, &path);
            if let Some(robots) = RobotsOfSite::asked_for(request) {
                robots.read_file(file.clone(), found.length);
            }
            let mut reply = file_reply(request, &found);
            if varies {
                reply.head.fields.append("Vary", "Accept-Encoding");
            }
            StageEnd::Reply(Box::new(reply))
        }
        _ => not_regular(request, &path),
    }
}

/// Files that browsers load with a page.
const ASSETS: [&[u8]; 13] = [
    b"css", b"js", b"mjs", b"png", b"jpg", b"jpeg", b"gif", b"webp", b"avif", b"svg", b"ico",
    b"woff2", b"woff",
];

/// Notes that a client loads the parts of a page (styles, scripts, images), if the group
/// serves clients in turn.
fn mark_asset(request: &Request, path: &[u8]) {
    if let Some(clients) = request.configuration.live.groups.clients()
        && extension(path).is_some_and(|extension| ASSETS.contains(&extension))
    {
        let agent = request.received.head().field("user-agent");
        clients.mark_asset(
            request.received.client_ip(),
            agent.unwrap_or_default(),
            request.now(),
        );
    }
}

fn add_slash(request: &Request) -> StageEnd {
    let mut target = escape_uri(&request.route.path).into_owned();
    target.push(b'/');
    if !request.route.args.is_empty() {
        target.push(b'?');
        target.extend_from_slice(&request.route.args);
    }
    respond::local_redirect(request, target, 301)
}

/// `gzip_static` and its kin: the file with `.gz` (or `.br`, `.zst`) behind its
/// name, in the coding that the client likes best of those that are there.
/// `varies` is set where other clients get, or would get, another answer.
fn precompressed(request: &Request, path: &[u8], varies: &mut bool) -> Option<StageEnd> {
    let settings = request.settings();
    let kept = |coding: &Coding| settings.compression.coding(*coding).precompressed;
    if Coding::ALL
        .iter()
        .all(|coding| kept(coding) == PrecompressedFiles::Off)
    {
        return None;
    }
    let mut by_weight = Coding::ALL.map(|coding| {
        (
            recode::weight(request, &ReplyHead::default(), coding),
            coding,
        )
    });
    // Stable: among equals the server's own preference stays.
    by_weight.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    by_weight
        .into_iter()
        .find_map(|(weight, coding)| match kept(&coding) {
            PrecompressedFiles::Off => None,
            PrecompressedFiles::On => {
                precompressed_in(request, path, coding, weight > 0, Some(varies))
            }
            PrecompressedFiles::Always => precompressed_in(request, path, coding, true, None),
        })
}

/// The file in `coding`. Without `varies` every client gets it.
fn precompressed_in(
    request: &Request,
    path: &[u8],
    coding: Coding,
    is_taken: bool,
    varies: Option<&mut bool>,
) -> Option<StageEnd> {
    let settings = request.settings();
    let says_vary = varies.is_some() && settings.compression.gzip_vary;
    if !is_taken && !says_vary {
        return None;
    }
    let path = [path, coding.file_suffix().as_bytes()].concat();
    let found = match look(request, &path, OpenPurpose::Contents) {
        Ok(found) => found,
        Err(failure) if failure.is_missing() => return None,
        Err(failure) => {
            let level = if failure.is_forbidden() {
                LogLevel::Error
            } else {
                LogLevel::Crit
            };
            log_failure(request, level, &path, failure);
            return None;
        }
    };
    if let Some(varies) = varies {
        *varies |= says_vary;
    }
    if !is_taken || found.kind == FileKind::Directory {
        return None;
    }
    if found.file.is_none() {
        return Some(not_regular(request, &path));
    }
    let mut reply = file_reply(request, &found);
    // Like in nginx, ranges apply to the file itself.
    reply.head.form.accepts_ranges = false;
    reply.head.fields.append("Content-Encoding", coding.name());
    if says_vary {
        reply.head.fields.append("Vary", "Accept-Encoding");
    }
    Some(StageEnd::Reply(Box::new(reply)))
}

fn not_regular(request: &Request, path: &[u8]) -> StageEnd {
    let message = format_args!("\"{}\" is not a regular file", text(path));
    error_log::request(request, LogLevel::Crit, message);
    StageEnd::Status(404)
}

fn file_error(request: &Request, path: &[u8], failure: Failure) -> StageEnd {
    let (level, status) = if failure.is_missing() {
        (LogLevel::Error, 404)
    } else if failure.is_forbidden() {
        (LogLevel::Error, 403)
    } else {
        (LogLevel::Crit, 500)
    };
    if status != 404 || request.settings().log_not_found {
        log_failure(request, level, path, failure);
    }
    StageEnd::Status(status)
}

fn log_failure(request: &Request, level: LogLevel, path: &[u8], failure: Failure) {
    let (call, error) = (failure.call, failure.error());
    let log = match failure.is_forbidden() {
        true => error_log::refusal,
        false => error_log::request,
    };
    let path = text(path);
    let message = format_args!("{call} \"{path}\" failed ({})", SystemError(&error));
    log(request, level, message);
}

fn text(path: &[u8]) -> impl std::fmt::Display {
    let mut out = String::with_capacity(path.len());
    error_log::push_text(path, &mut out);
    out
}

/// Head and body for an open file.
fn file_reply(request: &Request, found: &FoundFile) -> Reply {
    let mut head = ReplyHead::new(200);
    let media_type = media_type(request, &request.route.path);
    if !media_type.is_empty() {
        head.fields
            .append("Content-Type", Bytes::copy_from_slice(media_type));
    }
    let validators = found.validators();
    head.fields
        .append("Last-Modified", validators.last_modified);
    if request.settings().files.etag {
        head.fields.append("ETag", validators.etag);
    }
    head.last_modified = Some(found.modified);
    head.content_length = Some(found.length);
    head.form.accepts_ranges = true;
    let body = match &found.file {
        Some(file) => Body::file(file.clone(), found.length),
        None => Body::Empty,
    };
    Reply { head, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_those_of_the_last_part() {
        for (path, wanted) in [
            ("/a.html", Some("html")),
            ("/a.tar.GZ", Some("GZ")),
            ("/a.b/c", None),
            ("/.htaccess", None),
            ("/a/.htaccess", None),
            ("/a/.ht.php", Some("php")),
            ("/a.", Some("")),
            ("/", None),
            ("", None),
            ("a.css", Some("css")),
        ] {
            let found = extension(path.as_bytes());
            assert_eq!(found, wanted.map(str::as_bytes), "{path}");
        }
    }
}
