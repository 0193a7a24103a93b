//! Decides for each line of a virtual host: it is written in nginx's syntax, left out, or evaluated by the server as it
//! is.

use htaccess::item::Item;

use crate::left_out;
use crate::note::{Note, NoteKind};
use crate::outcome::{LineOutcome, Place};
use crate::virtual_host::Server;
use crate::{php, proxy, server};

/// Reads lines.
#[derive(Debug, Default)]
pub struct LineReader {
    pub server: Server,
    pub notes: Vec<Note>,
}

impl LineReader {
    pub fn items(&mut self, items: &[Item], place: Place<'_>) {
        for item in items {
            match &item.block {
                Some(block) => self.section(item, block, place),
                None => self.line(item, place),
            }
        }
    }

    fn section(&mut self, item: &Item, block: &[Item], place: Place<'_>) {
        if item.name == "proxy" || item.name == "proxymatch" {
            for line in block {
                match line.denies() {
                    true => {
                        self.not_translated(line, "write it into the location with proxy_pass");
                    }
                    false => self.note(
                        line,
                        "servers behind this one are asked as locations say",
                        NoteKind::LeftOut,
                    ),
                }
            }
            return;
        }
        let path = item.args.first().map_or("", String::as_str);
        let inner = match (item.name.as_str(), place) {
            ("location", _) => Place::Location(path),
            (_, Place::Location(path)) => Place::Location(path),
            _ => Place::Section,
        };
        self.server.rules.begin(item);
        self.items(block, inner);
        self.server.rules.end(item);
    }

    fn line(&mut self, item: &Item, place: Place<'_>) {
        match self.outcome(item, place) {
            LineOutcome::Taken => {}
            LineOutcome::Rule => self.server.rules.line(item),
            LineOutcome::LeftOut(why) => self.note(item, &why, NoteKind::LeftOut),
            LineOutcome::Not(why) => self.not_translated(item, &why),
        }
    }

    fn outcome(&mut self, item: &Item, place: Place<'_>) -> LineOutcome {
        let name = item.name.as_str();
        // Names that a list must not show.
        if name == "indexignore" {
            return LineOutcome::Rule;
        }
        if let Some(why) = left_out::reason(name) {
            return LineOutcome::LeftOut(why.to_owned());
        }
        let server = &mut self.server;
        let is_of_server = place == Place::Server;
        match name {
            "allowoverride" => {
                server.reads_htaccess |= item.lower(0) != "none";
                LineOutcome::Rule
            }
            "options" => {
                let lists =
                    |it: &String| matches!(it.as_str(), "indexes" | "+indexes" | "all" | "+all");
                server.lists_folders |= item.all_lower().iter().any(lists);
                LineOutcome::Rule
            }
            "sethandler" | "addhandler" | "addtype" => {
                if let Some(address) = item.args.first().and_then(|it| php::handler(it)) {
                    server.php = Some(address);
                }
                match handler_of_another_module(&item.lower(0)) {
                    Some(why) => {
                        self.note(item, why, NoteKind::NotTranslated);
                        LineOutcome::Rule
                    }
                    None => LineOutcome::Rule,
                }
            }
            "php_value" | "php_flag" if item.lower(0) == "engine" => LineOutcome::Rule,
            "php_value" | "php_flag" | "php_admin_value" | "php_admin_flag" => match is_of_server {
                true => php::setting(server, item),
                false => LineOutcome::Not("write it into .user.ini, or into php_pool".to_owned()),
            },
            "addoutputfilterbytype"
            | "setoutputfilter"
            | "addoutputfilter"
            | "brotlifilterbytype" => compression(server, item),
            "limitrequestbody" => match item.lower(0).parse() {
                Ok(bytes) if is_of_server => {
                    server.body_bytes = Some(bytes);
                    LineOutcome::Taken
                }
                _ => LineOutcome::Not("write client_max_body_size in a location".to_owned()),
            },
            "requestheader" => request_field(server, item),
            "proxypass" => proxy::pass(server, item, place),
            "proxypassmatch" => proxy::pass_match(server, item),
            _ => server::directive(server, item, is_of_server),
        }
    }

    fn note(&mut self, item: &Item, why: &str, kind: NoteKind) {
        self.notes.push(Note::of(item, why, kind));
    }

    fn not_translated(&mut self, item: &Item, why: &str) {
        let kind = match item.denies() {
            true => NoteKind::Unsafe,
            false => NoteKind::NotTranslated,
        };
        self.note(item, why, kind);
        for inner in item.block.iter().flatten() {
            self.not_translated(inner, "it is in the section above");
        }
    }
}

fn handler_of_another_module(handler: &str) -> Option<&'static str> {
    match handler {
        "server-status" => Some("write a location with stub_status"),
        "cgi-script" | "fcgid-script" => Some("CGI has no counterpart; run the script by FastCGI"),
        _ => None,
    }
}

fn compression(server: &mut Server, item: &Item) -> LineOutcome {
    let lower = item.all_lower();
    let filters = lower.first().map_or("", String::as_str);
    let is_known = |it: &str| ["deflate", "brotli_compress", "inflate"].contains(&it);
    if !filters.split(';').all(is_known) {
        return LineOutcome::Not("of output filters there is compression only".to_owned());
    }
    let usual = [
        "application/javascript",
        "application/json",
        "application/xml",
        "image/svg+xml",
        "text/css",
        "text/javascript",
        "text/plain",
        "text/xml",
    ];
    let types: Vec<&str> = match item.name.as_str() {
        "addoutputfilterbytype" | "brotlifilterbytype" => {
            lower.iter().skip(1).map(String::as_str).collect()
        }
        "addoutputfilter" => Vec::new(),
        _ => usual.to_vec(),
    };
    let all = server.compressed_types.get_or_insert_default();
    for media_type in types {
        let is_of_type = |it: u8| it.is_ascii_alphanumeric() || b"/+.-".contains(&it);
        let is_type = media_type.contains('/') && media_type.bytes().all(is_of_type);
        // Pages are compressed without being named.
        if is_type && media_type != "text/html" && !all.iter().any(|it| it == media_type) {
            all.push(media_type.to_owned());
        }
    }
    LineOutcome::Taken
}

/// `RequestHeader set NAME VALUE`, for PHP and servers behind this one.
fn request_field(server: &mut Server, item: &Item) -> LineOutcome {
    let Some(name) = item.args.get(1).map(|it| it.trim_end_matches(':')) else {
        return LineOutcome::Not("the name of a field was expected".to_owned());
    };
    let is_of_name = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    if name.is_empty() || !name.bytes().all(is_of_name) {
        return LineOutcome::Not("it is no name of a field".to_owned());
    }
    let rest: Vec<&str> = item.args.iter().skip(2).map(String::as_str).collect();
    let value = match (item.lower(0).as_str(), &rest[..]) {
        ("unset", [] | ["early"]) => "",
        ("set", [value] | [value, "early"]) if !value.contains(['$', '%']) => value,
        _ => {
            return LineOutcome::Not(
                "write proxy_set_header or fastcgi_param in the location".to_owned(),
            );
        }
    };
    server
        .request_fields
        .push((name.to_owned(), value.to_owned()));
    LineOutcome::Taken
}
