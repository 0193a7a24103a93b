//! The values of one statement in one piece of memory: a site has hundreds of thousands of them.
//!
//! Each value is a byte for its kind, and its content: whole numbers in as few bytes as they
//! need, texts behind their length, and the list behind IN as the length of its items and the items.

use crate::value::{Value, ValueRef};

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const TEXT: u8 = 2;
const OTHER: u8 = 3;
const LIST: u8 = 4;

/// A value as the tokens of a statement have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Argument {
    One(Value),
    /// The list behind IN.
    List(Vec<Value>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Arguments(Box<[u8]>);

impl Arguments {
    pub(crate) fn of(arguments: &[Argument]) -> Self {
        let mut bytes = Vec::new();
        for argument in arguments {
            match argument {
                Argument::One(value) => push(value, &mut bytes),
                Argument::List(values) => {
                    let mut items = Vec::new();
                    values.iter().for_each(|value| push(value, &mut items));
                    bytes.push(LIST);
                    push_number(items.len() as u64, &mut bytes);
                    bytes.extend(items);
                }
            }
        }
        Self(bytes.into_boxed_slice())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// One value, or those of a list.
    pub(crate) fn get(&self, number: usize) -> Option<ArgumentValues<'_>> {
        let mut rest = Values(&self.0);
        for _ in 0..number {
            rest.skip_argument()?;
        }
        rest.skip_argument()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ArgumentValues<'a> {
    pub(crate) values: Values<'a>,
    pub(crate) is_list: bool,
}

/// Values that follow each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    pub(crate) const NULL: Values<'static> = Values(&[NULL]);
    pub(crate) const OTHER: Values<'static> = Values(&[OTHER]);

    fn skip_argument(&mut self) -> Option<ArgumentValues<'a>> {
        let before = self.0;
        if *before.first()? == LIST {
            self.0 = &before[1..];
            let values = Values(self.take_counted()?);
            return Some(ArgumentValues {
                values,
                is_list: true,
            });
        }
        self.next()?;
        let length = before.len() - self.0.len();
        Some(ArgumentValues {
            values: Values(&before[..length]),
            is_list: false,
        })
    }

    fn take_number(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take_counted(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.take_number()?).ok()?;
        let (content, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        let (kind, rest) = self.0.split_first()?;
        self.0 = rest;
        match *kind {
            NULL => Some(ValueRef::Null),
            INTEGER => {
                let number = self.take_number()?;
                // The sign is the last bit, so that small negative numbers are short as well.
                Some(ValueRef::Integer(
                    (number >> 1) as i64 ^ -((number & 1) as i64),
                ))
            }
            TEXT => Some(ValueRef::Text(self.take_counted()?)),
            _ => Some(ValueRef::Other),
        }
    }
}

fn push(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Null => bytes.push(NULL),
        Value::Integer(number) => {
            bytes.push(INTEGER);
            push_number(((number << 1) ^ (number >> 63)) as u64, bytes);
        }
        Value::Text(text) => {
            bytes.push(TEXT);
            push_number(text.len() as u64, bytes);
            bytes.extend(text);
        }
        Value::Other => bytes.push(OTHER),
    }
}

fn push_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            Just(Value::Other),
            any::<i64>().prop_map(Value::Integer),
            (-200_i64..200).prop_map(Value::Integer),
            vec(any::<u8>(), 0..300).prop_map(Value::Text),
        ]
    }

    proptest! {
        #[test]
        fn values_come_back_as_they_were(lists in vec((vec(value(), 1..4), any::<bool>()), 0..5)) {
            let arguments: Vec<_> = lists.iter().map(|(values, is_list)| match is_list {
                true => Argument::List(values.clone()),
                false => Argument::One(values[0].clone()),
            }).collect();
            let encoded = Arguments::of(&arguments);
            for (number, argument) in arguments.iter().enumerate() {
                let found = encoded.get(number).unwrap();
                let values: Vec<_> = found.values.map(|it| it.to_value()).collect();
                let read = match found.is_list {
                    true => Argument::List(values),
                    false => Argument::One(values[0].clone()),
                };
                prop_assert_eq!(&read, argument);
            }
            prop_assert!(encoded.get(arguments.len()).is_none());
        }
    }
}
