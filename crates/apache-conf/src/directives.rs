//! What each directive becomes.

use nginx_conf::text::quoted;

use crate::collect::{Collector, LineOutcome, Scope};
use crate::environment;
use crate::fields;
use crate::lifetimes::lifetime;
use crate::media_types::extensions;
use crate::redirects;
use crate::rewrite::{Condition, Rule, argument};
use crate::settings::Names;
use htaccess::item::Item;

/// Directives that need no counterpart, and why.
const LEFT_OUT: [(&[&str], &str); 10] = [
    (
        &[
            "serversignature",
            "servertokens",
            "serveradmin",
            "usecanonicalname",
            "hostnamelookups",
            "contentdigest",
        ],
        "it changes nothing that visitors rely on",
    ),
    (
        &[
            "loadmodule",
            "loadfile",
            "user",
            "group",
            "pidfile",
            "mutex",
            "serverroot",
            "typesconfig",
            "accessfilename",
            "startservers",
            "minspareservers",
            "maxspareservers",
            "maxrequestworkers",
            "maxconnectionsperchild",
            "threadsperchild",
            "serverlimit",
            "extendedstatus",
            "namevirtualhost",
            "enablemmap",
            "enablesendfile",
            "listen",
            "listenbacklog",
            "traceenable",
            "limitinternalrecursion",
            "errorlogformat",
            "mimemagicfile",
            "logformat",
        ],
        "it is about Apache itself",
    ),
    (&["dav"], "files are not written by visitors"),
    (
        &[
            "timeout",
            "keepalive",
            "keepalivetimeout",
            "maxkeepaliverequests",
        ],
        "the times that are set without it are sensible",
    ),
    (
        &[
            "indexignore",
            "indexoptions",
            "addicon",
            "addiconbytype",
            "addiconbyencoding",
            "defaulticon",
            "readmename",
            "headername",
            "addalt",
            "addaltbytype",
            "addaltbyencoding",
            "adddescription",
            "indexorderdefault",
            "indexstylesheet",
            "indexignorereset",
        ],
        "it is about the look of listings of folders",
    ),
    (
        &[
            "languagepriority",
            "forcelanguagepriority",
            "addlanguage",
            "defaultlanguage",
            "cachenegotiateddocs",
        ],
        "languages are not negotiated",
    ),
    (
        &["acceptpathinfo", "cgipassauth", "cgimapextension"],
        "FastCGI has it anyway",
    ),
    (
        &[
            "sslrandomseed",
            "sslsessioncache",
            "sslsessioncachetimeout",
            "sslmutex",
            "sslstaplingcache",
            "sslcompression",
            "sslpassphrasedialog",
            "sslinsecurerenegotiation",
            "sslstrictsnivhostcheck",
        ],
        "TLS does without it",
    ),
    (
        &[
            "deflatecompressionlevel",
            "deflatememlevel",
            "deflatewindowsize",
            "deflatebuffersize",
            "deflatefilternote",
            "brotlicompressionquality",
            "brotlicompressionwindow",
        ],
        "compression has a sensible level without it",
    ),
    (
        &["rewritelog", "rewriteloglevel", "rewritelock"],
        "it is about logs",
    ),
];

