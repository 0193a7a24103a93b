<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit\WordPress;

use Mayfly\WordPress\Counters;
use Mayfly\WordPress\Lifetime;
use Mayfly\WordPress\PageTags;
use Mayfly\WordPress\Reading\TableReader;
use Mayfly\WordPress\TagNames;
use Mayfly\WordPress\Tables;
use PHPUnit\Framework\TestCase;

final class TableReaderTest extends TestCase
{
    private mixed $database;

    protected function setUp(): void
    {
        $this->database = $GLOBALS['wpdb'];
    }

    protected function tearDown(): void
    {
        $GLOBALS['wpdb'] = $this->database;
        \wpdb::$isCached = false;
    }

    public function testAPageIsVouchedForIfAllOfItIsReadByWordPressItself(): void
    {
        self::assertSame(3600, self::said(new \wpdb()));
    }

    public function testAPageIsNotVouchedForWithAnObjectCache(): void
    {
        \wpdb::$isCached = true;
        self::assertNull(self::said(new \wpdb()));
    }

    public function testAPageIsNotVouchedForWithAnotherClassForTheDatabase(): void
    {
        self::assertNull(self::said(new class () extends \wpdb {
        }));
    }

    /**
     * How long a page may be kept whose database is this one.
     */
    private static function said(\wpdb $database): ?int
    {
        $GLOBALS['wpdb'] = $database;
        $lifetime = new Lifetime();
        (new TableReader(new PageTags(new TagNames('test')), new Tables(), new Counters(), $lifetime))->finish();

        return $lifetime->said(3600);
    }
}
