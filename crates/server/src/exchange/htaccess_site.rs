//! Where the `.htaccess` files of a server are: the folders that its paths stand for.

use htaccess::Mount;
use site::{Root, Server, Site};

/// Of a server with `htaccess on`: where its files are.
#[derive(Debug, Default)]
pub struct HtaccessSite {
    /// The folder of the whole site last.
    pub mounts: Vec<Mount>,
    /// The names of `index`.
    pub indexes: Vec<String>,
}

/// Those of all servers; `None` for a server that does not obey such files.
pub fn sites(site: &Site) -> Vec<Option<HtaccessSite>> {
    site.http.servers.iter().map(HtaccessSite::of).collect()
}

impl HtaccessSite {
    fn of(server: &Server) -> Option<HtaccessSite> {
        if !server.obeys_htaccess {
            return None;
        }
        let whole = server.settings(Server::ROOT);
        let mut mounts = Vec::new();
        for prefix in &server.top.prefixes {
            let settings = server.settings(prefix.location);
            if settings.files.root == whole.files.root {
                continue;
            }
            mounts.extend(mount(&prefix.prefix, &settings.files.root));
        }
        mounts.extend(mount(b"/", &whole.files.root));
        let names = whole.files.index.iter().filter_map(|it| it.as_constant());
        Some(HtaccessSite {
            mounts,
            indexes: names
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect(),
        })
    }
}

/// The folder that a prefix stands for; `None` where variables say so.
fn mount(prefix: &[u8], root: &Root) -> Option<Mount> {
    let trimmed = |path: &[u8]| path.strip_suffix(b"/").unwrap_or(path).to_vec();
    let with_slash = match prefix.strip_suffix(b"/") {
        Some(_) => prefix.to_vec(),
        None => [prefix, b"/"].concat(),
    };
    let folder = match root {
        Root::Root(root) => {
            let below = trimmed(prefix);
            [&trimmed(root.as_constant()?), &below[..]].concat()
        }
        Root::Alias(folder) => trimmed(folder.as_constant()?),
    };
    Some(Mount {
        prefix: with_slash,
        folder,
    })
}
