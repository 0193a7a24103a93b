//! The content of a folder, and pages that list it in nginx's layouts
//! (<https://nginx.org/en/docs/http/ngx_http_autoindex_module.html>).
//!
//! Names are bytes that any account with a write permission chose: each format escapes
//! them.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use http_semantics::escape::{Escape, escape, escape_html};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};
use rustix::io::Errno;
use server_base::site_path::{self, Links};
use site::{Autoindex, AutoindexFormat};

/// Places that a line has for a name.
const NAME_WIDTH: usize = 50;
/// Files listed: a longer page would be of no use.
const MAX_ENTRIES: usize = 100_000;

/// A file in the listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    name: Vec<u8>,
    kind: EntryKind,
    size: u64,
    /// Unix seconds.
    modified: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Directory,
    File,
    Other,
}

/// How a listing is shown.
pub struct ListingForm<'a> {
    pub options: &'a Autoindex,
    /// The path that a visitor asked for.
    pub path: &'a [u8],
    /// With JSONP: the function that is given the list.
    pub callback: Option<&'a [u8]>,
    /// The page declares UTF-8.
    pub is_utf8: bool,
}

/// The page that lists `entries`, behind its media type.
pub fn page(entries: &[Entry], form: &ListingForm<'_>) -> (&'static [u8], Vec<u8>) {
    let mut out = Vec::with_capacity(256 + entries.len() * 128);
    let media_type: &[u8] = match form.options.format {
        AutoindexFormat::Html => {
            put_html(entries, form, &mut out);
            b"text/html"
        }
        AutoindexFormat::Json | AutoindexFormat::Jsonp => {
            put_json(entries, form.callback, &mut out);
            if form.callback.is_some() {
                b"application/javascript"
            } else {
                b"application/json"
            }
        }
        AutoindexFormat::Xml => {
            put_xml(entries, &mut out);
            b"text/xml; charset=utf-8"
        }
    };
    (media_type, out)
}

/// Reads the entries of `directory`, except for names with a dot before; directories
/// first, each group by its names' bytes.
pub fn read(directory: &Path) -> io::Result<Vec<Entry>> {
    let path = directory.as_os_str().as_bytes();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let (folder, _) = site_path::open(path, flags, Links::Followed)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name.starts_with(b".") {
            continue;
        }
        // A file that went meanwhile has no facts.
        if let Ok(stat) = facts(&folder, path, name) {
            entries.push(Entry::new(name.to_vec(), &stat));
        }
        if entries.len() >= MAX_ENTRIES {
            break;
        }
    }
    entries.sort_by(|one, other| {
        let is_file = |entry: &Entry| entry.kind != EntryKind::Directory;
        is_file(one)
            .cmp(&is_file(other))
            .then_with(|| one.name.cmp(&other.name))
    });
    Ok(entries)
}

/// Chooses a file of `directory`, the same names left out as by [`read`]: each with the
/// same chance. `random` returns a number below its argument.
///
/// # Errors
/// An error of the system.
pub fn random_file(
    directory: &Path,
    mut random: impl FnMut(usize) -> usize,
) -> io::Result<Option<Vec<u8>>> {
    let path = directory.as_os_str().as_bytes();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let (folder, _) = site_path::open(path, flags, Links::Followed)?;
    let mut chosen = None;
    let mut files = 0;
    for entry in Dir::read_from(&folder)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name.starts_with(b".") {
            continue;
        }
        let is_file = match entry.file_type() {
            FileType::Symlink | FileType::Unknown => facts(&folder, path, name)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
            kind => kind == FileType::RegularFile,
        };
        if is_file {
            files += 1;
            if random(files) == 0 {
                chosen = Some(name.to_vec());
            }
        }
    }
    Ok(chosen)
}

/// Returns the facts of a link's target, or of the link if the target does not exist.
fn facts(folder: &OwnedFd, path: &[u8], name: &[u8]) -> Result<Stat, Errno> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Ok(stat);
    }
    Ok(site_path::stat(&[path, b"/", name].concat()).unwrap_or(stat))
}

impl Entry {
    fn new(name: Vec<u8>, stat: &Stat) -> Entry {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => EntryKind::Directory,
            FileType::RegularFile => EntryKind::File,
            _ => EntryKind::Other,
        };
        Entry {
            name,
            kind,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: stat.st_mtime,
        }
    }

    fn is_directory(&self) -> bool {
        self.kind == EntryKind::Directory
    }

    /// Returns the name as text, if the page declares UTF-8.
    fn text(&self, is_utf8: bool) -> Option<&str> {
        std::str::from_utf8(&self.name).ok().filter(|_| is_utf8)
    }

    /// Places that the name takes: characters, or bytes as in nginx without
    /// `charset utf-8`.
    fn width(&self, is_utf8: bool) -> usize {
        self.text(is_utf8)
            .map_or(self.name.len(), |name| name.chars().count())
    }

    /// The first `width` places of the name.
    fn beginning(&self, width: usize, is_utf8: bool) -> &[u8] {
        let end = match self.text(is_utf8) {
            Some(name) => name
                .char_indices()
                .nth(width)
                .map_or(name.len(), |(at, _)| at),
            None => width.min(self.name.len()),
        };
        self.name.get(..end).unwrap_or_default()
    }
}

