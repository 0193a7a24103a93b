<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit\WordPress;

use Mayfly\WordPress\Counters;
use Mayfly\WordPress\FakeOptions;
use Mayfly\WordPress\Lifetime;
use Mayfly\WordPress\Reading\NonceReader;
use PHPUnit\Framework\TestCase;

final class LifetimeTest extends TestCase
{
    private const HOUR = 3600;

    protected function setUp(): void
    {
        FakeOptions::$all = [];
    }

    public function testAPageIsKeptAsLongAsTheServerWants(): void
    {
        self::assertSame(8 * self::HOUR, (new Lifetime())->said(8 * self::HOUR));
        self::assertNull((new Lifetime())->said(null));
    }

    public function testAPageIsKeptNoLongerThanWhatItCarries(): void
    {
        $lifetime = new Lifetime();
        $lifetime->atMost(600);
        $lifetime->atMost(900);
        self::assertSame(600, $lifetime->said(8 * self::HOUR));
        self::assertSame(60, $lifetime->said(60));
        $lifetime->atMost(-5);
        self::assertSame(1, $lifetime->said(60), 'It has ended already.');
    }

    public function testWhatChangesUnseenIsNotKeptWhateverTheServerWants(): void
    {
        $lifetime = new Lifetime();
        $lifetime->changesUnseen();
        self::assertSame(1, $lifetime->said(8 * self::HOUR));
        self::assertSame(1, $lifetime->said(null));
    }

    public function testWhatIsNotKnownIsNotVouchedFor(): void
    {
        $lifetime = new Lifetime();
        $lifetime->isUnknown();
        self::assertNull($lifetime->said(8 * self::HOUR));
    }

    /**
     * WordPress takes a nonce in the tick in which it was made and in the next.
     */
    public function testANonceIsTakenForAQuarterOfItsLifeAfterThePageHasEnded(): void
    {
        foreach ([60, self::HOUR, 24 * self::HOUR] as $life) {
            for ($now = 1_700_000_000; $now < 1_700_000_000 + $life; $now += max(1, intdiv($life, 97))) {
                $kept = NonceReader::keptFor($life, $now);
                $isTaken = static fn (int $at): bool => ceil($at / ($life / 2)) - ceil($now / ($life / 2)) <= 1;
                self::assertTrue($isTaken($now + $kept + intdiv($life, 4)), "life $life, made at $now");
                self::assertGreaterThanOrEqual(intdiv($life, 4) - 1, $kept);
            }
        }
    }

    public function testWhatVisitorsWriteTwiceByLookingIsACounter(): void
    {
        $counts = static function (bool $isVisitor): array {
            $counters = new Counters();
            $counters->read('table:wp_visits');
            $counters->wrote('table:wp_visits', 'tag');
            $isShown = $counters->areShown();

            return [$isShown, $counters->settle($isVisitor)];
        };
        self::assertSame([true, ['tag']], $counts(true), 'An address of a mail may be what was clicked.');
        self::assertSame([true, ['tag']], $counts(true));
        self::assertSame([true, []], $counts(true), 'It is a counter: nothing is purged.');
        self::assertSame([true, ['tag']], $counts(false), 'An editor changes it.');
        $other = new Counters();
        $other->read('table:wp_visits');
        self::assertTrue($other->areShown(), 'Another page shows it.');
        $none = new Counters();
        $none->read('table:wp_polls');
        self::assertFalse($none->areShown());
    }
}
