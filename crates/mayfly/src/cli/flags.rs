//! nginx's flags, by nginx's rules (`ngx_get_options`): several letters may
//! share a dash (`-tq`), a value follows its letter at once or as the next
//! argument (`-tc FILE`, `-cFILE`), and the messages are nginx's.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::paths;

/// The action that flags ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read a configuration and serve.
    Run,
    /// `-t` and, with `dump`, `-T`.
    Test { dump: bool },
    /// `-s`.
    Signal(SignalName),
    /// `-v`.
    Version,
    /// `-V`: the parts it was built with.
    Build,
    /// `-h`, `-?`.
    Help,
}

/// Argument of `-s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalName {
    Stop,
    Quit,
    Reload,
    Reopen,
}

/// The values of `-c`, `-p`, `-g`, `-e` and `-q`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-c`, relative to `-p`, and to the current folder without it.
    pub conf: Option<PathBuf>,
    /// `-p`.
    pub prefix: Option<PathBuf>,
    /// `-g`.
    pub globals: Option<String>,
    /// `-e`.
    pub error_log: Option<PathBuf>,
    /// `-q`: only errors are shown by `-t`.
    pub quiet: bool,
}

impl Flags {
    /// Returns the flags of a command that has `-c` and `-p` alone.
    pub fn of_configuration(conf: Option<&PathBuf>, prefix: Option<&PathBuf>) -> Flags {
        Flags {
            conf: conf.cloned(),
            prefix: prefix.cloned(),
            ..Flags::default()
        }
    }

    /// The prefix, absolute.
    pub fn prefix(&self) -> PathBuf {
        let prefix = self.prefix.clone().unwrap_or_else(|| paths::PREFIX.into());
        paths::from_here(prefix)
    }

    /// Returns the configuration file, absolute. Without `-p`, a typed path begins at the
    /// current folder, as for `check`.
    pub fn conf(&self) -> PathBuf {
        match (&self.conf, &self.prefix) {
            (None, _) => self.prefix().join(paths::CONF),
            (Some(conf), Some(_)) => self.prefix().join(conf),
            (Some(conf), None) => paths::from_here(conf.clone()),
        }
    }

    /// The flags as arguments, for a process that shall do the same.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        let mut add = |flag: &str, value: Option<&OsStr>| {
            if let Some(value) = value {
                arguments.extend([flag.into(), value.to_owned()]);
            }
        };
        add("-c", Some(self.conf().as_os_str()));
        add("-p", Some(self.prefix().as_os_str()));
        add("-g", self.globals.as_deref().map(OsStr::new));
        add("-e", self.error_log.as_deref().map(Path::as_os_str));
        arguments
    }
}

/// Flags as they are read.
#[derive(Default)]
struct TypedFlags {
    flags: Flags,
    help: bool,
    version: bool,
    build: bool,
    test: bool,
    dump: bool,
    signal: Option<SignalName>,
}

/// Reads flags (without the program's name).
///
/// # Errors
/// nginx's message.
pub fn parse(arguments: &[OsString]) -> Result<(Flags, Action), String> {
    let mut typed = TypedFlags::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let Some(letters) = argument.as_bytes().strip_prefix(b"-") else {
            return Err(invalid(&argument.to_string_lossy()));
        };
        typed.letters(letters, &mut || arguments.next().cloned())?;
    }
    Ok(typed.action())
}

impl TypedFlags {
    fn letters(
        &mut self,
        letters: &[u8],
        next: &mut dyn FnMut() -> Option<OsString>,
    ) -> Result<(), String> {
        for (index, letter) in letters.iter().enumerate() {
            match letter {
                b'?' | b'h' => self.help = true,
                b'v' => self.version = true,
                b'V' => self.build = true,
                b't' => self.test = true,
                b'T' => (self.test, self.dump) = (true, true),
                b'q' => self.flags.quiet = true,
                b'c' | b'p' | b'e' | b'g' | b's' => {
                    let rest = letters.get(index + 1..).unwrap_or_default();
                    let value = match rest {
                        [] => next(),
                        rest => Some(OsString::from_vec(rest.to_vec())),
                    };
                    return self.value(*letter, value);
                }
                other => return Err(invalid(&char::from(*other).to_string())),
            }
        }
        Ok(())
    }

    fn value(&mut self, letter: u8, value: Option<OsString>) -> Result<(), String> {
        let requires =
            |letter: u8, what: &str| format!("option \"-{}\" requires {what}", char::from(letter));
        let value = value.filter(|value| !value.is_empty());
        match letter {
            b'p' => {
                let value = value.ok_or_else(|| requires(letter, "directory name"))?;
                self.flags.prefix = Some(PathBuf::from(value));
            }
            b'c' | b'e' => {
                let value = value.ok_or_else(|| requires(letter, "file name"))?;
                let place = match letter {
                    b'c' => &mut self.flags.conf,
                    _ => &mut self.flags.error_log,
                };
                *place = Some(PathBuf::from(value));
            }
            b'g' => {
                let value = value.ok_or_else(|| requires(letter, "parameter"))?;
                self.flags.globals = Some(value.to_string_lossy().into_owned());
            }
            _ => {
                let value = value.ok_or_else(|| requires(letter, "parameter"))?;
                self.signal = Some(match value.as_bytes() {
                    b"stop" => SignalName::Stop,
                    b"quit" => SignalName::Quit,
                    b"reload" => SignalName::Reload,
                    b"reopen" => SignalName::Reopen,
                    _ => return Err(invalid(&format!("-s {}", value.to_string_lossy()))),
                });
            }
        }
        Ok(())
    }

