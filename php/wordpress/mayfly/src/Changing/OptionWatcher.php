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

    public function __construct(private readonly ChangedTags $changed, private readonly Options $options)
    {
    }

    public function watch(): void
    {
        add_action('updated_option', function ($name, $before, $after): void {
            $this->changed((string) $name, $before, $after);
        }, 10, 3);
        add_action('added_option', function ($name, $value): void {
            $this->changed((string) $name, null, $value);
        }, 10, 2);
        // What is deleted can be read only before.
        add_action('delete_option', function ($name): void {
            $this->changed((string) $name, get_option((string) $name), null);
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

    private function changed(string $name, mixed $before, mixed $after): void
    {
        if ($name === 'sticky_posts') {
            $this->sticky((array) $before, (array) $after);
        } elseif ($name === 'sidebars_widgets') {
            $this->sidebars((array) $before, (array) $after);
        } elseif (str_starts_with($name, self::WIDGET)) {
            $this->widgets(substr($name, \strlen(self::WIDGET)), (array) $before, (array) $after);
        } else {
            $tag = $this->options->tag($name);
            if ($tag !== null) {
                $this->changed->add($this->isWatched($name, $before === null) ? $tag : TagNames::SITE);
            }
        }
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
            $this->changed->add('post:' . (int) $number);
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
