//! A query string, read by PHP itself (`parse_str` of the command line's PHP) and by the
//! rules for shared requests: what PHP calls personal or ignored, the rules call so too.
#![no_main]

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Answers each line, a query string in hexadecimal, with the names that PHP finds in it.
const SCRIPT: &str = "while (($line = fgets(STDIN)) !== false) {
    parse_str(hex2bin(trim($line)), $all);
    echo implode(' ', array_map(fn($name) => 'x' . bin2hex((string) $name), array_keys($all))), \"\\n\";
}";

struct Php {
    _child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Php {
    fn start() -> Php {
        let mut child = Command::new("php")
            .args(["-d", "display_errors=0", "-d", "log_errors=0"])
            .args(["-d", "max_input_vars=100000", "-r", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("php runs");
        let to = child.stdin.take().expect("a pipe");
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        Php {
            _child: child,
            to,
            from,
        }
    }

    fn names(&mut self, query: &[u8]) -> Vec<Vec<u8>> {
        let hex: String = query.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.to, "{hex}").expect("php reads");
        let mut line = String::new();
        self.from.read_line(&mut line).expect("php answers");
        let digits = |word: &str| -> Vec<u8> {
            let pairs = word.as_bytes().chunks(2);
            pairs
                .map(|pair| {
                    let text = std::str::from_utf8(pair).expect("digits");
                    u8::from_str_radix(text, 16).expect("digits")
                })
                .collect()
        };
        let words = line.split_whitespace();
        words.map(|word| digits(&word[1..])).collect()
    }
}

thread_local! {
    static PHP: RefCell<Php> = RefCell::new(Php::start());
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    PHP.with_borrow_mut(|php| {
        shared_request::php::fuzz_arguments(bytes, &mut |query| php.names(query));
    });
});
