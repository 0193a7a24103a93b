<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * Which tables a statement names. It errs to the safe side: what might be the name of a table is one.
 */
final class Tables
{
    /** Texts in quotes, whatever they hold. */
    private const TEXT_PATTERN = '/\'(?:[^\'\\\\]++|\\\\.|\'\')*+\'|"(?:[^"\\\\]++|\\\\.|"")*+"/s';

    /** A name, perhaps of another database, and perhaps with another name for the statement. */
    private const NAME = '(?:`?[\w$-]+`?\s*\.\s*)?`?[\w$]+`?(?:\s+(?:AS\s+)?`?(?!(?:JOIN|ON|WHERE|SET|LEFT|INNER|RIGHT|CROSS)\b)\w+`?)?';

    private const NAMES_PATTERN = '/\b(?:FROM|JOIN|INTO|(?<!KEY )UPDATE(?:\s+LOW_PRIORITY)?(?:\s+IGNORE)?|INSERT(?:\s+IGNORE)?|REPLACE'
        . '|TABLE(?:\s+IF(?:\s+NOT)?\s+EXISTS)?|TRUNCATE)\s+(?!INTO\b|TABLE\b|IGNORE\b)(' . self::NAME . '(?:\s*,\s*' . self::NAME . ')*)/i';

    /** Statements that neither read nor write a table's rows. */
    private const HARMLESS_PATTERN =
        '/^\s*(?:SHOW|SET|DESC|DESCRIBE|EXPLAIN|USE|BEGIN|START|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|LOCK|UNLOCK)\b/i';

    private const READING_PATTERN = '/^[\s(]*(?:SELECT|WITH)\b/i';

    private const WRITING_PATTERN =
        '/^\s*(?:INSERT|REPLACE|UPDATE|DELETE|TRUNCATE|ALTER|DROP|CREATE|RENAME|LOAD)\b/i';

    /** @var array<int, array<string, string>> by site: WordPress's own names by those of the database */
    private array $own = [];

    /** @var array<int, string> by site: what finds names that begin as its tables do */
    private array $patterns = [];

    public static function isHarmless(string $statement): bool
    {
        return preg_match(self::HARMLESS_PATTERN, $statement) === 1;
    }

    public static function isReading(string $statement): bool
    {
        return preg_match(self::READING_PATTERN, $statement) === 1;
    }

    public static function isWriting(string $statement): bool
    {
        return preg_match(self::WRITING_PATTERN, $statement) === 1;
    }

    /**
     * The same statement, in which all texts are as long as they were, and say nothing.
     */
    public static function withoutTexts(string $statement): ?string
    {
        return preg_replace_callback(
            self::TEXT_PATTERN,
            static fn (array $text): string => "'" . str_repeat('x', \strlen($text[0]) - 2) . "'",
            $statement,
        );
    }

    /**
     * The names of all tables in a statement, in small letters; null where they cannot be told.
     *
     * @return list<string>|null
     */
    public function named(string $statement): ?array
    {
        $bare = self::withoutTexts($statement);
        if ($bare === null || preg_match_all(self::NAMES_PATTERN, $bare, $lists) === false) {
            return null;
        }
        $names = [];
        foreach ($lists[1] as $list) {
            foreach (explode(',', $list) as $one) {
                if (preg_match('/^\s*(?:`?[\w$-]+`?\s*\.\s*)?`?([\w$]+)/', $one, $name) === 1) {
                    $names[strtolower($name[1])] = true;
                }
            }
        }
        // With the site's prefix, wherever they stand.
        if (preg_match_all($this->pattern(), $bare, $prefixed) > 0) {
            $names += array_fill_keys(array_map(strtolower(...), $prefixed[0]), true);
        }

        return array_map(\strval(...), array_keys($names));
    }

    /**
     * The names with the site's prefix in a statement, in small letters.
     *
     * @return list<string>
     */
    public function prefixed(string $statement): array
    {
        preg_match_all($this->pattern(), $statement, $found);
        foreach ($found[0] as $name) {
            if ($this->own(strtolower($name)) === null) {
                // Types of posts have such names as well, in texts.
                preg_match_all($this->pattern(), (string) self::withoutTexts($statement), $found);
                break;
            }
        }

        return array_map(strtolower(...), array_keys(array_count_values($found[0])));
    }

    /**
     * What WordPress calls a table of its own (`posts`); null for those of others.
     */
    public function own(string $name): ?string
    {
        global $wpdb;
        $this->own[get_current_blog_id()] ??= array_change_key_case(array_flip($wpdb->tables('all')));

        return $this->own[get_current_blog_id()][$name] ?? null;
    }

    private function pattern(): string
    {
        global $wpdb;

        return $this->patterns[get_current_blog_id()] ??= '/\b' . preg_quote($wpdb->base_prefix, '/') . '\w+/i';
    }
}
