//! Debian's WordPress, unchanged: 90 pages and more, seen by the library and by the server's general log.

use std::path::Path;

use crate::peers::{Manner, Mayfly, PASSWORD, Php, database};

const ROOT: &str = "/usr/share/wordpress/";

fn configuration() -> String {
    let keys = ["AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE"]
        .map(|name| format!("define('{name}_KEY', 'k'); define('{name}_SALT', 's');"));
    format!(
        "define('DB_NAME', 'wordpress'); define('DB_USER', 'site'); define('DB_PASSWORD', '{PASSWORD}');
         define('DB_HOST', 'localhost:{}'); define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', ''); {}
         define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true); define('ABSPATH', '{ROOT}');
         define('WP_SITEURL', 'http://localhost'); define('WP_HOME', 'http://localhost');
         $_SERVER['HTTP_HOST'] = 'localhost'; $_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1'; $table_prefix = 'wp_';\n",
        database().socket(),
        keys.concat()
    )
}

const INSTALL: &str = "
define('WP_INSTALLING', true);
require ABSPATH . 'wp-settings.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('Site', 'admin', 'a@example.test', true, '', 'password');
require_once ABSPATH . 'wp-admin/includes/taxonomy.php';
$GLOBALS['wp_rewrite']->init();
create_initial_taxonomies();
$categories = [];
foreach (range(1, 6) as $i) $categories[] = wp_create_category(\"Category $i\");
foreach (range(1, 50) as $i) {
    $id = wp_insert_post(['post_title' => \"Post $i\", 'post_content' => str_repeat(\"Text $i. \", 50), 'post_status' => 'publish', 'post_author' => 1,
        'post_date' => sprintf('2025-%02d-%02d 10:00:00', 1 + $i % 12, 1 + $i % 28), 'post_category' => [$categories[$i % 6]]]);
    wp_set_post_tags($id, ['tag' . $i % 8]);
    if ($i % 3 == 0) wp_insert_comment(['comment_post_ID' => $id, 'comment_content' => \"Comment $i\", 'comment_author' => 'A', 'comment_author_email' => 'a@example.test', 'comment_approved' => 1]);
}
foreach (range(1, 8) as $i) wp_insert_post(['post_title' => \"Page $i\", 'post_content' => 'Page.', 'post_status' => 'publish', 'post_type' => 'page', 'post_author' => 1]);
echo 'installed';
";

const FRONT: &str = "
define('WP_USE_THEMES', true);
require ABSPATH . 'wp-settings.php';
wp();
require ABSPATH . WPINC . '/template-loader.php';
";

fn addresses() -> Vec<String> {
    let mut all = vec![
        "".to_owned(),
        "feed=rss2".into(),
        "feed=atom".into(),
        "feed=comments-rss2".into(),
        "s=Post".into(),
        "s=nothing".into(),
        "author=1".into(),
        "p=9999".into(),
    ];
    all.extend((1..=66).map(|id| format!("p={id}")));
    all.extend((2..=5).map(|page| format!("paged={page}")));
    all.extend((1..=12).map(|month| format!("m=2025{month:02}")));
    all.extend((2..=7).map(|id| format!("cat={id}")));
    all.extend((1..=8).map(|id| format!("tag=tag{}", id % 8)));
    all.extend((60..=68).map(|id| format!("page_id={id}")));
    all
}

#[test]
fn statements_of_wordpress_are_those_of_the_general_log_and_its_pages_are_the_same() {
    if !Path::new(ROOT).join("wp-settings.php").is_file() {
        println!("left out, WordPress is not here");
        return;
    }
    database().run("CREATE DATABASE wordpress CHARACTER SET utf8mb4");
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let settings = [
        "opcache.enable=1",
        "opcache.revalidate_freq=60",
        "date.timezone=UTC",
    ];
    let with = Php::start(Some(&mayfly.path()), &settings);
    let without = Php::start(None, &settings);
    let installed = without.run(1, &(configuration() + INSTALL));
    assert!(
        installed.contains("installed"),
        "{installed} {}",
        without.log()
    );
    for php in [&with, &without] {
        php.write("index.php", &(configuration() + FRONT));
    }
    let get = |php: &Php, fetch: usize, query: &str| {
        let address = format!("/?{query}");
        let number = fetch.to_string();
        let parameters = [
            ("MAYFLY_FETCH", &*number),
            ("QUERY_STRING", query),
            ("REQUEST_URI", &address),
            ("SERVER_NAME", "localhost"),
        ];
        php.get("index.php", &parameters)
    };
    let mut seen = Vec::new();
    let mut different = Vec::new();
    // All of them take half a minute.
    let has_all = std::env::var_os("PRELOAD_ROUNDS").is_some();
    let step = if has_all { 1 } else { 6 };
    for (fetch, query) in addresses().iter().step_by(step).enumerate() {
        // Work that WordPress does once (transients, template parts) is done before.
        get(&without, 1, query);
        let page = get(&with, fetch + 1, query);
        let record = mayfly.record();
        let plain = get(&without, 1, query);
        assert!(record.is_complete, "{query}");
        assert_eq!(record.inputs, [] as [&str; 0], "{query}");
        if page != plain {
            different.push(query.clone());
        }
        seen.push((record.connections[0], record.statements));
    }
    let connections: Vec<_> = seen.iter().map(|(connection, _)| *connection).collect();
    let logged = database().log_of(&connections);
    // One page after the other, so that the log has them in the same order.
    let received: Vec<_> = seen
        .iter()
        .flat_map(|(_, statements)| statements)
        .map(|it| it.trim())
        .collect();
    for (received, logged) in received.iter().zip(&logged) {
        assert_eq!(received, logged);
    }
    assert_eq!(received.len(), logged.len());
    let pages = seen.len();
    println!(
        "WordPress: {} statements of {pages} pages, as in the general log",
        received.len()
    );
    assert!(pages >= if has_all { 79 } else { 15 });
    assert_eq!(different, [] as [String; 0], "pages that differ");
}
