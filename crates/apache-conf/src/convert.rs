//! `.htaccess` files in, the inside of a `server` out: the server reads these files itself.

use htaccess::item::{Item, Mistake, parse};
use nginx_conf::text::Conf;

use crate::note::{Note, NoteKind};
use crate::rules;
use crate::virtual_host::Server;
use crate::write;

/// Settings of the conversion that the configuration texts do not have.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The address of PHP-FPM, written as in `fastcgi_pass`.
    pub php: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct HtaccessFile<'a> {
    /// The name of the file in messages.
    pub name: &'a str,
    pub text: &'a str,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    /// The configuration.
    pub text: String,
    /// Lines that have another effect than in Apache, in the order in which they were read.
    pub notes: Vec<Note>,
    /// Sections that do not fit together. Their lines are read all the same.
    pub mistakes: Vec<Mistake>,
    /// Directives and heads of sections in the texts.
    pub lines: usize,
    /// Scripts are refused somewhere, since it is not known where PHP listens.
    pub refuses_scripts: bool,
}

impl Conversion {
    /// How many lines are of this kind.
    pub fn count(&self, kind: NoteKind) -> usize {
        self.notes.iter().filter(|it| it.kind == kind).count()
    }

    /// Lines that are obeyed, or have a counterpart.
    pub fn translated(&self) -> usize {
        self.lines.saturating_sub(self.notes.len())
    }
}

/// Lets a server read the `.htaccess` files of its site; the result is for its inside.
pub fn convert_htaccess(files: &[HtaccessFile<'_>], options: &Options) -> Conversion {
    let mut conversion = Conversion::default();
    for file in files {
        let parsed = parse(file.text, file.name);
        conversion.lines += parsed.items.iter().map(Item::count).sum::<usize>();
        if parsed.mistakes.is_empty() {
            let notes = htaccess::read_rules(file.text.as_bytes()).notes;
            let found = notes.iter().filter_map(|note| {
                let item = rules::line(&parsed.items, note.line)?;
                Some(rules::note_of(item, note))
            });
            conversion.notes.extend(found);
        }
        conversion.mistakes.extend(parsed.mistakes);
    }
    conversion.notes = in_order(std::mem::take(&mut conversion.notes).into_iter());
    let server = Server {
        php: options.php.clone(),
        reads_htaccess: true,
        ..Server::default()
    };
    let mut conf = Conf::default();
    comments(&mut conf, &conversion.notes);
    write::inside(&mut conf, &server);
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

/// The lines that have another effect, as comments.
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
