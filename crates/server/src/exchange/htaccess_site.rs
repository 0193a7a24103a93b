//! The location of a server's `.htaccess` files: the folders that its paths stand for.

use std::sync::Arc;

use htaccess::{Mount, ServerRules};
use site::{Content, Root, Server, Site};

/// The files of a server with `htaccess on` or `apache_rules`.
#[derive(Debug, Default)]
pub struct HtaccessSite {
    /// The folder of the whole site last.
    pub mounts: Vec<Mount>,
    /// The names of `index`.
    pub indexes: Vec<String>,
    /// `apache_rules`
    pub rules: Arc<ServerRules>,
    /// `.htaccess` files count, where the rules do not say otherwise.
    pub reads_files: bool,
    /// `autoindex`, of the server.
    pub lists_folders: bool,
}

/// Returns the location of all servers' files; `None` for a server that does not obey
/// such files.
pub fn sites(site: &Site) -> Vec<Option<HtaccessSite>> {
    site.http.servers.iter().map(HtaccessSite::of).collect()
}

impl HtaccessSite {
    fn of(server: &Server) -> Option<HtaccessSite> {
        if !server.obeys_htaccess && server.apache_rules.is_none() {
            return None;
        }
        let rules = server.apache_rules.clone().unwrap_or_default();
        let whole = server.settings(Server::ROOT);
        let mut mounts = Vec::new();
        for prefix in &server.top.prefixes {
            let settings = server.settings(prefix.location);
            if rules.is_given && is_of_another_server(&settings.content) {
                let folder = Vec::new();
                let prefix = with_slash(&prefix.prefix);
                mounts.push(Mount { prefix, folder });
                continue;
            }
            if settings.files.root == whole.files.root {
                continue;
            }
            mounts.extend(mount(&prefix.prefix, &settings.files.root));
        }
        // The longest prefix counts.
        mounts.sort_by_key(|it| std::cmp::Reverse(it.prefix.len()));
        mounts.extend(mount(b"/", &whole.files.root));
        let names = whole.files.index.iter().filter_map(|it| it.as_constant());
        Some(HtaccessSite {
            mounts,
            rules,
            reads_files: server.obeys_htaccess,
            lists_folders: whole.files.autoindex.enabled,
            indexes: names
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect(),
        })
    }
}

/// The folder that a prefix stands for; `None` if variables say so.
fn mount(prefix: &[u8], root: &Root) -> Option<Mount> {
    let trimmed = |path: &[u8]| path.strip_suffix(b"/").unwrap_or(path).to_vec();
    let folder = match root {
        Root::Root(root) => {
            let below = trimmed(prefix);
            [&trimmed(root.as_constant()?), &below[..]].concat()
        }
        Root::Alias(folder) => trimmed(folder.as_constant()?),
    };
    Some(Mount {
        prefix: with_slash(prefix),
        folder,
    })
}

fn with_slash(prefix: &[u8]) -> Vec<u8> {
    match prefix.strip_suffix(b"/") {
        Some(_) => prefix.to_vec(),
        None => [prefix, b"/"].concat(),
    }
}

fn is_of_another_server(content: &Content) -> bool {
    match content {
        Content::Pass(pass) => pass.fastcgi().is_none(),
        _ => false,
    }
}
