<?php

declare(strict_types=1);

namespace News;

/**
 * The three commands of memcached that pages need
 * (https://github.com/memcached/memcached/blob/master/doc/protocol.txt).
 */
final class Memcached
{
    private const SECONDS = 1;

    /** What it says where nothing listens: then it holds nothing either. */
    private const NOT_THERE = [self::ENOENT, self::ECONNREFUSED];
    private const ENOENT = 2;
    private const ECONNREFUSED = 111;

    /** @var resource|null */
    private $stream = null;

    /**
     * @param string $address `127.0.0.1:11211`, or `unix:` with the path of a socket
     */
    public function __construct(private readonly string $address)
    {
    }

    /**
     * As `memcached_pass` writes a key: with `%` as `%25`.
     */
    public function key(string $uri): string
    {
        return 'page:' . str_replace('%', '%25', $uri);
    }

    /**
     * A page that two have made at the same time is put there once.
     */
    public function add(string $key, string $value, int $seconds): void
    {
        // A value that is too large, for example, is not stored; then there is none.
        $this->ask("add $key 0 $seconds " . strlen($value) . "\r\n$value\r\n");
    }

    /**
     * @throws \RuntimeException if it may still hold the page
     */
    public function delete(string $key): void
    {
        $said = $this->ask("delete $key\r\n");
        if ($said !== null && !in_array($said, ['DELETED', 'NOT_FOUND'], true)) {
            throw new \RuntimeException("memcached does not delete: $said");
        }
    }

    /**
     * @return string|null null if there is no memcached
     */
    private function ask(string $command): ?string
    {
        if ($this->stream === null) {
            $stream = @stream_socket_client($this->url(), $code, $message, self::SECONDS);
            if ($stream === false) {
                if (in_array($code, self::NOT_THERE, true)) {
                    return null;
                }
                throw new \RuntimeException("memcached cannot be reached: $message");
            }
            stream_set_timeout($stream, self::SECONDS);
            $this->stream = $stream;
        }
        for ($rest = $command; $rest !== ''; $rest = substr($rest, $written)) {
            $written = @fwrite($this->stream, $rest);
            if ($written === false || $written === 0) {
                throw new \RuntimeException('memcached has gone away');
            }
        }
        $said = fgets($this->stream);
        if ($said === false) {
            throw new \RuntimeException('memcached does not answer');
        }

        return rtrim($said);
    }

    private function url(): string
    {
        return str_starts_with($this->address, 'unix:')
            ? 'unix://' . substr($this->address, strlen('unix:'))
            : "tcp://$this->address";
    }
}
