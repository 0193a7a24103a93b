<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

use Mayfly\Purge\PurgeFolder;

/**
 * What the plug-in remembers, in two options that WordPress loads with all others: that a Mayfly has been in
 * front and which folder it looks into, which cron and WP-CLI cannot know, and tags that could not be purged, until a
 * request of the site can do it.
 */
final class Waiting
{
    private const OPTION = 'mayfly_waiting';

    private const FOLDER = 'mayfly_purge_folder';

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
     *
     * @param PurgeFolder|null $folder where it looks for purges when it starts
     */
    public function know(?PurgeFolder $folder): void
    {
        if (!$this->isMayflyKnown()) {
            add_option(self::OPTION, [], '', true);
        }
        if ($folder !== null && $folder->path !== $this->folder()?->path) {
            update_option(self::FOLDER, $folder->path, true);
        }
    }

    public function folder(): ?PurgeFolder
    {
        $path = get_option(self::FOLDER);

        return \is_string($path) && str_starts_with($path, '/') ? new PurgeFolder($path) : null;
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
