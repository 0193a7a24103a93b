//! Locations for files by their names and extensions.

use nginx_conf::text::Conf;

use crate::access::{Access, Limits};
use crate::names::{has, path_pattern};
use crate::note::{Kind, Note};
use crate::patterns::over_lines;
use crate::php;
use crate::settings::{Extensions, NamedSettings, Names, Settings};
use crate::write::{LimitedFolder, Writer, argument_of_pattern};

/// Does a folder need a location, for more than refusals of some files in it?
pub fn needs_location(limited: &LimitedFolder<'_>) -> bool {
    let folder = limited.folder;
    if folder.place.is_some() || !folder.content.is_empty() {
        return true;
    }
    let own = &folder.settings;
    let says_access = !own.access.is_empty() && limited.access != Access::Closed;
    let mut settings = own.clone();
    settings.is_without_php = false;
    // Nothing else would list the folder.
    let is_listed = limited
        .settings
        .lines
        .iter()
        .any(|it| it == "autoindex on;");
    settings
        .lines
        .retain(|it| it != "autoindex off;" || is_listed);
    let has_settings =
        !settings.only_limits() || folder.named.iter().any(|it| !it.settings.only_limits());
    let has_limits = limited
        .named
        .iter()
        .any(|it| matches!(it, Some(Access::Limited(_))));
    limited.access != Access::Closed && (says_access || has_settings || has_limits)
}

/// What a location of a folder says itself.
pub fn own_lines(conf: &mut Conf, limited: &LimitedFolder<'_>, outer: &Access) {
    if let Some(place) = &limited.folder.place {
        conf.line(place);
    }
    limits(conf, &limited.access, outer);
    let settings = &limited.settings;
    let own = &limited.folder.settings;
    own.lines.iter().for_each(|it| conf.line(it));
    if let Some(expires) = &own.expires {
        conf.line(&format!("expires {expires};"));
    }
    if !own.fields.is_empty() || !own.hidden.is_empty() {
        settings.field_lines().iter().for_each(|it| conf.line(it));
    }
    if !own.hidden.is_empty() {
        settings
            .hidden
            .iter()
            .for_each(|it| conf.line(&format!("fastcgi_hide_header {it};")));
    }
}

/// Who may have what is in a location. What is said around it holds there unless it is said otherwise.
fn limits(conf: &mut Conf, access: &Access, outer: &Access) {
    let limits = match access {
        Access::Closed => return conf.line("deny all;"),
        Access::Limited(limits) => limits.clone(),
        Access::Open => Limits::default(),
    };
    limits.lines().iter().for_each(|it| conf.line(it));
    let outer = match outer {
        Access::Open => return,
        Access::Closed => Limits {
            addresses: vec!["deny all;".to_owned()],
            ..Limits::default()
        },
        Access::Limited(outer) => outer.clone(),
    };
    if limits.addresses.is_empty() && !outer.addresses.is_empty() {
        conf.line("allow all;");
    }
    if limits.password.is_empty() && !outer.password.is_empty() {
        conf.line("auth_basic off;");
    }
    if outer.is_any && !limits.is_any {
        conf.line("satisfy all;");
    }
}

/// Locations for the root's files that are refused, limited, or excepted from that. The last section counts in Apache,
/// and the first location by pattern here.
pub fn named_access(writer: &mut Writer<'_>) {
    let folder = writer.root.folder;
    let accesses = writer.root.named.clone();
    for (at, (named, access)) in folder.named.iter().zip(&accesses).enumerate().rev() {
        match access {
            None => {}
            Some(Access::Closed) => {
                let (case, pattern) = path_pattern(&named.names, "/");
                writer.deny(case, &over_lines(&pattern));
            }
            Some(Access::Open) => {
                let lifts = accesses[..at]
                    .iter()
                    .flatten()
                    .any(|it| *it != Access::Open);
                if lifts || writer.root.access != Access::Open {
                    location(writer, named, &Access::Open);
                }
            }
            Some(limited) => location(writer, named, limited),
        }
    }
}

/// A location for files with what they are given.
fn location(writer: &mut Writer<'_>, named: &NamedSettings, access: &Access) {
    let (case, pattern) = path_pattern(&named.names, "/");
    let compares = if case { "~*" } else { "~" };
    writer.conf.open(&format!(
        "location {compares} {}",
        argument_of_pattern(&over_lines(&pattern))
    ));
    let outer = writer.root.access.clone();
    limits(&mut writer.conf, access, &outer);
    let settings = writer.root.settings.over(&named.settings);
    if !named.settings.fields.is_empty() {
        settings
            .field_lines()
            .iter()
            .for_each(|it| writer.conf.line(it));
    }
    match is_script(&named.names) {
        true => php::body(writer, &settings),
        false => {
            php::location_in(writer, &settings);
            if let Some(fallback) = writer.fallback("/") {
                writer.conf.line(&format!("try_files {fallback};"));
            }
        }
    }
    writer.conf.close();
    writer.conf.gap();
}

fn is_script(names: &Names) -> bool {
    match names {
        Names::Literal(name) => name.ends_with(".php"),
        Names::Extensions(all, _) => all.iter().all(|it| it == "php"),
        _ => false,
    }
}

