//! `AddType`, `AddCharset`, `AddHandler`, `SetHandler` and their relatives.

use crate::collect::{Collector, LineOutcome, Scope};
use crate::rewrite::argument;
use crate::settings::Names;
use htaccess::item::Item;

/// One line.
pub fn of_files(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let value = item.lower(0);
    let extensions = || -> Option<Vec<String>> {
        let all = item
            .args
            .get(1..)?
            .iter()
            .map(|it| it.trim_start_matches('.').to_owned());
        let all: Vec<String> = all.collect();
        let is_plain = |it: &String| {
            !it.is_empty()
                && it
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || b"_-.".contains(&it))
        };
        (!all.is_empty() && all.iter().all(is_plain)).then_some(all)
    };
    let is_php = value.contains("php") || value.starts_with("proxy:");
    match item.name.as_str() {
        "addtype" | "addhandler" | "sethandler" if is_php => {
            return php(collector, item, scope, &value, extensions());
        }
        "sethandler" if value == "none" => return no_handler(collector, item, scope),
        "removehandler" | "removetype" => {
            let has_php = item
                .all_lower()
                .iter()
                .any(|it| it.trim_start_matches('.').starts_with("ph"));
            return match has_php {
                true => no_handler(collector, item, scope),
                false => LineOutcome::LeftOut("no handler is set for it".to_owned()),
            };
        }
        "addhandler" | "sethandler" => {
            return match value.as_str() {
                "default-handler" => no_handler(collector, item, scope),
                "type-map" => LineOutcome::LeftOut("content is not negotiated".to_owned()),
                "server-status" => LineOutcome::Not("write a location with stub_status".to_owned()),
                "cgi-script" | "fcgid-script" => {
                    LineOutcome::Not("CGI has no counterpart; run the script by FastCGI".to_owned())
                }
                _ => LineOutcome::Not("this handler has no counterpart".to_owned()),
            };
        }
        "forcetype" => {
            collector.settings(scope).media_type = media_type(&value);
            return LineOutcome::Taken;
        }
        "addencoding" | "removeencoding" => {
            return LineOutcome::Not(
                "write a location with add_header Content-Encoding, or gzip_static, for these files".to_owned(),
            );
        }
        _ => {}
    }
    let Some(extensions) = extensions().filter(|_| scope.names.is_none()) else {
        return LineOutcome::Not(
            "a type and extensions were expected, outside of other files".to_owned(),
        );
    };
    let is_charset = item.name == "addcharset";
    if !is_charset && media_type(&value).is_none() {
        return LineOutcome::Not("it is no media type".to_owned());
    }
    for extension in extensions {
        let settings = collector
            .folder(scope)
            .named(Names::Extensions(vec![extension], true), item);
        match is_charset {
            true => settings.charset = Some(argument(&value)),
            false => settings.media_type = media_type(&value),
        }
    }
    LineOutcome::Taken
}

fn media_type(text: &str) -> Option<String> {
    let is_type = text.contains('/')
        && text
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"/+.-".contains(&it));
    is_type.then(|| text.to_owned())
}

/// Scripts are not run. Those of some names are refused: they would be shown as text.
pub fn no_handler(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let names_scripts = match scope.names.as_ref().map(|it| &it.0) {
        None => {
            collector.settings(scope).is_without_php = true;
            return LineOutcome::Taken;
        }
        Some(Names::All) => true,
        Some(Names::Extensions(all, _)) => all.iter().any(|it| it.starts_with("ph")),
        Some(Names::Literal(text) | Names::Pattern(text)) => {
            let text = text.to_ascii_lowercase();
            text.contains("ph") || text.contains(['*', '['])
        }
    };
    if names_scripts {
        let denied = htaccess::item::parse("Require all denied", &item.place.file);
        for line in denied.items {
            collector.settings(scope).access.take(&line);
        }
    }
    LineOutcome::Taken
}

fn php(
    collector: &mut Collector,
    item: &Item,
    scope: &Scope,
    value: &str,
    extensions: Option<Vec<String>>,
) -> LineOutcome {
    if value.starts_with("proxy:")
        && let Some(proxy) = item.args[0].get(6..)
    {
        let Some(address) = fastcgi_address(proxy) else {
            return LineOutcome::Not("write a location with proxy_pass for these files".to_owned());
        };
        collector.site.php = Some(address);
    }
    let is_known = |it: &String| {
        let it = it.to_ascii_lowercase();
        it == "php"
            || it
                .strip_prefix("php")
                .is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
    };
    let others = extensions.unwrap_or_default();
    let of_names = match &scope.names {
        Some((Names::Extensions(all, _), _)) => all.clone(),
        _ => Vec::new(),
    };
    match others
        .iter()
        .chain(&of_names)
        .all(|it| is_known(it) || ["phar", "phtml"].contains(&it.as_str()))
    {
        true => LineOutcome::LeftOut("the location for PHP runs scripts".to_owned()),
        false => LineOutcome::Not(format!(
            "{}: add these files to the location for PHP",
            item.args.join(" ")
        )),
    }
}

/// The address of PHP-FPM: `unix:/run/php/php.sock|fcgi://localhost` or `fcgi://127.0.0.1:9000`.
pub fn fastcgi_address(text: &str) -> Option<String> {
    let address = match text.split_once('|') {
        Some((socket, to)) if socket.starts_with("unix:/") && to.starts_with("fcgi:") => {
            socket.to_owned()
        }
        Some(_) => return None,
        None => {
            let rest = text.strip_prefix("fcgi://")?;
            let host = rest.split('/').next()?;
            if host.contains(':') {
                host.to_owned()
            } else {
                format!("{host}:8000")
            }
        }
    };
    let is_plain = address
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"/._-:[]".contains(&it));
    is_plain.then_some(address)
}