    /// nginx's order: help and versions end the program, then `-t`, then `-s`.
    fn action(self) -> (Flags, Action) {
        let action = if self.help {
            Action::Help
        } else if self.build {
            Action::Build
        } else if self.version {
            Action::Version
        } else if self.test {
            Action::Test { dump: self.dump }
        } else {
            self.signal.map_or(Action::Run, Action::Signal)
        };
        (self.flags, action)
    }
}

fn invalid(option: &str) -> String {
    format!("invalid option: \"{option}\"")
}

/// Returns the text of `-h`.
pub fn help() -> String {
    format!(
        "\
Usage: mayfly [-?hvVtTq] [-s signal] [-p prefix]
              [-e filename] [-c filename] [-g directives]
       mayfly serve DIR
       mayfly check [--explain] FILE
       mayfly help [WORD]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a running server: stop, quit, reopen, reload
  -p prefix     : set prefix path (default: {prefix})
  -e filename   : set error log file
  -c filename   : set configuration file (default: {conf});
                  begins at the prefix with -p, else where you are
  -g directives : set global directives out of configuration file

Exit codes: 0 done; 1 refused (bad configuration or flags, failed start or signal);
            2 a word was used wrongly
",
        prefix = paths::PREFIX,
        conf = paths::CONF,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<(Flags, Action), String> {
        let arguments: Vec<OsString> = line
            .split(' ')
            .filter(|it| !it.is_empty())
            .map(Into::into)
            .collect();
        parse(&arguments)
    }

    fn flags(conf: &str, prefix: &str) -> Flags {
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        Flags {
            conf: path(conf),
            prefix: path(prefix),
            ..Flags::default()
        }
    }

    #[test]
    fn flags_mean_what_they_mean_to_nginx() {
        let quiet = |flags: Flags| Flags {
            quiet: true,
            ..flags
        };
        let test = |flags, dump| (flags, Action::Test { dump });
        let plain = |action| (Flags::default(), action);
        let cases = [
            ("", plain(Action::Run)),
            ("-c a.conf", (flags("a.conf", ""), Action::Run)),
            ("-ca.conf", (flags("a.conf", ""), Action::Run)),
            ("-p /x/ -c a", (flags("a", "/x/"), Action::Run)),
            ("-t", test(Flags::default(), false)),
            ("-tq", test(quiet(Flags::default()), false)),
            ("-t -q", test(quiet(Flags::default()), false)),
            ("-tc a", test(flags("a", ""), false)),
            ("-qtca", test(quiet(flags("a", "")), false)),
            ("-T", test(Flags::default(), true)),
            ("-v", plain(Action::Version)),
            ("-V", plain(Action::Build)),
            ("-vV", plain(Action::Build)),
            ("-h", plain(Action::Help)),
            ("-?", plain(Action::Help)),
            ("-tv", plain(Action::Version)),
            (
                "-s quit",
                (Flags::default(), Action::Signal(SignalName::Quit)),
            ),
            (
                "-sreload",
                (Flags::default(), Action::Signal(SignalName::Reload)),
            ),
            (
                "-s stop -c a",
                (flags("a", ""), Action::Signal(SignalName::Stop)),
            ),
            (
                "-s reopen",
                (Flags::default(), Action::Signal(SignalName::Reopen)),
            ),
            ("-t -s quit", test(Flags::default(), false)),
            ("-", plain(Action::Run)),
        ];
        for (line, expected) in cases {
            assert_eq!(run(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn wrong_flags_are_refused_in_nginxs_words() {
        let cases = [
            ("-t x", "invalid option: \"x\""),
            ("-x", "invalid option: \"x\""),
            ("-tz", "invalid option: \"z\""),
            ("-c", "option \"-c\" requires file name"),
            ("-e", "option \"-e\" requires file name"),
            ("-p", "option \"-p\" requires directory name"),
            ("-g", "option \"-g\" requires parameter"),
            ("-s", "option \"-s\" requires parameter"),
            ("-s kill", "invalid option: \"-s kill\""),
            ("--bogus", "invalid option: \"-\""),
        ];
        for (line, message) in cases {
            assert_eq!(run(line), Err(message.to_owned()), "{line:?}");
        }
    }

    #[test]
    fn values_keep_their_spaces() {
        let arguments = ["-g".into(), "pid a; daemon off;".into()];
        let Ok((flags, Action::Run)) = parse(&arguments) else {
            panic!("refused")
        };
        assert_eq!(flags.globals.as_deref(), Some("pid a; daemon off;"));
    }

    #[test]
    fn configuration_is_relative_to_the_prefix() {
        assert_eq!(flags("a/b.conf", "/x").conf(), Path::new("/x/a/b.conf"));
        assert_eq!(flags("/b.conf", "/x").conf(), Path::new("/b.conf"));
        assert_eq!(flags("", "/x").conf(), Path::new(paths::CONF));
        let here = std::env::current_dir().unwrap();
        assert_eq!(flags("a/b.conf", "").conf(), here.join("a/b.conf"));
    }
}
