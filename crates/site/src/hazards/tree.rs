//! The blocks of a configuration as rules look at them: a block's own lines, the lines it inherits, and
//! which location of a server answers a path.
//!
//! It is made from the syntax tree, so that a configuration which cannot be served is looked at, too. Locations
//! are chosen as nginx chooses them.

use nginx_conf::{Ast, Directive, Span, Word};
use pcre2::bytes::{Regex, RegexBuilder};

use super::values::names_script;
use crate::check::inside;
use crate::directives::Context;

/// All blocks; the first is the main context.
pub(super) struct Blocks<'a> {
    blocks: Vec<BlockData<'a>>,
}

struct BlockData<'a> {
    context: Context,
    written: Option<&'a Directive>,
    lines: &'a [Directive],
    /// The pattern of a location that has one.
    pattern: Option<Regex>,
    outer: Option<usize>,
    inner: Vec<usize>,
}

/// The pattern of a location, if it is one that can be read.
fn pattern(written: &Directive) -> Option<Regex> {
    let [kind, text] = written.args.as_slice() else {
        return None;
    };
    let is_pattern = ["~", "~*"].contains(&&*kind.text) && written.name.text == "location";
    let builder = || {
        RegexBuilder::new()
            .caseless(kind.text == "~*")
            .build(text)
            .ok()
    };
    is_pattern.then(builder).flatten()
}

/// One block.
#[derive(Clone, Copy)]
pub(super) struct Block<'t, 'a> {
    blocks: &'t Blocks<'a>,
    id: usize,
}

/// How a location is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocationKind {
    Exact,
    Prefix,
    /// `^~`: patterns are not tried.
    FirmPrefix,
    Pattern,
    Named,
}

impl<'a> Blocks<'a> {
    pub(super) fn of(ast: &'a Ast) -> Self {
        let mut blocks = Self { blocks: Vec::new() };
        blocks.add(None, &ast.directives, Context::Main, None);
        blocks
    }

    /// Nesting is bounded by the parser.
    fn add(
        &mut self,
        written: Option<&'a Directive>,
        lines: &'a [Directive],
        context: Context,
        outer: Option<usize>,
    ) -> usize {
        let id = self.blocks.len();
        self.blocks.push(BlockData {
            context,
            written,
            lines,
            pattern: written.and_then(pattern),
            outer,
            inner: Vec::new(),
        });
        for line in lines {
            let inner = inside(&line.name, context);
            let has_directives = inner != context || line.name.text == "location";
            if let Some(block) = line.block.as_ref().filter(|_| has_directives) {
                let child = self.add(Some(line), block, inner, Some(id));
                let data = self.blocks.get_mut(id);
                data.into_iter().for_each(|data| data.inner.push(child));
            }
        }
        id
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Block<'_, 'a>> {
        (0..self.blocks.len()).map(|id| Block { blocks: self, id })
    }
}

impl<'t, 'a> Block<'t, 'a> {
    fn data(self) -> Option<&'t BlockData<'a>> {
        self.blocks.blocks.get(self.id)
    }

    fn at(self, id: usize) -> Self {
        Self { id, ..self }
    }

    pub(super) fn context(self) -> Context {
        self.data().map_or(Context::Main, |data| data.context)
    }

    pub(super) fn is(self, context: Context) -> bool {
        self.context() == context
    }

    /// The directive that opens it.
    pub(super) fn written(self) -> Option<&'a Directive> {
        self.data()?.written
    }

