//! Writes that machines report to each other (`cache_nodes`): the entries for writes of programs here, and the effect of
//! the entries of other nodes. An entry of another node has tables alone, so that any of their rows may be another one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use learned::{Effect, Schema, Shapes, TableChange};

use super::{Book, Database};
use crate::other_nodes::{TableName, WrittenEntry, WrittenPart, WrittenServer};
use crate::php_report;
use crate::record::SentWrite;

impl Book {
    /// Makes the entry that reports these writes to other nodes. `None`: they alter nothing.
    pub fn entry_of(&mut self, writes: &[SentWrite], now: Instant) -> Option<WrittenEntry> {
        let mut all: Option<WrittenEntry> = None;
        // Pages made of an object cache are not kept where there are other nodes.
        for write in writes.iter().filter(|write| write.cache.is_none()) {
            let mut databases = self.databases.iter_mut();
            let database = databases.find(|it| it.server == write.server);
            let (part, identity) = match database {
                Some(database) => {
                    let part = database.part_to_tell(write);
                    (part, database.polled.identity(now))
                }
                None => (part_of_unknown(write), None),
            };
            let Some(part) = part else {
                continue;
            };
            let entry = WrittenEntry {
                servers: vec![WrittenServer {
                    name: write.server.to_string(),
                    identity: identity.unwrap_or_default().to_owned(),
                    part,
                }],
            };
            all = Some(match all {
                Some(before) => before.and(entry),
                None => entry,
            });
        }
        all
    }

    /// Are the tables of the servers of these writes known?
    pub fn knows_tables_of(&self, writes: &[SentWrite]) -> bool {
        let is_known = |write: &SentWrite| {
            let mut databases = self.databases.iter();
            databases.any(|it| it.server == write.server && it.index.is_some())
        };
        writes.iter().all(is_known)
    }

    /// Returns a write as writes of any row of the tables that it may alter; `None`: it may alter anything that this pool's
    /// account sees.
    pub fn by_tables(&mut self, write: &SentWrite) -> Option<Vec<SentWrite>> {
        let mut databases = self.databases.iter_mut();
        let database = databases.find(|it| it.server == write.server && it.index.is_some())?;
        match database.part_to_tell(write) {
            None => Some(Vec::new()),
            Some(WrittenPart::Tables(tables)) => {
                let of_table = |(database, name): TableName| SentWrite {
                    rows_of: Some((database.into(), name.into())),
                    ..write.clone()
                };
                Some(tables.into_iter().map(of_table).collect())
            }
            Some(WrittenPart::Everything | WrittenPart::Definitions) => None,
        }
    }

    /// Returns the writes that this pool counts for one whose tables another pool has named: its own account may not see
    /// the tables, which then are in none of its pages.
    pub fn understood(&mut self, write: &SentWrite, named: &[SentWrite]) -> Vec<SentWrite> {
        let is_one_of_here = self.knows_tables_of(std::slice::from_ref(write));
        match is_one_of_here && self.by_tables(write).is_none() {
            true => named.to_vec(),
            false => vec![write.clone()],
        }
    }

    /// Programs of another node have written this.
    pub fn written_elsewhere(&mut self, entry: &WrittenEntry, now: Instant) {
        for database in &mut self.databases {
            database.written_elsewhere(entry, now);
        }
        // Pages that are being fetched may be the first ones of a server.
        self.moves += 1;
    }
}

impl Database {
    fn part_to_tell(&mut self, write: &SentWrite) -> Option<WrittenPart> {
        match &mut self.index {
            Some(index) => part(&mut index.shapes().lock(), write),
            None => part_of_unknown(write),
        }
    }

    fn written_elsewhere(&mut self, entry: &WrittenEntry, now: Instant) {
        let is_meant = |database: &mut Database, written: &WrittenServer| {
            let Database { others, polled, .. } = database;
            *written.name == *database.server
                || !others.is_other(&written.identity, polled.identity(now), now)
        };
        if entry.is_everything() {
            return self.written_there(&WrittenPart::Definitions);
        }
        for written in &entry.servers {
            if is_meant(self, written) {
                self.written_there(&written.part);
            }
        }
    }

    fn written_there(&mut self, part: &WrittenPart) {
        let tables = match part {
            WrittenPart::Tables(tables) => tables,
            WrittenPart::Everything => {
                return self.written(Effect::Everything, "a write of another node".to_owned());
            }
            WrittenPart::Definitions => {
                self.doubt_definitions();
                return self.written(Effect::Everything, "a write of another node".to_owned());
            }
        };
        for (database, name) in tables {
            let effect = self.effect_on_rows(database, name);
            let text = format!("a write of another node to {database}.{name}");
            self.written(effect, php_report::shown(text.as_bytes()));
        }
    }
}

/// Returns the part that a statement writes on a server whose tables are not known: anything, if it may write.
fn part_of_unknown(write: &SentWrite) -> Option<WrittenPart> {
    part(&mut Shapes::new(Arc::new(Schema::default())), write)
}

fn part(shapes: &mut Shapes, write: &SentWrite) -> Option<WrittenPart> {
    let effect = match write.is_complete {
        true => {
            shapes
                .understand(&write.text, &write.parameters, &write.session)
                .effect
        }
        false => Effect::Everything,
    };
    let changes = match effect {
        Effect::Nothing => return None,
        Effect::Tables(changes) => changes,
        Effect::Everything if php_report::is_definition(&write.text) => {
            return Some(WrittenPart::Definitions);
        }
        Effect::Everything => return Some(WrittenPart::Everything),
    };
    let schema = shapes.schema();
    let name = |change: &TableChange| Some(schema.table(change.table)?.name.clone());
    let names: Option<BTreeSet<TableName>> = changes.iter().map(name).collect();
    Some(names.map_or(WrittenPart::Everything, WrittenPart::Tables))
}

#[cfg(test)]
#[path = "elsewhere_tests.rs"]
mod tests;
