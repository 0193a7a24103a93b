<?php

/**
 * For programs without Composer: loads the classes of this folder when they are first used (PSR-4).
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (!str_starts_with($class, 'Mayfly\\')) {
        return;
    }
    $file = __DIR__ . '/src/' . strtr(substr($class, strlen('Mayfly\\')), '\\', '/') . '.php';
    if (is_file($file)) {
        require $file;
    }
});
