//! Pebble, Let's Encrypt's issuer for tests, with a name server that knows every name as this
//! machine. `scripts/setup.sh test` installs both into `target/tools/pebble`; `MAYFLY_PEBBLE` names
//! another folder.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::process::{KilledOnDrop, free_port};
use crate::tls::Authority;
use crate::wait::until_or;

/// Options in which Pebble differs from its usual behaviour.
#[derive(Debug, Clone, Default)]
pub struct PebbleOptions {
    /// The port at which it looks for the answers to HTTP-01 and TLS-ALPN-01.
    pub http_port: u16,
    pub tls_port: u16,
    /// How many of a hundred nonces it refuses.
    pub refused_nonces: u8,
    /// Key identifier and key (base64url) that a new account must come with.
    pub external_account: Option<(&'static str, &'static str)>,
    /// For how long its certificates are valid; else 90 days.
    pub validity_seconds: Option<u64>,
}

/// A running Pebble.
pub struct Pebble {
    folder: TempDir,
    directory_port: u16,
    /// The port at which TXT records are set.
    records_port: u16,
    _issuer: KilledOnDrop,
    _names: KilledOnDrop,
}

impl Pebble {
    /// Starts it.
    ///
    /// # Panics
    /// When it is not installed, or does not start.
    pub async fn start(options: PebbleOptions) -> Pebble {
        let folder = tempfile::Builder::new().prefix("pebble").tempdir();
        let folder = folder.expect("a folder");
        let authority = Authority::new("the issuer's own");
        let identity = authority.identity("127.0.0.1");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        write("ca.pem", &authority.pem());
        write("cert.pem", &identity.certificate_pem());
        write("key.pem", &identity.key_pem());
        let [directory_port, management_port, dns_port, records_port] =
            std::array::from_fn(|_| free_port());
        let (key_id, key) = options.external_account.unwrap_or_default();
        let validity = options.validity_seconds.unwrap_or(90 * 86_400);
        let configuration = format!(
            r#"{{ "pebble": {{
                "listenAddress": "127.0.0.1:{directory_port}",
                "managementListenAddress": "127.0.0.1:{management_port}",
                "certificate": "cert.pem", "privateKey": "key.pem",
                "httpPort": {}, "tlsPort": {}, "ocspResponderURL": "",
                "externalAccountBindingRequired": {},
                "externalAccountMACKeys": {{ {} }},
                "domainBlocklist": ["blocked.example"],
                "retryAfter": {{ "authz": 1, "order": 1 }},
                "keyAlgorithm": "ecdsa",
                "profiles": {{
                    "default": {{ "description": "usual", "validityPeriod": {validity} }},
                    "short": {{ "description": "five days and a half", "validityPeriod": 475200 }}
                }} }} }}"#,
            options.http_port,
            options.tls_port,
            options.external_account.is_some(),
            match key_id {
                "" => String::new(),
                id => format!("\"{id}\": \"{key}\""),
            },
        );
        write("pebble.json", &configuration);
        let names = Command::new(tool("pebble-challtestsrv"))
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
            .args(["-defaultIPv6", "", "-defaultIPv4", "127.0.0.1"])
            .args(["-dnsserver", &format!("127.0.0.1:{dns_port}")])
            .args(["-management", &format!("127.0.0.1:{records_port}")])
            .stdout(log(folder.path(), "names.log"))
            .stderr(log(folder.path(), "names.err"))
            .spawn()
            .expect("pebble-challtestsrv");
        let issuer = Command::new(tool("pebble"))
            .current_dir(folder.path())
            .args(["-config", "pebble.json", "-strict"])
            .args(["-dnsserver", &format!("127.0.0.1:{dns_port}")])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", options.refused_nonces.to_string())
            .stdout(log(folder.path(), "pebble.log"))
            .stderr(log(folder.path(), "pebble.err"))
            .spawn()
            .expect("pebble");
        let pebble = Pebble {
            directory_port,
            records_port,
            _issuer: KilledOnDrop(issuer),
            _names: KilledOnDrop(names),
            folder,
        };
        for port in [directory_port, records_port] {
            let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
            until_or(listens, || format!("no start: {}", pebble.log())).await;
        }
        pebble
    }

    /// The URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.directory_port)
    }

    /// The port of its directory.
    pub fn port(&self) -> u16 {
        self.directory_port
    }

    /// The certificate that its own is verified with.
    pub fn authority_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        let read = |name| std::fs::read_to_string(self.folder.path().join(name));
        read("pebble.log").unwrap_or_default() + &read("pebble.err").unwrap_or_default()
    }

    /// How many certificates it has made.
    pub fn issued(&self) -> usize {
        self.log().matches("Issued certificate serial").count()
    }

    /// Writes a command for DNS-01 that sets TXT records at its name server.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn record_command(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.path().join("record");
        let script = format!(
            r#"#!/bin/sh
case $1 in add) verb=set-txt ;; *) verb=clear-txt ;; esac
echo "$@" >> {0}/records
exec curl -sSf -d "{{\"host\":\"$2.\",\"value\":\"$3\"}}" http://127.0.0.1:{1}/$verb
"#,
            self.folder.path().display(),
            self.records_port
        );
        std::fs::write(&path, script).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("a mode");
        path
    }

    /// Returns the arguments of the command's calls, line by line.
    pub fn records(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("records")).unwrap_or_default()
    }
}

fn log(folder: &Path, name: &str) -> Stdio {
    Stdio::from(File::create(folder.join(name)).expect("a file"))
}

fn tool(name: &str) -> PathBuf {
    let folder = match std::env::var_os("MAYFLY_PEBBLE") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/pebble"),
    };
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is missing: scripts/setup.sh test installs it, and needs Go",
        path.display()
    );
    path
}
