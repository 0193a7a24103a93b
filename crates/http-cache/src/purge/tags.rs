//! The tags that an application names for a response.

/// Tags of one response: as many.
const MAX_TAGS: usize = 65_536;
/// Tags of one response: as many bytes, all together.
const MAX_BYTES: usize = 1 << 20;
/// One tag: as many bytes.
const MAX_TAG_BYTES: usize = 1024;

/// Names of the data that a response was made of, in no order. Bounded: the set remembers that tags
/// beyond the bounds are missing ([`Tags::checked`]), never left out in silence.
#[derive(Clone, Debug, Default)]
pub struct Tags {
    bytes: Vec<u8>,
    /// The offset at which each tag ends.
    ends: Vec<u32>,
    is_incomplete: bool,
}

/// A response names tags that are not kept: a purge of those would miss it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTags;

impl Tags {
    /// Adds a tag. An empty one is left out.
    pub fn add(&mut self, tag: &[u8]) {
        if tag.is_empty() {
            return;
        }
        let end = self.bytes.len() + tag.len();
        if tag.len() > MAX_TAG_BYTES || end > MAX_BYTES || self.ends.len() == MAX_TAGS {
            self.is_incomplete = true;
            return;
        }
        self.bytes.extend_from_slice(tag);
        // `MAX_BYTES` fits.
        self.ends.push(end as u32);
    }

    /// Adds all tags of `others`; where some are missing there, they are missing here.
    pub fn extend(&mut self, others: &Tags) {
        others.iter().for_each(|tag| self.add(tag));
        self.is_incomplete |= others.is_incomplete;
    }

    /// The application named more tags, which did not arrive.
    pub fn note_missing(&mut self) {
        self.is_incomplete = true;
    }

    /// The tags, each as often as it was added.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        ranges.filter_map(|(start, end)| self.bytes.get(start as usize..end as usize))
    }

    /// Is there no tag?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Are these all that were added?
    ///
    /// # Errors
    /// There were more, or longer ones, than are kept, or some did not arrive.
    pub fn checked(&self) -> Result<(), TooManyTags> {
        match self.is_incomplete {
            true => Err(TooManyTags),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_as_they_were_added() {
        let mut tags = Tags::default();
        for tag in ["news:5", "", "list", "news:5"] {
            tags.add(tag.as_bytes());
        }
        let texts: Vec<&[u8]> = tags.iter().collect();
        assert_eq!(texts, [&b"news:5"[..], b"list", b"news:5"]);
        assert_eq!(tags.checked(), Ok(()));
    }

    #[test]
    fn what_passes_a_bound_is_told() {
        let mut long = Tags::default();
        long.add(&[b'x'; MAX_TAG_BYTES]);
        assert_eq!(long.checked(), Ok(()));
        long.add(&[b'x'; MAX_TAG_BYTES + 1]);
        assert_eq!(long.checked(), Err(TooManyTags));

        let mut many = Tags::default();
        (0..MAX_TAGS).for_each(|_| many.add(b"t"));
        assert_eq!(many.checked(), Ok(()));
        many.add(b"t");
        assert_eq!(many.checked(), Err(TooManyTags));

        let mut large = Tags::default();
        (0..=MAX_BYTES / MAX_TAG_BYTES).for_each(|_| large.add(&[b'x'; MAX_TAG_BYTES]));
        assert_eq!(large.checked(), Err(TooManyTags));
    }
}
