<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Changing;

use Mayfly\WordPress\ChangedTags;
use Mayfly\WordPress\Tables;

/**
 * Statements that write: tables of plug-ins, and the rows of WordPress's own, so that a change is seen that no hook
 * tells of. Before such a statement, the rows that it concerns are read; they are read again at the end.
 */
final class TableWatcher implements Watcher
{
    /** The column that tells rows apart, for tables in which hooks do not tell of all changes. */
    private const KEYS = [
        'posts' => 'ID', 'postmeta' => 'meta_id', 'comments' => 'comment_ID', 'commentmeta' => 'meta_id',
        'terms' => 'term_id', 'term_taxonomy' => 'term_taxonomy_id', 'termmeta' => 'meta_id', 'users' => 'ID',
        'usermeta' => 'umeta_id', 'options' => 'option_id',
    ];

    /** A statement about the rows of one table. */
    private const ROWS_PATTERN =
        '/^\s*(?:UPDATE(?:\s+IGNORE)?|DELETE\s+FROM|(?:INSERT|REPLACE)(?:\s+IGNORE)?\s+INTO)\s+`?(?<table>[\w$]+)`?(?=\s+(?:SET|WHERE|\(|VALUES|SELECT|ORDER|LIMIT)|\s*\(|\s*;?\s*$)/i';

    /** A statement that concerns more rows is one of the whole site. */
    private const MAX_ROWS = 500;

    /** Statements that were sent here, and that `wpdb` has not counted. */
    public static int $asked = 0;

    /** @var array<string, array<string, array<string, string|null>>> by table and key: rows as they were */
    private array $before = [];

    /** @var array<string, array{string, int}> by table: WordPress's name, and the highest key before rows were added */
    private array $highest = [];

    /**
     * @param array<string, \Closure(array<string, string|null>|null, array<string, string|null>|null): void> $rows
     *        by WordPress's name of a table: is given a row before and after
     */
    public function __construct(
        private readonly ChangedTags $changed,
        private readonly Tables $tables,
        private readonly array $rows,
    ) {
    }

    public function watch(): void
    {
        add_filter('query', function ($statement) {
            if (\is_string($statement) && Tables::isWriting($statement)) {
                $this->note($statement);
            }

            return $statement;
        }, \PHP_INT_MAX);
    }

    public function finish(): void
    {
        foreach ($this->before as $table => $rows) {
            $own = (string) $this->tables->own($table);
            $this->compare($own, $rows, $this->rows($table, self::KEYS[$own] . ' IN (' . implode(',', array_keys($rows)) . ')') ?? []);
        }
        foreach ($this->highest as $table => [$own, $highest]) {
            $this->compare($own, [], $this->rows($table, self::KEYS[$own] . " > $highest") ?? []);
        }
        $this->before = [];
        $this->highest = [];
    }

    private function note(string $statement): void
    {
        $names = $this->tables->named($statement);
        foreach ($names ?? [] as $name) {
            $own = $this->tables->own($name);
            if ($own === null || $own === 'links') {
                $this->changed->addWritten('table:' . ($own ?? $name), 'table:' . ($own ?? $name));
            }
        }
        $bare = Tables::withoutTexts($statement);
        $isOfRows = $bare !== null && preg_match(self::ROWS_PATTERN, $bare, $target) === 1;
        if ($isOfRows) {
            $own = $this->tables->own(strtolower($target['table']));
            if (isset(self::KEYS[$own ?? ''])) {
                $this->remember($target['table'], (string) $own, $statement, $bare);
            }
        } elseif ($names === null || array_filter($names, fn (string $name): bool => isset(self::KEYS[$this->tables->own($name) ?? ''])) !== []) {
            $this->concernsMany($statement);
        }
    }

    /**
     * A statement over several tables, or one that cannot be read.
     */
    private function concernsMany(string $statement): void
    {
        // WordPress deletes transients that have ended in this way.
        if (!str_contains($statement, 'transient') && preg_match('/^\s*CREATE\b/i', $statement) !== 1) {
            $this->changed->add('site');
        }
    }

    private function remember(string $table, string $own, string $statement, string $bare): void
    {
        $key = self::KEYS[$own];
        if (preg_match('/^\s*(?:INSERT|REPLACE)\b/i', $bare) === 1) {
            $highest = $this->ask("SELECT MAX($key) AS highest FROM `$table`");
            $this->highest[$table] ??= [$own, (int) ($highest[0]['highest'] ?? 0)];

            return;
        }
        $where = null;
        preg_match_all('/\bWHERE\b/i', $bare, $found, \PREG_OFFSET_CAPTURE);
        foreach ($found[0] as [, $at]) {
            $head = substr($bare, 0, $at);
            if (substr_count($head, '(') === substr_count($head, ')')) {
                $where = substr($statement, $at + \strlen('WHERE'));
                break;
            }
        }
        $rows = $this->rows($table, $where ?? '1 = 1');
        if ($rows === null) {
            $this->changed->add('site');

            return;
        }
        $this->before[$table] = ($this->before[$table] ?? []) + $rows;
    }

    /**
     * Rows by their keys; null where there are too many, or none can be had.
     *
     * @return array<string, array<string, string|null>>|null
     */
    private function rows(string $table, string $where): ?array
    {
        $key = self::KEYS[(string) $this->tables->own($table)];
        $limit = preg_match('/\bLIMIT\b/i', (string) Tables::withoutTexts($where)) === 1 ? '' : ' LIMIT ' . (self::MAX_ROWS + 1);
        $rows = $this->ask("SELECT * FROM `$table` WHERE $where$limit");

        return $rows === null || \count($rows) > self::MAX_ROWS ? null : array_column($rows, null, $key);
    }

    /**
     * Asks on WordPress's own connection, and past `wpdb`, whose state belongs to the statement that follows.
     *
     * @return list<array<string, string|null>>|null
     */
    private function ask(string $statement): ?array
    {
        global $wpdb;
        $connection = $wpdb->dbh ?? null;
        self::$asked++;
        if (!$connection instanceof \mysqli) {
            return null;
        }
        try {
            $answer = mysqli_query($connection, $statement);

            return $answer instanceof \mysqli_result ? mysqli_fetch_all($answer, \MYSQLI_ASSOC) : null;
        } catch (\mysqli_sql_exception) {
            return null;
        }
    }

    /**
     * @param array<string, array<string, string|null>> $before
     * @param array<string, array<string, string|null>> $after
     */
    private function compare(string $own, array $before, array $after): void
    {
        foreach ($before + $after as $key => $_) {
            $was = $before[$key] ?? null;
            $is = $after[$key] ?? null;
            if ($was !== $is && isset($this->rows[$own])) {
                ($this->rows[$own])($was, $is);
            }
        }
    }
}
