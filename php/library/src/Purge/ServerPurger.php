<?php

declare(strict_types=1);

namespace Mayfly\Purge;

use Mayfly\Http\Exchange;
use Mayfly\Http\ExchangeFailed;
use Mayfly\Http\NoServer;
use Mayfly\Http\SocketExchange;

/**
 * Asks the running server: over its control socket, or at a location with `cache_purge_api`.
 */
final class ServerPurger implements Purger
{
    /** The version of the interface of the control socket is part of its path. */
    private const CONTROL_PATH = '/1/purge';

    private function __construct(
        private readonly Exchange $exchange,
        private readonly string $address,
        private readonly string $host,
        private readonly string $path,
        #[\SensitiveParameter] private readonly ?string $token,
        private readonly ?PurgeFolder $folder,
    ) {
    }

    /**
     * @param string $path of the socket (`control_socket`). Only the account that started the server,
     *                     and root, may connect to it.
     * @param PurgeFolder|null $folder of this server: purges are left there while it does not run
     */
    public static function atControlSocket(
        string $path,
        ?Exchange $exchange = null,
        ?PurgeFolder $folder = null,
    ): self {
        $exchange ??= new SocketExchange();

        return new self($exchange, "unix://$path", 'localhost', self::CONTROL_PATH, null, $folder);
    }

    /**
     * @param string      $url   of a location with `cache_purge_api`, such as `http://127.0.0.1/purge`
     * @param string|null $token of `cache_purge_token`; not needed by programs on the same machine
     * @param PurgeFolder|null $folder of this server: purges are left there while it does not run
     *
     * @throws \InvalidArgumentException for what is no absolute URL with http or https
     */
    public static function atUrl(
        string $url,
        #[\SensitiveParameter] ?string $token = null,
        ?Exchange $exchange = null,
        ?PurgeFolder $folder = null,
    ): self {
        $parts = parse_url($url);
        $scheme = strtolower($parts['scheme'] ?? '');
        if ($parts === false || !isset($parts['host']) || !in_array($scheme, ['http', 'https'], true)) {
            throw new \InvalidArgumentException("\"$url\" is no absolute URL with http or https.");
        }
        // A line end would begin another field of the request.
        if ($token !== null && preg_match('/[^!-~]/', $token) === 1) {
            throw new \InvalidArgumentException('The token has bytes that no token has.');
        }
        [$transport, $port] = $scheme === 'https' ? ['tls', 443] : ['tcp', 80];
        $host = $parts['host'] . (isset($parts['port']) ? ":{$parts['port']}" : '');
        $path = ($parts['path'] ?? '/') . (isset($parts['query']) ? "?{$parts['query']}" : '');
        $address = sprintf('%s://%s:%d', $transport, $parts['host'], $parts['port'] ?? $port);

        return new self($exchange ?? new SocketExchange(), $address, $host, $path, $token, $folder);
    }

    /**
     * As the environment says, for scripts and cron: `MAYFLY_CONTROL_SOCKET` names a socket, or
     * `MAYFLY_PURGE_URL` and `MAYFLY_PURGE_TOKEN` a location. Null where it says nothing. `MAYFLY_PURGE_FOLDER`
     * is where purges are left while the server does not run.
     *
     * @param array<array-key, mixed> $environment such as `getenv()` or `$_SERVER`
     */
    public static function fromEnvironment(array $environment): ?self
    {
        $value = static function (string $name) use ($environment): ?string {
            $value = $environment[$name] ?? null;

            return is_string($value) && $value !== '' ? $value : null;
        };
        $folder = PurgeFolder::fromEnvironment($environment);
        $socket = $value('MAYFLY_CONTROL_SOCKET');
        if ($socket !== null) {
            return self::atControlSocket($socket, folder: $folder);
        }
        $url = $value('MAYFLY_PURGE_URL');

        return $url === null ? null : self::atUrl($url, $value('MAYFLY_PURGE_TOKEN'), folder: $folder);
    }

    public function purge(Purge $purge): int
    {
        if ($purge->isEmpty()) {
            return 0;
        }
        $fields = ['Host' => $this->host, 'Content-Type' => 'application/json'];
        if ($this->token !== null) {
            $fields['Authorization'] = "Bearer $this->token";
        }
        $responses = 0;
        foreach (self::parts($purge) as $part) {
            $body = json_encode($part, \JSON_UNESCAPED_SLASHES | \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
            try {
                $responses += $this->ask($fields, $body) ?? $this->leave($fields, $body);
            } catch (ExchangeFailed $failure) {
                throw new PurgeFailed($failure->getMessage(), 0, $failure);
            }
        }

        return $responses;
    }

    /**
     * @param array<string, string> $fields
     *
     * @return int|null how many responses were purged; null if no server runs, and it may be left for the next start
     *
     * @throws ExchangeFailed
     * @throws PurgeFailed
     */
    private function ask(array $fields, string $body): ?int
    {
        try {
            [$status, $answer] = $this->exchange->post($this->address, $this->path, $fields, $body);
        } catch (NoServer $absent) {
            return $this->folder === null ? throw $absent : null;
        }

        return self::counted($status, $answer);
    }

    /**
     * @param array<string, string> $fields
     *
     * @throws ExchangeFailed
     * @throws PurgeFailed
     */
    private function leave(array $fields, string $body): int
    {
        $file = $this->folder?->leave($body);
        // A server that has begun meanwhile may have read the folder before.
        $responses = $this->ask($fields, $body);
        if ($responses !== null && $file !== null) {
            $this->folder?->takeBack($file);
        }

        return $responses ?? 0;
    }

    /**
     * Parts that name no more than the server takes at once. Only tags come in such numbers.
     *
     * @return list<Purge>
     */
    private static function parts(Purge $purge): array
    {
        if (count($purge->tags) <= Purge::MAX_TARGETS / 2) {
            return [$purge];
        }
        $parts = [];
        foreach (array_chunk($purge->tags, intdiv(Purge::MAX_TARGETS, 2)) as $tags) {
            $parts[] = new Purge(tags: $tags, soft: $purge->soft);
        }
        $others = new Purge(
            [],
            $purge->urls,
            $purge->prefixes,
            $purge->patterns,
            $purge->hosts,
            $purge->everything,
            $purge->soft,
        );

        return $others->isEmpty() ? $parts : [...$parts, $others];
    }

    /**
     * @throws PurgeFailed unless the answer says that it is done
     */
    private static function counted(int $status, string $answer): int
    {
        $said = json_decode($answer, true);
        $said = is_array($said) ? $said : [];
        if ($status !== 200 || !is_array($said['targets'] ?? null)) {
            // {"error":{"field":"urls[3]","message":"expected an absolute URL"}}
            $error = is_array($said['error'] ?? null) ? $said['error'] : [];
            $texts = array_filter([$error['field'] ?? null, $error['message'] ?? null], is_string(...));
            $reason = $texts === [] ? substr($answer, 0, 200) : implode(': ', $texts);
            throw new PurgeFailed("The server refuses with status $status: $reason");
        }
        $responses = 0;
        foreach ($said['targets'] as $target) {
            $counted = is_array($target) ? $target['responses'] ?? 0 : 0;
            $responses += is_int($counted) ? $counted : 0;
        }

        return $responses;
    }
}
