<?php

/**
 * With Composer: its packages. Otherwise Debian's (php-nyholm-psr7), and stubs of what it does not have.
 */

declare(strict_types=1);

require __DIR__ . '/../autoload.php';
$composer = __DIR__ . '/../vendor/autoload.php';
if (is_file($composer)) {
    require $composer;
} elseif (is_file('/usr/share/php/Nyholm/Psr7/autoload.php')) {
    require '/usr/share/php/Nyholm/Psr7/autoload.php';
}
require __DIR__ . '/Stubs/psr_http_server.php';
if (!interface_exists(FOS\HttpCache\ProxyClient\ProxyClient::class)) {
    require __DIR__ . '/Stubs/fos_http_cache.php';
}
require __DIR__ . '/Stubs/wordpress.php';
require __DIR__ . '/Stubs/wpdb.php';
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Mayfly\\WordPress\\')) {
        $folder = __DIR__ . '/../../wordpress/mayfly/src/';
        require $folder . strtr(substr($class, strlen('Mayfly\\WordPress\\')), '\\', '/') . '.php';
    }
    if (str_starts_with($class, 'Mayfly\\Tests\\')) {
        $file = __DIR__ . '/' . strtr(substr($class, strlen('Mayfly\\Tests\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
