//! A copy of a live WordPress, whose pages lead to the live address.

use testkit::serving::FolderServer;
use testkit::wait::until;

use crate::command_line::{code, stderr, words};
use crate::{has_php_fpm, program};

/// Leads to its home as WordPress does. Filters that were there before WordPress are called as
/// `WP_Hook::build_preinitialized_hooks` reads them.
const COPY: &[(&str, &str)] = &[
    (
        "index.php",
        "<?php
        $home = 'https://live.example';
        foreach ($GLOBALS['wp_filter']['option_home'] ?? [] as $priority => $callbacks)
            foreach ($callbacks as $callback)
                $home = call_user_func_array($callback['function'], array_slice([$home], 0, $callback['accepted_args']));
        $own = parse_url($home, PHP_URL_HOST);
        if ($_SERVER['HTTP_HOST'] !== $own) { header(\"Location: $home/\", true, 301); exit; }
        echo \"home $home\", defined('OWN') ? ' and own' : '';",
    ),
    ("wp-load.php", "<?php"),
    ("wp-settings.php", "<?php"),
    ("wp-includes/version.php", "<?php"),
];

#[tokio::test]
async fn a_first_page_that_leads_to_the_live_site_is_told_with_what_to_do() {
    if !has_php_fpm() {
        return;
    }
    let server = FolderServer::start_site(program(), COPY, &[]).await;
    until("the note", || {
        let said = server.read("stdout");
        let note = "Note: the first page leads to https://live.example/";
        said.contains(note) && said.contains("--home") && said.contains("'Host: live.example'")
    })
    .await;
    let control = server.control();
    let control = control.to_str().expect("a plain path");
    let output = words(&["explain", "http://localhost/", "--socket", control]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("stored      no"), "{told}");
}

#[tokio::test]
async fn with_home_the_pages_are_those_of_the_address_that_is_served() {
    if !has_php_fpm() {
        return;
    }
    let own = "<?php define('OWN', 1);";
    let site = FolderServer::folder();
    testkit::serving::write_files(site.path(), COPY);
    testkit::serving::write_files(site.path(), &[("own.php", own)]);
    let shown = site.path().to_str().expect("a plain path");
    std::fs::write(
        site.path().join(".user.ini"),
        format!("auto_prepend_file = {shown}/own.php\n"),
    )
    .expect("a file");
    let mut server = FolderServer::start(program(), shown, &["--home=http://site.test"]).await;
    let reply = server.target().get("/").await;
    assert_eq!(
        (reply.status, &*reply.text()),
        (200, "home http://site.test and own")
    );
    let said = server.read("stdout");
    assert!(
        said.contains("Home of WordPress: http://site.test/\n"),
        "{said}"
    );
    let made = format!("home-{}.php", server.pid());
    assert!(server.path(&made).exists());
    server.end().await;
    assert!(!server.path(&made).exists());
}

#[test]
fn home_is_for_wordpress_and_has_no_path() {
    let site = FolderServer::folder();
    testkit::serving::write_files(site.path(), &[("index.html", "page")]);
    let shown = site.path().to_str().expect("a plain path");
    let output = words(&["serve", shown, "--home"]);
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("--home is for WordPress"),
        "{}",
        stderr(&output)
    );
    testkit::serving::write_files(site.path(), COPY);
    let output = words(&["serve", shown, "--home=http://a/b", "--print-config"]);
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("without a path"),
        "{}",
        stderr(&output)
    );
}
