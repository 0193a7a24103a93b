<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\PageTags;

/**
 * Which menus and sidebars a page has. What widgets show is seen by the other readers.
 */
final class MenuReader implements Reader
{
    public function __construct(private readonly PageTags $tags)
    {
    }

    public function watch(): void
    {
        add_filter('wp_get_nav_menu_items', function ($items, $menu) {
            if ($menu instanceof \WP_Term) {
                $this->tags->add("menu:$menu->term_id");
            }
            foreach (\is_array($items) ? $items : [] as $item) {
                $kind = ['post_type' => 'link', 'taxonomy' => 'term'][$item->type ?? ''] ?? null;
                if ($kind !== null) {
                    $this->tags->add("$kind:" . (int) $item->object_id);
                }
            }

            return $items;
        }, \PHP_INT_MAX, 2);
        add_action('dynamic_sidebar_before', function ($sidebar): void {
            $this->tags->add("sidebar:$sidebar");
        });
        add_filter('is_active_sidebar', function ($isActive, $sidebar) {
            $this->tags->add("sidebar:$sidebar");

            return $isActive;
        }, \PHP_INT_MAX, 2);
    }

    public function finish(): void
    {
    }
}
