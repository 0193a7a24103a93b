<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\Changing\TableWatcher;
use Mayfly\WordPress\Counters;
use Mayfly\WordPress\Lifetime;
use Mayfly\WordPress\PageTags;
use Mayfly\WordPress\Tables;

/**
 * Which tables a page is made of, where no hook tells more: those of plug-ins, and WordPress's own when a theme or a
 * plug-in reads them by a statement of its own.
 *
 * What goes past `wpdb` (a connection of a plug-in's own, a request to another server) is not seen, only that it
 * was there.
 */
final class TableReader implements Reader
{
    /** Tables of WordPress of which no hook tells. */
    private const WITHOUT_HOOKS = ['links' => true];

    /**
     * Functions of WordPress that read without a hook, and what they read in the words of tags.
     * https://developer.wordpress.org/reference/functions/count_users/
     */
    private const FUNCTIONS_WITHOUT_HOOKS = [
        'count_users' => ['users'],
        'wp_count_comments' => ['comments'],
        'get_comment_count' => ['comments'],
        'count_user_posts' => ['posts:any'],
        'count_many_users_posts' => ['posts:any'],
        'get_lastcommentmodified' => ['comments'],
        'get_lastpostmodified' => ['posts:any:any'],
        'get_page_by_title' => ['posts:any', 'missing'],
    ];

    /** Says that drafts are not asked for. */
    private const PUBLISHED_PATTERN = '/^(?!.*\bOR\b).*\bpost_status\s*=\s*[\'"]publish[\'"]/is';

    /** The frames between a statement and whoever asked for it. */
    private const FRAMES = 9;

    private int $commandsBefore = 0;

    private int $statementsBefore = 0;

    public function __construct(
        private readonly PageTags $tags,
        private readonly Tables $tables,
        private readonly Counters $counters,
        private readonly Lifetime $lifetime,
    ) {
    }

    public function watch(): void
    {
        global $wpdb;
        $this->commandsBefore = self::commands();
        $this->statementsBefore = (int) $wpdb->num_queries;
        add_filter('query', function ($statement) {
            if (\is_string($statement)) {
                $this->note($statement);
            }

            return $statement;
        }, \PHP_INT_MAX);
        // What another server says now is not known to change; what is kept of it in a transient ends with that.
        add_filter('pre_http_request', function ($answer, $arguments) {
            if (($arguments['blocking'] ?? true) !== false) {
                $this->lifetime->changesUnseen();
            }

            return $answer;
        }, \PHP_INT_MAX, 2);
    }

    public function finish(): void
    {
        global $wpdb;
        if (wp_using_ext_object_cache() || $wpdb::class !== 'wpdb') {
            // They answer without asking the database, or ask another one.
            $this->lifetime->isUnknown();
        } elseif (self::commands() - $this->commandsBefore - TableWatcher::$asked > (int) $wpdb->num_queries - $this->statementsBefore) {
            $this->lifetime->changesUnseen();
        }
    }

    /**
     * How many commands this process has sent to databases, over all connections: mysqli and PDO count them.
     */
    private static function commands(): int
    {
        $counted = \function_exists('mysqli_get_client_stats') ? mysqli_get_client_stats() : [];

        return (int) ($counted['com_query'] ?? 0) + (int) ($counted['com_stmt_execute'] ?? 0);
    }

    private function note(string $statement): void
    {
        if (!Tables::isReading($statement)) {
            if (!Tables::isHarmless($statement) && !Tables::isWriting($statement)) {
                // A procedure of the database may do anything.
                $this->lifetime->isUnknown();
            }

            return;
        }
        // WordPress's own statements have the site's prefix before each table, also where plug-ins add to them.
        $isOfWordPress = $this->isOfWordPress($statement);
        $names = $isOfWordPress ? $this->tables->prefixed($statement) : $this->tables->named($statement);
        if ($names === null) {
            $this->lifetime->isUnknown();

            return;
        }
        foreach ($names as $name) {
            $own = $this->tables->own($name);
            if ($own === null || isset(self::WITHOUT_HOOKS[$own])) {
                $this->table($own ?? $name);
            } elseif (!$isOfWordPress) {
                $this->table($own);
                if ($own === 'posts' && preg_match(self::PUBLISHED_PATTERN, $statement) !== 1) {
                    $this->table('posts:any');
                }
            }
        }
    }

    private function table(string $name): void
    {
        $this->tags->add("table:$name");
        $this->counters->read("table:$name");
    }

    /**
     * Whether a function of WordPress has made the statement: then hooks tell what it is about.
     */
    private function isOfWordPress(string $statement): bool
    {
        $frames = debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, self::FRAMES);
        foreach ($frames as $at => $frame) {
            $next = $frames[$at + 1] ?? [];
            if (($frame['class'] ?? '') !== 'wpdb' || ($next['class'] ?? '') === 'wpdb') {
                continue;
            }
            $function = $next['function'] ?? '';
            // The head of a feed says when anything changed last; visitors see of it what the feed says.
            if (!\in_array('send_headers', array_column($frames, 'function'), true)) {
                foreach (self::FUNCTIONS_WITHOUT_HOOKS[$function] ?? [] as $name) {
                    $this->tags->add($name);
                }
            }
            if ($function === 'get_page_by_path') {
                $this->pagesByName($statement);
            }
            $file = strtr($frame['file'] ?? '', '\\', '/');

            return str_starts_with($file, self::folder(ABSPATH . WPINC)) || str_starts_with($file, self::folder(ABSPATH . 'wp-admin'));
        }

        return false;
    }

    /**
     * Pages that are looked for by their address, and may not be there yet.
     */
    private function pagesByName(string $statement): void
    {
        if (preg_match('/\bpost_name IN \(([^)]*)\)/', $statement, $list) === 1) {
            preg_match_all("/'([^']+)'/", $list[1], $names);
            foreach ($names[1] as $name) {
                $this->tags->add("posts:page:name:$name");
            }
        }
    }

    private static function folder(string $path): string
    {
        static $real = [];

        return $real[$path] ??= strtr(realpath($path) ?: $path, '\\', '/') . '/';
    }
}
