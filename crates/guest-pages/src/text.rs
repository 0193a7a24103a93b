//! The places where answers to the same request differ: their runs of bytes between delimiters are walked side by side.

/// Stands between runs: what markup, addresses and scripts are made of. What tokens are written with (`+ / = - _ . %`
/// but for `=`, which only ends them) is within runs.
const fn is_delimiter(byte: u8) -> bool {
    byte <= b' '
        || matches!(
            byte,
            b'<' | b'>'
                | b'"'
                | b'\''
                | b'`'
                | b'&'
                | b';'
                | b'?'
                | b'='
                | b'#'
                | b','
                | b':'
                | b'('
                | b')'
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b'|'
        )
}

/// A run of bytes: where it begins and ends. Behind it is a delimiter, or the end of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub start: usize,
    pub end: usize,
}

impl Run {
    pub(crate) fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// The run that begins at `start`.
pub(crate) fn run_at(text: &[u8], start: usize) -> Run {
    let rest = text.get(start..).unwrap_or_default();
    let length = rest
        .iter()
        .position(|&byte| is_delimiter(byte))
        .unwrap_or(rest.len());
    Run {
        start,
        end: start + length,
    }
}

/// The runs of several texts, side by side, as long as the delimiters between them are the same.
pub(crate) struct SideBySide<'t> {
    texts: &'t [&'t [u8]],
    at: Vec<usize>,
    is_over: bool,
}

/// The next piece of all texts.
pub(crate) enum Next {
    /// They have these bytes in common, up to here in the first text.
    Same,
    /// A run that is not the same in all of them: one for each text.
    Different(Vec<Run>),
    /// The delimiters between runs are not the same.
    Apart,
    End,
}

impl<'t> SideBySide<'t> {
    pub(crate) fn new(texts: &'t [&'t [u8]]) -> SideBySide<'t> {
        SideBySide {
            texts,
            at: vec![0; texts.len()],
            is_over: false,
        }
    }

    /// One run of each, and the delimiter behind it.
    pub(crate) fn next(&mut self) -> Next {
        if self.is_over {
            return Next::End;
        }
        let runs: Vec<Run> = self
            .texts
            .iter()
            .zip(&self.at)
            .map(|(text, at)| run_at(text, *at))
            .collect();
        let behind = |index: usize| {
            let (text, run) = (self.texts.get(index)?, runs.get(index)?);
            text.get(run.end).copied()
        };
        let delimiter = behind(0);
        if (1..runs.len()).any(|index| behind(index) != delimiter) {
            return Next::Apart;
        }
        self.is_over = delimiter.is_none();
        for (at, run) in self.at.iter_mut().zip(&runs) {
            *at = run.end + 1;
        }
        let mut values = runs.iter().zip(self.texts).map(|(run, text)| run.of(text));
        let first = values.next().unwrap_or_default();
        match values.all(|value| value == first) {
            true => Next::Same,
            false => Next::Different(runs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(texts: &[&[u8]]) -> String {
        let mut walked = SideBySide::new(texts);
        let mut found = String::new();
        loop {
            match walked.next() {
                Next::Same => found.push('.'),
                Next::Different(runs) => {
                    found.push_str(&String::from_utf8_lossy(runs[0].of(texts[0])));
                }
                Next::Apart => return found + "!",
                Next::End => return found,
            }
        }
    }

    #[test]
    fn texts_are_walked_run_by_run() {
        assert_eq!(walk(&[b"a=1&b=2", b"a=1&b=3"]), "...2");
        assert_eq!(walk(&[b"<a x>", b"<a y>"]), "..x.");
        assert_eq!(walk(&[b"", b""]), ".");
        assert_eq!(walk(&[b"a", b"a b"]), "!");
        assert_eq!(walk(&[b"x+/y", b"zz"]), "x+/y");
        assert_eq!(walk(&[b"<b>1</b>", b"<b>2</b>", b"<b>1</b>"]), "..1..");
    }
}
