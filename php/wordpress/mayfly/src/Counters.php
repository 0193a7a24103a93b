<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * What visitors write by looking at pages: counters of views, and sometimes the click on a link of a mail.
 *
 * What is written so is purged the first time, as any change. When it happens again within a week, it is a
 * counter: pages that show it are not kept, and nothing is purged for it. Names are `table:wp_visits`,
 * `option:NAME` and `postmeta:NAME`; they are remembered in an option that WordPress loads with all others.
 */
final class Counters
{
    private const OPTION = 'mayfly_counters';

    /** So often, and it is a counter. */
    private const TIMES = 2;

    /** So long after the last time, it is none any more. */
    private const SECONDS = 7 * 86400;

    /** How often it is noted that a counter still counts. */
    private const NOTED_SECONDS = 86400;

    /** More are not remembered; the oldest go. */
    private const MAX_NAMES = 200;

    /** @var array<string, array{int, int}>|null by name: how often, and when last */
    private ?array $known = null;

    /** @var array<string, array<string, true>> by name: the tags that the change ends */
    private array $written = [];

    /** @var array<string, true> what the page shows */
    private array $read = [];

    public function read(string $name): void
    {
        $this->read[$name] = true;
    }

    public function wrote(string $name, string ...$tags): void
    {
        $this->written[$name] = array_fill_keys($tags, true) + ($this->written[$name] ?? []);
    }

    /**
     * Whether the page shows a counter, or what it has changed itself.
     */
    public function areShown(): bool
    {
        if (array_intersect_key($this->read, $this->written) !== []) {
            return true;
        }
        foreach (array_intersect_key($this->known(), $this->read) as $name => $_) {
            if ($this->isCounter((string) $name)) {
                return true;
            }
        }

        return false;
    }

    /**
     * The tags to purge for what was written. An editor's click is no view.
     *
     * @return list<string>
     */
    public function settle(bool $isVisitor): array
    {
        $tags = [];
        $known = $this->known();
        foreach ($this->written as $name => $ended) {
            $isCounter = $isVisitor && $this->isCounter($name);
            if (!$isCounter) {
                $tags += $ended;
            }
            [$times, $last] = $known[$name] ?? [0, 0];
            if ($isVisitor && (!$isCounter || $last < time() - self::NOTED_SECONDS)) {
                $known[$name] = [$last < time() - self::SECONDS ? 1 : $times + 1, time()];
            }
        }
        $this->written = [];
        if ($known !== $this->known()) {
            uasort($known, static fn (array $one, array $other): int => $other[1] <=> $one[1]);
            $this->known = \array_slice($known, 0, self::MAX_NAMES, true);
            update_option(self::OPTION, $this->known, true);
        }

        return array_map(\strval(...), array_keys($tags));
    }

    private function isCounter(string $name): bool
    {
        [$times, $last] = $this->known()[$name] ?? [0, 0];

        return $times >= self::TIMES && $last >= time() - self::SECONDS;
    }

    /**
     * @return array<string, array{int, int}>
     */
    private function known(): array
    {
        if ($this->known === null) {
            $known = get_option(self::OPTION, []);
            $this->known = array_filter(
                \is_array($known) ? $known : [],
                static fn ($one): bool => \is_array($one) && \is_int($one[0] ?? null) && \is_int($one[1] ?? null),
            );
        }

        return $this->known;
    }
}
