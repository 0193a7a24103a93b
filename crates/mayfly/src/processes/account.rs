//! The accounts that serve and that run PHP, when root starts the program.
//!
//! They are two accounts, so that a script can neither signal the server nor look into it,
//! nor connect to the sockets of the pools. PHP takes the account that sites usually belong
//! to. The server takes one that nothing else uses:
//!
//! 1. `mayfly`, if there is such an account (a package may make it);
//! 2. else a number without a name, from the range that systemd keeps for accounts that
//!    exist only while a service runs;
//! 3. else `nobody`.
//!
//! Beside its own group it has the one of PHP's account, since many sites are readable for that group alone. An
//! account named by `user` is taken as it is.
//!
//! Names are looked up with `id` and `getent`, which Debian always has, so that
//! accounts from LDAP and the like count as well.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use rustix::thread::CapabilitySet;
use site::{PhpPool, Process, Site, User};

/// An account of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name; its number where it has none.
    pub name: String,
    pub group: Option<String>,
    pub uid: u32,
    pub gid: u32,
    /// Its further groups, where they are not those that the system knows.
    groups: Option<Vec<u32>>,
}

/// The server's own account, where it was made.
const SERVER: &str = "mayfly";
/// The accounts that run PHP: that of Debian's sites, else that of nginx.
const PHP_DEFAULTS: [&str; 2] = ["www-data", NOBODY];
const NOBODY: &str = "nobody";
/// Numbers of accounts that own no file and no name for long: systemd's range for `DynamicUser`.
pub const NUMBERS: RangeInclusive<u32> = 61184..=65519;
/// Numbers looked at, each of which another server may have taken.
const MAX_NUMBERS_TRIED: usize = 256;

/// `setpriv` of util-linux, which Debian always has.
pub const SETPRIV: &str = "/usr/bin/setpriv";

impl Account {
    /// Returns the arguments with which `setpriv` becomes this account.
    pub fn setpriv_arguments(&self) -> Vec<String> {
        let groups = self.groups.as_deref().unwrap_or_default();
        let numbers: Vec<String> = groups.iter().map(u32::to_string).collect();
        vec![
            format!("--reuid={}", self.uid),
            format!("--regid={}", self.gid),
            match &self.groups {
                None => "--init-groups".to_owned(),
                Some(_) if numbers.is_empty() => "--clear-groups".to_owned(),
                Some(_) => format!("--groups={}", numbers.join(",")),
            },
        ]
    }
}

/// Whether this process has root's rights.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether capabilities can be taken away from started programs. In a container, root may lack the right to.
pub fn may_drop_capabilities() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SETPCAP))
}

/// The account to change to; `None` when there is nothing to change, because
/// we are not root or root is wanted. `former`: the number of the account whose
/// server this one takes the place of, or whose kept pages it goes on with.
///
/// # Errors
/// nginx's message for an unknown name.
pub fn to_serve(user: Option<&User>, former: Option<u32>) -> Result<Option<Account>, String> {
    if !is_root() {
        return Ok(None);
    }
    let account = match user {
        Some(user) => find_user(user)?,
        None => server_default(former)?,
    };
    Ok(Some(account).filter(|account| account.uid != 0))
}

/// Returns the account that runs the PHP of a pool when root starts it.
///
/// # Errors
/// nginx's message for an unknown name.
pub fn to_run_php(pool: &PhpPool) -> Result<Account, String> {
    match &pool.user {
        Some(user) => find_user(user),
        None => php_default(),
    }
}

/// Returns the account that serves when root starts the program and the configuration names none; `former` as
/// in [`to_serve`].
///
/// # Errors
/// Not even `nobody` exists.
pub fn server_default(former: Option<u32>) -> Result<Account, String> {
    let php_group = php_default().map(|php| php.gid).ok();
    if let Ok(mut account) = find(SERVER, None) {
        let known = printed("id", &["-G", "--", SERVER]).unwrap_or_default();
        let known = known
            .split_whitespace()
            .filter_map(|word| word.parse().ok());
        account.groups = Some(known.chain(php_group).collect());
        return Ok(account);
    }
    match unused_number(former) {
        Some(number) => Ok(Account {
            name: number.to_string(),
            group: None,
            uid: number,
            gid: number,
            groups: Some(php_group.into_iter().collect()),
        }),
        None => find(NOBODY, None),
    }
}

/// Returns the account that runs PHP when root starts it and the configuration names none.
///
/// # Errors
/// Not even `nobody` exists.
pub fn php_default() -> Result<Account, String> {
    PHP_DEFAULTS
        .iter()
        .find_map(|name| find(name, None).ok())
        .ok_or_else(|| format!("none of the users {PHP_DEFAULTS:?} exists; name one with \"user\""))
}

/// Returns warnings about pools that run PHP as the account that serves when root starts the program, one line
/// each.
pub fn shared_with_php(process: &Process) -> Vec<String> {
    let Some(server) = &process.user else {
        return Vec::new();
    };
    let uid = |name: &str| find(name, None).ok().map(|account| account.uid);
    let server_uid = uid(&server.name);
    process
        .php_pools
        .iter()
        .filter_map(|pool| {
            let php = match &pool.user {
                Some(user) => user.name.clone(),
                None => php_default().ok()?.name,
            };
            (php == server.name || server_uid.is_some() && uid(&php) == server_uid).then(|| {
                format!(
                    "php_pool \"{}\" runs PHP as {php}, and so does the server: a script can end the \
                     server and use its sockets; leave out \"user\" of the main context, or name another",
                    pool.name
                )
            })
        })
        .collect()
}

