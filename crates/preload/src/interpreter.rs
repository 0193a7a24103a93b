//! By which program loader another program runs (ELF, 64 bits, little-endian).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The head, the table of segments and the name of the loader stand within the first page or two.
const HEAD_BYTES: u64 = 16 * 1024;

const MACHINE: u16 = if cfg!(target_arch = "aarch64") {
    183
} else {
    62
};

const INTERPRETER_SEGMENT: u32 = 3;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Interpreter {
    Named(String),
    Static,
    OtherMachine,
}

pub(crate) fn interpreter(path: &Path) -> io::Result<Interpreter> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(read(&head).unwrap_or(Interpreter::OtherMachine))
}

/// `None` if it is no program of this kind.
fn read(head: &[u8]) -> Option<Interpreter> {
    if !head.starts_with(b"\x7fELF\x02\x01") || number::<2>(head, 18)? != u64::from(MACHINE) {
        return None;
    }
    let table = usize::try_from(number::<8>(head, 32)?).ok()?;
    let entry_bytes = usize::try_from(number::<2>(head, 54)?).ok()?;
    let entries = usize::try_from(number::<2>(head, 56)?).ok()?;
    for nth in 0..entries {
        let entry = table.checked_add(nth.checked_mul(entry_bytes)?)?;
        if number::<4>(head, entry)? != u64::from(INTERPRETER_SEGMENT) {
            continue;
        }
        let at = usize::try_from(number::<8>(head, entry.checked_add(8)?)?).ok()?;
        let length = usize::try_from(number::<8>(head, entry.checked_add(32)?)?).ok()?;
        let name = head.get(at..at.checked_add(length)?)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        return Some(Interpreter::Named(
            String::from_utf8_lossy(name).into_owned(),
        ));
    }
    Some(Interpreter::Static)
}

fn number<const BYTES: usize>(head: &[u8], at: usize) -> Option<u64> {
    let bytes = head.get(at..at.checked_add(BYTES)?)?;
    let mut whole = [0; 8];
    whole[..BYTES].copy_from_slice(bytes);
    Some(u64::from_le_bytes(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_this_machine_name_their_loader() {
        let own = interpreter(&std::env::current_exe().unwrap()).unwrap();
        assert!(
            matches!(&own, Interpreter::Named(name) if name.starts_with('/')),
            "{own:?}"
        );
    }

    #[test]
    fn nonsense_is_no_program_of_this_machine() {
        let mut head = vec![0xff; 200];
        assert_eq!(read(&head), None);
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(read(&head), None, "another machine");
        head[18..20].copy_from_slice(&MACHINE.to_le_bytes());
        assert_eq!(read(&head), None, "a table beyond the end");
        head[32..40].copy_from_slice(&64_u64.to_le_bytes());
        head[56..58].copy_from_slice(&[0; 2]);
        assert_eq!(read(&head), Some(Interpreter::Static));
        for length in 0..head.len() {
            let _ = read(&head[..length]);
        }
    }
}
