<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit\WordPress;

use Mayfly\WordPress\Tables;
use PHPUnit\Framework\TestCase;

final class TablesTest extends TestCase
{
    /**
     * @return array<string, array{string, list<string>}>
     */
    public static function statements(): array
    {
        return [
            'one' => ['SELECT * FROM wp_poll WHERE id = 1', ['wp_poll']],
            'quoted, of a database' => ['select a from `site`.`wp_poll`', ['wp_poll']],
            'joined' => ['SELECT 1 FROM poll p LEFT JOIN venue AS v ON v.id = p.id', ['poll', 'venue']],
            'a list' => ['SELECT 1 FROM poll p, venue v WHERE 1', ['poll', 'venue']],
            'a part' => ['SELECT (SELECT COUNT(*) FROM votes) FROM (SELECT * FROM poll) x', ['votes', 'poll']],
            'text is no name' => ["SELECT 1 FROM poll WHERE a = 'x FROM wp_secret' OR b = \"\\\" JOIN wp_b\"", ['poll']],
            'over lines' => ["SELECT *\nFROM\n\twp_poll\nWHERE 1", ['wp_poll']],
            'by its prefix' => ['CALL proc(wp_poll)', ['wp_poll']],
            'an insertion' => ["INSERT INTO `wp_poll` (`a`) VALUES ('1') ON DUPLICATE KEY UPDATE a = 1", ['wp_poll']],
            'an insertion without INTO' => ['INSERT IGNORE poll VALUES (1)', ['poll']],
            'a replacement' => ['REPLACE INTO poll VALUES (1)', ['poll']],
            'an update' => ['UPDATE LOW_PRIORITY poll SET a = 1', ['poll']],
            'a deletion of two' => ['DELETE a, b FROM wp_poll a, wp_vote b WHERE a.id = b.id', ['wp_poll', 'wp_vote']],
            'emptied' => ['TRUNCATE TABLE poll', ['poll']],
            'made' => ['CREATE TABLE IF NOT EXISTS Poll (id int)', ['poll']],
        ];
    }

    /**
     * @dataProvider statements
     *
     * @param list<string> $expected
     */
    public function testAStatementNamesItsTables(string $statement, array $expected): void
    {
        $named = (new Tables())->named($statement) ?? [];
        self::assertSame([], array_diff($expected, $named));
        self::assertNotContains('wp_secret', $named);
        self::assertNotContains('wp_b', $named);
    }

    public function testWordPresssOwnTablesHaveItsNames(): void
    {
        $tables = new Tables();
        self::assertSame('posts', $tables->own('wp_posts'));
        self::assertNull($tables->own('wp_poll'));
    }

    public function testReadingIsToldFromWriting(): void
    {
        foreach (['SELECT 1', ' (SELECT 1) UNION (SELECT 2)', 'WITH a AS (SELECT 1) SELECT * FROM a'] as $reading) {
            self::assertTrue(Tables::isReading($reading), $reading);
            self::assertFalse(Tables::isWriting($reading), $reading);
        }
        foreach (['UPDATE a SET b = 1', "\n\tinsert into a values (1)", 'DROP TABLE a'] as $writing) {
            self::assertTrue(Tables::isWriting($writing), $writing);
        }
        self::assertTrue(Tables::isHarmless('SHOW TABLES'));
        self::assertFalse(Tables::isReading('CALL a()') || Tables::isWriting('CALL a()') || Tables::isHarmless('CALL a()'));
    }

    public function testTextsKeepTheirLength(): void
    {
        $statement = "UPDATE a SET b = 'it''s \\' WHERE' WHERE c = 1";
        $bare = (string) Tables::withoutTexts($statement);
        self::assertSame(\strlen($statement), \strlen($bare));
        self::assertSame(strrpos($statement, 'WHERE'), strpos($bare, 'WHERE'));
    }
}
