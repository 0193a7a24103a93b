//! Fields of an upstream's response that are written anew: links and cookies for the
//! upstream are changed to lead back here. `Location` and `Refresh` (`proxy_redirect`),
//! `Set-Cookie` (`proxy_cookie_domain`, `proxy_cookie_path`, `proxy_cookie_flags`).
//!
//! Done for each client, of stored responses too: replacements may hold
//! variables.

use bytes::Bytes;
use site::{CookieFlags, Matching, Proxy, Replacement};

use crate::exchange::reply::ReplyHead;
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::respond;
use crate::route::pattern;

/// Rewrites the fields of a response's head.
pub fn rewrite_fields(request: &Request, proxy: &Proxy, head: &mut ReplyHead) {
    if !proxy.rewrites_fields() || !concerns(head) {
        return;
    }
    head.unpack();
    let fields = std::mem::take(&mut head.fields);
    for (name, value) in fields.into_iter() {
        let is = |field: &str| name.eq_ignore_ascii_case(field.as_bytes());
        let rewritten = if is("location") {
            location(request, proxy, &value)
        } else if is("refresh") {
            refresh(request, proxy, &value)
        } else if is("set-cookie") {
            cookie(request, proxy, &value)
        } else {
            None
        };
        head.fields
            .append(name, rewritten.map_or(value, Bytes::from));
    }
}

fn concerns(head: &ReplyHead) -> bool {
    ["location", "refresh", "set-cookie"]
        .iter()
        .any(|name| head.has(name))
}

fn location(request: &Request, proxy: &Proxy, value: &[u8]) -> Option<Vec<u8>> {
    let rewritten = redirect(request, proxy, value)?;
    Some(respond::absolute(request, rewritten))
}

/// `5; url=http://...`
fn refresh(request: &Request, proxy: &Proxy, value: &[u8]) -> Option<Vec<u8>> {
    let at = value
        .windows(4)
        .position(|window| window.eq_ignore_ascii_case(b"url="))?
        + 4;
    let (before, url) = value.split_at(at);
    let rewritten = redirect(request, proxy, url)?;
    Some([before, &rewritten].concat())
}

fn redirect(request: &Request, proxy: &Proxy, url: &[u8]) -> Option<Vec<u8>> {
    proxy
        .redirects
        .iter()
        .find_map(|rule| replace_start(request, rule, url))
}

/// Replaces a value's beginning if the rule has a text, and the whole value if it has a
/// pattern.
fn replace_start(request: &Request, rule: &Replacement, value: &[u8]) -> Option<Vec<u8>> {
    match &rule.matching {
        Matching::Text(text) => {
            let text = variable::evaluate(request, text);
            let rest = value.strip_prefix(text.as_slice())?;
            let mut replaced = variable::evaluate(request, &rule.replacement);
            replaced.extend_from_slice(rest);
            Some(replaced)
        }
        Matching::Pattern(pattern) => pattern::matches(request, pattern, value)
            .then(|| variable::evaluate(request, &rule.replacement)),
    }
}

/// Replaces a domain. If the rule has a text, the whole domain must match it, but for
/// case and a dot before it.
fn replace_domain(request: &Request, rule: &Replacement, value: &[u8]) -> Option<Vec<u8>> {
    match &rule.matching {
        Matching::Text(text) => {
            let text = variable::evaluate(request, text);
            let text = text.strip_prefix(b".").unwrap_or(&text);
            let (dot, bare) = match value.strip_prefix(b".") {
                Some(bare) => (&b"."[..], bare),
                None => (&b""[..], value),
            };
            if !bare.eq_ignore_ascii_case(text) {
                return None;
            }
            let replacement = variable::evaluate(request, &rule.replacement);
            Some([dot, replacement.strip_prefix(b".").unwrap_or(&replacement)].concat())
        }
        Matching::Pattern(_) => replace_start(request, rule, value),
    }
}

/// A cookie in its parts: `name=value`, then attributes, spaces as they came.
fn cookie(request: &Request, proxy: &Proxy, value: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = value
        .split(|&byte| byte == b';')
        .map(<[u8]>::to_vec)
        .collect();
    let mut changed = false;
    for part in parts.iter_mut().skip(1) {
        let Some(equals) = part.iter().position(|&byte| byte == b'=') else {
            continue;
        };
        let (name, attribute) = (part[..equals].trim_ascii(), &part[equals + 1..]);
        let rewritten = if name.eq_ignore_ascii_case(b"domain") {
            proxy
                .cookie_domains
                .iter()
                .find_map(|rule| replace_domain(request, rule, attribute))
        } else if name.eq_ignore_ascii_case(b"path") {
            proxy
                .cookie_paths
                .iter()
                .find_map(|rule| replace_start(request, rule, attribute))
        } else {
            None
        };
        if let Some(rewritten) = rewritten {
            part.truncate(equals + 1);
            part.extend_from_slice(&rewritten);
            changed = true;
        }
    }
    changed |= flags(request, &proxy.cookie_flags, &mut parts);
    changed.then(|| parts.join(&b';'))
}

/// Adds and removes flags, following the first rule that names the cookie.
fn flags(request: &Request, rules: &[CookieFlags], parts: &mut Vec<Vec<u8>>) -> bool {
    let Some(first) = parts.first() else {
        return false;
    };
    let name = first
        .split(|&byte| byte == b'=')
        .next()
        .unwrap_or_default()
        .trim_ascii()
        .to_vec();
    let rule = rules.iter().find(|rule| match &rule.cookie {
        Matching::Text(text) => variable::evaluate(request, text).eq_ignore_ascii_case(&name),
        Matching::Pattern(pattern) => pattern::matches(request, pattern, &name),
    });
    let Some(rule) = rule else {
        return false;
    };
    for flag in &rule.flags {
        let flag = variable::evaluate(request, flag).to_ascii_lowercase();
        match flag.as_slice() {
            b"secure" => set_flag(parts, b"secure", b"Secure"),
            b"httponly" => set_flag(parts, b"httponly", b"HttpOnly"),
            b"samesite" => set_flag(parts, b"samesite", b"SameSite"),
            b"samesite=strict" => set_flag(parts, b"samesite", b"SameSite=Strict"),
            b"samesite=lax" => set_flag(parts, b"samesite", b"SameSite=Lax"),
            b"samesite=none" => set_flag(parts, b"samesite", b"SameSite=None"),
            b"nosecure" => take_flag(parts, b"secure"),
            b"nohttponly" => take_flag(parts, b"httponly"),
            b"nosamesite" => take_flag(parts, b"samesite"),
            _ => {}
        }
    }
    true
}

fn is_flag(part: &[u8], name: &[u8]) -> bool {
    part.split(|&byte| byte == b'=')
        .next()
        .is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(name))
}

fn take_flag(parts: &mut Vec<Vec<u8>>, name: &[u8]) {
    let mut index = 0;
    parts.retain(|part| {
        index += 1;
        index == 1 || !is_flag(part, name)
    });
}

fn set_flag(parts: &mut Vec<Vec<u8>>, name: &[u8], written: &[u8]) {
    take_flag(parts, name);
    parts.push([b" ", written].concat());
}
