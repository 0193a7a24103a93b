//! Kept pages after a restart: they come from disk if all that they were made of is as it was, and PHP makes them anew otherwise.

use std::path::Path;
use std::time::Instant;

use testkit::process::{Signal, send_signal};
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

use super::database_site::{DatabaseSite, make_old, until_kept, until_one_is_kept};
use super::upgrade::configuration;
use super::{explained, number};
use crate::program;

/// It shows two rows, one of them by a view, and a file; and each time that PHP runs, another number.
const PAGE: &str = "<?php
require __DIR__ . '/connect.php';
$database->set_charset('utf8mb4');
$version = $database->query('SELECT version FROM post WHERE id = 1')->fetch_row()[0];
$title = $database->query('SELECT title FROM shown WHERE id = 1')->fetch_row()[0];
echo $version . ' ' . $title . ' ' . file_get_contents(__DIR__ . '/part.html') . ' ' . PRECISION . hrtime(true);
";

const EQUAL: &str = "mayfly_learned_replays_total{pool=\"site\",result=\"equal\"}";

/// Pages that are kept before each restart.
const PAGES: u32 = 6;

struct KeptPages {
    site: DatabaseSite,
    server: RunningServer,
    /// Their paths, and their content.
    pages: Vec<(String, String)>,
    main: String,
    http: String,
}

impl KeptPages {
    async fn begin() -> Option<KeptPages> {
        let site = DatabaseSite::make()?;
        site.database.run(
            "CREATE TABLE blog.title (id INT PRIMARY KEY, title TEXT) ENGINE=InnoDB;
             INSERT INTO blog.title VALUES (1, 'one'), (2, 'two');
             CREATE VIEW blog.shown AS SELECT * FROM blog.title;",
        );
        site.add("part.html", "part");
        site.add(
            "kept.php",
            &PAGE.replace("PRECISION", "ini_get('precision')"),
        );
        let (main, http) = configuration(&site, "1ms");
        let server = RunningServer::start(program(), &main, &http).await;
        Some(KeptPages {
            site,
            server,
            pages: Vec::new(),
            main,
            http,
        })
    }

    /// Makes pages until this number of them is kept, and on disk.
    async fn keep(&mut self) {
        self.pages.clear();
        let (target, control) = (self.server.target(), self.server.path("pid.control"));
        let started = Instant::now();
        for round in 0.. {
            let numbered = |number| format!("/kept.php?{}-{round}-{number}", self.server.pid());
            let path = until_one_is_kept(&target, &control, numbered).await;
            let told = explained(&self.server, &path).await;
            if told
                .cache
                .expect("a cache")
                .disk
                .starts_with("has a response")
            {
                let reply = target.get(&path).await;
                self.pages.push((path, reply.text().to_owned()));
            }
            if self.pages.len() >= PAGES as usize {
                return;
            }
            assert!(started.elapsed() < TIMEOUT, "{}", self.server.error_log());
        }
    }

    /// Restarts the server, with a change while it is down.
    async fn restart(&mut self, signal: Signal, meanwhile: impl FnOnce(&KeptPages)) {
        send_signal(self.server.pid(), signal);
        self.server.ended().await;
        meanwhile(self);
        // After a `kill -9` it still lies there.
        let _ = std::fs::remove_file(self.server.path("metrics"));
        self.server.start_again(program()).await;
    }

    /// How many pages are shown without PHP that were made before the restart.
    async fn shown_again(&self) -> usize {
        let (target, control) = (self.server.target(), self.server.path("pid.control"));
        // From then on the server is known, and visitors do not leave for PHP before it is.
        if self.http.contains("cache_learn_database") {
            until_kept(&target, &control, "/index.php").await;
        }
        let mut count = 0;
        for (path, _) in &self.pages {
            let reply = target.get(path).await;
            assert!(
                reply.text().starts_with(&self.site.version()),
                "{}",
                reply.text()
            );
            if reply.x_cache() == "HIT" {
                count += 1;
                // It was the same for a minute at most: for no longer may it be shown, whatever `cache_learn_max` is.
                let status = reply.field("cache-status");
                let ttl = status
                    .split_once("ttl=")
                    .and_then(|(_, ttl)| ttl.split(';').next()?.parse().ok());
                assert!(ttl.is_none_or(|ttl: u64| ttl <= 60), "{status}");
                assert!(ttl.is_some(), "{status}");
            }
        }
        count
    }
}

