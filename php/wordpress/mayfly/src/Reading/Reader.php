<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

/**
 * Watches a kind of thing that WordPress reads while it makes a page.
 */
interface Reader
{
    /**
     * Adds its hooks.
     */
    public function watch(): void;

    /**
     * The page is complete: what is known only now.
     */
    public function finish(): void;
}
