<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Changing;

use Mayfly\WordPress\ChangedTags;
use Mayfly\WordPress\Posts;
use Mayfly\WordPress\TagNames;

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

    /** What searches look at, and what they are ordered by. */
    private const TEXT_FIELDS = ['post_title', 'post_content', 'post_excerpt', 'post_date', 'post_password', 'post_type'];

    /** What a post is found by, and the names of the lists in which it is. */
    private const LIST_FIELDS = [
        'post_author' => ['posts:user:%s', 'posts:any'],
        'post_name' => ['posts:%2$s:name:%1$s'],
        'post_parent' => ['posts:%2$s'],
    ];

    /** What editors and WordPress note of a post for themselves. */
    private const OWN_META_PATTERN =
        '/^(?:_edit_lock|_edit_last|_oembed_.*|_pingme|_encloseme|_wp_old_slug|_wp_old_date|_wp_desired_post_slug|_wp_trash_.*|_menu_item_.*)$/';

    /** What of a row no page shows, or what pages have by another tag. */
    private const UNSEEN_FIELDS = ['comment_count', 'post_content_filtered', 'pinged', 'to_ping', 'guid'];

    public function __construct(private readonly ChangedTags $changed)
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
        foreach (['added_post_meta', 'updated_post_meta', 'deleted_post_meta'] as $hook) {
            add_action($hook, function ($meta, $id, $name): void {
                $this->meta((int) $id, (string) $name);
            }, 10, 3);
        }
    }

    public function finish(): void
    {
    }

    /**
     * A row of the table, before a statement and at the end.
     *
     * @param array<string, string|null>|null $before
     * @param array<string, string|null>|null $after
     */
    public function row(?array $before, ?array $after): void
    {
        // The number of comments is a matter of the comments.
        $unseen = array_flip(self::UNSEEN_FIELDS);
        if ($before !== null && $after !== null && array_diff_key($before, $unseen) === array_diff_key($after, $unseen)) {
            if ($before['comment_count'] !== $after['comment_count']) {
                $this->changed->add('table:posts');
            }

            return;
        }
        $post = static fn (?array $row): ?\WP_Post => $row === null ? null
            : new \WP_Post(sanitize_post((object) $row, 'raw'));
        $this->compare($post($before), $post($after));
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
            $this->meta((int) $row['post_id'], (string) $row['meta_key']);
        }
    }

    private function compare(?\WP_Post $before, ?\WP_Post $after): void
    {
        $post = $after ?? $before;
        if ($post === null) {
            return;
        }
        if ($post->post_status !== 'auto-draft' && $post->post_type !== 'revision') {
            $this->changed->add('table:posts:any');
        }
        if ($post->post_type === 'nav_menu_item') {
            $this->menus($post->ID);
        }
        if ($post->post_type === 'custom_css') {
            $this->changed->add(TagNames::DOCUMENT);

            return;
        }
        $wasPublic = $before !== null && Posts::isPublic($before);
        $isPublic = $after !== null && Posts::isPublic($after);
        if (!$wasPublic && !$isPublic) {
            if ($after === null && $post->post_status !== 'auto-draft' && Posts::isOfSeenType($post->post_type)) {
                // REST says of a draft that it is kept back, and of none that it is not there.
                $this->changed->add("post:$post->ID");
            }

            return;
        }
        $this->changed->add("post:$post->ID", 'table:posts', ...Posts::ofTypes($post->post_type, 'any'));
        if ($post->post_type === 'wp_global_styles') {
            self::forgetStyles();
        }
        $differs = static fn (array $fields): bool => $before === null || $after === null || array_filter(
            $fields,
            static fn (string $field): bool => (string) $before->$field !== (string) $after->$field,
        ) !== [];
        $isOther = $wasPublic !== $isPublic;
        if ($isOther || $differs(self::TEXT_FIELDS)) {
            $this->changed->add(...Posts::ofTypes($post->post_type, 'text'));
        }
        // Attachments inherit their status, and make no writers: only what is published does.
        if ($post->post_type !== 'attachment' && ($isOther || $differs(['post_author']))) {
            $this->writers($before, $after);
        }
        if ($isOther || $differs(self::LINK_FIELDS)) {
            $this->changed->add("link:$post->ID", 'missing');
            $this->changed->add(...Posts::ofTypes($post->post_type, 'link'));
            $this->linksBelow($post);
        }
        if ($isOther || $differs(['post_date', 'post_type'])) {
            foreach (array_filter([$wasPublic ? $before : null, $isPublic ? $after : null]) as $one) {
                $this->changed->add(...Posts::lists($one));
            }
            $this->between($isPublic ? $after : null);
            if ((int) $post->comment_count > 0) {
                $this->changed->add('comments');
            }
        }
        $isOfDesign = \in_array($post->post_type, Posts::DESIGN, true);
        foreach (array_diff_key(self::LIST_FIELDS, $isOfDesign ? ['post_author' => true] : []) as $field => $lists) {
            foreach ($differs([$field]) ? array_filter([$before, $after]) : [] as $one) {
                foreach ($lists as $list) {
                    $this->changed->add(\sprintf($list, $one->$field, $one->post_type));
                }
            }
        }
    }

    /**
     * Lists of users are mostly of those who have written something: whether this is the first, or was the last.
     */
    private function writers(?\WP_Post ...$posts): void
    {
        global $wpdb;
        foreach (array_filter($posts) as $post) {
            $number = $wpdb->get_var($wpdb->prepare(
                "SELECT COUNT(*) FROM (SELECT 1 FROM $wpdb->posts WHERE post_author = %d AND post_type = %s"
                . " AND post_status = 'publish' LIMIT 2) AS counted",
                $post->post_author,
                $post->post_type,
            ));
            if ((int) $number < 2) {
                $this->changed->add('writers');
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
        // A category may be a part of the address: of posts, where the settings say so, and of others as plug-ins have it.
        $isInAddress = !\in_array($post->post_type, ['post', 'page', 'attachment'], true)
            || str_contains((string) get_option('permalink_structure'), "%$taxonomy%");
        $this->changed->add("post:$id", ...($isInAddress ? ["link:$id"] : []), ...Posts::ofTypes($post->post_type, 'any'));
        foreach ($changed as $number) {
            $term = get_term_by('term_taxonomy_id', $number, $taxonomy);
            if ($term instanceof \WP_Term) {
                $this->changed->add(...Posts::listsOfTerm($term->term_id, $taxonomy));
            }
        }
    }

    private function meta(int $id, string $name): void
    {
        if (str_starts_with($name, '_menu_item_')) {
            $this->menus($id);
        }
        if (preg_match(self::OWN_META_PATTERN, $name) === 1) {
            return;
        }
        $post = get_post($id);
        $isPublic = $post instanceof \WP_Post && Posts::isPublic($post);
        $of = $isPublic ? ["post:$id", ...Posts::ofTypes($post->post_type, 'any')] : [];
        $this->changed->addWritten("postmeta:$name", 'table:postmeta', ...$of);
    }

    /**
     * Those that an item is in.
     */
    private function menus(int $item): void
    {
        foreach ((array) wp_get_object_terms($item, 'nav_menu', ['fields' => 'ids']) as $menu) {
            $this->changed->add('menu:' . (int) $menu);
        }
    }

    /**
     * WordPress 6.1 keeps the styles of a site for a minute, also when they change.
     */
    public static function forgetStyles(): void
    {
        delete_transient('global_styles_' . get_stylesheet());
        delete_transient('global_styles_svg_filters_' . get_stylesheet());
    }
}
