//! A [`Server`] as lines of nginx's syntax.

use nginx_conf::text::{Conf, quoted};

use crate::php;
use crate::virtual_host::{PlaceKind, Server, ServerPlace};
use crate::words::{argument, text};

/// Names that begin with a dot, but for proofs of ownership.
const DOT: &str = r"/\.(?!well-known(?:/|$))";

/// The inside of a whole server. Returns whether scripts are refused, because it is not known which
/// program runs them.
pub fn server(conf: &mut Conf, server: &Server, addresses: &[String]) -> bool {
    listeners(conf, server, addresses);
    if let Some(root) = &server.root {
        conf.line(&format!("root {};", argument(root)));
    }
    conf.line("index index.html index.php index.htm;");
    match server.body_bytes {
        Some(bytes) => conf.line(&format!("client_max_body_size {bytes};")),
        None => {
            conf.note("Apache's own limit; without this line it is 1m.");
            conf.line("client_max_body_size 1g;");
        }
    }
    conf.gap();
    let level = server.log_level.as_deref().unwrap_or("warn");
    for line in &server.lines {
        conf.line(&line.replace(" LEVEL;", &format!(" {level};")));
    }
    inside(conf, server)
}

/// Writes the content of a server block whose address is known.
pub fn inside(conf: &mut Conf, server: &Server) -> bool {
    if let Some(types) = &server.compressed_types {
        conf.line("gzip on;");
        conf.line("gzip_vary on;");
        if !types.is_empty() {
            conf.line(&format!("gzip_types {};", types.join(" ")));
        }
    }
    if server.lists_folders {
        conf.line("autoindex on;");
    }
    conf.gap();
    let params = match &server.php {
        Some(_) => php::params(server),
        None => Vec::new(),
    };
    params.iter().for_each(|line| conf.line(line));
    conf.gap();
    if server.reads_htaccess {
        conf.line("htaccess on;");
    }
    if !server.rules.is_empty() {
        conf.line(&format!("apache_rules {};", text(&server.rules.text)));
    }
    conf.gap();
    let is_whole = server.root.is_some();
    let has_files = is_whole && server.places.iter().all(|it| it.path != "/");
    if has_files {
        php::refuse(conf, DOT);
    }
    let mut refuses_scripts = false;
    for place in &server.places {
        refuses_scripts |= location(conf, server, place);
    }
    if has_files || server.php.is_some() && !is_whole && server.places.is_empty() {
        refuses_scripts |= php::location(conf, server);
    }
    refuses_scripts
}

fn location(conf: &mut Conf, server: &Server, place: &ServerPlace) -> bool {
    let mut refuses_scripts = false;
    let head = match place.kind {
        PlaceKind::File => "location =",
        _ => "location ^~",
    };
    conf.open(&format!("{head} {}", argument(&place.path)));
    body(conf, server, place);
    if let PlaceKind::Folder { runs_scripts } = place.kind {
        conf.gap();
        php::refuse(conf, DOT);
        match runs_scripts {
            true => refuses_scripts = php::location(conf, server),
            // The path of the script would not be that of its file.
            false => php::refuse(conf, php::ANY_SCRIPT),
        }
    }
    conf.close();
    conf.gap();
    let without_slash = place.path.trim_end_matches('/');
    if place.kind == (PlaceKind::OtherServer { is_exact: true }) && !without_slash.is_empty() {
        conf.open(&format!("location = {}", argument(without_slash)));
        body(conf, server, place);
        conf.close();
        conf.gap();
    }
    refuses_scripts
}

fn body(conf: &mut Conf, server: &Server, place: &ServerPlace) {
    place.lines.iter().for_each(|line| conf.line(line));
    if matches!(place.kind, PlaceKind::OtherServer { .. }) {
        for (name, value) in &server.request_fields {
            conf.line(&format!("proxy_set_header {name} {};", quoted(value)));
        }
    }
}

/// `listen` and `server_name`.
fn listeners(conf: &mut Conf, server: &Server, addresses: &[String]) {
    let own = &server.address;
    let tls = match (own.is_tls, own.has_http2) {
        (false, _) => "",
        (true, false) => " ssl",
        (true, true) => " ssl http2",
    };
    let usual_port = if own.is_tls { "443" } else { "80" };
    let all = ["*".to_owned()];
    let addresses = match addresses {
        [] => &all[..],
        addresses => addresses,
    };
    for address in addresses {
        let (host, port) = match address.rsplit_once(':') {
            Some((host, number)) if number.parse::<u16>().is_ok() => (host, number),
            _ => (address.as_str(), usual_port),
        };
        match host {
            "*" | "_default_" => {
                conf.line(&format!("listen {port}{tls};"));
                conf.line(&format!("listen [::]:{port}{tls};"));
            }
            host => conf.line(&format!("listen {}:{port}{tls};", argument(host))),
        }
    }
    if !own.names.is_empty() {
        conf.line(&format!("server_name {};", own.names.join(" ")));
    }
    conf.gap();
}
