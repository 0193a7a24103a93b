<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

use Mayfly\Changes;
use Mayfly\PhpErrorStream;
use Mayfly\PhpResponseHead;
use Mayfly\Purge\Purger;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\PurgeFolder;
use Mayfly\Purge\ServerPurger;
use Mayfly\ResponseHead;
use Mayfly\Server;
use Mayfly\TagOutput;
use Mayfly\WordPress\Changing\Watcher;
use Mayfly\WordPress\Reading\Reader;

/**
 * One request of WordPress: its page is watched if it makes one, and what it changes always.
 *
 * All is silent where no Mayfly is in front. For themes and other plug-ins there are two actions:
 *
 *     do_action('mayfly_reads', 'weather:berlin');     the page shows it
 *     do_action('mayfly_changed', 'weather:berlin');   it has changed
 *
 * The constants MAYFLY_CONTROL_SOCKET, or MAYFLY_PURGE_URL and MAYFLY_PURGE_TOKEN, in wp-config.php name
 * another way to purge than by responses, MAYFLY_PURGE_FOLDER says where purges are left while the server is stopped,
 * and MAYFLY_HEAD_BYTES says what tags may take of a head. Nobody has to set them.
 */
final class Plugin
{
    /** How often WordPress's cron is called. */
    private const CRON_SECONDS = 60;

    /** @var list<Reader> */
    private array $readers = [];

    /** @var list<Watcher> */
    private array $watchers = [];

    private readonly PageTags $pageTags;

    private readonly ChangedTags $changedTags;

    private readonly Waiting $waiting;

    private readonly ?PurgeFolder $folder;

    private readonly Changes $changes;

    private readonly TagOutput $tagOutput;

    private readonly int $headBytes;

    private readonly TagNames $names;

    private readonly Lifetime $lifetime;

    private readonly Counters $counters;

    private readonly Tables $tables;

    private readonly bool $isPageView;

    /** The page is complete; what leaves before that may lack tags. */
    private bool $isComplete = false;

    /** @var list<mixed> what was known when tags were sent last */
    private array $sent = [];

    private function __construct(private readonly Server $server, private readonly ResponseHead $head)
    {
        $constant = static fn (string $name): mixed => \defined($name) ? \constant($name) : null;
        $bytes = $constant('MAYFLY_HEAD_BYTES') ?? self::param('MAYFLY_HEAD_BYTES');
        $this->headBytes = \is_int($bytes) && $bytes > 0 ? $bytes : TagOutput::HEAD_BYTES;
        $said = array_filter(array_map($constant, [
            'MAYFLY_CONTROL_SOCKET' => 'MAYFLY_CONTROL_SOCKET',
            'MAYFLY_PURGE_URL' => 'MAYFLY_PURGE_URL',
            'MAYFLY_PURGE_TOKEN' => 'MAYFLY_PURGE_TOKEN',
            'MAYFLY_PURGE_FOLDER' => 'MAYFLY_PURGE_FOLDER',
        ]));
        $this->names = TagNames::ofThisInstallation();
        $this->pageTags = new PageTags($this->names);
        $this->waiting = new Waiting($this->names);
        $known = !$server->isMayfly && $this->waiting->isMayflyKnown() ? $this->waiting->folder() : null;
        $this->folder = PurgeFolder::fromEnvironment($said + $_SERVER + getenv()) ?? $known;
        $purger = ServerPurger::fromEnvironment($said + ['MAYFLY_PURGE_FOLDER' => $this->folder?->path]);
        $this->changes = new Changes($server, $head, $purger, $this->substitute(), $this->headBytes);
        $this->lifetime = new Lifetime();
        $this->counters = new Counters();
        $this->tables = new Tables();
        $this->isPageView = !is_admin() && !wp_doing_cron() && \in_array($_SERVER['REQUEST_METHOD'] ?? '', ['GET', 'HEAD'], true)
            && \PHP_SAPI !== 'cli';
        $this->changedTags = new ChangedTags($this->names, $this->changes, $this->isPageView ? $this->counters : null);
        $this->tagOutput = new TagOutput($server, $head, new PhpErrorStream(), $this->headBytes);
    }

