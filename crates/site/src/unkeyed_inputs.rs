//! Finds inputs that reach the application and are not in the cache key, for `mayfly check`.
//!
//! Without `cache_shared`, fields are sent to the application as nginx sends them. If such a
//! field changes a page and is not in the key, one visitor decides about the page that others
//! see.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::*;

/// Locations with the same parts of a request missing from their cache keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnkeyedInputs {
    /// Names of locations, with the server's name where it has one.
    pub locations: Vec<String>,
    /// Inputs that are sent and not in the key, in words.
    pub inputs: Vec<String>,
}

impl fmt::Display for UnkeyedInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "in {}: the application receives {}, which are not in the cache key; what one \
             visitor sends there may change the page that others get (with cache_shared on; \
             none of it is sent)",
            self.locations.join(", "),
            self.inputs.join(", ")
        )
    }
}

/// A part of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Input {
    Path,
    Arguments,
    Argument(String),
    Host,
    Method,
    Scheme,
    Cookies,
    Cookie(String),
    Body,
    /// A field, lower case with `-`.
    Field(String),
    /// Every field that no directive sets.
    OtherFields,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Path => f.write_str("the path"),
            Input::Arguments => f.write_str("the arguments"),
            Input::Argument(name) => write!(f, "the argument {name}"),
            Input::Host => f.write_str("the host"),
            Input::Method => f.write_str("the method"),
            Input::Scheme => f.write_str("the scheme"),
            Input::Cookies => f.write_str("cookies"),
            Input::Cookie(name) => write!(f, "the cookie {name}"),
            Input::Body => f.write_str("the body"),
            Input::Field(name) => write!(f, "the field {name}"),
            Input::OtherFields => f.write_str(
                "all other fields (User-Agent, Accept-Language, X-Forwarded-Host and any that somebody invents)",
            ),
        }
    }
}

/// The missing parts for each location with a cache; locations with the same ones together.
pub fn unkeyed_inputs(site: &Site) -> Vec<UnkeyedInputs> {
    let mut found: Vec<UnkeyedInputs> = Vec::new();
    for server in &site.http.servers {
        for location in &server.locations {
            let Content::Pass(pass) = &location.settings.content else {
                continue;
            };
            let Some(rules) = pass.cache.as_ref().filter(|rules| rules.shared.is_none()) else {
                continue;
            };
            let inputs = gaps(&site.http, pass, rules);
            if inputs.is_empty() {
                continue;
            }
            let name = match (&*location.name, &*server.name) {
                ("", "") => "a server's own level".to_owned(),
                ("", server) => format!("server {server}"),
                (location, "") => format!("location {location}"),
                (location, server) => format!("location {location} of {server}"),
            };
            match found.iter_mut().find(|known| known.inputs == inputs) {
                Some(known) if known.locations.contains(&name) => {}
                Some(known) => known.locations.push(name),
                None => found.push(UnkeyedInputs {
                    locations: vec![name],
                    inputs,
                }),
            }
        }
    }
    found
}

fn gaps(http: &Http, pass: &Pass, rules: &CacheRules) -> Vec<String> {
    let mut keyed = BTreeSet::new();
    inputs_of(http, &rules.key, MAX_DEPTH, &mut keyed);
    // A request with a cookie bypasses the cache, and its response is not stored.
    let by_cookie = |conditions: &[Template]| {
        conditions.iter().any(|condition| {
            matches!(&condition.parts[..],
                [Part::Variable(Variable::RequestField(name))] if **name == *b"cookie")
        })
    };
    if by_cookie(&rules.bypass) && by_cookie(&rules.no_cache) {
        keyed.insert(Input::Cookies);
    }
    let mut sent = BTreeSet::new();
    sent_inputs(http, pass, &mut sent);
    let is_covered = |input: &Input| {
        keyed.contains(input)
            || match input {
                Input::Argument(_) => keyed.contains(&Input::Arguments),
                Input::Cookie(_) => keyed.contains(&Input::Cookies),
                // Only these methods are stored, and HEAD is fetched by GET.
                Input::Method => rules.convert_head && !rules.methods.post,
                _ => false,
            }
    };
    sent.iter()
        .filter(|input| !is_covered(input))
        .map(ToString::to_string)
        .collect()
}

/// How many maps of maps are followed.
const MAX_DEPTH: usize = 8;

/// Collects the parts of a request that the application is sent.
fn sent_inputs(http: &Http, pass: &Pass, sent: &mut BTreeSet<Input>) {
    let mut set = BTreeSet::new();
    match &pass.protocol {
        Protocol::FastCgi(fastcgi) => {
            for param in &fastcgi.params {
                inputs_of(http, &param.value, MAX_DEPTH, sent);
                let name = String::from_utf8_lossy(&param.name).to_ascii_lowercase();
                if let Some(field) = name.strip_prefix("http_") {
                    set.insert(field.replace('_', "-"));
                }
            }
            if pass.exchange.pass_request_headers && !set.contains("host") {
                sent.insert(Input::Host);
            }
        }
        Protocol::Http(proxy) => {
            for field in &proxy.fields {
                inputs_of(http, &field.value, MAX_DEPTH, sent);
                set.insert(String::from_utf8_lossy(&field.name).to_ascii_lowercase());
            }
            sent.insert(Input::Path);
            sent.insert(Input::Arguments);
        }
        // Only its key is sent.
        Protocol::Memcached(_) => return,
    }
    if pass.exchange.pass_request_headers {
        if !set.contains("cookie") {
            sent.insert(Input::Cookies);
        }
        sent.insert(Input::OtherFields);
    }
    // The server itself sets these for each connection.
    for own in ["connection", "upgrade", "x-forwarded-for", "x-real-ip"] {
        sent.remove(&Input::Field(own.to_owned()));
    }
}

