//! Whether a process of PHP is alive.

use std::fs;
use std::io::ErrorKind;

use rustix::io::Errno;

/// One that has ended and whose parent does not ask for it has as well.
pub fn is_alive(pid: u32) -> bool {
    match fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => {
            // Behind the name, which stands in parentheses and may have some itself.
            let name_ends = stat.iter().rposition(|byte| *byte == b')');
            let state = name_ends.and_then(|end| stat.get(end + 2));
            !matches!(state, Some(b'Z' | b'X'))
        }
        Err(error) => {
            let is_gone = error.kind() == ErrorKind::NotFound
                || error.raw_os_error() == Some(Errno::SRCH.raw_os_error());
            // Without a descriptor left, nothing is known.
            !is_gone
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_that_has_ended_is_not_alive_though_nobody_asked_for_it() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(is_alive(child.id()));
        child.kill().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while is_alive(child.id()) {
            assert!(Instant::now() < until, "it has not ended");
            thread::sleep(Duration::from_millis(5));
        }
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }
}
