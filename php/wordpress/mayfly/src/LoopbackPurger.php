<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

use Mayfly\Purge\Purge;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\PurgeFolder;
use Mayfly\Purge\Purger;

/**
 * Purges by a request to the site itself, whose response says what to purge. So cron, WP-CLI and whatever
 * else has no response of its own needs neither a setting nor rights: WordPress calls its cron in the same
 * way. The request is signed with the site's keys.
 */
final class LoopbackPurger implements Purger
{
    public const ACTION = 'mayfly_purge';

    /** How long a signature counts. */
    private const SECONDS = 60;

    private const TIMEOUT_SECONDS = 10;

    /** What the head of the answer has room for. */
    private const TAG_BYTES = 2000;

    /**
     * @param PurgeFolder|null $folder of the server: what the site cannot be asked for is left there as well, and
     *                                 holds from the next start on
     */
    public function __construct(private readonly ?PurgeFolder $folder = null)
    {
    }

    public function purge(Purge $purge): int
    {
        try {
            return $this->askForAll($purge);
        } catch (PurgeFailed $failure) {
            if ($this->folder === null) {
                throw $failure;
            }
        }
        $file = $this->folder->leave((string) json_encode($purge, \JSON_INVALID_UTF8_SUBSTITUTE));
        // A server that has begun meanwhile may have read the folder before.
        $count = $this->askForAll($purge);
        $this->folder->takeBack($file);

        return $count;
    }

    /**
     * @throws PurgeFailed
     */
    private function askForAll(Purge $purge): int
    {
        foreach (explode("\n", wordwrap(implode(' ', $purge->tags), self::TAG_BYTES, "\n")) as $tags) {
            $this->ask($tags);
        }

        return \count($purge->tags);
    }

    /**
     * @throws PurgeFailed
     */
    private function ask(string $tags): void
    {
        $until = (string) (time() + self::SECONDS);
        $answer = wp_remote_post(admin_url('admin-ajax.php'), [
            'timeout' => self::TIMEOUT_SECONDS,
            'sslverify' => apply_filters('https_local_ssl_verify', false),
            'body' => ['action' => self::ACTION, 'tags' => $tags, 'until' => $until, 'sign' => self::sign($tags, $until)],
        ]);
        if (is_wp_error($answer)) {
            throw new PurgeFailed('The site does not reach itself: ' . $answer->get_error_message());
        }
        $said = json_decode((string) wp_remote_retrieve_body($answer), true);
        if (!\is_array($said) || ($said['purged'] ?? false) !== true) {
            throw new PurgeFailed('The site answers itself with status ' . wp_remote_retrieve_response_code($answer));
        }
    }

    /**
     * Answers such a request: what it names is handed on, and the answer purges it.
     *
     * @param \Closure(string): void $add is given each tag, with its full name
     */
    public static function answer(\Closure $add): void
    {
        $field = static function (string $name): string {
            $value = wp_unslash($_POST[$name] ?? '');

            return \is_string($value) ? $value : '';
        };
        $tags = $field('tags');
        $until = $field('until');
        $isInTime = (int) $until >= time() && (int) $until <= time() + self::SECONDS;
        if (!$isInTime || !hash_equals(self::sign($tags, $until), $field('sign'))) {
            wp_send_json(['purged' => false], 403);
        }
        foreach (explode(' ', $tags) as $tag) {
            if ($tag !== '') {
                $add($tag);
            }
        }
        wp_send_json(['purged' => true]);
    }

    private static function sign(string $tags, string $until): string
    {
        return hash_hmac('sha256', self::ACTION . "\n$until\n$tags", wp_salt('auth'));
    }
}
