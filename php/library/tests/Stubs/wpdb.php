<?php

/**
 * WordPress's class for the database, and whether an object cache answers in its place.
 */

declare(strict_types=1);

class wpdb
{
    public int $num_queries = 0;

    public static bool $isCached = false;
}

function wp_using_ext_object_cache(): bool
{
    return wpdb::$isCached;
}
