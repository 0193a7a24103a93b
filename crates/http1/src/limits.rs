//! How large a request head may be and which field names count, as the
//! operator configured it. One value per server, borrowed by the parser.

/// Spans are 32-bit; no head needs a gigabyte, whatever is configured.
const MAX_HEAD_BYTES: usize = 1 << 30;

/// Limits and field-name rules for request heads.
///
/// Source: nginx's `client_header_buffer_size`, `large_client_header_buffers`,
/// `max_headers`, `ignore_invalid_headers`, `underscores_in_headers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Size of the first buffer; a head that fits needs no large one.
    pub first_buffer_bytes: usize,
    /// How many large buffers one head may use.
    pub large_buffers: usize,
    /// Size of one large buffer, thus the longest request line or field line.
    pub large_buffer_bytes: usize,
    /// How many field lines one head may have (also those left out).
    pub max_fields: usize,
    /// Leave out fields whose names have bytes other than letters, digits and
    /// `-`. When false they are kept.
    pub ignore_invalid_fields: bool,
    /// Whether `_` counts as valid in field names.
    pub underscores: bool,
}

impl Default for HeadLimits {
    /// nginx's defaults: 1k, 4 buffers of 8k, 1000 fields.
    fn default() -> Self {
        HeadLimits {
            first_buffer_bytes: 1024,
            large_buffers: 4,
            large_buffer_bytes: 8 * 1024,
            max_fields: 1000,
            ignore_invalid_fields: true,
            underscores: false,
        }
    }
}

impl HeadLimits {
    /// For a head that this program has written itself, of fields that were received within
    /// limits of their own.
    pub const OF_OWN_HEADS: HeadLimits = HeadLimits {
        first_buffer_bytes: 1 << 24,
        large_buffers: 4,
        large_buffer_bytes: 1 << 24,
        max_fields: 1 << 16,
        ignore_invalid_fields: false,
        underscores: true,
    };

    /// The most bytes a head can have, and so the size at which a read buffer
    /// may stop growing.
    pub fn max_head_bytes(&self) -> usize {
        self.large_buffers
            .saturating_mul(self.large_buffer_bytes)
            .saturating_add(self.first_buffer_bytes)
            .clamp(1, MAX_HEAD_BYTES)
    }
}

/// Follows which of nginx's buffers a line would land in: lines share a buffer
/// until one does not fit, which then opens the next large buffer.
#[derive(Debug)]
pub(crate) struct BufferUse<'a> {
    limits: &'a HeadLimits,
    room_bytes: usize,
    opened: usize,
}

impl<'a> BufferUse<'a> {
    pub(crate) fn new(limits: &'a HeadLimits) -> Self {
        BufferUse {
            limits,
            room_bytes: limits.first_buffer_bytes,
            opened: 0,
        }
    }

    /// Takes room for a line in the buffer of the line before it. Returns false, and takes nothing,
    /// where the room is too small.
    #[inline]
    pub(crate) fn take_here(&mut self, line_bytes: usize) -> bool {
        let left = self.room_bytes.checked_sub(line_bytes);
        self.room_bytes = left.unwrap_or(self.room_bytes);
        left.is_some()
    }

    /// Takes room for a line; false when the configuration has none.
    #[inline]
    pub(crate) fn take(&mut self, line_bytes: usize) -> bool {
        if let Some(left) = self.room_bytes.checked_sub(line_bytes) {
            self.room_bytes = left;
            return true;
        }
        self.opened += 1;
        match self.limits.large_buffer_bytes.checked_sub(line_bytes) {
            Some(left) if self.opened <= self.limits.large_buffers => {
                self.room_bytes = left;
                true
            }
            _ => false,
        }
    }
}
