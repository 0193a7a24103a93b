<?php
/**
 * Plugin Name: What a page is made of
 *
 * Pages that differ by visitor as those of themes and plug-ins do: by
 * wp_is_mobile(), by the language that Polylang's cookie names, by scheme. What
 * WordPress made of the visitor is at the end of each page, as JSON. What it was
 * told is in a file, a line for each page that was made: printed into the page,
 * the page would depend on it.
 */

const VISITOR_WORDS = ['en' => 'Welcome', 'de' => 'Willkommen'];

// As Polylang: the address decides, then the cookie, then the site's default.
function visitor_language() {
    foreach ([$_GET['lang'] ?? '', $_COOKIE['pll_language'] ?? ''] as $language) {
        if (is_string($language) && isset(VISITOR_WORDS[$language])) {
            return $language;
        }
    }
    return 'en';
}

// Runs are counted, on a slow machine for minutes: WordPress changes nothing by itself, by cron or after a minute.
define('DISABLE_WP_CRON', true);
foreach (['global_styles_', 'global_styles_svg_filters_'] as $name) {
    add_filter("expiration_of_transient_$name" . get_stylesheet(), '__return_zero');
}

const VISITOR_RUNS = __DIR__ . '/runs/pages';

add_action('template_redirect', function () {
    // As plug-ins that want the whole site encrypted.
    if (isset($_GET['force_ssl']) && !is_ssl()) {
        wp_redirect('https://' . $_SERVER['HTTP_HOST'] . $_SERVER['REQUEST_URI'], 301);
        exit;
    }
    // As a language switcher.
    if (isset($_GET['lang']) && ($_COOKIE['pll_language'] ?? '') !== visitor_language()) {
        setcookie('pll_language', visitor_language(), time() + YEAR_IN_SECONDS, '/');
    }
});

add_action('wp_footer', function () {
    echo "\n<!-- seen ", json_encode([
        'ssl' => is_ssl(),
        'port' => $_SERVER['SERVER_PORT'],
        'scheme' => $_SERVER['REQUEST_SCHEME'],
        'page' => wp_is_mobile() ? 'MOBILE' : 'DESKTOP',
        'greeting' => VISITOR_WORDS[visitor_language()],
    ], JSON_HEX_TAG), " -->\n";
    if (!is_dir(dirname(VISITOR_RUNS))) {
        return;
    }
    file_put_contents(VISITOR_RUNS, json_encode([
        'target' => $_SERVER['REQUEST_URI'],
        'address' => $_SERVER['REMOTE_ADDR'],
        'agent' => $_SERVER['HTTP_USER_AGENT'] ?? '',
        'cookies' => array_keys($_COOKIE),
        'fields' => array_keys(array_filter($_SERVER, fn($name) => str_starts_with($name, 'HTTP_'), ARRAY_FILTER_USE_KEY)),
    ]) . "\n", FILE_APPEND | LOCK_EX);
});
