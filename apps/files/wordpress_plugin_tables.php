<?php
/**
 * Plugin Name: A plug-in with data of its own
 *
 * What plug-ins do past WordPress's posts, for the scenario wordpress_plugin: tables of their own (a poll, events,
 * a counter of visits), transients, options that a link writes, statements on WordPress's tables, a connection of
 * their own. Each has a shortcode, and the page that shows it.
 */

function tables_rows($statement) {
    global $wpdb;
    $rows = $wpdb->get_results(str_replace('{', $wpdb->prefix, str_replace('}', '', $statement)), ARRAY_N);
    return esc_html(implode('; ', array_map(fn ($row) => implode(', ', $row), (array) $rows)));
}

add_action('init', function () {
    global $wpdb;
    if (get_option('tables_are_made') !== 'yes') {
        foreach (['poll' => 'question text, votes int', 'event' => 'name text, venue int', 'venue' => 'town text', 'visit' => 'times int'] as $name => $columns) {
            $wpdb->query("CREATE TABLE IF NOT EXISTS {$wpdb->prefix}$name (id int PRIMARY KEY AUTO_INCREMENT, $columns)");
        }
        $wpdb->insert("{$wpdb->prefix}poll", ['question' => 'Tea or coffee?', 'votes' => 1]);
        $wpdb->insert("{$wpdb->prefix}venue", ['town' => 'Ulm']);
        $wpdb->insert("{$wpdb->prefix}event", ['name' => 'Fair', 'venue' => 1]);
        $wpdb->insert("{$wpdb->prefix}visit", ['times' => 0]);
        update_option('tables_are_made', 'yes');
    }
    if (isset($_GET['banner'])) {
        update_option('tables_banner', sanitize_key($_GET['banner']));
    }
    foreach ([
        'poll' => fn () => tables_rows('SELECT question, votes FROM {poll}'),
        'events' => fn () => tables_rows('SELECT e.name, v.town FROM {event} e JOIN {venue} v ON v.id = e.venue ORDER BY e.id'),
        'banner' => fn () => esc_html(get_option('tables_banner', 'none')),
        'offer' => fn () => esc_html((string) get_transient('tables_offer')),
        'offer_until' => fn () => esc_html((string) get_transient('tables_offer_until')),
        'links' => fn () => wp_list_bookmarks(['echo' => false]),
        'people' => fn () => count_users()['total_users'] . ' ' . get_user_count(),
        'popular' => fn () => tables_rows("SELECT post_title, comment_count FROM {posts} WHERE post_status = 'publish' AND post_type = 'post' ORDER BY comment_count DESC, ID LIMIT 3"),
        'colours' => fn () => tables_rows("SELECT post_id, meta_value FROM {postmeta} WHERE meta_key = 'colour' ORDER BY meta_id"),
        'term_colour' => fn () => esc_html((string) get_term_meta(get_term_by('slug', 'sport', 'category')->term_id, 'colour', true)),
        'form' => fn () => wp_nonce_field('tables', '_wpnonce', true, false),
        'short' => function () {
            add_filter('nonce_life', $short = fn () => 4);
            $nonce = wp_create_nonce('tables');
            remove_filter('nonce_life', $short);
            return "short: $nonce";
        },
        'visits' => function () {
            global $wpdb;
            $wpdb->query("UPDATE {$wpdb->prefix}visit SET times = times + 1");
            return 'visits: ' . tables_rows('SELECT times FROM {visit}');
        },
        'views' => function () {
            $id = get_the_ID();
            update_post_meta($id, 'views', (int) get_post_meta($id, 'views', true) + 1);
            return 'views: ' . (int) get_post_meta($id, 'views', true);
        },
        'past' => function () {
            [$host, $socket] = explode(':', DB_HOST, 2) + [1 => ''];
            $own = new mysqli($host, DB_USER, DB_PASSWORD, DB_NAME, 0, $socket);
            return 'past: ' . $own->query("SELECT question FROM {$GLOBALS['wpdb']->prefix}poll")->fetch_row()[0];
        },
    ] as $name => $content) {
        add_shortcode("tables_$name", $content);
    }
});

add_action('rest_api_init', function () {
    register_rest_route('tables/v1', '/poll', [
        'methods' => 'POST', 'permission_callback' => '__return_true',
        'callback' => function ($request) {
            global $wpdb;
            $wpdb->update("{$wpdb->prefix}poll", ['question' => $request['question']], ['id' => 1]);
            return ['saved' => true];
        },
    ]);
    register_rest_route('tables/v1', '/events', [
        'methods' => 'GET', 'permission_callback' => '__return_true', 'callback' => fn () => tables_rows('SELECT name FROM {event}'),
    ]);
});