    pub(super) fn lines(self) -> &'a [Directive] {
        self.data().map_or(&[], |data| data.lines)
    }

    pub(super) fn outer(self) -> Option<Self> {
        self.data()?.outer.map(|id| self.at(id))
    }

    pub(super) fn inner(self) -> impl Iterator<Item = Self> + use<'t, 'a> {
        let inner = self.data().map_or(&[][..], |data| &data.inner);
        inner.iter().map(move |id| self.at(*id))
    }

    /// It and all that enclose it, from the inside.
    pub(super) fn outwards(self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |block| block.outer())
    }

    /// All blocks within it, without itself.
    pub(super) fn within(self) -> Vec<Self> {
        let mut found: Vec<Self> = self.inner().collect();
        let mut next = 0;
        while let Some(block) = found.get(next).copied() {
            found.extend(block.inner());
            next += 1;
        }
        found
    }

    pub(super) fn server(self) -> Option<Self> {
        self.outwards().find(|block| block.is(Context::Server))
    }

    /// The lines of this name in the block itself.
    pub(super) fn own(self, name: &str) -> impl Iterator<Item = &'a Directive> {
        self.lines()
            .iter()
            .filter(move |line| line.name.text == name)
    }

    pub(super) fn has(self, name: &str) -> bool {
        self.own(name).next().is_some()
    }

    /// The lines that hold here: those of the nearest block that has any.
    pub(super) fn effective(self, name: &str) -> Vec<&'a Directive> {
        let all = self
            .outwards()
            .map(|block| block.own(name).collect::<Vec<_>>());
        let mut all = all.filter(|lines| !lines.is_empty());
        all.next().unwrap_or_default()
    }

    /// The first argument of the last line that holds here.
    pub(super) fn value(self, name: &str) -> Option<&'a Word> {
        self.effective(name).last()?.args.first()
    }

    pub(super) fn value_is(self, name: &str, value: &str) -> bool {
        self.value(name).is_some_and(|word| word.text == value)
    }

    /// Returns how the location is chosen, and its prefix or pattern.
    pub(super) fn location(self) -> Option<(LocationKind, &'a Word)> {
        let written = self.written().filter(|it| it.name.text == "location")?;
        match written.args.as_slice() {
            [kind, text] => match &*kind.text {
                "=" => Some((LocationKind::Exact, text)),
                "^~" => Some((LocationKind::FirmPrefix, text)),
                "~" | "~*" => Some((LocationKind::Pattern, text)),
                _ => None,
            },
            [text] if text.starts_with('@') => Some((LocationKind::Named, text)),
            [text] => Some((LocationKind::Prefix, text)),
            _ => None,
        }
    }

    /// Returns the place that messages point to: the head of the block.
    pub(super) fn head(self) -> Option<Span> {
        self.written().map(Directive::head)
    }

    /// Is the path one that it would answer if no other location did?
    pub(super) fn matches(self, path: &str) -> bool {
        let Some((kind, text)) = self.location() else {
            return false;
        };
        match kind {
            LocationKind::Exact => text.text == path,
            LocationKind::Prefix | LocationKind::FirmPrefix => path.starts_with(&*text.text),
            LocationKind::Pattern => {
                let pattern = self.data().and_then(|data| data.pattern.as_ref());
                pattern.is_some_and(|it| it.is_match(path.as_bytes()).unwrap_or(false))
            }
            LocationKind::Named => false,
        }
    }

    /// The location below this block that answers the path, or the block itself.
    pub(super) fn chosen(self, path: &str) -> Self {
        self.choose(path).map_or(self, |(block, _)| block)
    }

    /// The location, and whether no pattern further out may displace it.
    fn choose(self, path: &str) -> Option<(Self, bool)> {
        let of_kind = |wanted: &[LocationKind]| {
            let found = self.inner().filter(|it| {
                let kind = it.location().map(|(kind, _)| kind);
                kind.is_some_and(|kind| wanted.contains(&kind)) && it.matches(path)
            });
            found.collect::<Vec<_>>()
        };
        if let Some(exact) = of_kind(&[LocationKind::Exact]).first() {
            return Some((*exact, true));
        }
        let prefixes = of_kind(&[LocationKind::Prefix, LocationKind::FirmPrefix]);
        let length = |block: &Self| block.location().map_or(0, |(_, text)| text.len());
        let prefix = prefixes.into_iter().max_by_key(length);
        let found = prefix.map(|block| block.choose(path).unwrap_or((block, false)));
        if let Some((block, true)) = found {
            return Some((block, true));
        }
        let is_firm = |block: Self| {
            let kind = block.location().map(|(kind, _)| kind);
            kind == Some(LocationKind::FirmPrefix)
        };
        if prefix.is_some_and(is_firm) {
            return found.map(|(block, _)| (block, true));
        }
        match of_kind(&[LocationKind::Pattern]).first() {
            Some(pattern) => {
                let inner = pattern.choose(path);
                Some((inner.map_or(*pattern, |(block, _)| block), true))
            }
            None => found,
        }
    }

    /// Does the location run the script at this path?
    pub(super) fn runs(self, path: &str) -> bool {
        let is_pattern = matches!(self.location(), Some((LocationKind::Pattern, _)));
        let is_closed = self.is_closed() || self.has("rewrite") || self.has("internal");
        let params = self.effective("fastcgi_param").into_iter();
        let mut scripts = params.filter(|line| {
            let name = line.args.first();
            name.is_some_and(|name| name.text == "SCRIPT_FILENAME")
        });
        let is_fixed = scripts
            .next_back()
            .is_some_and(|line| line.args.get(1).is_some_and(|value| !names_script(value)));
        is_pattern && self.matches(path) && self.has("fastcgi_pass") && !is_closed && !is_fixed
    }

    /// Does it run any script that a request names, and not just the one of a front controller?
    pub(super) fn runs_any_script(self) -> bool {
        self.runs("/x/x.php")
    }

    /// Is a stranger refused here?
    pub(super) fn is_closed(self) -> bool {
        self.is_restricted() || self.returns_error()
    }

    /// Does each request end in a status from 400 to 499?
    pub(super) fn returns_error(self) -> bool {
        let codes = self.own("return").filter_map(|line| line.args.first());
        codes.into_iter().any(|code| code.starts_with('4'))
    }

    /// Are addresses, passwords or a subrequest asked for, by this self or one around it?
    pub(super) fn is_restricted(self) -> bool {
        self.effective("deny")
            .iter()
            .any(|line| line.args.first().is_some_and(|word| word.text == "all"))
            || self
                .value("auth_basic")
                .is_some_and(|realm| realm.text != "off")
            || self
                .value("auth_request")
                .is_some_and(|uri| uri.text != "off")
            || self.has("internal")
    }

    /// A location as it is written.
    pub(super) fn shown(self) -> String {
        let Some(written) = self.written() else {
            return "the server".to_owned();
        };
        let words: Vec<&str> = written.args.iter().map(|word| &*word.text).collect();
        format!("{} {}", written.name, words.join(" "))
            .trim_end()
            .to_owned()
    }
}
