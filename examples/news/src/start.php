<?php

// Loads the classes of this folder and of the library when they are first used.

declare(strict_types=1);

$composer = __DIR__ . '/../vendor/autoload.php';
require is_file($composer) ? $composer : __DIR__ . '/../../../php/library/autoload.php';
spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/' . substr($class, strlen('News\\')) . '.php';
    if (str_starts_with($class, 'News\\') && is_file($file)) {
        require $file;
    }
});
require __DIR__ . '/text.php';
