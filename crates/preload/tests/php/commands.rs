//! The library within PHP's command line, as `mayfly run` starts it: its writes are reported to all servers that it
//! was given, also if descriptors are closed that only seem to be those of its connections.

use std::process::Command;

use crate::peers::{Manner, Mayfly, PASSWORD, ReceivedMessage, database};

const UPDATE: &str = "$db->query('UPDATE t SET n = n WHERE id = 95');\n";

/// `close_range(2)`, and a child as that of `vfork(2)`: it has the memory of its parent, and descriptors of its own.
const FOREIGN: &str = "
$libc = FFI::cdef('void *dlsym(void *from, const char *name);
    int close_range(unsigned first, unsigned last, int flags);
    int clone(void *function, void *stack, int flags, intptr_t argument);
    int waitpid(int process, int *status, int options);');
const CLOSE_RANGE_CLOEXEC = 4;
const CLONE_VM = 0x100, CLONE_VFORK = 0x4000;
";

fn connect() -> String {
    format!(
        "$db = new mysqli('localhost', 'site', '{PASSWORD}', 'site', 0, '{}');\n",
        database().socket()
    )
}

/// Runs a command that should report to these servers; `CODE` is in its environment.
fn run(servers: &[&Mayfly], command: &[&str], code: &str) {
    let folder = tempfile::tempdir().unwrap();
    let library = preload::install(preload::library().unwrap(), folder.path()).unwrap();
    let paths = servers.iter().map(|it| it.path().display().to_string());
    let output = Command::new(command[0])
        .args(&command[1..])
        .env("CODE", code)
        .env("LD_PRELOAD", &library.path)
        .env(
            learn_record::COMMAND_VARIABLE,
            paths.collect::<Vec<_>>().join(":"),
        )
        .output()
        .expect("this test needs PHP's command line");
    assert!(
        output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}

/// Returns the messages of one process until it ends.
fn received(mayfly: &Mayfly) -> Vec<ReceivedMessage> {
    let mut received = Vec::new();
    while received.last() != Some(&ReceivedMessage::End) {
        received.push(mayfly.next());
    }
    received
}

/// Asserts that one process greets, and reports this number of writes and their ends, and nothing else.
fn are_told(mayfly: &Mayfly, writes: u64) {
    let received = received(mayfly);
    let mut received = received.iter();
    let hello = received.next();
    let is_first = matches!(
        hello,
        Some(ReceivedMessage::Hello {
            is_again: false,
            ..
        })
    );
    assert!(is_first, "{hello:?}");
    for expected in 1..=writes {
        let (write, written) = (received.next(), received.next());
        let is_write = matches!(write, Some(ReceivedMessage::Write { number, fetch: 0, text })
            if *number == expected && text.starts_with("UPDATE t"));
        let is_written = matches!(written, Some(ReceivedMessage::Written { number, error: None })
            if *number == expected);
        assert!(is_write && is_written, "{expected}: {write:?} {written:?}");
    }
    assert_eq!(received.as_slice(), [ReceivedMessage::End]);
}

#[test]
fn all_servers_are_told_of_what_a_command_and_the_programs_that_it_starts_write() {
    let servers = [(); 2].map(|()| Mayfly::listen(Manner::Acknowledges));
    let script = "php -r \"$CODE\" && php -r \"$CODE $MORE\"";
    let script = format!("MORE=\"{UPDATE}\"; {script}");
    run(
        &servers.each_ref(),
        &["sh", "-c", &script.replace("$db", "\\$db")],
        &(connect() + UPDATE),
    );
    for mayfly in &servers {
        are_told(mayfly, 1);
        are_told(mayfly, 2);
    }
}

/// Runs a script of PHP's command line, which reports to one server.
fn is_told(code: &str, writes: u64) {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    run(
        &[&mayfly],
        &["php", "-d", "ffi.enable=1", "-r", "eval(getenv('CODE'));"],
        &format!("{FOREIGN} {} {code}", connect()),
    );
    are_told(&mayfly, writes);
}

#[test]
fn descriptors_that_are_to_be_closed_at_exec_are_still_followed() {
    let mark = "if ($libc->close_range(3, 1023, CLOSE_RANGE_CLOEXEC) !== 0) exit(1);";
    is_told(&format!("{mark} {UPDATE} {mark} {UPDATE}"), 2);
}

/// Python's subprocess and others close in such a child the files that are not the child's.
#[test]
fn what_a_child_closes_in_the_memory_of_its_parent_stays_open_in_the_parent() {
    let close = "
        $stack = $libc->new('char[262144]', false);
        foreach (['close' => range(3, 15), 'closefrom' => [3]] as $name => $arguments) {
            foreach ($arguments as $argument) {
                $top = $libc->cast('char *', FFI::addr($stack)) + 262080;
                $child = $libc->clone($libc->dlsym(null, $name), $top, CLONE_VM | CLONE_VFORK | SIGCHLD, $argument);
                if ($child <= 0 || $libc->waitpid($child, null, 0) !== $child) exit(1);
            }
        }";
    is_told(&format!("{close} {UPDATE} {close} {UPDATE}"), 2);
}