#[tokio::test]
async fn kept_pages_are_read_from_disk_after_a_restart_and_after_a_crash() {
    let Some(mut kept) = KeptPages::begin().await else {
        return;
    };
    for signal in [Signal::QUIT, Signal::KILL] {
        // On a busy machine the database may answer later than a visitor waits, and the page is made anew.
        for attempt in 0.. {
            kept.keep().await;
            kept.restart(signal, |_| ()).await;
            let shown = kept.shown_again().await;
            if shown > 1 {
                assert!(number(&kept.server, EQUAL).await > 0);
                break;
            }
            assert!(attempt < 10, "{signal:?}: {}", kept.server.error_log());
        }
        // They are kept as others are: a write of PHP ends them.
        let target = kept.server.target();
        let written = target.ask("POST", "/write.php", "", "").await;
        assert_eq!(written.text(), "written");
        for (path, text) in &kept.pages {
            let reply = target.get(path).await;
            assert_ne!(reply.text(), *text);
            assert!(
                reply.text().starts_with(&kept.site.version()),
                "{}",
                reply.text()
            );
        }
    }
}

/// A change while the server is down, by its name.
type Change = (&'static str, fn(&KeptPages));

fn overwrite(site: &DatabaseSite, name: &str, change: impl Fn(&str) -> String) {
    let path = site.path().join(name);
    let text = std::fs::read_to_string(&path).expect("a file");
    write(&path, &change(&text));
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    make_old(path);
}

#[tokio::test]
async fn pages_whose_data_files_or_definitions_changed_meanwhile_are_made_anew() {
    let Some(mut kept) = KeptPages::begin().await else {
        return;
    };
    let changes: [Change; 9] = [
        ("a row", |it| it.site.write()),
        ("a row of a view", |it| {
            let update = "UPDATE blog.title SET title = 'new' WHERE id = 1";
            it.site.database.run(update);
        }),
        ("a file", |it| {
            overwrite(&it.site, "part.html", |text| format!("{text} new"))
        }),
        ("a script", |it| {
            overwrite(&it.site, "connect.php", |text| format!("{text}\n"))
        }),
        ("a script of another page", |it| {
            overwrite(&it.site, "index.php", |text| format!("{text}\n"));
        }),
        // It returns the same.
        ("a view", |it| {
            let view =
                "CREATE OR REPLACE VIEW blog.shown AS SELECT * FROM blog.title WHERE id < 100";
            it.site.database.run(view);
        }),
        ("a trigger", |it| {
            let trigger = "CREATE TRIGGER blog.after_title AFTER UPDATE ON blog.title FOR EACH ROW SET @a = 1";
            it.site.database.run(trigger);
        }),
        ("what each session is given", |it| {
            it.site.database.run("SET GLOBAL sql_mode = 'NO_ZERO_DATE'");
        }),
        ("another server", |it| {
            it.site.database.run("SET GLOBAL server_id = 4711");
        }),
    ];
    let stops = changes.map(|change| (Signal::QUIT, change));
    // A row can be written again, and so can files.
    let kills = [changes[0], changes[2]].map(|change| (Signal::KILL, change));
    for (signal, (name, change)) in stops.into_iter().chain(kills) {
        kept.keep().await;
        kept.restart(signal, change).await;
        assert_eq!(kept.shown_again().await, 0, "{name}, {signal:?}");
    }
}

#[tokio::test]
async fn pages_of_another_configuration_are_made_anew() {
    let Some(mut kept) = KeptPages::begin().await else {
        return;
    };
    let (main, http) = (kept.main.clone(), kept.http.clone());
    let begin = http.find("cache_learn_database").expect("an account");
    let end = http.find("\";\n").expect("its end") + 2;
    let account = &http[begin..end];
    for (name, other_main, other_http) in [
        ("no account", main.clone(), http.replace(account, "")),
        (
            "another pool",
            main.replace("php_pool site", "php_pool other"),
            http.replace("php:site", "php:other"),
        ),
        (
            "another setting of PHP",
            main.replace("workers 6;", "workers 6; php_value precision 10;"),
            http.clone(),
        ),
        (
            "pages are not kept",
            main.clone(),
            http.replace("cache_learn on;", "").replace(account, ""),
        ),
        (
            "nothing is run again",
            main.clone(),
            http.replace("cache_learn on;", "cache_learn on; cache_learn_replay off;"),
        ),
    ] {
        kept.keep().await;
        (kept.main, kept.http) = (other_main, other_http);
        kept.restart(Signal::QUIT, |it| it.server.rewrite(&it.main, &it.http))
            .await;
        assert_eq!(kept.shown_again().await, 0, "{name}");
        (kept.main, kept.http) = (main.clone(), http.clone());
        kept.restart(Signal::QUIT, |it| it.server.rewrite(&it.main, &it.http))
            .await;
    }
}
