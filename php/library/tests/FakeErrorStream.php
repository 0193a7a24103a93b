<?php

declare(strict_types=1);

namespace Mayfly\Tests;

use Mayfly\ErrorStream;

final class FakeErrorStream implements ErrorStream
{
    /** @var list<string> */
    public array $lines = [];

    public bool $works = true;

    public function isOpen(): bool
    {
        return $this->works;
    }

    public function write(string $line): bool
    {
        if ($this->works) {
            $this->lines[] = $line;
        }

        return $this->works;
    }
}
