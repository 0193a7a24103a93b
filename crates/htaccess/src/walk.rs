//! The walk from the root of a site to the file that a path stands for: the rules of the folders on the way, and of
//! sections for the file's name and the path of the address, are merged in Apache's order.

use std::sync::Arc;

use crate::names::Methods;
use crate::require::{Question, Requirement};
use crate::round::MappedFile;
use crate::server_rules::ServerRules;
use crate::settings::{FolderRules, LinkOptions, Settings};
use crate::values::FileKind;
use crate::visit::{Disk, Mount, RuleFile};

/// Patterns of all files on the way to one file.
const MAX_PATTERNS: usize = 5000;
/// Folders in one another, and names of a path.
const MAX_NAMES: usize = 256;

/// The sources that a walk asks on its way.
pub struct Walk<'a> {
    pub disk: &'a dyn Disk,
    pub server: &'a ServerRules,
}

impl Walk<'_> {
    /// Walks from the folder of the site to the file, as far as there are folders, and merges their rules.
    pub fn to(
        &self,
        mount: &Mount,
        path: &[u8],
        address: &[u8],
    ) -> Result<(MappedFile, Settings), u16> {
        let below = path.get(mount.prefix.len()..).unwrap_or_default();
        let mut folder = mount.folder.clone();
        let mut walked = WalkedFolders::default();
        let granted = Requirement::line(false, Methods::All, Question::All(true));
        walked.settings.require = Some(granted);
        walked.settings.merge(&self.server.common.folder);
        walked.patterns = self.server.common.patterns;
        walked.files.push(self.server.common.clone());
        if folder.is_empty() {
            // Another server has the files.
            return Ok((MappedFile::default(), self.of_names(walked, b"", address)));
        }
        for (at, _) in folder.iter().enumerate().filter(|(_, it)| **it == b'/') {
            self.sections(&folder[..at], &mut walked)?;
        }
        let mut file = MappedFile {
            name: [&folder[..], b"/"].concat(),
            path_info: Vec::new(),
            kind: Some(FileKind::Folder),
        };
        self.enter(&folder, &mut walked)?;
        let mut rest = below;
        let mut count = 0;
        while !rest.is_empty() {
            count += 1;
            if count > MAX_NAMES || folder.len() > 4000 {
                return Err(403);
            }
            let end = rest
                .iter()
                .position(|byte| *byte == b'/')
                .unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let here = [&folder[..], b"/", name].concat();
            let facts = self.disk.look(&here);
            if let Some(is_of_owner) = facts.link_of_owner
                && !walked.follows(is_of_owner)
            {
                return Err(403);
            }
            match facts.kind {
                FileKind::Forbidden => return Err(403),
                FileKind::Other => return Err(403),
                FileKind::Folder => {
                    self.enter(&here, &mut walked)?;
                    file.name = match after.is_empty() {
                        true => here.clone(),
                        false => [&here[..], b"/"].concat(),
                    };
                    folder = here;
                    rest = after.strip_prefix(b"/").unwrap_or_default();
                }
                kind => {
                    // Apache takes a section for a folder for a file as well, unless something stands behind it.
                    if kind == FileKind::File && after.is_empty() {
                        self.sections(&here, &mut walked)?;
                    }
                    file = MappedFile {
                        name: here,
                        path_info: after.to_vec(),
                        kind: Some(kind),
                    };
                    break;
                }
            }
        }
        for section in &self.server.folders {
            if section.place.matches(&file.name, true) {
                walked.merge(section.rules.clone(), b"")?;
            }
        }
        let settings = self.of_names(walked, &file.name, address);
        Ok((file, settings))
    }

    /// Merges the sections for the name of the file and for the path of the address.
    fn of_names(&self, walked: WalkedFolders, file: &[u8], path: &[u8]) -> Settings {
        let name = file.rsplit(|byte| *byte == b'/').next();
        let name = name.unwrap_or_default();
        let mut settings = walked.settings;
        for rules in &walked.files {
            for section in &rules.files {
                if section.names.holds(name, section.closes) {
                    settings.merge(&section.settings);
                }
            }
        }
        for section in &self.server.addresses {
            if section.place.is_of_address(path, true) {
                settings.merge(&section.rules.folder);
            }
        }
        settings
    }

    /// Merges the sections of the server's configuration for a folder.
    fn sections(&self, folder: &[u8], walked: &mut WalkedFolders) -> Result<(), u16> {
        for section in &self.server.folders {
            if section.place.is_of_folder(folder) {
                walked.merge(section.rules.clone(), folder)?;
            }
        }
        Ok(())
    }

    /// Merges the rules of a folder.
    fn enter(&self, folder: &[u8], walked: &mut WalkedFolders) -> Result<(), u16> {
        self.sections(folder, walked)?;
        if !walked.settings.overrides.unwrap_or(!self.server.is_given) {
            return Ok(());
        }
        match self.disk.rules(folder) {
            RuleFile::None => Ok(()),
            RuleFile::Unreadable => Err(403),
            RuleFile::Rules(rules) => walked.merge(rules, folder),
        }
    }
}

/// The rules that a walk has collected.
#[derive(Default)]
struct WalkedFolders {
    settings: Settings,
    files: Vec<Arc<FolderRules>>,
    patterns: usize,
}

impl WalkedFolders {
    fn follows(&self, is_of_owner: bool) -> bool {
        follows(self.settings.links, is_of_owner)
    }

    /// Merges rules of a folder.
    fn merge(&mut self, rules: Arc<FolderRules>, folder: &[u8]) -> Result<(), u16> {
        let had = self.settings.rewriting.take();
        let own = rules.folder.rewriting.as_ref();
        self.settings.merge(&rules.folder);
        self.settings.rewriting = match own {
            Some(own) => {
                let mut merged = own.within(had.as_ref());
                merged.folder = [folder, b"/"].concat();
                Some(merged)
            }
            None => had,
        };
        self.patterns += rules.patterns;
        if self.patterns > MAX_PATTERNS {
            return Err(500);
        }
        self.files.push(rules);
        Ok(())
    }
}

/// A site begins with `Options FollowSymLinks`.
pub fn follows(links: Option<LinkOptions>, is_of_owner: bool) -> bool {
    let Some(links) = links else {
        return true;
    };
    links.follows.unwrap_or(true) || is_of_owner && links.follows_of_owner.unwrap_or(false)
}
