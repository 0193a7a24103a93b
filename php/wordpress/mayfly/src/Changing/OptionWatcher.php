<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Changing;

use Mayfly\WordPress\ChangedTags;
use Mayfly\WordPress\Options;
use Mayfly\WordPress\TagNames;

/**
 * Options, widgets, themes and plug-ins.
 */
final class OptionWatcher implements Watcher
{
    private const WIDGET = 'widget_';

    /**
     * @param bool $isPageView whether somebody looks at a page: then transients are made, which ends no page
     */
    public function __construct(
        private readonly ChangedTags $changed,
        private readonly Options $options,
        private readonly bool $isPageView,
    ) {
    }

    public function watch(): void
    {
        add_action('updated_option', function ($name, $before, $after): void {
            $this->changed((string) $name, $before, $after);
        }, 10, 3);
        add_action('added_option', function ($name, $value): void {
            if (!$this->isPageView || !Options::isTransient((string) $name)) {
                $this->changed((string) $name, null, $value);
            }
        }, 10, 2);
        // What is deleted can be read only before.
        add_action('delete_option', function ($name): void {
            if (!$this->hasEnded((string) $name)) {
                $this->changed((string) $name, get_option((string) $name), null);
            }
        });
        foreach (['switch_theme', 'upgrader_process_complete', 'activated_plugin', 'deactivated_plugin'] as $hook) {
            add_action($hook, function (): void {
                $this->changed->add(TagNames::SITE);
            });
        }
    }

    public function finish(): void
    {
    }

    /**
     * A row of the table, before a statement and at the end.
     *
     * @param array<string, string|null>|null $before
     * @param array<string, string|null>|null $after
     */
    public function row(?array $before, ?array $after): void
    {
        // Hooks have told what was added.
        $name = (string) ($before['option_name'] ?? '');
        if ($name !== '' && !$this->hasEnded($name)) {
            $value = static fn (?array $row): mixed => $row === null ? null : maybe_unserialize($row['option_value']);
            $this->changed($name, $value($before), $value($after));
        }
    }

    /**
     * Whether a transient is deleted because its time is over: pages that show it are not kept for longer.
     */
    private function hasEnded(string $name): bool
    {
        $end = Options::isTransient($name) ? get_option(Options::endOfTransient($name)) : false;

        return is_numeric($end) && (int) $end <= time();
    }

    private function changed(string $name, mixed $before, mixed $after): void
    {
        if ($name === 'sticky_posts') {
            $this->sticky((array) $before, (array) $after);
        } elseif ($name === 'sidebars_widgets') {
            $this->sidebars((array) $before, (array) $after);
        } elseif (str_starts_with($name, self::WIDGET)) {
            $this->widgets(substr($name, \strlen(self::WIDGET)), (array) $before, (array) $after);
        } elseif (!str_starts_with($name, 'theme_mods_') || self::mods($before) !== self::mods($after)) {
            $tag = $this->options->tag($name);
            if ($tag !== null) {
                $tags = [$this->isWatched($name, $before === null) ? $tag : TagNames::SITE, 'table:options'];
                $this->changed->addWritten("option:$name", ...$tags);
            }
        }
    }

    /**
     * Settings of a theme but for the number of its CSS, which WordPress notes when a page is made, and which has a
     * watcher of its own.
     *
     * @return array<mixed>
     */
    private static function mods(mixed $value): array
    {
        $mods = \is_array($value) ? $value : [];
        unset($mods['custom_css_post_id'], $mods[0]);

        return $mods;
    }

    /**
     * Whether pages know that they have read it: with an object cache, no query tells of an option that is not
     * loaded at the start.
     */
    private function isWatched(string $name, bool $isNew): bool
    {
        return !wp_using_ext_object_cache() || !$isNew && isset(wp_load_alloptions()[$name]);
    }

    /**
     * @param array<mixed> $before
     * @param array<mixed> $after
     */
    private function sticky(array $before, array $after): void
    {
        $numbers = [...array_diff($before, $after), ...array_diff($after, $before)];
        if ($numbers === []) {
            return;
        }
        $this->changed->add('posts:sticky');
        foreach (array_filter($numbers, \is_numeric(...)) as $number) {
            $this->changed->add('sticky:' . (int) $number);
        }
    }

    /**
     * @param array<mixed> $before
     * @param array<mixed> $after
     */
    private function sidebars(array $before, array $after): void
    {
        foreach (array_keys($before + $after) as $sidebar) {
            if (($before[$sidebar] ?? []) !== ($after[$sidebar] ?? [])) {
                $this->changed->add("sidebar:$sidebar");
            }
        }
    }

    /**
     * A widget is called `text-2`, and its settings are the element 2 of the option `widget_text`.
     *
     * @param array<mixed> $before
     * @param array<mixed> $after
     */
    private function widgets(string $kind, array $before, array $after): void
    {
        foreach (array_keys($before + $after) as $number) {
            if (($before[$number] ?? null) === ($after[$number] ?? null)) {
                continue;
            }
            foreach (wp_get_sidebars_widgets() as $sidebar => $widgets) {
                if (\is_array($widgets) && \in_array("$kind-$number", $widgets, true)) {
                    $this->changed->add("sidebar:$sidebar");
                }
            }
        }
    }
}
