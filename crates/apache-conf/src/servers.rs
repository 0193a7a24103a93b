//! The configuration of servers in, one `server` for each virtual host out.

use htaccess::item::{Item, parse};
use htaccess::modules;
use nginx_conf::text::Conf;

use crate::convert::{Conversion, Options, comments, in_order, tidy};
use crate::expand::{Expander, Load};
use crate::lines::LineReader;
use crate::outcome::Place;
use crate::write;

/// Translates the configuration of servers: each `<VirtualHost>` becomes a `server`. Lines outside of them hold for
/// all. `load` reads included files.
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

/// Makes one server from the common directives and those of a virtual host.
fn server(
    conf: &mut Conf,
    common: &[Item],
    host: Option<&Item>,
    options: &Options,
    conversion: &mut Conversion,
) {
    let own = host.and_then(|it| it.block.as_deref()).unwrap_or_default();
    let items: Vec<Item> = opened(common.iter().chain(own));
    let addresses = host.map_or(&[][..], |it| &it.args);
    let is_usual = |it: &String| !it.contains(':') || it.ends_with(":80") || it.ends_with(":443");
    let mut reader = LineReader::default();
    reader.server.php.clone_from(&options.php);
    reader.server.address.asked_host = match addresses.iter().all(is_usual) {
        true => "$host",
        false => "$host:$server_port",
    };
    // Whether the host is passed on is asked by the lines that name other servers.
    let (first, others): (Vec<Item>, Vec<Item>) = items
        .into_iter()
        .partition(|it| it.name == "proxypreservehost");
    reader.items(&first, Place::Server);
    reader.items(&others, Place::Server);
    let LineReader { server, notes } = reader;
    let mut notes = in_order(notes.into_iter().chain(server.rules.notes()));
    // A note about common lines is reported once.
    notes.retain(|it| !conversion.notes.iter().any(|known| known.place == it.place));
    conf.open("server");
    comments(conf, &notes);
    conversion.refuses_scripts |= write::server(conf, &server, addresses);
    conf.close();
    conf.gap();
    conversion.notes.extend(notes);
}

/// Whether this text is the configuration of servers, and no `.htaccess`.
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
