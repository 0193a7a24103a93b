//! `Include` and `Define`: one tree of all files, with the values of variables in it.

use htaccess::item::{Item, Mistake, parse};

/// Files in one another, and all files together.
const MAX_DEPTH: usize = 10;
const MAX_FILES: usize = 1000;
/// Items of all files.
const MAX_ITEMS: usize = 100_000;

/// Reads the files that match a pattern: their names and texts. The error is the reason why they cannot
/// be read.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<Vec<(String, String)>, String>;

/// Variables that Debian sets before it starts Apache.
const DEBIAN: [(&str, &str); 4] = [
    ("APACHE_LOG_DIR", "/var/log/apache2"),
    ("APACHE_RUN_DIR", "/run/apache2"),
    ("APACHE_LOCK_DIR", "/var/lock/apache2"),
    ("APACHE_CONFDIR", "/etc/apache2"),
];

/// Puts included files, and the values of variables, in their place.
pub struct Expander<'a> {
    load: Load<'a>,
    variables: Vec<(String, String)>,
    files: usize,
    items: usize,
    pub mistakes: Vec<Mistake>,
}

impl<'a> Expander<'a> {
    pub fn new(load: Load<'a>) -> Expander<'a> {
        let debian = DEBIAN.iter().map(|it| (it.0.to_owned(), it.1.to_owned()));
        Expander {
            load,
            variables: debian.collect(),
            files: 0,
            items: 0,
            mistakes: Vec::new(),
        }
    }

    pub fn expand(&mut self, items: Vec<Item>, depth: usize) -> Vec<Item> {
        let mut all = Vec::new();
        for mut item in items {
            self.items += 1;
            if self.items > MAX_ITEMS {
                self.mistake(&item, &format!("more than {MAX_ITEMS} lines in all files"));
                break;
            }
            for argument in &mut item.args {
                *argument = self.with_values(argument);
            }
            item.text = self.with_values(&item.text);
            match item.name.as_str() {
                "define" => {
                    if let [name, value] = &item.args[..] {
                        self.variables.insert(0, (name.clone(), value.clone()));
                    }
                    all.push(item);
                }
                "include" | "includeoptional" => self.include(item, depth, &mut all),
                _ => {
                    if let Some(block) = item.block.take() {
                        item.block = Some(self.expand(block, depth));
                    }
                    all.push(item);
                }
            }
        }
        all
    }

    fn include(&mut self, item: Item, depth: usize, all: &mut Vec<Item>) {
        let pattern = item.args.first().cloned().unwrap_or_default();
        let files = match (self.load)(&pattern) {
            Ok(files) if files.is_empty() && item.name == "include" => {
                return self.mistake(&item, "there is no such file");
            }
            Ok(files) => files,
            Err(message) => return self.mistake(&item, &message),
        };
        for (name, text) in files {
            self.files += 1;
            if depth >= MAX_DEPTH || self.files > MAX_FILES {
                return self.mistake(&item, "too many files include one another");
            }
            let parsed = parse(&text, &name);
            self.mistakes.extend(parsed.mistakes);
            let inner = self.expand(parsed.items, depth + 1);
            all.extend(inner);
        }
    }

    fn mistake(&mut self, item: &Item, message: &str) {
        self.mistakes.push(Mistake {
            place: item.place.clone(),
            message: format!("{}: {message}", item.text),
        });
    }

    /// The text with the values of `${NAME}`; of a variable that is not known, the name stays.
    fn with_values(&self, text: &str) -> String {
        let mut written = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let name = rest[at + 2..].split('}').next().unwrap_or_default();
            let known = self.variables.iter().find(|it| it.0 == name);
            written.push_str(&rest[..at]);
            match known {
                Some((_, value)) => {
                    written.push_str(value);
                    rest = &rest[at + 3 + name.len()..];
                }
                None => {
                    written.push_str("${");
                    rest = &rest[at + 2..];
                }
            }
        }
        written + rest
    }
}