/// Refusals inside of a folder's location: those of the root, and its own.
pub fn refusals_within(writer: &mut Writer<'_>, limited: &LimitedFolder<'_>) {
    let own = limited.folder.named.iter().zip(&limited.named).rev();
    let own: Vec<_> = own.map(|(named, access)| (named, access.clone())).collect();
    let root_accesses = writer.root.named.clone();
    let outer: Vec<_> = writer
        .root
        .folder
        .named
        .iter()
        .zip(root_accesses)
        .rev()
        .collect();
    for (named, access) in own.into_iter().chain(outer) {
        let (case, pattern) = path_pattern(&named.names, "/");
        match access {
            Some(Access::Closed) => writer.deny(case, &over_lines(&pattern)),
            Some(access @ Access::Limited(_)) => location(writer, named, &access),
            _ => {}
        }
    }
}

/// Locations for extensions with settings of their own.
pub fn extensions(writer: &mut Writer<'_>) {
    let settings = writer.root.settings.clone();
    let named = &writer.root.folder.named;
    let fallback = writer.fallback("/");
    let notes = write_extensions(&mut writer.conf, named, &settings, fallback.as_deref());
    writer.notes.extend(notes);
}

/// The same inside of a folder's location.
pub fn extensions_of(writer: &mut Writer<'_>, limited: &LimitedFolder<'_>) {
    let mut named = writer.root.folder.named.clone();
    named.iter_mut().for_each(|it| it.item.block = None);
    named.extend(limited.folder.named.iter().cloned());
    let fallback = writer.fallback(&limited.folder.path);
    let notes = write_extensions(
        &mut writer.conf,
        &named,
        &limited.settings,
        fallback.as_deref(),
    );
    writer.notes.extend(notes);
}

fn write_extensions(
    conf: &mut Conf,
    all: &[NamedSettings],
    around: &Settings,
    fallback: Option<&str>,
) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut extensions = Extensions::new();
    let mut literals: Vec<(String, Settings)> = Vec::new();
    for named in all.iter().filter(|it| !it.settings.only_limits()) {
        match &named.names {
            Names::Extensions(of_these, _) => {
                for extension in of_these.iter().filter(|it| *it != "php") {
                    let settings = extensions
                        .entry(extension.to_ascii_lowercase())
                        .or_default();
                    *settings = settings.over(&named.settings);
                }
            }
            Names::Literal(name) if !name.ends_with(".php") => {
                let under = all
                    .iter()
                    .filter(|it| has(&it.names, name) && it.item != named.item);
                let under = under.fold(Settings::default(), |sum, it| sum.over(&it.settings));
                literals.push((name.clone(), under.over(&named.settings)));
            }
            _ => notes.extend(not_by_pattern(named)),
        }
    }
    for (name, settings) in literals {
        let (_, pattern) = path_pattern(&Names::Literal(name), "/");
        conf.open(&format!("location ~ {}", argument_of_pattern(&pattern)));
        file_lines(conf, &settings, around, fallback);
    }
    let mut groups: Vec<(Vec<String>, Settings)> = Vec::new();
    for (extension, settings) in extensions {
        match groups.iter_mut().find(|it| is_same(&it.1, &settings)) {
            Some((extensions, _)) => extensions.push(extension),
            None => groups.push((vec![extension], settings)),
        }
    }
    for (extensions, settings) in groups {
        let (_, pattern) = path_pattern(&Names::Extensions(extensions, true), "/");
        conf.open(&format!("location ~* {}", argument_of_pattern(&pattern)));
        file_lines(conf, &settings, around, fallback);
    }
    notes
}

fn is_same(a: &Settings, b: &Settings) -> bool {
    let parts = |it: &Settings| {
        (
            it.expires.clone(),
            it.media_type.clone(),
            it.charset.clone(),
            it.lines.clone(),
            it.fields.clone(),
        )
    };
    parts(a) == parts(b)
}

fn file_lines(conf: &mut Conf, settings: &Settings, around: &Settings, fallback: Option<&str>) {
    match (&settings.expires, settings.says_cache_control()) {
        (Some(lifetime), false) => conf.line(&format!("expires {lifetime};")),
        (Some(_), true) => conf.line("expires off;"),
        (None, true) if around.expires.is_some() => conf.line("expires off;"),
        (None, _) => {}
    }
    if let Some(media_type) = &settings.media_type {
        conf.line("types { }");
        conf.line(&format!("default_type {media_type};"));
    }
    if let Some(charset) = &settings.charset {
        conf.line(&format!("charset {charset};"));
        conf.line("charset_types *;");
    }
    settings.lines.iter().for_each(|it| conf.line(it));
    if !settings.fields.is_empty() {
        around
            .over(settings)
            .field_lines()
            .iter()
            .for_each(|it| conf.line(it));
    }
    if let Some(fallback) = fallback {
        conf.line(&format!("try_files {fallback};"));
    }
    conf.close();
    conf.gap();
}

fn not_by_pattern(named: &NamedSettings) -> Vec<Note> {
    let lines = named.item.block.iter().flatten();
    let lines = lines.filter(|it| {
        let mut access = crate::access::AccessLines::default();
        !access.take(it)
    });
    let why = "what holds for names by a pattern would hide what holds for their extensions; write a location for them";
    lines
        .map(|it| Note::of(it, why, Kind::NotTranslated))
        .collect()
}
