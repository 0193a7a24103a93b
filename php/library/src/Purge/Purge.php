<?php

declare(strict_types=1);

namespace Mayfly\Purge;

/**
 * What to purge, in the terms of Mayfly's control socket and of `cache_purge_api` (docs/directives.md).
 */
final class Purge implements \JsonSerializable
{
    /** The most targets that one request may name. */
    public const MAX_TARGETS = 10_000;

    /**
     * @param list<string> $tags       what the application calls a thing that pages are made of
     * @param list<string> $urls       absolute URLs, or `/path` together with hosts
     * @param list<string> $prefixes   absolute URLs; all that begin so
     * @param list<string> $patterns   `*` is any text and `?` one character; with `~` in front, a regular expression
     * @param list<string> $hosts      all of these names; with URLs that have none, theirs
     * @param bool         $everything all that is stored
     * @param bool         $soft       the stale page is shown while one request fetches the new one
     */
    public function __construct(
        public readonly array $tags = [],
        public readonly array $urls = [],
        public readonly array $prefixes = [],
        public readonly array $patterns = [],
        public readonly array $hosts = [],
        public readonly bool $everything = false,
        public readonly bool $soft = false,
    ) {
    }

    public function isEmpty(): bool
    {
        return !$this->everything
            && [] === [...$this->tags, ...$this->urls, ...$this->prefixes, ...$this->patterns, ...$this->hosts];
    }

    /**
     * The object that the server takes: without what is empty.
     *
     * @return array<string, list<string>|true>
     */
    public function jsonSerialize(): array
    {
        $named = [
            'tags' => $this->tags,
            'urls' => $this->urls,
            'prefixes' => $this->prefixes,
            'patterns' => $this->patterns,
            'hosts' => $this->hosts,
        ];
        $said = array_filter(['everything' => $this->everything, 'soft' => $this->soft]);

        return array_filter($named) + $said;
    }
}
