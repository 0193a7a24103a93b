<?php

declare(strict_types=1);

namespace News;

use PDO;

/**
 * What there is to read. An article that is not published is not there.
 */
final class News
{
    /** So many are on the front page and in the feed. */
    public const NEWEST = 10;

    /** A row of a list: the headline of an article, with the name of its author. */
    private const HEADLINES = 'SELECT articles.id, title, lead, published, author, authors.name AS author_name
        FROM articles JOIN authors ON authors.id = author WHERE published IS NOT NULL';

    private const NEWEST_FIRST = 'ORDER BY published DESC, articles.id DESC';

    public function __construct(private readonly PDO $database)
    {
    }

    /** @return list<array<string, mixed>> */
    public function sections(): array
    {
        return $this->rows('SELECT slug, name, about FROM sections ORDER BY slug');
    }

    /** @return array<string, mixed>|null */
    public function section(string $slug): ?array
    {
        return $this->rows('SELECT slug, name, about FROM sections WHERE slug = ?', $slug)[0] ?? null;
    }

    /** @return list<array<string, mixed>> */
    public function authors(): array
    {
        return $this->rows('SELECT id, name FROM authors ORDER BY id');
    }

    /** @return array<string, mixed>|null */
    public function author(int $id): ?array
    {
        return $this->rows('SELECT id, name FROM authors WHERE id = ?', $id)[0] ?? null;
    }

    /** @return array<string, mixed>|null */
    public function article(int $id): ?array
    {
        $article = $this->draft($id);

        return $article === null || $article['published'] === null ? null : $article;
    }

    /**
     * An article, published or not.
     *
     * @return array<string, mixed>|null
     */
    public function draft(int $id): ?array
    {
        return $this->rows('SELECT * FROM articles WHERE id = ?', $id)[0] ?? null;
    }

    /** @return list<array<string, mixed>> */
    public function drafts(): array
    {
        return $this->rows('SELECT * FROM articles ORDER BY id DESC');
    }

    /** @return list<array<string, mixed>> */
    public function newest(): array
    {
        return $this->rows(self::HEADLINES . ' ' . self::NEWEST_FIRST . ' LIMIT ' . self::NEWEST);
    }

    /** @return list<array<string, mixed>> */
    public function inSection(string $slug): array
    {
        return $this->rows(self::HEADLINES . ' AND section = ? ' . self::NEWEST_FIRST, $slug);
    }

    /** @return list<array<string, mixed>> */
    public function byAuthor(int $author): array
    {
        return $this->rows(self::HEADLINES . ' AND author = ? ' . self::NEWEST_FIRST, $author);
    }

    /** @return list<array<string, mixed>> */
    public function search(string $word): array
    {
        $pattern = '%' . addcslashes($word, '%_\\') . '%';

        return $this->rows(
            self::HEADLINES . " AND (title LIKE ?1 ESCAPE '\\' OR body LIKE ?1 ESCAPE '\\') " . self::NEWEST_FIRST . ' LIMIT 50',
            $pattern,
        );
    }

    /** @return list<array<string, mixed>> */
    public function comments(int $article): array
    {
        return $this->rows('SELECT id, name, text FROM comments WHERE article = ? ORDER BY id', $article);
    }

    /** @return list<array<string, mixed>> those with the most comments */
    public function discussed(): array
    {
        return $this->rows('SELECT articles.id, title, count(*) AS comments FROM comments JOIN articles ON articles.id = article
            WHERE published IS NOT NULL GROUP BY articles.id ORDER BY comments DESC, articles.id DESC LIMIT 3');
    }

    /** @return list<array<string, mixed>> */
    private function rows(string $text, int|string ...$values): array
    {
        $statement = $this->database->prepare($text);
        $statement->execute($values);

        return $statement->fetchAll(PDO::FETCH_ASSOC);
    }
}
