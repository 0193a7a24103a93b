<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use FOS\HttpCache\Exception\ExceptionCollection;
use Mayfly\FosHttpCache\Mayfly;
use Mayfly\Purge\Purge;
use Mayfly\Tests\FakePurger;
use PHPUnit\Framework\TestCase;

final class FosHttpCacheTest extends TestCase
{
    private FakePurger $purger;

    protected function setUp(): void
    {
        $this->purger = new FakePurger();
    }

    public function testAFlushPurgesAllThatWasGathered(): void
    {
        $client = new Mayfly($this->purger, 'example.org');
        $client->invalidateTags(['a', 'b'])->invalidateTags(['b'])->purge('https://example.org/c')->purge('/d');
        self::assertSame([], $this->purger->purges);
        self::assertSame(4, $client->flush());
        self::assertEquals([
            new Purge(tags: ['a', 'b'], urls: ['https://example.org/c']),
            new Purge(urls: ['/d'], hosts: ['example.org']),
        ], $this->purger->purges);
        self::assertSame(0, $client->flush());
    }

    public function testAllIsCleared(): void
    {
        self::assertSame(1, (new Mayfly($this->purger))->clear()->flush());
        self::assertEquals([new Purge(everything: true)], $this->purger->purges);
    }

    public function testAFailureIsToldAsFosHttpCacheDoes(): void
    {
        $this->purger->failure = 'nobody there';
        $this->expectException(ExceptionCollection::class);
        $this->expectExceptionMessage('nobody there');
        (new Mayfly($this->purger))->invalidateTags(['a'])->flush();
    }

    public function testAPathNeedsAHost(): void
    {
        $this->expectException(ExceptionCollection::class);
        (new Mayfly($this->purger))->purge('/d')->flush();
    }
}
