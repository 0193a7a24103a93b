<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * Sends the tags of a page: in its head while that is open, on the error stream afterwards.
 *
 * A page whose tags cannot all be sent must not be stored, because no purge of them would reach it. It
 * is then sent with `X-Accel-Expires: 0`.
 */
final class TagOutput
{
    /** Its tags are separated by spaces. */
    private const FIELD = 'Surrogate-Key';

    /**
     * What tags may take of the head by default. Mayfly takes 4 KB in all, unless
     * `fastcgi_buffer_size` says more.
     */
    public const HEAD_BYTES = 3000;

    /** No line of the head is longer, so that logs and debuggers can show it. */
    private const LINE_BYTES = 1000;

    /**
     * PHP-FPM cuts what `error_log()` is given at 1024 bytes (`log_limit`), with its own prefix and both marks.
     */
    private const STREAM_LINE_BYTES = 800;

    /** @var array<string, true> */
    private array $sent = [];

    private int $headBytesLeft;

    public function __construct(
        private readonly Server $server,
        private readonly ResponseHead $head,
        private readonly ErrorStream $errorStream,
        int $headBytes = self::HEAD_BYTES,
    ) {
        $this->headBytesLeft = $headBytes;
    }

    /**
     * Sends those of the tags that have not been sent yet.
     *
     * @param list<string> $tags
     * @param bool         $isComplete whether these are all tags that the page will have
     *
     * @return bool whether each tag has reached the server, or the page is not stored
     */
    public function send(array $tags, bool $isComplete): bool
    {
        $new = array_values(array_filter($tags, fn (string $tag): bool => !isset($this->sent[$tag])));
        $this->sent += array_fill_keys($new, true);
        if ($this->head->isOpen()) {
            $rest = $this->intoHead($new);
            $needsStream = $rest !== [] || !$isComplete;
            if (!$needsStream || $this->ontoErrorStream($rest)) {
                return true;
            }
            $this->head->add('X-Accel-Expires', '0', true);

            return true;
        }

        return $new === [] || $this->ontoErrorStream($new);
    }

    /**
     * @param list<string> $tags
     *
     * @return list<string> those for which there is no room
     */
    private function intoHead(array $tags): array
    {
        $line = '';
        while ($tags !== []) {
            $tag = $tags[0];
            // A line has its name, a colon, a space and its end.
            $isNewLine = $line === '' || strlen($line) + 1 + strlen($tag) > self::LINE_BYTES;
            $bytes = strlen($tag) + ($isNewLine ? strlen(self::FIELD) + 4 : 1);
            if ($bytes > $this->headBytesLeft) {
                break;
            }
            $this->headBytesLeft -= $bytes;
            if ($isNewLine && $line !== '') {
                $this->head->add(self::FIELD, $line);
                $line = '';
            }
            $line .= ($line === '' ? '' : ' ') . $tag;
            array_shift($tags);
        }
        if ($line !== '') {
            $this->head->add(self::FIELD, $line);
        }

        return $tags;
    }

    /**
     * @param list<string> $tags
     */
    private function ontoErrorStream(array $tags): bool
    {
        if ($this->server->tagMark === null || !$this->errorStream->isOpen()) {
            return false;
        }

        $lines = $tags === [] ? [] : explode("\n", wordwrap(implode(' ', $tags), self::STREAM_LINE_BYTES, "\n"));
        foreach ($lines as $line) {
            // The second mark says where the tags end, whatever PHP puts behind them.
            $mark = $this->server->tagMark;
            if (!$this->errorStream->write("$mark $line /$mark")) {
                return false;
            }
        }

        return true;
    }
}
