//! The home of a WordPress that `mayfly serve` serves: a copy of a live site leads visitors to the live address.
//! `serve` follows the first page and reports its target; `--home` makes WordPress take the address that it is served
//! at for its home.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use control::ExplainRequest;
use serve_folder::{DetectedSite, HomeAddress, SiteKind};
use system_error::SystemError;

use crate::commands::run_file::RunFile;
use crate::processes::control_socket;
use command_line::printable;

/// PHP reads it, whatever account that is.
const FILE_MODE: u32 = 0o644;

/// With this cookie, an invalid one, WordPress answers as it does a visitor, and the answer is not stored: the first
/// page that the operator asks for is made by PHP, as `serve` announces.
const NOT_STORED: (&str, &str) = ("Cookie", "wordpress_logged_in_mayfly=0");

/// The path to which WordPress leads all visitors before it is installed.
const INSTALLER: &str = "/wp-admin/install.php";

/// The settings of `--home`.
pub struct Home {
    pub address: HomeAddress,
    /// The file that PHP reads before each script.
    pub file: PathBuf,
}

/// `typed` is the value of `--home`, empty for the address that the site is served at: `url`.
///
/// # Errors
/// There is no WordPress, or no such address.
pub fn prepare(typed: &str, url: Option<&str>, found: &DetectedSite) -> Result<Home, String> {
    let mut kinds = found.nested.iter().map(|it| it.kind);
    if found.kind != SiteKind::WordPress && !kinds.any(|kind| kind == SiteKind::WordPress) {
        return Err(format!(
            "--home is for WordPress, and this is {}",
            found.kind.name()
        ));
    }
    let wanted = match typed {
        "" => url.unwrap_or_default(),
        typed => typed,
    };
    let address = HomeAddress::parse(wanted).ok_or_else(|| {
        format!(
            "--home {wanted}: expected an address without a path, such as --home=http://127.0.0.1:8080"
        )
    })?;
    let folder = control_socket::serve_folder().map_err(|error| format!("--home: {error}"))?;
    Ok(Home {
        address,
        file: folder.join(format!("home-{}.php", std::process::id())),
    })
}

impl Home {
    /// Writes the file; it is removed when the returned value is dropped.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn write(&self) -> Result<RunFile, String> {
        let script = self.address.script();
        RunFile::write(&self.file, script.as_bytes(), FILE_MODE, None).map_err(|error| {
            let file = self.file.display();
            format!("--home: {file} cannot be written ({})", SystemError(&error))
        })
    }
}

/// Asks for the first page once, as the server does for comparison, and prints whether it can come from memory.
pub async fn say_whether_it_is_shared(control: PathBuf, url: String) {
    let request = ExplainRequest {
        url: visited(url),
        ask: true,
        ..ExplainRequest::default()
    };
    let Ok(explanation) = control::client::explain(&control, &request).await else {
        return;
    };
    let text = match (&explanation.asked, &explanation.reason) {
        (Some(asked), None) if asked.status < 400 => {
            "The first page may be stored: it comes from memory from its second visitor on, if visitors get the same.\n"
                .to_owned()
        }
        (Some(asked), Some(reason)) => {
            let sentence: String = reason.sentence.chars().map(printable).collect();
            format!(
                "The first page (status {}) is made for each visitor: {}: {sentence}\n",
                asked.status, reason.word
            )
        }
        _ => return,
    };
    // The reader may be gone.
    let _ = io::stdout().write_all(text.as_bytes());
    let _ = io::stdout().flush();
}

/// The URL that a visitor of a server on a unix socket would ask for.
fn visited(url: String) -> String {
    match url.strip_prefix("unix:") {
        Some(_) => "http://localhost/".to_owned(),
        None => url,
    }
}

/// Asks the running server for the first page, and prints the remedy if that leads to another site.
pub async fn say_where_it_leads(control: PathBuf, url: String) {
    let url = visited(url);
    if let Some(note) = note(&control, &url).await {
        // The reader may be gone.
        let _ = io::stdout().write_all(note.as_bytes());
        let _ = io::stdout().flush();
    }
}

