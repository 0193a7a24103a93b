<?php
/**
 * Plugin Name: What the tags cost
 *
 * With the cookie `mayfly_off`, WordPress is told of another server, and so makes the same page without tags.
 * What the page has cost the CPU is written down, in microseconds. It is loaded before the plug-in (by name).
 */
if (isset($_COOKIE['mayfly_off'])) {
    $_SERVER['SERVER_SOFTWARE'] = 'another';
    unset($_SERVER['MAYFLY_TAG_MARK']);
}
if (isset($_COOKIE['mayfly_cost'])) {
    $cost_of_request = static function () {
        $used = getrusage();
        return ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) * 1000000 + $used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec'];
    };
    $cost_at_start = $cost_of_request();
    add_action('shutdown', function () use ($cost_of_request, $cost_at_start) {
        $kind = isset($_COOKIE['mayfly_off']) ? 'off' : 'on';
        file_put_contents(COST_FILE, $kind . ' ' . ($cost_of_request() - $cost_at_start) . "\n", FILE_APPEND | LOCK_EX);
    }, PHP_INT_MAX);
}