    /**
     * Is called once, when WordPress loads its plug-ins.
     */
    public static function start(): void
    {
        if (wp_installing()) {
            return;
        }
        $isCommand = \in_array(\PHP_SAPI, ['cli', 'phpdbg'], true);
        $plugin = new self($isCommand ? Server::none() : Server::fromParams($_SERVER), new PhpResponseHead());
        if ($plugin->server->isMayfly && wp_doing_ajax() && ($_GET['action'] ?? null) === Files::ACTION) {
            $plugin->lookAtFiles();
        }
        $plugin->watch();
    }

    /**
     * Answers Mayfly, which asks again and again, before WordPress goes on to make a page.
     */
    private function lookAtFiles(): never
    {
        $changed = (new Files())->changed();
        if ($changed !== []) {
            // WordPress 6.1 keeps the styles of a theme for a minute.
            Changing\PostWatcher::forgetStyles();
            $this->changedTags->add(...$changed);
        }
        $this->purge();
        $this->nameRepeats();
        $this->head->add('Cache-Control', 'no-store', true);
        http_response_code(204);
        exit;
    }

    /**
     * What Mayfly is to ask the site for, as long as pages are kept and so few are made: whether files have changed,
     * and WordPress's cron, unless the site has another.
     */
    private function nameRepeats(): void
    {
        // Visitors may name any host and port, and each would be asked again and again.
        $site = (array) parse_url(site_url()) + ['host' => '', 'port' => null];
        $host = $site['host'] . ($site['port'] === null ? '' : ":$site[port]");
        if (!$this->head->isOpen() || strcasecmp($host, (string) ($_SERVER['HTTP_HOST'] ?? '')) !== 0) {
            return;
        }
        if (get_option(Files::OPTION) === false) {
            // From now on it is known what changes.
            (new Files())->changed();
        }
        $path = static fn (string $url): string => (string) parse_url($url, \PHP_URL_PATH);
        $repeats = [$path(admin_url('admin-ajax.php')) . '?action=' . Files::ACTION . ' ' . Files::SECONDS];
        if (!(\defined('DISABLE_WP_CRON') && \constant('DISABLE_WP_CRON'))) {
            $repeats[] = $path(site_url('wp-cron.php')) . '?doing_wp_cron ' . self::CRON_SECONDS;
        }
        $this->head->add('X-Cache-Repeat', implode(', ', $repeats), true);
    }

    private function watch(): void
    {
        $options = new Options();
        if ($this->server->isMayfly && $this->isPageView) {
            $this->watchPage($options);
        }
        $posts = new Changing\PostWatcher($this->changedTags);
        $terms = new Changing\TermWatcher($this->changedTags);
        $users = new Changing\UserWatcher($this->changedTags);
        $comments = new Changing\CommentWatcher($this->changedTags);
        $settings = new Changing\OptionWatcher($this->changedTags, $options, $this->isPageView);
        $tables = new Changing\TableWatcher($this->changedTags, $this->tables, [
            'posts' => $posts->row(...), 'postmeta' => $posts->metaRow(...),
            'terms' => $terms->row(...), 'term_taxonomy' => $terms->row(...), 'termmeta' => $terms->metaRow(...),
            'users' => $users->row(...), 'usermeta' => $users->metaRow(...),
            'comments' => $comments->row(...), 'commentmeta' => $comments->metaRow(...),
            'options' => $settings->row(...),
        ]);
        $this->watchers = [$tables, $posts, $terms, $users, $comments, $settings];
        foreach ($this->watchers as $watcher) {
            $watcher->watch();
        }
        add_action('mayfly_changed', function ($name): void {
            $this->changedTags->add((string) $name);
        });
        foreach ($this->server->isMayfly ? ['wp_ajax_', 'wp_ajax_nopriv_'] : [] as $hook) {
            add_action($hook . LoopbackPurger::ACTION, function (): void {
                LoopbackPurger::answer($this->changes->add(...));
            });
        }
        // Before WordPress empties its buffers, and again after all others that wait for the end.
        add_action('shutdown', $this->end(...), \PHP_INT_MIN);
        add_action('shutdown', $this->end(...), \PHP_INT_MAX);
    }