async fn note(control: &Path, url: &str) -> Option<String> {
    let request = ExplainRequest {
        url: url.to_owned(),
        ask: true,
        fields: vec![(NOT_STORED.0.to_owned(), NOT_STORED.1.to_owned())],
        ..ExplainRequest::default()
    };
    // If the target cannot be found out, nothing is printed.
    let asked = control::client::explain(control, &request)
        .await
        .ok()?
        .asked?;
    note_of(&asked.location, url)
}

/// Returns the note about a first page that leads to `location`. The note does not call that WordPress's home: a
/// plug-in or the configuration may lead elsewhere as well.
fn note_of(location: &str, url: &str) -> Option<String> {
    let shown: String = location.chars().map(printable).collect();
    let Some(origin) = elsewhere(location, url) else {
        return location.contains(INSTALLER).then(|| {
            format!("Note: this WordPress is not installed yet: the first page leads to {shown}.\n")
        });
    };
    let (scheme, host) = origin.split_once("://")?;
    let (_, own) = self::origin(url)?.split_once("://")?;
    if host.eq_ignore_ascii_case(own) {
        return Some(format!(
            "Note: the first page leads to {shown}, which is {scheme} at the same address. {}\n",
            match scheme {
                "https" => {
                    "Serve it with --tls, or name the address of a proxy that speaks https with --behind."
                }
                _ => "--home makes this address the home of WordPress.",
            }
        ));
    }
    // Pages choose the target of their links: text that a shell would interpret is not shown for pasting.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let single = match host.bytes().all(is_name) {
        true => format!(
            " To see single pages as they are, ask with its host:\n  curl -si -H 'Host: {host}' {url}"
        ),
        false => String::new(),
    };
    let proxy = match scheme {
        "https" => {
            "  If a proxy in front speaks https for it, name the proxy's address with --behind: without it, WordPress\n  \
             redirects in circles.\n"
        }
        _ => "",
    };
    Some(format!(
        "Note: the first page leads to {shown}. If that is the home of this WordPress, as of a copy of a live site, so does\n  \
         the login. To use it at {url} start serve with --home.{single}\n{proxy}"
    ))
}

/// Scheme and host of a redirect, if they are not those of `url`.
fn elsewhere<'a>(location: &'a str, url: &str) -> Option<&'a str> {
    let origin = origin(location)?;
    let own = self::origin(url)?;
    (!origin.eq_ignore_ascii_case(own)).then_some(origin)
}

fn origin(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let is_web = matches!(scheme, "http" | "https");
    is_web.then(|| &url[..scheme.len() + 3 + host])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_to_another_site_is_told_from_one_within() {
        let url = "http://127.0.0.1:8080/";
        for (location, expected) in [
            ("", None),
            ("/start", None),
            ("http://127.0.0.1:8080/start", None),
            ("https://example.org/", Some("https://example.org")),
            ("http://example.org?x", Some("http://example.org")),
            ("https://127.0.0.1:8080/", Some("https://127.0.0.1:8080")),
            ("mailto:a@b", None),
        ] {
            assert_eq!(elsewhere(location, url), expected, "{location}");
        }
    }

    #[test]
    fn no_other_address_than_that_of_the_redirect_is_named() {
        let url = "http://127.0.0.1:8080/";
        for (location, expected) in [
            (
                "https://example.org/blog/",
                "leads to https://example.org/blog/. If that is the home",
            ),
            (
                "https://127.0.0.1:8080/",
                "https at the same address. Serve it with --tls",
            ),
            (
                "http://127.0.0.1:8080/wp-admin/install.php",
                "not installed yet",
            ),
            ("/wp-admin/install.php", "not installed yet"),
        ] {
            let note = note_of(location, url).unwrap();
            assert!(note.contains(expected), "{location}: {note}");
        }
        let note = |location: &str| note_of(location, url).unwrap();
        assert!(note("http://example.org/").contains("curl -si -H 'Host: example.org'"));
        assert!(!note("http://a';reboot'/").contains("curl"));
        assert_eq!(note_of("/start", url), None);
    }
}
