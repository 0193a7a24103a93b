//! Writes nginx-syntax configuration from the found site and the options; pure. The text is
//! for reading: an administrator copies it and goes on from there, so each part has its
//! reason.
//!
//! A page is shared by `cache_shared`: see there for the effects that a visitor's request may
//! have. The tables of [`super::applications`] decide which requests are personal. DokuWiki
//! starts a session for everybody, which makes PHP send `no-store` on every page: that field
//! is disregarded for pages that were made without any cookie.

use std::path::Path;

use super::applications::rules;
use super::cache_rules::{FASTCGI, cache_rules, cache_zone, max_valid, not_found};
use super::conf_text::{CannotWrite, Conf, path, quoted, word};
use super::dashboard::dashboard;
use super::detect::DetectedSite;
use super::http_settings::{compression, included, log, process, trusted_proxies, types};
use super::https;
use super::kind::SiteKind;
use super::locations::locations;
use super::mediawiki;
use super::nested_applications;
use super::options::{DatabaseLogin, LearnMode, ServeOptions};
use super::php_params::php_params;

/// The configuration that serves the site `found` in the folder `dir` (an absolute path).
///
/// # Errors
/// A path or word that the syntax cannot carry.
pub fn write_config(
    found: &DetectedSite,
    dir: &Path,
    options: &ServeOptions,
) -> Result<String, CannotWrite> {
    let mut conf = Conf::default();
    let rules = rules(found.kind).map(|own| nested_applications::with_others(own, &found.nested));
    let caching = rules.as_ref().filter(|_| !options.ttl.is_zero());
    main_context(&mut conf, found, options, rules.is_some())?;
    conf.open("http");
    log(&mut conf, options)?;
    types(&mut conf);
    compression(&mut conf);
    if caching.is_some() {
        cache_zone(
            &mut conf,
            FASTCGI,
            dir.as_os_str().as_encoded_bytes(),
            options,
        )?;
    }
    if rules.is_some() {
        conf.note("PHP runs as many scripts at once as the machine can. Clients have turns, crawlers come last.");
        conf.line("php_concurrency auto;");
        conf.gap();
    }
    if rules.is_some() && !options.behind.is_empty() {
        conf.note("The port that visitors see is the one of the proxy in front.");
        conf.map(
            "$scheme:$request_port $visitor_port",
            &[
                ("default", "$request_port"),
                ("http:", "80"),
                ("https:", "443"),
            ],
        );
    }
    https::issuer(&mut conf, options)?;
    conf.open("server");
    server(&mut conf, found, dir, options)?;
    if rules.is_some() {
        php_params(&mut conf, found.kind, options);
    }
    if found.kind == SiteKind::Symfony {
        conf.note("Parts of a page that live differently (render_esi), where a page asks for it.");
        conf.line("esi on;");
    }
    if let Some(rules) = caching {
        cache_rules(&mut conf, FASTCGI, rules, options);
        if found.is_linked {
            conf.note("A link leads to the folder: where it leads elsewhere, pages are made anew.");
            conf.line("fastcgi_cache_key $realpath_root;");
        }
        let is_purged = found.kind == SiteKind::MediaWiki && found.purge_settings.reach(options);
        not_found(&mut conf, rules, options, is_purged);
        learn(&mut conf, found.kind, options);
        match found.kind {
            SiteKind::MediaWiki => mediawiki::changes(&mut conf, found, options),
            _ => max_valid(&mut conf, options),
        }
        nested_applications::personal(&mut conf, &found.nested, options.guest_sessions);
    }
    conf.gap();
    let vouched = caching.and(options.vouched_ttl);
    locations(&mut conf, found, rules.as_ref(), caching.is_some(), vouched);
    conf.close();
    let takes_purges = found.kind == SiteKind::MediaWiki && caching.is_some();
    https::redirects(&mut conf, options, takes_purges)?;
    dashboard(&mut conf, options)?;
    included(&mut conf, options);
    conf.close();
    Ok(conf.text)
}

/// The path that the plug-in names too, so that both together make one request.
const WORDPRESS_CRON: &str = "cache_repeat /wp-cron.php?doing_wp_cron 60s;";

/// `--learn`
fn learn(conf: &mut Conf, kind: SiteKind, options: &ServeOptions) {
    let Some(mode) = options.learn else {
        return;
    };
    let (note, line) = match mode {
        LearnMode::On => (
            "Pages are kept until something that they were made of may have changed.",
            "cache_learn on;",
        ),
        LearnMode::Auto => (
            "Pages are compared when they are made again; once 200 with such addresses agreed, they are kept.",
            "cache_learn auto;",
        ),
        LearnMode::Watch => (
            "What pages are made of is found out and reported; nothing is kept longer for it.",
            "cache_learn watch;",
        ),
    };
    conf.note(note);
    conf.line(line);
    if mode == LearnMode::On && kind == SiteKind::WordPress {
        conf.note("Its cron begins at page views, which are few while pages are kept.");
        conf.line(WORDPRESS_CRON);
    }
    for (directive, login) in [
        ("cache_learn_database", &options.learn_database),
        ("cache_learn_object_cache", &options.learn_object_cache),
    ] {
        if let Some(login) = login {
            account(conf, directive, login);
        }
    }
}

