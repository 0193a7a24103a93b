<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\Counters;
use Mayfly\WordPress\PageTags;
use Mayfly\WordPress\Posts;

/**
 * Which posts a page shows, and of which it has only a link.
 *
 * What a template prints of a post goes through one of these hooks. A theme that takes a post by
 * `get_post()` and prints its properties as they are says so itself: `do_action('mayfly_reads', 'post:5')`.
 */
final class PostReader implements Reader
{
    /** @var array<int, bool> whether pages show posts like this one */
    private array $isSeen = [];

    /** @var array<int, true> templates and styles */
    private array $design = [];

    public function __construct(private readonly PageTags $tags, private readonly Counters $counters)
    {
    }

    public function watch(): void
    {
        // A post in a loop: https://developer.wordpress.org/reference/hooks/the_post/
        add_action('the_post', function ($post): void {
            $this->whole($post);
        });
        // Its parts outside of a loop. Featured images, attachments and templates are read by their meta data.
        add_filter('get_post_metadata', function ($value, $post, $name) {
            $this->whole($post);
            $this->counters->read("postmeta:$name");

            return $value;
        }, \PHP_INT_MAX, 3);
        add_filter('get_the_excerpt', function ($text, $post = null) {
            $this->whole($post);

            return $text;
        }, \PHP_INT_MAX, 2);
        add_filter('get_the_terms', function ($terms, $post) {
            $this->whole($post);

            return $terms;
        }, \PHP_INT_MAX, 2);
        // Its title and address.
        foreach (['the_title', 'post_link', 'page_link', 'post_type_link', 'attachment_link'] as $hook) {
            add_filter($hook, function ($text, $post = null) {
                $this->link($post);

                return $text;
            }, \PHP_INT_MAX, 2);
        }
        add_filter('get_comments_number', function ($number, $post) {
            $this->tags->add('commented:' . (int) $post);

            return $number;
        }, \PHP_INT_MAX, 2);
        // Whether it is sticky is said on the front page, which has a tag for that, and by the interface.
        add_filter('is_sticky', function ($isSticky, $post) {
            if (\defined('REST_REQUEST')) {
                $this->tags->add('sticky:' . (int) $post);
            }

            return $isSticky;
        }, \PHP_INT_MAX, 2);
        // Blocks that take a post by its number, such as reusable blocks and navigation menus, or a pattern of the theme.
        add_filter('pre_render_block', function ($rendered, $block) {
            if (($block['blockName'] ?? null) === 'core/pattern') {
                $this->tags->add('pattern:' . (string) ($block['attrs']['slug'] ?? ''));
            }
            $ref = $block['attrs']['ref'] ?? $block['attrs']['navigationMenuId'] ?? null;
            if (is_numeric($ref)) {
                $this->tags->add('post:' . (int) $ref);
            }

            return $rendered;
        }, 10, 2);
        // The posts before and after one: https://developer.wordpress.org/reference/hooks/get_adjacent_post_where/
        foreach (['previous', 'next'] as $adjacent) {
            add_filter("get_{$adjacent}_post_where", function ($where, $isInSameTerm, $excluded, $taxonomy, $post) {
                $this->adjacent($post, $isInSameTerm ? (string) $taxonomy : null);

                return $where;
            }, 10, 5);
        }
    }

    public function finish(): void
    {
        foreach (Posts::isDocument() ? array_keys($this->design) : [] as $id) {
            $this->tags->add("post:$id");
        }
    }

    /**
     * @param mixed $post a post or its number
     */
    public function whole(mixed $post): void
    {
        $id = $this->seenId($post);
        if ($id !== null) {
            $this->tags->add("post:$id");
        }
    }

    /**
     * @param mixed $post a post or its number
     */
    public function link(mixed $post): void
    {
        $id = $this->seenId($post);
        if ($id !== null) {
            $this->tags->add("link:$id");
        }
    }

    private function seenId(mixed $post): ?int
    {
        $id = $post instanceof \WP_Post ? $post->ID : (is_numeric($post) ? (int) $post : 0);
        if ($id <= 0) {
            return null;
        }
        if (!isset($this->isSeen[$id])) {
            $found = $post instanceof \WP_Post ? $post : get_post($id);
            $this->isSeen[$id] = !$found instanceof \WP_Post || Posts::isOfSeenType($found->post_type);
            if ($found instanceof \WP_Post && \in_array($found->post_type, Posts::DESIGN, true)) {
                $this->isSeen[$id] = false;
                $this->design[$id] = true;
            }
        }

        return $this->isSeen[$id] ? $id : null;
    }

    private function adjacent(mixed $post, ?string $taxonomy): void
    {
        if (!$post instanceof \WP_Post) {
            return;
        }
        $this->tags->add("adjacent:$post->ID");
        $terms = $taxonomy === null ? [] : get_the_terms($post, $taxonomy);
        foreach (\is_array($terms) ? $terms : [] as $term) {
            $this->tags->add("posts:term:$term->term_id");
        }
    }
}