/// One directive.
pub fn directive(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    if collector.settings(scope).access.take(item) {
        return LineOutcome::Taken;
    }
    let name = item.name.as_str();
    if let Some((_, why)) = LEFT_OUT.iter().find(|it| it.0.contains(&name)) {
        return LineOutcome::LeftOut((*why).to_owned());
    }
    if name.starts_with("rewrite") {
        return rewrite(collector, item, scope);
    }
    if name.starts_with("redirect") {
        return redirects::redirect(collector, item, scope);
    }
    match name {
        "header" => fields::header(collector, item, scope),
        "requestheader" => fields::request_header(collector, item),
        "expiresactive" | "expiresdefault" | "expiresbytype" => expires(collector, item, scope),
        "addtype" | "forcetype" | "addcharset" | "addhandler" | "sethandler" | "removehandler"
        | "removetype" | "addencoding" | "removeencoding" => {
            crate::types::of_files(collector, item, scope)
        }
        "adddefaultcharset" => match item.lower(0).as_str() {
            "off" => LineOutcome::LeftOut("no charset is added anyway".to_owned()),
            "on" => collector.line(scope, "charset iso-8859-1;"),
            charset => collector.line(scope, &format!("charset {};", argument(charset))),
        },
        "addoutputfilterbytype" | "setoutputfilter" | "addoutputfilter" | "brotlifilterbytype" => {
            compression(collector, item, scope)
        }
        "directoryindex" => directory_index(collector, item, scope),
        "directoryslash" | "fallbackresource" => fallback(collector, item, scope),
        "errordocument" => error_document(collector, item, scope),
        "options" => options(collector, item, scope),
        "fileetag" => match item.lower(0).as_str() {
            "none" => collector.line(scope, "etag off;"),
            _ => LineOutcome::LeftOut("the validator is made of time and size".to_owned()),
        },
        "limitrequestbody" => match item.lower(0).parse::<u64>() {
            Ok(bytes) => collector.line(scope, &format!("client_max_body_size {bytes};")),
            Err(_) => LineOutcome::Not("it is no number of bytes".to_owned()),
        },
        "php_value" | "php_flag" | "php_admin_value" | "php_admin_flag" => {
            environment::php(collector, item, scope)
        }
        "setenv" => environment::set_env(collector, item),
        "setenvif" | "setenvifnocase" | "browsermatch" | "browsermatchnocase" => {
            environment::set_env_if(collector, item)
        }
        "unsetenv" | "passenv" => LineOutcome::LeftOut(
            "PHP is given no variables of the server's own environment".to_owned(),
        ),
        "sslrequiressl" => {
            let settings = collector.settings(scope);
            settings.access.refuse_methods("$https = \"\"".to_owned());
            LineOutcome::Taken
        }
        _ => crate::server::directive(collector, item, scope),
    }
}

fn rewrite(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    if scope.names.is_some() {
        return LineOutcome::Not("rules hold for whole folders only".to_owned());
    }
    let rewrite = &mut collector.rules(scope).rewrite;
    match item.name.as_str() {
        "rewriteengine" => {
            rewrite.is_on = item.lower(0) == "on";
            rewrite.is_said = true;
            LineOutcome::Taken
        }
        "rewritebase" => match item.args.first() {
            Some(base) if base.starts_with('/') && !base.contains('$') => {
                rewrite.base = Some(base.clone());
                LineOutcome::Taken
            }
            _ => LineOutcome::Not("it is no path".to_owned()),
        },
        "rewritecond" => match Condition::of(item) {
            Some(condition) => {
                rewrite.pending.push(condition);
                LineOutcome::Taken
            }
            None => LineOutcome::Not("a text and a pattern were expected".to_owned()),
        },
        "rewriterule" => {
            let conditions = std::mem::take(&mut rewrite.pending);
            match Rule::of(item, conditions) {
                Some(rule) => {
                    rewrite.rules.push(rule);
                    LineOutcome::Taken
                }
                None => LineOutcome::Not("a pattern and a target were expected".to_owned()),
            }
        }
        "rewriteoptions" => match item.lower(0).as_str() {
            "inherit" | "inheritbefore" | "inheritdown" | "inheritdownbefore" => LineOutcome::Not(
                "the rules of each folder stand for themselves; repeat those that are inherited"
                    .to_owned(),
            ),
            _ => LineOutcome::LeftOut("it is so here anyway".to_owned()),
        },
        _ => LineOutcome::Not("write a map".to_owned()),
    }
}

