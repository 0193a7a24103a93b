//! PHP: what it is told about a request, and the location that runs it.

use nginx_conf::text::quoted;

use crate::rewrite::environment;
use crate::settings::Settings;
use crate::site::Site;
use crate::write::{ANY_SCRIPT, Writer};

/// What PHP is told about each request: Debian's fastcgi.conf, with the folder's real path so that a link to the current
/// release may change, and without a field that scripts take for the environment variable.
pub const PARAMS: [(&str, &str); 20] = [
    ("SCRIPT_FILENAME", "$realpath_root$fastcgi_script_name"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("PATH_INFO", "$fastcgi_path_info"),
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$realpath_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("HTTPS", "$https if_not_empty"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "mayfly"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$host"),
];

/// Does the site say something to PHP?
pub fn says_something(site: &Site) -> bool {
    !site.php_params.is_empty() || !site.php_values.is_empty() || !site.php_admin_values.is_empty()
}

/// What the site's own lines tell PHP.
pub fn own_params(site: &Site) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in &site.php_params {
        lines.push(format!("fastcgi_param {name} {value};"));
    }
    for variable in &site.environment {
        let is_name = variable
            .name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_');
        if is_name && site.php.is_some() {
            lines.push(format!(
                "fastcgi_param {} ${} if_not_empty;",
                variable.name,
                environment(&variable.name)
            ));
        }
    }
    for (name, values) in [
        ("PHP_VALUE", &site.php_values),
        ("PHP_ADMIN_VALUE", &site.php_admin_values),
    ] {
        if !values.is_empty() {
            lines.push(format!(
                "fastcgi_param {name} {};",
                quoted(&values.join("\n"))
            ));
        }
    }
    lines
}

/// All that PHP is told, for a server.
pub fn params(site: &Site) -> Vec<String> {
    let own = |name: &str| site.php_params.iter().any(|it| it.0 == name);
    let params = PARAMS.iter().filter(|it| !own(it.0));
    let mut lines: Vec<String> = params
        .map(|(name, value)| match *name {
            // `try_files` makes another path of it, and forgets this.
            "PATH_INFO" => "fastcgi_param PATH_INFO $path_info;".to_owned(),
            _ => format!("fastcgi_param {name} {value};"),
        })
        .collect();
    lines.push("fastcgi_param REDIRECT_STATUS 200;".to_owned());
    if !own("HTTP_PROXY") {
        lines.push("fastcgi_param HTTP_PROXY \"\";".to_owned());
    }
    lines.extend(own_params(site));
    lines
}

/// The location of scripts in a server.
pub fn location(writer: &mut Writer<'_>) {
    let settings = writer.root.settings.clone();
    if settings.is_without_php {
        writer.deny(false, ANY_SCRIPT);
    } else if writer.site.php.is_some() || writer.site.shows_files() {
        location_in(writer, &settings);
    }
}

/// The location of scripts, also in that of a folder. Where it is not known how PHP is reached, scripts are refused there:
/// they would be shown as text.
pub fn location_in(writer: &mut Writer<'_>, settings: &Settings) {
    writer.conf.open(r"location ~ \.php(?:/|$)");
    body(writer, settings);
    writer.conf.close();
    writer.conf.gap();
}

/// What runs a script.
pub fn body(writer: &mut Writer<'_>, settings: &Settings) {
    let Some(address) = &writer.site.php else {
        writer
            .conf
            .note("Write fastcgi_pass here, in the place of this refusal: --php ADDRESS does it.");
        writer.conf.line("deny all;");
        writer.refuses_scripts = true;
        return;
    };
    let front = writer.front("/").map(|it| it.1);
    let otherwise = front.map_or_else(|| "=404".to_owned(), crate::write::last_argument);
    let address = address.clone();
    writer
        .conf
        .line(r"fastcgi_split_path_info ^(.+?\.php)(/.*)?$;");
    writer.conf.line("set $path_info $fastcgi_path_info;");
    writer
        .conf
        .line(&format!("try_files $fastcgi_script_name {otherwise};"));
    if settings.expires.is_some() {
        writer
            .conf
            .note("PHP says itself how long its pages are fresh.");
        writer.conf.line("expires off;");
    }
    writer.conf.line(&format!("fastcgi_pass {address};"));
}
