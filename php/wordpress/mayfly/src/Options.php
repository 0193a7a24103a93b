<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * Which options pages are made of.
 */
final class Options
{
    /**
     * A change of these concerns all pages, and no page names them: WordPress reads them for each.
     */
    private const OF_ALL_PAGES = [
        'active_plugins', 'blog_charset', 'blog_public', 'category_base', 'comments_per_page', 'current_theme',
        'home', 'html_type', 'link_manager_enabled', 'permalink_structure', 'siteurl', 'stylesheet', 'stylesheet_root', 'tag_base', 'template', 'template_root', 'gmt_offset',
        'timezone_string', 'upload_path', 'upload_url_path', 'use_smilies', 'WPLANG',
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
        'uninstall_plugins', 'uploads_use_yearmonth_folders', 'wp_force_deactivated_plugins',
    ];

    /**
     * Transients whose changes are told otherwise, or that pages have nothing of, and names that are made: locks, caches
     * of hierarchies, widgets, and this plug-in's own.
     */
    private const OF_NO_PAGE_PATTERN =
        '/^(?:_site)?_transient_(?:timeout_|doing_cron$|is_multi_author$|global_styles|wp_core_block|wp_styles_for_blocks|theme_roots$'
        . '|wp_theme_files_patterns|update_|dash_|dirsize_cache$|health-check|browser_|php_check_|community-events|wp_remote_block_patterns'
        . '|available_translations$|poptags_|plugin_slugs$|wporg_theme_feature_list$|popular_importers)'
        . '|^(?:_wp_|widget_|mayfly_|auto_core_update|finished_)|(?:\.lock|_children|_user_roles)$/D';

    private const TRANSIENT_PATTERN = '/^(_site)?_transient_(?!timeout_)/';

    /** The sizes of images, in which every image on a page is offered. */
    private const SIZES = ['thumbnail_', 'medium_', 'large_', 'image_default_'];

    /** @var array<string, 'site'|'none'|'option'> */
    private array $kinds;

    public function __construct()
    {
        $this->kinds = array_fill_keys(self::OF_ALL_PAGES, 'site') + array_fill_keys(self::OF_NO_PAGE, 'none');
    }

    public static function isTransient(string $option): bool
    {
        return preg_match(self::TRANSIENT_PATTERN, $option) === 1;
    }

    /**
     * The option that says when a transient ends.
     */
    public static function endOfTransient(string $option): string
    {
        return (string) preg_replace(self::TRANSIENT_PATTERN, '$1_transient_timeout_', $option);
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
        $names = preg_grep(self::OF_NO_PAGE_PATTERN, $names, \PREG_GREP_INVERT) ?: [];

        return array_values(array_filter($names, fn (string $name): bool => $this->kind($name) === 'option'));
    }

    /**
     * @return 'site'|'none'|'option'
     */
    private function kind(string $option): string
    {
        if (preg_match(self::OF_NO_PAGE_PATTERN, $option) === 1) {
            return 'none';
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
