//! PHP: its address, its FastCGI params, and the location that runs it.

use htaccess::item::Item;
use nginx_conf::text::{Conf, quoted};

use crate::outcome::LineOutcome;
use crate::virtual_host::Server;

/// Scripts, where they are not run.
pub const ANY_SCRIPT: &str = r"\.(?i:ph(?:p\d?|ar|tml|t))(?:/|$)";

/// The FastCGI params of each request: Debian's fastcgi.conf, with the folder's real path so that a link to the current
/// release may change, and without a field that scripts take for the environment variable. The software is named as one
/// that obeys `.htaccess`: applications ask for the word before they write such a file or addresses without
/// `index.php`. Drupal's installer wants a version behind it.
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
    ("SERVER_SOFTWARE", "'mayfly (Apache/2.4 compatible)'"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$host"),
];

/// `php_value` and its relatives, of a server.
pub fn setting(server: &mut Server, item: &Item) -> LineOutcome {
    let [name, value, ..] = &item.args[..] else {
        return LineOutcome::Not("a name and a value were expected".to_owned());
    };
    let name = name.to_ascii_lowercase();
    let is_of_name = |it: u8| it.is_ascii_alphanumeric() || b"_.".contains(&it);
    if value.contains(['$', '\n', '\r', '"', '\\']) || !name.bytes().all(is_of_name) {
        return LineOutcome::Not("write it into the pool of PHP-FPM".to_owned());
    }
    if name == "post_max_size" {
        let size = value.to_ascii_lowercase();
        let unit = match size.trim_start_matches(|it: char| it.is_ascii_digit()) {
            "" => Some(1),
            "k" => Some(1 << 10),
            "m" => Some(1 << 20),
            "g" => Some(1 << 30),
            _ => None,
        };
        let number: Option<u64> = size.trim_end_matches(['k', 'm', 'g']).parse().ok();
        let bytes = unit.and_then(|unit: u64| number?.checked_mul(unit));
        server.body_bytes = bytes.or(server.body_bytes);
    }
    let setting = format!("{name}={value}");
    match item.name.contains("admin") {
        true => server.php_settings.admin_values.push(setting),
        false => server.php_settings.values.push(setting),
    }
    LineOutcome::Taken
}

/// Returns the address of PHP in a `SetHandler` such as `proxy:unix:/run/php.sock|fcgi://localhost`.
pub fn handler(text: &str) -> Option<String> {
    let (scheme, address) = text.split_once(':')?;
    let is_proxy = scheme.eq_ignore_ascii_case("proxy");
    is_proxy.then(|| fastcgi_address(address)).flatten()
}

/// Returns all FastCGI params of a server.
pub fn params(server: &Server) -> Vec<String> {
    let mut lines: Vec<String> = PARAMS
        .iter()
        .map(|(name, value)| match *name {
            // `try_files` makes another path of it, and forgets this.
            "PATH_INFO" => "fastcgi_param PATH_INFO $path_info;".to_owned(),
            _ => format!("fastcgi_param {name} {value};"),
        })
        .collect();
    lines.push("fastcgi_param REDIRECT_STATUS 200;".to_owned());
    let proxy = ("Proxy".to_owned(), String::new());
    let fields = server.request_fields.iter();
    let fields = fields.filter(|it| !it.0.eq_ignore_ascii_case("proxy"));
    for (name, value) in fields.chain([&proxy]) {
        let name = name.to_ascii_uppercase().replace('-', "_");
        lines.push(format!("fastcgi_param HTTP_{name} {};", quoted(value)));
    }
    for (name, values) in [
        ("PHP_VALUE", &server.php_settings.values),
        ("PHP_ADMIN_VALUE", &server.php_settings.admin_values),
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

/// Writes the location of scripts. If the address of PHP is not known, they are refused: they would be shown as text.
/// Returns whether they are.
pub fn location(conf: &mut Conf, server: &Server) -> bool {
    if let Some(address) = &server.php {
        conf.open(r"location ~ \.php(?:/|$)");
        conf.line(r"fastcgi_split_path_info ^(.+?\.php)(/.*)?$;");
        conf.line("set $path_info $fastcgi_path_info;");
        conf.line("try_files $fastcgi_script_name =404;");
        conf.line(&format!("fastcgi_pass {address};"));
        conf.close();
        conf.gap();
    }
    if server.php.is_none() {
        conf.note("Scripts run with --php ADDRESS, or with a location with fastcgi_pass here.");
    }
    refuse(conf, ANY_SCRIPT);
    server.php.is_none()
}

pub fn refuse(conf: &mut Conf, pattern: &str) {
    conf.open(&format!("location ~ {pattern}"));
    conf.line("deny all;");
    conf.close();
    conf.gap();
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
