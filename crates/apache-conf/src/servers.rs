//! The configuration of servers in, one `server` for each virtual host out.

use nginx_conf::text::Conf;

use crate::collect::{Collector, Scope};
use crate::convert::{Conversion, Options, comments, in_order, tidy};
use crate::expand::{Expander, Load};
use crate::rewrite::argument;
use crate::site::Site;
use crate::write;
use htaccess::item::{Item, parse};
use htaccess::modules;

/// Translates the configuration of servers: each `<VirtualHost>` becomes a `server`. What stands outside of them holds for
/// all. `load` reads what is included.
pub fn convert_servers(name: &str, text: &str, load: Load<'_>, options: &Options) -> Conversion {
    let parsed = parse(text, name);
    let mut conversion = Conversion {
        mistakes: parsed.mistakes,
        ..Conversion::default()
    };
    let mut expander = Expander::new(load);
    let items = expander.expand(parsed.items, 0);
    conversion.mistakes.append(&mut expander.mistakes);
    conversion.lines = items.iter().map(Item::count).sum();
    let (hosts, common): (Vec<Item>, Vec<Item>) = flat(items)
        .into_iter()
        .partition(|it| it.name == "virtualhost");
    let mut conf = Conf::default();
    if hosts.is_empty() {
        server(&mut conf, &common, None, options, &mut conversion);
    }
    for host in &hosts {
        server(&mut conf, &common, Some(host), options, &mut conversion);
    }
    conversion.notes = in_order(std::mem::take(&mut conversion.notes).into_iter());
    conversion.text = tidy(&conf.text);
    conversion
}

/// Conditional sections around virtual hosts, opened.
fn flat(items: Vec<Item>) -> Vec<Item> {
    let mut all = Vec::new();
    for mut item in items {
        let has_hosts = item
            .block
            .iter()
            .flatten()
            .any(|it| it.name == "virtualhost");
        match item.block.take() {
            Some(block)
                if has_hosts && modules::holds(&item) == Some(modules::SectionVerdict::Yes) =>
            {
                all.extend(flat(block));
            }
            block => {
                item.block = block;
                all.push(item);
            }
        }
    }
    all
}

/// Conditional sections that hold, opened.
fn opened<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<Item> {
    let mut all = Vec::new();
    for item in items {
        match &item.block {
            Some(block) if modules::holds(item) == Some(modules::SectionVerdict::Yes) => {
                all.extend(opened(block.iter()))
            }
            _ => all.push(item.clone()),
        }
    }
    all
}

/// One server: what is common, and what a virtual host says.
fn server(
    conf: &mut Conf,
    common: &[Item],
    host: Option<&Item>,
    options: &Options,
    conversion: &mut Conversion,
) {
    let mut collector = Collector::default();
    collector.site.php.clone_from(&options.php);
    collector.site.is_whole_server = true;
    let own = host.and_then(|it| it.block.as_deref()).unwrap_or_default();
    let items: Vec<Item> = opened(common.iter().chain(own));
    let addresses = host.map_or(&[][..], |it| &it.args);
    let is_usual = |it: &String| !it.contains(':') || it.ends_with(":80") || it.ends_with(":443");
    collector.site.server.asked_host = match addresses.iter().all(is_usual) {
        true => "$host",
        false => "$host:$server_port",
    };
    let scope = Scope::of_server();
    // Apache reads folders from the shortest to the longest, then files, then locations, wherever they stand. Other lines
    // ask where folders are, and whether the host is passed on.
    let is_first =
        |it: &&Item| ["documentroot", "alias", "proxypreservehost"].contains(&it.name.as_str());
    let is_section = |it: &&Item| {
        [
            "directory",
            "directorymatch",
            "location",
            "locationmatch",
            "files",
            "filesmatch",
        ]
        .contains(&it.name.as_str())
    };
    let (mut sections, others): (Vec<&Item>, Vec<&Item>) = items.iter().partition(is_section);
    let (first, others): (Vec<&Item>, Vec<&Item>) = others.into_iter().partition(is_first);
    let rank = |item: &&Item| match item.name.as_str() {
        "directory" => (
            0,
            item.args
                .first()
                .map_or(0, |it| it.trim_end_matches('/').len()),
        ),
        "directorymatch" => (1, 0),
        "files" | "filesmatch" => (2, 0),
        _ => (3, 0),
    };
    sections.sort_by_key(rank);
    for item in first.into_iter().chain(others).chain(sections) {
        collector.items(std::slice::from_ref(item), &scope);
    }
    collector.site.server.lines = server_lines(&collector.site, addresses);
    let written = write::site(&collector.site);
    conversion.refuses_scripts |= written.refuses_scripts;
    let mut notes = in_order(collector.notes.into_iter().chain(written.notes));
    // What is common is told once.
    notes.retain(|it| !conversion.notes.iter().any(|known| known.place == it.place));
    conf.open("server");
    comments(conf, &notes);
    written.text.lines().for_each(|line| match line {
        "" => conf.gap(),
        line => conf.line(line),
    });
    conf.close();
    conf.gap();
    conversion.notes.extend(notes);
}

/// `listen`, `server_name`, `root` and what stands with them.
fn server_lines(site: &Site, addresses: &[String]) -> Vec<String> {
    let server = &site.server;
    let mut lines = Vec::new();
    let tls = match (server.is_tls, server.has_http2) {
        (false, _) => "",
        (true, false) => " ssl",
        (true, true) => " ssl http2",
    };
    let port = if server.is_tls { "443" } else { "80" };
    let all = ["*".to_owned()];
    let addresses = if addresses.is_empty() {
        &all[..]
    } else {
        addresses
    };
    for address in addresses {
        let (host, port) = match address.rsplit_once(':') {
            Some((host, number)) if number.parse::<u16>().is_ok() => (host, number),
            _ => (address.as_str(), port),
        };
        match host {
            "*" | "_default_" => {
                lines.push(format!("listen {port}{tls};"));
                lines.push(format!("listen [::]:{port}{tls};"));
            }
            host => lines.push(format!("listen {}:{port}{tls};", argument(host))),
        }
    }
    if !server.names.is_empty() {
        lines.push(format!("server_name {};", server.names.join(" ")));
    }
    lines.push(String::new());
    if let Some(root) = &server.root {
        lines.push(format!("root {};", argument(root)));
    }
    let says = |name: &str| {
        site.folders
            .iter()
            .flat_map(|it| &it.settings.lines)
            .any(|it| it.starts_with(name))
    };
    if !says("index ") {
        lines.push("index index.html index.php index.htm;".to_owned());
    }
    if !says("client_max_body_size ") {
        lines.push("# Apache's own limit; without this line it is 1m.".to_owned());
        lines.push("client_max_body_size 1g;".to_owned());
    }
    lines.push(String::new());
    let level = server.log_level.as_deref().unwrap_or("warn");
    lines.extend(
        server
            .lines
            .iter()
            .map(|it| it.replace(" LEVEL;", &format!(" {level};"))),
    );
    lines
}

/// Is this text the configuration of servers, and no `.htaccess`?
pub fn is_of_servers(text: &str) -> bool {
    let names = [
        "virtualhost",
        "documentroot",
        "servername",
        "directory",
        "loadmodule",
        "includeoptional",
        "listen",
    ];
    parse(text, "").items.iter().any(|it| {
        names.contains(&it.name.as_str())
            || it
                .block
                .iter()
                .flatten()
                .any(|it| names.contains(&it.name.as_str()))
    })
}
