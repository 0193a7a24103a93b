<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * What the plug-in remembers, in one option that WordPress loads with all others: that a Mayfly has been in
 * front, which cron and WP-CLI cannot know, and tags that could not be purged, until a request of the site can
 * do it.
 */
final class Waiting
{
    private const OPTION = 'mayfly_waiting';

    /** More of them are the whole site. */
    private const MAX_TAGS = 1000;

    public function __construct(private readonly TagNames $names)
    {
    }

    public function isMayflyKnown(): bool
    {
        return get_option(self::OPTION) !== false;
    }

    /**
     * A Mayfly is in front.
     */
    public function know(): void
    {
        if (!$this->isMayflyKnown()) {
            add_option(self::OPTION, [], '', true);
        }
    }

    /**
     * @param list<string> $tags full names
     */
    public function add(array $tags): void
    {
        $all = array_values(array_unique([...$this->tags(), ...$tags]));
        if (\count($all) > self::MAX_TAGS) {
            $all = [$this->names->full(TagNames::SITE)];
        }
        update_option(self::OPTION, $all, true);
    }

    /**
     * @return list<string>
     */
    public function tags(): array
    {
        $tags = get_option(self::OPTION, []);

        return \is_array($tags) ? array_values(array_filter($tags, \is_string(...))) : [];
    }

    public function forget(): void
    {
        update_option(self::OPTION, [], true);
    }
}
