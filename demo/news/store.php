<?php
// News, comments and the number of PHP executions, in a folder of their own.
// The database makes itself, with something to read in it, on first use.

declare(strict_types=1);

final class Store
{
    private PDO $database;

    public function __construct(private string $folder)
    {
        if (!is_dir($folder)) {
            @mkdir($folder, 0777, true);
        }
        $this->database = new PDO('sqlite:' . $folder . '/news.sqlite', null, null, [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
            PDO::ATTR_TIMEOUT => 5,
        ]);
        $this->createOnce();
    }

    /** Counts this execution of PHP: one byte for each, appended to a file. */
    public function countExecution(): int
    {
        $file = fopen($this->folder . '/executions', 'a');
        fwrite($file, '.');
        return fstat($file)['size'];
    }

    /** All news with their number of comments, newest first. */
    public function items(): array
    {
        return $this->database->query(
            'SELECT news.*, count(comments.id) AS comments
             FROM news LEFT JOIN comments ON comments.news_id = news.id
             GROUP BY news.id ORDER BY news.published DESC LIMIT 50'
        )->fetchAll();
    }

    public function item(int $id): ?array
    {
        $statement = $this->database->prepare('SELECT * FROM news WHERE id = ?');
        $statement->execute([$id]);
        return $statement->fetch() ?: null;
    }

    /** The comments on one item, oldest first; the last hundred of them. */
    public function comments(int $newsId): array
    {
        $statement = $this->database->prepare(
            'SELECT * FROM comments WHERE news_id = ? ORDER BY id DESC LIMIT 100'
        );
        $statement->execute([$newsId]);
        return array_reverse($statement->fetchAll());
    }

    public function addComment(int $newsId, string $author, string $text): void
    {
        $this->database
            ->prepare('INSERT INTO comments (news_id, author, text, written) VALUES (?, ?, ?, ?)')
            ->execute([$newsId, $author, $text, time()]);
    }

    /** Many first requests may come at once: a lock on a file lets one of them do it. */
    private function createOnce(): void
    {
        if ($this->isCreated()) {
            return;
        }
        $lock = fopen($this->folder . '/lock', 'c');
        flock($lock, LOCK_EX);
        if (!$this->isCreated()) {
            $this->database->exec('PRAGMA journal_mode = WAL');
            $this->database->beginTransaction();
            $this->database->exec(
                'CREATE TABLE news (
                     id INTEGER PRIMARY KEY, title TEXT NOT NULL, lead TEXT NOT NULL,
                     body TEXT NOT NULL, published INTEGER NOT NULL);
                 CREATE TABLE comments (
                     id INTEGER PRIMARY KEY, news_id INTEGER NOT NULL REFERENCES news (id),
                     author TEXT NOT NULL, text TEXT NOT NULL, written INTEGER NOT NULL);
                 CREATE INDEX comments_of_news ON comments (news_id, id);'
            );
            $this->fill();
            $this->database->exec('PRAGMA user_version = 1');
            $this->database->commit();
        }
        fclose($lock);
    }

    private function isCreated(): bool
    {
        return $this->database->query('PRAGMA user_version')->fetchColumn() > 0;
    }

    private function fill(): void
    {
        $news = $this->database->prepare(
            'INSERT INTO news (id, title, lead, body, published) VALUES (?, ?, ?, ?, ?)'
        );
        $id = 0;
        foreach (require __DIR__ . '/seed.php' as $seed) {
            $id++;
            $published = time() - $seed['hours_ago'] * 3600;
            $news->execute([$id, $seed['title'], $seed['lead'], $seed['body'], $published]);
            foreach ($seed['comments'] as [$author, $text]) {
                $this->addComment($id, $author, $text);
            }
        }
    }
}
