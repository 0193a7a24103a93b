<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

use Mayfly\Tag;

/**
 * The names of tags. They begin with a few letters of the site's own, because one server may keep the
 * pages of many sites and a tag is purged on all of them.
 *
 *     post:5              all of a post, page, attachment, template, ...
 *     link:5              what a link to it shows: title, address, date, status
 *     adjacent:5          which posts are before and after it
 *     posts:TYPE          which posts of a type are public
 *     posts:TYPE:any      anything of any public post of a type: orders, searches and meta data
 *     posts:TYPE:link     what links to any public post of a type show: orders by title
 *     posts:TYPE:name:X   the post of a type with this name
 *     posts:term:7        which posts a term has; posts:user:3, posts:date:2026-11 likewise
 *     posts:TYPE:text     what searches find
 *     posts:sticky        which posts are sticky; sticky:5, whether one is
 *     term:7  text:7      a term; its description, or the name of a menu
 *     term:7:meta         its meta data; with :count, its number of posts
 *     slug:7              its address, as the classes of a post have it
 *     terms:TAXONOMY      which terms have posts; with :empty, which terms there are; with :count, how many
 *     user:3              a user's name and addresses; with :meta, what else is known of the user
 *     users  writers      which users there are; which have written something
 *     comments:5          the comments of a post; commented:5, their number
 *     comment:9  comments a comment; which comments are newest
 *     held:9              a comment that waits, which its author sees
 *     menu:2              a menu
 *     sidebar:NAME        the widgets of a sidebar
 *     option:NAME         an option
 *     table:NAME          a table of a plug-in, or one of WordPress's that is read by a statement
 *     file:HASH           a template of a theme; template:NAME, one that a page would have, were it there
 *     pattern:SLUG        a pattern of a theme
 *     missing             what is not there yet
 *     document            all pages for browsers: not feeds, sitemaps and the interface
 *     site                all pages
 *     all:KIND            any tag whose first part is KIND: of a page that has too many of them
 */
final class TagNames
{
    public const SITE = 'site';
    public const DOCUMENT = 'document';
    public const MISSING = 'missing';
    public const ALL = 'all';

    private const SITE_LETTERS = 6;

    /** @var array<int, string> by number of the site in a network */
    private array $prefixes = [];

    /**
     * @param string $installation what no other installation has
     */
    public function __construct(private readonly string $installation)
    {
    }

    public static function ofThisInstallation(): self
    {
        global $wpdb;
        $key = \defined('AUTH_KEY') ? (string) \constant('AUTH_KEY') : '';

        return new self(implode('|', [\DB_HOST, \DB_NAME, $wpdb->base_prefix, $key]));
    }

    /**
     * A name as tags have it, with the letters of a site of the network, or the current one.
     */
    public function full(string $name, ?int $site = null): string
    {
        $site ??= get_current_blog_id();
        $this->prefixes[$site] ??= substr(hash('sha256', "$this->installation|$site"), 0, self::SITE_LETTERS) . ':';

        return Tag::encode($this->prefixes[$site] . $name);
    }

    /**
     * The first part of a full name, without the site's letters.
     */
    public static function kind(string $full): string
    {
        return explode(':', $full, 3)[1] ?? '';
    }

    /**
     * The full name that stands for all names of a kind on the same site.
     */
    public static function allOf(string $full): string
    {
        return explode(':', $full, 2)[0] . ':' . self::ALL . ':' . self::kind($full);
    }
}
