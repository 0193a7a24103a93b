<?php

/**
 * The interfaces of friendsofsymfony/http-cache 3 that the proxy client implements, as far as PHP checks
 * them. No Debian package has them: they stand in for the tests, and are no part of the library.
 */

declare(strict_types=1);

namespace FOS\HttpCache\ProxyClient {
    interface ProxyClient
    {
        public function flush(): int;
    }
}

namespace FOS\HttpCache\ProxyClient\Invalidation {
    use FOS\HttpCache\ProxyClient\ProxyClient;

    interface PurgeCapable extends ProxyClient
    {
        /** @param array<string, string> $headers */
        public function purge(string $url, array $headers = []): static;
    }

    interface TagCapable extends ProxyClient
    {
        /** @param array<array-key, string> $tags */
        public function invalidateTags(array $tags): static;
    }

    interface ClearCapable extends ProxyClient
    {
        public function clear(): static;
    }
}

namespace FOS\HttpCache\Exception {
    class ExceptionCollection extends \Exception
    {
        /** @param list<\Exception> $exceptions */
        public function __construct(private array $exceptions = [])
        {
            parent::__construct(implode("\n", array_map(static fn (\Exception $one) => $one->getMessage(), $exceptions)));
        }

        public function getFirst(): ?\Exception
        {
            return $this->exceptions[0] ?? null;
        }
    }
}
