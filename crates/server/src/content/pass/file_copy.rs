//! `*_store`: which responses are kept as files, and where. The copy itself is written by
//! [`FileCopy`] while the client gets the response.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use site::{LogLevel, Pass};

use crate::content::files;
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::log::error_log;
use upstream_fetch::{FetchedResponse, FileCopy};

/// The copy of a response whose directives want it kept: 200, whole, with a path to be at.
pub fn plan(request: &Request, pass: &Pass, fetched: &FetchedResponse) -> Option<FileCopy> {
    let rules = pass.exchange.file_copy.as_ref()?;
    if fetched.status != 200 {
        return None;
    }
    let path = path(request, pass, rules)?;
    let mut fields = fetched.fields.iter();
    let modified = fields
        .find(|(name, _)| name.eq_ignore_ascii_case(b"last-modified"))
        .and_then(|(_, value)| http_semantics::date::parse(value))
        .and_then(|seconds| u64::try_from(seconds).ok())
        .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    let temp_folder = pass.exchange.temp_path.clone();
    Some(FileCopy::new(
        rules.clone(),
        temp_folder,
        path,
        modified,
        fetched.content_length,
    ))
}

/// Returns the file to write the response to. A path that leads upwards through values of
/// variables gives `None`: a client cannot choose the folder.
fn path(request: &Request, pass: &Pass, rules: &site::FileCopy) -> Option<PathBuf> {
    let path = match &rules.path {
        Some(template) => variable::evaluate(request, template),
        None => files::mapped_path(request)?,
    };
    if path.is_empty() || path.split(|&byte| byte == b'/').any(|part| part == b"..") {
        let directive = pass.directive().replace("_pass", "_store");
        let shown = String::from_utf8_lossy(&path).into_owned();
        let message = format_args!("invalid path \"{shown}\" in \"{directive}\"");
        error_log::request(request, LogLevel::Error, message);
        return None;
    }
    Some(PathBuf::from(OsStr::from_bytes(&path)))
}
