<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * What the page is made of that this request makes, and how long it may be kept.
 */
final class Page
{
    /** @var array<string, true> */
    private array $tags = [];

    private ?int $seconds = null;

    private bool $isPrivate = false;

    private bool $hasFragments = false;

    /**
     * The page shows this: it is purged when one of these changes.
     */
    public function reads(string ...$tags): void
    {
        foreach ($tags as $tag) {
            $this->tags[Tag::encode($tag)] = true;
        }
    }

    /**
     * The page may be kept so long, or shorter if it was said before.
     *
     * @throws \InvalidArgumentException for a negative number
     */
    public function keepFor(int $seconds): void
    {
        if ($seconds < 0) {
            throw new \InvalidArgumentException("A page is to be kept for $seconds seconds; expected 0 or more.");
        }
        $this->seconds = min($seconds, $this->seconds ?? $seconds);
    }

    /**
     * The page is for this visitor alone.
     */
    public function isPrivate(bool $isPrivate = true): void
    {
        $this->isPrivate = $isPrivate;
    }

    /**
     * The page includes fragments, and so the server is asked to put it together.
     */
    public function hasFragments(): void
    {
        $this->hasFragments = true;
    }

    /**
     * @return list<string>
     */
    public function tags(): array
    {
        return array_map(strval(...), array_keys($this->tags));
    }

    /**
     * The fields that say all but the tags.
     *
     * @return array<string, string> by name
     */
    public function fields(Server $server): array
    {
        $fields = [];
        if ($this->isPrivate) {
            // True for every cache between here and the visitor.
            $fields['Cache-Control'] = 'private, no-cache';
        }
        if (!$server->isMayfly) {
            return $fields;
        }
        if ($this->isPrivate) {
            $fields['X-Accel-Expires'] = '0';
        } elseif ($this->seconds !== null) {
            // Read by the server alone; browsers are told by cache_tagged_control.
            $fields['X-Accel-Expires'] = (string) $this->seconds;
        }
        if ($this->hasFragments && $server->parsesEsi) {
            $fields[Esi::FIELD] = Esi::VALUE;
        }

        return $fields;
    }
}
