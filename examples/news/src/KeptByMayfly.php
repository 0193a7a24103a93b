<?php

declare(strict_types=1);

namespace News;

use Mayfly\Mayfly;

/**
 * Mayfly has the pages in memory, and knows what each of them reads: the library says so in fields of the
 * response, and in the response to a write what has changed.
 */
final class KeptByMayfly implements Keeping
{
    private readonly Mayfly $mayfly;

    /** @var array<string, string> */
    private array $identifiers = [];

    public function __construct()
    {
        $this->mayfly = Mayfly::start();
    }

    public function beginsToRead(): void
    {
        // Mayfly knows when the request began: it keeps no page that is older than a change.
    }

    public function reads(string ...$identifiers): void
    {
        $this->mayfly->reads(...$identifiers);
        $this->identifiers += array_combine($identifiers, $identifiers);
    }

    public function identifiers(): array
    {
        return array_values($this->identifiers);
    }

    public function keepFor(int $seconds): void
    {
        $this->mayfly->keepFor($seconds);
    }

    public function private(): void
    {
        $this->mayfly->private();
    }

    public function fragment(string $path, \Closure $inline): string
    {
        return $this->mayfly->fragment($path, $inline);
    }

    public function changed(string ...$identifiers): void
    {
        $this->mayfly->changed(...$identifiers);
    }

    public function finish(Request $request, Response $response): void
    {
    }
}