fn expires(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let (media_type, text) = match (item.name.as_str(), &item.args[..]) {
        ("expiresactive", _) if item.lower(0) == "on" => return LineOutcome::Taken,
        ("expiresactive", _) if scope.names.is_some() => {
            collector.settings(scope).expires = Some("off".to_owned());
            return LineOutcome::Taken;
        }
        ("expiresactive", _) => {
            return LineOutcome::LeftOut("no lifetimes are said without it".to_owned());
        }
        ("expiresdefault", text) => (None, text.join(" ")),
        (_, [media_type, text @ ..]) => (Some(media_type), text.join(" ")),
        _ => return LineOutcome::Not("a media type and a time were expected".to_owned()),
    };
    let Some(lifetime) = lifetime(&text) else {
        return LineOutcome::Not("a time such as \"access plus 1 month\" was expected".to_owned());
    };
    let Some(media_type) = media_type else {
        collector.settings(scope).expires = Some(lifetime);
        return LineOutcome::Taken;
    };
    let extensions: Vec<String> = extensions(media_type)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if scope.names.is_some() || extensions.is_empty() {
        return LineOutcome::Not(
            "write expires in a location for the extensions of these files".to_owned(),
        );
    }
    for extension in extensions {
        let names = Names::Extensions(vec![extension], true);
        collector.folder(scope).named(names, item).expires = Some(lifetime.clone());
    }
    LineOutcome::Taken
}

fn compression(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let lower = item.all_lower();
    let filters = lower.first().map_or("", String::as_str);
    let is_known = |it: &str| ["deflate", "brotli_compress", "inflate"].contains(&it);
    if !filters.split(';').all(is_known) {
        return LineOutcome::Not("of output filters there is compression only".to_owned());
    }
    let types: Vec<&str> = match item.name.as_str() {
        "addoutputfilterbytype" | "brotlifilterbytype" => {
            lower[1..].iter().map(String::as_str).collect()
        }
        "addoutputfilter" => Vec::new(),
        _ => vec![
            "application/javascript",
            "application/json",
            "application/xml",
            "image/svg+xml",
            "text/css",
            "text/javascript",
            "text/plain",
            "text/xml",
        ],
    };
    let scope = Scope {
        names: None,
        ..scope.clone()
    };
    let lines = &mut collector.settings(&scope).lines;
    if !lines.iter().any(|it| it == "gzip on;") {
        lines.push("gzip on;".to_owned());
        lines.push("gzip_vary on;".to_owned());
    }
    let at = lines.iter().position(|it| it.starts_with("gzip_types"));
    let mut all: Vec<String> = Vec::new();
    if let Some(at) = at {
        let words = lines.remove(at);
        all.extend(
            words
                .trim_end_matches(';')
                .split(' ')
                .skip(1)
                .map(str::to_owned),
        );
    }
    for media_type in types {
        let is_type = media_type.contains('/')
            && media_type
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"/+.-".contains(&it));
        // Pages are compressed without being named.
        if is_type && media_type != "text/html" && !all.iter().any(|it| it == media_type) {
            all.push(media_type.to_owned());
        }
    }
    if !all.is_empty() {
        lines.push(format!("gzip_types {};", all.join(" ")));
    }
    LineOutcome::Taken
}

fn directory_index(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let is_name =
        |it: &String| !it.is_empty() && !it.contains(['$', '"', ';', '{', '}', ' ', '\\']);
    match item.args.iter().all(is_name) && item.lower(0) != "disabled" && !item.args.is_empty() {
        true => collector.line(scope, &format!("index {};", item.args.join(" "))),
        false => LineOutcome::Not(
            "an index cannot be switched off; write a location for the folder".to_owned(),
        ),
    }
}

