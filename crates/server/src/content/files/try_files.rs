//! `try_files`: the first candidate that exists becomes the request's path
//! (<https://nginx.org/en/docs/http/ngx_http_core_module.html#try_files>).

use site::{LogLevel, Part, Root, TryFallback, TryFile, TryFiles};

use super::{document_root, log_failure, look};
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;
use crate::exchange::variable;
use site_files::open::{Kind, OpenPurpose};

/// Looks for the candidates in turn; `None` if one exists, whose path is that of the request
/// now. Else the last argument counts.
pub fn try_files(request: &mut Request, try_files: &TryFiles) -> Option<StageEnd> {
    let root = document_root(request);
    for candidate in &try_files.candidates {
        let name = candidate_name(request, candidate);
        let path = [root.as_slice(), &name].concat();
        match look(request, &path, OpenPurpose::Facts) {
            // A FIFO is as good as a file here; who serves it will refuse it.
            Ok(found) if (found.kind == Kind::Directory) == candidate.is_directory => {
                take_path(request, &name, candidate.is_directory);
                return None;
            }
            Err(failure) if !failure.is_missing() => {
                log_failure(request, LogLevel::Crit, &path, failure);
            }
            _ => {}
        }
    }
    Some(match &try_files.fallback {
        TryFallback::Status(status) => StageEnd::Status(*status),
        TryFallback::Uri(target) => {
            let target = variable::evaluate(request, target);
            match target.first() {
                Some(b'@') => StageEnd::Named(target),
                _ => {
                    // Like in nginx, a URI without arguments goes on without those of the request.
                    let (path, args) = http_semantics::split_query(&target);
                    StageEnd::Redirect {
                        path: path.to_vec(),
                        args: args.unwrap_or_default().to_vec(),
                    }
                }
            }
        }
    })
}

/// A candidate, as it goes behind `root` or `alias`.
fn candidate_name(request: &Request, candidate: &TryFile) -> Vec<u8> {
    let mut name = variable::evaluate(request, &candidate.path);
    let has_variables = candidate
        .path
        .parts
        .iter()
        .any(|part| matches!(part, Part::Variable(_)));
    let prefix = replaced_prefix(request);
    if has_variables
        && prefix > 0
        && request
            .route
            .path
            .get(..prefix)
            .is_some_and(|prefix| name.starts_with(prefix))
    {
        // `$uri` begins with the location's path, in whose place the alias stands.
        name.drain(..prefix);
    }
    name
}

/// Returns how much of the request's path an alias takes the place of.
fn replaced_prefix(request: &Request) -> usize {
    let place = request.location();
    match request.settings().files.root {
        Root::Alias(_) if !place.is_pattern => place.prefix_bytes.unwrap_or(0),
        _ => 0,
    }
}

fn take_path(request: &mut Request, name: &[u8], is_directory: bool) {
    let place = request.location();
    let is_whole_path = matches!(request.settings().files.root, Root::Alias(_)) && place.is_pattern;
    if is_whole_path {
        // The alias is the directory for such a candidate, not the file.
        if !is_directory {
            request.route.path = name.to_vec();
            request.route.adds_path_to_alias = true;
        }
        return;
    }
    let prefix = replaced_prefix(request);
    request.route.path.truncate(prefix);
    request.route.path.extend_from_slice(name);
}
