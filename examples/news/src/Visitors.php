<?php

declare(strict_types=1);

namespace News;

use PDO;

/**
 * Who has told a name, and which articles they have put aside.
 */
final class Visitors
{
    public const COOKIE = 'visitor';

    private const SECONDS = 30 * 86400;

    public function __construct(private readonly PDO $database)
    {
    }

    /**
     * @return string the field that gives the visitor a cookie
     */
    public function add(string $name): string
    {
        $secret = bin2hex(random_bytes(16));
        $this->database->prepare('INSERT INTO visitors (secret, name) VALUES (?, ?)')->execute([self::hash($secret), $name]);

        return sprintf('%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax', self::COOKIE, $secret, self::SECONDS);
    }

    /**
     * @return array{id: int, name: string, saved: int}|null
     */
    public function find(string $secret): ?array
    {
        $statement = $this->database->prepare('SELECT id, name, (SELECT count(*) FROM saved WHERE visitor = visitors.id) AS saved
            FROM visitors WHERE secret = ?');
        $statement->execute([self::hash($secret)]);

        return $statement->fetch(PDO::FETCH_ASSOC) ?: null;
    }

    public function save(int $visitor, int $article): void
    {
        $this->database->prepare('INSERT OR IGNORE INTO saved (visitor, article) VALUES (?, ?)')->execute([$visitor, $article]);
    }

    private static function hash(string $secret): string
    {
        return hash('sha256', $secret);
    }
}
