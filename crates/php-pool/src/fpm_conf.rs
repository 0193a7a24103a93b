//! `PoolSpec` in, text of php-fpm's configuration file out; pure. The file is read by PHP's ini
//! scanner, so values are quoted such that the scanner gives back exactly the administrator's
//! text; a value that it cannot give back is refused by name instead of changed silently.

use std::fmt;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::spec::{LogLevel, PoolSpec, ProcessManager};

/// The rights of the master: only root may choose the account of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterAccount {
    /// May become any account, and must name it.
    Root,
    /// Workers run as the master does: as the account that the process had when it became php-fpm.
    Ordinary,
}

/// The line of php-fpm's that sets how much the others go before its workers.
pub(crate) const PRIORITY: &str = "process.priority";

/// A value that php-fpm's configuration cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct SpecError {
    /// The value, in the words of the `php_pool` block.
    pub setting: String,
    /// The reason for the refusal.
    pub reason: &'static str,
}

/// php-fpm's configuration for `spec` with that many workers, listening on
/// `socket`.
///
/// # Errors
/// The first value that php-fpm's configuration cannot carry.
pub fn render(
    spec: &PoolSpec,
    workers: u32,
    socket: &Path,
    account: MasterAccount,
) -> Result<String, SpecError> {
    check_name(&spec.name)?;
    if workers == 0 {
        return Err(refuse("workers", "a pool needs at least one worker"));
    }
    let mut conf = Conf::default();
    conf.section("global");
    // `--force-stderr` sends it to our pipe; php-fpm opens a file all the same.
    conf.bare("error_log", "/dev/null");
    // The notice that it is ready must always reach us.
    conf.bare(
        "log_level",
        level_word(spec.log_level.min(LogLevel::Notice)),
    );
    conf.bare("daemonize", "no");
    conf.bare(
        "process_control_timeout",
        seconds(spec.drain_timeout).max(1),
    );

    conf.section(&spec.name);
    conf.path("listen", socket)?;
    if account == MasterAccount::Root {
        let run_as = spec.run_as.as_ref().ok_or_else(|| {
            refuse(
                "user",
                "started as root, so it must say who runs PHP (php-fpm refuses otherwise)",
            )
        })?;
        conf.text("user", &run_as.user)?;
        if let Some(group) = &run_as.group {
            conf.text("group", group)?;
        }
    }
    conf.manager(&spec.manager, workers)?;
    conf.bare("pm.max_requests", spec.max_requests);
    conf.bare("clear_env", on_off(spec.clear_env));
    conf.bare("catch_workers_output", on_off(spec.catch_workers_output));
    if let Some(timeout) = spec.request_terminate_timeout {
        conf.bare("request_terminate_timeout", seconds(timeout));
    }
    if let Some(slow_log) = &spec.slow_log {
        conf.path("slowlog", &slow_log.file)?;
        conf.bare("request_slowlog_timeout", seconds(slow_log.timeout));
    }
    if let Some(chdir) = &spec.chdir {
        conf.path("chdir", chdir)?;
    }
    if let Some(files) = spec.rlimit_files {
        conf.bare("rlimit_files", files);
    }
    conf.settings(spec)?;
    if account == MasterAccount::Ordinary {
        conf.extra_without_root(spec)?;
    } else {
        conf.extra(spec)?;
    }
    Ok(conf.text)
}

/// Whether the name can be a section of the file and part of a socket's path.
fn check_name(name: &str) -> Result<(), SpecError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || name.len() > PoolSpec::MAX_NAME_BYTES || !name.bytes().all(fits) {
        let reason = "must be 1 to 32 letters, digits, `_`, `-` or `.`";
        return Err(refuse(&format!("php_pool {name:?}"), reason));
    }
    if name.eq_ignore_ascii_case("global") {
        return Err(refuse(
            "php_pool global",
            "php-fpm has another use for this name",
        ));
    }
    Ok(())
}

/// The file being written.
#[derive(Default)]
struct Conf {
    text: String,
}

impl Conf {
    fn section(&mut self, name: &str) {
        self.line(format_args!("[{name}]"));
    }

