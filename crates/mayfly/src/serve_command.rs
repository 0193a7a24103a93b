//! `mayfly serve DIR`: from a folder to a configuration, which is then run like
//! any other; in the foreground, with a word on what was found and how to see
//! it work.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::account;
use crate::cli::{ServeArgs, Workers};
use crate::config::Invocation;
use crate::paths;
use crate::serve::{Folder, Found, Kind, ServeOptions, detect, write_config};

/// What to serve, and what to say about it.
pub struct Serve {
    pub found: Found,
    pub text: String,
    dir: PathBuf,
    listen: Vec<String>,
    is_cached: bool,
}

/// Looks at the folder and writes the configuration.
///
/// # Errors
/// Why there is nothing to serve.
pub fn prepare(args: &ServeArgs) -> Result<Serve, String> {
    let shown = args.dir.display().to_string();
    if shown.starts_with("http://") || shown.starts_with("https://") {
        return Err(format!(
            "{shown}: serving from another HTTP server is not there yet; name a folder"
        ));
    }
    let dir = paths::from_here(args.dir.clone());
    // Through links, so that what is served does not change under the server.
    let dir = std::fs::canonicalize(&dir).map_err(|error| format!("{shown}: {error}"))?;
    if !dir.is_dir() {
        return Err(format!("{shown} is not a folder"));
    }
    let found = detect(&Folder(dir.clone()));
    let user = if account::is_root() {
        Some(account::default_account()?.name)
    } else {
        None
    };
    let options = ServeOptions {
        listen: args.listen.clone(),
        ttl: args.ttl,
        workers: match args.workers {
            Workers::Auto => None,
            Workers::Count(count) => Some(count),
        },
        php: args.php.clone().map(paths::from_here),
        user,
        access_log: None,
    };
    if found.kind != Kind::Static && !args.print_config {
        php_pool::find_php_fpm(options.php.as_deref()).map_err(|error| error.to_string())?;
    }
    let text = write_config(&found, &dir, &options).map_err(|error| error.to_string())?;
    let is_cached = found.kind != Kind::Static && !args.ttl.is_zero();
    Ok(Serve {
        found,
        text,
        dir,
        listen: args.listen.clone(),
        is_cached,
    })
}

impl Serve {
    pub fn invocation(&self) -> Invocation {
        Invocation::from_text(Path::new("/mayfly-serve.conf"), self.text.clone())
    }

    /// Said when everything listens.
    pub fn announce(&self) {
        let mut text = format!(
            "Serving {} from {}\n",
            self.found.kind.name(),
            self.dir.display()
        );
        let urls: Vec<String> = self.listen.iter().map(|listen| url(listen)).collect();
        for url in &urls {
            text.push_str(&format!("  {url}\n"));
        }
        for note in self.found.notes() {
            text.push_str(&format!("Note: {note}\n"));
        }
        if let (true, Some(url)) = (self.is_cached, urls.first()) {
            text.push_str(&format!(
                "See it work: for i in 1 2; do curl -si {url} | grep -i cache; done\n\
                 The first page is made by PHP (MISS), the second comes from memory (HIT).\n"
            ));
        }
        text.push_str("To go on from here: mayfly serve --print-config. Ctrl-C stops.\n");
        // Nobody may be there to read it.
        let _ = io::stdout().write_all(text.as_bytes());
        let _ = io::stdout().flush();
    }
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
