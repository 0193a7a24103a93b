//! `try_files`: the first candidate that exists becomes the request's path
//! (<https://nginx.org/en/docs/http/ngx_http_core_module.html#try_files>).

use site::{LogLevel, Part, Root, TryFallback, TryFile};

use super::{document_root, log_failure, look};
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;
use crate::exchange::request_route::RequestRoute;
use crate::exchange::variable;
use site_files::open::{FileKind, OpenPurpose};

/// Looks for the candidates of `try_files` in turn, and returns the path of the first that exists. Else the last
/// argument counts.
pub fn tried(request: &Request) -> Result<TriedPath, StageEnd> {
    let Some(try_files) = &request.settings().files.try_files else {
        return Ok(TriedPath::default());
    };
    let root = document_root(request);
    for candidate in &try_files.candidates {
        let name = candidate_name(request, candidate);
        let path = [root.as_slice(), &name].concat();
        match look(request, &path, OpenPurpose::Facts) {
            // A FIFO is as good as a file here; who serves it will refuse it.
            Ok(found) if (found.kind == FileKind::Directory) == candidate.is_directory => {
                return Ok(path_of(request, &name, candidate.is_directory));
            }
            Err(failure) if !failure.is_missing() => {
                log_failure(request, LogLevel::Crit, &path, failure);
            }
            _ => {}
        }
    }
    Err(match &try_files.fallback {
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

/// The path of a candidate that exists.
#[derive(Default)]
pub struct TriedPath {
    /// `None`: that of the request.
    path: Option<Vec<u8>>,
    /// It goes behind an `alias` that stands for a whole path.
    adds_path_to_alias: bool,
}

impl TriedPath {
    pub fn become_path_of(self, route: &mut RequestRoute) {
        route.adds_path_to_alias |= self.adds_path_to_alias;
        if let Some(path) = self.path {
            route.path = path;
        }
    }
}

fn path_of(request: &Request, name: &[u8], is_directory: bool) -> TriedPath {
    let place = request.location();
    let is_whole_path = matches!(request.settings().files.root, Root::Alias(_)) && place.is_pattern;
    if is_whole_path {
        // The alias is the directory for such a candidate, not the file.
        return TriedPath {
            path: (!is_directory).then(|| name.to_vec()),
            adds_path_to_alias: !is_directory,
        };
    }
    let prefix = replaced_prefix(request);
    let kept = request
        .route
        .path
        .get(..prefix)
        .unwrap_or(&request.route.path);
    TriedPath {
        path: Some([kept, name].concat()),
        adds_path_to_alias: false,
    }
}
