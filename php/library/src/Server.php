<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * What a request says of the server in front of PHP.
 */
final class Server
{
    /**
     * @param bool        $isMayfly  whether it is a Mayfly, which takes tags and purges
     * @param string|null $tagMark   begins and ends messages of the error stream that name tags
     *                               (`cache_tags ... stderr`); null where they are not read
     * @param bool        $parsesEsi whether it puts pages together from fragments
     */
    public function __construct(
        public readonly bool $isMayfly,
        public readonly ?string $tagMark = null,
        public readonly bool $parsesEsi = false,
    ) {
    }

    /**
     * Reads the FastCGI params of a request, as `$_SERVER` has them.
     *
     * A Mayfly says `SERVER_SOFTWARE mayfly`, unless the configuration has `fastcgi_param` lines of
     * its own (such as nginx's fastcgi_params file, which says nginx there). Such a configuration says
     * `fastcgi_param MAYFLY on;`. No field of a visitor's request can say it: those begin with `HTTP_`.
     *
     * @param array<array-key, mixed> $params
     */
    public static function fromParams(array $params): self
    {
        $mark = self::text($params, 'MAYFLY_TAG_MARK');
        $isMayfly = $mark !== ''
            || preg_match('~^mayfly(?:$|[/ ])~i', self::text($params, 'SERVER_SOFTWARE')) === 1
            || !in_array(self::text($params, 'MAYFLY'), ['', '0', 'off'], true);

        return new self(
            $isMayfly,
            $mark === '' ? null : $mark,
            // https://www.w3.org/TR/edge-arch/, section 3: who is in front says what it can do.
            $isMayfly && str_contains(self::text($params, 'HTTP_SURROGATE_CAPABILITY'), 'ESI/1.0'),
        );
    }

    /**
     * No Mayfly is in front, as on the command line.
     */
    public static function none(): self
    {
        return new self(false);
    }

    /**
     * @param array<array-key, mixed> $params
     */
    private static function text(array $params, string $name): string
    {
        $value = $params[$name] ?? '';

        return is_string($value) ? $value : '';
    }
}
