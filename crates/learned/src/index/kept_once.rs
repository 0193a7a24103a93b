//! Statements and their shapes, each once, for as long as a learned page has them.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::by_value::add_compared;
use super::{Index, IndexedShape, KnownStatement, Place};
use crate::arguments::Arguments;
use crate::condition::have_one_kind;
use crate::page::PageStatement;
use crate::postings::Fingerprint;
use crate::read::{ReadShape, TableUse};
use crate::run_again::RunAgain;
use crate::value::{Comparable, comparable};

/// Columns of a table by which the statements of a shape are found.
const MAX_PLACES: usize = 4;
/// Values behind IN by which a statement is found.
const MAX_VALUES: usize = 256;
/// Texts of statements that can be run again. With more, the others cannot.
const MAX_TEXT_BYTES: usize = 64 << 20;

impl Index {
    /// The number of a statement, new or known; one page more has it. `None`: there are too many shapes.
    pub(super) fn known(&mut self, statement: &PageStatement) -> Option<u32> {
        let shape = self.number_of(&statement.reading.shape)?;
        let arguments = &statement.reading.arguments;
        let again = self.texts_of(statement);
        let hash = hash_of(&self.hasher, (shape, statement.result), arguments, again);
        let found = self.by_content.find(hash, |number| {
            let known = &self.statements[*number as usize];
            known.shape == shape
                && known.result == statement.result
                && known.arguments == *arguments
                && known.again.as_deref() == again
        });
        if let Some(number) = found.copied() {
            self.statements[number as usize].pages += 1;
            return Some(number);
        }
        let known = KnownStatement {
            shape,
            writes: 0,
            pages: 1,
            stamp: 0,
            result: statement.result,
            arguments: arguments.clone(),
            again: again.cloned().map(Arc::new),
            verified: 0,
            differed: 0,
        };
        self.text_bytes += again.map_or(0, RunAgain::bytes);
        let number = match self.free.pop() {
            Some(number) => {
                self.statements[number as usize] = known;
                number
            }
            None => {
                self.statements.push(known);
                u32::try_from(self.statements.len() - 1).ok()?
            }
        };
        let Self {
            by_content,
            statements,
            hasher,
            ..
        } = self;
        by_content.insert_unique(hash, number, |it| {
            let known = &statements[*it as usize];
            known.hash(hasher)
        });
        for fingerprint in self.fingerprints(number) {
            self.postings.insert(fingerprint, number);
        }
        let indexed = self.indexed[usize::from(shape)].as_mut()?;
        indexed.statements += 1;
        Some(number)
    }

