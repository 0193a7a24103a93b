<?php

declare(strict_types=1);

namespace News;

/**
 * What a visitor asks for.
 */
final class Request
{
    public function __construct(
        public readonly string $method,
        /** As it was sent, with arguments. */
        public readonly string $uri,
        /** Without them. */
        public readonly string $path,
        /** Of the visitor, or empty. */
        public readonly string $cookie,
        private readonly string $origin,
    ) {
    }

    public static function current(): self
    {
        $uri = (string) $_SERVER['REQUEST_URI'];
        $cookie = $_COOKIE[Visitors::COOKIE] ?? '';

        return new self(
            $_SERVER['REQUEST_METHOD'] === 'POST' ? 'POST' : 'GET',
            $uri,
            explode('?', $uri, 2)[0],
            is_string($cookie) ? $cookie : '',
            (string) ($_SERVER['HTTP_SEC_FETCH_SITE'] ?? ''),
        );
    }

    /**
     * A page of another site has made the visitor's browser send this.
     */
    public function isForged(): bool
    {
        return !in_array($this->origin, ['', 'same-origin', 'none'], true);
    }

    /**
     * What follows a path such as `/news/`, if it is a number.
     */
    public function number(string $before, string $after = ''): ?int
    {
        $pattern = '~^' . preg_quote($before, '~') . '([1-9][0-9]{0,8})' . preg_quote($after, '~') . '$~D';

        return preg_match($pattern, $this->path, $found) === 1 ? (int) $found[1] : null;
    }

    /**
     * What follows a path, if it is a name of small letters.
     */
    public function name(string $before): ?string
    {
        $pattern = '~^' . preg_quote($before, '~') . '([a-z]{1,30})$~D';

        return preg_match($pattern, $this->path, $found) === 1 ? $found[1] : null;
    }

    public static function argument(string $name): string
    {
        return self::cut($_GET[$name] ?? '', 60);
    }

    public static function field(string $name, int $characters = 200): string
    {
        return self::cut($_POST[$name] ?? '', $characters);
    }

    /**
     * At most so many characters, never half of one.
     */
    private static function cut(mixed $text, int $characters): string
    {
        $text = is_string($text) ? trim($text) : '';

        return preg_match('/^.{0,' . $characters . '}/su', $text, $found) === 1 ? $found[0] : '';
    }
}
