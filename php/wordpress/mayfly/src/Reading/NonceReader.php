<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\Lifetime;

/**
 * Nonces, which forms and scripts carry, and which WordPress takes for half of their life or longer:
 * https://developer.wordpress.org/reference/functions/wp_nonce_tick/
 */
final class NonceReader implements Reader
{
    public function __construct(private readonly Lifetime $lifetime)
    {
    }

    public function watch(): void
    {
        // Is asked whenever one is made, and only then.
        add_filter('nonce_life', function ($seconds) {
            if (is_numeric($seconds) && $seconds > 0) {
                $this->lifetime->atMost(self::keptFor((float) $seconds, time()));
            }

            return $seconds;
        }, \PHP_INT_MAX);
    }

    public function finish(): void
    {
    }

    /**
     * A nonce of one tick is taken until the end of the next. Its last half tick is for visitors who have the
     * page: they fill in a form.
     */
    public static function keptFor(float $life, int $now): int
    {
        $tick = $life / 2;

        return (int) floor((ceil($now / $tick) + 1) * $tick - $now - $tick / 2);
    }
}
