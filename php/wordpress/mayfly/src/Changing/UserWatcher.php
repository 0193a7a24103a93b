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

    public function __construct(private readonly ChangedTags $changed)
    {
    }

    public function watch(): void
    {
        add_action('profile_update', function ($id, $before): void {
            $after = get_userdata((int) $id);
            $this->compare((int) $id, (array) ($before->data ?? []), $after instanceof \WP_User ? (array) $after->data : []);
        }, 10, 2);
        foreach (['user_register', 'deleted_user'] as $hook) {
            add_action($hook, function ($id): void {
                // Their posts may have got another author.
                $this->changed->add("user:$id", "user:$id:meta", 'users', 'writers', "posts:user:$id", 'missing', 'table:users');
            });
        }
        foreach (['added_user_meta', 'updated_user_meta', 'deleted_user_meta'] as $hook) {
            add_action($hook, function ($meta, $id, $name): void {
                $this->meta((int) $id, (string) $name);
            }, 10, 3);
        }
    }

    /**
     * A row of the table, before a statement and at the end. Hooks tell who comes and goes.
     *
     * @param array<string, string|null>|null $before
     * @param array<string, string|null>|null $after
     */
    public function row(?array $before, ?array $after): void
    {
        if ($before !== null && $after !== null) {
            $this->compare((int) $after['ID'], $before, $after);
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
            $this->meta((int) $row['user_id'], (string) $row['meta_key']);
        }
    }

    /**
     * @param array<string, mixed> $before
     * @param array<string, mixed> $after
     */
    private function compare(int $id, array $before, array $after): void
    {
        foreach (self::FIELDS as $field) {
            if ((string) ($before[$field] ?? '') !== (string) ($after[$field] ?? '')) {
                $this->changed->add("user:$id", 'users', 'missing', 'table:users');

                return;
            }
        }
    }

    private function meta(int $id, string $name): void
    {
        if (str_ends_with($name, 'capabilities')) {
            $this->changed->add('users', 'table:usermeta');
        } elseif ($id > 0 && Users::isSeenMeta($name)) {
            $this->changed->addWritten("usermeta:$name", "user:$id:meta", 'table:usermeta');
        }
    }

    public function finish(): void
    {
    }
}
