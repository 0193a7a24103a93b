<?php

/**
 * As much of WordPress as the parts of the plug-in ask for that are tested without it.
 */

declare(strict_types=1);

namespace Mayfly\WordPress;

final class FakeDatabase
{
    public string $base_prefix = 'wp_';

    /**
     * @return array<string, string>
     */
    public function tables(): array
    {
        return ['posts' => 'wp_posts', 'postmeta' => 'wp_postmeta', 'options' => 'wp_options'];
    }
}

final class FakeOptions
{
    /** @var array<string, mixed> */
    public static array $all = [];
}

function get_current_blog_id(): int
{
    return 1;
}

function get_option(string $name, mixed $default = false): mixed
{
    return FakeOptions::$all[$name] ?? $default;
}

function update_option(string $name, mixed $value): void
{
    FakeOptions::$all[$name] = $value;
}

$GLOBALS['wpdb'] = new FakeDatabase();
