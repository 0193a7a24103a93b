<?php

declare(strict_types=1);

namespace Mayfly\Tests;

use Mayfly\ResponseHead;

/**
 * A response whose head a test opens and shuts.
 */
final class FakeHead implements ResponseHead
{
    /** @var list<string> */
    public array $lines = [];

    public bool $isOpen = true;

    public function isOpen(): bool
    {
        return $this->isOpen;
    }

    public function add(string $name, string $value, bool $replace = false): void
    {
        if (!$this->isOpen) {
            throw new \LogicException("$name comes too late");
        }
        if ($replace) {
            $isOther = static fn (string $line): bool => !str_starts_with($line, "$name: ");
            $this->lines = array_values(array_filter($this->lines, $isOther));
        }
        $this->lines[] = "$name: $value";
    }
}
