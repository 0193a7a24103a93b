//! The fields of a response: an ordered list that keeps names as they were
//! spelt and compares them in any case. A response has a dozen or two, so a
//! list beats a map.

use bytes::Bytes;

use crate::field_name::same_name;

/// Ordered fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(Bytes, Bytes)>);

impl Fields {
    /// No fields.
    pub const fn new() -> Self {
        Fields(Vec::new())
    }

    /// No fields yet, room for `capacity`.
    pub fn with_capacity(capacity: usize) -> Self {
        Fields(Vec::with_capacity(capacity))
    }

    /// The first value of `name`.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.value(name).map(AsRef::as_ref)
    }

    /// The first value of `name`, shareable.
    pub fn value(&self, name: impl AsRef<[u8]>) -> Option<&Bytes> {
        let name = name.as_ref();
        self.0
            .iter()
            .find(|(field, _)| same_name(field, name))
            .map(|(_, value)| value)
    }

    /// All values of `name`, in order.
    pub fn get_all<'a, 'n>(
        &'a self,
        name: &'n [u8],
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.iter()
            .filter(move |(field, _)| same_name(field, name))
            .map(|(_, value)| value)
    }

    /// Returns whether there is a field `name`.
    pub fn contains(&self, name: impl AsRef<[u8]>) -> bool {
        self.value(name).is_some()
    }

    /// Adds a field at the end.
    pub fn append(&mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.0.push((name.into(), value.into()));
    }

    /// Gives `name` one value: the first such field keeps its position, others go.
    pub fn set(&mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) {
        let (name, value) = (name.into(), value.into());
        let mut value = Some(value);
        self.0.retain_mut(|(field, old)| {
            if !same_name(field, &name) {
                return true;
            }
            match value.take() {
                Some(value) => {
                    *old = value;
                    true
                }
                None => false,
            }
        });
        if let Some(value) = value {
            self.0.push((name, value));
        }
    }

    /// Takes all fields `name` out; answers whether there was one.
    pub fn remove(&mut self, name: impl AsRef<[u8]>) -> bool {
        let (name, before) = (name.as_ref(), self.0.len());
        self.0.retain(|(field, _)| !same_name(field, name));
        self.0.len() != before
    }

    /// Keeps the fields for which `keep(name, value)` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) {
        self.0.retain(|(name, value)| keep(name, value));
    }

    /// All fields in order: name as spelt, value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    /// All fields in order, shareable.
    pub fn as_slice(&self) -> &[(Bytes, Bytes)] {
        &self.0
    }

    /// Returns how many field lines.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is the list without fields?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Bytes, Bytes)> for Fields {
    fn from_iter<T: IntoIterator<Item = (Bytes, Bytes)>>(fields: T) -> Self {
        Fields(fields.into_iter().collect())
    }
}

impl IntoIterator for Fields {
    type Item = (Bytes, Bytes);
    type IntoIter = std::vec::IntoIter<(Bytes, Bytes)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> Fields {
        lines
            .iter()
            .map(|&(name, value)| (Bytes::from(name), Bytes::from(value)))
            .collect()
    }

    #[test]
    fn names_match_in_any_case_and_keep_their_spelling() {
        let fields = fields(&[("X-A", "1"), ("b", "2"), ("x-a", "3")]);
        assert_eq!(fields.get("x-A"), Some(&b"1"[..]));
        assert_eq!(fields.get_all(b"X-a").collect::<Vec<_>>(), [b"1", b"3"]);
        assert_eq!(fields.iter().next().unwrap().0, b"X-A");
        assert!(!fields.contains("c"));
    }

    #[test]
    fn set_leaves_one_field_in_the_first_place() {
        let mut list = fields(&[("X-A", "1"), ("b", "2"), ("x-a", "3")]);
        list.set("x-a", "4");
        assert_eq!(list, fields(&[("X-A", "4"), ("b", "2")]));
        list.set("c", "5");
        assert_eq!(list.get("C"), Some(&b"5"[..]));
        assert!(list.remove("B"));
        assert!(!list.remove("B"));
        assert_eq!(list.len(), 2);
    }
}
