<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\PageTags;
use Mayfly\WordPress\Posts;
use Mayfly\WordPress\TagNames;

/**
 * Which lists of posts a page shows: archives, feeds, searches, widgets, templates.
 *
 * `pre_get_posts` is called for each query, also for those of `get_posts()`, which suppress all filters. It
 * is given the query itself, and so the results can be read from it when the page is complete.
 */
final class QueryReader implements Reader
{
    /** Orders that a post keeps as long as its date stays. */
    private const BY_DATE = ['', 'date', 'post_date', 'ID', 'none', 'post__in', 'post_name__in', 'post_parent__in'];

    /** Orders by what a link to a post shows. */
    private const BY_LINK = ['title', 'post_title', 'name', 'post_name', 'parent', 'post_parent', 'type', 'post_type', 'menu_order'];

    /** Of each list of this block, only titles and addresses are shown, unless it says more. */
    private const LINKS_BLOCK = 'core/latest-posts';
    private const MORE_THAN_LINKS = ['displayPostContent', 'displayFeaturedImage', 'displayAuthor'];

    /** @var array<int, \WP_Query> by number of the object, which stays as long as it is kept here */
    private array $queries = [];

    /** @var array<int, array<mixed>> by query: results that are noted */
    private array $noted = [];

    /** @var array<int, true> queries of which only links are shown */
    private array $ofLinks = [];

    private bool $isNextOfLinks = false;

    /** A query that is made now, whose posts are not shown; it asks for sticky posts by another. */
    private ?\WP_Query $forNothing = null;

    public function __construct(private readonly PageTags $tags, private readonly PostReader $posts)
    {
    }

    public function watch(): void
    {
        add_action('pre_get_posts', function ($query): void {
            if ($query instanceof \WP_Query && self::isForNothing($query)) {
                $this->forNothing = $query;
            }
            if ($query instanceof \WP_Query && self::isOfSeenTypes($query) && $this->forNothing === null) {
                $this->queries[spl_object_id($query)] = $query;
                if ($this->isNextOfLinks || $query->get('mayfly_links') === true) {
                    $this->ofLinks[spl_object_id($query)] = true;
                }
                $this->isNextOfLinks = false;
            }
        }, \PHP_INT_MAX);
        add_action('wp', function (): void {
            $this->forNothing = null;
        }, \PHP_INT_MIN);
        // An object that is used for a second query loses the results of the first.
        add_filter('the_posts', function ($posts, $query) {
            if ($query === $this->forNothing) {
                $this->forNothing = null;
            }
            if ($query instanceof \WP_Query && isset($this->queries[spl_object_id($query)]) && !self::isOfDesign($query)) {
                $this->noted[spl_object_id($query)] = \is_array($posts) ? $posts : [];
                $this->results($query, $this->noted[spl_object_id($query)]);
            }

            return $posts;
        }, \PHP_INT_MAX, 2);
        add_filter('widget_posts_args', static fn ($arguments) => ['mayfly_links' => true] + (array) $arguments);
        // Sitemaps have addresses, and since WordPress 6.5 the time of the last change.
        if (version_compare(get_bloginfo('version'), '6.5', '<')) {
            add_filter('wp_sitemaps_posts_query_args', static fn ($arguments) => ['mayfly_links' => true] + (array) $arguments);
        }
        add_filter('pre_render_block', function ($rendered, $block) {
            $attributes = array_filter((array) ($block['attrs'] ?? []));
            $this->isNextOfLinks = ($block['blockName'] ?? null) === self::LINKS_BLOCK
                && array_intersect_key($attributes, array_flip(self::MORE_THAN_LINKS)) === [];

            return $rendered;
        }, 10, 2);
        // An answer of REST that says what is not there, or not for everybody, also within another (`_envelope`).
        add_filter('rest_post_dispatch', function ($response, $server = null, $request = null) {
            if ($response instanceof \WP_REST_Response && $response->get_status() >= 400) {
                $this->tags->add(self::keptBack($response, $request) ?? 'missing');
            }

            return $response;
        }, \PHP_INT_MAX, 3);
        // Lists that are no queries.
        add_filter('get_pages', function ($pages, $arguments) {
            // Their order may be that of their titles.
            $type = (string) ($arguments['post_type'] ?? 'page');
            $this->tags->add("posts:$type");
            array_map($this->posts->link(...), \is_array($pages) ? $pages : []);

            return $pages;
        }, \PHP_INT_MAX, 2);
        foreach (['getarchives_where', 'get_calendar'] as $hook) {
            add_filter($hook, function ($text, $arguments = []) {
                $type = \is_array($arguments) ? (string) ($arguments['post_type'] ?? 'post') : 'post';
                $this->tags->add("posts:$type");

                return $text;
            }, 10, 2);
        }
        add_filter('wp_count_posts', function ($counts, $type) {
            $this->tags->add("posts:$type");

            return $counts;
        }, 10, 2);
    }

