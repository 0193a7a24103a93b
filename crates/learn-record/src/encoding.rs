//! How values are written: numbers in groups of seven bits, lists and texts after their length.

/// The bytes are no message, or one that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedMessage;

/// The bytes that are still to be read.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], MalformedMessage> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(MalformedMessage)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, MalformedMessage> {
        let (byte, rest) = self.0.split_first().ok_or(MalformedMessage)?;
        self.0 = rest;
        Ok(*byte)
    }

    /// All bytes are used.
    pub(crate) fn end(&self) -> Result<(), MalformedMessage> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(MalformedMessage)
        }
    }
}

pub(crate) trait Encode {
    fn put(&self, out: &mut Vec<u8>);
}

pub(crate) trait Decode<'a>: Sized {
    fn take(reader: &mut Reader<'a>) -> Result<Self, MalformedMessage>;
}

/// An entry of a list, with the most entries that one list holds.
pub(crate) trait ListEntry {
    const MOST: usize;
}

impl Encode for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        out.push(rest.to_le_bytes()[0]);
    }
}

impl Decode<'_> for u64 {
    fn take(reader: &mut Reader<'_>) -> Result<Self, MalformedMessage> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = reader.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits.leading_zeros() < shift {
                return Err(MalformedMessage);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(MalformedMessage)
    }
}

macro_rules! smaller_numbers {
    ($($number:ty),*) => {$(
        impl Encode for $number {
            fn put(&self, out: &mut Vec<u8>) {
                u64::from(*self).put(out);
            }
        }
        impl Decode<'_> for $number {
            fn take(reader: &mut Reader<'_>) -> Result<Self, MalformedMessage> {
                u64::take(reader)?.try_into().map_err(|_| MalformedMessage)
            }
        }
    )*};
}
smaller_numbers!(u8, u16, u32);

impl Encode for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }
}

impl Decode<'_> for bool {
    fn take(reader: &mut Reader<'_>) -> Result<Self, MalformedMessage> {
        match reader.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MalformedMessage),
        }
    }
}

impl Encode for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
}

impl Decode<'_> for i64 {
    fn take(reader: &mut Reader<'_>) -> Result<Self, MalformedMessage> {
        let bytes = reader.take(8)?.try_into().map_err(|_| MalformedMessage)?;
        Ok(Self::from_le_bytes(bytes))
    }
}

impl Encode for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
}

impl Decode<'_> for f64 {
    fn take(reader: &mut Reader<'_>) -> Result<Self, MalformedMessage> {
        let bytes = reader.take(8)?.try_into().map_err(|_| MalformedMessage)?;
        Ok(Self::from_le_bytes(bytes))
    }
}

impl Encode for &[u8] {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self);
    }
}

impl<'a> Decode<'a> for &'a [u8] {
    fn take(reader: &mut Reader<'a>) -> Result<Self, MalformedMessage> {
        let count = usize::try_from(u64::take(reader)?).map_err(|_| MalformedMessage)?;
        reader.take(count)
    }
}

impl<T: Encode> Encode for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    fn take(reader: &mut Reader<'a>) -> Result<Self, MalformedMessage> {
        Ok(if bool::take(reader)? {
            Some(T::take(reader)?)
        } else {
            None
        })
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        for item in self {
            item.put(out);
        }
    }
}

impl<'a, T: Decode<'a> + ListEntry> Decode<'a> for Vec<T> {
    fn take(reader: &mut Reader<'a>) -> Result<Self, MalformedMessage> {
        let count = usize::try_from(u64::take(reader)?).map_err(|_| MalformedMessage)?;
        if count > T::MOST {
            return Err(MalformedMessage);
        }
        (0..count).map(|_| T::take(reader)).collect()
    }
}

/// A struct is its fields in the order that is named here.
macro_rules! fields {
    ($name:ident $(<$life:lifetime>)? { $($field:ident),* $(,)? }) => {
        impl $(<$life>)? $crate::encoding::Encode for $name $(<$life>)? {
            fn put(&self, out: &mut Vec<u8>) {
                $($crate::encoding::Encode::put(&self.$field, out);)*
            }
        }
        impl<'r $(: $life, $life)?> $crate::encoding::Decode<'r> for $name $(<$life>)? {
            fn take(
                reader: &mut $crate::encoding::Reader<'r>,
            ) -> Result<Self, $crate::encoding::MalformedMessage> {
                Ok(Self { $($field: $crate::encoding::Decode::take(reader)?,)* })
            }
        }
    };
}
pub(crate) use fields;

/// An enum without values is one byte.
macro_rules! numbered {
    ($name:ident { $($variant:ident = $number:literal),* $(,)? }) => {
        impl $crate::encoding::Encode for $name {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self { $(Self::$variant => $number,)* });
            }
        }
        impl $crate::encoding::Decode<'_> for $name {
            fn take(
                reader: &mut $crate::encoding::Reader<'_>,
            ) -> Result<Self, $crate::encoding::MalformedMessage> {
                match reader.byte()? {
                    $($number => Ok(Self::$variant),)*
                    _ => Err($crate::encoding::MalformedMessage),
                }
            }
        }
    };
}
pub(crate) use numbered;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        for number in [
            0,
            1,
            0x7f,
            0x80,
            0x3fff,
            0x4000,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            number.put(&mut bytes);
            let mut reader = Reader(&bytes);
            assert_eq!(u64::take(&mut reader), Ok(number));
            assert_eq!(reader.end(), Ok(()));
        }
    }

    #[test]
    fn numbers_too_large_or_cut_short_are_malformed() {
        let eleven = [0xff_u8; 11];
        let beyond = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        for bytes in [&[][..], &[0x80], &eleven, &beyond] {
            assert_eq!(
                u64::take(&mut Reader(bytes)),
                Err(MalformedMessage),
                "{bytes:?}"
            );
        }
        assert_eq!(u8::take(&mut Reader(&[0x80, 0x02])), Err(MalformedMessage));
    }
}