/// The parts of a request from which the value of `text` is made.
fn inputs_of(http: &Http, text: &Template, depth: usize, found: &mut BTreeSet<Input>) {
    for part in &text.parts {
        let Part::Variable(variable) = part else {
            continue;
        };
        let variable = match variable {
            Variable::SetOver(_, made) => made,
            other => other,
        };
        match variable {
            Variable::Builtin(builtin) => of_builtin(*builtin, found),
            Variable::Argument(name) => {
                found.insert(Input::Argument(String::from_utf8_lossy(name).into_owned()));
            }
            Variable::Cookie(name) => {
                found.insert(Input::Cookie(String::from_utf8_lossy(name).into_owned()));
            }
            Variable::RequestField(name) => {
                let name = String::from_utf8_lossy(name).replace('_', "-");
                found.insert(match &*name {
                    "cookie" => Input::Cookies,
                    "host" => Input::Host,
                    _ => Input::Field(name),
                });
            }
            Variable::Map(id) => {
                if let (Some(map), Some(depth)) = (http.maps.get(id.0), depth.checked_sub(1)) {
                    inputs_of(http, &map.source, depth, found);
                }
            }
            _ => {}
        }
    }
}

fn of_builtin(builtin: Builtin, found: &mut BTreeSet<Input>) {
    use Builtin as B;
    match builtin {
        B::RequestUri => {
            found.insert(Input::Path);
            found.insert(Input::Arguments);
        }
        B::Request => {
            found.insert(Input::Method);
            found.insert(Input::Path);
            found.insert(Input::Arguments);
        }
        B::Uri
        | B::DocumentUri
        | B::FastcgiScriptName
        | B::FastcgiPathInfo
        | B::RequestFilename => {
            found.insert(Input::Path);
        }
        B::Args | B::QueryString => {
            found.insert(Input::Arguments);
        }
        B::Host => {
            found.insert(Input::Host);
        }
        B::RequestMethod => {
            found.insert(Input::Method);
        }
        B::Scheme | B::Https => {
            found.insert(Input::Scheme);
        }
        B::RequestBody => {
            found.insert(Input::Body);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn found(lines: &str) -> Vec<String> {
        let text = format!(
            "events {{}} http {{ fastcgi_cache_path /c keys_zone=z:1m; proxy_cache_path /d keys_zone=y:1m;\n\
             map $http_accept_language $language {{ default en; ~^de de; }}\n\
             server {{ listen 80;\n{lines}\n}} }}"
        );
        let loader: nginx_conf::MemoryLoader =
            [("/m.conf", text.into_bytes())].into_iter().collect();
        let read = crate::read(Path::new("/m.conf"), Path::new("/"), None, None, &loader);
        let site = read
            .site
            .unwrap_or_else(|| panic!("{:?}", read.diagnostics));
        unkeyed_inputs(&site)
            .iter()
            .map(|it| format!("{}: {}", it.locations.join(" "), it.inputs.join("; ")))
            .collect()
    }

    const OTHERS: &str = "all other fields (User-Agent, Accept-Language, X-Forwarded-Host and any that somebody invents)";

    #[test]
    fn what_is_sent_and_not_in_the_key_is_named() {
        let php = "fastcgi_pass 127.0.0.1:9000; fastcgi_cache z;";
        for (lines, wanted) in [
            (
                format!("location /a {{ {php} }} location /b {{ {php} }}"),
                vec![format!("location /a location /b: cookies; {OTHERS}")],
            ),
            (
                format!("location /a {{ {php} fastcgi_cache_key $uri; fastcgi_param QUERY_STRING $args; fastcgi_param A $http_x_a; }}"),
                vec![format!("location /a: the arguments; the host; cookies; the field x-a; {OTHERS}")],
            ),
            (
                format!("location /a {{ {php} fastcgi_pass_request_headers off; fastcgi_cache_key $request_uri; fastcgi_param L $language; fastcgi_param Q $request_uri; }}"),
                vec!["location /a: the field accept-language".to_owned()],
            ),
            (
                format!("location /a {{ {php} fastcgi_pass_request_headers off; fastcgi_cache_key $request_uri$language; fastcgi_param L $language; fastcgi_param Q $arg_q; }}"),
                vec![],
            ),
            (
                format!("location /a {{ {php} fastcgi_cache_bypass $http_cookie; fastcgi_no_cache $http_cookie; }}"),
                vec![format!("location /a: {OTHERS}")],
            ),
            (format!("location /a {{ {php} cache_shared on; }}"), vec![]),
            ("location /a { fastcgi_pass 127.0.0.1:9000; }".to_owned(), vec![]),
            (
                "location /a { proxy_pass http://127.0.0.1:81; proxy_cache y; proxy_set_header Cookie ''; }".to_owned(),
                vec![format!("location /a: {OTHERS}")],
            ),
        ] {
            assert_eq!(found(&lines), wanted, "{lines}");
        }
    }
}
