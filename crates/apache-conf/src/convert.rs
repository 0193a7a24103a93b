//! `.htaccess` files in, the inside of a `server` out.

use nginx_conf::text::Conf;

use crate::collect::{Collector, Scope};
use crate::note::{Kind, Note};
use crate::write;
use htaccess::item::{Item, Mistake, parse};

/// What the texts do not say.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where PHP-FPM listens, as `fastcgi_pass` has it.
    pub php: Option<String>,
    /// The lines of `.htaccess` files are for a server that `mayfly serve` has written, which refuses hidden files and leads to the
    /// front controller itself.
    pub is_for_serve: bool,
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
    /// Scripts are refused somewhere, since it is not known where PHP listens.
    pub refuses_scripts: bool,
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
    collector.site.is_for_serve = options.is_for_serve;
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
    let written = write::site(&collector.site);
    conversion.refuses_scripts = written.refuses_scripts;
    conversion.notes = in_order(collector.notes.into_iter().chain(written.notes));
    let mut conf = Conf::default();
    comments(&mut conf, &conversion.notes);
    conf.text.push_str(&written.text);
    conversion.text = tidy(&conf.text);
    conversion
}

/// Each line once, with its worst note, as it stands in its file.
pub fn in_order(notes: impl Iterator<Item = Note>) -> Vec<Note> {
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

/// The text without empty lines where one is there already, or a block begins.
pub fn tidy(text: &str) -> String {
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
