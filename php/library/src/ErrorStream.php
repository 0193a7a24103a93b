<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * The error stream of FastCGI, on which tags may follow a page whose head has left.
 */
interface ErrorStream
{
    /**
     * Whether lines reach the server.
     */
    public function isOpen(): bool;

    /**
     * Writes a line; false if it does not reach the server.
     */
    public function write(string $line): bool;
}
