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
            $this->changed->add("term:$id", "slug:$id", "text:$id", "terms:$taxonomy", "terms:$taxonomy:empty");
            $this->changed->add(...Posts::listsOfTerm((int) $id, (string) $taxonomy));
            foreach ($objects as $object) {
                $this->changed->add('post:' . (int) $object);
            }
        }, 10, 5);
        add_action('edit_term_taxonomy', function ($inTaxonomy): void {
            $this->counts[(int) $inTaxonomy] = $this->inTaxonomy((int) $inTaxonomy)['count'] ?? 0;
        });
        add_action('edited_term_taxonomy', function ($inTaxonomy, $taxonomy): void {
            $this->counted((int) $inTaxonomy, (string) $taxonomy);
        }, 10, 2);
        foreach (['added_term_meta', 'updated_term_meta', 'deleted_term_meta'] as $hook) {
            add_action($hook, function ($meta, $id, $name): void {
                $this->meta((int) $id, (string) $name);
            }, 10, 3);
        }
        foreach (['wp_update_nav_menu_item', 'wp_delete_nav_menu'] as $hook) {
            add_action($hook, function ($id): void {
                $this->changed->add('menu:' . (int) $id);
            });
        }
    }

    public function finish(): void
    {
    }

    /**
     * A row of the terms, or of the taxonomies that they are in, before a statement and at the end.
     *
     * @param array<string, string|null>|null $before
     * @param array<string, string|null>|null $after
     */
    public function row(?array $before, ?array $after): void
    {
        $id = (int) ($after['term_id'] ?? $before['term_id'] ?? 0);
        // Hooks tell of what comes and goes, and of the number of posts.
        if ($before === null || $after === null || array_diff_key($before, ['count' => 1]) === array_diff_key($after, ['count' => 1])) {
            return;
        }
        clean_term_cache($id, '', false);
        $term = get_term($id);
        if ($term instanceof \WP_Term) {
            $was = clone $term;
            foreach (array_intersect_key($before, get_object_vars($term)) as $field => $value) {
                $was->$field = $value;
            }
            $this->compare($was, $term);
        }
    }

    /**
     * A row of the meta data.
     *
     * @param array<string, string|null>|null $before
     * @param array<string, string|null>|null $after
     */
    public function metaRow(?array $before, ?array $after): void
    {
        foreach (array_filter([$before, $after]) as $row) {
            $this->meta((int) $row['term_id'], (string) $row['meta_key']);
        }
    }

    private function meta(int $id, string $name): void
    {
        if ($id > 0) {
            $this->changed->addWritten("termmeta:$name", "term:$id:meta", 'table:termmeta');
        }
    }

    private function edited(int $id, string $taxonomy): void
    {
        $term = get_term($id, $taxonomy);
        if ($term instanceof \WP_Term) {
            $this->compare($this->before[$id] ?? null, $term);
        }
    }

    private function compare(?\WP_Term $before, \WP_Term $term): void
    {
        [$id, $taxonomy] = [$term->term_id, $term->taxonomy];
        $this->changed->add('table:terms', 'table:term_taxonomy');
        if (!Posts::isSeenTaxonomy($taxonomy)) {
            return;
        }
        $changed = array_filter(
            self::FIELDS,
            static fn (string $field): bool => $before === null || (string) $before->$field !== (string) $term->$field,
        );
        $changed = array_values($changed);
        if ($changed === []) {
            return;
        }
        if ($taxonomy === 'nav_menu') {
            // What is printed of a menu has its slug; its name, where a theme says so.
            $this->changed->add("text:$id", ...($changed === ['name'] ? [] : ["menu:$id"]));

            return;
        }
        $this->changed->add("text:$id");
        if ($changed !== ['description']) {
            // Its place in lists, and the addresses of the terms below it.
            $isElsewhere = array_intersect($changed, ['slug', 'parent']) !== [];
            $this->changed->add("term:$id", "terms:$taxonomy:empty", ...($isElsewhere ? ['missing'] : []));
            if (\in_array('slug', $changed, true)) {
                $this->changed->add("slug:$id");
            }
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
        $now = $this->inTaxonomy($inTaxonomy)['count'] ?? 0;
        unset($this->counts[$inTaxonomy]);
        if ($before === $now || !Posts::isSeenTaxonomy($taxonomy)) {
            return;
        }
        $term = get_term_by('term_taxonomy_id', $inTaxonomy);
        $this->changed->add("terms:$taxonomy:count", ...($term instanceof \WP_Term ? ["term:$term->term_id:count"] : []));
        if ($before === 0 || $now === 0) {
            $this->changed->add("terms:$taxonomy");
        }
    }

    /**
     * @return array{count: int}|null
     */
    private function inTaxonomy(int $inTaxonomy): ?array
    {
        global $wpdb;
        $count = $wpdb->get_var($wpdb->prepare(
            "SELECT count FROM $wpdb->term_taxonomy WHERE term_taxonomy_id = %d",
            $inTaxonomy,
        ));

        return $count === null ? null : ['count' => (int) $count];
    }
}
