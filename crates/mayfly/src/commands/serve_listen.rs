//! The addresses of `mayfly serve`, their certificates, and the URLs that visitors type.

use std::net::SocketAddr;
use std::path::PathBuf;

use serve_folder::Https;

use crate::cli::ServeArgs;
use crate::commands::local_authority::{self, LocalCertificate};
use crate::paths;

/// The places of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// The port of `--tls`.
const LOCAL_PORT: &str = "8443";

/// The default address of `serve`.
pub const LISTEN: &str = "127.0.0.1:8080";

/// Returns the settings of `--domain`.
pub fn https(args: &ServeArgs) -> Result<Option<Https>, String> {
    if args.domain.is_empty() {
        return Ok(None);
    }
    for domain in &args.domain {
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        let is_name = domain.bytes().all(is_name_byte) && domain.contains('.');
        if !is_name || domain.starts_with('.') || domain.ends_with('.') {
            return Err(format!(
                "--domain {domain}: expected a name such as example.org"
            ));
        }
    }
    let (issuer, directory) = match (&args.acme_directory, args.staging) {
        (Some(url), _) => (issuer_name(url), url.clone()),
        (None, true) => (
            "letsencrypt-staging".to_owned(),
            LETS_ENCRYPT_STAGING.to_owned(),
        ),
        (None, false) => ("letsencrypt".to_owned(), LETS_ENCRYPT.to_owned()),
    };
    let listen_http = match args.listen_http.is_empty() {
        true => everywhere("80"),
        false => args.listen_http.clone(),
    };
    let state = state_folder(args)?;
    Ok(Some(Https {
        domains: args
            .domain
            .iter()
            .map(|it| it.to_ascii_lowercase())
            .collect(),
        listen_http,
        directory,
        email: args.acme_email.clone(),
        authorities: args.acme_ca.clone().map(paths::from_here),
        state: state.join(&issuer),
        issuer,
        is_trusted: !args.staging && args.acme_directory.is_none(),
    }))
}

/// Returns the folder of keys and certificates.
fn state_folder(args: &ServeArgs) -> Result<PathBuf, String> {
    match &args.acme_state {
        Some(folder) => Ok(paths::from_here(folder.clone())),
        None => paths::state(),
    }
}

/// A name for an issuer of which only the URL is known; its folder is called so.
fn issuer_name(url: &str) -> String {
    let place = url.strip_prefix("https://").unwrap_or(url);
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    let name: String = place.chars().map(letter).take(60).collect();
    name.trim_matches('-').to_owned()
}

/// Returns the addresses to listen on.
pub fn listens(args: &ServeArgs, https: Option<&Https>) -> Vec<String> {
    match (args.listen.is_empty(), https) {
        (false, _) => args.listen.clone(),
        (true, None) if args.tls => {
            let all = everywhere(LOCAL_PORT).into_iter();
            all.map(|listen| match listen.strip_prefix("[::]") {
                Some(port) => format!("[::1]{port}"),
                None => format!("127.0.0.1:{listen}"),
            })
            .collect()
        }
        (true, None) if args.service => everywhere("80"),
        (true, None) => vec![LISTEN.to_owned()],
        (true, Some(_)) => everywhere("443"),
    }
}

/// Returns the certificate of `--tls`. It is one that only this machine knows: it is served to no other.
pub fn local_certificate(
    args: &ServeArgs,
    listen: &[String],
) -> Result<Option<LocalCertificate>, String> {
    if !args.tls {
        return Ok(None);
    }
    if let Some(open) = listen.iter().find(|listen| !is_loopback(listen)) {
        return Err(format!(
            "--listen {open}: the network reaches it, and --tls is for browsers on this machine alone; \
             expected an address such as 127.0.0.1:{LOCAL_PORT}. --domain serves others"
        ));
    }
    local_authority::make(&state_folder(args)?.join("local")).map(Some)
}

fn is_loopback(listen: &str) -> bool {
    let is_local = |address: SocketAddr| address.ip().is_loopback();
    listen.starts_with("unix:") || listen.parse().is_ok_and(is_local)
}

pub fn how_to_trust(local: &LocalCertificate) -> String {
    format!(
        "browsers do not know the authority of this certificate before you tell them, once: import\n  \
         {0}\n  under \"Certificates\", \"Authorities\" in the settings of Firefox or Chromium. For curl and PHP:\n  \
         sudo cp {0} /usr/local/share/ca-certificates/mayfly-local.crt && sudo update-ca-certificates",
        local.authority.display()
    )
}

/// A port at all addresses of this machine.
fn everywhere(port: &str) -> Vec<String> {
    let mut listens = vec![port.to_owned()];
    if std::net::TcpListener::bind("[::1]:0").is_ok() {
        listens.push(format!("[::]:{port}"));
    }
    listens
}

/// Returns the URLs that visitors type.
pub fn urls(args: &ServeArgs, listen: &[String], https: Option<&Https>) -> Vec<String> {
    if args.tls {
        return vec![format!(
            "https://localhost{}/",
            serve_folder::port_of_urls(listen)
        )];
    }
    let Some(https) = https else {
        return listen.iter().map(|listen| url(listen)).collect();
    };
    let port = serve_folder::port_of_urls(listen);
    let domains = https.domains.iter();
    domains
        .map(|name| format!("https://{name}{port}/"))
        .collect()
}

/// `http://127.0.0.1:8080/` for an argument of `listen`.
fn url(listen: &str) -> String {
    if listen.starts_with("unix:") {
        return listen.to_owned();
    }
    let place = match listen.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => listen
            .replace("*:", "127.0.0.1:")
            .replace("0.0.0.0:", "127.0.0.1:"),
    };
    format!("http://{place}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_named_by_its_url() {
        let url = "https://ca.example.org:9000/acme/directory";
        assert_eq!(issuer_name(url), "ca-example-org-9000-acme-directory");
    }

    #[test]
    fn addresses_to_listen_on_become_addresses_to_visit() {
        let cases = [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("8080", "http://127.0.0.1:8080/"),
            ("*:80", "http://127.0.0.1:80/"),
            ("0.0.0.0:81", "http://127.0.0.1:81/"),
            ("[::1]:82", "http://[::1]:82/"),
            ("unix:/run/x", "unix:/run/x"),
        ];
        for (listen, expected) in cases {
            assert_eq!(url(listen), expected, "{listen}");
        }
    }
}
