<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Changes;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Server;
use Mayfly\Tests\FakeHead;
use Mayfly\Tests\FakePurger;
use PHPUnit\Framework\TestCase;

final class ChangesTest extends TestCase
{
    private FakeHead $head;

    private FakePurger $purger;

    protected function setUp(): void
    {
        $this->head = new FakeHead();
        $this->purger = new FakePurger();
    }

    public function testTheResponseSaysWhatToPurgeOnce(): void
    {
        $changes = new Changes(new Server(true), $this->head);
        $changes->add('news:5', 'list');
        $changes->add('news:5');
        $changes->purge();
        $changes->purge();
        self::assertSame(['X-Cache-Purge-Tags: news:5 list'], $this->head->lines);
    }

    public function testNothingHappensWithoutMayflyAndPurger(): void
    {
        $changes = new Changes(Server::none(), $this->head);
        $changes->add('news:5');
        $changes->purge();
        self::assertSame([], $this->head->lines);
        self::assertTrue($changes->isEmpty());
    }

    public function testAPurgerIsAskedInPlaceOfTheResponse(): void
    {
        $changes = new Changes(new Server(true), $this->head, $this->purger);
        $changes->add('news:5', '7');
        $changes->purge();
        self::assertSame([], $this->head->lines);
        self::assertSame(['news:5', '7'], $this->purger->purges[0]->tags);
    }

    public function testASubstituteIsAskedWhenTheHeadHasLeft(): void
    {
        $changes = new Changes(new Server(true), $this->head, null, $this->purger);
        $changes->add('a');
        $changes->purge();
        self::assertSame([], $this->purger->purges);
        $this->head->isOpen = false;
        $changes->add('b');
        $changes->purge();
        self::assertSame(['b'], $this->purger->purges[0]->tags);
    }

    public function testASubstituteIsAskedForMoreThanAHeadHolds(): void
    {
        $changes = new Changes(new Server(true), $this->head, null, $this->purger, 10);
        $changes->add('long:tag:one', 'long:tag:two');
        $changes->purge();
        self::assertSame([], $this->head->lines);
        self::assertCount(1, $this->purger->purges);
    }

    public function testWhatCouldNotBePurgedStaysPending(): void
    {
        $this->purger->failure = 'nobody there';
        $changes = new Changes(new Server(true), $this->head, $this->purger);
        $changes->add('a');
        try {
            $changes->purge();
            self::fail('it was not purged');
        } catch (PurgeFailed $failure) {
            self::assertSame('nobody there', $failure->getMessage());
        }
        self::assertSame(['a'], $changes->pending());
    }

    public function testALatePurgeWithoutAnyoneToAskFails(): void
    {
        $this->head->isOpen = false;
        $changes = new Changes(new Server(true), $this->head);
        $changes->add('a');
        $this->expectException(PurgeFailed::class);
        $changes->purge();
    }
}
