<?php

declare(strict_types=1);

namespace News;

use PDO;

/**
 * What can be written. Each write says which data has changed, as far as a reader could see it: nothing for a
 * draft, and nothing for a text that is what it was. dependencies.md has all of it in two tables.
 */
final class Edits
{
    public function __construct(private readonly PDO $database, private readonly News $news)
    {
    }

    /**
     * An article that nobody sees yet.
     *
     * @return list<string>
     */
    public function addArticle(string $section, int $author, string $title, string $lead, string $body): array
    {
        $this->run(
            'INSERT INTO articles (section, author, title, lead, body) VALUES (?, ?, ?, ?, ?)',
            $section,
            $author,
            $title,
            $lead,
            $body,
        );

        return [];
    }

    /** @return list<string> */
    public function changeHeadline(int $id, string $title, string $lead): array
    {
        $article = $this->news->draft($id);
        $this->run('UPDATE articles SET title = ?, lead = ? WHERE id = ?', $title, $lead, $id);
        $isOther = [$article['title'] ?? '', $article['lead'] ?? ''] !== [$title, $lead];

        return $isOther && isset($article['published']) ? ["headline:$id"] : [];
    }

    /** @return list<string> */
    public function changeText(int $id, string $body): array
    {
        $article = $this->news->draft($id);
        $this->run('UPDATE articles SET body = ? WHERE id = ?', $body, $id);

        return isset($article['published']) && $article['body'] !== $body ? ["news:$id"] : [];
    }

    /** @return list<string> */
    public function changeAuthor(int $id, int $author): array
    {
        $article = $this->news->draft($id);
        $this->run('UPDATE articles SET author = ? WHERE id = ?', $author, $id);

        return isset($article['published']) && $article['author'] !== $author
            ? ["headline:$id", "author-list:{$article['author']}", "author-list:$author"]
            : [];
    }

    /** @return list<string> */
    public function move(int $id, string $section): array
    {
        $article = $this->news->draft($id);
        $this->run('UPDATE articles SET section = ? WHERE id = ?', $section, $id);

        return isset($article['published']) && $article['section'] !== $section
            ? ["news:$id", "section-list:{$article['section']}", "section-list:$section"]
            : [];
    }

    /** @return list<string> */
    public function publish(int $id, int $time): array
    {
        return $this->withNewest(function () use ($id, $time): array {
            $this->run('UPDATE articles SET published = ?, due = NULL WHERE id = ? AND published IS NULL', $time, $id);

            return $this->lists($id);
        });
    }

    /**
     * A program publishes it when its time has come (bin/publish-due.php).
     *
     * @return list<string>
     */
    public function schedule(int $id, int $due): array
    {
        $this->run('UPDATE articles SET due = ? WHERE id = ? AND published IS NULL', $due, $id);

        return [];
    }

    /** @return list<string> */
    public function publishDue(int $now): array
    {
        $changed = [];
        foreach ($this->news->drafts() as $article) {
            if ($article['published'] === null && $article['due'] !== null && $article['due'] <= $now) {
                $changed = [...$changed, ...$this->publish($article['id'], $article['due'])];
            }
        }

        return array_values(array_unique($changed));
    }

    /** @return list<string> */
    public function withdraw(int $id): array
    {
        return $this->withNewest(function () use ($id): array {
            $changed = $this->lists($id);
            $this->run('UPDATE articles SET published = NULL WHERE id = ?', $id);

            return $changed;
        });
    }

    /** @return list<string> */
    public function delete(int $id): array
    {
        $changed = $this->withdraw($id);
        $this->run('DELETE FROM comments WHERE article = ?', $id);
        $this->run('DELETE FROM articles WHERE id = ?', $id);

        return $changed;
    }

    /** @return list<string> */
    public function comment(int $article, string $name, string $text): array
    {
        $this->run('INSERT INTO comments (article, name, text) VALUES (?, ?, ?)', $article, $name, $text);

        return ["comments:$article"];
    }

    /** @return list<string> */
    public function removeComment(int $id, int $article): array
    {
        $this->run('DELETE FROM comments WHERE id = ? AND article = ?', $id, $article);

        return ["comments:$article"];
    }

    /** @return list<string> */
    public function renameAuthor(int $id, string $name): array
    {
        $this->run('UPDATE authors SET name = ? WHERE id = ?', $name, $id);

        return ["author:$id"];
    }

    /** @return list<string> */
    public function addSection(string $slug, string $name, string $about): array
    {
        $this->run('INSERT INTO sections (slug, name, about) VALUES (?, ?, ?)', $slug, $name, $about);

        return ['sections', 'addresses'];
    }

    /** @return list<string> */
    public function renameSection(string $slug, string $name): array
    {
        $this->run('UPDATE sections SET name = ? WHERE slug = ?', $name, $slug);

        return ['sections'];
    }

    /** @return list<string> */
    public function describeSection(string $slug, string $about): array
    {
        $this->run('UPDATE sections SET about = ? WHERE slug = ?', $about, $slug);

        return ["section:$slug"];
    }

    /**
     * The lists that a published article is in, and its page.
     *
     * @return list<string>
     */
    private function lists(int $id): array
    {
        $article = $this->news->article($id);

        return $article === null
            ? []
            : ["news:$id", "section-list:{$article['section']}", "author-list:{$article['author']}", 'addresses'];
    }

    /**
     * Compares the newest articles before and after: an old one that is published is none of them.
     *
     * @param \Closure(): list<string> $write
     *
     * @return list<string>
     */
    private function withNewest(\Closure $write): array
    {
        $before = array_column($this->news->newest(), 'id');
        $changed = $write();
        $after = array_column($this->news->newest(), 'id');

        return $before === $after ? $changed : [...$changed, 'newest'];
    }

    private function run(string $text, int|string|null ...$values): void
    {
        $this->database->prepare($text)->execute($values);
    }
}
