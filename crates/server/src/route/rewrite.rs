//! The rewrite program of a server or location
//! (<https://nginx.org/en/docs/http/ngx_http_rewrite_module.html>).

use rustix::fs::FileType;
use site::{Condition, FileTest, Part, RewriteOp, RewriteThen, SetTarget, Template, Variable};

use crate::exchange::request::Request;
use crate::exchange::request_route::TargetOrigin;
use crate::exchange::request_values::put_value;
use crate::exchange::variable;
use crate::exchange::variables::files;
use crate::route::pattern;
use server_base::site_path;
use site_files::open::OpenPurpose;

/// The result of a rewrite program.
#[derive(Debug)]
pub enum Rewritten {
    /// Go on in this location.
    Continue,
    /// The path changed: find a location for it.
    Relocate,
    /// The path changed and stays in this location (`break`).
    Stay,
    Return {
        status: u16,
        /// Text or, for redirects, the location.
        value: Option<Vec<u8>>,
    },
    Redirect {
        permanent: bool,
        location: Vec<u8>,
    },
}

enum Step {
    Next,
    Done(Rewritten),
}

/// Runs `program`. Conditions that hold switch the request to the settings of
/// their block.
#[inline]
pub fn run(request: &mut Request, program: &[RewriteOp]) -> Rewritten {
    if program.is_empty() {
        return Rewritten::Continue;
    }
    let mut changed = false;
    match run_steps(request, program, &mut changed) {
        Step::Done(done) => done,
        Step::Next if changed => Rewritten::Relocate,
        Step::Next => Rewritten::Continue,
    }
}

fn run_steps(request: &mut Request, program: &[RewriteOp], changed: &mut bool) -> Step {
    for op in program {
        match op {
            RewriteOp::AcmeChallenge => {
                let answers = &request.configuration.live.acme_answers;
                if let Some(content) = answers.file(&request.route.path) {
                    return Step::Done(Rewritten::Return {
                        status: 200,
                        value: Some(content),
                    });
                }
            }
            RewriteOp::Set { target, value } => {
                let value = variable::evaluate(request, value);
                assign(request, target, value);
            }
            RewriteOp::Break => {
                return Step::Done(if *changed {
                    Rewritten::Stay
                } else {
                    Rewritten::Continue
                });
            }
            RewriteOp::Return { status, value } => {
                let value = value
                    .as_ref()
                    .map(|value| variable::evaluate(request, value));
                return Step::Done(Rewritten::Return {
                    status: *status,
                    value,
                });
            }
            RewriteOp::If {
                condition,
                then,
                location,
            } => {
                if !holds(request, condition) {
                    continue;
                }
                if let Some(location) = location {
                    request.enter(*location);
                }
                if let Step::Done(done) = run_steps(request, then, changed) {
                    return Step::Done(done);
                }
            }
            RewriteOp::Rewrite {
                pattern,
                replacement,
                then,
                drops_arguments,
                is_redirect,
            } => {
                let path = request.route.path.clone();
                if !pattern::matches(request, pattern, &path) {
                    continue;
                }
                let redirects =
                    *is_redirect || matches!(then, RewriteThen::Redirect | RewriteThen::Permanent);
                if redirects {
                    let permanent = *then == RewriteThen::Permanent;
                    return Step::Done(Rewritten::Redirect {
                        permanent,
                        location: redirect_target(request, replacement, *drops_arguments),
                    });
                }
                let (path, args) = rewritten(request, replacement, *drops_arguments);
                (request.route.path, request.route.args) = (path, args);
                request.route.origin = TargetOrigin::Rewritten;
                request.values.forget_path_info();
                *changed = true;
                match then {
                    RewriteThen::Last => return Step::Done(Rewritten::Relocate),
                    RewriteThen::Break => return Step::Done(Rewritten::Stay),
                    _ => {}
                }
            }
        }
    }
    Step::Next
}

/// Returns the target of a redirect: captured text that was decoded is escaped again, and the old
/// arguments are appended.
fn redirect_target(request: &Request, replacement: &Template, drops_arguments: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    put_replacement(request, replacement, true, &mut out);
    let mut out = decode_redirect(out);
    if !drops_arguments && !request.route.args.is_empty() {
        out.push(if out.contains(&b'?') { b'&' } else { b'?' });
        out.extend_from_slice(&request.route.args);
    }
    out
}

/// Undoes the escapes of characters that may stand in a URL unescaped, up to the query string, as
/// nginx does: so that an argument can carry a whole target. Other escapes stay, line breaks among
/// them.
fn decode_redirect(target: Vec<u8>) -> Vec<u8> {
    if memchr::memchr(b'%', &target).is_none() {
        return target;
    }
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut out = Vec::with_capacity(target.len());
    let mut rest = target.as_slice();
    while let [first, after @ ..] = rest {
        let decoded = match rest {
            [b'%', high, low, after @ ..] => digit(high)
                .zip(digit(low))
                .map(|(high, low)| (high << 4 | low, after))
                .filter(|(byte, _)| (b'&'..=b'~').contains(byte)),
            _ => None,
        };
        let (byte, after) = decoded.unwrap_or((*first, after));
        out.push(byte);
        rest = after;
        if byte == b'?' {
            break;
        }
    }
    out.extend_from_slice(rest);
    out
}

