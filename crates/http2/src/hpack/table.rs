//! The dynamic table (RFC 7541 §2.3.2, §4). All names and values are in one buffer, the newest
//! at the end, so that a field costs no allocation; the space of evicted fields at the front is
//! reclaimed once it is as long as the table may be. QPACK keeps the same fields in the same
//! order, and names them by other numbers.

use std::collections::VecDeque;

use super::{FIELD_OVERHEAD_BYTES, TABLE_BYTES};

/// Fields that were sent before, the newest first.
#[derive(Debug)]
pub struct Table {
    bytes: Vec<u8>,
    /// The oldest is in front.
    fields: VecDeque<TableEntry>,
    size_bytes: usize,
    max_bytes: usize,
}

/// The position of a field in the buffer; its value follows its name.
#[derive(Clone, Copy, Debug)]
struct TableEntry {
    start: usize,
    name_len: usize,
    value_len: usize,
}

impl TableEntry {
    fn size_bytes(self) -> usize {
        self.name_len + self.value_len + FIELD_OVERHEAD_BYTES
    }
}

impl Default for Table {
    fn default() -> Self {
        Table {
            bytes: Vec::new(),
            fields: VecDeque::new(),
            size_bytes: 0,
            max_bytes: TABLE_BYTES,
        }
    }
}

impl Table {
    /// Name and value of the field inserted `age` fields ago.
    #[inline]
    pub fn field(&self, age: usize) -> Option<(&[u8], &[u8])> {
        let at = self.fields.len().checked_sub(age)?.checked_sub(1)?;
        let stored = self.fields.get(at)?;
        let end = stored.start + stored.name_len + stored.value_len;
        self.bytes
            .get(stored.start..end)?
            .split_at_checked(stored.name_len)
    }

    /// Inserts a field, whose name and value stand behind each other in `field` (§4.4).
    pub fn insert(&mut self, field: &[u8], name_len: usize) {
        let size_bytes = field.len() + FIELD_OVERHEAD_BYTES;
        let Some(room_bytes) = self.max_bytes.checked_sub(size_bytes) else {
            self.evict_to(0);
            return;
        };
        self.evict_to(room_bytes);
        self.compact();
        self.fields.push_back(TableEntry {
            start: self.bytes.len(),
            name_len,
            value_len: field.len() - name_len,
        });
        self.bytes.extend_from_slice(field);
        self.size_bytes += size_bytes;
    }

    /// Changes the size the table may have (§4.3); no more than [`TABLE_BYTES`].
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        debug_assert!(max_bytes <= TABLE_BYTES);
        self.max_bytes = max_bytes;
        self.evict_to(max_bytes);
    }

    fn evict_to(&mut self, max_bytes: usize) {
        while self.size_bytes > max_bytes
            && let Some(oldest) = self.fields.pop_front()
        {
            self.size_bytes -= oldest.size_bytes();
        }
    }

    /// Gives back the front of the buffer when that is worth moving the rest: as much was
    /// inserted since the last time as is moved.
    fn compact(&mut self) {
        let front = match self.fields.front() {
            Some(oldest) => oldest.start,
            None => self.bytes.len(),
        };
        if front < TABLE_BYTES && !self.fields.is_empty() {
            return;
        }
        self.bytes.drain(..front);
        for stored in &mut self.fields {
            stored.start -= front;
        }
    }

    #[cfg(test)]
    fn capacity_bytes(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(table: &mut Table, name: &str, value: &str) {
        table.insert((name.to_owned() + value).as_bytes(), name.len());
    }

    #[test]
    fn the_oldest_fields_are_evicted() {
        let mut table = Table::default();
        table.set_max_bytes(110);
        insert(&mut table, "a", "1234");
        insert(&mut table, "b", "5678");
        assert_eq!(table.field(0), Some((&b"b"[..], &b"5678"[..])));
        assert_eq!(table.field(1), Some((&b"a"[..], &b"1234"[..])));
        assert_eq!(table.field(2), None);
        insert(&mut table, "c", "");
        assert_eq!(table.field(2), Some((&b"a"[..], &b"1234"[..])), "107 bytes");
        insert(&mut table, "d", "");
        assert_eq!(table.field(2), Some((&b"b"[..], &b"5678"[..])));
        assert_eq!(table.field(3), None);
        table.set_max_bytes(33);
        assert_eq!(table.field(0), Some((&b"d"[..], &b""[..])));
        assert_eq!(table.field(1), None);
        insert(&mut table, "too", "large");
        assert_eq!(table.field(0), None);
        assert_eq!(table.size_bytes, 0);
    }

    #[test]
    fn memory_is_bounded_whatever_is_inserted() {
        let mut table = Table::default();
        for nth in 0..100_000usize {
            let length = nth * 7919 % 5000;
            table.insert(&vec![b'x'; length], length / 2);
            assert!(table.size_bytes <= TABLE_BYTES);
            assert!(table.capacity_bytes() <= 2 * TABLE_BYTES);
            assert!(table.fields.len() <= TABLE_BYTES / FIELD_OVERHEAD_BYTES);
        }
    }
}
