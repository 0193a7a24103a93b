<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * The tags of the page that is being made.
 */
final class PageTags
{
    /** @var array<string, true> full names */
    private array $tags = [];

    /** @var array<string, true> names that came already, so that the many that come again cost little */
    private array $seen = [];

    /** @var array<int, array<int, int>> by site and number of the comment: the number of its post */
    private array $comments = [];

    public function __construct(private readonly TagNames $names)
    {
    }

    public function add(string $name): void
    {
        $key = get_current_blog_id() . $name;
        if (!isset($this->seen[$key])) {
            $this->seen[$key] = true;
            $this->tags[$this->names->full($name)] = true;
        }
    }

    /**
     * A number that becomes another with each tag that is new.
     */
    public function version(): int
    {
        return \count($this->seen) + array_sum(array_map(\count(...), $this->comments));
    }

    public function has(string $name): bool
    {
        return isset($this->seen[get_current_blog_id() . $name]);
    }

    /**
     * A comment, which needs no tag of its own if the page shows the comments of its post.
     */
    public function addComment(int $comment, int $post): void
    {
        $this->comments[get_current_blog_id()][$comment] = $post;
    }

    /**
     * What has to be named, in no more than so many bytes: kinds with many tags are named as a whole.
     *
     * @return list<string>
     */
    public function withinBytes(int $bytes): array
    {
        $tags = $this->necessary();
        $size = static fn (array $some): int => array_sum(array_map(\strlen(...), $some)) + \count($some);
        if ($size($tags) <= $bytes) {
            return $tags;
        }
        $kinds = [];
        foreach ($tags as $tag) {
            $kinds[TagNames::allOf($tag)][] = $tag;
        }
        uasort($kinds, static fn (array $one, array $other): int => $size($other) <=> $size($one));
        $left = $size($tags);
        foreach ($kinds as $all => $some) {
            // One tag is shorter than the name of its kind.
            if ($left > $bytes && \count($some) > 1) {
                $left += \strlen($all) + 1 - $size($some);
                $kinds[$all] = [$all];
            }
        }

        return array_merge(...array_values($kinds));
    }

    /**
     * Whoever carries `post:5` needs no `link:5`: each change of a link is a change of the post.
     *
     * @return list<string>
     */
    private function necessary(): array
    {
        $tags = $this->tags;
        foreach ($this->comments as $site => $comments) {
            foreach ($comments as $comment => $post) {
                if (!isset($this->seen["{$site}comments:$post"])) {
                    $tags[$this->names->full("comment:$comment", $site)] = true;
                }
            }
        }
        $isNeeded = static fn (string $tag): bool => !str_contains($tag, ':link:')
            || !isset($tags[str_replace(':link:', ':post:', $tag)]);

        return array_values(array_filter(array_map(\strval(...), array_keys($tags)), $isNeeded));
    }
}
