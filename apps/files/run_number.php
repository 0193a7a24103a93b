<?php
/**
 * Plugin Name: Number of the run
 *
 * Says on each response which run of PHP made it, so that a rig can count how often a page was made.
 */
add_action('send_headers', static function () {
    header('X-Run: ' . getmypid() . '-' . hrtime(true));
});
