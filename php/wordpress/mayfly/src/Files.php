<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

/**
 * The files that pages are made by: those of WordPress, of its configuration, of themes, plug-ins and must-use
 * plug-ins, and translations. Mayfly asks every few seconds whether one has changed (`X-Cache-Repeat`), so that a
 * deployment ends all pages. PHP is told as well, which otherwise runs the old file for a moment longer.
 *
 * Uploads are no such files, nor is what the folders above have of other kinds, such as logs.
 */
final class Files
{
    public const ACTION = 'mayfly_files';

    /** How often Mayfly asks. */
    public const SECONDS = 3;

    public const OPTION = 'mayfly_files';

    private const KINDS_PATTERN = '/\.(?:php|phtml|inc|html?|json|css|m?js|mo|l10n|twig|latte|mustache|hbs|tpl|xml|ya?ml|ini|svg)$/i';

    /** What WordPress looks for by itself, in the folder of a theme: https://developer.wordpress.org/themes/basics/template-hierarchy/ */
    public const TYPES = [
        '404', 'archive', 'attachment', 'author', 'category', 'date', 'embed', 'frontpage', 'home', 'index', 'page', 'paged',
        'privacypolicy', 'search', 'single', 'singular', 'tag', 'taxonomy',
    ];
    private const TEMPLATE_PATTERN = '~/(templates/|block-templates/|)((?:404|archive|attachment|author|category|date|embed|front-page|home|page|paged'
        . '|privacy-policy|search|single|singular|tag|taxonomy)(?:-[^/]*)?)\.(?:php|html)$~';

    private const OTHER_FOLDERS = ['.' => true, '..' => true, '.git' => true, '.svn' => true, 'node_modules' => true];

    /** Code in a pattern that does more than to print it. */
    private const MORE_TOKENS = [
        \T_FUNCTION, \T_FN, \T_CLASS, \T_INCLUDE, \T_INCLUDE_ONCE, \T_REQUIRE, \T_REQUIRE_ONCE, \T_EVAL, \T_GLOBAL, \T_EXIT,
    ];
    private const MORE_FUNCTIONS_PATTERN = '/^(?:(?:add|remove)_|register_|define$|update_|set_|ini_set$|header$)/i';

    private const TAKES_PATTERNS_PATTERN = '~patterns(?:/|[\'"]|_registry)~i';

    /** What is deeper, or more, is not looked at. */
    private const MAX_DEPTH = 16;
    private const MAX_FILES = 50_000;

    /** Of files that changed so long before they were last looked at, PHP is told as well. */
    private const TOLD_SECONDS = 2;

    private int $left = self::MAX_FILES;

    private int $newest = 0;

    /** @var array<string, true> */
    private array $themes = [];

    private bool $isInTheme = false;

    /** @var array<string, string> by tag: the tag of the pages that look for a template of this name */
    private array $templates = [];

    /** When the look began. A file may change again in the same second, and look as it did. */
    private int $began = 0;

    /** @var array<string, true> by tag: files that may do so */
    private array $unsettled = [];

    /** @var array<string, string> by tag: what tells the files of themes */
    private array $files = [];

    /** @var array<string, string> by tag: the paths of patterns */
    private array $patterns = [];

    /** @var list<array{string, int}> scripts, and when they changed */
    private array $scripts = [];

    /** @var array<string, true> folders by device and number */
    private array $folders = [];

    /**
     * The tag of a page that is made with this file, which is a template of a theme.
     */
    public static function tag(string $path): string
    {
        return 'file:' . substr(hash('xxh128', realpath($path) ?: $path), 0, 8);
    }

    /**
     * Whether a file concerns only pages that name it: what is included as a script, and the templates of themes of
     * blocks. Patterns are included for all pages, and printed on few.
     */
    public static function isOfSomePages(string $path): bool
    {
        return preg_match('~/patterns/[^/]*$|/functions\.php$~', $path) !== 1
            && preg_match('~\.php$|/(?:templates|parts|block-templates|block-template-parts)/[^/]+\.html$~', $path) === 1;
    }

