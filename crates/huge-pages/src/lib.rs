//! Whether this process and the programs it starts may have huge pages (2 MB where others are 4 KB).
//!
//! The allocator asks the kernel for huge pages wherever it may (`thp:always`, `.cargo/config.toml`).
//! They spare a hit in a large store most of the page tables on its way to memory; a small process
//! they make twice as large, for there are many regions of which it uses a part. So the process
//! begins without them ([`begin_without`]), and has them while its store is large ([`permit`]).
//!
//! The kernel keeps one such word per process (`PR_SET_THP_DISABLE`), for all threads, and hands it on
//! to programs that are started: those get the one we were given ([`as_given`]). Without huge pages, or
//! without such a word, all this does nothing.

use parking_lot::Mutex;

static WORD: Mutex<Option<Word>> = Mutex::new(None);

/// The state of the word; none before [`begin_without`].
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// Huge pages were forbidden when this process started: they stay forbidden.
    given_forbidden: bool,
    permitted: bool,
    /// Programs that are being started.
    starting: usize,
}

impl Word {
    fn forbids(self) -> bool {
        self.given_forbidden || (!self.permitted && self.starting == 0)
    }
}

/// Runs without huge pages from now on, until they are permitted.
pub fn begin_without() {
    let mut word = WORD.lock();
    let given = rustix::thread::transparent_huge_pages_are_disabled();
    let given_forbidden = match *word {
        Some(word) => word.given_forbidden,
        None => given.unwrap_or(false),
    };
    let without = Word {
        given_forbidden,
        ..Word::default()
    };
    *word = Some(without);
    say(without);
}

/// Permits huge pages, or forbids them again. Existing memory stays as it is; the kernel may put small
/// pages of it together by and by.
pub fn permit(permitted: bool) {
    change(|word| word.permitted = permitted);
}

/// Starts a program, with the word that this one was started with. Meanwhile huge pages are
/// permitted here too, which is over before it could matter.
pub fn as_given<T>(start: impl FnOnce() -> T) -> T {
    struct StartGuard;
    impl Drop for StartGuard {
        fn drop(&mut self) {
            change(|word| word.starting = word.starting.saturating_sub(1));
        }
    }
    change(|word| word.starting += 1);
    let _starting = StartGuard;
    start()
}

fn change(how: impl FnOnce(&mut Word)) {
    let mut word = WORD.lock();
    let Some(word) = &mut *word else {
        return;
    };
    let before = word.forbids();
    how(word);
    if word.forbids() != before {
        say(*word);
    }
}

fn say(word: Word) {
    // A kernel that does not know the word has none to keep.
    let _ = rustix::thread::disable_transparent_huge_pages(word.forbids());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// `THP_enabled` of a program's `/proc/PID/status`.
    fn is_permitted(status: &str) -> bool {
        let word = status
            .lines()
            .find_map(|line| line.strip_prefix("THP_enabled:"));
        word.expect("Linux 5.0").trim() == "1"
    }

    fn here() -> bool {
        is_permitted(&std::fs::read_to_string("/proc/self/status").expect("readable"))
    }

    fn in_a_child() -> bool {
        let output = Command::new("cat").arg("/proc/self/status").output();
        is_permitted(&String::from_utf8_lossy(&output.expect("cat").stdout))
    }

    /// One test: the word is the whole process's.
    #[test]
    fn the_process_begins_without_and_its_children_do_not() {
        let given = here();
        assert_eq!(as_given(in_a_child), given, "nothing was changed");
        begin_without();
        assert!(!here());
        assert!(!in_a_child(), "inherited");
        assert_eq!(as_given(in_a_child), given);
        assert!(!here());
        permit(true);
        assert_eq!(here(), given);
        assert_eq!(as_given(in_a_child), given);
        assert_eq!(here(), given);
        permit(false);
        assert!(!here());
        begin_without();
        permit(true);
        assert_eq!(here(), given, "the word that was given is still known");
    }

    #[test]
    fn what_was_forbidden_from_outside_stays_so() {
        let given_forbidden = Word {
            given_forbidden: true,
            permitted: true,
            starting: 1,
        };
        assert!(given_forbidden.forbids());
    }
}
