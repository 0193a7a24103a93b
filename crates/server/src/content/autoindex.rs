//! `autoindex`: listings of directories
//! (<https://nginx.org/en/docs/http/ngx_http_autoindex_module.html>).

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;
use site::{AutoindexFormat, LogLevel};
use site_files::listing::{self, ListingForm};
use system_error::SystemError;

use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::request_fields;
use crate::exchange::variable;
use crate::log::error_log;

/// The listing of `directory`, in the location's format.
pub fn listing(request: &Request, directory: &Path) -> StageEnd {
    let settings = request.settings();
    let options = &settings.files.autoindex;
    let callback = match options.format {
        AutoindexFormat::Jsonp => match callback(request) {
            Ok(callback) => callback,
            Err(status) => return StageEnd::Status(status),
        },
        _ => None,
    };
    let charset = variable::evaluate(request, &settings.charset.charset);
    let is_utf8 = charset.eq_ignore_ascii_case(b"utf-8");
    let entries = match listing::read(directory) {
        Ok(entries) => entries,
        Err(error) => return failed(request, directory, &error),
    };
    let form = ListingForm {
        options,
        path: &request.route.path,
        callback: callback.as_deref(),
        is_utf8,
    };
    let (media_type, out) = listing::page(&entries, &form);
    StageEnd::Reply(Box::new(Reply::new(200, media_type, out)))
}

/// Logs that a directory cannot be read, and returns the status to answer with.
pub fn failed(request: &Request, directory: &Path, error: &io::Error) -> StageEnd {
    let (level, status) = match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => (LogLevel::Error, 404),
        Some(Errno::ACCESS) => (LogLevel::Error, 403),
        _ => (LogLevel::Crit, 500),
    };
    let mut name = String::new();
    let bytes = directory.as_os_str().as_bytes();
    error_log::push_text(bytes.strip_suffix(b"/").unwrap_or(bytes), &mut name);
    error_log::request(
        request,
        level,
        format_args!("opendir() \"{name}\" failed ({})", SystemError(error)),
    );
    StageEnd::Status(status)
}

/// The `callback` argument; 400 where it could be more than a name of JavaScript.
fn callback(request: &Request) -> Result<Option<Vec<u8>>, u16> {
    match request_fields::argument(&request.route.args, b"callback") {
        None | Some(b"") => Ok(None),
        Some(name)
            if name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.$[]".contains(byte)) =>
        {
            Ok(Some(name.to_vec()))
        }
        Some(name) => {
            let mut shown = String::new();
            error_log::push_text(name, &mut shown);
            let message = format_args!("client sent invalid callback name: \"{shown}\"");
            error_log::request(request, LogLevel::Info, message);
            Err(400)
        }
    }
}
