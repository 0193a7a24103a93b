<?php

declare(strict_types=1);

namespace Mayfly\Http;

/**
 * HTTP/1.0 over a PHP stream: every PHP has those, and they also speak with unix sockets. An answer of
 * HTTP/1.0 ends with its connection and is never chunked (RFC 9112, section 6.3).
 */
final class SocketExchange implements Exchange
{
    /** More than the report of the most targets that a request may have. */
    private const MAX_ANSWER_BYTES = 32 << 20;

    /** ENOENT: a socket's path is not there. ECONNREFUSED: no process listens. */
    private const NO_SERVER = [2, 111];

    public function __construct(private readonly float $timeoutSeconds = 5.0)
    {
    }

    public function post(string $address, string $path, array $fields, string $body): array
    {
        $deadline = microtime(true) + $this->timeoutSeconds;
        $stream = @stream_socket_client($address, $code, $reason, $this->timeoutSeconds);
        if ($stream === false) {
            $message = "Nobody answers at $address: $reason";
            throw in_array($code, self::NO_SERVER, true) ? new NoServer($message) : new ExchangeFailed($message);
        }
        try {
            $fields += ['Content-Length' => (string) strlen($body), 'Connection' => 'close'];
            $head = "POST $path HTTP/1.0\r\n";
            foreach ($fields as $name => $value) {
                $head .= "$name: $value\r\n";
            }
            self::write($stream, "$head\r\n$body", $deadline);

            return self::understood(self::read($stream, $deadline));
        } finally {
            fclose($stream);
        }
    }

    /**
     * @param resource $stream
     */
    private static function write($stream, string $bytes, float $deadline): void
    {
        while ($bytes !== '') {
            self::limit($stream, $deadline);
            $written = @fwrite($stream, $bytes);
            if ($written === false || $written === 0) {
                throw new ExchangeFailed('The connection ended while the request was sent.');
            }
            $bytes = substr($bytes, $written);
        }
    }

    /**
     * @param resource $stream
     */
    private static function read($stream, float $deadline): string
    {
        $answer = '';
        while (!feof($stream)) {
            self::limit($stream, $deadline);
            $piece = @fread($stream, 1 << 16);
            if ($piece === false || stream_get_meta_data($stream)['timed_out']) {
                throw new ExchangeFailed('The answer did not come in time.');
            }
            $answer .= $piece;
            if (strlen($answer) > self::MAX_ANSWER_BYTES) {
                throw new ExchangeFailed('The answer is too long.');
            }
        }

        return $answer;
    }

    /**
     * Lets the next operation wait for what is left of the time.
     *
     * @param resource $stream
     */
    private static function limit($stream, float $deadline): void
    {
        $left = $deadline - microtime(true);
        if ($left <= 0) {
            throw new ExchangeFailed('The answer did not come in time.');
        }
        stream_set_timeout($stream, (int) $left, (int) (fmod($left, 1.0) * 1e6));
    }

    /**
     * @return array{int, string} status and body
     */
    private static function understood(string $answer): array
    {
        $parts = explode("\r\n\r\n", $answer, 2);
        $head = $parts[0];
        $body = $parts[1] ?? null;
        if ($body === null || preg_match('~^HTTP/1\.[01] ([0-9]{3})(?: |\r|$)~', $head, $found) !== 1) {
            throw new ExchangeFailed('What came is no HTTP answer.');
        }
        $isShort = preg_match('~^content-length:[ \t]*([0-9]+)~mi', $head, $length) === 1
            && strlen($body) < (int) $length[1];
        if ($isShort) {
            throw new ExchangeFailed('The answer ended too early.');
        }

        return [(int) $found[1], $body];
    }
}