    /**
     * The tag of the post that an answer of REST keeps back because it is not public; null for other answers.
     */
    private static function keptBack(\WP_REST_Response $response, mixed $request): ?string
    {
        $route = $request instanceof \WP_REST_Request ? $request->get_route() : '';
        $about = $response->get_data();
        if (!\is_array($about) || ($about['code'] ?? null) !== 'rest_forbidden' || preg_match('~/(\d+)$~D', $route, $number) !== 1) {
            return null;
        }
        $post = get_post((int) $number[1]);

        return $post instanceof \WP_Post && rest_get_route_for_post($post) === $route ? "post:$post->ID" : null;
    }

    public function finish(): void
    {
        $isDocument = Posts::isDocument();
        if ($isDocument) {
            $this->tags->add(TagNames::DOCUMENT);
        }
        foreach ($this->queries as $query) {
            if (!$isDocument && self::isOfDesign($query)) {
                continue;
            }
            $posts = \is_array($query->posts) ? $query->posts : [];
            if ($posts !== ($this->noted[spl_object_id($query)] ?? null)) {
                $this->results($query, $posts);
            }
            array_map($this->tags->add(...), self::lists($query));
        }
        $this->queries = $this->noted = [];
        // What is not there, and where somebody is sent instead.
        $status = http_response_code();
        if ($status === 404 || ($status >= 300 && $status < 400)) {
            $this->tags->add('missing');
        }
    }

    /**
     * @param array<mixed> $posts posts, their numbers, or objects with a number and a parent
     */
    private function results(mixed $query, array $posts): void
    {
        if (get_query_var('sitemap') === 'index') {
            // It says how many there are.
            return;
        }
        $isOfLinks = $query instanceof \WP_Query && isset($this->ofLinks[spl_object_id($query)]);
        foreach ($posts as $post) {
            if ($post instanceof \stdClass) {
                $post = $post->ID ?? null;
            }
            $isOfLinks ? $this->posts->link($post) : $this->posts->whole($post);
        }
    }

    /**
     * Names of the lists that a post would have to enter to be found by a query. Any one of its conditions
     * is enough; that which fewest posts meet is named.
     *
     * @return list<string>
     */
    public static function lists(\WP_Query $query): array
    {
        $variables = $query->query_vars;
        if ($query->is_comment_feed() && $query->is_singular() && $query->posts) {
            return array_map(
                static fn ($post): string => 'comments:' . ($post instanceof \WP_Post ? $post->ID : 0),
                (array) $query->posts,
            );
        }
        $types = self::types($query);
        $numbers = self::numbers([
            $variables['p'] ?? 0,
            $variables['page_id'] ?? 0,
            $variables['attachment_id'] ?? 0,
            ...(array) ($variables['post__in'] ?? []),
        ]);
        // WordPress also looks for sticky posts among templates and menus: one would have to become such a thing first.
        if ($numbers !== [] && ($query->posts || empty($variables['post_type']) || \in_array('any', $types, true))) {
            $names = array_map(static fn (int $number): string => "post:$number", $numbers);

            return \count($numbers) > 1 && !isset($query->query['posts_per_page']) ? [...$names, 'option:posts_per_page'] : $names;
        }
        if (array_filter(array_intersect_key($variables, ['name' => 1, 'pagename' => 1, 'attachment' => 1])) !== []) {
            return $query->posts ? [] : self::missing($query);
        }
        if ($query->is_comment_feed() && !$query->is_archive() && !$query->is_search()) {
            // The newest comments of all posts; their posts are among the results.
            return ['comments'];
        }
        $names = self::narrowest($query, $types);
        if (!isset($query->query['posts_per_page'])) {
            $names[] = 'option:posts_per_page';
        }
        if ($query->is_feed() && !$query->posts) {
            // Its date is that of whatever was changed last: get_feed_build_date().
            $names[] = 'posts:any:any';
        }
        foreach ($types as $type) {
            if (self::dependsOnMore($query)) {
                $names[] = "posts:$type:any";
                continue;
            }
            if (!empty($variables['s'])) {
                $names[] = "posts:$type:text";
            }
            if (array_intersect(self::orders($query), self::BY_LINK) !== []) {
                $names[] = "posts:$type:link";
            }
        }
        if ($query->is_home() && empty($variables['ignore_sticky_posts']) && array_intersect($types, ['post', 'any']) !== []) {
            $names[] = 'posts:sticky';
        }
        if ($query->is_comment_feed() || \in_array('comment_count', self::orders($query), true)) {
            $names[] = 'comments';
        }

        return $names;
    }

    /**
     * What may be there later, where a post is asked for by its name. The feed of none has the date of whatever was
     * changed last: get_feed_build_date().
     *
     * @return list<string>
     */
    private static function missing(\WP_Query $query): array
    {
        $name = (string) ($query->query_vars['name'] ?? '');
        if (!$query->is_feed() || $name === '') {
            return ['missing', ...($query->is_feed() ? ['posts:any:any'] : [])];
        }
        $types = array_unique(['post', 'page', 'attachment', ...self::types($query)]);

        return [...array_map(static fn (string $type): string => "posts:$type:name:$name", $types), 'posts:any:any'];
    }

