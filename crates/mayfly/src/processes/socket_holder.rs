//! Finds the process that listens where we want to: root can read this in `/proc`, and
//! others for their own processes. Used for one line of an error message.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use site::ListenAddress;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";
/// The state of a socket in `/proc/net/udp` that takes packets of all senders.
const UNCONNECTED: &str = "07";

/// Returns `nginx (process 123)`; `None` if `/proc` does not show it.
pub fn holder(address: &ListenAddress) -> Option<String> {
    let inodes = match address {
        ListenAddress::Tcp(wanted) => ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .flat_map(|table| inodes_of(&table, *wanted, LISTEN))
            .collect(),
        ListenAddress::Udp(wanted) => ["/proc/net/udp", "/proc/net/udp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .flat_map(|table| inodes_of(&table, *wanted, UNCONNECTED))
            .collect(),
        ListenAddress::Unix(path) => {
            let table = fs::read_to_string("/proc/net/unix").ok()?;
            inodes_of_path(&table, path)
        }
    };
    inodes.iter().find_map(|inode| process_with(inode))
}

/// The sockets of a table that listen where `wanted` would be.
fn inodes_of(table: &str, wanted: SocketAddr, wanted_state: &str) -> Vec<String> {
    let lines = table.lines().skip(1);
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
            let (ip, port) = local.split_once(':')?;
            let port = u16::from_str_radix(port, 16).ok()?;
            let is_there = port == wanted.port() && meets(address_of(ip)?, wanted.ip());
            (*state == wanted_state && is_there).then(|| (*inode).to_owned())
        })
        .collect()
}

/// Whether both take connections to one address.
fn meets(held: IpAddr, wanted: IpAddr) -> bool {
    held == wanted || held.is_unspecified() || wanted.is_unspecified()
}

/// `0100007F`: four bytes of an address at a time, in the order of the machine.
fn address_of(hex: &str) -> Option<IpAddr> {
    let mut bytes = Vec::with_capacity(16);
    for at in (0..hex.len()).step_by(8) {
        let word = u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    match bytes.len() {
        4 => Some(<[u8; 4]>::try_from(bytes).ok()?.into()),
        16 => Some(<[u8; 16]>::try_from(bytes).ok()?.into()),
        _ => None,
    }
}

fn inodes_of_path(table: &str, path: &Path) -> Vec<String> {
    let lines = table.lines().skip(1);
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_it = fields.get(7).is_some_and(|at| Path::new(at) == path);
            is_it.then(|| fields.get(6).map(|inode| (*inode).to_owned()))?
        })
        .collect()
}

/// The process that has the socket open, by its name.
fn process_with(inode: &str) -> Option<String> {
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc")
        .ok()?
        .filter_map(|it| Some(it.ok()?.path()));
    let has_it = |process: &Path| {
        // Processes of other accounts cannot be looked into.
        let open = fs::read_dir(process.join("fd")).into_iter().flatten();
        open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
            .any(|target| target == Path::new(&wanted))
    };
    let is_process = |path: &Path| {
        let number = path.file_name().and_then(|name| name.to_str());
        number.and_then(|name| name.parse::<u32>().ok())
    };
    // The oldest: a parent, where children share the socket.
    let (number, process) = processes
        .filter_map(|path| Some((is_process(&path)?, path)))
        .filter(|(_, path)| has_it(path))
        .min_by_key(|(number, _)| *number)?;
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(format!("{} (process {number})", name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_found_by_address_and_port() {
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = own.local_addr().unwrap();
        let other = SocketAddr::new([127, 0, 0, 2].into(), at.port());
        let everywhere = SocketAddr::new([0, 0, 0, 0].into(), at.port());
        let us = format!("(process {})", std::process::id());
        for (wanted, is_held) in [(at, true), (everywhere, true), (other, false)] {
            let found = holder(&ListenAddress::Tcp(wanted));
            let names_us = found.as_ref().is_some_and(|text| text.ends_with(&us));
            assert_eq!(names_us, is_held, "{wanted}: {found:?}");
        }
    }

    #[test]
    fn tables_of_the_kernel_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n\
             1: 0100007F:0050 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 4243 1\n\
             odd line\n";
        let wanted = "127.0.0.1:80".parse().unwrap();
        assert_eq!(inodes_of(table, wanted, LISTEN), ["4242"]);
        assert!(inodes_of(table, "127.0.0.1:81".parse().unwrap(), LISTEN).is_empty());
        let table = "Num RefCount Protocol Flags Type St Inode Path\n\
             0000: 00000002 00000000 00010000 0001 01 77 /run/x.sock\n";
        assert_eq!(inodes_of_path(table, Path::new("/run/x.sock")), ["77"]);
    }
}
