<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\PageTags;

/**
 * Which comments a page shows: all of a post, or the newest of all posts.
 */
final class CommentReader implements Reader
{
    public function __construct(private readonly PageTags $tags)
    {
    }

    public function watch(): void
    {
        add_action('pre_get_comments', function ($query): void {
            $post = $query instanceof \WP_Comment_Query ? (int) ($query->query_vars['post_id'] ?? 0) : 0;
            $this->tags->add($post > 0 ? "comments:$post" : 'comments');
        }, \PHP_INT_MAX);
        add_filter('get_comment', function ($comment) {
            if ($comment instanceof \WP_Comment) {
                $this->tags->addComment((int) $comment->comment_ID, (int) $comment->comment_post_ID);
            }

            return $comment;
        }, \PHP_INT_MAX);
    }

    public function finish(): void
    {
    }
}
