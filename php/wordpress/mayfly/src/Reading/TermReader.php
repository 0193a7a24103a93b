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

    /** The objects of these have other numbers than posts, or are not seen. */
    private const OF_NO_POSTS = ['nav_menu', 'link_category', 'wp_theme', 'wp_template_part_area'];

    /** Arguments that say which terms are meant. */
    private const OF_KNOWN_TERMS = ['slug' => 1, 'name' => 1, 'include' => 1, 'term_taxonomy_id' => 1];

    /** @var array<int, \WP_Term_Query> by number of the object: queries for known terms */
    private array $lookups = [];

    private bool $isInClasses = false;

    /** Whether the terms of all posts of a list are read ahead; those that the page takes are read again. */
    private bool $isReadAhead = false;

    /** The frames between a query for terms, or one of them, and the function that reads them ahead. */
    private const FRAMES = 10;
    private const TERM_FRAMES = 7;

    public function __construct(private readonly PageTags $tags)
    {
    }

    public function watch(): void
    {
        // Every term that is read: https://developer.wordpress.org/reference/hooks/get_term/
        add_filter('get_term', function ($term) {
            if ($term instanceof \WP_Term && !$this->isReadAhead && Posts::isSeenTaxonomy($term->taxonomy)) {
                $name = match (true) {
                    $term->taxonomy === 'nav_menu' => "menu:$term->term_id",
                    $this->isInClasses => "slug:$term->term_id",
                    default => "term:$term->term_id",
                };
                if (!$this->tags->has($name) && !self::isAskedBy('wp_queue_posts_for_term_meta_lazyload', self::TERM_FRAMES)) {
                    $this->tags->add($name);
                }
            }

            return $term;
        }, \PHP_INT_MAX);
        // What the interface says of a term: all of it, with the number of posts.
        add_action('rest_api_init', function (): void {
            foreach (array_filter(get_taxonomies(), Posts::isSeenTaxonomy(...)) as $taxonomy) {
                add_filter("rest_prepare_$taxonomy", function ($response, $term) {
                    if ($term instanceof \WP_Term) {
                        $this->tags->add("text:$term->term_id");
                        $this->tags->add("term:$term->term_id:count");
                    }

                    return $response;
                }, \PHP_INT_MAX, 2);
            }
        });
        // Its description, which few pages show.
        foreach (['term_description', 'category_description'] as $hook) {
            add_filter($hook, function ($text, $term = null) {
                $this->tags->add('text:' . ($term instanceof \WP_Term ? $term->term_id : (int) $term));

                return $text;
            }, \PHP_INT_MAX, 2);
        }
        add_filter('get_term_metadata', function ($value, $term) {
            $this->tags->add('term:' . (int) $term . ':meta');

            return $value;
        }, \PHP_INT_MAX, 2);
        // The name of a menu, or a menu that a theme finds by it.
        add_filter('wp_get_nav_menu_name', function ($name, $location) {
            $menu = get_nav_menu_locations()[$location] ?? 0;
            $this->tags->add('text:' . (int) $menu);

            return $name;
        }, \PHP_INT_MAX, 2);
        add_filter('wp_get_nav_menu_object', function ($menu, $asked) {
            if (!$menu instanceof \WP_Term) {
                $this->tags->add('terms:nav_menu:empty');
            } elseif (\is_string($asked) && !is_numeric($asked)) {
                $this->tags->add("text:$menu->term_id");
            }

            return $menu;
        }, \PHP_INT_MAX, 2);
        add_action('pre_get_terms', function ($query): void {
            if (!$query instanceof \WP_Term_Query) {
                return;
            }
            $this->isReadAhead = ($query->query_vars['fields'] ?? '') === 'all_with_object_id'
                && self::isAskedBy('update_object_term_cache', self::FRAMES);
            if (array_filter(array_intersect_key($query->query_vars, self::OF_KNOWN_TERMS)) !== []) {
                $this->lookups[spl_object_id($query)] = $query;
            } else {
                $this->lists($query);
            }
        }, \PHP_INT_MAX);
        add_filter('get_object_terms', function ($terms) {
            $this->isReadAhead = false;

            return $terms;
        }, \PHP_INT_MIN);
        // The classes of a post have the addresses of its terms: https://developer.wordpress.org/reference/functions/get_post_class/
        add_filter('post_class_taxonomies', function ($taxonomies) {
            $this->isInClasses = true;

            return $taxonomies;
        }, \PHP_INT_MAX);
        add_filter('post_class', function ($classes) {
            $this->isInClasses = false;

            return $classes;
        }, \PHP_INT_MIN);
        add_filter('wp_sitemaps_taxonomies_query_args', static fn ($arguments) => ['show_count' => false] + (array) $arguments);
    }

    public function finish(): void
    {
        // What is found is named by itself; what is not may be there later.
        array_map($this->lists(...), array_filter($this->lookups, static fn (\WP_Term_Query $one): bool => empty($one->terms)));
        $this->lookups = [];
    }

    private static function isAskedBy(string $function, int $frames): bool
    {
        return \in_array($function, array_column(debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, $frames), 'function'), true);
    }

    private function lists(\WP_Term_Query $query): void
    {
        $arguments = $query->query_vars;
        $taxonomies = array_filter((array) ($arguments['taxonomy'] ?? []));
        $taxonomies = $taxonomies === [] ? array_values(get_taxonomies()) : $taxonomies;
        if (!empty($arguments['object_ids'])) {
            // Which terms a post has is a matter of the post. WordPress also asks for those of all posts of a list.
            if (($arguments['fields'] ?? 'all') !== 'all_with_object_id' && array_diff($taxonomies, self::OF_NO_POSTS) !== []) {
                foreach (wp_parse_id_list($arguments['object_ids']) as $post) {
                    $this->tags->add("post:$post");
                }
            }

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
