<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * The response that PHP sends for this script.
 */
final class PhpResponseHead implements ResponseHead
{
    public function isOpen(): bool
    {
        return !headers_sent();
    }

    public function add(string $name, string $value, bool $replace = false): void
    {
        header("$name: $value", $replace);
    }
}
