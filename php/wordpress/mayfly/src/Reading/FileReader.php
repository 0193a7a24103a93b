<?php

declare(strict_types=1);

namespace Mayfly\WordPress\Reading;

use Mayfly\WordPress\Files;
use Mayfly\WordPress\PageTags;

/**
 * Which templates of its theme a page is made with. All other files are of all pages.
 */
final class FileReader implements Reader
{
    /** How many of the included files are noted. */
    private int $noted = 0;

    public function __construct(private readonly PageTags $tags)
    {
    }

    public function watch(): void
    {
        // The names of the templates that would be taken, were they there.
        foreach (Files::TYPES as $type) {
            add_filter("{$type}_template_hierarchy", function ($templates) {
                foreach (\is_array($templates) ? $templates : [] as $template) {
                    $this->tags->add('template:' . preg_replace('/\.php$/', '', (string) $template));
                }

                return $templates;
            }, \PHP_INT_MAX);
        }
        // Themes of blocks: those of which one is taken, and the parts in it.
        add_filter('get_block_templates', function ($templates) {
            foreach (\is_array($templates) ? $templates : [] as $template) {
                $this->template((string) ($template->slug ?? ''));
            }

            return $templates;
        }, \PHP_INT_MAX);
        add_action('render_block_core_template_part_file', function ($id, $attributes, $path): void {
            $this->file((string) $path);
        }, 10, 3);
    }

    public function finish(): void
    {
        $files = get_included_files();
        $new = \array_slice($files, $this->noted);
        $this->noted = \count($files);
        if ($new === []) {
            return;
        }
        foreach (array_unique(array_map(self::real(...), [get_stylesheet_directory(), get_template_directory()])) as $folder) {
            array_map($this->file(...), array_filter($new, static fn (string $path): bool => str_starts_with($path, $folder)));
        }
    }

    private static function real(string $folder): string
    {
        return (realpath($folder) ?: $folder) . '/';
    }

    /**
     * A child theme's template takes the place of the parent's.
     */
    private function template(string $slug): void
    {
        foreach (array_unique([get_stylesheet_directory(), get_template_directory()]) as $folder) {
            foreach (['templates', 'block-templates'] as $kind) {
                if ($slug !== '' && is_file("$folder/$kind/$slug.html")) {
                    $this->file("$folder/$kind/$slug.html");
                }
            }
        }
    }

    private function file(string $path): void
    {
        if (Files::isOfSomePages($path)) {
            $this->tags->add(Files::tag($path));
        }
    }
}
