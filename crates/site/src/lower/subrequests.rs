//! Lowers `auth_request`, `mirror` and `post_action`: requests that the server makes to paths of the same
//! site.

use std::sync::Arc;

use nginx_conf::Word;

use super::Lowering;
use super::level::Level;
use crate::directives::constants::*;
use crate::model::*;

impl Lowering<'_> {
    pub fn auth_request(&mut self, level: &Level<'_>) -> Option<Arc<AuthRequest>> {
        let mut set = Vec::new();
        for node in level.all("auth_request_set").to_vec() {
            let value = self.template(node.arg(1));
            let target = self.set_target(node.arg(0));
            set.extend(target.map(|target| (target, value)));
        }
        let word = level.unless_off("auth_request")?.arg(0);
        let target = self.subrequest_target(word);
        Some(Arc::new(AuthRequest { target, set }))
    }

    pub fn mirror(&mut self, level: &Level<'_>) -> Option<Arc<Mirror>> {
        let with_body = self.value(level, MIRROR_REQUEST_BODY);
        let nodes = level.all("mirror").to_vec();
        let words: Vec<&Word> = nodes.iter().map(|node| node.arg(0)).collect();
        if words.is_empty() {
            return None;
        }
        if let Some(off) = words.iter().find(|word| word.text == "off") {
            if words.len() > 1 {
                self.invalid(
                    off,
                    "value",
                    "mirror off must be the only mirror line at its level",
                );
            }
            return None;
        }
        let targets = words
            .into_iter()
            .map(|word| self.subrequest_target(word))
            .collect();
        Some(Arc::new(Mirror { targets, with_body }))
    }

    pub fn post_action(&mut self, level: &Level<'_>) -> Option<SubrequestTarget> {
        let word = level.word("post_action")?;
        (word.text != "off").then(|| self.subrequest_target(word))
    }

    fn subrequest_target(&mut self, word: &Word) -> SubrequestTarget {
        if !word.starts_with('/') {
            self.invalid(
                word,
                "path",
                "expected a path of this site, with / at its start",
            );
        }
        let (path, args) = match word.split_once('?') {
            Some((path, args)) => (path, Some(args)),
            None => (word.text.as_str(), None),
        };
        SubrequestTarget {
            path: path.as_bytes().into(),
            args: args.map(|args| args.as_bytes().into()),
        }
    }
}
