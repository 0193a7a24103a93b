//! Checks of directives' values for the rules: variables, captures, addresses.

use std::net::IpAddr;

use nginx_conf::Directive;

/// Names of folders that visitors write into.
const UPLOADS: [&str; 9] = [
    "upload",
    "uploads",
    "userfiles",
    "user-files",
    "attachments",
    "avatars",
    "files",
    "media",
    "usercontent",
];

/// The names of the variables in a text, `$name` and `${name}`.
pub(super) fn variables(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split('$').skip(1);
    after.filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = rest.get(..end.unwrap_or(rest.len()))?;
        (!name.is_empty()).then_some(name)
    })
}

/// Does the text have one of these variables?
pub(super) fn names_any(text: &str, wanted: &[&str]) -> bool {
    variables(text).any(|it| wanted.contains(&it))
}

/// Does the visitor choose the value of this variable?
pub(super) fn is_from_request(name: &str) -> bool {
    let families = ["arg_", "http_", "cookie_"];
    let names = [
        "args",
        "query_string",
        "request_uri",
        "uri",
        "document_uri",
        "request_body",
    ];
    families.iter().any(|family| name.starts_with(family)) || names.contains(&name)
}

/// Does the path of a script follow the path of the request?
pub(super) fn names_script(value: &str) -> bool {
    let followed = [
        "fastcgi_script_name",
        "uri",
        "document_uri",
        "request_filename",
    ];
    variables(value)
        .any(|name| followed.contains(&name) || name.starts_with(|c: char| c.is_ascii_digit()))
}

/// Does the pattern have a class of excluded bytes that lets a line break in?
pub(super) fn has_cr_or_lf(pattern: &str) -> bool {
    pattern.split("[^").skip(1).any(|rest| {
        let class = rest.split(']').next().unwrap_or_default();
        !class.contains(r"\s") && !class.contains(r"\n") && !class.contains(r"\r")
    })
}

/// Does the capture of this name or number in the pattern match more than a few words?
pub(super) fn capture_is_free(pattern: &str, name: &str) -> bool {
    let start = match name.parse::<usize>() {
        Ok(number) => {
            let mut groups = pattern.match_indices('(').filter(|(at, _)| {
                let is_escaped = pattern
                    .get(..*at)
                    .is_some_and(|before| before.ends_with('\\'));
                let rest = pattern.get(at + 1..).unwrap_or_default();
                let is_capture =
                    !rest.starts_with('?') || rest.starts_with("?<") || rest.starts_with("?P<");
                !is_escaped && is_capture
            });
            number
                .checked_sub(1)
                .and_then(|skipped| groups.nth(skipped))
                .map(|(at, _)| at)
        }
        Err(_) => pattern.find(&format!("<{name}>")),
    };
    let Some(group) = start.and_then(|at| pattern.get(at..)) else {
        return false;
    };
    let group = group.split(')').next().unwrap_or_default();
    if group.starts_with("(/") {
        // The part before it is the whole host.
        return false;
    }
    let group = group.replace(r"\.", "");
    group.contains(['.', '+', '*', '[']) || group.contains(r"\w")
}

/// Is it this machine or a network that is not the internet? Names count as local.
pub(super) fn address_is_local(text: &str) -> bool {
    let host = match text.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => text.split(':').next().unwrap_or_default(),
    };
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
        Err(_) => host == "localhost",
    }
}

/// Does the line end the location's work, so that settings beside it do not matter?
pub(super) fn leaves_location(line: &Directive) -> bool {
    match (&*line.name.text, line.args.last()) {
        ("return", _) => true,
        ("rewrite", Some(flag)) => ["last", "redirect", "permanent"].contains(&&*flag.text),
        _ => false,
    }
}

/// Returns the host of a URL with variables: the part before its path.
pub(super) fn host_part(url: &str) -> &str {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let paths = [
        "/",
        "?",
        "$uri",
        "$request_uri",
        "$document_uri",
        "${uri}",
        "$is_args",
    ];
    let end = paths.iter().filter_map(|path| rest.find(path));
    // Right after the scheme, a path is taken for a host.
    let end = end.min().filter(|end| *end > 0 || scheme.is_empty());
    rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest)
}

/// Puts a text in double quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A line as it may be written again.
pub(super) fn written(line: &Directive) -> String {
    let mut text = line.name.text.clone();
    for word in &line.args {
        text.push(' ');
        if word.quoted || word.is_empty() {
            text.push_str(&quoted(word));
        } else {
            text.push_str(word);
        }
    }
    text.push(';');
    text
}

/// Does a path go through a folder that visitors write into?
pub(super) fn is_upload(path: &str) -> bool {
    path.split('/').any(|part| UPLOADS.contains(&part))
}

/// Kinds of upstreams that have a cache.
pub(super) const PREFIXES: [&str; 2] = ["fastcgi", "proxy"];
