//! Sources of the pages to warm: URLs, sitemaps by their URLs, files and standard input.

use std::collections::{HashSet, VecDeque};
use std::io::{self, Read};
use std::path::Path;

use control::warm::MAX_PAGE_BYTES;
use control::{ClientError, WarmRequest};
use flate2::read::MultiGzDecoder;

use super::sitemap;
use crate::cli::WarmArgs;
use crate::commands::running_server::explained;
use crate::paths;
use command_line::Exit;
use system_error::SystemError;

/// Pages of one call. Their sitemaps are more than belongs in memory.
const MAX_PAGES: usize = 1_000_000;
/// Sitemaps of one call: as many as an index names at most.
const MAX_SITEMAPS: usize = 50_000;
/// Indexes within each other. The protocol allows none.
const MAX_DEPTH: usize = 3;

/// The exit code of the command, and its message.
pub type Failure = (Exit, String);

/// The URLs of all pages, each once, in the order of the command line. Sitemaps are read by the server
/// whose control socket is given.
///
/// # Errors
/// The exit code of the command, and its message.
pub async fn pages(args: &WarmArgs, socket: &Path) -> Result<Vec<String>, Failure> {
    let mut found = FoundPages::default();
    for url in &args.sitemap {
        found.sitemaps.push_back((url.clone(), 0));
    }
    for source in &args.sources {
        if is_url(source) {
            match is_sitemap(source) {
                true => found.sitemaps.push_back((source.clone(), 0)),
                false => found.page(source.clone())?,
            }
        } else {
            let bytes = from_file(source).await?;
            found.text(&bytes, source, 0)?;
        }
    }
    let mut read = HashSet::new();
    while let Some((url, depth)) = found.sitemaps.pop_front() {
        if !read.insert(url.clone()) {
            continue;
        }
        if read.len() > MAX_SITEMAPS {
            return Err(refused(format!("more than {MAX_SITEMAPS} sitemaps")));
        }
        let page = WarmRequest { url: url.clone() };
        let bytes = control::client::page(socket, &page).await;
        let bytes = bytes.map_err(|error| match &error {
            ClientError::Refused(_) => refused(format!("{url}: {error}")),
            _ => explained(socket, &error),
        })?;
        found.text(&bytes, &url, depth)?;
    }
    match found.pages.is_empty() {
        true => Err(refused("the sources name no page".to_owned())),
        false => Ok(found.pages),
    }
}

/// Returns the typed URLs, by which one of several servers is chosen.
pub fn urls(args: &WarmArgs) -> Vec<String> {
    let typed = args.sitemap.iter().chain(&args.sources);
    typed.filter(|source| is_url(source)).cloned().collect()
}

/// Pages that sources name, each once.
#[derive(Default)]
pub struct FoundPages {
    pub pages: Vec<String>,
    known: HashSet<String>,
    /// The sitemaps that are still to be read, each with how many indexes it is in.
    pub sitemaps: VecDeque<(String, usize)>,
}

impl FoundPages {
    /// Adds a page.
    ///
    /// # Errors
    /// There are too many.
    pub fn page(&mut self, url: String) -> Result<(), Failure> {
        if self.known.insert(url.clone()) {
            self.pages.push(url);
        }
        match self.pages.len() > MAX_PAGES {
            true => Err(refused(format!("more than {MAX_PAGES} pages"))),
            false => Ok(()),
        }
    }

    /// A sitemap, or lines with a URL each; either may be compressed with gzip.
    ///
    /// # Errors
    /// It is neither, or names too many pages.
    pub fn text(&mut self, bytes: &[u8], source: &str, depth: usize) -> Result<(), Failure> {
        let complain = |why: &str| refused(format!("{source}: {why}"));
        let unpacked = unpacked(bytes).map_err(|why| complain(&why))?;
        let text = unpacked.as_deref().unwrap_or(bytes);
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        if text.trim_ascii_start().first() != Some(&b'<') {
            for line in text.split(|&byte| byte == b'\n') {
                let line = String::from_utf8_lossy(line.trim_ascii());
                if !line.is_empty() && !line.starts_with('#') {
                    self.page(line.into_owned())?;
                }
            }
            return Ok(());
        }
        let sitemap = sitemap::parse(text).map_err(|why| complain(&why))?;
        for url in sitemap.pages {
            self.page(url)?;
        }
        if depth >= MAX_DEPTH && !sitemap.sitemaps.is_empty() {
            return Err(complain("indexes of sitemaps are nested too deeply"));
        }
        let within = sitemap.sitemaps.into_iter().map(|url| (url, depth + 1));
        self.sitemaps.extend(within);
        Ok(())
    }
}