/// Returns path and arguments from the replacement's value. Like in nginx, a literal `?`
/// begins the arguments, and one from a variable belongs to the path.
fn rewritten(
    request: &Request,
    replacement: &Template,
    drops_arguments: bool,
) -> (Vec<u8>, Vec<u8>) {
    let mut target = Vec::with_capacity(64);
    match put_replacement(request, replacement, false, &mut target) {
        Some(mark) => {
            let mut args = target[mark + 1..].to_vec();
            if !drops_arguments && !request.route.args.is_empty() {
                if !args.is_empty() {
                    args.push(b'&');
                }
                args.extend_from_slice(&request.route.args);
            }
            target.truncate(mark);
            (target, args)
        }
        None if drops_arguments => (target, Vec::new()),
        None => (target, request.route.args.clone()),
    }
}

/// Gives a variable its value.
pub fn assign(request: &mut Request, target: &SetTarget, value: Vec<u8>) {
    match target {
        SetTarget::Args => {
            request.route.args = value;
            request.route.note_change();
        }
        SetTarget::LimitRate => request.delivery.limit_rate = parse_rate(&value),
        SetTarget::Slot(slot) => {
            put_value(&mut request.values.get_mut().slots, slot.0, Some(value));
        }
    }
}

/// A size as in configuration files: digits and perhaps `k` or `m`.
pub fn parse_rate(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1024),
        b'm' | b'M' => (&text[..text.len() - 1], 1024 * 1024),
        b'g' | b'G' => (&text[..text.len() - 1], 1024 * 1024 * 1024),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn holds(request: &Request, condition: &Condition) -> bool {
    match condition {
        Condition::IsTrue(subject) => {
            let mut value = Vec::new();
            variable::write(request, subject, &mut value);
            !value.is_empty() && value != b"0"
        }
        Condition::Equals {
            left,
            right,
            negated,
        } => {
            let mut value = Vec::new();
            variable::write(request, left, &mut value);
            (value == variable::evaluate(request, right)) != *negated
        }
        Condition::Matches {
            subject,
            pattern,
            negated,
        } => {
            let mut value = Vec::new();
            variable::write(request, subject, &mut value);
            pattern::matches(request, pattern, &value) != *negated
        }
        Condition::File {
            test,
            path,
            negated,
        } => {
            let path = variable::evaluate(request, path);
            is_file(request, *test, &path) != *negated
        }
    }
}

fn is_file(request: &Request, test: FileTest, path: &[u8]) -> bool {
    if request.settings().files.disable_symlinks.is_some()
        && files::look(request, path, OpenPurpose::Facts).is_err()
    {
        return false;
    }
    let Ok(stat) = site_path::stat(path) else {
        return false;
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    match test {
        FileTest::RegularFile => kind == FileType::RegularFile,
        FileTest::Directory => kind == FileType::Directory,
        FileTest::Exists => true,
        FileTest::Executable => stat.st_mode & 0o111 != 0,
    }
}

/// A `rewrite` replacement: captures of a decoded path are escaped again where
/// they land in arguments or in a redirect. Gives the position of the first `?` that is written.
fn put_replacement(
    request: &Request,
    replacement: &Template,
    redirects: bool,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let was_escaped = {
        let target = request.received.head().target();
        target.contains(&b'%') || target.contains(&b'+')
    };
    let mut mark = None;
    for part in &replacement.parts {
        match part {
            Part::Literal(text) => {
                let written = memchr::memchr(b'?', text).map(|at| out.len() + at);
                mark = mark.or(written);
                out.extend_from_slice(text);
            }
            Part::Variable(Variable::Capture(group)) => {
                let group = usize::from(*group);
                request.values.read(|values| {
                    let text = values.captures.group(group).unwrap_or_default();
                    if was_escaped && (mark.is_some() || redirects) {
                        out.extend_from_slice(&http_semantics::escape::escape_args(text));
                    } else {
                        out.extend_from_slice(text);
                    }
                });
            }
            Part::Variable(variable) => {
                variable::write(request, variable, out);
            }
        }
    }
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_decoded_up_to_their_query_string() {
        for (target, wanted) in [
            (
                "http%3A%2F%2Fexample.com%2F%3Ffrom",
                "http://example.com/?from",
            ),
            (
                "http%3A%2F%2Fexample.com%0D%0Asplit",
                "http://example.com%0D%0Asplit",
            ),
            ("/a%20b%25c%2fd?e%2ff", "/a%20b%25c/d?e%2ff"),
            ("/a%3fb%3dc", "/a?b%3dc"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%zz%41", "/%zzA"),
            ("/%C3%A4", "/%C3%A4"),
        ] {
            let decoded = decode_redirect(target.into());
            assert_eq!(String::from_utf8(decoded).unwrap(), wanted, "{target}");
        }
    }
}
