<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * The fields of the response that is being made.
 */
interface ResponseHead
{
    /**
     * Whether fields can still be added.
     */
    public function isOpen(): bool;

    /**
     * Adds a field; one of the same name stays beside it unless it is replaced.
     */
    public function add(string $name, string $value, bool $replace = false): void;
}