    /// A value that needs no quotes: numbers and words of ours.
    fn bare(&mut self, key: &str, value: impl fmt::Display) {
        self.line(format_args!("{key} = {value}"));
    }

    /// A value from outside.
    fn text(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let quoted = quote(key, value)?;
        self.line(format_args!("{key} = {quoted}"));
        Ok(())
    }

    fn path(&mut self, key: &str, value: &Path) -> Result<(), SpecError> {
        if !value.is_absolute() {
            return Err(refuse(key, "must be an absolute path"));
        }
        let text = value.to_str().ok_or_else(|| refuse(key, "must be UTF-8"))?;
        self.text(key, text)
    }

    fn manager(&mut self, manager: &ProcessManager, workers: u32) -> Result<(), SpecError> {
        self.bare("pm.max_children", workers);
        match manager {
            ProcessManager::Static => self.bare("pm", "static"),
            ProcessManager::OnDemand { idle_timeout } => {
                self.bare("pm", "ondemand");
                self.bare(
                    "pm.process_idle_timeout",
                    format_args!("{}s", seconds(*idle_timeout).max(1)),
                );
            }
            ProcessManager::Dynamic {
                start,
                min_spare,
                max_spare,
            } => {
                let most = max_spare
                    .unwrap_or((workers / 4 * 3).max(1))
                    .max(min_spare.unwrap_or(1));
                let least = min_spare.unwrap_or((workers / 4).max(1)).min(most);
                let start = start.unwrap_or(least + (most - least) / 2);
                if !(1 <= least && least <= start && start <= most && most <= workers) {
                    let setting = format!(
                        "min_spare_servers {least}, start_servers {start}, max_spare_servers {most}, workers {workers}"
                    );
                    return Err(refuse(
                        &setting,
                        "must not decrease in this order and begin with 1 or more",
                    ));
                }
                self.bare("pm", "dynamic");
                self.bare("pm.start_servers", start);
                self.bare("pm.min_spare_servers", least);
                self.bare("pm.max_spare_servers", most);
            }
        }
        Ok(())
    }

    /// Environment and php.ini settings.
    fn settings(&mut self, spec: &PoolSpec) -> Result<(), SpecError> {
        for (name, value) in &spec.env {
            check_key("env", name)?;
            if value.starts_with('$') {
                let reason = "php-fpm would replace a value that begins with `$` by a variable of its own environment";
                return Err(refuse(&format!("env {name}"), reason));
            }
            self.text(&format!("env[{name}]"), value)?;
        }
        let values = [
            ("php_value", &spec.php_value),
            ("php_admin_value", &spec.php_admin_value),
        ];
        for (kind, list) in values {
            for (name, value) in list {
                check_key(kind, name)?;
                self.text(&format!("{kind}[{name}]"), value)?;
            }
        }
        let flags = [
            ("php_flag", &spec.php_flag),
            ("php_admin_flag", &spec.php_admin_flag),
        ];
        for (kind, list) in flags {
            for (name, value) in list {
                check_key(kind, name)?;
                self.bare(&format!("{kind}[{name}]"), on_off(*value));
            }
        }
        Ok(())
    }

    /// Lines that have no directive of their own.
    fn extra(&mut self, spec: &PoolSpec) -> Result<(), SpecError> {
        for (name, value) in &spec.extra {
            check_key("ini", name)?;
            self.text(name, value)?;
        }
        Ok(())
    }

