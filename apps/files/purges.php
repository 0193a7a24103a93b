<?php
/**
 * Plugin Name: Purges of changed posts
 *
 * Sends what the plug-in Proxy Cache Purge sends (formerly Varnish HTTP Purge; version 5.2.2,
 * varnish-http-purge.php: purge_post() chooses the addresses, purge_url() makes the request): after
 * a change, a PURGE for each address that the changed post is known to be shown at, with the field
 * X-Purge-Method, at the end of the request that made the change.
 *
 * One event more than there: wp_trash_post. Since WordPress 5.7 a post in the trash has no address
 * but /?p=ID, so that its page would stay where it was.
 */

const PURGED_AT = ['edit_post', 'save_post', 'deleted_post', 'trashed_post', 'delete_attachment', 'wp_trash_post'];
const PURGED_WHOLLY_AT = ['switch_theme', 'customize_save_after', 'import_start', 'import_end'];

$purged_urls = [];

function purged_urls_of_post($id) {
    $statuses = ['publish', 'private', 'trash', 'pending', 'draft'];
    $type = get_post_type($id);
    if (!get_permalink($id) || !in_array(get_post_status($id), $statuses, true) || in_array($type, ['nav_menu_item', 'revision'], true)) {
        return [];
    }
    $rest = get_rest_url() . 'wp/v2/';
    $urls = [get_permalink($id), "$rest{$type}s/$id/"];
    foreach (get_post_taxonomies($id) as $name) {
        $taxonomy = get_taxonomy($name);
        foreach ($taxonomy->public ? wp_get_post_terms($id, $name) : [] as $term) {
            $base = $taxonomy->rest_base ?: $name;
            array_push($urls, get_term_link($term), "$rest$base/{$term->term_id}/");
        }
    }
    if ($type === 'post') {
        $author = get_post_field('post_author', $id);
        array_push($urls, get_author_posts_url($author), get_author_feed_link($author), "{$rest}users/$author/");
        foreach (['rdf_url', 'rss_url', 'rss2_url', 'atom_url', 'comments_rss2_url'] as $feed) {
            $urls[] = get_bloginfo_rss($feed);
        }
        $urls[] = get_post_comments_feed_link($id);
    }
    array_push($urls, get_rest_url(), home_url() . '/');
    return $urls;
}

function purge_url($url) {
    $parts = wp_parse_url($url);
    if (!isset($parts['host'])) {
        return;
    }
    $is_regex = ($parts['query'] ?? '') === 'vhp-regex';
    $host = $parts['host'] . (isset($parts['port']) ? ":{$parts['port']}" : '');
    // The plug-in's setting for the proxy's address, which may have a port.
    $target = "http://$host" . ($parts['path'] ?? '') . ($is_regex ? '.*' : '');
    if (!$is_regex && !empty($parts['query'])) {
        $target .= "?{$parts['query']}";
    }
    wp_remote_request($target, [
        'sslverify' => false,
        'method' => 'PURGE',
        'headers' => ['host' => $host, 'X-Purge-Method' => $is_regex ? 'regex' : 'default'],
    ]);
}

foreach (PURGED_AT as $event) {
    add_action($event, function ($id) {
        array_push($GLOBALS['purged_urls'], ...purged_urls_of_post($id));
    });
}
foreach (PURGED_WHOLLY_AT as $event) {
    add_action($event, function () {
        $GLOBALS['purged_urls'][] = home_url() . '/?vhp-regex';
    });
}
// The button "Empty Cache".
add_action('admin_post_empty_cache', function () {
    if (current_user_can('manage_options')) {
        $GLOBALS['purged_urls'][] = home_url() . '/?vhp-regex';
    }
});
add_action('shutdown', function () {
    $urls = array_unique($GLOBALS['purged_urls']);
    // Many addresses: all of the site.
    array_map('purge_url', count($urls) < 50 ? $urls : [home_url() . '/?vhp-regex']);
});
