<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Server;
use Mayfly\TagOutput;
use Mayfly\Tests\FakeErrorStream;
use Mayfly\Tests\FakeHead;
use PHPUnit\Framework\TestCase;

final class TagOutputTest extends TestCase
{
    private FakeHead $head;

    private FakeErrorStream $stream;

    protected function setUp(): void
    {
        $this->head = new FakeHead();
        $this->stream = new FakeErrorStream();
    }

    private function output(?string $mark, int $headBytes = TagOutput::HEAD_BYTES): TagOutput
    {
        return new TagOutput(new Server(true, $mark), $this->head, $this->stream, $headBytes);
    }

    public function testTagsOfAWholePageGoInItsHead(): void
    {
        self::assertTrue($this->output(null)->send(['news:5', 'list'], true));
        self::assertSame(['Surrogate-Key: news:5 list'], $this->head->lines);
        self::assertSame([], $this->stream->lines);
    }

    public function testEachTagIsSentOnce(): void
    {
        $output = $this->output('mark');
        $output->send(['a', 'b'], false);
        $this->head->isOpen = false;
        self::assertTrue($output->send(['a', 'b', 'c'], true));
        self::assertTrue($output->send(['a', 'b', 'c'], true));
        self::assertSame(['Surrogate-Key: a b'], $this->head->lines);
        self::assertSame(['mark c /mark'], $this->stream->lines);
    }

    public function testAPageThatGoesOnWithoutAMarkIsNotStored(): void
    {
        self::assertTrue($this->output(null)->send(['a'], false));
        self::assertSame(['Surrogate-Key: a', 'X-Accel-Expires: 0'], $this->head->lines);
    }

    public function testTagsWithoutRoomInTheHeadGoOnTheErrorStream(): void
    {
        $tags = array_map(static fn (int $number): string => "tag:$number", range(100, 199));
        self::assertTrue($this->output('mark', 200)->send($tags, true));
        $sent = implode("\r\n", $this->head->lines) . "\r\n";
        self::assertLessThanOrEqual(200, strlen($sent));
        $named = [...explode(' ', substr($this->head->lines[0], strlen('Surrogate-Key: ')))];
        foreach ($this->stream->lines as $line) {
            self::assertLessThan(850, strlen($line));
            self::assertStringStartsWith('mark ', $line);
            self::assertStringEndsWith(' /mark', $line);
            array_push($named, ...explode(' ', substr($line, strlen('mark '), -strlen(' /mark'))));
        }
        self::assertSame($tags, $named);
    }

    public function testTagsWithoutRoomAndWithoutAMarkKeepThePageFromBeingStored(): void
    {
        self::assertTrue($this->output(null, 20)->send(['long:tag:one', 'long:tag:two'], true));
        self::assertContains('X-Accel-Expires: 0', $this->head->lines);
    }

    public function testTheSameIfTheErrorStreamEndsInAFile(): void
    {
        $this->stream->works = false;
        self::assertTrue($this->output('mark', 20)->send(['long:tag:one', 'long:tag:two'], true));
        self::assertContains('X-Accel-Expires: 0', $this->head->lines);
    }

    public function testAPageThatGoesOnWhileTheErrorStreamEndsInAFileIsNotStored(): void
    {
        $this->stream->works = false;
        self::assertTrue($this->output('mark')->send(['a'], false));
        self::assertContains('X-Accel-Expires: 0', $this->head->lines);
    }

    public function testALateTagThatReachesNobodyIsToldToTheCaller(): void
    {
        $this->head->isOpen = false;
        self::assertFalse($this->output(null)->send(['late'], true));
        self::assertTrue($this->output(null)->send([], true));
    }

    public function testLinesAreShort(): void
    {
        $tags = array_map(static fn (int $number): string => "tag:$number", range(1000, 1250));
        $this->output(null)->send($tags, true);
        self::assertCount(3, $this->head->lines);
        $said = str_replace('Surrogate-Key: ', '', implode(' ', $this->head->lines));
        self::assertSame(implode(' ', $tags), $said);
        foreach ($this->head->lines as $line) {
            self::assertLessThan(1100, strlen($line));
        }
    }
}
