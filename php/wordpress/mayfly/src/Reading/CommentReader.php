<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\Lifetime;
use Mayfly\WordPress\PageTags;

/**
 * Which comments a page shows: all of a post, or the newest of all posts.
 */
final class CommentReader implements Reader
{
    /** So long a comment that waits is shown to its author: wp_get_unapproved_comment_author_email(). */
    private const PREVIEW_SECONDS = 600;

    public function __construct(private readonly PageTags $tags, private readonly Lifetime $lifetime)
    {
    }

    public function watch(): void
    {
        add_action('pre_get_comments', function ($query): void {
            $asked = $query instanceof \WP_Comment_Query ? $query->query_vars : [];
            $posts = array_filter(wp_parse_id_list([$asked['post_id'] ?? 0, ...wp_parse_id_list($asked['post__in'] ?? [])]));
            if ($posts === [] && is_numeric($asked['parent'] ?? '') && (int) $asked['parent'] > 0) {
                // Replies are mostly of the same post; those of another are told of as well (`CommentWatcher`).
                $posts = array_filter([(int) (get_comment((int) $asked['parent'])->comment_post_ID ?? 0)]);
            }
            foreach ($posts as $post) {
                $this->tags->add("comments:$post");
            }
            if ($posts === []) {
                $this->tags->add('comments');
            }
        }, \PHP_INT_MAX);
        add_filter('get_comment', function ($comment) {
            if ($comment instanceof \WP_Comment) {
                $this->tags->addComment((int) $comment->comment_ID, (int) $comment->comment_post_ID);
                // Whether it may be shown is a matter of its post.
                $this->tags->add("link:$comment->comment_post_ID");
                if ((string) $comment->comment_approved !== '1') {
                    $this->tags->add("held:$comment->comment_ID");
                    $this->lifetime->atMost((int) strtotime("$comment->comment_date_gmt GMT") + self::PREVIEW_SECONDS - time());
                }
            }

            return $comment;
        }, \PHP_INT_MAX);
    }

    public function finish(): void
    {
    }
}
