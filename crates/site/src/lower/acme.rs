//! Lowers `acme_issuer` and `acme_certificate`.

use std::path::PathBuf;

use nginx_conf::Word;

use super::Lowering;
use super::level::Level;
use super::server_names::{HostName, parse_name};
use super::values::parameter;
use crate::check::Node;
use crate::model::*;

/// Names become parts of paths.
const MAX_NAME_BYTES: usize = 64;

const KEYS: [(&str, AcmeKeyType); 8] = [
    ("ecdsa", AcmeKeyType::EcdsaP256),
    ("ecdsa:256", AcmeKeyType::EcdsaP256),
    ("ecdsa:384", AcmeKeyType::EcdsaP384),
    ("ecdsa:521", AcmeKeyType::EcdsaP521),
    ("rsa", AcmeKeyType::Rsa2048),
    ("rsa:2048", AcmeKeyType::Rsa2048),
    ("rsa:3072", AcmeKeyType::Rsa3072),
    ("rsa:4096", AcmeKeyType::Rsa4096),
];

impl Lowering<'_> {
    /// All issuers of the http block.
    pub fn acme_issuers(&mut self, level: &Level<'_>) {
        for node in level.own("acme_issuer") {
            let name = node.arg(0);
            let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_name_byte) {
                let expected = format!("expected at most {MAX_NAME_BYTES} letters, digits, - or _");
                self.invalid(name, "name of an issuer", expected);
            } else if self
                .declared
                .acme
                .issuers
                .iter()
                .any(|known| known.name == name.text)
            {
                self.error(name.span, format!("duplicate acme_issuer \"{name}\""));
            } else {
                let issuer = self.acme_issuer(node);
                self.declared.acme.issuers.push(issuer);
            }
        }
    }

    fn acme_issuer(&mut self, node: &Node<'_>) -> AcmeIssuer {
        let level = Level::new(&node.children, None);
        let name = node.arg(0).text.clone();
        let uri = match level.find("uri") {
            None => {
                self.error(
                    node.span(),
                    format!("no \"uri\" is defined for acme_issuer \"{name}\""),
                );
                String::new()
            }
            Some(uri) => {
                let word = uri.arg(0);
                if !word.starts_with("https://") || word.len() <= "https://".len() {
                    self.invalid(word, "URL", "expected one that begins with https://");
                }
                word.text.clone()
            }
        };
        let external_account = level.find("external_account_key").map(|node| {
            let key = node.arg(1);
            AcmeExternalAccount {
                key_id: node.arg(0).text.clone(),
                key: match key.strip_prefix("data:") {
                    Some(data) => AcmeExternalKey::Data(data.to_owned()),
                    None => AcmeExternalKey::File(self.path_beside_main_file(key)),
                },
            }
        });
        let account_key = level
            .word("account_key")
            .and_then(|word| self.account_key(word));
        let accepts_terms = !level.own("accept_terms_of_service").is_empty();
        if account_key.is_some() && (external_account.is_some() || !accepts_terms) {
            self.error(
                node.span(),
                "a file in \"account_key\" needs \"accept_terms_of_service\", and cannot be used \
                 with \"external_account_key\" yet",
            );
        }
        let contacts = level.all("contact").iter().flat_map(|node| node.args());
        AcmeIssuer {
            uri,
            contacts: contacts.map(|word| contact(word)).collect(),
            account_key,
            external_account,
            accepts_terms,
            challenge: self.acme_challenge(&level),
            profile: level.find("profile").map(|node| {
                let is_required = node.args().get(1).is_some();
                if let Some(word) = node.args().get(1) {
                    self.choice_of(word, &[("require", ())]);
                }
                (node.arg(0).text.clone(), is_required)
            }),
            trusted: self.file_beside_main_file(&level, "ssl_trusted_certificate"),
            state_path: match level.word("state_path") {
                Some(word) if word.text == "off" => None,
                Some(word) => Some(self.own_files.state.join(&word.text)),
                None => Some(self.own_files.state.join(format!("acme_{name}"))),
            },
            name,
        }
    }

    fn account_key(&mut self, word: &Word) -> Option<PathBuf> {
        match word.text.as_str() {
            "ecdsa" | "ecdsa:256" => None,
            other if other.starts_with("ecdsa:") || other.starts_with("rsa") => {
                self.invalid(
                    word,
                    "key",
                    "expected ecdsa:256 or a file; others are not there yet",
                );
                None
            }
            file => Some(self.path_beside_main_file(file)),
        }
    }

    fn acme_challenge(&mut self, level: &Level<'_>) -> AcmeChallenge {
        let Some(node) = level.find("challenge") else {
            return AcmeChallenge::Http01;
        };
        let word = node.arg(0);
        let kinds = [
            ("http-01", 0),
            ("http", 0),
            ("tls-alpn-01", 1),
            ("tls-alpn", 1),
            ("dns-01", 2),
        ];
        let command = node.args().get(1);
        match (self.choice_of(word, &kinds), command) {
            (Some(2), Some(command)) => AcmeChallenge::Dns01 {
                command: self.path_beside_main_file(command),
            },
            (Some(2), None) => {
                self.invalid(word, "challenge", "expected a command behind dns-01");
                AcmeChallenge::Http01
            }
            (_, Some(command)) => {
                self.invalid(command, "argument", "only dns-01 has a command");
                AcmeChallenge::Http01
            }
            (Some(1), None) => AcmeChallenge::TlsAlpn01,
            _ => AcmeChallenge::Http01,
        }
    }

    /// `acme_certificate` of a server: the file with chain and key.
    pub fn acme_certificate(&mut self, level: &Level<'_>) -> Option<PathBuf> {
        let node = level.own("acme_certificate").first()?;
        let word = node.arg(0);
        let known = self.declared.acme.issuers.iter();
        let issuer = known.clone().position(|known| known.name == word.text);
        let Some(issuer) = issuer else {
            self.error(word.span, format!("unknown acme_issuer \"{word}\""));
            return None;
        };
        let mut key = AcmeKeyType::EcdsaP256;
        let mut names: Vec<String> = Vec::new();
        let explicit = node.args().get(1..).unwrap_or_default();
        let mut written: Vec<&Word> = Vec::new();
        for word in explicit {
            match parameter(word, "key") {
                Some(kind) => {
                    let found = KEYS.iter().find(|(name, _)| *name == kind);
                    match found {
                        Some((_, kind)) => key = *kind,
                        None => {
                            self.invalid(word, "key", "expected one such as ecdsa:256 or rsa:2048")
                        }
                    }
                }
                None => written.push(word),
            }
        }
        if written.is_empty() {
            let lines = level.own("server_name").iter();
            written = lines.flat_map(|node| node.args()).collect();
        }
        for word in written {
            for name in self.acme_names(word, issuer) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        if names.is_empty() {
            self.error(
                node.span(),
                "no names for \"acme_certificate\": write them behind the issuer, or as \"server_name\"",
            );
            return None;
        }
        Some(self.acme_certificate_of(issuer, names, key))
    }

    fn acme_certificate_of(
        &mut self,
        issuer: usize,
        names: Vec<String>,
        key: AcmeKeyType,
    ) -> PathBuf {
        let mut certificates = self.declared.acme.certificates.iter();
        let known = certificates
            .find(|known| known.issuer == issuer && known.names == names && known.key == key);
        if let Some(known) = known {
            return known.file.clone();
        }
        let file_stem = file_stem(&names, key);
        let of = &self.declared.acme.issuers[issuer];
        let folder = match &of.state_path {
            Some(folder) => folder.clone(),
            // No file has such a name.
            None => PathBuf::from(format!("acme:{}", of.name)),
        };
        let file = folder.join(format!("{file_stem}.pem"));
        self.declared.acme.certificates.push(AcmeCertificate {
            issuer,
            names,
            key,
            file_stem,
            file: file.clone(),
        });
        file
    }

    /// The names that a word of `acme_certificate` or `server_name` stands for.
    fn acme_names(&mut self, word: &Word, issuer: usize) -> Vec<String> {
        let has_wildcards = matches!(
            self.declared.acme.issuers[issuer].challenge,
            AcmeChallenge::Dns01 { .. }
        );
        let text = word.to_ascii_lowercase();
        let is_plain = |name: &str| {
            let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
            !name.is_empty() && name.bytes().all(is_name_byte)
        };
        match parse_name(&text) {
            Some(HostName::Exact(name)) if is_plain(&name) => vec![name],
            Some(HostName::Both(dotted)) if is_plain(&dotted) => {
                let bare = dotted.trim_start_matches('.').to_owned();
                match has_wildcards {
                    true => vec![format!("*{dotted}"), bare],
                    false => vec![bare],
                }
            }
            Some(HostName::Leading(dotted)) if is_plain(&dotted) && has_wildcards => {
                vec![format!("*{dotted}")]
            }
            Some(HostName::Leading(_)) => {
                self.invalid(
                    word,
                    "name",
                    "a wildcard needs \"challenge dns-01 COMMAND\"",
                );
                Vec::new()
            }
            _ => {
                let expected =
                    "no certificate can have this name: write the names behind the issuer";
                self.invalid(word, "name", expected);
                Vec::new()
            }
        }
    }

    /// Does an issuer look for files in this server?
    pub fn answers_acme_challenges(&self, level: &Level<'_>) -> bool {
        let lines = level.own("listen");
        let is_plain = |node: &&Node<'_>| {
            node.args()
                .iter()
                .all(|word| word.text != "ssl" && word.text != "quic")
        };
        self.declared.acme.uses_http_challenge() && (lines.is_empty() || lines.iter().any(is_plain))
    }
}

fn contact(word: &str) -> String {
    match word.contains(':') {
        true => word.to_owned(),
        false => format!("mailto:{word}"),
    }
}

/// Returns a file name for a certificate: its first name, and a number that separates it from
/// others that begin with the same.
fn file_stem(names: &[String], key: AcmeKeyType) -> String {
    // FNV-1a, which stays the same from one version of the program to the next.
    let text = format!("{} {key:?}", names.join(" "));
    let number = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
            (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let first = names.first().map_or("", String::as_str);
    let first: String = first
        .replace('*', "_")
        .replace(':', "-")
        .chars()
        .take(100)
        .collect();
    format!("{first}-{number:016x}")
}
