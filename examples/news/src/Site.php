<?php

declare(strict_types=1);

namespace News;

use PDO;

/**
 * The data, and who keeps the pages.
 */
final class Site
{
    public readonly News $news;
    public readonly Visitors $visitors;

    private function __construct(
        public readonly PDO $database,
        public readonly Keeping $keeping,
        public readonly string $folder,
        /** Where visitors find the site: a feed needs whole addresses. */
        public readonly string $url,
    ) {
        $this->news = new News($database);
        $this->visitors = new Visitors($database);
    }

    /**
     * As the environment says (`env` in the `php_pool`).
     */
    public static function open(): self
    {
        $folder = getenv('NEWS_DATA') ?: dirname(__DIR__) . '/data';
        $database = Schema::open($folder);
        $memcached = getenv('NEWS_MEMCACHED') ?: '';

        return new self(
            $database,
            $memcached === '' ? new KeptByMayfly() : new KeptInMemcached($database, new Memcached($memcached)),
            $folder,
            getenv('NEWS_URL') ?: 'http://127.0.0.1:8080',
        );
    }

    /**
     * Makes a page out of one state of the data, whatever is written meanwhile.
     *
     * @param \Closure(): Response $make
     */
    public function read(\Closure $make): Response
    {
        $this->database->exec('BEGIN');
        $this->keeping->beginsToRead();
        $response = $make();
        $this->database->exec('COMMIT');

        return $response;
    }

    /**
     * Writes one after the other. What has changed is taken back before anybody hears that it is written.
     *
     * @param \Closure(): array{Response, list<string>} $write
     */
    public function write(\Closure $write): Response
    {
        $this->database->exec('BEGIN IMMEDIATE');
        try {
            [$response, $changed] = $write();
            $this->keeping->changed(...$changed);
            $this->database->exec('COMMIT');
        } catch (\Throwable $failure) {
            $this->database->exec('ROLLBACK');
            throw $failure;
        }

        return $response;
    }
}
