<?php

declare(strict_types=1);

namespace Mayfly;

use Mayfly\Purge\Purge;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\Purger;

/**
 * What has changed and is not purged yet.
 *
 * Either a purger is asked, or the response to the current request says it (`X-Cache-Purge-Tags`): then
 * Mayfly purges before it lets the response go on. Responses of its own pools (`php_pool`,
 * `mayfly serve`) may do so, those of other upstreams with `cache_purge_fields on;`.
 */
final class Changes
{
    public const FIELD = 'X-Cache-Purge-Tags';

    /** No line of the head is longer. */
    private const LINE_BYTES = 1000;

    /** @var array<string, true> */
    private array $pending = [];

    /**
     * @param Purger|null $purger     asked first, wherever the change is made
     * @param Purger|null $substitute asked if there is no purger, and the head has left or there is none
     * @param int         $headBytes  what tags may take of the head; if there are more, the substitute is asked
     */
    public function __construct(
        private readonly Server $server,
        private readonly ResponseHead $head,
        private readonly ?Purger $purger = null,
        private readonly ?Purger $substitute = null,
        private readonly int $headBytes = TagOutput::HEAD_BYTES,
    ) {
    }

    public function add(string ...$tags): void
    {
        foreach ($tags as $tag) {
            $this->pending[Tag::encode($tag)] = true;
        }
    }

    public function isEmpty(): bool
    {
        return $this->pending === [];
    }

    /**
     * The tags that are not purged yet.
     *
     * @return list<string>
     */
    public function pending(): array
    {
        // Digits alone become numbers as keys of an array.
        return array_map(strval(...), array_keys($this->pending));
    }

    /**
     * Gives up what is pending, because somebody else sees to it.
     */
    public function forget(): void
    {
        $this->pending = [];
    }

    /**
     * Has everything purged that was added. Where neither a Mayfly nor a purger is known, nothing is kept
     * that could be old, and so nothing happens.
     *
     * @throws PurgeFailed if it could not be purged; it is still pending then
     */
    public function purge(): void
    {
        if ($this->pending === []) {
            return;
        }
        $tags = $this->pending();
        $purger = $this->purger ?? ($this->fitsIntoHead($tags) ? null : $this->substitute);
        if ($purger !== null) {
            $purger->purge(new Purge(tags: $tags));
        } elseif ($this->server->isMayfly && $this->head->isOpen()) {
            foreach (explode("\n", wordwrap(implode(' ', $tags), self::LINE_BYTES, "\n")) as $line) {
                $this->head->add(self::FIELD, $line);
            }
        } elseif ($this->server->isMayfly) {
            throw new PurgeFailed(
                'The head of the response has left already, and no other way to purge is known '
                . '(MAYFLY_CONTROL_SOCKET or MAYFLY_PURGE_URL).',
            );
        }
        $this->pending = [];
    }

    /**
     * @param list<string> $tags
     */
    private function fitsIntoHead(array $tags): bool
    {
        return $this->server->isMayfly
            && $this->head->isOpen()
            && array_sum(array_map(strlen(...), $tags)) + count($tags) <= $this->headBytes;
    }
}
