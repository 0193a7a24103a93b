//! The tree of a text: directives, and sections with their content. No directive means anything here.

use std::sync::Arc;

use super::lexer::{Line, lines, rewrite_words, words};

/// Sections in one another; deeper ones are not read.
const MAX_DEPTH: usize = 64;

/// The place of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<str>,
    /// From 1.
    pub line: usize,
}

/// A directive, or a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub place: Place,
    /// In lower case.
    pub name: String,
    pub args: Vec<String>,
    /// The line as it was written.
    pub text: String,
    /// The items of a section.
    pub block: Option<Vec<Item>>,
}

/// A mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub place: Place,
    pub message: String,
}

/// A text as a tree. The mistakes are those of sections: the nesting of lines is not known then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedText {
    pub items: Vec<Item>,
    pub mistakes: Vec<Mistake>,
}

/// Reads a text; `file` is its name in messages.
pub fn parse(text: &str, file: &str) -> ParsedText {
    let file: Arc<str> = Arc::from(file);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut open: Vec<Item> = Vec::new();
    let mut parsed = ParsedText::default();
    for line in lines(text) {
        let place = Place {
            file: Arc::clone(&file),
            line: line.number,
        };
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if let Some(name) = text.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim().to_ascii_lowercase();
            match open.pop_if(|it| it.name == name) {
                Some(section) => add(&mut open, &mut parsed.items, section),
                None => parsed.mistakes.push(Mistake {
                    place,
                    message: format!("{text} ends no section: none of this name is open here"),
                }),
            }
            continue;
        }
        let item = item(&line, place);
        match item.block {
            Some(_) if open.len() < MAX_DEPTH => open.push(item),
            Some(_) => parsed.mistakes.push(Mistake {
                place: item.place,
                message: format!("{text} is in more than {MAX_DEPTH} sections"),
            }),
            None => add(&mut open, &mut parsed.items, item),
        }
    }
    while let Some(section) = open.pop() {
        parsed.mistakes.push(Mistake {
            place: section.place.clone(),
            message: format!("{} has no end: write </{}>", section.text, section.name),
        });
        add(&mut open, &mut parsed.items, section);
    }
    parsed
}

fn add(open: &mut [Item], top: &mut Vec<Item>, item: Item) {
    let block = open.last_mut().and_then(|it| it.block.as_mut());
    block.unwrap_or(top).push(item);
}

fn item(line: &Line, place: Place) -> Item {
    let text = line.text.trim();
    let (head, is_section) = match text.strip_prefix('<') {
        Some(head) => (head.strip_suffix('>').unwrap_or(head), true),
        None => (text, false),
    };
    let name = head.split_whitespace().next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let words = match name.starts_with("rewrite") {
        true => rewrite_words(head),
        false => words(head),
    };
    Item {
        place,
        args: words.into_iter().skip(1).collect(),
        name,
        text: text.to_owned(),
        block: is_section.then(Vec::new),
    }
}

impl Item {
    /// The argument at `at`, in lower case.
    pub fn lower(&self, at: usize) -> String {
        self.args
            .get(at)
            .map_or_else(String::new, |it| it.to_ascii_lowercase())
    }

    /// All arguments, in lower case.
    pub fn all_lower(&self) -> Vec<String> {
        self.args.iter().map(|it| it.to_ascii_lowercase()).collect()
    }

    /// Directives, and heads of sections, in it and itself.
    pub fn count(&self) -> usize {
        let inner = self.block.iter().flatten();
        1 + inner.map(Item::count).sum::<usize>()
    }

    /// Whether a line in it, or the item itself, keeps visitors out.
    pub fn denies(&self) -> bool {
        let args = self.all_lower();
        let has = |word: &str| args.iter().any(|it| it == word);
        let is_own = match self.name.as_str() {
            "require" => !has("granted"),
            "deny" | "authtype" | "authmerging" | "sslrequire" | "sslrequiressl"
            | "sslverifyclient" => true,
            "order" => args.iter().any(|it| it.starts_with("allow")),
            "rewriterule" => {
                let flags = args.get(2).map_or("", String::as_str);
                forbids(flags)
            }
            "redirect" | "redirectmatch" => args
                .first()
                .is_some_and(|it| ["403", "404", "410", "gone"].contains(&it.as_str())),
            name => name.starts_with("sec") || name.starts_with("dos") || name == "allowmethods",
        };
        is_own || self.block.iter().flatten().any(Item::denies)
    }
}

/// Do these flags of a rule, in lower case, refuse?
pub fn forbids(flags: &str) -> bool {
    let refusing = ["f", "forbidden", "r=403", "r=404", "r=410", "g", "gone"];
    let mut flags = flags.trim_matches(['[', ']']).split(',');
    flags.any(|flag| refusing.contains(&flag.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_hold_what_is_in_them() {
        let parsed = parse(
            "A b\n<IfModule x>\n<Files \"c d\">\nE\n</Files>\n</IFMODULE>\nF",
            "f",
        );
        assert_eq!(parsed.mistakes, []);
        let names: Vec<&str> = parsed.items.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "ifmodule", "f"]);
        let files = &parsed.items[1].block.as_ref().expect("a section")[0];
        assert_eq!(
            (&files.args[0][..], files.place.line, files.count()),
            ("c d", 3, 2)
        );
    }

    #[test]
    fn sections_that_do_not_fit_are_mistakes() {
        for (text, line, message) in [
            ("<Files a>\nB", 1, "<Files a> has no end: write </files>"),
            (
                "\n</Files>",
                2,
                "</Files> ends no section: none of this name is open here",
            ),
            (
                "<A>\n</B>\n</A>",
                2,
                "</B> ends no section: none of this name is open here",
            ),
        ] {
            let parsed = parse(text, "f");
            assert_eq!(parsed.mistakes.len(), 1, "{text}");
            assert_eq!(
                (
                    parsed.mistakes[0].place.line,
                    &parsed.mistakes[0].message[..]
                ),
                (line, message)
            );
        }
        assert!(!parse(&"<A>\n".repeat(1000), "f").mistakes.is_empty());
    }
}
