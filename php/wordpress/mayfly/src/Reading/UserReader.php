<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\PageTags;
use Mayfly\WordPress\Users;

/**
 * Which users a page shows. WordPress reads the meta data of each user of which it makes a `WP_User`.
 */
final class UserReader implements Reader
{
    /** What is known of a user without meta data. */
    private const FIELDS = ['ID', 'display_name', 'user_email', 'user_login', 'user_nicename', 'user_registered', 'user_status', 'user_url'];

    /** The frames between the meta data of a user and a post that is prepared. */
    private const FRAMES = 16;

    public function __construct(private readonly PageTags $tags)
    {
    }

    public function watch(): void
    {
        add_filter('get_user_metadata', function ($value, $user, $name) {
            if ((int) $user > 0 && !(str_ends_with((string) $name, 'capabilities') && self::isOnlyPrepared())) {
                $this->tags->add('user:' . (int) $user);
                if (Users::isSeenMeta((string) $name)) {
                    $this->tags->add('user:' . (int) $user . ':meta');
                }
            }

            return $value;
        }, \PHP_INT_MAX, 3);
        // What is shown of the author of a post.
        foreach (self::FIELDS as $field) {
            add_filter("get_the_author_$field", function ($value, $user) {
                $this->tags->add('user:' . (int) $user);

                return $value;
            }, \PHP_INT_MAX, 2);
        }
        add_filter('the_author', function ($name) {
            global $authordata;
            if ($authordata instanceof \WP_User) {
                $this->tags->add("user:$authordata->ID");
            }

            return $name;
        }, \PHP_INT_MAX);
        add_filter('author_link', function ($link, $user) {
            $this->tags->add('user:' . (int) $user);

            return $link;
        }, \PHP_INT_MAX, 2);
        // Lists of users are mostly of those who have written something.
        add_action('pre_get_users', function (): void {
            $this->tags->add('users');
            $this->tags->add('writers');
        });
    }

    /**
     * Whether a user is read because a post is prepared for a template, which may show its author or not.
     */
    private static function isOnlyPrepared(): bool
    {
        $functions = array_column(debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, self::FRAMES), 'function');
        $at = array_search('get_userdata', $functions, true);

        return $at !== false && \in_array($functions[$at + 1] ?? '', ['generate_postdata', 'setup_postdata'], true);
    }

    public function finish(): void
    {
    }
}
