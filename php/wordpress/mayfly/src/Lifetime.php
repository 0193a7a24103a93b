<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * How long the page may be kept at most, for what it carries: nonces and transients end, and what each view
 * changes is old at the next.
 */
final class Lifetime
{
    /** For what changes all the time: as long as any page is kept. */
    private const AT_LEAST_SECONDS = 1;

    private ?int $seconds = null;

    private bool $isKnown = true;

    public function atMost(int $seconds): void
    {
        $this->seconds = max(self::AT_LEAST_SECONDS, min($seconds, $this->seconds ?? $seconds));
    }

    /**
     * The page shows what nobody tells us of when it changes.
     */
    public function changesUnseen(): void
    {
        $this->seconds = self::AT_LEAST_SECONDS;
    }

    /**
     * Something on the page cannot be told: it is not vouched for.
     */
    public function isUnknown(): void
    {
        $this->isKnown = false;
    }

    /**
     * What to say to the server that keeps for `$wanted` seconds what is vouched for, or says nothing of it.
     * Null: nothing is said.
     */
    public function said(?int $wanted): ?int
    {
        if ($this->seconds === self::AT_LEAST_SECONDS) {
            return $this->seconds;
        }
        if (!$this->isKnown || $wanted === null) {
            return null;
        }

        return min($wanted, $this->seconds ?? $wanted);
    }
}
