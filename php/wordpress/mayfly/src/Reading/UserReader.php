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
    public function __construct(private readonly PageTags $tags)
    {
    }

    public function watch(): void
    {
        add_filter('get_user_metadata', function ($value, $user, $name) {
            if ((int) $user > 0) {
                $this->tags->add('user:' . (int) $user);
                if (Users::isSeenMeta((string) $name)) {
                    $this->tags->add('user:' . (int) $user . ':meta');
                }
            }

            return $value;
        }, \PHP_INT_MAX, 3);
        // Lists of users are mostly of those who have written something.
        add_action('pre_get_users', function (): void {
            $this->tags->add('users');
            $this->tags->add('posts:any');
        });
    }

    public function finish(): void
    {
    }
}
