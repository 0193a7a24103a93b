<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\PageTags;
use Mayfly\WordPress\Posts;

/**
 * Which terms a page shows, and which lists of them.
 */
final class TermReader implements Reader
{
    /** What of a term is asked for where its number of posts is not. */
    private const FIELDS_WITHOUT_COUNT = ['ids', 'names', 'slugs', 'count', 'tt_ids', 'id=>parent', 'id=>name', 'id=>slug'];

    public function __construct(private readonly PageTags $tags)
    {
    }

    public function watch(): void
    {
        // Every term that is read: https://developer.wordpress.org/reference/hooks/get_term/
        add_filter('get_term', function ($term) {
            if ($term instanceof \WP_Term && Posts::isSeenTaxonomy($term->taxonomy)) {
                $this->tags->add($term->taxonomy === 'nav_menu' ? "menu:$term->term_id" : "term:$term->term_id");
                if (\defined('REST_REQUEST')) {
                    $this->tags->add("text:$term->term_id");
                }
            }

            return $term;
        }, \PHP_INT_MAX);
        // Its description, which few pages show.
        foreach (['term_description', 'category_description'] as $hook) {
            add_filter($hook, function ($text, $term = null) {
                $this->tags->add('text:' . ($term instanceof \WP_Term ? $term->term_id : (int) $term));

                return $text;
            }, \PHP_INT_MAX, 2);
        }
        add_filter('get_term_metadata', function ($value, $term) {
            $this->tags->add('term:' . (int) $term);

            return $value;
        }, \PHP_INT_MAX, 2);
        add_filter('get_terms', function ($terms, $taxonomies, $arguments) {
            $this->lists((array) $taxonomies, (array) $arguments);

            return $terms;
        }, \PHP_INT_MAX, 3);
    }

    public function finish(): void
    {
    }

    /**
     * @param array<mixed> $taxonomies
     * @param array<mixed> $arguments
     */
    private function lists(array $taxonomies, array $arguments): void
    {
        if (!empty($arguments['object_ids'])) {
            // Which terms a post has is a matter of the post.
            return;
        }
        foreach ($taxonomies as $taxonomy) {
            if (!\is_string($taxonomy) || !Posts::isSeenTaxonomy($taxonomy) || $taxonomy === 'nav_menu') {
                continue;
            }
            $this->tags->add("terms:$taxonomy");
            if (empty($arguments['hide_empty'])) {
                $this->tags->add("terms:$taxonomy:empty");
            }
            if (self::showsCounts($arguments)) {
                $this->tags->add("terms:$taxonomy:count");
            }
        }
    }

    /**
     * Whether the numbers of posts may be shown. Whoever says nothing of it may show them.
     *
     * @param array<mixed> $arguments
     */
    private static function showsCounts(array $arguments): bool
    {
        if (\in_array($arguments['fields'] ?? 'all', self::FIELDS_WITHOUT_COUNT, true)) {
            return false;
        }
        if (!empty($arguments['slug']) || !empty($arguments['include']) || !empty($arguments['term_taxonomy_id'])) {
            return false;
        }

        return ($arguments['orderby'] ?? '') === 'count' || !isset($arguments['show_count']) || $arguments['show_count'];
    }
}