fn account(conf: &mut Conf, directive: &str, login: &DatabaseLogin) {
    // A password may have a `$`, which means nothing here.
    let argument = |text: &str| word(text).unwrap_or_else(|_| quoted(text));
    let account = format!("{} {}", argument(&login.server), argument(&login.user));
    match login.password.as_deref() {
        Some("") => conf.line(&format!("{directive} {account};")),
        Some(password) => conf.line(&format!("{directive} {account} {};", argument(password))),
        None => {
            conf.note(&format!(
                "The account of {}. Write its password for PASSWORD:",
                login.settings
            ));
            conf.note(&format!("{directive} {account} PASSWORD;"));
        }
    }
}

fn main_context(
    conf: &mut Conf,
    found: &DetectedSite,
    options: &ServeOptions,
    has_php: bool,
) -> Result<(), CannotWrite> {
    conf.note(&format!(
        "Written by `mayfly serve`: {}.",
        found.kind.name()
    ));
    process(conf, options);
    if has_php {
        conf.open("php_pool site");
        match options.workers {
            Some(workers) => conf.line(&format!("workers {workers};")),
            None => conf.line("workers auto;"),
        }
        if let Some(php) = &options.php {
            conf.line(&format!("binary {};", path(php)?));
        }
        if let Some(user) = &options.user {
            conf.line(&format!("user {};", word(user)?));
        }
        if options.mail_gains_rights {
            conf.note("The mail program of this machine is a set-id program.");
            conf.line("no_new_privs off;");
        }
        conf.line("max_requests 1000;");
        conf.line("request_terminate_timeout 300s;");
        conf.line("php_admin_value upload_max_filesize 64M;");
        conf.line("php_admin_value post_max_size 64M;");
        if let Some(file) = &options.prepend {
            conf.note("`mayfly serve --home` writes this file and removes it at its end. Elsewhere WP_HOME");
            conf.note("and WP_SITEURL in wp-config.php do the same.");
            conf.line(&format!(
                "php_admin_value auto_prepend_file {};",
                path(file)?
            ));
        }
        conf.close();
        conf.gap();
    }
    Ok(())
}

