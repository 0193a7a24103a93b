//! The whole way: texts in, nginx's syntax out.

use nginx_conf::text::Conf;

use crate::collect::{Collector, Scope};
use crate::expand::{Expander, Load};
use crate::item::{Item, Mistake, parse};
use crate::modules;
use crate::note::{Kind, Note};
use crate::rewrite::argument;
use crate::site::Site;
use crate::write;

/// What the texts do not say.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where PHP-FPM listens, as `fastcgi_pass` has it.
    pub php: Option<String>,
}

/// A `.htaccess`.
#[derive(Clone, Copy, Debug)]
pub struct HtaccessFile<'a> {
    /// What messages call it.
    pub name: &'a str,
    pub text: &'a str,
    /// The path of the address of its folder, with a slash at both ends.
    pub folder: &'a str,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    /// The configuration.
    pub text: String,
    /// Lines that are not translated, in the order in which they were read.
    pub notes: Vec<Note>,
    /// Sections that do not fit together. What is in them is read all the same.
    pub mistakes: Vec<Mistake>,
    /// Directives and heads of sections in the texts.
    pub lines: usize,
}

impl Conversion {
    /// How many lines are of this kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.notes.iter().filter(|it| it.kind == kind).count()
    }

    /// Lines that have a counterpart.
    pub fn translated(&self) -> usize {
        self.lines.saturating_sub(self.notes.len())
    }
}

/// Translates the `.htaccess` files of one site, for the inside of a `server`.
pub fn convert_htaccess(files: &[HtaccessFile<'_>], options: &Options) -> Conversion {
    let mut collector = Collector::default();
    collector.site.php.clone_from(&options.php);
    let mut conversion = Conversion::default();
    // The order of folders is that of their depth, wherever they stand on a command line.
    let mut files: Vec<&HtaccessFile<'_>> = files.iter().collect();
    files.sort_by_key(|it| it.folder.len());
    for file in &files {
        let parsed = parse(file.text, file.name);
        conversion.mistakes.extend(parsed.mistakes);
        conversion.lines += parsed.items.iter().map(Item::count).sum::<usize>();
        collector.items(&parsed.items, &Scope::of_folder(file.folder));
    }
    if options.php.is_some() {
        collector.site.php.clone_from(&options.php);
    }
    let (text, notes) = write::site(&collector.site);
    conversion.notes = in_order(collector.notes.into_iter().chain(notes));
    let mut conf = Conf::default();
    comments(&mut conf, &conversion.notes);
    conf.text.push_str(&text);
    conversion.text = tidy(&conf.text);
    conversion
}

/// Each line once, with its worst note, as it stands in its file.
fn in_order(notes: impl Iterator<Item = Note>) -> Vec<Note> {
    let mut all: Vec<Note> = Vec::new();
    for note in notes {
        match all.iter_mut().find(|it| it.place == note.place) {
            Some(known) if known.kind < note.kind => *known = note,
            Some(_) => {}
            None => all.push(note),
        }
    }
    all.sort_by(|a, b| (&a.place.file, a.place.line).cmp(&(&b.place.file, b.place.line)));
    all
}

/// The lines that are not translated, as comments.
pub fn comments(conf: &mut Conf, notes: &[Note]) {
    for note in notes {
        conf.note(&note.to_string());
    }
    if !notes.is_empty() {
        conf.gap();
    }
}

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
    let mut notes = Vec::new();
    if hosts.is_empty() {
        server(&mut conf, &common, None, options, &mut notes);
    }
    for host in &hosts {
        server(&mut conf, &common, Some(host), options, &mut notes);
    }
    conversion.notes = in_order(notes.into_iter());
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
            Some(block) if has_hosts && modules::holds(&item) == Some(modules::Holds::Yes) => {
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

/// One server: what is common, and what a virtual host says.
fn server(
    conf: &mut Conf,
    common: &[Item],
    host: Option<&Item>,
    options: &Options,
    all_notes: &mut Vec<Note>,
) {
    let mut collector = Collector::default();
    collector.site.php.clone_from(&options.php);
    let own = host.and_then(|it| it.block.as_deref()).unwrap_or_default();
    let scope = Scope::of_server();
    let mut sections = Vec::new();
    // Apache reads folders from the shortest to the longest, then files, then locations, wherever they stand.
    for item in common.iter().chain(own) {
        match item.name.as_str() {
            "directory" | "directorymatch" | "location" | "locationmatch" | "files"
            | "filesmatch" => sections.push(item),
            _ => collector.items(std::slice::from_ref(item), &scope),
        }
    }
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
    for item in sections {
        collector.items(std::slice::from_ref(item), &scope);
    }
    let addresses = host.map_or(&[][..], |it| &it.args);
    collector.site.server.lines = server_lines(&collector.site, addresses);
    let (text, notes) = write::site(&collector.site);
    let mut notes = in_order(collector.notes.into_iter().chain(notes));
    // What is common is told once.
    notes.retain(|it| !all_notes.iter().any(|known| known.place == it.place));
    conf.open("server");
    comments(conf, &notes);
    text.lines().for_each(|line| match line {
        "" => conf.gap(),
        line => conf.line(line),
    });
    conf.close();
    conf.gap();
    all_notes.extend(notes);
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

/// The text without empty lines where one is there already, or a block begins.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    for line in text.lines() {
        let is_gap = line.trim().is_empty();
        if is_gap && (tidy.is_empty() || tidy.ends_with("\n\n") || tidy.ends_with("{\n")) {
            continue;
        }
        tidy.push_str(if is_gap { "" } else { line });
        tidy.push('\n');
    }
    while tidy.ends_with("\n\n") {
        tidy.pop();
    }
    tidy
}
