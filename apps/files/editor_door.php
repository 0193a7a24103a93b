<?php
/**
 * Plugin Name: Door of the editor
 *
 * Runs what the rig sends, within the pool that serves the site, as a plug-in's code runs there: what it writes is
 * seen by the server. The site's configuration has the word that opens it, which only the rig knows.
 */
add_action('wp_loaded', static function () {
    $is_editor = hash_equals(EDITOR_DOOR, $_SERVER['HTTP_X_EDITOR'] ?? '');
    if (!$is_editor || parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) !== '/editor-door/') {
        return;
    }
    $task = json_decode(file_get_contents('php://input'), true);
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
    ob_start();
    $returned = $run($task['given'] ?? [], $task['code']);
    ob_end_clean();
    nocache_headers();
    header('Content-Type: application/json');
    echo json_encode(['returned' => $returned]);
    exit;
});
