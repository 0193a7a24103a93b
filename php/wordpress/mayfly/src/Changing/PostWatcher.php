<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Changing;

use Mayfly\WordPress\ChangedTags;
use Mayfly\WordPress\Posts;

/**
 * Posts, pages, attachments, templates and whatever else is a post: before and after are compared, so that
 * only those pages are made anew that show a difference. Drafts, autosaves and revisions are seen by nobody.
 */
final class PostWatcher implements Watcher
{
    /** What a link to a post shows, or is ordered by. */
    private const LINK_FIELDS = [
        'post_title', 'post_name', 'post_parent', 'post_date', 'post_status', 'post_password', 'post_type', 'menu_order',
    ];

    /** What a post is found by, and the names of the lists in which it is. */
    private const LIST_FIELDS = [
        'post_author' => ['posts:user:%s', 'posts:any'],
        'post_name' => ['posts:%2$s:name:%1$s'],
        'post_parent' => ['posts:%2$s'],
    ];

    /** What editors and WordPress note of a post for themselves. */
    private const OWN_META_PATTERN =
        '/^(?:_edit_lock|_edit_last|_pingme|_encloseme|_wp_old_slug|_wp_old_date|_wp_desired_post_slug|_wp_trash_.*|_menu_item_.*)$/';

    /** @var array<int, true> posts whose changes are known */
    private array $compared = [];

    /** @var array<int, \WP_Post> posts whose caches were cleaned */
    private array $cleaned = [];

    /**
     * @param bool $isPageView whether somebody only looks at a page: what is counted then is no edit
     */
    public function __construct(private readonly ChangedTags $changed, private readonly bool $isPageView)
    {
    }

    public function watch(): void
    {
        // A post with its terms and meta data is saved; WordPress hands over what it was.
        add_action('wp_after_insert_post', function ($id, $post, $isUpdate, $before): void {
            $this->compare($before instanceof \WP_Post ? $before : null, $post instanceof \WP_Post ? $post : null);
        }, 10, 4);
        // While its terms can still be read.
        add_action('before_delete_post', function ($id, $post): void {
            $this->compare($post, null);
        }, 10, 2);
        add_action('delete_attachment', function ($id, $post): void {
            $this->compare($post, null);
        }, 10, 2);
        add_action('set_object_terms', function ($id, $terms, $now, $taxonomy, $isAppended, $before): void {
            $now = array_map(\intval(...), $isAppended ? [...$now, ...$before] : $now);
            $before = array_map(\intval(...), $before);
            $this->terms((int) $id, [...array_diff($now, $before), ...array_diff($before, $now)], (string) $taxonomy);
        }, 10, 6);
        add_action('deleted_term_relationships', function ($id, $terms, $taxonomy): void {
            $this->terms((int) $id, array_map(\intval(...), $terms), (string) $taxonomy);
        }, 10, 3);
        // Its number of comments is a matter of the comments.
        add_action('wp_update_comment_count', function ($id): void {
            $this->compared[(int) $id] = true;
        });
        if ($this->isPageView) {
            return;
        }
        foreach (['added_post_meta', 'updated_post_meta', 'deleted_post_meta'] as $hook) {
            add_action($hook, function ($meta, $id, $name): void {
                $this->meta((int) $id, (string) $name);
            }, 10, 3);
        }
        // Plug-ins that write into the table and clean the cache.
        add_action('clean_post_cache', function ($id, $post): void {
            if ($post instanceof \WP_Post) {
                $this->cleaned[(int) $id] ??= $post;
            }
        }, 10, 2);
    }

    public function finish(): void
    {
        foreach (array_diff_key($this->cleaned, $this->compared) as $id => $before) {
            $now = get_post($id);
            $this->compare($before, $now instanceof \WP_Post ? $now : null, true);
        }
        $this->cleaned = [];
    }