fn server(
    conf: &mut Conf,
    found: &DetectedSite,
    dir: &Path,
    options: &ServeOptions,
) -> Result<(), CannotWrite> {
    https::listen(conf, options)?;
    trusted_proxies(conf, options)?;
    let root = match found.document_root {
        "" => dir.to_owned(),
        below => dir.join(below),
    };
    conf.line(&format!("root {};", path(&root)?));
    let index = match found.kind {
        SiteKind::Static => "index.html",
        SiteKind::DokuWiki => "doku.php",
        _ => "index.php index.html",
    };
    conf.line(&format!("index {index};"));
    conf.note(
        "Redirects leave scheme, name and port as the visitor has them, behind a proxy as well.",
    );
    conf.line("absolute_redirect off;");
    conf.line("client_max_body_size 64m;");
    conf.note("No browser takes a file for something that it is not sent as.");
    conf.line("add_header X-Content-Type-Options nosniff always;");
    https::remembered(conf, options);
    conf.note("Apache's rules, as the .htaccess files of the site have them at any time.");
    conf.line("htaccess on;");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::mediawiki_purges::PurgeSettings;
    use super::*;
    use crate::{AccessLogPlace, Dashboard, GuestSessions, Https};

    fn found(kind: SiteKind) -> DetectedSite {
        DetectedSite {
            kind,
            document_root: match kind {
                SiteKind::Laravel | SiteKind::Symfony => "public",
                _ => "",
            },
            front_controller: match kind {
                SiteKind::PlainPhp | SiteKind::Static => None,
                SiteKind::DokuWiki => Some("/doku.php"),
                _ => Some("/index.php"),
            },
            wp_content_parent: None,
            has_short_wiki_paths: kind == SiteKind::MediaWiki,
            purge_settings: PurgeSettings::default(),
            layout: None,
            signs: &[],
            nested: Vec::new(),
            is_linked: false,
        }
    }

    fn cases() -> Vec<(&'static str, DetectedSite, ServeOptions)> {
        let plain = |name, kind| (name, found(kind), ServeOptions::default());
        let mut purging = found(SiteKind::MediaWiki);
        purging.purge_settings = PurgeSettings::of("$wgCdnServers = ['127.0.0.1:8080'];");
        let mut debian = found(SiteKind::WordPress);
        debian.wp_content_parent = Some("/var/lib/wordpress");
        let all_options = ServeOptions {
            cache_folder: "/srv/pages".into(),
            listen: vec!["80".into(), "[::]:80".into()],
            ttl: Duration::from_millis(200),
            vouched_ttl: None,
            guest_sessions: GuestSessions::On,
            learn: Some(LearnMode::Watch),
            learn_database: Some(DatabaseLogin {
                server: "unix:/run/mysqld/mysqld.sock".to_owned(),
                user: "blog".to_owned(),
                password: Some("a $b \"c\\".to_owned()),
                settings: "wp-config.php".to_owned(),
            }),
            learn_object_cache: Some(DatabaseLogin {
                server: "10.0.0.7:6379".to_owned(),
                user: "default".to_owned(),
                password: None,
                settings: "wp-config.php".to_owned(),
            }),
            workers: Some(4),
            php: Some("/opt/php 8/php-fpm".into()),
            prepend: None,
            user: Some("www-data".into()),
            mail_gains_rights: true,
            access_log: Some(AccessLogPlace::File("/var/log/mayfly.log".into())),
            behind: vec!["127.0.0.1".into(), "10.0.0.0/8".into()],
            https: None,
            local_certificate: None,
            dashboard: Some(Dashboard {
                place: "127.0.0.1:8090".parse().unwrap(),
                tokens: "/run/mayfly/dashboard-127.0.0.1-8090.tokens".into(),
            }),
            service: false,
        };
        let local = ServeOptions {
            listen: vec!["127.0.0.1:8443".into()],
            local_certificate: Some("/home/ada/.local/state/mayfly/local/localhost.pem".into()),
            ..ServeOptions::default()
        };
        let domain = ServeOptions {
            listen: vec!["443".into(), "[::]:443".into()],
            https: Some(Https {
                domains: vec!["example.org".into(), "www.example.org".into()],
                listen_http: vec!["80".into(), "[::]:80".into()],
                issuer: "letsencrypt".into(),
                directory: "https://acme-v02.api.letsencrypt.org/directory".into(),
                email: Some("admin@example.org".into()),
                authorities: None,
                state: "/var/lib/mayfly/letsencrypt".into(),
                is_trusted: true,
            }),
            ..ServeOptions::default()
        };
        let plugin = ServeOptions {
            vouched_ttl: Some(Duration::from_secs(8 * 3600)),
            ..ServeOptions::default()
        };
        let uncached = ServeOptions {
            ttl: Duration::ZERO,
            ..ServeOptions::default()
        };
        let kept_an_hour = ServeOptions {
            ttl: Duration::from_secs(3600),
            ..ServeOptions::default()
        };
        vec![
            plain("wordpress", SiteKind::WordPress),
            ("wordpress_hour", found(SiteKind::WordPress), kept_an_hour),
            ("wordpress_plugin", found(SiteKind::WordPress), plugin),
            ("wordpress_debian", debian, ServeOptions::default()),
            plain("mediawiki", SiteKind::MediaWiki),
            ("mediawiki_purging", purging, ServeOptions::default()),
            ("mediawiki_local", found(SiteKind::MediaWiki), local.clone()),
            (
                "mediawiki_domain",
                found(SiteKind::MediaWiki),
                domain.clone(),
            ),
            plain("dokuwiki", SiteKind::DokuWiki),
            plain("drupal", SiteKind::Drupal),
            plain("laravel", SiteKind::Laravel),
            plain("symfony", SiteKind::Symfony),
            plain("front_controller", SiteKind::FrontController),
            plain("plain_php", SiteKind::PlainPhp),
            plain("static", SiteKind::Static),
            ("domain", found(SiteKind::Static), domain),
            ("local", found(SiteKind::Static), local),
            ("all_options", found(SiteKind::FrontController), all_options),
            ("uncached", found(SiteKind::DokuWiki), uncached),
        ]
    }

    #[test]
    fn each_application_gets_its_configuration() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/golden");
        for (name, found, options) in cases() {
            let text = write_config(&found, Path::new("/srv/site"), &options).unwrap();
            testkit::golden::assert_file(&folder.join(format!("{name}.conf")), &text);
        }
    }

    #[test]
    fn the_cron_of_a_wordpress_whose_pages_are_kept_is_called() {
        for (learn, kind, is_called) in [
            (Some(LearnMode::On), SiteKind::WordPress, true),
            (Some(LearnMode::Watch), SiteKind::WordPress, false),
            (None, SiteKind::WordPress, false),
            (Some(LearnMode::On), SiteKind::PlainPhp, false),
        ] {
            let options = ServeOptions {
                learn,
                ..ServeOptions::default()
            };
            let text = write_config(&found(kind), Path::new("/srv/site"), &options).unwrap();
            assert_eq!(
                text.contains(WORDPRESS_CRON),
                is_called,
                "{learn:?} {kind:?}"
            );
        }
    }

    #[test]
    fn two_sites_never_share_a_cache() {
        let zone = |dir| {
            let options = ServeOptions::default();
            let text = write_config(&found(SiteKind::PlainPhp), Path::new(dir), &options).unwrap();
            let line = text
                .lines()
                .find(|line| line.contains("fastcgi_cache_path"));
            line.unwrap().to_owned()
        };
        assert_ne!(zone("/srv/a"), zone("/srv/b"));
        assert_eq!(zone("/srv/a"), zone("/srv/a"));
    }
}
