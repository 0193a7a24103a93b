<?php

declare(strict_types=1);

namespace News;

/**
 * Who keeps finished pages, and takes them back when their data changes.
 *
 * A controller says what its page reads, a write says what it has changed; both in identifiers of data, such
 * as `headline:5`. Which pages that concerns, nobody here has to know.
 */
interface Keeping
{
    /**
     * The data is read from now on; what is written later is not in the page.
     */
    public function beginsToRead(): void;

    /**
     * The page shows these.
     */
    public function reads(string ...$identifiers): void;

    /**
     * @return list<string>
     */
    public function identifiers(): array;

    /**
     * The page may be kept so long, if nothing that it reads changes.
     */
    public function keepFor(int $seconds): void;

    /**
     * The page is for this visitor alone.
     */
    public function private(): void;

    /**
     * A part with a life of its own: a tag that includes it, or the part itself where nobody reads such tags.
     *
     * @param \Closure(): string $inline
     */
    public function fragment(string $path, \Closure $inline): string;

    /**
     * These have changed: is said before the change can be seen.
     */
    public function changed(string ...$identifiers): void;

    /**
     * The page is made.
     */
    public function finish(Request $request, Response $response): void;
}