    /**
     * The tags of what has changed since this was asked last.
     *
     * @return list<string>
     */
    public function changed(): array
    {
        $known = get_option(self::OPTION);
        $known = (\is_array($known) ? $known : []) + ['roots' => [], 'time' => 0];
        [$now, $kept] = $this->hashes();
        if ($now === $known['roots']) {
            return [];
        }
        // A theme that was switched to, or a plug-in that was activated, is another matter.
        $changed = array_diff_assoc(array_intersect_key($now, $known['roots']), $known['roots']);
        foreach ($this->scripts as [$path, $time]) {
            if ($time >= (int) $known['time'] - self::TOLD_SECONDS && \function_exists('opcache_invalidate')) {
                @opcache_invalidate($path, true);
            }
        }
        $files = $this->files;
        $before = \is_array($known['files'] ?? null) ? $known['files'] : [];
        $slugsBefore = \is_array($known['patterns'] ?? null) ? $known['patterns'] : [];
        $slugs = [];
        foreach ($this->patterns as $tag => $path) {
            $isSame = isset($slugsBefore[$tag]) && ($before[$tag] ?? null) === $files[$tag];
            $slugs[$tag] = $isSame ? (string) $slugsBefore[$tag] : self::slug($path);
        }
        update_option(self::OPTION, [
            'roots' => $kept, 'files' => array_fill_keys(array_keys($this->unsettled), '') + $files, 'patterns' => $slugs, 'time' => time(),
        ], true);
        if ($changed === []) {
            return [];
        }
        $others = array_filter(array_keys($changed), fn (string $root): bool => !isset($this->themes[$root]));
        if ($others !== []) {
            return [TagNames::SITE];
        }
        $tags = [];
        // What was added may take the place of any other template, unless its name says for which pages it is.
        foreach (array_keys(array_diff_assoc($before, $files) + array_diff_key($files, $before)) as $tag) {
            if (isset($slugs[$tag]) || isset($slugsBefore[$tag])) {
                array_push($tags, ...$this->ofPattern($slugsBefore[$tag] ?? null, $slugs[$tag] ?? null));
            } else {
                $tags[] = isset($before[$tag]) ? $tag : $this->templates[$tag] ?? TagNames::SITE;
            }
        }

        return \in_array(TagNames::SITE, $tags, true) ? [TagNames::SITE] : array_map(\strval(...), $tags);
    }

    /**
     * The tags of pages that have a pattern, by the names that it had and has: of all pages where its file, or a script
     * of the theme, does more with it than to print it where a block says so.
     *
     * @return list<string>
     */
    private function ofPattern(?string ...$slugs): array
    {
        $slugs = array_unique(array_filter($slugs, \is_string(...)));
        if (\in_array('', $slugs, true) || $this->scriptsTakePatterns()) {
            return [TagNames::SITE];
        }

        return array_map(static fn (string $slug): string => "pattern:$slug", array_values($slugs));
    }

    /**
     * The name of a pattern; empty where its file does more than to print it.
     * https://developer.wordpress.org/themes/patterns/registering-patterns/
     */
    private static function slug(string $path): string
    {
        $text = @file_get_contents($path);
        if ($text === false || !class_exists(\PhpToken::class)) {
            return '';
        }
        foreach (\PhpToken::tokenize($text) as $token) {
            if ($token->is(self::MORE_TOKENS) || $token->is(\T_STRING) && preg_match(self::MORE_FUNCTIONS_PATTERN, $token->text) === 1) {
                return '';
            }
        }

        return get_file_data($path, ['slug' => 'Slug'])['slug'];
    }

    /**
     * Whether a script of the theme takes patterns by itself.
     */
    private function scriptsTakePatterns(): bool
    {
        foreach ($this->scripts as [$path]) {
            $isOfTheme = array_filter($this->themeFolders(), static fn (string $folder): bool => str_starts_with($path, "$folder/")) !== [];
            if ($isOfTheme && !\in_array($path, $this->patterns, true) && preg_match(self::TAKES_PATTERNS_PATTERN, (string) @file_get_contents($path)) === 1) {
                return true;
            }
        }

        return false;
    }

    /**
     * @return array{array<string, string>, array<string, string>} by root: what tells its files, and what to keep
     *         of that, which is nothing where they may still change unseen
     */
    private function hashes(): array
    {
        clearstatcache(true);
        $hashes = ['' => $this->hashOfPhp()];
        $kept = $hashes;
        $this->began = time();
        foreach ($this->roots() as $root => $isDeep) {
            $hash = hash_init('xxh128');
            $this->newest = 0;
            $this->isInTheme = isset($this->themes[$root]);
            $this->look($root, $isDeep ? self::MAX_DEPTH : 1, $hash);
            $hashes[$root] = hash_final($hash);
            $kept[$root] = $this->newest < $this->began ? $hashes[$root] : '';
        }

        return [$hashes, $kept];
    }

