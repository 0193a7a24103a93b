<?php

declare(strict_types=1);

namespace Mayfly\Psr;

use Mayfly\Changes;
use Mayfly\ErrorStream;
use Mayfly\Mayfly;
use Mayfly\Page;
use Mayfly\PhpErrorStream;
use Mayfly\Purge\Purger;
use Mayfly\Server;
use Mayfly\TagOutput;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * PSR-15: gives each request a {@see Mayfly} as its attribute, and its response the fields.
 *
 *     $request->getAttribute(Mayfly::class)->reads('news:5');
 */
final class Middleware implements MiddlewareInterface
{
    /**
     * @param Purger|null $purger    asked for each purge; otherwise the response says what to purge
     * @param int         $headBytes what tags may take of the head, where `fastcgi_buffer_size` allows more
     */
    public function __construct(
        private readonly ?Purger $purger = null,
        private readonly int $headBytes = TagOutput::HEAD_BYTES,
        private readonly ErrorStream $errorStream = new PhpErrorStream(),
    ) {
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $server = Server::fromParams($request->getServerParams());
        $head = new CollectedHead();
        $mayfly = new Mayfly(
            $server,
            new Page(),
            new Changes($server, $head, $this->purger, null, $this->headBytes),
            new TagOutput($server, $head, $this->errorStream, $this->headBytes),
            $head,
        );
        $response = $handler->handle($request->withAttribute(Mayfly::class, $mayfly));
        $mayfly->end();

        return $head->onto($response);
    }
}
