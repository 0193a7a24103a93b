<?php
/**
 * Fills a freshly installed WordPress: users, a few posts, calm options.
 * Run by the command line's PHP with the site's host and a JSON object on
 * standard input; prints the ids it made as JSON.
 */
$seed = json_decode(stream_get_contents(STDIN), true);
$_SERVER['HTTP_HOST'] = $seed['host'];
$_SERVER['REQUEST_METHOD'] = 'GET';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
define('WP_USE_THEMES', false);
require '/usr/share/wordpress/wp-load.php';

$made = ['users' => [], 'posts' => []];
foreach ($seed['users'] as $user) {
    $id = username_exists($user['login']);  // the administrator is there already
    if ($id) {
        $id = wp_update_user(['ID' => $id, 'display_name' => $user['name']]);
    } else {
        $id = wp_insert_user([
            'user_login' => $user['login'], 'user_pass' => $user['password'],
            'user_email' => $user['email'], 'display_name' => $user['name'],
            'role' => $user['role'],
        ]);
    }
    if (is_wp_error($id)) {
        fwrite(STDERR, $id->get_error_message() . "\n");
        exit(1);
    }
    update_user_meta($id, 'marker_token', $user['token']);
    $made['users'][$user['login']] = $id;
}
foreach ($seed['options'] as $name => $value) {
    update_option($name, $value);
}
foreach ($seed['posts'] as $post) {
    $author = $made['users'][$post['author']];
    $id = wp_insert_post([
        'post_title' => $post['title'], 'post_name' => $post['slug'],
        'post_content' => $post['content'], 'post_status' => $post['status'] ?? 'publish',
        'post_password' => $post['password'] ?? '', 'post_author' => $author,
        'comment_status' => 'open',
    ], true);
    if (is_wp_error($id)) {
        fwrite(STDERR, $id->get_error_message() . "\n");
        exit(1);
    }
    $made['posts'][$post['slug']] = $id;
}
$GLOBALS['wp_rewrite']->init();
flush_rewrite_rules(false);
echo json_encode($made), "\n";
