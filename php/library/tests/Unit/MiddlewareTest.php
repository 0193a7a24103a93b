<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Mayfly;
use Mayfly\Psr\Middleware;
use Mayfly\Tests\FakeErrorStream;
use Mayfly\Tests\FakePurger;
use Nyholm\Psr7\Response;
use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

final class MiddlewareTest extends TestCase
{
    /**
     * @param array<string, string>    $params
     * @param \Closure(Mayfly): mixed $work
     */
    private function handle(array $params, \Closure $work, Middleware $middleware = new Middleware()): ResponseInterface
    {
        $handler = new class ($work) implements RequestHandlerInterface {
            public function __construct(private readonly \Closure $work)
            {
            }

            public function handle(ServerRequestInterface $request): ResponseInterface
            {
                ($this->work)($request->getAttribute(Mayfly::class));

                return new Response(200, ['Surrogate-Key' => 'own', 'Cache-Control' => 'max-age=5'], 'page');
            }
        };

        return $middleware->process(new ServerRequest('GET', '/', [], null, '1.1', $params), $handler);
    }

    public function testAResponseGetsTheFields(): void
    {
        $response = $this->handle(
            ['SERVER_SOFTWARE' => 'mayfly'],
            static fn (Mayfly $mayfly) => $mayfly->reads('news:5')->keepFor(60)->changed('list'),
        );
        self::assertSame(['own', 'news:5'], $response->getHeader('Surrogate-Key'));
        self::assertSame(['60'], $response->getHeader('X-Accel-Expires'));
        self::assertSame(['list'], $response->getHeader('X-Cache-Purge-Tags'));
        self::assertSame(['max-age=5'], $response->getHeader('Cache-Control'));
    }

    public function testWithoutMayflyAResponseStaysAsItIs(): void
    {
        $response = $this->handle([], static fn (Mayfly $mayfly) => $mayfly->reads('a')->keepFor(9)->changed('b'));
        self::assertSame(
            ['Surrogate-Key' => ['own'], 'Cache-Control' => ['max-age=5']],
            $response->getHeaders(),
        );
    }

    public function testWhatIsPrivateReplacesTheLifetime(): void
    {
        $response = $this->handle([], static fn (Mayfly $mayfly) => $mayfly->private());
        self::assertSame(['private, no-cache'], $response->getHeader('Cache-Control'));
    }

    public function testAPurgerAndAnErrorStreamAreUsed(): void
    {
        $purger = new FakePurger();
        $stream = new FakeErrorStream();
        $this->handle(
            ['MAYFLY_TAG_MARK' => 'mark'],
            static fn (Mayfly $mayfly) => $mayfly->reads(...array_map(strval(...), range(100, 200)))->changed('a'),
            new Middleware($purger, 100, $stream),
        );
        self::assertSame(['a'], $purger->purges[0]->tags);
        self::assertStringStartsWith('mark 1', $stream->lines[0]);
    }

    public function testRequestsShareNothing(): void
    {
        $middleware = new Middleware();
        $params = ['SERVER_SOFTWARE' => 'mayfly'];
        $this->handle($params, static fn (Mayfly $mayfly) => $mayfly->reads('one'), $middleware);
        $response = $this->handle($params, static fn (Mayfly $mayfly) => $mayfly->reads('two'), $middleware);
        self::assertSame(['own', 'two'], $response->getHeader('Surrogate-Key'));
    }
}
