<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Changing;

/**
 * Watches a kind of thing that somebody changes.
 */
interface Watcher
{
    /**
     * Adds its hooks.
     */
    public function watch(): void;

    /**
     * The request is at its end: what is known only now.
     */
    public function finish(): void;
}
