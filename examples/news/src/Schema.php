<?php

declare(strict_types=1);

namespace News;

use PDO;

/**
 * The database, which makes itself with something to read in it.
 */
final class Schema
{
    private const TABLES = '
        CREATE TABLE sections (slug TEXT PRIMARY KEY, name TEXT NOT NULL, about TEXT NOT NULL);
        CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE articles (
            id INTEGER PRIMARY KEY AUTOINCREMENT, section TEXT NOT NULL REFERENCES sections (slug),
            author INTEGER NOT NULL REFERENCES authors (id), title TEXT NOT NULL, lead TEXT NOT NULL,
            body TEXT NOT NULL, published INTEGER, due INTEGER);
        CREATE TABLE comments (
            id INTEGER PRIMARY KEY, article INTEGER NOT NULL REFERENCES articles (id), name TEXT NOT NULL, text TEXT NOT NULL);
        CREATE INDEX comments_of_articles ON comments (article, id);
        CREATE TABLE visitors (id INTEGER PRIMARY KEY, secret TEXT NOT NULL UNIQUE, name TEXT NOT NULL);
        CREATE TABLE saved (visitor INTEGER NOT NULL, article INTEGER NOT NULL, PRIMARY KEY (visitor, article));

        -- For pages in memcached alone: which page reads what, and when that has changed last.
        CREATE TABLE reads (page TEXT NOT NULL, identifier TEXT NOT NULL, PRIMARY KEY (page, identifier));
        CREATE INDEX reads_of_identifiers ON reads (identifier);
        CREATE TABLE changes (identifier TEXT PRIMARY KEY, stamp INTEGER NOT NULL);
        CREATE INDEX stamps ON changes (stamp);
    ';

    public static function open(string $folder): PDO
    {
        if (!is_dir($folder)) {
            @mkdir($folder, 0777, true);
        }
        if (!is_writable($folder)) {
            throw new \RuntimeException("PHP may not write to $folder: say chown " . self::account() . ' for it');
        }
        $database = new PDO("sqlite:$folder/news.sqlite", null, null, [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_TIMEOUT => 5,
        ]);
        if (self::isNew($database)) {
            self::make($database, $folder);
        }

        return $database;
    }

    /**
     * Many first requests may come at once; one of them does it.
     */
    private static function make(PDO $database, string $folder): void
    {
        $lock = fopen("$folder/lock", 'c');
        flock($lock, LOCK_EX);
        if (self::isNew($database)) {
            $database->exec('PRAGMA journal_mode = WAL');
            $database->exec('BEGIN IMMEDIATE');
            $database->exec(self::TABLES);
            self::fill($database);
            $database->exec('PRAGMA user_version = 1');
            $database->exec('COMMIT');
        }
        fclose($lock);
    }

    private static function isNew(PDO $database): bool
    {
        return (int) $database->query('PRAGMA user_version')->fetchColumn() === 0;
    }

    private static function fill(PDO $database): void
    {
        $seed = require __DIR__ . '/../seed.php';
        $edits = new Edits($database, new News($database));
        foreach ($seed['sections'] as $slug => [$name, $about]) {
            $edits->addSection($slug, $name, $about);
        }
        foreach ($seed['authors'] as $name) {
            $database->prepare('INSERT INTO authors (name) VALUES (?)')->execute([$name]);
        }
        foreach ($seed['articles'] as [$section, $author, $hoursAgo, $title, $lead, $body]) {
            $edits->addArticle($section, $author, $title, $lead, $body);
            $id = (int) $database->lastInsertId();
            if ($hoursAgo !== null) {
                $edits->publish($id, time() - 3600 * $hoursAgo);
            }
        }
        foreach ($seed['comments'] as [$article, $name, $text]) {
            $edits->comment($article, $name, $text);
        }
    }

    private static function account(): string
    {
        return function_exists('posix_geteuid') ? (posix_getpwuid(posix_geteuid())['name'] ?? '') : '';
    }
}
