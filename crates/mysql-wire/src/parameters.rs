//! The parameters of a prepared statement, as COM_STMT_EXECUTE carries them.

use crate::fields::{integer, string, take, u8};

/// The most parameters that the protocol allows.
pub const MAX_PARAMETERS: usize = 65_535;

#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Null,
    Integer(i64),
    Unsigned(u64),
    Double(f64),
    /// Text in the character set of the connection, or bytes; the protocol does not say which.
    Bytes(Vec<u8>),
    /// A date or time in the protocol's binary form, a BLOB, a decimal or another rare type, or a value that was sent in pieces.
    Opaque,
}

/// The type of a parameter: number and the flag for unsigned integers.
pub(crate) type ParameterType = (u8, u8);

/// Parses the bytes that follow the fixed head of COM_STMT_EXECUTE. `types` are those of the last execution, which
/// count if this one sends none; `is_long(n)` is true if the value of parameter n was sent before.
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
        15 | 253 | 254 => Parameter::Bytes(string(bytes)?.to_vec()),
        // A BLOB is compared as bytes, whatever the character set, and a decimal as a number.
        0 | 16 | 245..=255 => {
            string(bytes)?;
            Parameter::Opaque
        }
        _ => return None,
    })
}

/// COM_STMT_EXECUTE of the statement with this number; `None`: a value is not known.
pub fn execute_command(id: u32, parameters: &[Parameter]) -> Option<Vec<u8>> {
    let mut command = vec![0x17];
    command.extend_from_slice(&id.to_le_bytes());
    // No cursor, once.
    command.extend_from_slice(&[0, 1, 0, 0, 0]);
    if parameters.is_empty() {
        return Some(command);
    }
    let mut nulls = vec![0; parameters.len().div_ceil(8)];
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for (index, parameter) in parameters.iter().enumerate() {
        let parameter_type: ParameterType = match parameter {
            Parameter::Null => {
                *nulls.get_mut(index / 8)? |= 1 << (index % 8);
                (6, 0)
            }
            Parameter::Integer(number) => {
                values.extend_from_slice(&number.to_le_bytes());
                (8, 0)
            }
            Parameter::Unsigned(number) => {
                values.extend_from_slice(&number.to_le_bytes());
                (8, 0x80)
            }
            Parameter::Double(number) => {
                values.extend_from_slice(&number.to_le_bytes());
                (5, 0)
            }
            Parameter::Bytes(bytes) => {
                put_length(&mut values, bytes.len());
                values.extend_from_slice(bytes);
                (253, 0)
            }
            Parameter::Opaque => return None,
        };
        types.extend_from_slice(&[parameter_type.0, parameter_type.1]);
    }
    command.extend_from_slice(&nulls);
    // The types follow.
    command.push(1);
    command.extend_from_slice(&types);
    command.extend_from_slice(&values);
    Some(command)
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(small @ 0..=0xfa) => out.push(small),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&(length as u64).to_le_bytes());
        }
    }
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
    fn parameters_come_back_as_they_were_put_into_a_command() {
        let many = [
            Parameter::Integer(i64::MIN),
            Parameter::Unsigned(u64::MAX),
            Parameter::Null,
            Parameter::Double(-0.5),
            Parameter::Bytes(Vec::new()),
            Parameter::Bytes(vec![b'x'; 0xfa]),
            Parameter::Bytes(vec![b'x'; 0xfb]),
            Parameter::Bytes(vec![b'x'; 70_000]),
            Parameter::Null,
        ];
        for count in 0..=many.len() {
            let command = execute_command(7, &many[..count]).unwrap();
            assert_eq!(command[..10], [0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0]);
            let back = read(&command[10..], count, &mut Vec::new());
            assert_eq!(back.as_deref(), Some(&many[..count]), "{count}");
        }
        assert_eq!(execute_command(7, &[Parameter::Opaque]), None);
    }

    #[test]
    fn decimals_and_blobs_are_not_taken_for_texts() {
        for number in [0, 16, 245, 246, 247, 248, 249, 252, 255] {
            let value = read(&[0, 1, number, 0, 2, b'4', b'2'], 1, &mut Vec::new());
            assert_eq!(value, Some(vec![Parameter::Opaque]), "{number}");
        }
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
