<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Changes;
use Mayfly\Mayfly;
use Mayfly\Page;
use Mayfly\Server;
use Mayfly\TagOutput;
use Mayfly\Tests\FakeErrorStream;
use Mayfly\Tests\FakeHead;
use PHPUnit\Framework\TestCase;

final class MayflyTest extends TestCase
{
    private FakeHead $head;

    private FakeErrorStream $stream;

    protected function setUp(): void
    {
        $this->head = new FakeHead();
        $this->stream = new FakeErrorStream();
    }

    private function behind(Server $server): Mayfly
    {
        return new Mayfly(
            $server,
            new Page(),
            new Changes($server, $this->head),
            new TagOutput($server, $this->head, $this->stream),
            $this->head,
        );
    }

    public function testAPageIsNamedAndKept(): void
    {
        $this->behind(new Server(true))->reads('news:5', 'list')->keepFor(3600)->keepFor(7200)->end();
        self::assertSame(['X-Accel-Expires: 3600', 'Surrogate-Key: news:5 list'], $this->head->lines);
    }

    public function testAChangeIsPurgedByTheResponse(): void
    {
        $this->behind(new Server(true))->changed('news:5')->end();
        self::assertSame(['X-Cache-Purge-Tags: news:5'], $this->head->lines);
    }

    public function testWithoutMayflyItIsSilent(): void
    {
        $mayfly = $this->behind(Server::none())->reads('news:5')->keepFor(60)->changed('news:5');
        self::assertSame('inline', $mayfly->fragment('/cart', static fn (): string => 'inline'));
        $mayfly->onOutput('page');
        $mayfly->end();
        self::assertSame([], $this->head->lines);
        self::assertSame([], $this->stream->lines);
    }

    public function testWhatIsPrivateIsPrivateEverywhere(): void
    {
        $this->behind(Server::none())->private()->end();
        self::assertSame(['Cache-Control: private, no-cache'], $this->head->lines);
        $this->setUp();
        $this->behind(new Server(true))->keepFor(60)->private()->end();
        self::assertSame(['Cache-Control: private, no-cache', 'X-Accel-Expires: 0'], $this->head->lines);
    }

    public function testOutputThatLeavesEarlyHasItsTagsOnTheErrorStream(): void
    {
        $mayfly = $this->behind(new Server(true, 'mark'))->reads('a')->keepFor(60);
        self::assertSame('page', $mayfly->onOutput('page'));
        $this->head->isOpen = false;
        $mayfly->reads('b')->end();
        self::assertSame(['X-Accel-Expires: 60', 'Surrogate-Key: a'], $this->head->lines);
        self::assertSame(['mark b /mark'], $this->stream->lines);
    }

    public function testOutputThatLeavesEarlyWithoutAMarkIsNotStored(): void
    {
        $mayfly = $this->behind(new Server(true))->reads('a')->keepFor(60);
        $mayfly->onOutput('page');
        self::assertSame(['Surrogate-Key: a', 'X-Accel-Expires: 0'], $this->head->lines);
    }

    public function testAFragmentIsIncludedWhereTheServerParsesEsi(): void
    {
        $mayfly = $this->behind(new Server(true, null, true));
        $inline = static fn (): string => throw new \LogicException('the server includes it');
        self::assertSame(
            '<esi:include src="/cart?a=1&amp;b=&quot;2&quot;" onerror="continue"/>',
            $mayfly->fragment('/cart?a=1&b="2"', $inline),
        );
        self::assertSame(
            '<esi:include src="/a" alt="/b" onerror="continue"/>',
            $mayfly->fragment('/a', $inline, '/b'),
        );
        $mayfly->end();
        self::assertSame(['Surrogate-Control: content="ESI/1.0"'], $this->head->lines);
        $this->head->isOpen = false;
        self::assertSame('inline', $mayfly->fragment('/late', static fn (): string => 'inline'));
    }

    public function testALateTagIsAWarningAndNoException(): void
    {
        $this->head->isOpen = false;
        $mayfly = $this->behind(new Server(true))->reads('a');
        $warnings = [];
        set_error_handler(static function (int $level, string $text) use (&$warnings): bool {
            $warnings[] = $text;

            return true;
        });
        try {
            $mayfly->end();
        } finally {
            restore_error_handler();
        }
        self::assertSame(['Mayfly: a page has left without all of its tags.'], $warnings);
    }

    public function testNoPageIsKeptForLessThanNothing(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->behind(new Server(true))->keepFor(-1);
    }
}