    /// Checks the extra settings when php-fpm is not root: those that php-fpm would leave out
    /// silently are refused, except for the priority, which is set before php-fpm starts.
    fn extra_without_root(&mut self, spec: &PoolSpec) -> Result<(), SpecError> {
        for (name, value) in &spec.extra {
            check_key("ini", name)?;
            if ["chroot", "user", "group"].contains(&name.as_str()) {
                let reason =
                    "php-fpm does this as root alone, and is started without root's rights";
                return Err(refuse(&format!("ini {name}"), reason));
            }
            if name != PRIORITY {
                self.text(name, value)?;
            } else if !value
                .parse()
                .is_ok_and(|number: i32| (-19..=20).contains(&number))
            {
                let reason = "must be a number from -19 to 20";
                return Err(refuse(&format!("ini {name}"), reason));
            }
        }
        Ok(())
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Whether a name can stand left of `=`, within brackets or alone.
fn check_key(kind: &str, name: &str) -> Result<(), SpecError> {
    let fits =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']');
    if name.is_empty() || !name.bytes().all(fits) {
        let reason = "the name may only have letters, digits, `_`, `-` and `.`";
        return Err(refuse(&format!("{kind} {name:?}"), reason));
    }
    Ok(())
}

/// A value as PHP's ini scanner reads it back unchanged. Single quotes keep
/// everything but themselves; those stand in double quotes, and the scanner
/// joins neighbours.
fn quote(setting: &str, value: &str) -> Result<String, SpecError> {
    if value.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
        return Err(refuse(
            setting,
            "php-fpm's configuration cannot carry line ends or NUL",
        ));
    }
    if value.contains("$pool") {
        return Err(refuse(
            setting,
            "php-fpm would replace `$pool` by the name of the pool",
        ));
    }
    Ok(value
        .split_inclusive('\'')
        .map(|piece| match piece.strip_suffix('\'') {
            Some("") => r#""'""#.to_owned(),
            Some(before) => format!(r#"'{before}'"'""#),
            None => format!("'{piece}'"),
        })
        .reduce(|whole, piece| whole + &piece)
        .unwrap_or_else(|| "''".to_owned()))
}

fn level_word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Notice => "notice",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
        LogLevel::Alert => "alert",
    }
}

fn on_off(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}

/// Whole seconds, rounded up: php-fpm knows no fractions, and a limit that comes early would break
/// requests that worked.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

