<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * Which options pages are made of.
 */
final class Options
{
    /**
     * A change of these concerns all pages, and no page names them: each page has something of most, and the
     * others are settings of WordPress that change once in a year. So a page names options of plug-ins alone.
     */
    private const OF_ALL_PAGES = [
        'active_plugins', 'avatar_default', 'avatar_rating', 'blog_charset', 'blog_public', 'blogdescription',
        'blogname', 'category_base', 'close_comments_days_old', 'close_comments_for_old_posts', 'comment_order',
        'comment_registration', 'comments_per_page', 'current_theme', 'date_format', 'default_comments_page',
        'gmt_offset', 'home', 'html_type', 'link_manager_enabled', 'page_comments', 'page_for_posts',
        'page_on_front', 'permalink_structure', 'posts_per_page', 'posts_per_rss', 'require_name_email',
        'rss_use_excerpt', 'show_avatars', 'show_comments_cookies_opt_in', 'show_on_front', 'site_icon',
        'site_logo', 'siteurl', 'start_of_week', 'stylesheet', 'stylesheet_root', 'tag_base', 'template',
        'template_root', 'thread_comments', 'thread_comments_depth', 'time_format', 'timezone_string',
        'upload_path', 'upload_url_path', 'use_balanceTags', 'use_smilies', 'use_trackback', 'users_can_register',
        'wp_page_for_privacy_policy', 'WPLANG',
    ];

    /**
     * Of these, no page has anything: what WordPress notes for itself, what only editors and mail see, and
     * what has a tag of another name (widgets, sticky posts).
     */
    private const OF_NO_PAGE = [
        'admin_email', 'adminhash', 'auto_plugin_theme_update_emails', 'blacklist_keys',
        'can_compress_scripts', 'comment_max_links', 'comment_moderation', 'comment_previously_approved',
        'comments_notify', 'cron', 'db_upgraded', 'db_version', 'default_category', 'default_comment_status',
        'default_email_category', 'default_ping_status', 'default_pingback_flag', 'default_post_format',
        'default_role', 'disallowed_keys', 'fresh_site', 'hack_file', 'https_detection_errors', 'initial_db_version',
        'mailserver_login', 'mailserver_pass', 'mailserver_port', 'mailserver_url', 'moderation_keys',
        'moderation_notify', 'nav_menu_options', 'new_admin_email', 'ping_sites', 'recently_activated',
        'recently_edited', 'rewrite_rules', 'sidebars_widgets', 'sticky_posts', 'theme_switched',
        'uninstall_plugins', 'uploads_use_yearmonth_folders', 'user_count', 'wp_force_deactivated_plugins',
    ];

    /** Names that are made: transients, locks, caches of hierarchies, widgets, and this plug-in's own. */
    private const BEGINNINGS_OF_NO_PAGE = [
        '_transient', '_site_transient', '_wp_', 'widget_', 'mayfly_', 'auto_core_update', 'finished_',
    ];
    private const ENDS_OF_NO_PAGE = ['.lock', '_children', '_user_roles'];

    /** The sizes of images, in which every image on a page is offered. */
    private const SIZES = ['thumbnail_', 'medium_', 'large_', 'image_default_'];

    /** @var array<string, 'site'|'none'|'option'> */
    private array $kinds;

    public function __construct()
    {
        $this->kinds = array_fill_keys(self::OF_ALL_PAGES, 'site') + array_fill_keys(self::OF_NO_PAGE, 'none');
    }

    /**
     * The tag of an option, or null if no page has anything of it.
     */
    public function tag(string $option): ?string
    {
        return match ($this->kinds[$option] ??= $this->kind($option)) {
            'site' => TagNames::SITE,
            'none' => null,
            'option' => "option:$option",
        };
    }

    /**
     * Those of the options that are on some pages and not on others. It is asked for each page, and so the many
     * that are known by their names are taken out at once.
     *
     * @param array<string, mixed> $options by name
     *
     * @return list<string>
     */
    public function ofSomePages(array $options): array
    {
        $names = array_map(\strval(...), array_keys(array_diff_key($options, $this->kinds)));

        return array_values(array_filter($names, fn (string $name): bool => $this->kind($name) === 'option'));
    }

    /**
     * @return 'site'|'none'|'option'
     */
    private function kind(string $option): string
    {
        foreach (self::BEGINNINGS_OF_NO_PAGE as $beginning) {
            if (str_starts_with($option, $beginning)) {
                return 'none';
            }
        }
        foreach (self::ENDS_OF_NO_PAGE as $end) {
            if (str_ends_with($option, $end)) {
                return 'none';
            }
        }
        foreach (self::SIZES as $beginning) {
            if (str_starts_with($option, $beginning)) {
                return 'site';
            }
        }
        if (str_starts_with($option, 'theme_mods_')) {
            // Each page has the menus, colours and the logo of its theme. Other themes are not seen.
            return $option === 'theme_mods_' . get_stylesheet() ? 'site' : 'none';
        }

        return 'option';
    }
}
