<?php

declare(strict_types=1);

namespace News;

use Mayfly\Mayfly;
use PDO;

/**
 * Finished pages are in memcached, under the key that `memcached_pass` asks for. So the application has to
 * know itself which pages read what: a table has a row for each page and identifier.
 *
 * A page that is being made while something changes must not be put there afterwards. Each change has a
 * number; a page is put into memcached only if nothing that it reads has a number from after its beginning.
 * That is looked at and done while nobody can write.
 */
final class KeptInMemcached implements Keeping
{
    /** For search engines that know no end: memcached takes keys of 250 bytes. */
    private const URI_BYTES = 200;

    private int $stamp = 0;
    private ?int $seconds = null;
    private bool $isPrivate = false;

    /** @var array<string, string> */
    private array $identifiers = [];

    /** Reads whether the server puts pages together. It keeps nothing itself. */
    private readonly Mayfly $mayfly;

    public function __construct(private readonly PDO $database, private readonly Memcached $memcached)
    {
        $this->mayfly = Mayfly::start();
    }

    public function beginsToRead(): void
    {
        $this->stamp = (int) $this->database->query('SELECT coalesce(max(stamp), 0) FROM changes')->fetchColumn();
    }

    public function reads(string ...$identifiers): void
    {
        $this->identifiers += array_combine($identifiers, $identifiers);
    }

    public function identifiers(): array
    {
        return array_values($this->identifiers);
    }

    public function keepFor(int $seconds): void
    {
        $this->seconds = min($seconds, $this->seconds ?? $seconds);
    }

    public function private(): void
    {
        $this->isPrivate = true;
        $this->mayfly->private();
    }

    public function fragment(string $path, \Closure $inline): string
    {
        return $this->mayfly->fragment($path, $inline);
    }

    public function changed(string ...$identifiers): void
    {
        if ($identifiers === []) {
            return;
        }
        $next = 1 + (int) $this->database->query('SELECT coalesce(max(stamp), 0) FROM changes')->fetchColumn();
        $stamp = $this->database->prepare('INSERT OR REPLACE INTO changes (identifier, stamp) VALUES (?, ?)');
        $find = $this->database->prepare('SELECT page FROM reads WHERE identifier = ?');
        $forget = $this->database->prepare('DELETE FROM reads WHERE page = ?');
        foreach ($identifiers as $identifier) {
            $stamp->execute([$identifier, $next]);
            $find->execute([$identifier]);
            foreach ($find->fetchAll(PDO::FETCH_COLUMN) as $page) {
                $this->memcached->delete((string) $page);
                $forget->execute([$page]);
            }
        }
        // What Mayfly keeps, on this machine and on others.
        $this->mayfly->changed(...$identifiers);
    }

    public function finish(Request $request, Response $response): void
    {
        $isKept = $request->method === 'GET' && $response->status === 200 && !$this->isPrivate && $this->seconds > 0;
        if ($isKept && str_starts_with($request->path, '/fragments/')) {
            // Those Mayfly keeps, here too.
            $this->mayfly->keepFor((int) $this->seconds);
            $this->mayfly->reads(...$this->identifiers());

            return;
        }
        // Whoever adds arguments to addresses gets the page, and fills no memory.
        $isItsAddress = $request->uri === $request->path || $request->path === '/search';
        $isKey = preg_match('/^[!-~]{1,' . self::URI_BYTES . '}$/D', $request->uri) === 1;
        if (!$isKept || !$isItsAddress || !$isKey) {
            return;
        }
        $page = $this->memcached->key($request->uri);
        $this->database->exec('BEGIN IMMEDIATE');
        try {
            if ($this->hasChanged()) {
                $this->database->exec('ROLLBACK');

                return;
            }
            $note = $this->database->prepare('INSERT OR IGNORE INTO reads (page, identifier) VALUES (?, ?)');
            foreach ($this->identifiers as $identifier) {
                $note->execute([$page, $identifier]);
            }
            $this->memcached->add($page, $response->body, (int) $this->seconds);
            $this->database->exec('COMMIT');
        } catch (\Throwable $failure) {
            $this->database->exec('ROLLBACK');
            $this->memcached->delete($page);
            throw $failure;
        }
    }

    private function hasChanged(): bool
    {
        $marks = implode(', ', array_fill(0, count($this->identifiers), '?'));
        $newest = $this->database->prepare("SELECT coalesce(max(stamp), 0) FROM changes WHERE identifier IN ($marks)");
        $newest->execute($this->identifiers());

        return (int) $newest->fetchColumn() > $this->stamp;
    }
}
