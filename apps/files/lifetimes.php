<?php
/**
 * Plugin Name: How long pages are kept
 *
 * Says so to the server in front, with X-Accel-Expires: an hour, but a second for
 * the forum and for what does not exist.
 */
add_action('template_redirect', function () {
    $is_short = str_starts_with($_SERVER['REQUEST_URI'], '/forum') || is_404();
    header('X-Accel-Expires: ' . ($is_short ? 1 : 3600));
});
