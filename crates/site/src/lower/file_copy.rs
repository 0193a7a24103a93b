//! Lowers `*_store` and `*_store_access`: responses that are kept as files. They exclude
//! `*_cache` at the same level.

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::exchange::DirectivePrefix;
use super::level::Level;
use crate::check::Node;
use crate::model::*;

/// The words of `*_store_access`, and by how many bits their permissions are shifted.
const CLASSES: [(&str, u32); 3] = [("user", 6), ("group", 3), ("all", 0)];
const PERMISSIONS: [(&str, u32); 2] = [("rw", 6), ("r", 4)];
/// The permissions of the user if `user` is not named.
const USER_MODE: u32 = 0o600;

impl Lowering<'_> {
    pub fn file_copy(&mut self, level: &Level<'_>, protocol: &DirectivePrefix) -> Option<FileCopy> {
        self.refuse_cache_beside_store(level, protocol);
        let mode = self.file_mode(level, &protocol.name("_store_access"));
        let node = level.find(&protocol.name("_store"))?;
        let word = node.arg(0);
        let path = match word.text.as_str() {
            "off" => return None,
            "on" => None,
            _ => {
                self.refuse_steps_up(word);
                Some(self.path_template(word))
            }
        };
        let is_replaced = is_on_nearest(level, protocol, "_cache");
        (!is_replaced).then_some(FileCopy { path, mode })
    }

    fn refuse_cache_beside_store(&mut self, level: &Level<'_>, protocol: &DirectivePrefix) {
        let (store, cache) = (protocol.name("_store"), protocol.name("_cache"));
        let on_here = |name| level.own(name).iter().copied().find(|node| is_on(node));
        let (Some(node), Some(_)) = (on_here(&store), on_here(&cache)) else {
            return;
        };
        self.report(
            Diagnostic::error(
                node.span(),
                format!("\"{store}\" is incompatible with \"{cache}\""),
            )
            .label("a response goes into the cache or into a file")
            .hint("leave out one of the two lines"),
        );
    }

    /// The values of variables are checked with each request.
    fn refuse_steps_up(&mut self, word: &Word) {
        if word.split('/').any(|segment| segment == "..") {
            self.invalid(word, "path", "expected a path without \"..\"");
        }
    }

    fn file_mode(&mut self, level: &Level<'_>, name: &str) -> u32 {
        let Some(node) = level.find(name) else {
            return USER_MODE;
        };
        let (mut mode, mut names_user) = (0, false);
        for word in node.args() {
            let Some((class, bits)) = permission(word) else {
                let expected = "expected user, group or all, and :r or :rw";
                self.invalid(word, "permission", expected);
                continue;
            };
            mode |= bits;
            names_user |= class == "user";
        }
        if names_user { mode } else { mode | USER_MODE }
    }
}

/// `group:rw` as `("group", 0o060)`.
fn permission(word: &str) -> Option<(&'static str, u32)> {
    let (class, permission) = word.split_once(':')?;
    let (class, shift) = CLASSES.iter().find(|(name, _)| *name == class)?;
    let (_, bits) = PERMISSIONS.iter().find(|(name, _)| *name == permission)?;
    Some((class, bits << shift))
}

/// Is `rest` (`_store` or `_cache`) switched on at the nearest level with a line of the two? The
/// other one then has no effect.
pub(super) fn is_on_nearest(level: &Level<'_>, protocol: &DirectivePrefix, rest: &str) -> bool {
    let name = protocol.name(rest);
    let both = [protocol.name("_store"), protocol.name("_cache")];
    let nearest = level.list(&both.each_ref().map(String::as_str));
    let mut of_name = nearest.iter().filter(|node| node.name() == name);
    of_name.any(|node| is_on(node))
}

fn is_on(node: &Node<'_>) -> bool {
    node.arg(0).text != "off"
}
