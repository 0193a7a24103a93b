//! Variables of Apache's environment, and settings of PHP.

use nginx_conf::text::quoted;

use crate::collect::{Collector, LineOutcome, Scope};
use crate::rewrite::field_variable;
use crate::types::no_handler;
use htaccess::item::Item;

/// `php_value` and its relatives.
pub fn php(collector: &mut Collector, item: &Item, scope: &Scope) -> LineOutcome {
    let [name, value, ..] = &item.args[..] else {
        return LineOutcome::Not("a name and a value were expected".to_owned());
    };
    let name = name.to_ascii_lowercase();
    if name == "engine" {
        let is_off = ["off", "0", "false"].contains(&value.to_ascii_lowercase().as_str());
        if is_off {
            return no_handler(collector, item, scope);
        }
        collector.settings(scope).is_without_php = false;
        return LineOutcome::Taken;
    }
    let is_name = name
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"_.".contains(&it));
    if value.contains(['$', '\n', '"', '\\']) || !is_name {
        return LineOutcome::Not("write it into the pool of PHP-FPM".to_owned());
    }
    if scope.names.is_some() || scope.folder.len() > 1 {
        return LineOutcome::Not(
            "write fastcgi_param PHP_VALUE in a location for these files".to_owned(),
        );
    }
    if name == "post_max_size" {
        let size = value.to_ascii_lowercase();
        if size
            .trim_end_matches(['k', 'm', 'g'])
            .parse::<u64>()
            .is_ok()
        {
            collector.line(scope, &format!("client_max_body_size {size};"));
        }
    }
    let setting = format!("{name}={value}");
    match item.name.contains("admin") {
        true => collector.site.php_admin_values.push(setting),
        false => collector.site.php_values.push(setting),
    }
    LineOutcome::Taken
}

/// `SetEnv`
pub fn set_env(collector: &mut Collector, item: &Item) -> LineOutcome {
    let name = item.args.first().map_or("", String::as_str);
    let value = item.args.get(1).map_or("", String::as_str);
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_');
    if !is_name || value.contains('$') {
        return LineOutcome::Not("write fastcgi_param beside fastcgi_pass".to_owned());
    }
    collector
        .site
        .php_params
        .push((name.to_owned(), quoted(value)));
    LineOutcome::Taken
}

/// Variables that Apache itself reads, for browsers that are gone.
const FOR_OLD_BROWSERS: [&str; 9] = [
    "no-gzip",
    "no-brotli",
    "gzip-only-text/html",
    "force-no-vary",
    "nokeepalive",
    "downgrade-1.0",
    "force-response-1.0",
    "redirect-carefully",
    "ssl-unclean-shutdown",
];

/// `SetEnvIf`, `BrowserMatch`
pub fn set_env_if(collector: &mut Collector, item: &Item) -> LineOutcome {
    let is_browser = item.name.starts_with("browser");
    let skipped = if is_browser { 1 } else { 2 };
    if item.args.len() <= skipped {
        return LineOutcome::Not("a field, a pattern and a variable were expected".to_owned());
    }
    let (head, assignments) = item.args.split_at(skipped);
    let field = if is_browser {
        "user-agent"
    } else {
        head[0].as_str()
    };
    let pattern = head[skipped - 1].as_str();
    let is_old = |it: &String| FOR_OLD_BROWSERS.contains(&it.trim_start_matches('!'));
    if assignments.iter().all(is_old) {
        return LineOutcome::LeftOut("the browsers for which it was are gone".to_owned());
    }
    let is_authorization = field.eq_ignore_ascii_case("authorization");
    if is_authorization
        && assignments
            .iter()
            .all(|it| it.to_ascii_uppercase().starts_with("HTTP_AUTHORIZATION="))
    {
        return LineOutcome::LeftOut(
            "FastCGI passes on the fields of requests by itself".to_owned(),
        );
    }
    let variable = match field.to_ascii_lowercase().as_str() {
        "remote_addr" => Some("remote_addr".to_owned()),
        "request_uri" => Some("uri".to_owned()),
        "request_method" => Some("request_method".to_owned()),
        "request_protocol" => Some("server_protocol".to_owned()),
        "server_addr" => Some("server_addr".to_owned()),
        "remote_host" | "remote_user" => None,
        field => field_variable(field),
    };
    let Some(variable) = variable else {
        return LineOutcome::Not("there is no variable for this".to_owned());
    };
    if !crate::patterns::compiles(pattern) {
        return LineOutcome::Not(format!("{pattern} is no regular expression"));
    }
    let compares = if item.name.ends_with("nocase") {
        "~*"
    } else {
        "~"
    };
    let mut lines = Vec::new();
    for assignment in assignments {
        let (is_unset, assignment) = match assignment.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, assignment.as_str()),
        };
        let (name, value) = assignment.split_once('=').unwrap_or((assignment, "1"));
        let value = if is_unset { "" } else { value };
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it));
        if value.contains('$') || !is_name {
            return LineOutcome::Not(
                "what was captured cannot be put into a variable; write a map".to_owned(),
            );
        }
        let variable_of = crate::rewrite::environment(name);
        lines.push((
            name.to_owned(),
            format!(
                "if (${variable} {compares} {}) {{ set ${variable_of} {}; }}",
                quoted(pattern),
                quoted(value)
            ),
        ));
    }
    for (name, line) in lines {
        collector.site.set_environment(&name, Some(line));
    }
    LineOutcome::Taken
}
