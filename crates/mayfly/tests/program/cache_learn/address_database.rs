//! Pages that PHP makes with a database of addresses are for the visitors of one network: no other visitor gets them from memory.

use std::time::Instant;

use tempfile::TempDir;
use testkit::client::Reply;
use testkit::process::is_root;
use testkit::running::RunningServer;
use testkit::serving::{open_to_all, write_files};
use testkit::wait::TIMEOUT;

use super::database_site::make_old;
use super::{PAUSE, explained};
use crate::{has_php_fpm, program};

/// Answers with the visitor's country, by a file that has a line for each network.
const COUNTRY: &str = "<?php
$network = implode('.', array_slice(explode('.', $_SERVER['REMOTE_ADDR']), 0, 2));
preg_match(\"/^$network (\\\\w+)/m\", file_get_contents(__DIR__ . '/country.mmdb'), $found);
echo \"for visitors from $found[1]\";
";

/// It only looks whether the file is there.
const LOOK: &str = "<?php echo is_file(__DIR__ . '/country.mmdb') ? 'with countries' : 'without';";

const DATABASE: &str = "192.0 Utopia\n198.51 Laputa\n";

const VISITORS: [(&str, &str); 2] = [("192.0.2.1", "Utopia"), ("198.51.100.1", "Laputa")];

struct Site {
    _folder: TempDir,
    server: RunningServer,
}

impl Site {
    /// `None` without PHP. The cache keeps pages for an hour, by these lines.
    async fn start(lines: &str) -> Option<Site> {
        if !has_php_fpm() {
            return None;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        open_to_all(folder.path());
        for (name, text) in [
            ("country.php", COUNTRY),
            ("look.php", LOOK),
            ("country.mmdb", DATABASE),
        ] {
            write_files(folder.path(), &[(name, text)]);
            make_old(&folder.path().join(name));
        }
        make_old(folder.path());
        let user = if is_root() { "user www-data;" } else { "" };
        let main = format!("php_pool site {{ workers 2; {user} }}");
        let http = format!(
            "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
             server {{ listen unix:%%/http; server_name site.test;\n\
             set_real_ip_from unix:; real_ip_header X-Real-IP;\n\
             location / {{ fastcgi_pass php:site; fastcgi_cache pages; fastcgi_cache_valid 1h; {lines}\n\
             fastcgi_param SCRIPT_FILENAME {}$uri; fastcgi_param REQUEST_METHOD $request_method;\n\
             fastcgi_param REMOTE_ADDR $remote_addr;\n\
             add_header X-Cache $upstream_cache_status; add_header X-Reason $cache_reason; }} }}",
            folder.path().display()
        );
        let server = RunningServer::start(program(), &main, &http).await;
        Some(Site {
            _folder: folder,
            server,
        })
    }

    async fn get(&self, path: &str, visitor: &str) -> Reply {
        let field = format!("X-Real-IP: {visitor}\r\n");
        let reply = self.server.target().get_with(path, &field).await;
        assert_eq!(reply.status, 200, "{}", self.server.error_log());
        reply
    }

    /// Asks for the page of the countries until `explain` reports that it is not shared.
    async fn until_known(&self) {
        let started = Instant::now();
        loop {
            self.get("/country.php", VISITORS[0].0).await;
            let explained = explained(&self.server, "/country.php").await;
            if explained
                .reason
                .as_ref()
                .is_some_and(|why| why.word == "address-database")
            {
                let part = explained.learned.expect("a part");
                assert_eq!(part.reason, "address-database");
                assert!(part.detail.ends_with("/country.mmdb"), "{part:?}");
                assert!(!explained.is_stored, "{:?}", explained.entry);
                return;
            }
            assert!(started.elapsed() < TIMEOUT, "{explained:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The stored page of the first visitor was shown to all others for an hour.
#[tokio::test]
async fn page_that_opens_a_database_of_addresses_is_made_for_each_visitor() {
    for lines in [
        "fastcgi_cache_key $uri; cache_learn on;",
        "fastcgi_cache_key $uri; cache_learn watch;",
        "cache_shared on; cache_learn on;",
    ] {
        let Some(site) = Site::start(lines).await else {
            return;
        };
        site.until_known().await;
        // With evidence, the comparison with a shared request from another network may come before.
        let is_reason = |word: &str| {
            word == "address-database"
                || lines.contains("cache_shared") && ["unproven", "depends"].contains(&word)
        };
        for _ in 0..10 {
            for (visitor, country) in VISITORS {
                let reply = site.get("/country.php", visitor).await;
                let expected = format!("for visitors from {country}");
                assert_eq!(reply.text(), expected, "{lines}");
                assert_ne!(reply.x_cache(), "HIT", "{lines}");
                let reason = reply.field("x-reason");
                assert!(is_reason(reason), "{lines}: {reason}");
            }
        }
        let explained = explained(&site.server, "/country.php").await;
        let word = explained.reason.map(|why| why.word);
        assert!(word.as_deref().is_some_and(is_reason), "{lines}: {word:?}");
    }
}

#[tokio::test]
async fn page_that_only_looks_whether_a_database_of_addresses_is_there_is_shared() {
    let lines = "fastcgi_cache_key $uri; cache_learn on;";
    let Some(site) = Site::start(lines).await else {
        return;
    };
    site.until_known().await;
    site.get("/look.php", VISITORS[0].0).await;
    let reply = site.get("/look.php", VISITORS[1].0).await;
    let seen = (reply.text(), reply.x_cache().to_owned());
    assert_eq!(seen, ("with countries".to_owned(), "HIT".to_owned()));
}
