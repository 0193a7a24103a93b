<?php
/**
 * Plugin Name: Times of cron
 *
 * Says when WordPress's cron runs, in a file that no page reads: what it changes explains a difference between two pages.
 */
add_action('init', static function () {
    if (!wp_doing_cron()) {
        return;
    }
    $note = static function ($word) {
        file_put_contents(DAY_CRON, "$word " . getmypid() . ' ' . microtime(true) . "\n", FILE_APPEND);
    };
    $note('begin');
    register_shutdown_function(static function () use ($note) {
        $note('end');
    });
});
