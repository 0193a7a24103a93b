<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Changing;

use Mayfly\WordPress\ChangedTags;
use Mayfly\WordPress\Users;

/**
 * Users as pages show them: their names, addresses and biographies, but neither sessions nor settings.
 */
final class UserWatcher implements Watcher
{
    private const FIELDS = ['user_nicename', 'user_email', 'user_url', 'display_name'];

    /**
     * @param bool $isPageView whether somebody only looks at a page: what is counted then is no edit
     */
    public function __construct(private readonly ChangedTags $changed, private readonly bool $isPageView)
    {
    }

    public function watch(): void
    {
        add_action('profile_update', function ($id, $before): void {
            $after = get_userdata((int) $id);
            foreach (self::FIELDS as $field) {
                if (!$after instanceof \WP_User || (string) $after->$field !== (string) ($before->$field ?? '')) {
                    $this->changed->add("user:$id", 'users', 'missing');

                    return;
                }
            }
        }, 10, 2);
        foreach (['user_register', 'deleted_user'] as $hook) {
            add_action($hook, function ($id): void {
                // Their posts may have got another author.
                $this->changed->add("user:$id", "user:$id:meta", 'users', "posts:user:$id", 'missing');
            });
        }
        if ($this->isPageView) {
            return;
        }
        foreach (['added_user_meta', 'updated_user_meta', 'deleted_user_meta'] as $hook) {
            add_action($hook, function ($meta, $id, $name): void {
                if (Users::isSeenMeta((string) $name)) {
                    $this->changed->add("user:$id:meta");
                }
            }, 10, 3);
        }
    }

    public function finish(): void
    {
    }
}
