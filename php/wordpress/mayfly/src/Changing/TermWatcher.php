<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Changing;

use Mayfly\WordPress\ChangedTags;
use Mayfly\WordPress\Posts;

/**
 * Terms and menus. WordPress counts the posts of terms again whenever a post is saved: only a number that
 * has become another one is a change.
 */
final class TermWatcher implements Watcher
{
    private const FIELDS = ['name', 'slug', 'description', 'parent'];

    /** @var array<int, \WP_Term> */
    private array $before = [];

    /** @var array<int, int> by number in the taxonomy */
    private array $counts = [];

    public function __construct(private readonly ChangedTags $changed)
    {
    }

    public function watch(): void
    {
        add_action('edit_terms', function ($id, $taxonomy): void {
            $term = get_term((int) $id, (string) $taxonomy);
            if ($term instanceof \WP_Term) {
                $this->before[(int) $id] = clone $term;
            }
        }, 10, 2);
        add_action('edited_term', function ($id, $inTaxonomy, $taxonomy): void {
            $this->edited((int) $id, (string) $taxonomy);
        }, 10, 3);
        add_action('created_term', function ($id, $inTaxonomy, $taxonomy): void {
            // It has no posts yet: only lists of all terms show it.
            $this->changed->add("terms:$taxonomy:empty", 'missing');
        }, 10, 3);
        add_action('delete_term', function ($id, $inTaxonomy, $taxonomy, $term, $objects): void {
            $this->changed->add("term:$id", "text:$id", "terms:$taxonomy", "terms:$taxonomy:empty");
            $this->changed->add(...Posts::listsOfTerm((int) $id, (string) $taxonomy));
            foreach ($objects as $object) {
                $this->changed->add('post:' . (int) $object);
            }
        }, 10, 5);
        add_action('edit_term_taxonomy', function ($inTaxonomy): void {
            $this->counts[(int) $inTaxonomy] = $this->row((int) $inTaxonomy)['count'] ?? 0;
        });
        add_action('edited_term_taxonomy', function ($inTaxonomy, $taxonomy): void {
            $this->counted((int) $inTaxonomy, (string) $taxonomy);
        }, 10, 2);
        foreach (['added_term_meta', 'updated_term_meta', 'deleted_term_meta'] as $hook) {
            add_action($hook, function ($meta, $id): void {
                $this->changed->add('term:' . (int) $id);
            }, 10, 2);
        }
        foreach (['wp_update_nav_menu', 'wp_update_nav_menu_item', 'wp_delete_nav_menu'] as $hook) {
            add_action($hook, function ($id): void {
                $this->changed->add('menu:' . (int) $id);
            });
        }
        // An item of a menu that is deleted, as posts are.
        add_action('before_delete_post', function ($id, $post): void {
            if ($post instanceof \WP_Post && $post->post_type === 'nav_menu_item') {
                foreach ((array) wp_get_object_terms((int) $id, 'nav_menu', ['fields' => 'ids']) as $menu) {
                    $this->changed->add('menu:' . (int) $menu);
                }
            }
        }, 10, 2);
    }

    public function finish(): void
    {
    }

    private function edited(int $id, string $taxonomy): void
    {
        $before = $this->before[$id] ?? null;
        $term = get_term($id, $taxonomy);
        if (!$term instanceof \WP_Term || !Posts::isSeenTaxonomy($taxonomy)) {
            return;
        }
        $changed = array_filter(
            self::FIELDS,
            static fn (string $field): bool => $before === null || (string) $before->$field !== (string) $term->$field,
        );
        if ($changed === []) {
            return;
        }
        if ($taxonomy === 'nav_menu') {
            $this->changed->add("menu:$id");

            return;
        }
        $this->changed->add("text:$id");
        if (array_values($changed) !== ['description']) {
            // Its place in lists, and the addresses of the terms below it.
            $this->changed->add("term:$id", "terms:$taxonomy:empty", 'missing');
            if ($term->count > 0) {
                $this->changed->add("terms:$taxonomy");
            }
            $below = get_term_children($id, $taxonomy);
            foreach (\is_array($below) ? $below : [] as $one) {
                $this->changed->add('term:' . (int) $one);
            }
        }
        if (\in_array('parent', $changed, true)) {
            // Archives of terms show the posts of the terms below.
            $above = $before !== null && $before->parent > 0 ? Posts::listsOfTerm($before->parent, $taxonomy) : [];
            $this->changed->add(...$above, ...Posts::listsOfTerm($id, $taxonomy));
        }
    }

    private function counted(int $inTaxonomy, string $taxonomy): void
    {
        $before = $this->counts[$inTaxonomy] ?? 0;
        $now = $this->row($inTaxonomy)['count'] ?? 0;
        unset($this->counts[$inTaxonomy]);
        if ($before === $now || !Posts::isSeenTaxonomy($taxonomy)) {
            return;
        }
        $this->changed->add("terms:$taxonomy:count");
        if ($before === 0 || $now === 0) {
            $this->changed->add("terms:$taxonomy");
        }
    }

    /**
     * @return array{count: int}|null
     */
    private function row(int $inTaxonomy): ?array
    {
        global $wpdb;
        $count = $wpdb->get_var($wpdb->prepare(
            "SELECT count FROM $wpdb->term_taxonomy WHERE term_taxonomy_id = %d",
            $inTaxonomy,
        ));

        return $count === null ? null : ['count' => (int) $count];
    }
}
