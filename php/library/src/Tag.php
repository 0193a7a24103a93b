<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * The name of something that pages are made of, such as `news:5`.
 *
 * A tag is a text without spaces and commas, because those separate tags wherever they are named
 * (`cache_tags` and `cache_purge_fields` in Mayfly's docs/directives.md).
 */
final class Tag
{
    /**
     * The longest tag of this library. Mayfly takes 1024 bytes (`cache_tags`), but a line of PHP-FPM's error
     * stream has no room for those.
     */
    public const MAX_BYTES = 500;

    /** Most tags have no other bytes, and are known at a glance. */
    private const PLAIN = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_-./';

    /** Of a name that is too long, this much stays readable. */
    private const KEPT_BYTES = 64;

    /**
     * Puts a tag together: `Tag::of('news', 5)` is `news:5`.
     */
    public static function of(string $kind, int|string ...$parts): string
    {
        return self::encode(implode(':', [$kind, ...$parts]));
    }

    /**
     * Makes a tag of any text. Bytes that a tag cannot have are written as in a URL (`%20`), and a
     * text that is too long ends in its SHA-256. The same text is always the same tag, and a tag
     * stays as it is.
     *
     * @throws \InvalidArgumentException for an empty text
     */
    public static function encode(string $text): string
    {
        $bytes = strlen($text);
        if ($bytes !== 0 && $bytes <= self::MAX_BYTES && strspn($text, self::PLAIN) === $bytes) {
            return $text;
        }
        if ($text === '') {
            throw new \InvalidArgumentException('A tag is empty; expected a name such as "news:5".');
        }
        $tag = (string) preg_replace_callback(
            '/[^!#-+\-.-~]/',
            static fn (array $byte): string => rawurlencode($byte[0]),
            $text,
        );
        if (strlen($tag) <= self::MAX_BYTES) {
            return $tag;
        }

        return substr($tag, 0, self::KEPT_BYTES) . '~' . hash('sha256', $text);
    }

    private function __construct()
    {
    }
}
