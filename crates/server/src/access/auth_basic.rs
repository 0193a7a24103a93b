//! `auth_basic`: a name and a password that must stand in a file
//! (<https://nginx.org/en/docs/http/ngx_http_auth_basic_module.html>, RFC 7617).
//!
//! Checks a request and writes the log. The syntax of the field and of the file, and the comparison of
//! passwords with hashes, are in crates/basic-auth.

use std::io;
use std::os::unix::ffi::OsStrExt;

use basic_auth::{Comparison, compare, credentials, users};
use site::{Builtin as B, LogLevel};

use crate::exchange::request::Request;
use crate::exchange::value::put;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::log::error_log;
use system_error::SystemError;

pub const VARIABLES: Variables = &[(B::RemoteUser, Of(put_remote_user))];

/// The result of `auth_basic` for a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// 401 with `WWW-Authenticate: Basic realm="..."`.
    Challenge {
        realm: Vec<u8>,
    },
    /// There is no user file.
    Forbidden,
    /// It could not be read, or its hash not be understood.
    Failed(u16),
}

/// Checks the request's name and password; notes as `remote_user` to the name
/// given, right or wrong, as the log of nginx shows it.
pub fn check(request: &Request) -> Verdict {
    let Some(auth) = &request.settings().auth else {
        return Verdict::Pass;
    };
    let realm = variable::evaluate(request, &auth.realm);
    if realm == b"off" {
        return Verdict::Pass;
    }
    let Some((user, password)) = credentials(request.received.head().field("authorization")) else {
        let message = format_args!("no user/password was provided for basic authentication");
        error_log::request(request, LogLevel::Info, message);
        return Verdict::Challenge { realm };
    };
    let mut path = variable::evaluate(request, &auth.user_file);
    if path.first() != Some(&b'/') {
        let folder = auth.folder.as_os_str().as_bytes();
        path = [folder, b"/", &path].concat();
    }
    let shown = String::from_utf8_lossy(&path).into_owned();
    request
        .values
        .write(|values| values.remote_user = Some(user.clone()));
    let users = match users(&path) {
        Ok(users) => users,
        Err(error) => {
            let message = format_args!("open() \"{shown}\" failed ({})", SystemError(&error));
            let missing = error.kind() == io::ErrorKind::NotFound;
            let level = if missing {
                LogLevel::Error
            } else {
                LogLevel::Crit
            };
            error_log::request(request, level, message);
            return if missing {
                Verdict::Forbidden
            } else {
                Verdict::Failed(500)
            };
        }
    };
    let name = String::from_utf8_lossy(&user).into_owned();
    let Some(hash) = users.get(user.as_slice()) else {
        let message = format_args!("user \"{name}\" was not found in \"{shown}\"");
        error_log::request(request, LogLevel::Error, message);
        return Verdict::Challenge { realm };
    };
    match compare(&user, hash, &password) {
        Comparison::Right => return Verdict::Pass,
        Comparison::Wrong => {
            let message = format_args!("user \"{name}\": password mismatch");
            error_log::request(request, LogLevel::Error, message);
        }
        Comparison::UnknownFormat => {
            let message = format_args!(
                "user \"{name}\": the format of the password in \"{shown}\" is not supported, \
                 make it again with \"htpasswd -B\" or \"openssl passwd -6\""
            );
            error_log::request(request, LogLevel::Error, message);
        }
    }
    Verdict::Challenge { realm }
}

/// The name that was checked, or the one given where none is asked for.
fn put_remote_user(request: &Request, out: &mut Vec<u8>) -> bool {
    if request
        .values
        .read(|values| put(values.remote_user.as_deref(), out))
    {
        return true;
    }
    let given = credentials(request.received.head().field("authorization"));
    put(given.as_ref().map(|(user, _)| user.as_slice()), out)
}
