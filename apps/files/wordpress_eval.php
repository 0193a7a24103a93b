<?php
/**
 * Runs PHP with WordPress loaded, on the command line, as scripts and WP-CLI do. Standard input is JSON: the
 * site's host, a user's name, the code, and the value of $given. Prints what the code returns as JSON.
 */
$task = json_decode(stream_get_contents(STDIN), true);
$_SERVER['HTTP_HOST'] = $task['host'];
$_SERVER['REQUEST_METHOD'] = 'GET';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
define('WP_USE_THEMES', false);
require '/usr/share/wordpress/wp-load.php';
foreach (['post', 'user', 'nav-menu', 'image', 'media', 'file', 'theme', 'widgets', 'bookmark', 'comment', 'plugin', 'taxonomy'] as $part) {
    require_once ABSPATH . "wp-admin/includes/$part.php";
}
$user = get_user_by('login', $task['user'] ?? '');
if ($user) {
    wp_set_current_user($user->ID);
}
$run = static function ($given, $code) {
    return eval($code);
};
echo "\n", json_encode(['returned' => $run($task['given'] ?? [], $task['code'])]), "\n";
