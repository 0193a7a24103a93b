//! The size classes of the allocator: the memory that a piece really takes, which a zone's budget
//! counts. The classes are jemalloc's; other allocators round in a similar way.

/// The size class that holds `len` bytes: four per power of two, 16 apart at first.
#[must_use]
pub fn allocated(len: usize) -> usize {
    match len {
        0 => 0,
        1..=128 => len.next_multiple_of(16),
        _ => len.next_multiple_of(class_step(len - 1)),
    }
}

/// The largest size class of at most `len` bytes; `len` is above 128.
pub(crate) fn class_below(len: usize) -> usize {
    len - len % class_step(len)
}

/// The distance between the classes around `len`: a quarter of the power of two below it.
fn class_step(len: usize) -> usize {
    (1usize << len.ilog2()) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_are_the_allocators() {
        for (len, class) in [
            (0, 0),
            (1, 16),
            (16, 16),
            (17, 32),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (1025, 1280),
            (16385, 20480),
            (20480, 20480),
            (65537, 81920),
        ] {
            assert_eq!(allocated(len), class, "{len}");
        }
    }
}