    /// Returns the texts by which the statement is run again, while there is room for them.
    fn texts_of<'a>(&self, statement: &'a PageStatement) -> Option<&'a RunAgain> {
        let again = statement.again.as_ref()?;
        (self.text_bytes + again.bytes() <= MAX_TEXT_BYTES).then_some(again)
    }

    pub(super) fn let_go(&mut self, numbers: &[u32]) {
        for number in numbers {
            let statement = &mut self.statements[*number as usize];
            statement.pages -= 1;
            if statement.pages > 0 {
                continue;
            }
            for fingerprint in self.fingerprints(*number) {
                self.postings.remove(fingerprint, *number);
            }
            let statement = &self.statements[*number as usize];
            let shape = statement.shape;
            let hash = statement.hash(&self.hasher);
            self.text_bytes -= statement.again.as_ref().map_or(0, |it| it.bytes());
            if let Ok(entry) = self.by_content.find_entry(hash, |it| it == number) {
                entry.remove();
            }
            let statement = &mut self.statements[*number as usize];
            (statement.arguments, statement.again) = (Arguments::default(), None);
            self.free.push(*number);
            self.let_go_of_shape(shape);
        }
    }

    fn let_go_of_shape(&mut self, number: u16) {
        let Some(slot) = self.indexed.get_mut(usize::from(number)) else {
            return;
        };
        let Some(indexed) = slot else {
            return;
        };
        indexed.statements -= 1;
        if indexed.statements > 0 {
            return;
        }
        for table_use in &indexed.shape.uses {
            self.by_table[table_use.table.0 as usize].retain(|(shape, _)| *shape != number);
        }
        self.numbers.remove(&(Arc::as_ptr(&indexed.shape) as usize));
        *slot = None;
    }

    fn number_of(&mut self, shape: &Arc<ReadShape>) -> Option<u16> {
        let address = Arc::as_ptr(shape) as usize;
        if let Some(number) = self.numbers.get(&address) {
            return Some(*number);
        }
        let free = self.indexed.iter().position(Option::is_none);
        let place = free.unwrap_or(self.indexed.len());
        let number = u16::try_from(place).ok()?;
        let places = shape.uses.iter().map(|it| self.places_of(it)).collect();
        for (use_number, table_use) in shape.uses.iter().enumerate() {
            let entry = (number, u16::try_from(use_number).ok()?);
            self.by_table[table_use.table.0 as usize].push(entry);
        }
        let indexed = Some(IndexedShape {
            shape: Arc::clone(shape),
            statements: 0,
            places,
            stamps: VecDeque::new(),
            lost: 0,
            writes: 0,
        });
        match free {
            Some(place) => self.indexed[place] = indexed,
            None => self.indexed.push(indexed),
        }
        self.numbers.insert(address, number);
        Some(number)
    }

    /// The columns of a table that are compared with values of the statement.
    fn places_of(&mut self, table_use: &TableUse) -> Vec<Place> {
        let mut compared = Vec::new();
        for condition in &table_use.conditions {
            add_compared(condition, &mut compared);
        }
        compared.truncate(MAX_PLACES);
        let places = compared.into_iter();
        places
            .map(|(column, operands)| {
                self.places = self.places.wrapping_add(1);
                Place {
                    number: self.places,
                    column,
                    operands,
                }
            })
            .collect()
    }

    /// By which a statement is found.
    fn fingerprints(&self, number: u32) -> Vec<Fingerprint> {
        let statement = &self.statements[number as usize];
        let mut fingerprints = Vec::new();
        let Some(Some(indexed)) = self.indexed.get(usize::from(statement.shape)) else {
            return fingerprints;
        };
        for place in indexed.places.iter().flatten() {
            match self.fingerprints_at(place, &statement.arguments) {
                Some(own) => fingerprints.extend(own),
                None => fingerprints.push(self.postings.fingerprint(place.number, None)),
            }
        }
        fingerprints
    }

    /// Each once. `None`: a value is unclear, or they are too many.
    fn fingerprints_at(&self, place: &Place, arguments: &Arguments) -> Option<Vec<Fingerprint>> {
        let operands = place.operands.iter();
        let values = operands.flat_map(|operand| operand.values(arguments));
        if !have_one_kind(values.clone()) || values.clone().count() > MAX_VALUES {
            return None;
        }
        let mut own = Vec::new();
        for value in values {
            let content = comparable(place.column.kind, value)?;
            // Nothing equals NULL.
            if content != Comparable::Null {
                own.push(self.postings.fingerprint(place.number, Some(content)));
            }
        }
        own.sort_unstable_by_key(|it| it.number());
        own.dedup();
        Some(own)
    }
}

impl KnownStatement {
    fn hash(&self, hasher: &RandomState) -> u64 {
        let again = self.again.as_deref();
        hash_of(hasher, (self.shape, self.result), &self.arguments, again)
    }
}

/// Two statements with one hash may be one, with all that it is run again by: the values of a shape do not tell
/// numbers with a fraction apart.
fn hash_of(
    hasher: &RandomState,
    (shape, result): (u16, u64),
    arguments: &Arguments,
    again: Option<&RunAgain>,
) -> u64 {
    let again = again.map(|it| (it.session, &it.texts));
    hasher.hash_one((shape, result, arguments.bytes(), again))
}
