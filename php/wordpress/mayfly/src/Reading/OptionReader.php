<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\Options;
use Mayfly\WordPress\PageTags;
use Mayfly\WordPress\TagNames;

/**
 * Which options a page is made of.
 *
 * WordPress reads thousands of options for a page, and most of them are of all pages. So each of the others is
 * watched by its name: those that are loaded at the start by
 * https://developer.wordpress.org/reference/hooks/pre_option_option/, and those that are not, or do not exist
 * yet, by the query that looks for them.
 */
final class OptionReader implements Reader
{
    private string $lookup = '';

    public function __construct(private readonly PageTags $tags, private readonly Options $options)
    {
    }

    public function watch(): void
    {
        global $wpdb;
        $this->tags->add(TagNames::SITE);
        $read = function ($value, $option) {
            $this->tags->add("option:$option");

            return $value;
        };
        foreach ($this->options->ofSomePages(wp_load_alloptions()) as $option) {
            add_filter("pre_option_$option", $read, \PHP_INT_MAX, 2);
        }
        $this->lookup = "SELECT option_value FROM $wpdb->options WHERE option_name = '";
        add_filter('query', function ($query) {
            if (\is_string($query) && str_starts_with($query, $this->lookup)) {
                $option = stripslashes((string) strstr(substr($query, \strlen($this->lookup)), "' LIMIT 1", true));
                $tag = $option === '' ? null : $this->options->tag($option);
                if ($tag !== null) {
                    $this->tags->add($tag);
                }
            }

            return $query;
        }, \PHP_INT_MAX);
    }

    public function finish(): void
    {
    }
}
