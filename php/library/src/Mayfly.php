<?php

declare(strict_types=1);

namespace Mayfly;

use Mayfly\Purge\Purger;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\ServerPurger;

/**
 * The door to this library for a script that PHP runs: says what the page reads and what the request has
 * changed. All of it is silent where no Mayfly is in front.
 *
 *     $mayfly = Mayfly::start();
 *     $mayfly->reads('news:5', 'front-page')->keepFor(3600);
 *     $mayfly->changed('news:5');
 */
final class Mayfly
{
    private bool $isEnding = false;

    public function __construct(
        private readonly Server $server,
        private readonly Page $page,
        private readonly Changes $changes,
        private readonly TagOutput $tagOutput,
        private readonly ResponseHead $head,
    ) {
    }

    /**
     * For this request, with what `$_SERVER` and the environment say. The output is held back until the
     * script has ended, so that the head can name what is read last. In a script of the command line there
     * is no page, and what has changed is purged when the script ends.
     *
     * @param Purger|null $purger    asked for each purge; otherwise the response says what to purge, and
     *                               on the command line whom the environment names is asked
     * @param int         $headBytes what tags may take of the head, where `fastcgi_buffer_size` allows more
     */
    public static function start(?Purger $purger = null, int $headBytes = TagOutput::HEAD_BYTES): self
    {
        $isCommand = \in_array(\PHP_SAPI, ['cli', 'phpdbg'], true);
        $server = $isCommand ? Server::none() : Server::fromParams($_SERVER);
        $head = new PhpResponseHead();
        $known = ServerPurger::fromEnvironment($_SERVER + getenv());
        $mayfly = new self(
            $server,
            new Page(),
            new Changes($server, $head, $purger ?? ($isCommand ? $known : null), $known, $headBytes),
            new TagOutput($server, $head, new PhpErrorStream(), $headBytes),
            $head,
        );
        if (!$isCommand) {
            ob_start($mayfly->onOutput(...));
        }
        register_shutdown_function($mayfly->end(...));

        return $mayfly;
    }

    /**
     * The page shows these, such as `news:5`.
     *
     * @return $this
     */
    public function reads(string ...$tags): self
    {
        $this->page->reads(...$tags);

        return $this;
    }

    /**
     * The page may be kept so long.
     *
     * @return $this
     */
    public function keepFor(int $seconds): self
    {
        $this->page->keepFor($seconds);

        return $this;
    }

    /**
     * The page is for this visitor alone, whether a Mayfly is in front or another cache.
     *
     * @return $this
     */
    public function private(): self
    {
        $this->page->isPrivate();

        return $this;
    }

    /**
     * A part of the page with a life of its own: an include tag where the server puts pages together,
     * otherwise what `$inline` makes.
     *
     * @param \Closure(): string $inline the part itself
     * @param string|null        $alt    asked for if the fragment fails; without it the part is left out
     */
    public function fragment(string $url, \Closure $inline, ?string $alt = null): string
    {
        if (!$this->server->parsesEsi || !$this->head->isOpen()) {
            return $inline();
        }
        $this->page->hasFragments();

        return Esi::include($url, $alt);
    }

    /**
     * These have changed: no answer that begins after this request's is made of what they were.
     *
     * @return $this
     */
    public function changed(string ...$tags): self
    {
        $this->changes->add(...$tags);

        return $this;
    }

    /**
     * Purges now what has changed so far, in place of at the end: for a job that runs long.
     *
     * @throws PurgeFailed
     */
    public function purge(): void
    {
        $this->changes->purge();
    }

    /**
     * Is called when the script ends.
     *
     * @internal
     */
    public function end(): void
    {
        $this->isEnding = true;
        $this->send();
    }

    /**
     * Is called when the held-back output leaves. What reads on after that has no head any more.
     *
     * @internal
     */
    public function onOutput(string $output): string
    {
        $this->send();

        return $output;
    }

    private function send(): void
    {
        if ($this->head->isOpen()) {
            foreach ($this->page->fields($this->server) as $name => $value) {
                $this->head->add($name, $value, true);
            }
        }
        if ($this->server->isMayfly && !$this->tagOutput->send($this->page->tags(), $this->isEnding)) {
            trigger_error('Mayfly: a page has left without all of its tags.', \E_USER_WARNING);
        }
        try {
            $this->changes->purge();
        } catch (PurgeFailed $failure) {
            trigger_error('Mayfly: ' . $failure->getMessage(), \E_USER_WARNING);
        }
    }
}
