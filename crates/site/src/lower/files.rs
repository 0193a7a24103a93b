//! Lowers how files are found and described: `root`, `alias`, `index`, `try_files`, `types`,
//! `autoindex`, `open_file_cache`, `error_page`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use nginx_conf::{Diagnostic, Span, Word};

use super::Lowering;
use super::level::Level;
use super::location_tree::BlockKind;
use super::values::{bytes, lower_bytes, seconds, to_u32, to_usize};
use crate::check::Node;
use crate::directives::constants::*;
use crate::model::*;

/// nginx's types where no level has any.
const DEFAULT_TYPES: [(&str, &str); 3] = [
    ("html", "text/html"),
    ("gif", "image/gif"),
    ("jpg", "image/jpeg"),
];

impl Lowering<'_> {
    pub fn file_settings(&mut self, level: &Level<'_>, block: BlockKind) -> FileSettings {
        FileSettings {
            root: self.root(level),
            index: self.index(level),
            try_files: match block {
                // Not inherited: it holds in its own block only.
                BlockKind::Server | BlockKind::Location => self.try_files(level).map(Arc::new),
                BlockKind::Http | BlockKind::LocationIf => None,
            },
            types: self.types(level),
            default_type: level
                .find("default_type")
                .map_or_else(|| bytes("text/plain"), |node| bytes(node.arg(0))),
            etag: self.value(level, ETAG),
            if_modified_since: self.given(level, IF_MODIFIED_SINCE),
            max_ranges: self.given(level, MAX_RANGES).map(to_usize),
            autoindex: self.autoindex(level),
            random_index: self.value(level, RANDOM_INDEX),
            open_file_cache: self.open_file_cache(level),
            sendfile: self.value(level, SENDFILE),
            disable_symlinks: self.disable_symlinks(level),
        }
    }

    fn root(&mut self, level: &Level<'_>) -> Root {
        let list = level.list(&["root", "alias"]);
        let Some(node) = list.last() else {
            return Root::Root(Template::literal(
                self.path("html").to_string_lossy().as_bytes(),
            ));
        };
        let path = self.path_template(node.arg(0));
        for builtin in [Builtin::DocumentRoot, Builtin::RealpathRoot] {
            if path
                .parts
                .contains(&Part::Variable(Variable::Builtin(builtin)))
            {
                let message = format!(
                    "the ${} variable cannot be used in the \"{}\" directive",
                    builtin.name(),
                    node.name()
                );
                self.refuse(
                    node.arg(0).span,
                    message,
                    "its value is what this directive says",
                );
            }
        }
        match node.name() {
            "alias" => Root::Alias(path),
            _ => Root::Root(without_last_slash(path)),
        }
    }

    /// A path with variables; a relative one starts at the prefix.
    pub fn path_template(&mut self, word: &Word) -> Template {
        let options = self.options;
        self.path_template_below(&options.prefix, word)
    }

    /// A path with variables; a relative one starts at `folder`.
    pub fn path_template_below(&mut self, folder: &Path, word: &Word) -> Template {
        let mut template = self.template(word);
        if word.starts_with(['/', '$']) {
            return template;
        }
        let mut prefix = folder.to_string_lossy().into_owned();
        if !prefix.ends_with('/') {
            prefix.push('/');
        }
        match template.parts.first_mut() {
            Some(Part::Literal(text)) => {
                *text = [prefix.as_bytes(), text.as_ref()].concat().into();
            }
            _ => template
                .parts
                .insert(0, Part::Literal(prefix.into_bytes().into())),
        }
        template
    }

    fn index(&mut self, level: &Level<'_>) -> Vec<Template> {
        if level.all("index").is_empty() {
            return vec![Template::literal("index.html")];
        }
        let words: Vec<&Word> = level
            .all("index")
            .iter()
            .flat_map(|node| node.args())
            .collect();
        for (position, word) in words.iter().enumerate() {
            if word.starts_with('/') && position + 1 < words.len() {
                self.report(
                    Diagnostic::warning(
                        word.span,
                        "only the last parameter in \"index\" directive should be absolute",
                    )
                    .label("names behind it are never tried"),
                );
            }
            if word.is_empty() {
                self.invalid(word, "index", "expected a file name");
            }
        }
        words.into_iter().map(|word| self.template(word)).collect()
    }

    fn try_files(&mut self, level: &Level<'_>) -> Option<TryFiles> {
        let node = level.own("try_files").first()?;
        let (last, files) = node.args().split_last()?;
        let candidates = files
            .iter()
            .map(|word| {
                let path = word.strip_suffix('/').filter(|path| !path.is_empty());
                TryFile {
                    path: self.template_in(word, 0, path.unwrap_or(word)),
                    is_directory: word.ends_with('/'),
                }
            })
            .collect();
        let fallback = match last.strip_prefix('=') {
            Some(status) => {
                let digits = status.bytes().all(|byte| byte.is_ascii_digit());
                let code = status
                    .parse::<u16>()
                    .ok()
                    .filter(|&code| digits && code <= 999);
                if code.is_none() {
                    self.invalid(last, "code", "expected = and a status, such as =404");
                }
                TryFallback::Status(code.unwrap_or(404))
            }
            None => TryFallback::Uri(self.template(last)),
        };
        Some(TryFiles {
            candidates,
            fallback,
        })
    }

    fn types(&mut self, level: &Level<'_>) -> Arc<TypeTable> {
        let nodes = level.all("types");
        let Some(first) = nodes.first() else {
            let key: fn(&(&str, &str)) -> _ = |(extension, name)| (bytes(extension), bytes(name));
            return Arc::new(DEFAULT_TYPES.iter().map(key).collect());
        };
        let written_at = first.written.span;
        if let Some(known) = self.types.get(&written_at) {
            return known.clone();
        }
        let mut table = TypeTable::default();
        let mut seen: HashMap<String, Span> = HashMap::new();
        for entry in nodes.iter().flat_map(|node| node.entries()) {
            if entry.block.is_some() || entry.args.is_empty() {
                let message = format!("invalid entry \"{}\" in \"types\"", entry.name);
                self.refuse(entry.head(), message, "expected TYPE EXTENSION ...;");
                continue;
            }
            for extension in &entry.args {
                if let Some(first) = seen.insert(extension.to_ascii_lowercase(), extension.span) {
                    self.duplicate_extension(extension, first);
                }
                table.insert(lower_bytes(extension), bytes(&entry.name));
            }
        }
        let table = Arc::new(table);
        self.types.insert(written_at, table.clone());
        table
    }

    fn duplicate_extension(&mut self, extension: &Word, first: Span) {
        let message = format!("duplicate extension \"{extension}\", the last content type wins");
        self.report(
            Diagnostic::warning(extension.span, message).note_at(first, "it is here already"),
        );
    }

    fn autoindex(&mut self, level: &Level<'_>) -> Autoindex {
        Autoindex {
            enabled: self.value(level, AUTOINDEX),
            exact_size: self.value(level, AUTOINDEX_EXACT_SIZE),
            localtime: self.value(level, AUTOINDEX_LOCALTIME),
            format: self.value(level, AUTOINDEX_FORMAT),
        }
    }

    fn open_file_cache(&mut self, level: &Level<'_>) -> Option<OpenFileCache> {
        let valid = self.value(level, OPEN_FILE_CACHE_VALID);
        let min_uses = to_u32(self.value(level, OPEN_FILE_CACHE_MIN_USES));
        let errors = self.value(level, OPEN_FILE_CACHE_ERRORS);
        let known = "max inactive off";
        let bounds = self.cache_bounds(level, "open_file_cache", seconds(60), known)?;
        Some(OpenFileCache {
            max: bounds.max,
            inactive: bounds.inactive,
            valid,
            min_uses,
            errors,
        })
    }

    fn disable_symlinks(&mut self, level: &Level<'_>) -> Option<DisableSymlinks> {
        let node = level.find("disable_symlinks")?;
        let from = match node.args().get(1) {
            None => Template::default(),
            Some(word) => match word.strip_prefix("from=") {
                Some(path) => self.template_in(word, "from=".len(), path),
                None => {
                    self.invalid(word, "parameter", "expected from=PATH");
                    return None;
                }
            },
        };
        let choices = [
            ("off", None),
            ("on", Some(false)),
            ("if_not_owner", Some(true)),
        ];
        let if_not_owner = self.choice_of(node.arg(0), &choices).flatten()?;
        Some(DisableSymlinks { if_not_owner, from })
    }

    pub fn error_pages(&mut self, level: &Level<'_>) -> Vec<ErrorPage> {
        level
            .all("error_page")
            .to_vec()
            .iter()
            .filter_map(|node| self.error_page(node))
            .collect()
    }

    fn error_page(&mut self, node: &Node<'_>) -> Option<ErrorPage> {
        let (target, before) = node.args().split_last()?;
        let (answer, codes) = match before.split_last() {
            Some((last, codes)) if last.starts_with('=') => {
                let answer = match last.get(1..).filter(|text| !text.is_empty()) {
                    None => ErrorAnswer::OfPage,
                    Some(text) => ErrorAnswer::Status(self.status_of(last, text, 100, 999)?),
                };
                (answer, codes)
            }
            _ => (ErrorAnswer::Same, before),
        };
        let mut statuses = Vec::new();
        for word in codes {
            if word.text == "499" {
                self.error(word.span, "invalid value \"499\"");
                continue;
            }
            statuses.extend(self.status_of(word, word, 300, 599));
        }
        if codes.is_empty() {
            self.refuse(
                node.span(),
                "\"error_page\" names no status",
                "expected error_page CODE ... URI;",
            );
        }
        Some(ErrorPage {
            statuses,
            answer,
            target: self.template(target),
        })
    }
}

/// `root /var/www/;` is `root /var/www;`: the request's path begins with a slash.
fn without_last_slash(mut path: Template) -> Template {
    if let Some(Part::Literal(text)) = path.parts.last_mut()
        && let Some(shorter) = text.strip_suffix(b"/")
    {
        *text = shorter.into();
        if text.is_empty() {
            path.parts.pop();
        }
    }
    path
}