    /**
     * @param bool $isUnknown whether anything may have changed
     */
    private function compare(?\WP_Post $before, ?\WP_Post $after, bool $isUnknown = false): void
    {
        $post = $after ?? $before;
        if ($post === null) {
            return;
        }
        $this->compared[$post->ID] = true;
        if ($post->post_type === 'custom_css') {
            $this->changed->add('site');

            return;
        }
        $wasPublic = $before !== null && Posts::isPublic($before);
        $isPublic = $after !== null && Posts::isPublic($after);
        if (!$wasPublic && !$isPublic) {
            return;
        }
        $this->changed->add("post:$post->ID", "posts:$post->post_type:any", 'posts:any:any');
        if ($post->post_type === 'wp_global_styles') {
            self::forgetStyles();
        }
        $differs = static fn (array $fields): bool => $before === null || $after === null || array_filter(
            $fields,
            static fn (string $field): bool => (string) $before->$field !== (string) $after->$field,
        ) !== [];
        $isOther = $isUnknown || $wasPublic !== $isPublic;
        if ($isOther || $differs(self::LINK_FIELDS)) {
            $this->changed->add("link:$post->ID", 'missing');
            $this->linksBelow($post);
        }
        if ($isOther || $differs(['post_date'])) {
            foreach (array_filter([$wasPublic ? $before : null, $isPublic ? $after : null]) as $one) {
                $this->changed->add(...Posts::lists($one));
            }
            $this->between($isPublic ? $after : null);
            if ((int) $post->comment_count > 0) {
                $this->changed->add('comments');
            }
        }
        foreach (self::LIST_FIELDS as $field => $lists) {
            foreach ($differs([$field]) ? array_filter([$before, $after]) : [] as $one) {
                foreach ($lists as $list) {
                    $this->changed->add(\sprintf($list, $one->$field, $one->post_type));
                }
            }
        }
    }

    /**
     * The addresses of pages begin with those of the pages above them, and attachments are seen as what
     * they belong to is.
     */
    private function linksBelow(\WP_Post $post): void
    {
        global $wpdb;
        $found = [$post->ID];
        $all = $found;
        while ($found !== []) {
            $numbers = implode(',', $found);
            // The numbers of posts alone: there is no function for it that takes all types.
            $below = $wpdb->get_col(
                "SELECT ID FROM $wpdb->posts WHERE post_parent IN ($numbers)"
                . " AND post_type NOT IN ('revision', 'nav_menu_item')",
            );
            $found = array_values(array_diff(array_map(\intval(...), $below), $all));
            array_push($all, ...$found);
            foreach ($found as $id) {
                $this->changed->add("post:$id", "link:$id");
            }
        }
    }

    /**
     * The posts before and after it now have it as their neighbour. (Those that had it carry its link.)
     */
    private function between(?\WP_Post $post): void
    {
        global $wpdb;
        if ($post === null) {
            return;
        }
        foreach (['<' => 'DESC', '>' => 'ASC'] as $is => $order) {
            $neighbour = $wpdb->get_var($wpdb->prepare(
                "SELECT ID FROM $wpdb->posts WHERE post_type = %s AND post_status = 'publish' AND ID <> %d"
                . " AND post_date $is= %s ORDER BY post_date $order LIMIT 1",
                $post->post_type,
                $post->ID,
                $post->post_date,
            ));
            if ($neighbour !== null) {
                $this->changed->add('adjacent:' . (int) $neighbour);
            }
        }
    }

    /**
     * @param list<int> $changed numbers of terms in their taxonomy that the post got or lost
     */
    private function terms(int $id, array $changed, string $taxonomy): void
    {
        $post = get_post($id);
        if ($changed === [] || !Posts::isSeenTaxonomy($taxonomy) || !$post instanceof \WP_Post || !Posts::isPublic($post)) {
            return;
        }
        // A category may be a part of the address.
        $this->changed->add("post:$id", "link:$id", "posts:$post->post_type:any", 'posts:any:any');
        foreach ($changed as $number) {
            $term = get_term_by('term_taxonomy_id', $number, $taxonomy);
            if ($term instanceof \WP_Term) {
                $this->changed->add(...Posts::listsOfTerm($term->term_id, $taxonomy));
            }
        }
    }

    private function meta(int $id, string $name): void
    {
        if (preg_match(self::OWN_META_PATTERN, $name) === 1) {
            return;
        }
        $post = get_post($id);
        if ($post instanceof \WP_Post && Posts::isPublic($post)) {
            $this->changed->add("post:$id", "posts:$post->post_type:any", 'posts:any:any');
        }
    }

    /**
     * WordPress 6.1 keeps the styles of a site for a minute, also when they change.
     */
    private static function forgetStyles(): void
    {
        delete_transient('global_styles_' . get_stylesheet());
        delete_transient('global_styles_svg_filters_' . get_stylesheet());
    }
}
