<?php
/**
 * Plugin Name: Marker of the isolation test
 *
 * Says on each response for whom WordPress made it: a field (also on
 * redirects and feeds), a comment at the end of each page, and for a user a
 * token that only that user may ever receive. The checker compares both with
 * the identity that asked. Two more addresses play what plug-ins do: a page
 * that starts a session, and a page that says itself that it is private.
 */

function marker_text() {
    $user = get_current_user_id();
    $text = "for user:$user";
    if ($user) {
        $text .= ' token:' . get_user_meta($user, 'marker_token', true);
    }
    return $text;
}

function marker_print() {
    echo "\n<!-- " . marker_text() . " -->\n";
}

function marker_field() {
    if (!headers_sent()) {
        header('X-For-User: ' . get_current_user_id());
    }
}

add_action('init', 'marker_field', 1);
add_action('wp_footer', 'marker_print');
add_action('admin_footer', 'marker_print');
add_action('rss2_head', 'marker_print');
add_action('commentsrss2_head', 'marker_print');

// The REST interface decides anew who asks (no nonce: nobody).
add_filter('rest_post_dispatch', function ($response) {
    $response->header('X-For-User', (string) get_current_user_id());
    return $response;
});

// /?visit=shop starts a session on every view, as shops do: such a response
// belongs to one visitor. /?visit=private answers with the visitor's own
// cookie and says Cache-Control: private.
add_action('template_redirect', function () {
    $visit = $_GET['visit'] ?? '';
    if ($visit === 'shop') {
        setcookie('shop_session', bin2hex(random_bytes(12)), 0, '/');
    } elseif ($visit === 'private') {
        header('Cache-Control: private, max-age=60');
        header('Content-Type: text/html; charset=UTF-8');
        $visitor = preg_replace('/[^a-z0-9]/', '', $_COOKIE['visitor'] ?? '');
        echo "<html><!-- visitor:$visitor -->";
        marker_print();
        echo "</html>\n";
        exit;
    }
});

// The test writes faster than a person.
add_filter('comment_flood_filter', '__return_false', 99);
add_filter('wp_is_comment_flood', '__return_false', 99);

// Uploads of the test live in its own directory.
add_filter('upload_dir', function ($dirs) {
    foreach (['path', 'url', 'basedir', 'baseurl'] as $part) {
        $dirs[$part] = str_replace('/uploads', '/uploads/' . MARKER_UPLOADS, $dirs[$part]);
    }
    return $dirs;
});
