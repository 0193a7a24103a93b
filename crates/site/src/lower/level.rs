//! One block of a configuration and the blocks around it: the answer to the two questions of
//! nginx's inheritance. Which is the nearest level with this directive, and which is the
//! nearest with any line of this list?

use std::collections::HashMap;

use foldhash::fast::RandomState;
use nginx_conf::Word;

use crate::check::Node;
use crate::directives::{PREFIXES, by_name};

/// The directives of a block, and of the blocks around it.
pub(crate) struct Level<'t> {
    pub nodes: &'t [Node<'t>],
    lines: HashMap<&'t str, Vec<&'t Node<'t>>, RandomState>,
    parent: Option<&'t Level<'t>>,
}

impl<'t> Level<'t> {
    pub fn new(nodes: &'t [Node<'t>], parent: Option<&'t Level<'t>>) -> Self {
        let mut lines: HashMap<&str, Vec<&Node<'_>>, RandomState> = HashMap::default();
        for node in nodes {
            lines.entry(node.name()).or_default().push(node);
        }
        Self {
            nodes,
            lines,
            parent,
        }
    }

    /// The lines of `name` at this level itself.
    ///
    /// # Panics
    /// In debug builds, if the table of directives has no entry of that name: the caller has
    /// misspelled it, and no line could ever be found.
    pub fn own(&self, name: &str) -> &[&'t Node<'t>] {
        assert_is_in_the_table(name);
        #[cfg(test)]
        tests::ASKED.with_borrow_mut(|asked| asked.insert(name.to_owned()));
        self.lines.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a block around this one has the same settings of a protocol to upstreams: no line here
    /// has its prefix or concerns the cache, so that there is neither a target nor a new mistake.
    pub fn only_inherits(&self, prefix: &str) -> bool {
        let concerns = |node: &Node<'_>| concerns_protocol(node.name(), prefix);
        self.parent.is_some() && !self.nodes.iter().any(concerns)
    }

    /// The line of `name` at the nearest level that has one.
    pub fn find(&self, name: &str) -> Option<&'t Node<'t>> {
        self.all(name).last().copied()
    }

    /// The first argument of that line.
    pub fn word(&self, name: &str) -> Option<&'t Word> {
        Some(self.find(name)?.arg(0))
    }

    /// The nearest line of `name`, unless its value is `off`.
    pub fn unless_off(&self, name: &str) -> Option<&'t Node<'t>> {
        self.find(name).filter(|node| node.arg(0).text != "off")
    }

    /// The lines of `name` at the nearest level that has any. Lines further out have no effect.
    pub fn all(&self, name: &str) -> &[&'t Node<'t>] {
        let mut level = self;
        loop {
            let own = level.own(name);
            match level.parent {
                Some(parent) if own.is_empty() => level = parent,
                _ => return own,
            }
        }
    }

    /// Returns the lines of `name` that hold here; `rule` is the directive for their inheritance: `merge` adds
    /// those further out, `off` takes none of them.
    pub fn inherited(&self, name: &str, rule: &str) -> Vec<&'t Node<'t>> {
        let mut lines = Vec::new();
        let mut level = self;
        loop {
            let own = level.own(name);
            lines.extend_from_slice(own);
            let takes_outer = match level.word(rule).map(|word| word.text.as_str()) {
                Some("merge") => true,
                Some("off") => false,
                _ => own.is_empty(),
            };
            match level.parent {
                Some(parent) if takes_outer => level = parent,
                _ => return lines,
            }
        }
    }

    /// The lines of all `names` together, of all levels, those of outer ones first.
    pub fn joined(&self, names: &[&str]) -> Vec<&'t Node<'t>> {
        names.iter().copied().for_each(assert_is_in_the_table);
        let mut lines = match self.parent {
            Some(parent) => parent.joined(names),
            None => Vec::new(),
        };
        // A block may have thousands of lines, and is asked by each block within.
        if names.iter().any(|name| !self.own(name).is_empty()) {
            let own = self.nodes.iter();
            lines.extend(own.filter(|node| names.contains(&node.name())));
        }
        lines
    }

    /// The lines of all `names` together, in order, at the nearest level that
    /// has any of them: `allow` and `deny` are one list.
    pub fn list(&self, names: &[&str]) -> Vec<&'t Node<'t>> {
        names.iter().copied().for_each(assert_is_in_the_table);
        let mut level = self;
        loop {
            if names.iter().any(|name| !level.own(name).is_empty()) {
                return level
                    .nodes
                    .iter()
                    .filter(|node| names.contains(&node.name()))
                    .collect();
            }
            match level.parent {
                Some(parent) => level = parent,
                None => return Vec::new(),
            }
        }
    }
}

/// May the protocol of this prefix read the directive, so that a line of it is a reason to look?
fn concerns_protocol(name: &str, prefix: &str) -> bool {
    let rest = name.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.starts_with('_')) || name.starts_with("cache_")
}

/// Is there an entry for the name? memcached does not have all directives of the families that are
/// asked for with the prefix of each protocol.
fn assert_is_in_the_table(name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    let families = name.strip_prefix("memcached").into_iter();
    let mut names = families.flat_map(|rest| PREFIXES.iter().map(move |it| format!("{it}{rest}")));
    let is_there = !by_name(name).is_empty() || names.any(|name| !by_name(&name).is_empty());
    assert!(is_there, "no directive is called \"{name}\"");
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::check::check;
    use crate::lower::location::LocationMatcher;
    use crate::lower::location_tree::BlockKind;
    use crate::lower::{LowerOptions, Lowering};

    thread_local! {
        /// The directives that were asked for by this thread.
        pub static ASKED: RefCell<BTreeSet<String>> = RefCell::default();
    }

    /// [`Level::only_inherits`] skips a protocol by the names of lines. This holds only if the protocol reads
    /// no others.
    #[test]
    fn a_protocol_reads_only_the_directives_by_which_a_level_is_skipped() {
        for (prefix, lines) in [
            ("fastcgi", "fastcgi_pass 127.0.0.1:9000; fastcgi_cache z;"),
            ("proxy", "proxy_pass https://127.0.0.1:9000; proxy_cache z;"),
            (
                "memcached",
                "memcached_pass 127.0.0.1:11211; set $memcached_key $uri;",
            ),
        ] {
            let loaded = nginx_conf::parse("test.conf", location(lines).as_bytes());
            let mut diagnostics = Vec::new();
            let nodes = check(&loaded.ast, &mut diagnostics);
            let options = LowerOptions::new(Path::new("/p"), Path::new("/p"));
            let mut lowering = Lowering::new(&options, &loaded.sources, diagnostics);
            let http = &nodes[0].children;
            let server = &http.last().unwrap().children;
            let location = &server[0].children;
            let http = Level::new(http, None);
            let server = Level::new(server, Some(&http));
            let level = Level::new(location, Some(&server));
            ASKED.take();
            let matcher = LocationMatcher::server_level();
            let pass = match prefix {
                "fastcgi" => lowering.fastcgi(&level, BlockKind::Location),
                "proxy" => lowering.proxy(&level, BlockKind::Location, &matcher),
                _ => lowering.memcached(&level),
            };
            assert!(pass.is_some(), "{prefix}");
            let asked = ASKED.take();
            assert!(asked.len() > 20, "{prefix}: {asked:?}");
            let strange: Vec<_> = asked
                .iter()
                .filter(|name| !concerns_protocol(name, prefix))
                .collect();
            assert!(strange.is_empty(), "{prefix} also reads {strange:?}");
        }
    }

    fn location(lines: &str) -> String {
        format!("http {{ server {{ location / {{ {lines} }} }} }}")
    }
}
