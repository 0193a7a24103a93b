<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * Which meta data of users no page shows: those of the dashboard, of sessions and of rights.
 */
final class Users
{
    private const OWN_META_PATTERN =
        '/^(?:session_tokens|_.*|community-events-location|default_password_nag|dismissed_wp_pointers|last_update'
        . '|rich_editing|syntax_highlighting|comment_shortcuts|admin_color|use_ssl|show_admin_bar_front|locale'
        . '|show_welcome_panel|nav_menu_recently_edited|managenav-menus.*|metaboxhidden_.*|closedpostboxes_.*'
        . '|meta-box-order_.*|screen_layout_.*|manage.*columnshidden|edit_.*_per_page'
        . '|.*(?:capabilities|user_level|user-settings|user-settings-time|persisted_preferences'
        . '|dashboard_quick_press_last_post_id))$/';

    public static function isSeenMeta(string $name): bool
    {
        return preg_match(self::OWN_META_PATTERN, $name) !== 1;
    }

    private function __construct()
    {
    }
}