    private function watchPage(Options $options): void
    {
        $posts = new Reading\PostReader($this->pageTags, $this->counters);
        $this->readers = [
            new Reading\OptionReader($this->pageTags, $options, $this->counters, $this->lifetime),
            new Reading\TableReader($this->pageTags, $this->tables, $this->counters, $this->lifetime),
            new Reading\NonceReader($this->lifetime),
            new Reading\FileReader($this->pageTags),
            new Reading\QueryReader($this->pageTags, $posts),
            $posts,
            new Reading\TermReader($this->pageTags),
            new Reading\UserReader($this->pageTags),
            new Reading\CommentReader($this->pageTags, $this->lifetime),
            new Reading\MenuReader($this->pageTags),
        ];
        foreach ($this->readers as $reader) {
            $reader->watch();
        }
        add_action('mayfly_reads', function ($name): void {
            $this->pageTags->add((string) $name);
        });
        // The page is held back to its end, so that the head can name what is read last.
        ob_start(function (string $output): string {
            $this->sendTags();

            return $output;
        });
    }

    private function end(): void
    {
        foreach ($this->readers as $reader) {
            $reader->finish();
        }
        foreach ($this->watchers as $watcher) {
            $watcher->finish();
        }
        $this->isComplete = true;
        $this->sendTags();
        if ($this->isPageView) {
            $this->changes->add(...$this->counters->settle(!\function_exists('is_user_logged_in') || !is_user_logged_in()));
        }
        $this->purge();
    }

    private function sendTags(): void
    {
        if ($this->readers === []) {
            return;
        }
        // It is asked three times, and mostly there is nothing new.
        $state = [$this->isComplete, $this->pageTags->version(), $this->lifetime->said(\PHP_INT_MAX), $this->counters->areShown()];
        if ($state === $this->sent) {
            return;
        }
        $this->sent = $state;
        $this->nameRepeats();
        if (\function_exists('is_user_logged_in') && is_user_logged_in()) {
            return;
        }
        if (!$this->tagOutput->send($this->pageTags->withinBytes($this->headBytes), $this->isComplete)) {
            trigger_error('Mayfly: a page has left without all of its tags.', \E_USER_WARNING);
        }
        $this->vouch();
    }

    /**
     * Says how long the page may be kept, where the server asks for it (`mayfly serve`) and nobody else has said
     * anything: all that it shows is named.
     */
    private function vouch(): void
    {
        if ($this->counters->areShown()) {
            $this->lifetime->changesUnseen();
        }
        $seconds = $this->lifetime->said(self::param('MAYFLY_KEEP_SECONDS'));
        if ($seconds === null || !$this->isComplete || !$this->head->isOpen() || http_response_code() !== 200) {
            return;
        }
        $said = preg_grep('/^(?:cache-control|expires|pragma|set-cookie|x-accel-expires):/i', headers_list());
        if ($said === [] && !(\defined('DONOTCACHEPAGE') && \constant('DONOTCACHEPAGE'))) {
            $this->head->add('X-Accel-Expires', (string) $seconds, true);
        }
    }

    /**
     * A number that the server gives as a FastCGI param. Fields of visitors have other names (`HTTP_...`).
     */
    private static function param(string $name): ?int
    {
        $value = $_SERVER[$name] ?? null;

        return \is_string($value) && preg_match('/^[1-9][0-9]{0,8}$/D', $value) === 1 ? (int) $value : null;
    }

    private function purge(): void
    {
        if ($this->server->isMayfly) {
            $this->waiting->know($this->folder);
        }
        $waiting = $this->server->isMayfly && $this->head->isOpen() ? $this->waiting->tags() : [];
        $this->changes->add(...$waiting);
        try {
            $this->changes->purge();
            if ($waiting !== []) {
                $this->waiting->forget();
            }
        } catch (PurgeFailed $failure) {
            $this->waiting->add($this->changes->pending());
            $this->changes->forget();
            trigger_error('Mayfly: ' . $failure->getMessage(), \E_USER_WARNING);
        }
    }

    /**
     * Whom to ask where there is no response: nobody if there has never been a Mayfly.
     */
    private function substitute(): ?Purger
    {
        return $this->server->isMayfly || $this->waiting->isMayflyKnown() ? new LoopbackPurger($this->folder) : null;
    }
}