fn put_html(entries: &[Entry], form: &ListingForm<'_>, out: &mut Vec<u8>) {
    let path = escape_html(form.path);
    for part in [
        b"<html>\r\n<head><title>Index of ",
        &path[..],
        b"</title></head>\r\n<body>\r\n<h1>Index of ",
        &path,
        b"</h1><hr><pre><a href=\"../\">../</a>\r\n",
    ] {
        out.extend_from_slice(part);
    }
    for entry in entries {
        put_html_entry(entry, form, out);
    }
    out.extend_from_slice(b"</pre><hr></body>\r\n</html>\r\n");
}

fn put_html_entry(entry: &Entry, form: &ListingForm<'_>, out: &mut Vec<u8>) {
    let (options, is_utf8) = (form.options, form.is_utf8);
    out.extend_from_slice(b"<a href=\"");
    out.extend_from_slice(&escape(&entry.name, Escape::Component));
    if entry.is_directory() {
        out.push(b'/');
    }
    out.extend_from_slice(b"\">");
    let mut width = entry.width(is_utf8);
    if width > NAME_WIDTH {
        out.extend_from_slice(&escape_html(entry.beginning(NAME_WIDTH - 3, is_utf8)));
        out.extend_from_slice(b"..&gt;</a>");
    } else {
        out.extend_from_slice(&escape_html(&entry.name));
        if entry.is_directory() && width < NAME_WIDTH {
            out.push(b'/');
            width += 1;
        }
        out.extend_from_slice(b"</a>");
        out.resize(out.len() + NAME_WIDTH - width, b' ');
    }
    out.push(b' ');
    let date = date(entry.modified, options.localtime)
        .strftime("%d-%b-%Y %H:%M ")
        .to_string();
    out.extend_from_slice(date.as_bytes());
    out.extend_from_slice(size(entry, options.exact_size).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn date(modified: i64, is_local: bool) -> jiff::Zoned {
    if is_local {
        return clock::local(modified);
    }
    let time = jiff::Timestamp::from_second(modified).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.to_zoned(jiff::tz::TimeZone::UTC)
}

/// The size, in bytes or rounded to a unit.
fn size(entry: &Entry, is_exact: bool) -> String {
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    const G: u64 = 1 << 30;
    if is_exact {
        return match entry.is_directory() {
            true => format!("{:>19}", "-"),
            false => format!("{:>19}", entry.size),
        };
    }
    if entry.is_directory() {
        return format!("{:>7}", "-");
    }
    let rounded = |unit: u64| entry.size / unit + u64::from(entry.size % unit > unit / 2 - 1);
    match entry.size {
        size if size > G - 1 => format!("{:>6}G", rounded(G)),
        size if size > M - 1 => format!("{:>6}M", rounded(M)),
        size if size > 9999 => format!("{:>6}K", rounded(K)),
        size => format!(" {size:>6}"),
    }
}

fn put_json(entries: &[Entry], callback: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(callback) = callback {
        // A comment before keeps the callback from being the file's first bytes,
        // where it could make the file something else than a script.
        out.extend_from_slice(b"/* callback */\r\n");
        out.extend_from_slice(callback);
        out.push(b'(');
    }
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        out.extend_from_slice(if index > 0 {
            b",\r\n{ \"name\":\""
        } else {
            b"\r\n{ \"name\":\""
        });
        put_json_text(&entry.name, out);
        let kind = match entry.kind {
            EntryKind::Directory => "directory",
            EntryKind::File => "file",
            EntryKind::Other => "other",
        };
        let date = http_semantics::date::format(entry.modified);
        let _ = write!(
            out,
            "\", \"type\":\"{kind}\", \"mtime\":\"{}\"",
            OsStr::from_bytes(&date).display()
        );
        if entry.kind == EntryKind::File {
            let _ = write!(out, ", \"size\":{}", entry.size);
        }
        out.extend_from_slice(b" }");
    }
    out.extend_from_slice(b"\r\n]");
    if callback.is_some() {
        out.extend_from_slice(b");");
    }
}

/// Text as it stands in a JSON string (RFC 8259 §7); bytes that are not UTF-8
/// are shown as U+FFFD, since JSON has no way to hold them.
fn put_json_text(text: &[u8], out: &mut Vec<u8>) {
    for character in String::from_utf8_lossy(text).chars() {
        let _ = match character {
            '"' | '\\' => write!(out, "\\{character}"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            '\u{8}' => write!(out, "\\b"),
            '\u{c}' => write!(out, "\\f"),
            '\0'..='\u{1f}' => write!(out, "\\u{:04X}", u32::from(character)),
            _ => write!(out, "{character}"),
        };
    }
}

fn put_xml(entries: &[Entry], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<?xml version=\"1.0\"?>\r\n<list>\r\n");
    for entry in entries {
        let tag = match entry.kind {
            EntryKind::Directory => "directory",
            EntryKind::File => "file",
            EntryKind::Other => "other",
        };
        let time = date(entry.modified, false)
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string();
        let _ = write!(out, "<{tag} mtime=\"{time}\"");
        if entry.kind == EntryKind::File {
            let _ = write!(out, " size=\"{}\"", entry.size);
        }
        out.push(b'>');
        out.extend_from_slice(&escape_html(&entry.name));
        let _ = write!(out, "</{tag}>\r\n");
    }
    out.extend_from_slice(b"</list>\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: EntryKind, size: u64) -> Entry {
        Entry {
            name: name.into(),
            kind,
            size,
            modified: 784_111_777,
        }
    }

    #[test]
    fn a_file_of_a_folder_is_chosen_by_chance() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(random_file(folder.path(), |_| 0).unwrap(), None);
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        for name in ["a", "b", ".hidden"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("folder", folder.path().join("other")).unwrap();
        let mut found = std::collections::BTreeSet::new();
        for wanted in 0..3 {
            // The last of which the number is 0: the one after which no other has it.
            let mut nth = 0;
            let name = random_file(folder.path(), |_| {
                nth += 1;
                usize::from(nth != wanted + 1)
            });
            found.insert(name.unwrap().expect("a file"));
        }
        let names: Vec<&[u8]> = found.iter().map(Vec::as_slice).collect();
        assert_eq!(names, [&b"a"[..], b"b", b"link"]);
        assert!(random_file(&folder.path().join("none"), |_| 0).is_err());
    }

    #[test]
    fn sizes_are_rounded_as_by_nginx() {
        for (bytes, wanted) in [
            (0, "      0"),
            (9999, "   9999"),
            (10_000, "    10K"),
            (10_239, "    10K"),
            (10_751, "    10K"),
            (10_752, "    11K"),
            (1_048_575, "  1024K"),
            (1_048_576, "     1M"),
            (1_572_863, "     1M"),
            (1_572_864, "     2M"),
            (1 << 30, "     1G"),
        ] {
            assert_eq!(
                size(&entry("a", EntryKind::File, bytes), false),
                wanted,
                "{bytes}"
            );
        }
        assert_eq!(
            size(&entry("a", EntryKind::File, 12), true),
            "                 12"
        );
        assert_eq!(
            size(&entry("a", EntryKind::Directory, 12), true),
            "                  -"
        );
        assert_eq!(
            size(&entry("a", EntryKind::Directory, 12), false),
            "      -"
        );
    }

    #[test]
    fn names_are_escaped_in_every_format() {
        let entries = [entry("<a \"&\n>", EntryKind::File, 1)];
        let options = Autoindex {
            enabled: true,
            exact_size: true,
            localtime: false,
            format: AutoindexFormat::Html,
        };
        let form = ListingForm {
            options: &options,
            path: b"/<x>/",
            callback: None,
            is_utf8: true,
        };
        let show = |put: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            put(&mut out);
            String::from_utf8(out).unwrap()
        };
        let html = show(&|out| put_html(&entries, &form, out));
        assert!(html.contains("<h1>Index of /&lt;x&gt;/</h1>"), "{html}");
        assert!(
            html.contains("<a href=\"%3Ca%20%22%26%0A%3E\">&lt;a &quot;&amp;\n&gt;</a>"),
            "{html}"
        );
        let json = show(&|out| put_json(&entries, Some(b"f"), out));
        assert_eq!(
            json,
            "/* callback */\r\nf([\r\n{ \"name\":\"<a \\\"&\\n>\", \"type\":\"file\", \
             \"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\", \"size\":1 }\r\n]);"
        );
        let xml = show(&|out| put_xml(&entries, out));
        assert!(
            xml.contains(
                "<file mtime=\"1994-11-06T08:49:37Z\" size=\"1\">&lt;a &quot;&amp;\n&gt;</file>\r\n"
            ),
            "{xml}"
        );
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let long = "\u{e9}".repeat(60);
        let entry = entry(&long, EntryKind::File, 1);
        assert_eq!(entry.width(true), 60);
        assert_eq!(entry.beginning(47, true), "\u{e9}".repeat(47).as_bytes());
        assert_eq!(entry.width(false), 120);
        assert_eq!(entry.beginning(48, false), "\u{e9}".repeat(24).as_bytes());
    }

    #[test]
    fn directories_come_first_and_dot_files_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["b", "a", ".hidden"] {
            std::fs::write(path(name), "text").unwrap();
        }
        std::fs::create_dir(path("z")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
        let entries = read(directory.path()).unwrap();
        let names: Vec<_> = entries
            .iter()
            .map(|entry| (std::str::from_utf8(&entry.name).unwrap(), entry.kind))
            .collect();
        use EntryKind::{Directory, File, Other};
        assert_eq!(
            names,
            [
                ("z", Directory),
                ("a", File),
                ("b", File),
                ("dangling", Other)
            ]
        );
    }
}
