<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\Counters;
use Mayfly\WordPress\Lifetime;
use Mayfly\WordPress\Options;
use Mayfly\WordPress\PageTags;
use Mayfly\WordPress\TagNames;

/**
 * Which options a page is made of.
 *
 * WordPress reads thousands of options for a page, and most of them are of all pages. So each of the others is
 * watched by its name: those that are loaded at the start by
 * https://developer.wordpress.org/reference/hooks/pre_option_option/, and those that are not, or do not exist
 * yet, by the query that looks for them.
 */
final class OptionReader implements Reader
{
    /**
     * Functions of WordPress that read an option for each page, and show it on few: the scripts for dates, lists of
     * posts (`QueryReader` knows which are lists), and what the interface may say of users.
     */
    private const READ_UNSEEN = [
        'date_format' => self::DATE_SCRIPTS,
        'time_format' => self::DATE_SCRIPTS,
        'start_of_week' => self::DATE_SCRIPTS,
        'posts_per_page' => ['WP_Query::get_posts'],
        'show_avatars' => ['WP_REST_Users_Controller::get_item_schema', 'WP_REST_Comments_Controller::get_item_schema'],
    ];

    private const DATE_SCRIPTS = ['wp_default_packages_inline_scripts', 'wp_default_packages_vendor'];

    private const FRAMES = 10;

    /** @var array<string, true> tags of options that were read so */
    private array $unseen = [];

    private string $lookup = '';

    /** @var array<string, true> transients that were read */
    private array $transients = [];

    public function __construct(
        private readonly PageTags $tags,
        private readonly Options $options,
        private readonly Counters $counters,
        private readonly Lifetime $lifetime,
    ) {
    }

    public function watch(): void
    {
        global $wpdb;
        $this->tags->add(TagNames::SITE);
        $read = function ($value, $option) {
            $readers = self::READ_UNSEEN[$option] ?? [];
            if ($readers === [] || array_intersect($readers, self::callers()) === []) {
                $this->note("option:$option", (string) $option);
            } else {
                $this->unseen["option:$option"] = true;
            }

            return $value;
        };
        foreach ($this->options->ofSomePages(wp_load_alloptions()) as $option) {
            add_filter("pre_option_$option", $read, \PHP_INT_MAX, 2);
        }
        foreach (['user', 'comment'] as $kind) {
            add_filter("rest_prepare_$kind", function ($response) {
                $this->tags->add('option:show_avatars');

                return $response;
            }, \PHP_INT_MAX);
        }
        $this->lookup = "SELECT option_value FROM $wpdb->options WHERE option_name = '";
        add_filter('query', function ($query) {
            if (\is_string($query) && str_starts_with($query, $this->lookup)) {
                $option = stripslashes((string) strstr(substr($query, \strlen($this->lookup)), "' LIMIT 1", true));
                $tag = $option === '' ? null : $this->options->tag($option);
                if ($tag !== null) {
                    $this->note($tag, $option);
                }
            }

            return $query;
        }, \PHP_INT_MAX);
    }

    /**
     * @return list<string>
     */
    private static function callers(): array
    {
        return array_map(
            static fn (array $frame): string => (isset($frame['class']) ? "$frame[class]::" : '') . $frame['function'],
            debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, self::FRAMES + 1),
        );
    }

    public function finish(): void
    {
        $ofDates = array_diff_key($this->unseen, ['option:posts_per_page' => true, 'option:show_avatars' => true]);
        if ($ofDates !== [] && (wp_script_is('wp-date', 'done') || wp_script_is('moment', 'done'))) {
            array_map($this->tags->add(...), array_keys($ofDates));
        }
        // WordPress makes them anew when their time is over, and the page has read that time with them.
        foreach (array_keys($this->transients) as $name) {
            $end = get_option(Options::endOfTransient((string) $name));
            if (is_numeric($end)) {
                $this->lifetime->atMost((int) $end - time());
            }
        }
        $this->transients = [];
    }

    private function note(string $tag, string $option): void
    {
        $this->tags->add($tag);
        $this->counters->read("option:$option");
        if (Options::isTransient($option)) {
            $this->transients[$option] = true;
        }
    }
}
