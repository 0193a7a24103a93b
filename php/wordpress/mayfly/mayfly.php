<?php

/**
 * Plugin Name: Mayfly
 * Description: Lets the web server Mayfly keep pages for hours: says what each page shows, and has exactly those pages made anew that a change concerns. Without settings.
 * Version: 0.2.0
 * Requires at least: 6.1
 * Requires PHP: 8.1
 * License: Apache-2.0
 *
 * Works as a plug-in (wp-content/plugins/mayfly) and as a must-use plug-in, which sees everything from the
 * beginning: wp-content/mu-plugins/mayfly beside a file wp-content/mu-plugins/mayfly.php that reads
 * `<?php require __DIR__ . '/mayfly/mayfly.php';`
 */

if (!defined('ABSPATH') || PHP_VERSION_ID < 80100 || class_exists('Mayfly\\WordPress\\Plugin', false)) {
    return;
}

if (is_file(__DIR__ . '/classes.php')) {
    // All classes in one file, as php/wordpress/build.sh makes it: forty files cost each page a third of a millisecond.
    require __DIR__ . '/classes.php';
} else {
    require __DIR__ . '/../../library/autoload.php';
    spl_autoload_register(static function ($class) {
        if (strpos($class, 'Mayfly\\WordPress\\') === 0) {
            $file = __DIR__ . '/src/' . strtr(substr($class, strlen('Mayfly\\WordPress\\')), '\\', '/') . '.php';
            if (is_file($file)) {
                require $file;
            }
        }
    });
}

Mayfly\WordPress\Plugin::start();