    /**
     * @param list<string> $types
     *
     * @return list<string>
     */
    private static function narrowest(\WP_Query $query, array $types): array
    {
        $variables = $query->query_vars;
        $names = [];
        if (\in_array('attachment', $types, true)) {
            return ['posts:attachment'];
        }
        foreach ((array) ($variables['post_name__in'] ?? []) as $name) {
            foreach ($types as $type) {
                $names[] = "posts:$type:name:$name";
            }
        }
        if ($names !== []) {
            return $names;
        }
        if (array_intersect($types, Posts::DESIGN) !== []) {
            return array_map(static fn (string $type): string => "posts:$type", $types);
        }
        foreach (self::terms($query) as $term) {
            $names[] = "posts:term:$term";
        }
        if ($names !== []) {
            return $names;
        }
        foreach (self::numbers([$variables['author'] ?? 0, ...(array) ($variables['author__in'] ?? [])]) as $author) {
            $names[] = "posts:user:$author";
        }
        if ($names !== []) {
            return $names;
        }
        $year = (int) ($variables['year'] ?? 0);
        if ($year > 0) {
            $date = \sprintf('%04d', $year);
            $month = (int) ($variables['monthnum'] ?? 0);
            $day = (int) ($variables['day'] ?? 0);
            $date .= $month > 0 ? \sprintf('-%02d', $month) : '';
            $date .= $month > 0 && $day > 0 ? \sprintf('-%02d', $day) : '';

            return ["posts:date:$date"];
        }

        return array_map(static fn (string $type): string => "posts:$type", $types);
    }

    /**
     * The terms of which a post must have one. None where a query asks for something else as well as terms,
     * or for posts without a term.
     *
     * @return list<int>
     */
    private static function terms(\WP_Query $query): array
    {
        $conditions = $query->tax_query;
        if (!$conditions instanceof \WP_Tax_Query || $conditions->relation === 'OR' && \count($conditions->queries) > 2) {
            return [];
        }
        $known = $query->is_main_query() ? get_queried_object() : null;
        $numbers = [];
        foreach ((array) $conditions->queried_terms as $taxonomy => $asked) {
            if ($taxonomy === 'wp_theme') {
                continue;
            }
            foreach ((array) ($asked['terms'] ?? []) as $term) {
                $field = (string) ($asked['field'] ?? 'term_id');
                if ($known instanceof \WP_Term && $known->taxonomy === $taxonomy && (string) $known->$field === (string) $term) {
                    $numbers[] = $known->term_id;
                    continue;
                }
                $found = get_term_by($field === 'term_id' ? 'id' : $field, $term, (string) $taxonomy);
                if (!$found instanceof \WP_Term) {
                    // There may be such a term later.
                    return [];
                }
                $numbers[] = $found->term_id;
            }
        }

        return $numbers;
    }

    /**
     * @return list<string>
     */
    private static function types(\WP_Query $query): array
    {
        $types = [];
        foreach ((array) ($query->query_vars['post_type'] ?? '') as $type) {
            if (\is_string($type) && $type !== '') {
                $types[] = $type;
            }
        }
        if ($types !== []) {
            return $types;
        }

        return $query->is_search() || $query->is_tax() || $query->is_author() ? ['any'] : ['post'];
    }

    /**
     * Whether only templates and styles are asked for.
     */
    private static function isOfDesign(\WP_Query $query): bool
    {
        return array_diff(self::types($query), Posts::DESIGN) === [];
    }

    /**
     * WordPress looks for the posts of the front page also where it then shows others, or none.
     */
    private static function isForNothing(\WP_Query $query): bool
    {
        return $query->is_main_query() && ($query->get('sitemap') !== '' || $query->get('sitemap-stylesheet') !== '' || $query->is_robots() || $query->is_favicon());
    }

    private static function isOfSeenTypes(\WP_Query $query): bool
    {
        return array_filter(self::types($query), Posts::isOfSeenType(...)) !== [];
    }

    /**
     * Whether more decides than what posts have for good: their text, their meta data, their titles.
     */
    private static function dependsOnMore(\WP_Query $query): bool
    {
        $variables = $query->query_vars;
        if (!empty($variables['meta_key']) || !empty($variables['meta_query'])) {
            return true;
        }

        // Searches are ordered by how well titles and texts fit.
        $known = empty($variables['s']) ? self::BY_LINK : [...self::BY_LINK, 'relevance'];

        return array_diff(self::orders($query), self::BY_DATE, $known) !== [];
    }

    /**
     * @return list<string>
     */
    private static function orders(\WP_Query $query): array
    {
        $orders = $query->query_vars['orderby'] ?? '';
        if ($orders === '') {
            return [];
        }

        return array_map(\strval(...), \is_array($orders) ? array_keys($orders) : explode(' ', (string) $orders));
    }

    /**
     * @param array<mixed> $values
     *
     * @return list<int>
     */
    private static function numbers(array $values): array
    {
        $numbers = [];
        foreach ($values as $value) {
            if (is_numeric($value) && (int) $value > 0) {
                $numbers[] = (int) $value;
            }
        }

        return $numbers;
    }
}
