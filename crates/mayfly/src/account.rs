//! Who serves: the account that a program started by root changes to.
//!
//! Names are looked up with `id` and `getent`, which Debian always has, so that
//! accounts from LDAP and the like count as well.

use std::path::Path;
use std::process::Command;

use site::User;

/// An account of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub group: Option<String>,
    pub uid: u32,
    pub gid: u32,
}

/// Who serves without a `user` directive: what Debian keeps for web servers,
/// else what nginx takes.
const DEFAULTS: [&str; 2] = ["www-data", "nobody"];

/// Of util-linux, which Debian always has.
pub const SETPRIV: &str = "/usr/bin/setpriv";

/// Whether this process has root's rights.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The account to change to; `None` when there is nothing to change, because
/// we are not root or root is wanted.
///
/// # Errors
/// nginx's message for an unknown name.
pub fn to_serve(user: Option<&User>) -> Result<Option<Account>, String> {
    if !is_root() {
        return Ok(None);
    }
    let account = match user {
        Some(user) => find(&user.name, user.group.as_deref())?,
        None => default_account()?,
    };
    Ok(Some(account).filter(|account| account.uid != 0))
}

/// Who runs PHP and serves when started by root and nothing is said.
///
/// # Errors
/// There is not even `nobody`.
pub fn default_account() -> Result<Account, String> {
    DEFAULTS
        .iter()
        .find_map(|name| find(name, None).ok())
        .ok_or_else(|| format!("none of the users {DEFAULTS:?} exists; name one with \"user\""))
}

fn find(name: &str, group: Option<&str>) -> Result<Account, String> {
    let number = |flag: &str| printed("id", &[flag, "--", name]).and_then(|text| text.parse().ok());
    let unknown = || format!("getpwnam(\"{name}\") failed");
    let uid = number("-u").ok_or_else(unknown)?;
    let gid = match group {
        None => number("-g").ok_or_else(unknown)?,
        Some(group) => printed("getent", &["group", "--", group])
            .and_then(|line| line.split(':').nth(2)?.parse().ok())
            .ok_or_else(|| format!("getgrnam(\"{group}\") failed"))?,
    };
    Ok(Account {
        name: name.to_owned(),
        group: group.map(str::to_owned),
        uid,
        gid,
    })
}

/// Whether an account may open files in a folder, with all that decides it
/// (folders above, groups, access lists): asked as that account. True where
/// nobody can tell.
pub fn may_enter(account: &Account, folder: &Path) -> bool {
    let status = Command::new(SETPRIV)
        .arg(format!("--reuid={}", account.uid))
        .arg(format!("--regid={}", account.gid))
        .args(["--init-groups", "--", "test", "-x"])
        .arg(folder)
        .status();
    // `test` says no with 1; anything else is not its answer.
    !status.is_ok_and(|status| status.code() == Some(1))
}

/// What a small program prints; `None` if it fails.
fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_enter_a_folder_is_asked_as_that_account() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("site");
        std::fs::create_dir(&inner).unwrap();
        let account = default_account().unwrap();
        let mut mode = std::fs::metadata(folder.path()).unwrap().permissions();
        for (bits, expected) in [(0o700, false), (0o711, true)] {
            std::os::unix::fs::PermissionsExt::set_mode(&mut mode, bits);
            std::fs::set_permissions(folder.path(), mode.clone()).unwrap();
            assert_eq!(may_enter(&account, &inner), expected, "{bits:o}");
        }
    }

    #[test]
    fn accounts_are_found_by_name_and_unknown_ones_are_named() {
        let root = find("root", None).unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(find("root", Some("root")).unwrap().gid, 0);
        assert!(
            find("no-such-user", None)
                .unwrap_err()
                .contains("no-such-user")
        );
        assert!(
            find("root", Some("no-such-group"))
                .unwrap_err()
                .contains("no-such-group")
        );
    }
}