fn fallback(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    if item.name == "directoryslash" {
        return match item.lower(0).as_str() {
            "on" => LineOutcome::Taken,
            _ => LineOutcome::Not(
                "folders are always redirected to their address with a slash".to_owned(),
            ),
        };
    }
    match item.args.first() {
        Some(none) if none.eq_ignore_ascii_case("disabled") => {
            LineOutcome::LeftOut("there is none without it".to_owned())
        }
        Some(script)
            if script.starts_with('/')
                && !script.contains(['$', '"', ' ', ';'])
                && scope.names.is_none() =>
        {
            // The same as two conditions and a rule.
            let lines = format!(
                "RewriteCond %{{REQUEST_FILENAME}} !-f\nRewriteCond %{{REQUEST_FILENAME}} !-d\nRewriteRule . {script} [L]"
            );
            let parsed = htaccess::item::parse(&lines, &item.place.file);
            let rewrite = &mut collector.folder(scope).rewrite;
            rewrite.is_on = true;
            let mut conditions = Vec::new();
            for mut line in parsed.items {
                line.place = item.place.clone();
                line.text.clone_from(&item.text);
                match line.name.as_str() {
                    "rewritecond" => conditions.extend(Condition::of(&line)),
                    _ => rewrite
                        .rules
                        .extend(Rule::of(&line, std::mem::take(&mut conditions))),
                }
            }
            LineOutcome::Taken
        }
        _ => LineOutcome::Not("write try_files $uri $uri/ and the script".to_owned()),
    }
}

fn error_document(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let Some(status) = item
        .lower(0)
        .parse::<u16>()
        .ok()
        .filter(|it| (400..600).contains(it))
    else {
        return LineOutcome::Not("a status from 400 to 599 was expected".to_owned());
    };
    let text = item.args[1..].join(" ");
    if text.eq_ignore_ascii_case("default") {
        return LineOutcome::LeftOut("the server has a page of its own".to_owned());
    }
    if scope.names.is_some() {
        return LineOutcome::Not("write error_page in a location for these files".to_owned());
    }
    if text.contains('$') || text.is_empty() {
        return LineOutcome::Not("this text cannot be written".to_owned());
    }
    if text.starts_with('/') || text.starts_with("http://") || text.starts_with("https://") {
        return collector.line(scope, &format!("error_page {status} {};", argument(&text)));
    }
    let text = text.trim_start_matches('"');
    collector.site.locations.push(format!(
        "location @error_{status} {{\n    internal;\n    default_type text/html;\n    return {status} {};\n}}",
        quoted(text)
    ));
    collector.line(scope, &format!("error_page {status} @error_{status};"))
}

fn options(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let mut strange = Vec::new();
    let (mut taken, mut is_listed) = (false, None);
    for word in item.all_lower() {
        let (is_on, name) = match word.strip_prefix('-') {
            Some(name) => (false, name),
            None => (true, word.trim_start_matches('+')),
        };
        match name {
            "indexes" => is_listed = Some(is_on),
            "all" => is_listed = Some(true),
            "none" => is_listed = Some(false),
            "multiviews" | "followsymlinks" | "execcgi" | "includes" | "includesnoexec"
                if !is_on => {}
            "followsymlinks" | "symlinksifownermatch" => {}
            "multiviews" => {
                strange.push("MultiViews has no counterpart; write try_files $uri $uri.html")
            }
            "includes" | "includesnoexec" => {
                strange.push("write ssi on in a location for these files")
            }
            "execcgi" => strange.push("CGI has no counterpart; run the script by FastCGI"),
            _ => strange.push("there is no such option"),
        }
    }
    // Without a sign, what is not named is off.
    let is_whole = item.args.iter().any(|it| !it.starts_with(['+', '-']));
    if is_whole && is_listed.is_none() {
        is_listed = Some(false);
    }
    if let Some(is_on) = is_listed {
        collector.line(
            scope,
            if is_on {
                "autoindex on;"
            } else {
                "autoindex off;"
            },
        );
        taken = true;
    }
    match (strange.is_empty(), taken) {
        (false, _) => LineOutcome::Not(strange.join("; ")),
        (true, true) => LineOutcome::Taken,
        (true, false) => LineOutcome::LeftOut("it is so here anyway".to_owned()),
    }
}