    private function hashOfPhp(): string
    {
        if (!filter_var(\ini_get('opcache.validate_timestamps'), \FILTER_VALIDATE_BOOL) && \function_exists('opcache_get_status')) {
            // PHP runs new files only when it is started anew, or is told.
            $status = @opcache_get_status(false);
            $counted = \is_array($status) ? $status['opcache_statistics'] ?? [] : [];

            return ($counted['start_time'] ?? 0) . ' ' . ($counted['last_restart_time'] ?? 0);
        }

        return 'files';
    }

    /**
     * Folders, and whether those in them count as well.
     *
     * @return array<string, bool>
     */
    private function roots(): array
    {
        $roots = [
            ABSPATH => false,
            \dirname(ABSPATH) . '/wp-config.php' => false,
            ABSPATH . WPINC => true,
            WP_CONTENT_DIR => false,
            WPMU_PLUGIN_DIR => true,
            WP_CONTENT_DIR . '/languages' => true,
        ];
        foreach (['template', 'stylesheet'] as $theme) {
            $root = (string) get_option("{$theme}_root");
            $root = match (true) {
                $root === '' => WP_CONTENT_DIR . '/themes',
                is_dir($root) => $root,
                default => WP_CONTENT_DIR . $root,
            };
            $roots[$root . '/' . get_option($theme)] = true;
            $this->themes[$root . '/' . get_option($theme)] = true;
        }
        $plugins = (array) get_option('active_plugins', []);
        if (is_multisite()) {
            $plugins = [...$plugins, ...array_keys((array) get_site_option('active_sitewide_plugins', []))];
        }
        foreach (array_filter($plugins, \is_string(...)) as $plugin) {
            $folder = \dirname($plugin);
            $roots[WP_PLUGIN_DIR . '/' . ($folder === '.' ? $plugin : $folder)] = true;
        }

        return $roots;
    }

    /**
     * @return list<string>
     */
    private function themeFolders(): array
    {
        return array_map(\strval(...), array_keys($this->themes));
    }

    private function look(string $path, int $depth, \HashContext $hash): void
    {
        $about = $this->left > 0 ? @stat($path) : false;
        if ($about === false) {
            return;
        }
        $this->left--;
        $isFolder = ($about['mode'] & 0170000) === 0040000;
        if (!$isFolder) {
            if (preg_match(self::KINDS_PATTERN, $path) === 1) {
                $line = "$path $about[mtime] $about[ctime] $about[size] $about[ino]\n";
                hash_update($hash, $line);
                if ($this->isInTheme) {
                    $isPattern = str_ends_with($path, '.php') && \in_array(\dirname($path), array_map(static fn (string $one): string => "$one/patterns", $this->themeFolders()), true);
                    $tag = $isPattern || self::isOfSomePages($path) ? self::tag($path) : TagNames::SITE;
                    if ($isPattern) {
                        $this->patterns[$tag] = $path;
                    }
                    if (preg_match(self::TEMPLATE_PATTERN, $path, $template) === 1 && \in_array(\dirname($path, \strlen($template[1]) > 0 ? 2 : 1), $this->themeFolders(), true)) {
                        $this->templates[$tag] = "template:$template[2]";
                    }
                    $this->files[$tag] = hash('crc32b', ($this->files[$tag] ?? '') . $line);
                    if ($about['ctime'] >= $this->began) {
                        $this->unsettled[$tag] = true;
                    }
                }
                $this->newest = max($this->newest, $about['ctime']);
                if (str_ends_with($path, '.php')) {
                    $this->scripts[] = [$path, $about['ctime']];
                }
            }

            return;
        }
        $number = "$about[dev]:$about[ino]";
        if ($depth <= 0 || isset($this->folders[$number])) {
            return;
        }
        $this->folders[$number] = true;
        foreach (@scandir($path) ?: [] as $name) {
            if (!isset(self::OTHER_FOLDERS[$name])) {
                $this->look("$path/$name", $depth - 1, $hash);
            }
        }
    }
}
