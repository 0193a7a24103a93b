<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * PHP-FPM's error stream: there goes what `error_log()` is given, unless the setting `error_log` names
 * a file (https://www.php.net/manual/en/function.error-log.php, message type 0).
 */
final class PhpErrorStream implements ErrorStream
{
    public function isOpen(): bool
    {
        return self::withoutFile(static fn (): bool => true);
    }

    public function write(string $line): bool
    {
        return self::withoutFile(static fn (): bool => error_log($line));
    }

    /**
     * @param \Closure(): bool $work
     */
    private static function withoutFile(\Closure $work): bool
    {
        $file = (string) ini_get('error_log');
        // An administrator's setting (php_admin_value) stays: then a line would end up in a file.
        if ($file !== '' && @ini_set('error_log', '') === false) {
            return false;
        }
        try {
            return $work();
        } finally {
            if ($file !== '') {
                ini_set('error_log', $file);
            }
        }
    }
}