fn find_user(user: &User) -> Result<Account, String> {
    find(&user.name, user.group.as_deref())
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
        groups: None,
    })
}

/// The number without a name that owns a folder in which a zone of `site` keeps pages: a former server had it.
pub fn owner_of_kept_pages(site: &Site) -> Option<u32> {
    let disks = site
        .http
        .cache_zones
        .iter()
        .filter_map(|it| it.disk.as_ref());
    disks
        .filter_map(|disk| Some(std::fs::symlink_metadata(&disk.folder).ok()?.uid()))
        .find(|uid| NUMBERS.contains(uid))
}

/// Returns a number that belongs to no account and to no process. Workers that were killed a moment ago, or
/// whose place is taken, may still run as `former`.
fn unused_number(former: Option<u32>) -> Option<u32> {
    let maps = ["uid_map", "gid_map"]
        .map(|name| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default());
    let in_use = running();
    let own = former.filter(|number| NUMBERS.contains(number));
    own.into_iter()
        .chain(NUMBERS.rev().filter(|number| !in_use.contains(number)))
        .take(MAX_NUMBERS_TRIED)
        .find(|&number| {
            maps.iter().all(|map| is_mapped(map, number))
                && ["passwd", "group"]
                    .iter()
                    .all(|base| has_no_name(base, number))
        })
}

/// Returns the accounts of this machine's processes.
fn running() -> BTreeSet<u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|process| Some(process.ok()?.metadata().ok()?.uid()))
        .collect()
}

/// Whether a number means something here: in a container, many do not. The lines are
/// `FIRST-HERE FIRST-OUTSIDE COUNT`.
fn is_mapped(map: &str, number: u32) -> bool {
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().map(|word| word.parse::<u64>().ok());
        let (Some(first), Some(count)) = (fields.next().flatten(), fields.nth(1).flatten()) else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&u64::from(number))
    })
}

fn has_no_name(base: &str, number: u32) -> bool {
    // `getent` exits with 2 if it does not exist; any other code is not that answer.
    Command::new("getent")
        .args([base, &number.to_string()])
        .output()
        .is_ok_and(|output| output.status.code() == Some(2))
}

/// Whether an account may open files in a folder, with all that decides it (folders above, groups, access
/// lists): asked as that account. True if `getent` gives no answer.
pub fn may_enter(account: &Account, folder: &Path) -> bool {
    may(account, "-x", folder)
}

/// Whether an account may read a file; see [`may_enter`].
pub fn may_read(account: &Account, file: &Path) -> bool {
    may(account, "-r", file)
}

/// The account of this name.
///
/// # Errors
/// There is no such account.
pub fn named(name: &str) -> Result<Account, String> {
    find(name, None)
}

fn may(account: &Account, right: &str, path: &Path) -> bool {
    let status = Command::new(SETPRIV)
        .args(account.setpriv_arguments())
        .args(["--", "test", right])
        .arg(path)
        .status();
    // `test` exits with 1 if it is false; any other code is not its answer.
    !status.is_ok_and(|status| status.code() == Some(1))
}

/// Returns the output of a small program; `None` if it fails.
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
        let account = php_default().unwrap();
        let mut mode = std::fs::metadata(folder.path()).unwrap().permissions();
        for (bits, expected) in [(0o700, false), (0o711, true)] {
            std::os::unix::fs::PermissionsExt::set_mode(&mut mode, bits);
            std::fs::set_permissions(folder.path(), mode.clone()).unwrap();
            assert_eq!(may_enter(&account, &inner), expected, "{bits:o}");
        }
    }

    #[test]
    fn the_server_has_an_account_that_is_not_phps_but_reads_what_its_group_may() {
        if !is_root() {
            return;
        }
        let (server, php) = (server_default(None).unwrap(), php_default().unwrap());
        assert_ne!(server.uid, php.uid);
        assert_ne!(server.gid, php.gid);
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(folder.path(), Some(php.uid), Some(php.gid)).unwrap();
        for (mode, expected) in [(0o750, true), (0o700, false)] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(folder.path(), mode).unwrap();
            assert_eq!(may_enter(&server, folder.path()), expected);
        }
    }

    #[test]
    fn what_takes_a_servers_place_takes_its_number() {
        if !is_root() || find(SERVER, None).is_ok() {
            return;
        }
        let served_as = *NUMBERS.start();
        assert_eq!(server_default(Some(served_as)).unwrap().uid, served_as);
        for other in [None, Some(0), Some(NUMBERS.end() + 1)] {
            let account = server_default(other).unwrap();
            assert!(
                account.uid != served_as && NUMBERS.contains(&account.uid),
                "{other:?}: {account:?}"
            );
        }
    }

    #[test]
    fn numbers_count_where_the_container_knows_them() {
        let whole = "         0          0 4294967295\n";
        let container = "0 100000 65536\n70000 5 1\n";
        assert!(is_mapped(whole, 65519));
        assert!(is_mapped(container, 65519));
        assert!(is_mapped(container, 70000));
        assert!(!is_mapped(container, 65536));
        assert!(!is_mapped("0 1000 1\n", 65519));
        assert!(!is_mapped("", 1));
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
