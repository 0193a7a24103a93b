<?php

declare(strict_types=1);

namespace Mayfly\FosHttpCache;

use FOS\HttpCache\Exception\ExceptionCollection;
use FOS\HttpCache\ProxyClient\Invalidation\ClearCapable;
use FOS\HttpCache\ProxyClient\Invalidation\PurgeCapable;
use FOS\HttpCache\ProxyClient\Invalidation\TagCapable;
use Mayfly\Purge\Purge;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\Purger;
use Mayfly\Tag;

/**
 * A proxy client of FOSHttpCache (2 and 3): what is invalidated is gathered and purged at once by `flush()`.
 *
 * Pages name their tags by `FOS\HttpCache\ResponseTagger`, in the field `X-Cache-Tags`, which Mayfly reads
 * without a setting. Bans by other fields are not offered, because Mayfly finds pages by address and tag.
 */
final class Mayfly implements ClearCapable, PurgeCapable, TagCapable
{
    /** @var array<string, true> */
    private array $tags = [];

    /** @var array<string, true> */
    private array $urls = [];

    private bool $isEverything = false;

    /**
     * @param string|null $host of URLs that have none, such as `/news/5`
     */
    public function __construct(private readonly Purger $purger, private readonly ?string $host = null)
    {
    }

    /**
     * @param array<array-key, string> $tags
     */
    public function invalidateTags(array $tags): static
    {
        foreach ($tags as $tag) {
            $this->tags[Tag::encode($tag)] = true;
        }

        return $this;
    }

    /**
     * @param string                $url
     * @param array<string, string> $headers are of no use: all that is stored for the URL is purged
     */
    public function purge($url, array $headers = []): static
    {
        $this->urls[$url] = true;

        return $this;
    }

    public function clear(): static
    {
        $this->isEverything = true;

        return $this;
    }

    /**
     * @return int how many tags and URLs were purged
     *
     * @throws ExceptionCollection if the server was not reached or refuses
     */
    public function flush(): int
    {
        $tags = array_map(strval(...), array_keys($this->tags));
        $urls = array_map(strval(...), array_keys($this->urls));
        $everything = $this->isEverything;
        [$this->tags, $this->urls, $this->isEverything] = [[], [], false];
        try {
            $this->purgeOnce($tags, $urls, $everything);
        } catch (PurgeFailed $failure) {
            throw new ExceptionCollection([$failure]);
        }

        return count($tags) + count($urls) + (int) $everything;
    }

    /**
     * @param list<string> $tags
     * @param list<string> $urls
     */
    private function purgeOnce(array $tags, array $urls, bool $everything): void
    {
        $isRelative = static fn (string $url): bool => str_starts_with($url, '/');
        $relative = array_values(array_filter($urls, $isRelative));
        $absolute = array_values(array_diff($urls, $relative));
        if ($relative !== [] && $this->host === null) {
            throw new PurgeFailed("\"$relative[0]\" has no host, and the proxy client was told none.");
        }
        $this->purger->purge(new Purge(tags: $tags, urls: $absolute, everything: $everything));
        if ($relative !== []) {
            $this->purger->purge(new Purge(urls: $relative, hosts: [(string) $this->host]));
        }
    }
}