fn is_url(source: &str) -> bool {
    let is = |scheme: &str| {
        let start = source.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    is("http://") || is("https://")
}

/// Whether the path of the URL ends as those of sitemaps do.
fn is_sitemap(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.to_ascii_lowercase();
    path.ends_with(".xml") || path.ends_with(".xml.gz")
}

async fn from_file(source: &str) -> Result<Vec<u8>, Failure> {
    let name = source.to_owned();
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let limit = MAX_PAGE_BYTES as u64 + 1;
        match &*name {
            "-" => io::stdin().lock().take(limit).read_to_end(&mut bytes)?,
            path => {
                let file = std::fs::File::open(paths::from_here(path.into()))?;
                file.take(limit).read_to_end(&mut bytes)?
            }
        };
        Ok::<_, io::Error>(bytes)
    });
    let read = reading.await.map_err(|error| refused(error.to_string()))?;
    let bytes = read.map_err(|error| refused(format!("{source}: {}", SystemError(&error))))?;
    match bytes.len() > MAX_PAGE_BYTES {
        true => Err(refused(format!("{source}: {}", too_large()))),
        false => Ok(bytes),
    }
}

/// Returns the decompressed bytes; `None` if they were not compressed.
fn unpacked(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    if !bytes.starts_with(b"\x1f\x8b") {
        return Ok(None);
    }
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(bytes).take(MAX_PAGE_BYTES as u64 + 1);
    decoder
        .read_to_end(&mut unpacked)
        .map_err(|error| format!("it cannot be decompressed ({error})"))?;
    match unpacked.len() > MAX_PAGE_BYTES {
        true => Err(too_large()),
        false => Ok(Some(unpacked)),
    }
}

fn too_large() -> String {
    format!("it is larger than {} MB", MAX_PAGE_BYTES >> 20)
}

fn refused(message: String) -> Failure {
    (Exit::Refused, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_and_sitemaps_are_told_apart_compressed_or_not() {
        let lines = b"\xef\xbb\xbfhttps://a/1\r\n\n# a comment\nhttps://a/2\nhttps://a/1\n";
        let index = b" <sitemapindex><sitemap><loc>https://a/s.xml</loc></sitemap></sitemapindex>";
        for is_packed in [false, true] {
            let form = |bytes: &[u8]| match is_packed {
                true => gzip(bytes),
                false => bytes.to_vec(),
            };
            let mut found = FoundPages::default();
            found.text(&form(lines), "x", 0).unwrap();
            found.text(&form(index), "x", 0).unwrap();
            assert_eq!(found.pages, ["https://a/1", "https://a/2"]);
            assert_eq!(found.sitemaps, [("https://a/s.xml".to_owned(), 1)]);
            let (_, complaint) = found.text(&form(index), "x", MAX_DEPTH).unwrap_err();
            assert!(complaint.contains("too deeply"), "{complaint}");
        }
    }

    #[test]
    fn a_file_that_grows_without_end_is_refused() {
        let packed = gzip(&vec![b' '; MAX_PAGE_BYTES + 1]);
        assert!(packed.len() < 1 << 20);
        assert_eq!(unpacked(&packed), Err(too_large()));
        assert!(unpacked(b"\x1f\x8bxx").is_err());
    }

    #[test]
    fn sitemaps_are_known_by_the_end_of_their_path() {
        for (url, expected) in [
            ("https://a/sitemap.xml", true),
            ("https://a/sitemap.XML.gz?page=2", true),
            ("https://a/feed?x=.xml", false),
            ("https://a/", false),
        ] {
            assert_eq!(is_sitemap(url), expected, "{url}");
        }
        assert!(is_url("HTTPS://a/") && !is_url("pages.txt") && !is_url("-"));
    }
}
