//! `Header` and `RequestHeader`.

use nginx_conf::text::quoted;

use crate::collect::{Collector, LineOutcome, Scope};
use crate::rewrite::environment;
use htaccess::item::Item;

/// `Header [always] set NAME VALUE`
pub fn header(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let mut args = &item.args[..];
    let mut is_always = false;
    if let Some(condition @ ("always" | "onsuccess")) =
        args.first().map(|it| it.to_ascii_lowercase()).as_deref()
    {
        is_always = condition == "always";
        args = &args[1..];
    }
    let [action, name, rest @ ..] = args else {
        return LineOutcome::Not("an action and the name of a field were expected".to_owned());
    };
    let name = name.trim_end_matches(':');
    if name.is_empty()
        || !name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    {
        return LineOutcome::Not("it is no name of a field".to_owned());
    }
    let condition = rest.get(1).map(String::as_str);
    let value = match (rest.first(), condition) {
        (None, _) => None,
        (Some(value), condition) => match value_of(collector, value, condition) {
            Ok(value) => Some(value),
            Err(why) => return LineOutcome::Not(why),
        },
    };
    let settings = collector.settings(scope);
    match (action.to_ascii_lowercase().as_str(), value) {
        ("set", Some(value)) => settings.set_field(name, Some(value), is_always),
        ("setifempty", Some(_)) => {
            return LineOutcome::Not(
                "write a map of the field that the application sends".to_owned(),
            );
        }
        ("append" | "add" | "merge", Some(value)) => settings.add_field(name, value, is_always),
        ("unset", _) => {
            settings.set_field(name, None, is_always);
            match name.to_ascii_lowercase().as_str() {
                "etag" => drop(collector.line(scope, "etag off;")),
                "last-modified" => {
                    collector
                        .settings(scope)
                        .set_field(name, Some(String::new()), is_always)
                }
                _ => {}
            }
        }
        ("edit" | "edit*" | "note" | "echo", _) => {
            return LineOutcome::Not(
                "fields cannot be changed; have the application send what is meant".to_owned(),
            );
        }
        _ => return LineOutcome::Not("an action and a value were expected".to_owned()),
    }
    LineOutcome::Taken
}

/// The value of a field as an argument without quotes, with variables.
fn value_of(collector: &Collector, value: &str, condition: Option<&str>) -> Result<String, String> {
    if value.contains('$') || value.chars().any(|it| it.is_control() && it != '\t') {
        return Err("this value cannot be written".to_owned());
    }
    let known = |name: &str| match collector.site.is_environment(name) {
        true => Ok(format!("${{{}}}", environment(name))),
        false => Err(format!("no line that was translated sets {name}")),
    };
    let mut text = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        if let Some(behind) = behind.strip_prefix('%') {
            text.push('%');
            rest = behind;
        } else if let Some((name, behind)) =
            behind.strip_prefix('{').and_then(|it| it.split_once("}e"))
        {
            text.push_str(&known(name)?);
            rest = behind;
        } else if let Some((name, behind)) =
            behind.strip_prefix('{').and_then(|it| it.split_once("}s"))
        {
            let variable = match name.to_ascii_uppercase().as_str() {
                "SSL_PROTOCOL" => "ssl_protocol",
                "SSL_CIPHER" => "ssl_cipher",
                "SSL_CLIENT_S_DN" => "ssl_client_s_dn",
                "SSL_CLIENT_VERIFY" => "ssl_client_verify",
                _ => return Err("there is no variable for this".to_owned()),
            };
            text.push_str(&format!("${{{variable}}}"));
            rest = behind;
        } else if let Some(behind) = behind.strip_prefix('t') {
            text.push_str("t=${msec}");
            rest = behind;
        } else {
            return Err("there is no variable for what follows %".to_owned());
        }
    }
    text.push_str(rest);
    match condition {
        None => Ok(text),
        Some(condition) => match condition.strip_prefix("env=") {
            // A field without a value is not sent.
            Some(name)
                if !name.starts_with('!') && text == format!("${{{}}}", environment(name)) =>
            {
                known(name)
            }
            _ => Err(
                "fields cannot depend on conditions; set a variable that is empty otherwise"
                    .to_owned(),
            ),
        },
    }
}

/// `RequestHeader set NAME VALUE`, for PHP and servers behind this one.
pub fn request_header(collector: &mut Collector, item: &Item) -> LineOutcome {
    let action = item.lower(0);
    let Some(name) = item
        .args
        .get(1)
        .map(|it| it.trim_end_matches(':').to_owned())
    else {
        return LineOutcome::Not("the name of a field was expected".to_owned());
    };
    if name.is_empty()
        || !name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'-')
    {
        return LineOutcome::Not("it is no name of a field".to_owned());
    }
    let value = match (action.as_str(), &item.args[2..]) {
        ("unset", []) => "",
        ("set", [value]) if !value.contains(['$', '%']) => value,
        _ => {
            return LineOutcome::Not(
                "write proxy_set_header or fastcgi_param in the location".to_owned(),
            );
        }
    };
    let param = format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_"));
    collector.site.php_params.push((param, quoted(value)));
    collector.site.proxy_fields.push((name, quoted(value)));
    LineOutcome::Taken
}
