//! Who sends a request, by its token: `Authorization: Bearer TOKEN` (RFC 6750 §2.1).

use std::path::Path;

use control::Refusal;
use site::LogLevel;

use crate::exchange::request::Request;
use crate::log::error_log;
use purge_order::token;

/// The scheme before a token, compared without regard to case.
const BEARER: &[u8] = b"bearer ";

/// The name of the token that a request has; `None`: it has none.
///
/// # Errors
/// The file does not have this token (401), or cannot be read (500).
pub fn holder(request: &Request, file: &Path) -> Result<Option<String>, Refusal> {
    let given = request
        .received
        .head()
        .field("authorization")
        .and_then(|value| {
            let (scheme, token) = value.split_at_checked(BEARER.len())?;
            scheme
                .eq_ignore_ascii_case(BEARER)
                .then_some(token.trim_ascii())
        });
    let Some(given) = given else {
        return Ok(None);
    };
    match token::find(file, given) {
        Ok(Some(name)) => Ok(Some(name)),
        Ok(None) => {
            error_log::request(
                request,
                LogLevel::Error,
                format_args!("unknown purge token"),
            );
            Err(Refusal::new(401, "this token is not known"))
        }
        Err(error) => {
            let message = format_args!("tokens \"{}\" cannot be read ({error})", file.display());
            error_log::request(request, LogLevel::Crit, message);
            Err(Refusal::new(500, "the tokens cannot be read"))
        }
    }
}
