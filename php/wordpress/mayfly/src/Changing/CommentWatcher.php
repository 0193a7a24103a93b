<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Changing;

use Mayfly\WordPress\ChangedTags;

/**
 * Comments that everybody sees, or saw. Those that wait for moderation concern no page.
 */
final class CommentWatcher implements Watcher
{
    public function __construct(private readonly ChangedTags $changed)
    {
    }

    public function watch(): void
    {
        add_action('wp_insert_comment', function ($id, $comment): void {
            if ($comment instanceof \WP_Comment && (string) $comment->comment_approved === '1') {
                $this->changed($comment, true);
            }
        }, 10, 2);
        add_action('transition_comment_status', function ($now, $before, $comment): void {
            if ($comment instanceof \WP_Comment) {
                $this->held($comment);
            }
            if ($comment instanceof \WP_Comment && ($now === 'approved' || $before === 'approved')) {
                $this->changed($comment, true);
            }
        }, 10, 3);
        add_action('delete_comment', function ($id, $comment): void {
            if ($comment instanceof \WP_Comment) {
                $this->held($comment);
            }
            if ($comment instanceof \WP_Comment && (string) $comment->comment_approved === '1') {
                $this->changed($comment, true);
            }
        }, 10, 2);
        foreach (['edit_comment', 'added_comment_meta', 'updated_comment_meta', 'deleted_comment_meta'] as $hook) {
            add_action($hook, function ($id, $of = null) use ($hook): void {
                $comment = get_comment($hook === 'edit_comment' ? (int) $id : (int) $of);
                if ($comment instanceof \WP_Comment && (string) $comment->comment_approved === '1') {
                    $this->changed($comment, false);
                }
            }, 10, 2);
        }
        // All comments of a post go with it, and come back with it.
        foreach (['trashed_post_comments', 'untrashed_post_comments'] as $hook) {
            add_action($hook, function ($post): void {
                $this->changed->add('comments:' . (int) $post, 'commented:' . (int) $post, 'comments');
            });
        }
    }

    public function finish(): void
    {
    }

    /**
     * A row of the table, before a statement and at the end: also a comment that is moved to another post.
     *
     * @param array<string, string|null>|null $before
     * @param array<string, string|null>|null $after
     */
    public function row(?array $before, ?array $after): void
    {
        $isOther = $before === null || $after === null
            || $before['comment_post_ID'] !== $after['comment_post_ID'] || $before['comment_approved'] !== $after['comment_approved'];
        foreach (array_filter([$before, $after]) as $row) {
            $comment = new \WP_Comment((object) $row);
            $this->held($comment);
            if ((string) $comment->comment_approved === '1') {
                $this->changed($comment, $isOther);
            }
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
            $comment = get_comment((int) $row['comment_id']);
            if ($comment instanceof \WP_Comment && (string) $comment->comment_approved === '1') {
                $this->changed($comment, false);
            }
        }
    }

    /**
     * Its author sees it before it is approved.
     */
    private function held(\WP_Comment $comment): void
    {
        $this->changed->add("held:$comment->comment_ID", 'table:comments');
    }

    /**
     * @param bool $isOther whether it came or went
     */
    private function changed(\WP_Comment $comment, bool $isOther): void
    {
        $this->changed->add("comment:$comment->comment_ID", "comments:$comment->comment_post_ID");
        $above = (int) $comment->comment_parent > 0 ? get_comment((int) $comment->comment_parent) : null;
        if ($above instanceof \WP_Comment && (int) $above->comment_post_ID !== (int) $comment->comment_post_ID) {
            $this->changed->add("comments:$above->comment_post_ID");
        }
        if ($isOther) {
            $this->changed->add('comments', "commented:$comment->comment_post_ID");
        }
    }
}
