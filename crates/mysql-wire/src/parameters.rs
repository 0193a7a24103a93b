//! The parameters of a prepared statement, as COM_STMT_EXECUTE carries them.

use crate::fields::{integer, string, take, u8};

/// As many as the protocol allows.
pub const MOST_PARAMETERS: usize = 65_535;

#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Null,
    Integer(i64),
    Unsigned(u64),
    Double(f64),
    /// Text in the character set of the connection, or bytes; the protocol does not say which.
    Bytes(Vec<u8>),
    /// A date or time in the protocol's binary form, a BLOB, or a value that was sent in pieces.
    Opaque,
}

/// The type of a parameter: number and the flag for unsigned integers.
pub(crate) type ParameterType = (u8, u8);

/// What follows the fixed head of COM_STMT_EXECUTE. `types` are those of the last execution, which
/// count if this one sends none; `is_long(n)` says that the value of parameter n was sent before.
pub(crate) fn parameters(
    payload: &mut &[u8],
    count: usize,
    types: &mut Vec<ParameterType>,
    is_long: impl Fn(usize) -> bool,
) -> Option<Vec<Parameter>> {
    if count == 0 {
        return Some(Vec::new());
    }
    let nulls = take(payload, count.div_ceil(8))?;
    if u8(payload)? == 1 {
        let sent = take(payload, count * 2)?;
        types.clear();
        types.extend(
            sent.as_chunks::<2>()
                .0
                .iter()
                .map(|[number, flags]| (*number, *flags)),
        );
    }
    if types.len() != count {
        return None;
    }
    let mut values = Vec::with_capacity(count);
    for (index, parameter_type) in types.iter().enumerate() {
        let is_null = nulls[index / 8] & (1 << (index % 8)) != 0;
        values.push(match (is_null, is_long(index)) {
            (_, true) => Parameter::Opaque,
            (true, false) => Parameter::Null,
            (false, false) => value(payload, *parameter_type)?,
        });
    }
    Some(values)
}

fn value(bytes: &mut &[u8], (number, flags): ParameterType) -> Option<Parameter> {
    let is_unsigned = flags & 0x80 != 0;
    let whole = |signed: i64, unsigned: u64| {
        if is_unsigned {
            Parameter::Unsigned(unsigned)
        } else {
            Parameter::Integer(signed)
        }
    };
    Some(match number {
        1 => integer(bytes)
            .map(|it| whole(i8::from_le_bytes(it).into(), u8::from_le_bytes(it).into()))?,
        2 | 13 => integer(bytes)
            .map(|it| whole(i16::from_le_bytes(it).into(), u16::from_le_bytes(it).into()))?,
        3 | 9 => integer(bytes)
            .map(|it| whole(i32::from_le_bytes(it).into(), u32::from_le_bytes(it).into()))?,
        8 => integer(bytes).map(|it| whole(i64::from_le_bytes(it), u64::from_le_bytes(it)))?,
        4 => Parameter::Double(integer(bytes).map(f32::from_le_bytes)?.into()),
        5 => Parameter::Double(integer(bytes).map(f64::from_le_bytes)?),
        6 => Parameter::Null,
        7 | 10 | 11 | 12 => {
            let count = u8(bytes)?;
            take(bytes, usize::from(count))?;
            Parameter::Opaque
        }
        // A BLOB is compared as bytes, whatever the character set.
        249..=252 => {
            string(bytes)?;
            Parameter::Opaque
        }
        0 | 15 | 16 | 245..=255 => Parameter::Bytes(string(bytes)?.to_vec()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        payload: &[u8],
        count: usize,
        types: &mut Vec<ParameterType>,
    ) -> Option<Vec<Parameter>> {
        parameters(&mut &payload[..], count, types, |_| false)
    }

    #[test]
    fn values_are_read_by_their_types_which_hold_for_later_executions() {
        let mut types = Vec::new();
        let first = b"\x04\x01\x08\x00\x08\x80\x06\x00\xfd\x00\x05\x00\
            \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02hi\0\0\0\0\0\0\xf8\x3f";
        let values = [
            Parameter::Integer(-1),
            Parameter::Unsigned(u64::MAX),
            Parameter::Null,
            Parameter::Bytes(b"hi".to_vec()),
            Parameter::Double(1.5),
        ];
        assert_eq!(read(first, 5, &mut types).as_deref(), Some(&values[..]));
        let later = b"\x1c\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\xf8\x3f";
        let later = read(&later[..], 5, &mut types).unwrap();
        assert_eq!(later[..2], [Parameter::Integer(1), Parameter::Unsigned(2)]);
        assert_eq!(later[2..4], [Parameter::Null, Parameter::Null]);
    }

    #[test]
    fn executions_without_types_or_with_missing_bytes_are_not_read() {
        assert_eq!(read(b"\0\0\x01", 1, &mut Vec::new()), None, "no types");
        assert_eq!(
            read(b"\0\x01\x03\0\x01\0", 1, &mut Vec::new()),
            None,
            "half an integer"
        );
        assert_eq!(
            read(b"\0\x01\x20\0\x01", 1, &mut Vec::new()),
            None,
            "a type that does not exist"
        );
    }
}
