<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * What is true of posts, for those who read them and for those who see them change.
 */
final class Posts
{
    /**
     * Types that no page shows by themselves: menus have a tag of their own, custom CSS is on every page,
     * and the others are for editors.
     */
    private const UNSEEN_TYPES = [
        'revision' => true,
        'nav_menu_item' => true,
        'custom_css' => true,
        'customize_changeset' => true,
        'oembed_cache' => true,
        'user_request' => true,
    ];

    /** Taxonomies whose terms no page shows: they say where posts belong. */
    private const UNSEEN_TAXONOMIES = ['wp_theme' => true, 'wp_template_part_area' => true];

    /** Templates and styles. */
    public const DESIGN = ['wp_template', 'wp_template_part', 'wp_global_styles'];

    /**
     * Whether the page is one for browsers. Feeds, sitemaps and the interface have no design, though WordPress
     * reads it for each of them.
     */
    public static function isDocument(): bool
    {
        return did_action('wp_head') > 0 || did_action('embed_head') > 0;
    }

    public static function isOfSeenType(string $type): bool
    {
        return !isset(self::UNSEEN_TYPES[$type]);
    }

    public static function isSeenTaxonomy(string $taxonomy): bool
    {
        return !isset(self::UNSEEN_TAXONOMIES[$taxonomy]);
    }

    /**
     * Whether anybody who is not logged in may see it.
     */
    public static function isPublic(\WP_Post $post): bool
    {
        if (!self::isOfSeenType($post->post_type)) {
            return false;
        }
        $status = get_post_status_object($post->post_status);

        // Attachments inherit their status, and WordPress shows those of drafts.
        return $post->post_status === 'inherit' || ($status !== null && $status->public);
    }

    /**
     * Whether lists of all types have posts of this one, such as searches: not templates, nor blocks.
     */
    public static function isListed(string $type): bool
    {
        $about = get_post_type_object($type);

        return $about === null || $about->public || !$about->exclude_from_search;
    }

    /**
     * Names that begin with a type, for posts of it or of any.
     *
     * @return list<string>
     */
    public static function ofTypes(string $type, string $what): array
    {
        return ["posts:$type:$what", ...(self::isListed($type) ? ["posts:any:$what"] : [])];
    }

    /**
     * The lists that a post is in, and those in which something depends on any post of its type.
     *
     * @return list<string>
     */
    public static function lists(\WP_Post $post): array
    {
        $type = $post->post_type;
        $names = ["posts:$type", "posts:$type:name:$post->post_name", ...(self::isListed($type) ? ['posts:any'] : [])];
        if ($type === 'attachment') {
            // Lists of these have no narrower name.
            return $names;
        }
        if (!\in_array($type, self::DESIGN, true)) {
            // Lists of templates have no such names.
            array_push($names, "posts:user:$post->post_author", ...self::dates($post->post_date));
        }
        foreach (get_object_taxonomies($type) as $taxonomy) {
            $terms = get_the_terms($post, $taxonomy);
            foreach (\is_array($terms) ? $terms : [] as $term) {
                array_push($names, ...self::listsOfTerm($term->term_id, $taxonomy));
            }
        }

        return $names;
    }

    /**
     * Archives of a term show the posts of the terms below it as well.
     *
     * @return list<string>
     */
    public static function listsOfTerm(int $term, string $taxonomy): array
    {
        $above = is_taxonomy_hierarchical($taxonomy) ? get_ancestors($term, $taxonomy, 'taxonomy') : [];

        return array_map(static fn (int $one): string => "posts:term:$one", [$term, ...array_map(\intval(...), $above)]);
    }

    /**
     * Archives of its year, month and day.
     *
     * @return list<string>
     */
    public static function dates(string $date): array
    {
        return [
            'posts:date:' . substr($date, 0, 4),
            'posts:date:' . substr($date, 0, 7),
            'posts:date:' . substr($date, 0, 10),
        ];
    }

    private function __construct()
    {
    }
}
