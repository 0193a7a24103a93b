<?php

/**
 * The interfaces of psr/http-server-handler and psr/http-server-middleware. No Debian package has them
 * (the extension php-psr aside): they stand in for the tests, and are no part of the library. The messages of PSR-7 are Debian's.
 */

declare(strict_types=1);

namespace Psr\Http\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;

if (!interface_exists(RequestHandlerInterface::class)) {
    interface RequestHandlerInterface
    {
        public function handle(ServerRequestInterface $request): ResponseInterface;
    }
}

if (!interface_exists(MiddlewareInterface::class)) {
    interface MiddlewareInterface
    {
        public function process(
            ServerRequestInterface $request,
            RequestHandlerInterface $handler,
        ): ResponseInterface;
    }
}