fn refuse(setting: &str, reason: &'static str) -> SpecError {
    SpecError {
        setting: setting.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{RunAs, SlowLog};

    fn rendered(spec: &PoolSpec, account: MasterAccount) -> Result<String, SpecError> {
        render(spec, 8, Path::new("/run/x/fpm.sock"), account)
    }

    fn www_data() -> RunAs {
        RunAs {
            user: "www-data".into(),
            group: None,
            uid: 33,
            gid: 33,
        }
    }

    fn pair(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn whole_spec_becomes_the_file_php_fpm_reads() {
        let mut spec = PoolSpec::new("shop");
        spec.run_as = Some(RunAs {
            group: Some("web".into()),
            ..www_data()
        });
        spec.manager = ProcessManager::Dynamic {
            start: None,
            min_spare: Some(2),
            max_spare: None,
        };
        spec.max_requests = 500;
        spec.request_terminate_timeout = Some(Duration::from_millis(1500));
        spec.slow_log = Some(SlowLog {
            file: "/var/log/slow".into(),
            timeout: Duration::from_secs(3),
        });
        spec.chdir = Some("/srv/shop".into());
        spec.rlimit_files = Some(4096);
        spec.log_level = LogLevel::Warning;
        spec.env = pair("DB", "it's \"x\" \\ ${HOME};#");
        spec.php_value = pair("date.timezone", "Europe/Berlin");
        spec.php_admin_value = pair("memory_limit", "128M");
        spec.php_flag = vec![("display_errors".into(), false)];
        spec.php_admin_flag = vec![("log_errors".into(), true)];
        spec.extra = pair("process.priority", "-5");
        let expected = r#"[global]
error_log = /dev/null
log_level = notice
daemonize = no
process_control_timeout = 30
[shop]
listen = '/run/x/fpm.sock'
user = 'www-data'
group = 'web'
pm.max_children = 8
pm = dynamic
pm.start_servers = 4
pm.min_spare_servers = 2
pm.max_spare_servers = 6
pm.max_requests = 500
clear_env = on
catch_workers_output = off
request_terminate_timeout = 2
slowlog = '/var/log/slow'
request_slowlog_timeout = 3
chdir = '/srv/shop'
rlimit_files = 4096
env[DB] = 'it'"'"'s "x" \ ${HOME};#'
php_value[date.timezone] = 'Europe/Berlin'
php_admin_value[memory_limit] = '128M'
php_flag[display_errors] = off
php_admin_flag[log_errors] = on
process.priority = '-5'
"#;
        assert_eq!(rendered(&spec, MasterAccount::Root).unwrap(), expected);
    }

    #[test]
    fn user_is_left_out_for_an_ordinary_account_and_needed_for_root() {
        let mut spec = PoolSpec::new("site");
        assert_eq!(
            rendered(&spec, MasterAccount::Root).unwrap_err().setting,
            "user"
        );
        spec.run_as = Some(www_data());
        assert!(
            !rendered(&spec, MasterAccount::Ordinary)
                .unwrap()
                .contains("user =")
        );
    }

    #[test]
    fn what_php_fpm_does_only_as_root_is_not_written_for_it_without_a_word() {
        let mut spec = PoolSpec::new("site");
        let mut written = |name: &str, value: &str| {
            spec.extra = pair(name, value);
            rendered(&spec, MasterAccount::Ordinary)
        };
        assert_eq!(written("chroot", "/srv").unwrap_err().setting, "ini chroot");
        let priority = "process.priority";
        assert!(!written(priority, "5").unwrap().contains(priority));
        let refused = written(priority, "5; rm").unwrap_err();
        assert_eq!(refused.setting, "ini process.priority");
    }

    #[test]
    fn what_php_fpm_cannot_carry_is_refused_by_name() {
        type Change = fn(&mut PoolSpec);
        let cases: [(&str, Change, &str); 13] = [
            ("line end", |spec| spec.env = pair("A", "x\ny"), "env[A]"),
            (
                "carriage return",
                |spec| spec.php_value = pair("a", "x\ry"),
                "php_value[a]",
            ),
            (
                "NUL",
                |spec| spec.php_admin_value = pair("a", "\0"),
                "php_admin_value[a]",
            ),
            (
                "pool's name",
                |spec| spec.php_value = pair("a", "x$pool"),
                "php_value[a]",
            ),
            (
                "own variable",
                |spec| spec.env = pair("A", "$HOME"),
                "env A",
            ),
            (
                "key with equals",
                |spec| spec.php_value = pair("a=b", "c"),
                "php_value \"a=b\"",
            ),
            ("empty key", |spec| spec.env = pair("", "c"), "env \"\""),
            (
                "key with line end",
                |spec| spec.extra = pair("a\nb", "c"),
                "ini \"a\\nb\"",
            ),
            (
                "name with bracket",
                |spec| spec.name = "a]b".into(),
                "php_pool \"a]b\"",
            ),
            (
                "empty name",
                |spec| spec.name = String::new(),
                "php_pool \"\"",
            ),
            (
                "name of the global section",
                |spec| spec.name = "Global".into(),
                "php_pool global",
            ),
            (
                "relative folder",
                |spec| spec.chdir = Some("srv".into()),
                "chdir",
            ),
            (
                "spares out of order",
                |spec| {
                    spec.manager = ProcessManager::Dynamic {
                        start: Some(1),
                        min_spare: Some(5),
                        max_spare: Some(6),
                    };
                },
                "min_spare_servers 5, start_servers 1, max_spare_servers 6, workers 8",
            ),
        ];
        for (name, change, setting) in cases {
            let mut spec = PoolSpec::new("site");
            change(&mut spec);
            let error = rendered(&spec, MasterAccount::Ordinary).expect_err(name);
            assert_eq!(error.setting, setting, "{name}");
        }
    }

    #[test]
    fn dynamic_numbers_left_out_are_accepted_for_any_number_of_workers() {
        let mut spec = PoolSpec::new("site");
        spec.manager = ProcessManager::Dynamic {
            start: None,
            min_spare: None,
            max_spare: None,
        };
        for workers in 1..=64 {
            let result = render(&spec, workers, Path::new("/s"), MasterAccount::Ordinary);
            assert!(result.is_ok(), "{workers}: {result:?}");
        }
    }

    #[test]
    fn quotes_keep_every_character() {
        let cases = [
            ("", "''"),
            ("on", "'on'"),
            ("'", r#""'""#),
            ("a'", r#"'a'"'""#),
            ("''b", r#""'""'"'b'"#),
        ];
        for (value, expected) in cases {
            assert_eq!(quote("x", value).unwrap(), expected, "{value:?}");
        }
    }
}
